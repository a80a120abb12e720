// An answer as a table of rows.

import { node } from "./dom.js";
import { columnFormat, integer } from "./format.js";

const SHOWN = 500;

export function rowsTable({ columns, rows }) {
  const numeric = columns.map((_, place) => rows.some((row) => typeof row[place] === "number"));
  const texts = columns.map((_, place) => columnFormat(rows.slice(0, SHOWN).map((row) => row[place])));
  const head = node("tr", {}, ...columns.map((name, place) =>
    node("th", { scope: "col", class: numeric[place] ? "num" : "" }, name)));
  const body = rows.slice(0, SHOWN).map((row) => node("tr", {}, ...row.map((value, place) => {
    const kinds = [numeric[place] ? "num" : "", value === null ? "null" : ""].filter(Boolean);
    return node("td", { class: kinds.join(" "), "data-value": JSON.stringify(value) }, texts[place](value));
  })));
  const table = node("table", { class: "rows" }, node("thead", {}, head), node("tbody", {}, ...body));
  const rest = rows.length > SHOWN
    ? node("p", { class: "more" }, `The first ${SHOWN} of ${integer(rows.length)} rows. Downloads have them all.`) : null;
  const none = rows.length === 0 ? node("p", { class: "more" }, "No rows: no group has any records.") : null;
  const scroll = node("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Rows" }, table);
  return [scroll, rest, none].filter(Boolean);
}
