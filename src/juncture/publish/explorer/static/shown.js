// The answer as it is shown: sorted, as parts of a whole, as rows.

import { arrange, makeAxis, wholes } from "./axes.js";
import { MEASURES, takeSlice } from "./heat.js";
import { page } from "./page.js";
import { MAX_SERIES, canLine } from "./series.js";

const MAX_BARS = 40;

// The axes of the chart, in the order in which they are shown, with cells and half-widths; null for
// the rows of a query.
export function arrangeAnswer() {
  const { state, answer, attributes } = page;
  if (state.view === "sql") return null;
  const axes = state.chosen.map((name, index) => makeAxis(attributes.get(name), answer.axes[index]));
  const { axes: sorted, move } = arrange(axes, answer.shape, answer.cells, isLines() ? "given" : state.sort);
  return { axes: sorted, cells: move(answer.cells), halves: answer.plus_minus ? move(answer.plus_minus) : null };
}

// Lines need an order, and keep to it.
export const isLines = () => page.state.view === "chart" && chartForm() === "lines";

export function canHaveLines() {
  const { state, answer, attributes } = page;
  return canLine(makeAxis(attributes.get(state.chosen[0]), answer.axes[0]));
}

export function chartForm() {
  const { chosen, form } = page.state;
  if (chosen.length < 2) return null;
  return form === "lines" && !canHaveLines() ? "bars" : form;
}

// How many values each attribute is shown by: charts with bars and lines have room for some only.
export function maxValues() {
  const { chosen, detail, form, view } = page.state;
  const room = chosen.length < 2 || form === "heat" || view === "table" ? [] : [form === "lines" ? null : MAX_BARS, MAX_SERIES];
  return chosen.map((_, axis) => Math.min(detail ?? Infinity, room[axis] ?? Infinity)).map((size) => (size < Infinity ? size : null));
}

// The answer as rows: those of SQL, or a row for each cell of the chart. `even` names the columns that
// were not counted.
export function asRows() {
  const { state, answer, attributes } = page;
  if (answer.rows) return { ...answer, even: answer.columns.filter((name) => attributes.get(name)?.counted === false) };
  const { axes, cells } = arrangeAnswer();
  const part = partOf(axes, cells);
  const rows = cells.map((value, at) => {
    const codes = [];
    for (let axis = axes.length - 1, rest = at; axis >= 0; axis--) {
      codes[axis] = rest % answer.shape[axis];
      rest = Math.floor(rest / answer.shape[axis]);
    }
    const parts = part ? [100 * (value / part(codes) || 0)] : [];
    return [...codes.map((code, axis) => plain(axes[axis], code)), value, ...parts];
  });
  const named = part ? MEASURES.filter(([name]) => name === state.measure).map(([, text]) => text) : [];
  const even = axes.filter((each) => !each.counted).map((each) => each.name);
  return { sql: answer.sql, columns: [...answer.columns, ...named], rows, notes: answer.notes, even };
}

// What each count is a percentage of, as chosen; null for counts alone.
function partOf(axes, cells) {
  const { state: { measure }, answer: { shape } } = page;
  if (!axes.length || measure === "count" || (axes.length === 1 && measure !== "all")) return null;
  const [n, deep] = [shape[1] ?? 1, shape[2] ?? 1];
  const slices = new Array(deep).fill(0).map((_, k) => wholes(deep === 1 ? cells : takeSlice(shape, cells, k), n));
  const all = slices.reduce((sum, each) => sum + each.total, 0);
  return measure === "all" ? () => all : ([i, j, k]) => slices[k ?? 0].whole(measure)(i, j);
}

function plain(attribute, code) {
  const value = attribute.values[code];
  if (value.special) return value.label === "missing" ? null : `(${value.label})`;
  return value.low !== undefined && value.low === value.high ? value.low : value.label;
}
