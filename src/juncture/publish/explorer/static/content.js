// The answer itself: a title, and a chart, a table or words.

import { bars } from "./bars.js";
import { byId, node, svg } from "./dom.js";
import { EVEN, count } from "./format.js";
import { drawSlicer, heat, isLarge, takeSlice } from "./heat.js";
import { page } from "./page.js";
import { rowsTable } from "./rows.js";
import { series } from "./series.js";
import { asRows, chartForm } from "./shown.js";

export function title(shown) {
  if (!shown) return ["Your query"];
  if (!shown.axes.length) return [page.state.conditions.length ? "Matching records" : "What would you like to see?"];
  return shown.axes.flatMap((each, index) => [
    index ? node("span", { class: "times" }, " × ") : "", each.name,
    each.counted ? "" : node("span", { class: "even" }, EVEN),
  ]);
}

// `select` takes axes with places along them that were clicked; `redraw` shows changes of the state,
// `show` a pair of attributes.
export function content(shown, { select, redraw, show }) {
  const { state, answer } = page;
  if (!shown || state.view === "table") return [...rowsTable(asRows()), ...notes()];
  if (!shown.axes.length) return empty(show);
  if (!(answer.count > 0)) return [node("div", { class: "empty" }, node("p", { class: "lead" }, "No records match these conditions."))];
  return [...(shown.axes.length === 1 ? oneAttribute(shown, select) : crossTable(shown, select, redraw)), ...notes()];
}

function oneAttribute({ axes: [axis], cells, halves }, select) {
  const measure = page.state.measure === "all" ? "all" : "count";
  return bars(axis, cells, chosenPlaces(axis), (places) => select([[axis, places]]), page.answer.mean, halves, measure);
}

function crossTable({ axes: [rows, columns, third], cells, halves }, select, redraw) {
  const { state, answer } = page;
  const drawing = {
    rows, columns, measure: state.measure,
    cells: takeSlice(answer.shape, cells, state.slice),
    width: byId("answer-body").clientWidth - 40,
    take: (i, j) => select([...(i < 0 ? [] : [[rows, [i]]]), ...(j < 0 ? [] : [[columns, [j]]])]),
  };
  const table = state.form === "heat" ? heat({
    ...drawing, numbers: state.numbers ?? !isLarge(rows, columns),
    chosen: { rows: chosenPlaces(rows), columns: chosenPlaces(columns) },
  }) : series({ ...drawing, halves: third ? null : halves, form: chartForm() });
  return [...(third ? [drawSlicer(third, state.slice, (slice) => redraw({ slice }))] : []), ...table];
}

export const chosenCodes = (attribute) =>
  new Set(page.state.conditions.find((each) => each.attribute === attribute.name)?.codes ?? []);

// The places along an axis whose values are all in a condition.
function chosenPlaces(axis) {
  const codes = chosenCodes(axis);
  return new Set([...axis.values.keys()].filter((place) => axis.codes[place]?.every((code) => codes.has(code))));
}

// What the answer rests on.
function notes() {
  const told = page.answer.notes ?? [];
  if (!told.length) return [];
  return [node("ul", { class: "notes", "aria-label": "What the answer rests on" }, ...told.map((each) => node("li", { class: "note" }, each)))];
}

function empty(show) {
  const { release, state, answer } = page;
  const drawing = svg("svg", { viewBox: "0 0 120 64", "aria-hidden": "true", fill: "currentColor" });
  [14, 26, 40, 52, 46, 34, 22, 12].forEach((high, index) =>
    drawing.append(svg("rect", { x: 8 + index * 13.4, y: 60 - high, width: 10, height: high, rx: 2, opacity: 0.35 + 0.08 * (index % 4) })));
  const tries = release.pairs.map((pair) => node("button", { type: "button", onclick: () => show(pair) }, pair.join(" × ")));
  const lead = state.conditions.length ? `${count(answer.count)} records` : "Choose an attribute to see how it is distributed.";
  return [node("div", { class: "empty" }, drawing,
    node("p", { class: "lead" }, lead),
    node("p", {}, "A second one makes a cross-table, a third one slices it. Click on a bar or cell to see only those records, or ask in SQL below."),
    tries.length ? node("p", {}, "Strongest pairs:") : null,
    node("div", { class: "tries" }, ...tries))];
}
