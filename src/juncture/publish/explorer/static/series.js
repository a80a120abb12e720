// One attribute by another: bars side by side or stacked, or lines where the first has an order.

import { wholes } from "./axes.js";
import { niceTop } from "./bars.js";
import { node, svg } from "./dom.js";
import { compact, count, isOrdered, number, share, shortLabels } from "./format.js";
import { scrollBox } from "./scroll.js";

export const MAX_SERIES = 8;
const HIGH = 320, TOP = 10, RIGHT = 12;
// Percentages of fewer records than this share of all would show noise: there are none.
const MIN_WHOLE = 0.001;

export const canLine = (rows) => isOrdered(rows) && rows.values.filter((value) => !value.special).length > 2;

// `halves` has how far the further end of each interval is, where it is known: a line over the end of its bar.
export function series({ rows, columns, cells, halves, measure, form, width, take }) {
  const [m, n] = [rows.values.length, columns.values.length];
  const { total, whole } = wholes(cells, n);
  const isPart = measure === "row" || measure === "column";
  const isFew = (i, j) => isPart && !(whole(measure)(i, j) >= MIN_WHOLE * total);
  const height = (i, j) => (isFew(i, j) ? 0 : cells[i * n + j] / whole(measure)(i, j));
  const sure = halves && form !== "stacked" && (measure === "count" || measure === "all");
  const half = (i, j) => (sure ? (halves[i * n + j] ?? 0) / whole(measure)(i, j) : 0);
  const tops = rows.values.map((_, i) => columns.values.reduce((sum, __, j) => (form === "stacked" ? sum + height(i, j) : Math.max(sum, height(i, j) + half(i, j))), 0));
  const top = measure === "row" && form === "stacked" ? 1 : niceTop(Math.max(...tops)) || 1;
  const slot = form === "bars" ? n * 5 + 6 : form === "stacked" ? 12 : 4;
  const labels = shortLabels(rows.values.map((value) => value.label), 16);
  const longest = Math.max(...labels.map((label) => label.length)) * 7;
  const slanted = longest > (width - 64) / m && (!isOrdered(rows) || m <= 24);
  const left = slanted ? Math.max(58, longest * 0.8) : 58;
  const wide = Math.max(width, left + RIGHT + m * slot), step = (wide - left - RIGHT) / m;
  const low = slanted ? Math.min(longest, 16 * 7) * 0.62 + 22 : 26;
  const y = (value) => TOP + HIGH * (1 - value / top);
  const x = (i) => left + step * i;
  const readout = node("p", { class: "readout" });
  const rest = "Click a bar, a point or a name to make it a condition.";
  readout.textContent = rest;
  const drawing = svg("svg", {
    class: "series", width: wide, height: TOP + HIGH + low, viewBox: `0 0 ${wide} ${TOP + HIGH + low}`,
    role: "group", "aria-label": `${columns.name} by ${rows.name}; arrow keys move`,
  });
  for (let part = 0; part <= 4; part++) {
    const at = y((top * part) / 4);
    const text = svg("text", { class: "mark", x: left - 8, y: at + 4, "text-anchor": "end" });
    text.textContent = measure === "count" ? compact((top * part) / 4) : share((top * part) / 4);
    drawing.append(svg("line", { class: part ? "rule" : "ground", x1: left, x2: wide - RIGHT, y1: at, y2: at }), text);
  }
  const every = slanted ? Math.max(1, Math.ceil(21 / step)) : Math.max(1, Math.ceil((longest + 10) / step));
  labels.forEach((label, i) => {
    if (i % every) return;
    const [at, under] = [x(i) + step / 2, TOP + HIGH + 17];
    const text = svg("text", { class: "mark", x: at, y: under, "text-anchor": slanted ? "end" : "middle" });
    if (slanted) text.setAttribute("transform", `rotate(-35 ${at} ${under - 6})`);
    text.textContent = label;
    drawing.append(text);
  });
  const show = (i, j) => {
    const value = cells[i * n + j];
    const ofIts = isFew(i, j) ? `too few records for a share of the ${measure}` : `${share(height(i, j))} of its ${measure}`;
    const part = isPart ? ofIts : share(value / total);
    readout.replaceChildren(node("b", {}, `${rows.name} ${rows.values[i].label} · ${columns.name} ${columns.values[j].label}`), ` · ${number(value)}${sure && halves[i * n + j] !== null ? ` ± ${count(halves[i * n + j])}` : ""} records · ${part}`);
  };
  const mark = (shape, i, j, middle) => {
    shape.setAttribute("data-value", String(cells[i * n + j]));
    shape.setAttribute("data-at", `${i},${j}`);
    shape.setAttribute("class", `mark-${j % MAX_SERIES}${isFew(i, j) ? " few" : ""}`);
    shape.setAttribute("role", "button");
    shape.setAttribute("tabindex", i || j ? "-1" : "0");
    shape.setAttribute("aria-label", `${rows.name} ${rows.values[i].label}, ${columns.name} ${columns.values[j].label}: ${count(cells[i * n + j])} records`);
    shape.addEventListener("pointerenter", () => show(i, j));
    shape.addEventListener("focus", () => show(i, j));
    shape.addEventListener("click", () => take(i, j));
    shape.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: [i - 1, j], ArrowRight: [i + 1, j], ArrowUp: [i, j - 1], ArrowDown: [i, j + 1] }[event.key];
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); take(i, j); }
      const next = to && drawing.querySelector(`[data-at="${to[0]},${to[1]}"]`);
      if (!to) return;
      event.preventDefault();
      if (!next) return;
      shape.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
    drawing.append(shape);
    const [value, reach] = [height(i, j), half(i, j)];
    if (reach > 0) drawing.append(svg("line", { class: "whisker", x1: middle, x2: middle, y1: y(Math.max(0, value - reach)), y2: y(value + reach) }));
  };
  if (form === "lines") drawLines({ rows, columns, height, isFew, x: (i) => x(i) + step / 2, y, drawing, mark });
  else drawBars({ m, n, height, x, y, step, stacked: form === "stacked", mark });
  drawing.addEventListener("pointerleave", () => { readout.textContent = rest; });
  const few = rows.values.some((_, i) => columns.values.some((__, j) => isFew(i, j)));
  const why = few ? [node("p", { class: "note" }, `A ${measure} with fewer than ${share(MIN_WHOLE)} of the records has no percentages: they would show noise.`)] : [];
  return [readout, legend(columns, take), ...scrollBox({}, drawing), ...why];
}

