// An answer as a table of rows.

import { node } from "./dom.js";
import { EVEN, between, columnFormat, integer } from "./format.js";
import { scrollBox } from "./scroll.js";

const MAX_ROWS = 500;

// `ranges` has, for each value, what it can be at least and at most, where that is not clear.
// `even` has the names of columns that are in no measurement.
export function rowsTable({ columns, rows, ranges = [], even = [] }) {
  const numeric = columns.map((_, index) => rows.some((row) => typeof row[index] === "number"));
  const texts = columns.map((_, index) => columnFormat(rows.slice(0, MAX_ROWS).map((row) => row[index])));
  const head = node("tr", {}, ...columns.map((name, index) =>
    node("th", { scope: "col", class: numeric[index] ? "num" : "" }, name, even.includes(name) ? node("span", { class: "even" }, EVEN) : null)));
  const body = rows.slice(0, MAX_ROWS).map((row, at) => node("tr", {}, ...row.map((value, index) => {
    const ends = ranges[at]?.[index];
    const range = ends ? node("span", { class: "range" }, between(ends)) : null;
    const kinds = [numeric[index] ? "num" : "", value === null ? "null" : ""].filter(Boolean);
    return node("td", { class: kinds.join(" "), "data-value": JSON.stringify(value) }, texts[index](value), range);
  })));
  const table = node("table", { class: "rows" }, node("thead", {}, head), node("tbody", {}, ...body));
  const rest = rows.length > MAX_ROWS
    ? node("p", { class: "more" }, `The first ${MAX_ROWS} of ${integer(rows.length)} rows. Downloads have them all.`) : null;
  const none = rows.length === 0 ? node("p", { class: "more" }, "No rows: no group has any records.") : null;
  const scroll = scrollBox({ tabIndex: 0, role: "region", "aria-label": "Rows" }, table);
  const why = ranges.some((row) => row.some(Boolean))
    ? node("p", { class: "note" }, "Below a number: what it can be, wherever in their bins the numbers lie.") : null;
  return [...scroll, rest, none, why].filter(Boolean);
}
