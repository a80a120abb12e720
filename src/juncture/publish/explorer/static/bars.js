// One attribute: a bar for each value; columns where the values have an order and are many.

import { node, svg } from "./dom.js";
import { between, compact, count, hasNumbers, isOrdered, number, share, span } from "./format.js";

const MAX_COLUMNS = 150;

// `mean` is what the server knows of it where numbers are in bins: its value and its range.
// `halfWidths` has how far the further end of each count's interval is, where it is known.
export function bars(attribute, cells, chosen, toggle, mean = null, halfWidths = null, measure = "count") {
  const regular = [], special = [];
  attribute.values.forEach((value, code) => (value.special ? special : regular).push(code));
  const least = attribute.kind === "codes" ? 24 : 10;
  const columns = isOrdered(attribute) && regular.length > least;
  const drawing = { attribute, cells, chosen, toggle, mean, halfWidths, measure, total: cells.reduce((a, b) => a + b, 0) };
  const parts = columns
    ? [...histogram(drawing, regular), special.length ? list(drawing, special) : null]
    : [list(drawing, [...regular, ...special])];
  return [...parts.filter(Boolean), summary(drawing)].filter(Boolean);
}

const describe = ({ attribute, cells, total }, first, last) => {
  let sum = 0;
  for (let code = first; code <= last; code++) sum += cells[code];
  return [span(attribute, first, last), `${count(sum)} records`, share(sum / total)];
};

function list(drawing, codes) {
  const { attribute, cells, chosen, toggle, total, halfWidths } = drawing;
  const tallest = Math.max(...cells.map((cell, code) => cell + (halfWidths?.[code] ?? 0)));
  const rows = codes.map((code) => {
    const value = attribute.values[code];
    const fill = node("span", { class: "fill" });
    fill.style.width = `${tallest > 0 ? (100 * cells[code]) / tallest : 0}%`;
    return node("button", {
      type: "button", "aria-pressed": String(chosen.has(code)), "data-code": String(code),
      "data-value": String(cells[code]), title: `${number(cells[code])}${half(halfWidths, code)} records`,
      onclick: () => toggle([code]),
    },
    node("span", { class: value.special ? "label special" : "label" }, value.label),
    node("span", { class: "track" }, fill, whisker(cells[code], halfWidths?.[code], tallest)),
    node("span", { class: "n" }, count(cells[code])),
    node("span", { class: "share" }, share(cells[code] / total)));
  });
  const made = node("div", { class: "bars", role: "group", "aria-label": attribute.name }, ...rows);
  made.addEventListener("keydown", (event) => walk(event, rows, { ArrowDown: 1, ArrowUp: -1 }));
  return made;
}

const half = (halfWidths, code) => (halfWidths?.[code] == null ? "" : ` ± ${number(round(halfWidths[code]))}`);

// The interval of a count, as a line over the end of its bar.
function whisker(cell, width, tallest) {
  if (width == null || !(tallest > 0)) return null;
  const line = node("span", { class: "whisker" });
  const low = Math.max(0, cell - width);
  line.style.left = `${(100 * low) / tallest}%`;
  line.style.width = `${(100 * (cell + width - low)) / tallest}%`;
  return line;
}

function walk(event, items, steps) {
  const at = items.indexOf(document.activeElement);
  const to = event.key in steps ? at + steps[event.key]
    : event.key === "Home" ? 0 : event.key === "End" ? items.length - 1 : null;
  if (at < 0 || to === null) return null;
  event.preventDefault();
  const target = items[Math.min(items.length - 1, Math.max(0, to))];
  target.focus();
  return items.indexOf(target);
}

// Neighbouring codes share a column where there are too many to tell apart.
function groupCodes(codes) {
  const width = Math.ceil(codes.length / MAX_COLUMNS);
  const groups = [];
  for (let at = 0; at < codes.length; at += width) {
    groups.push([codes[at], codes[Math.min(at + width, codes.length) - 1]]);
  }
  return groups;
}

function histogram(drawing, codes) {
  const { attribute, cells } = drawing;
  const ranges = groupCodes(codes);
  const heights = ranges.map(([a, b]) => {
    let sum = 0;
    for (let code = a; code <= b; code++) sum += cells[code];
    return sum;
  });
  const top = niceTop(Math.max(...heights));
  const readout = node("p", { class: "readout" });
  const rest = "Click a column, or drag over several, to make them a condition.";
  readout.textContent = rest;
  const items = ranges.map(([a, b], index) => {
    const fill = node("span");
    fill.style.height = `${top > 0 ? (100 * heights[index]) / top : 0}%`;
    const pressed = drawing.chosen.size > 0 && drawing.chosen.has(a) && drawing.chosen.has(b);
    return node("button", {
      type: "button", tabIndex: index === 0 ? 0 : -1, "data-code": String(a),
      "data-value": String(heights[index]), "aria-pressed": String(pressed),
      "aria-label": `${attribute.name} ${describe(drawing, a, b).join(", ")}`,
    }, fill);
  });
  const columns = node("div", {
    class: items.length > 60 ? "columns tight" : "columns", role: "group",
    "aria-label": `${attribute.name}, ${items.length} columns; arrow keys move, with Shift they select a range`,
  }, ...items);
  const show = (first, last) => {
    const [name, ...others] = describe(drawing, ranges[first][0], ranges[last][1]);
    readout.replaceChildren(node("b", {}, name), ` · ${others.join(" · ")}`);
  };
  brush(columns, items, show, () => { readout.textContent = rest; }, (first, last) => {
    const selected = [];
    for (let code = ranges[first][0]; code <= ranges[last][1]; code++) selected.push(code);
    drawing.toggle(selected);
  });
  const rules = [], marks = [];
  for (let part = 0; part <= 4; part++) {
    const rule = node("div", { class: "rule" });
    rule.style.bottom = `${25 * part}%`;
    if (part) rules.push(rule);
    const at = (top * part) / 4;
    const mark = node("span", {}, drawing.measure === "count" ? compact(at) : share(at / drawing.total));
    mark.style.bottom = `${25 * part}%`;
    marks.push(mark);
  }
  return [readout, node("div", { class: "histogram" },
    node("div", { class: "scale", "aria-hidden": "true" }, ...marks),
    node("div", { class: "plot" }, ...rules, columns),
    ticks(attribute, ranges))];
}

