// An answer as a table of rows.

import { node } from "./dom.js";
import { columnFormat, integer } from "./format.js";

const MAX_ROWS = 500;

export function rowsTable({ columns, rows }) {
  const numeric = columns.map((_, index) => rows.some((row) => typeof row[index] === "number"));
  const texts = columns.map((_, index) => columnFormat(rows.slice(0, MAX_ROWS).map((row) => row[index])));
  const head = node("tr", {}, ...columns.map((name, index) =>
    node("th", { scope: "col", class: numeric[index] ? "num" : "" }, name)));
  const body = rows.slice(0, MAX_ROWS).map((row) => node("tr", {}, ...row.map((value, index) => {
    const kinds = [numeric[index] ? "num" : "", value === null ? "null" : ""].filter(Boolean);
    return node("td", { class: kinds.join(" "), "data-value": JSON.stringify(value) }, texts[index](value));
  })));
  const table = node("table", { class: "rows" }, node("thead", {}, head), node("tbody", {}, ...body));
  const rest = rows.length > MAX_ROWS
    ? node("p", { class: "more" }, `The first ${MAX_ROWS} of ${integer(rows.length)} rows. Downloads have them all.`) : null;
  const none = rows.length === 0 ? node("p", { class: "more" }, "No rows: no group has any records.") : null;
  const scroll = node("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Rows" }, table);
  return [scroll, rest, none].filter(Boolean);
}