function drawBars({ m, n, height, x, y, step, stacked, mark }) {
  const gap = Math.min(10, step * 0.22), thick = (step - gap) / (stacked ? 1 : n);
  for (let i = 0; i < m; i++) {
    let below = 0;
    for (let j = 0; j < n; j++) {
      const value = height(i, j), foot = stacked ? below : 0;
      const start = x(i) + gap / 2 + (stacked ? 0 : j * thick);
      mark(svg("rect", { x: start, y: y(foot + value), width: Math.max(1, thick - (n > 1 && !stacked ? 1 : 0)), height: Math.max(0, y(foot) - y(foot + value)) }), i, j, start + thick / 2);
      below += value;
    }
  }
}

// Missing values and those outside have no place in the order: they are points beside the line. A line
// is broken where there are too few records for a percentage.
function drawLines({ rows, columns, height, isFew, x, y, drawing, mark }) {
  const regular = [...rows.values.keys()].filter((i) => !rows.values[i].special);
  columns.values.forEach((_, j) => {
    for (const run of runs(regular, (i) => !isFew(i, j))) {
      const points = run.map((i) => `${x(i)},${y(height(i, j))}`).join(" ");
      drawing.append(svg("polyline", { class: `line-${j % MAX_SERIES}`, points, fill: "none" }));
    }
  });
  const radius = rows.values.length > 60 ? 2 : 4;
  rows.values.forEach((_, i) => columns.values.forEach((__, j) => mark(svg("circle", { cx: x(i), cy: y(height(i, j)), r: radius }), i, j, x(i))));
}

// The longest stretches of items of which all are kept.
function runs(items, keep) {
  const found = [[]];
  for (const item of items) {
    if (keep(item)) found.at(-1).push(item);
    else if (found.at(-1).length) found.push([]);
  }
  return found;
}

function legend(columns, take) {
  const names = columns.values.map((value, j) => node("button", { type: "button", title: value.label, onclick: () => take(-1, j) },
    node("span", { class: `swatch swatch-${j % MAX_SERIES}` }), node("span", { class: value.special || value.rest ? "special" : "" }, shortLabels([value.label], 28)[0])));
  return node("div", { class: "legend", role: "group", "aria-label": columns.name }, ...names);
}
