// What the page is about: the release, the question, and its answer. The question is kept in the
// address, so that reloading, or a link, shows the same answer.

import { SORTS } from "./axes.js";
import { MEASURES } from "./heat.js";

const FIRST = { chosen: [], conditions: [], measure: "count", form: "heat", sort: "given", detail: null, view: "chart", slice: null, numbers: null, sql: "" };
export const FORMS = [["heat", "Heatmap"], ["bars", "Bars"], ["stacked", "Stacked"], ["lines", "Lines"]];
export const DETAILS = [null, 40, 20, 10, 5]; // how many values of each attribute are shown at most

export const page = {
  release: null,
  attributes: new Map(), // by name
  state: { ...FIRST },
  answer: null, // what is shown: { sql, columns, cells, shape, ... } or { sql, columns, rows }
};

export function remember() {
  const { view, slice, sql, numbers: _, ...kept } = page.state;
  const { chosen, conditions } = kept;
  const asked = view === "sql" ? { ...kept, sql } : { ...kept, view, slice };
  const plain = !chosen.length && !conditions.length && view !== "sql";
  const text = plain ? "" : `#${encodeURIComponent(JSON.stringify(asked))}`;
  history.replaceState(null, "", `${location.pathname}${text}`);
}

export function restore() {
  const { state, attributes } = page;
  Object.assign(state, FIRST);
  try {
    const kept = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    if (typeof kept.sql === "string") state.sql = kept.sql;
    if (kept.view === "table") state.view = "table";
    if (Number.isInteger(kept.slice)) state.slice = kept.slice;
    const known = (choices, value) => choices.some(([name]) => name === value);
    if (known(FORMS, kept.form)) state.form = kept.form;
    if (known(SORTS, kept.sort)) state.sort = kept.sort;
    if (DETAILS.includes(kept.detail)) state.detail = kept.detail;
    if (known(MEASURES, kept.measure)) state.measure = kept.measure;
    state.chosen = kept.chosen.filter((name) => attributes.has(name)).slice(0, 3);
    state.conditions = kept.conditions.filter((each) => {
      const attribute = attributes.get(each.attribute);
      return attribute && (each.codes ? each.codes.every((code) => attribute.values[code]) : "low" in each);
    });
  } catch { /* no state, or not ours */ }
}
