// Two attributes, or three of which one is fixed: a cross-table whose cells are shaded by size.

import { wholes } from "./axes.js";
import { node, segments } from "./dom.js";
import { count, number, share, shortLabels } from "./format.js";
import { scrollBox } from "./scroll.js";

const MAX_CELLS_WITH_NUMBERS = 1500;

export const MEASURES = [["count", "Counts"], ["all", "% of all"], ["row", "Row %"], ["column", "Column %"]];

// The two-way table of one slice of the third attribute, or of all slices where it is null.
export function takeSlice(shape, cells, slice) {
  if (shape.length === 2) return cells;
  const [rows, columns, deep] = shape;
  const sums = new Array(rows * columns).fill(0);
  for (let cell = 0; cell < sums.length; cell++) {
    for (let k = 0; k < deep; k++) if (slice === null || k === slice) sums[cell] += cells[cell * deep + k];
  }
  return sums;
}

export function drawSlicer(attribute, slice, choose) {
  const choices = [[null, "All"], ...attribute.values.map((value, code) => [code, value.label])];
  const label = node("span", { class: "soft" }, attribute.name);
  if (choices.length <= 7) {
    return node("div", { class: "slices" }, label, segments(attribute.name, choices, slice, choose));
  }
  const select = node("select", {
    "aria-label": attribute.name,
    onchange: () => choose(select.value === "" ? null : Number(select.value)),
  }, ...choices.map(([code, text]) => node("option", { value: code === null ? "" : String(code) }, text)));
  select.value = slice === null ? "" : String(slice);
  return node("div", { class: "slices" }, label, select);
}

export const isLarge = (rows, columns) => rows.values.length * columns.values.length > MAX_CELLS_WITH_NUMBERS;

export function heat({ rows, columns, cells, measure, numbers, width, chosen, take }) {
  const [m, n] = [rows.values.length, columns.values.length];
  const { down, across, total, whole } = wholes(cells, n);
  const relativeTo = (value, i, j) => value / whole(measure)(i, j);
  const text = (value, i, j) => (measure === "count" ? count(value) : share(relativeTo(value, i, j)));
  const largest = cells.reduce((top, value, at) => {
    return Math.max(top, relativeTo(value, Math.floor(at / n), at % n) || 0);
  }, 0);
  const dense = !numbers;
  const readout = node("p", { class: "readout" });
  const rest = "Click a cell, a row or a column to make it a condition.";
  readout.textContent = rest;

  const table = node("table", { class: dense ? "heat dense" : "heat", role: "grid", "aria-label": `${rows.name} by ${columns.name}` });
  if (dense) {
    const cell = Math.min(22, Math.max(7, Math.floor((width - 90) / n)));
    table.style.setProperty("--cell", `${cell}px`);
    table.style.setProperty("--cell-high", `${Math.min(18, Math.max(5, Math.floor(530 / m)))}px`);
  }
  const every = (size, room) => (dense ? Math.max(1, Math.ceil(size / room)) : 1);
  const longest = Math.max(...columns.values.map((value) => value.label.length));
  const stepDown = every(m, 36), stepAcross = every(n, Math.max(4, Math.floor(width / (longest * 8 + 12))));

  const head = node("tr", { role: "row" }, node("th", { class: "corner", scope: "col" }, `${rows.name} ╲ ${columns.name}`));
  const room = window.innerWidth < 768 ? 13 : 22;
  const texts = [rows, columns].map((each) => shortLabels(each.values.map((value) => value.label), room));
  columns.values.forEach((value, j) => head.append(header(value, texts[1][j], "col", chosen.columns.has(j), j % stepAcross === 0)));
  if (!dense) head.append(node("th", { scope: "col", class: "corner" }, "All"));
  const body = node("tbody");
  rows.values.forEach((value, i) => {
    const line = node("tr", { role: "row" }, header(value, texts[0][i], "row", chosen.rows.has(i), i % stepDown === 0));
    for (let j = 0; j < n; j++) {
      const at = cells[i * n + j];
      const made = node("td", { role: "gridcell", tabIndex: -1, "data-value": String(at) }, text(at, i, j));
      made.style.setProperty("--t", largest > 0 ? (100 * Math.sqrt(relativeTo(at, i, j) / largest || 0)).toFixed(1) : "0");
      line.append(made);
    }
    if (!dense) line.append(node("td", { class: "all", role: "gridcell" }, text(across[i], i, -1)));
    body.append(line);
  });
  table.append(node("thead", {}, head), body);
  if (!dense) {
    const foot = node("tr", { role: "row" }, node("th", { scope: "row" }, "All"));
    down.forEach((value, j) => foot.append(node("td", { class: "all", role: "gridcell" }, text(value, -1, j))));
    foot.append(node("td", { class: "all", role: "gridcell" }, text(total, -1, -1)));
    table.append(node("tfoot", {}, foot));
  }

  const show = (i, j) => {
    if (i < 0 && j < 0) { readout.textContent = rest; return; }
    const value = i < 0 ? down[j] : j < 0 ? across[i] : cells[i * n + j];
    const names = [i < 0 ? null : `${rows.name} ${rows.values[i].label}`, j < 0 ? null : `${columns.name} ${columns.values[j].label}`];
    readout.replaceChildren(node("b", {}, names.filter(Boolean).join(" · ")), ` · ${number(value)} records · ${share(value / total)}`);
  };
  moves(table, m, n, show, take);
  return [readout, ...scrollBox({}, table)];
}

function header(value, text, scope, chosen, labelled) {
  return node("th", {
    scope, tabIndex: -1, class: chosen ? "chosen" : "", title: value.label,
    role: scope === "col" ? "columnheader" : "rowheader", "aria-label": value.label,
  }, labelled ? text : "");
}

// Only one cell is in the tab order; arrow keys move, headers included.
function moves(table, m, n, show, take) {
  const at = (i, j) => table.rows[i + 1]?.cells[j + 1];
  const positionOf = (cell) => {
    const i = cell.parentElement.rowIndex - 1, j = cell.cellIndex - 1;
    return i >= m || j >= n || (i < 0 && j < 0) ? null : [i, j];
  };
  const cellOf = (event) => event.target.closest("td, th");
  const first = at(0, 0);
  if (first) first.tabIndex = 0;
  let tabbed = first;
  table.addEventListener("pointerover", (event) => {
    const cell = cellOf(event), position = cell && positionOf(cell);
    if (position) show(...position);
  });
  table.addEventListener("pointerleave", () => show(-1, -1));
  table.addEventListener("focusin", (event) => {
    const cell = cellOf(event), position = cell && positionOf(cell);
    if (!position) return;
    tabbed.tabIndex = -1;
    cell.tabIndex = 0;
    tabbed = cell;
    show(...position);
  });
  table.addEventListener("click", (event) => {
    const cell = cellOf(event), position = cell && positionOf(cell);
    if (position) take(...position);
  });
  table.addEventListener("keydown", (event) => {
    const cell = cellOf(event), position = cell && positionOf(cell);
    if (!position) return;
    const [i, j] = position;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      take(i, j);
      return;
    }
    const to = { ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1], Home: [i, 0], End: [i, n - 1] }[event.key];
    if (!to) return;
    event.preventDefault();
    if (to[0] >= -1 && to[1] >= -1 && to[0] < m && to[1] < n && !(to[0] < 0 && to[1] < 0)) at(...to)?.focus();
  });
}