export function niceTop(value) {
  if (!(value > 0)) return 0;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10].map((step) => step * unit).find((top) => top >= value);
}

function ticks(attribute, ranges) {
  const made = node("div", { class: "ticks", "aria-hidden": "true" });
  const labels = ranges.map(([a]) => {
    const value = attribute.values[a];
    return attribute.kind === "intervals" ? compact(value.low) : value.label;
  });
  const longest = Math.max(...labels.map((label) => label.length));
  const fitting = Math.max(2, Math.floor((window.innerWidth < 768 ? 38 : 90) / (longest + 2)));
  const step = [1, 2, 5, 10, 20, 25, 50].find((each) => ranges.length / each <= fitting) ?? 100;
  const numbers = hasNumbers(attribute) && attribute.kind !== "intervals";
  labels.forEach((label, index) => {
    const round = numbers && step > 1 ? attribute.values[ranges[index][0]].low % step === 0 : index % step === 0;
    if (!round) return;
    const middle = attribute.kind === "intervals" ? index : index + 0.5;
    const mark = node("span", {}, label);
    mark.style.left = `${(100 * middle) / ranges.length}%`;
    made.append(mark);
  });
  return made;
}

// Select one or several columns, by pointer or by keys.
function brush(columns, items, show, rest, select) {
  let from = null, to = null;
  const paint = () => {
    const [a, b] = [Math.min(from, to), Math.max(from, to)];
    items.forEach((item, index) => item.classList.toggle("taken", from !== null && a <= index && index <= b));
    if (from !== null) show(a, b);
  };
  const under = (event) => {
    const box = columns.getBoundingClientRect();
    const index = Math.floor((items.length * (event.clientX - box.left)) / box.width);
    return Math.min(items.length - 1, Math.max(0, index));
  };
  const finish = () => {
    const [a, b] = [Math.min(from, to), Math.max(from, to)];
    from = to = null;
    select(a, b);
  };
  columns.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = to = under(event);
    columns.setPointerCapture(event.pointerId);
    paint();
  });
  columns.addEventListener("pointermove", (event) => {
    if (from === null) show(under(event), under(event));
    else { to = under(event); paint(); }
  });
  columns.addEventListener("pointerup", () => { if (from !== null) finish(); });
  columns.addEventListener("pointercancel", () => { from = to = null; paint(); });
  columns.addEventListener("pointerleave", () => { if (from === null) rest(); });
  columns.addEventListener("focusin", () => {
    const at = items.indexOf(document.activeElement);
    items.forEach((item, index) => { item.tabIndex = index === at ? 0 : -1; });
    if (from === null && at >= 0) show(at, at);
  });
  columns.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (from === null) from = to = at;
      finish();
      return;
    }
    if (event.key === "Escape") { from = to = null; paint(); return; }
    const reached = walk(event, items, { ArrowRight: 1, ArrowLeft: -1 });
    if (reached === null) return;
    if (event.shiftKey) { from ??= at; to = reached; } else { from = to = null; }
    paint();
    if (from === null) show(reached, reached);
  });
}

function summary({ attribute, cells, total, mean }) {
  if (!hasNumbers(attribute) || attribute.kind === "codes" || attribute.grouped || !(total > 0)) return null;
  let mass = 0, sum = 0;
  attribute.values.forEach((value, code) => {
    if (value.special) return;
    mass += cells[code];
    sum += (cells[code] * (value.mean ?? value.low));
  });
  let below = 0, median = null, middle = null;
  for (const [code, value] of attribute.values.entries()) {
    if (value.special) continue;
    const reached = below + cells[code];
    if (reached >= mass / 2 && median === null) {
      const part = cells[code] > 0 ? (mass / 2 - below) / cells[code] : 0;
      median = value.low + part * (value.high - value.low);
      middle = value;
    }
    below = reached;
  }
  if (!(mass > 0)) return null;
  const range = (ends) => (ends ? node("span", { class: "range" }, ` (${between(ends)})`) : null);
  return node("p", { class: "summary" }, "Mean ", node("b", {}, number(round(mean?.value ?? sum / mass))), range(mean?.range),
    " · median ", node("b", {}, number(round(median))), range(middle.low < middle.high ? [middle.low, middle.high] : null),
    mean?.range ? "; in brackets: wherever in their bins the numbers lie" : null);
}

const round = (value) => Number(value.toPrecision(4));

export function sparks(heights) {
  const made = svg("svg", { viewBox: `0 0 ${heights.length * 4} 24`, preserveAspectRatio: "none", "aria-hidden": "true" });
  heights.forEach((height, index) => {
    const high = Math.max(height > 0 ? 0.6 : 0, 24 * height);
    made.append(svg("rect", { x: index * 4, y: 24 - high, width: heights.length > 20 ? 3.6 : 3, height: high }));
  });
  return made;
}
