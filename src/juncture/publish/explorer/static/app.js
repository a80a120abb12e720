// The page: one state, one chart of it, and the query behind the chart.

import * as api from "./api.js";
import { SORTS, arrange, makeAxis, wholes } from "./axes.js";
import { bars } from "./bars.js";
import { ConditionDialog, drawChips, replaceCondition, toggleValues } from "./conditions.js";
import { byId, choice, node, prose, say, segments, svg } from "./dom.js";
import { asCsv, asJson, copyText, fileName, save } from "./download.js";
import { Editor } from "./editor.js";
import { EVEN, between, count, integer, number, share } from "./format.js";
import { MEASURES, drawSlicer, heat, isLarge, takeSlice } from "./heat.js";
import { AttributeList } from "./attributes.js";
import { rowsTable } from "./rows.js";
import { MAX_SERIES, canLine, series } from "./series.js";

const FIRST = { chosen: [], conditions: [], measure: "count", form: "heat", sort: "given", detail: null, view: "chart", slice: null, numbers: null, sql: "" };
const FORMS = [["heat", "Heatmap"], ["bars", "Bars"], ["stacked", "Stacked"], ["lines", "Lines"]];
const DETAILS = [null, 40, 20, 10, 5]; // how many values of each attribute are shown at most
const MAX_BARS = 40;
const state = { ...FIRST };
let release = null;
let attributes = new Map();
let answer = null; // what is shown: { sql, columns, cells, shape, ... } or { sql, columns, rows }
let waiting = null;

const editor = new Editor({ run: () => runSql(), changed: () => { hideProblem(); byId("run").disabled = !editor.text.trim(); } });
const list = new AttributeList((name) => choose(name));

start();

async function start() {
  wire();
  try {
    release = await api.release();
  } catch (error) {
    showRefusal(error);
    return;
  }
  attributes = new Map(release.attributes.map((each) => [each.name, each]));
  editor.attributes = release.attributes;
  introduce();
  list.draw(release.attributes);
  byId("add-condition").disabled = byId("records-open").disabled = false;
  await reopen();
}

// About the release. A gap above CLOSE is neither good nor bad news, so only the details show it.

const CLOSE = 0.1;

function guaranteeText({ symbol, value, delta }) {
  const spent = `${symbol} = ${number(Number(value.toPrecision(4)))}`;
  return delta === null ? spent : `${spent}, δ = ${delta}`;
}

function guaranteeWords(guarantee) {
  const words = { epsilon: "pure differential privacy", rho: "zero-concentrated differential privacy", delta: "approximate differential privacy" };
  const { notion, events, budget, neighbours } = guarantee;
  return [
    `${guaranteeText(guarantee)}, ${words[notion]}, spent in ${events} ${events === 1 ? "event" : "events"}.`,
    budget ? `The budget was ${budget}.` : "",
    neighbours ? `Protected: ${neighbours}.` : "",
    "The ledger in the release lists the events.",
  ].filter(Boolean).join(" ");
}

function introduce() {
  const { guarantee, certificate } = release;
  document.title = `${release.name} · Juncture explorer`;
  byId("release-name").textContent = release.name;
  byId("release-name").title = release.name;
  const gap = certificate?.gap ?? null;
  const items = [
    [node("b", {}, integer(release.total)), " records"],
    [node("b", {}, String(release.attributes.length)), " attributes"],
    guarantee ? ["private with ", node("b", {}, guaranteeText(guarantee))] : ["no guarantee stated"],
    certificate ? [gap !== null && gap <= CLOSE ? `fit within ${share(gap)} of the best` : certificate.short] : [],
  ];
  byId("facts").replaceChildren(...items.filter((parts) => parts.length).map((parts) => node("li", {}, ...parts)));
  const facts = [
    ["Records", `${count(release.total)}: the total of the model`],
    ["Guarantee", guarantee
      ? guaranteeWords(guarantee)
      : "The release states no privacy guarantee. Ask its publisher."],
    ["Fit", certificate?.status ?? "The release does not say how the fit ended."],
    ["Certificate", gap === null ? "No useful bound on how much better another model could fit."
      : `No model has a loss more than ${share(gap)} below this one's.`],
  ];
  const even = release.attributes.filter((each) => !each.counted).map((each) => each.name);
  const many = even.length > 8 ? `${even.slice(0, 8).join(", ")} and ${even.length - 8} more` : even.join(", ");
  if (even.length) facts.push(["Not counted", `${many}: no measurement is about them, so all their values are shown as even.`]);
  byId("records-even").textContent = even.length ? `Not counted: ${many}. Their values are drawn as even.` : "";
  byId("records-even").hidden = !even.length;
  byId("about-facts").replaceChildren(...facts.map(([term, text]) => node("div", {}, node("dt", {}, term), node("dd", {}, text))));
  byId("records-n").value = String(Math.min(Math.max(1, Math.round(release.total)), release.limits.records));
  byId("records-n").max = String(release.limits.records);
  byId("records-limit").textContent = `At most ${integer(release.limits.records)} at a time; the juncture command writes more.`;
}

// Changes of the state.

function choose(name) {
  const { chosen } = state;
  if (chosen.includes(name)) state.chosen = chosen.filter((each) => each !== name);
  else {
    if (chosen.length === 3) say(`${chosen[0]} was dropped: a chart has at most three attributes.`);
    state.chosen = [...chosen, name].slice(-3);
  }
  byId("fold").setAttribute("aria-expanded", "false"); // on a phone, the answer is below the list
  showChart();
}

function showChart() {
  Object.assign(state, { view: "chart", slice: null, numbers: null });
  refresh();
}

function setConditions(conditions) {
  state.conditions = conditions;
  if (state.view === "sql") state.view = "chart";
  refresh();
}

// Bars or cells were clicked: axes, and places along them.
function select(choices) {
  let { conditions } = state;
  for (const [axis, places] of choices) {
    if (places.some((place) => axis.codes[place] === null)) {
      say(`${axis.name} has too many values for a condition by clicking. Use WHERE in the query.`);
      return;
    }
    const codes = places.flatMap((place) => axis.codes[place]);
    const has = chosenCodes(axis);
    if (choices.length === 1 || !codes.every((code) => has.has(code))) conditions = toggleValues(conditions, attributes.get(axis.name), codes);
  }
  setConditions(conditions);
}

const chosenCodes = (attribute) =>
  new Set(state.conditions.find((each) => each.attribute === attribute.name)?.codes ?? []);

// The places along an axis whose values are all in a condition.
function chosenPlaces(axis) {
  const codes = chosenCodes(axis);
  return new Set([...axis.values.keys()].filter((place) => axis.codes[place]?.every((code) => codes.has(code))));
}

// The question is kept in the address, so that reloading, or a link, shows the same answer.
function remember() {
  const { view, slice, sql, numbers: _, ...kept } = state;
  const { chosen, conditions } = kept;
  const asked = view === "sql" ? { ...kept, sql } : { ...kept, view, slice };
  const plain = !chosen.length && !conditions.length && view !== "sql";
  const text = plain ? "" : `#${encodeURIComponent(JSON.stringify(asked))}`;
  history.replaceState(null, "", `${location.pathname}${text}`);
}

// Show the answer to the question in the address.
async function reopen() {
  restore();
  const { sql } = state;
  if (!sql) {
    await refresh();
    return;
  }
  editor.text = sql;
  if (await runSql()) return;
  const problem = [...byId("problem").childNodes];
  await refresh();
  editor.text = sql;
  byId("problem").replaceChildren(...problem);
  byId("problem").hidden = false;
}

function restore() {
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

// Questions.

async function askQuestion(question) {
  waiting?.abort();
  const mine = waiting = new AbortController();
  const body = byId("answer-body");
  body.setAttribute("aria-busy", "true");
  const timer = setTimeout(() => body.classList.add("waiting"), 150);
  try {
    return await question(mine.signal);
  } finally {
    clearTimeout(timer);
    if (waiting === mine) {
      body.classList.remove("waiting");
      body.setAttribute("aria-busy", "false");
    }
  }
}

async function refresh() {
  remember();
  list.mark(state.chosen);
  drawChips(state.conditions, attributes, (condition) => dialog().open(condition),
    (condition) => setConditions(replaceCondition(state.conditions, condition.attribute, null)));
  hideProblem();
  try {
    answer = await askQuestion((signal) => api.marginal(state.chosen, state.conditions, maxValues(), signal));
  } catch (error) {
    if (error.name !== "AbortError") showRefusal(error);
    return;
  }
  editor.text = answer.sql;
  byId("run").disabled = false;
  const range = answer.count_range ? ` (${between(answer.count_range)})` : "";
  byId("matching").textContent = state.conditions.length
    ? `${count(answer.count)}${range} of ${count(release.total)} records · ${share(answer.count / release.total)}` : "";
  drawAnswer();
  say(`${byId("answer-title").textContent}: ${count(answer.count)} records`);
}

// How many values each attribute is shown by: charts with bars and lines have room for some only.
function maxValues() {
  const { chosen, detail, form, view } = state;
  const room = chosen.length < 2 || form === "heat" || view === "table" ? [] : [form === "lines" ? null : MAX_BARS, MAX_SERIES];
  return chosen.map((_, axis) => Math.min(detail ?? Infinity, room[axis] ?? Infinity)).map((size) => (size < Infinity ? size : null));
}

async function runSql() {
  const text = editor.text;
  if (!text.trim()) return false;
  hideProblem();
  let result;
  try {
    result = await askQuestion((signal) => api.sql(text, signal));
  } catch (error) {
    if (error.name !== "AbortError") showProblem(error);
    return false;
  }
  answer = { ...result, sql: text };
  Object.assign(state, { view: "sql", sql: text });
  remember();
  list.mark(state.chosen);
  byId("run").disabled = false;
  drawAnswer();
  say(`Your query has ${result.rows.length} ${result.rows.length === 1 ? "row" : "rows"}`);
  return true;
}

// Drawing the answer.

let shownCells = [], shownHalves = null; // those of the answer, in the order in which they are shown

function drawAnswer() {
  const held = focusMark();
  const shown = state.view === "sql" ? null : arrangeAnswer();
  byId("answer-title").replaceChildren(...title(shown));
  byId("controls").replaceChildren(...controls(shown));
  byId("answer-body").replaceChildren(...content(shown));
  refocus(held);
}

// Whether lines are shown: they need an order, and keep to it.
function isLines() {
  return state.view === "chart" && chartForm() === "lines";
}

function chartForm() {
  if (state.chosen.length < 2) return null;
  const first = makeAxis(attributes.get(state.chosen[0]), answer.axes[0]);
  return state.form === "lines" && !canLine(first) ? "bars" : state.form;
}

function arrangeAnswer() {
  const axes = state.chosen.map((name, index) => makeAxis(attributes.get(name), answer.axes[index]));
  const sorted = arrange(axes, answer.shape, answer.cells, isLines() ? "given" : state.sort);
  shownCells = sorted.move(answer.cells);
  shownHalves = answer.half_widths ? sorted.move(answer.half_widths) : null;
  if (state.slice !== null && !sorted.axes[2]?.values[state.slice]) state.slice = null;
  return sorted.axes;
}

function title(shown) {
  if (!shown) return ["Your query"];
  if (!shown.length) return [state.conditions.length ? "Matching records" : "What would you like to see?"];
  return shown.flatMap((each, index) => [
    index ? node("span", { class: "times" }, " × ") : "", each.name,
    each.counted ? "" : node("span", { class: "even" }, EVEN),
  ]);
}

function controls(shown) {
  const redraw = (changes) => { Object.assign(state, changes); remember(); drawAnswer(); };
  const ask = (changes) => { Object.assign(state, changes); refresh(); };
  if (!shown) {
    return [node("button", { type: "button", class: "small", onclick: showChart }, "Back to the chart"), downloads(), linkButton()];
  }
  if (!shown.length) return [];
  const made = [segments("View", [["chart", "Chart"], ["table", "Table"]], state.view, (view) => (state.form === "heat" ? redraw : ask)({ view }))];
  const two = shown.length > 1;
  if (two && state.view === "chart") {
    const ordered = canLine(makeAxis(attributes.get(state.chosen[0]), answer.axes[0]));
    made.push(choice("Form", FORMS.filter(([form]) => ordered || form !== "lines"), chartForm(), (form) => ask({ form })));
  }
  made.push(choice("Show", two ? MEASURES : MEASURES.slice(0, 2), two || state.measure === "all" ? state.measure : "count", (measure) => redraw({ measure })));
  if (!isLines()) made.push(choice("Sort", SORTS, state.sort, (sort) => redraw({ sort })));
  if (shown.some((each) => each.grouped || each.size > DETAILS.at(-1))) made.push(detailChoice(ask));
  if (two && state.view === "chart") {
    if (state.form === "heat" && isLarge(...shown)) {
      const on = state.numbers ?? false;
      made.push(node("button", { type: "button", class: "small", "aria-pressed": String(on), onclick: () => redraw({ numbers: !on }) }, on ? "Hide numbers" : "Show numbers"));
    }
    made.push(node("button", { type: "button", class: "small", title: "Exchange rows and columns", onclick: swap }, "Swap"));
  }
  return [...made, downloads(), linkButton()];
}

function detailChoice(ask) {
  const select = node("select", {
    class: "small", "aria-label": "Values", title: "More values become ranges, or the largest and others",
    onchange: () => ask({ detail: select.value === "" ? null : Number(select.value), slice: null }),
  }, ...DETAILS.map((size) => node("option", { value: size === null ? "" : String(size) }, size === null ? "All values" : `At most ${size} values`)));
  select.value = state.detail === null ? "" : String(state.detail);
  return select;
}

function swap() {
  const [a, b, ...rest] = state.chosen;
  state.chosen = [b, a, ...rest];
  state.measure = { row: "column", column: "row" }[state.measure] ?? state.measure;
  refresh();
}

function downloads() {
  const name = state.view === "sql" ? ["query"] : state.chosen;
  const button = (form, kind, text) => node("button", {
    type: "button", "aria-label": `Download as ${form}`,
    onclick: () => save(fileName([release.name, ...name], form.toLowerCase()), kind, text(tabular())),
  }, form);
  return node("div", { class: "segments", role: "group", "aria-label": "Download" },
    button("CSV", "text/csv", asCsv), button("JSON", "application/json", asJson));
}

function linkButton() {
  const button = node("button", { type: "button", class: "small", title: "Copy a link to this answer", onclick: async () => {
    const copied = await copyText(location.href);
    button.textContent = copied ? "Link copied" : "The link is in the address bar";
    say(button.textContent);
    setTimeout(() => { button.textContent = "Copy link"; }, 2500);
  } }, "Copy link");
  return button;
}

// The answer as rows: those of SQL, or a row for each cell of the chart.
function tabular() {
  if (answer.rows) return { ...answer, even: answer.columns.filter((name) => attributes.get(name)?.counted === false) };
  const shown = arrangeAnswer();
  const part = partOf(shown);
  const rows = shownCells.map((value, at) => {
    const codes = [];
    for (let axis = shown.length - 1, rest = at; axis >= 0; axis--) {
      codes[axis] = rest % answer.shape[axis];
      rest = Math.floor(rest / answer.shape[axis]);
    }
    const parts = part ? [100 * (value / part(codes) || 0)] : [];
    return [...codes.map((code, axis) => plain(shown[axis], code)), value, ...parts];
  });
  const named = part ? MEASURES.filter(([name]) => name === state.measure).map(([, text]) => text) : [];
  const even = shown.filter((each) => !each.counted).map((each) => each.name);
  return { sql: answer.sql, columns: [...answer.columns, ...named], rows, notes: answer.notes, even };
}

// What each count is a percentage of, as chosen; null for counts alone.
function partOf(shown) {
  if (!shown.length || state.measure === "count" || (shown.length === 1 && state.measure !== "all")) return null;
  const [n, deep] = [answer.shape[1] ?? 1, answer.shape[2] ?? 1];
  const slices = new Array(deep).fill(0).map((_, k) => wholes(deep === 1 ? shownCells : takeSlice(answer.shape, shownCells, k), n));
  const all = slices.reduce((sum, each) => sum + each.total, 0);
  return state.measure === "all" ? () => all : ([i, j, k]) => slices[k ?? 0].whole(state.measure)(i, j);
}

function plain(attribute, code) {
  const value = attribute.values[code];
  if (value.special) return value.label === "missing" ? null : `(${value.label})`;
  return value.low !== undefined && value.low === value.high ? value.low : value.label;
}

function content(shown) {
  if (!shown || state.view === "table") return [...rowsTable(tabular()), ...notes()];
  if (!shown.length) return empty();
  if (!(answer.count > 0)) return [node("div", { class: "empty" }, node("p", { class: "lead" }, "No records match these conditions."))];
  if (shown.length === 1) {
    const [axis] = shown;
    const toggle = (at) => select([[axis, at]]);
    return [...bars(axis, shownCells, chosenPlaces(axis), toggle, answer.mean, shownHalves, state.measure === "all" ? "all" : "count"), ...notes()];
  }
  const [rows, columns, third] = shown;
  const drawing = {
    rows, columns, measure: state.measure,
    cells: takeSlice(answer.shape, shownCells, state.slice),
    width: byId("answer-body").clientWidth - 40,
    take: (i, j) => select([...(i < 0 ? [] : [[rows, [i]]]), ...(j < 0 ? [] : [[columns, [j]]])]),
  };
  const table = state.form === "heat" ? heat({
    ...drawing, numbers: state.numbers ?? !isLarge(rows, columns),
    chosen: { rows: chosenPlaces(rows), columns: chosenPlaces(columns) },
  }) : series({ ...drawing, halves: third ? null : shownHalves, form: chartForm() });
  const slices = third ? [drawSlicer(third, state.slice, (slice) => { state.slice = slice; remember(); drawAnswer(); })] : [];
  return [...slices, ...table, ...notes()];
}

// What the answer rests on.
function notes() {
  const told = answer.notes ?? [];
  if (!told.length) return [];
  return [node("ul", { class: "notes", "aria-label": "What the answer rests on" }, ...told.map((each) => node("li", { class: "note" }, each)))];
}

function empty() {
  const drawing = svg("svg", { viewBox: "0 0 120 64", "aria-hidden": "true", fill: "currentColor" });
  [14, 26, 40, 52, 46, 34, 22, 12].forEach((high, index) =>
    drawing.append(svg("rect", { x: 8 + index * 13.4, y: 60 - high, width: 10, height: high, rx: 2, opacity: 0.35 + 0.08 * (index % 4) })));
  const tries = release.pairs.map((pair) => node("button", {
    type: "button", onclick: () => { state.chosen = [...pair]; showChart(); },
  }, pair.join(" × ")));
  const lead = state.conditions.length ? `${count(answer.count)} records` : "Choose an attribute to see how it is distributed.";
  return [node("div", { class: "empty" }, drawing,
    node("p", { class: "lead" }, lead),
    node("p", {}, "A second one makes a cross-table, a third one slices it. Click on a bar or cell to see only those records, or ask in SQL below."),
    tries.length ? node("p", {}, "Strongest pairs:") : null,
    node("div", { class: "tries" }, ...tries))];
}

const FOCUSED = "button, td, th, select, [data-at]";

// Redrawing removes the focused bar or button: the one that replaces it gets the focus.
function focusMark() {
  for (const id of ["answer-body", "controls"]) {
    const index = [...byId(id).querySelectorAll(FOCUSED)].indexOf(document.activeElement);
    if (index >= 0) return { id, index };
  }
  return null;
}

function refocus(mark) {
  if (!mark) return;
  const items = byId(mark.id).querySelectorAll(FOCUSED);
  (items[Math.min(mark.index, items.length - 1)] ?? byId("answer")).focus({ preventScroll: true });
}

// Errors.

function showProblem(error) {
  byId("problem").replaceChildren(...prose(error.message));
  byId("problem").hidden = false;
}

function hideProblem() { byId("problem").hidden = true; }

function showRefusal(error) {
  const token = error.status === 401;
  byId("answer-title").textContent = token ? "This page needs its token" : "That did not work";
  byId("controls").replaceChildren();
  byId("answer-body").replaceChildren(token
    ? node("div", { class: "empty" }, node("p", { class: "lead" }, "Open the address that the terminal shows."),
      node("p", {}, "It ends in a token, which gives this browser access. Without it, the page shows nothing of the release."))
    : node("p", { class: "problem", role: "alert" }, ...prose(error.message)));
  byId("answer-body").setAttribute("aria-busy", "false");
}

// Buttons and keys.

let made = null;
function dialog() {
  made ??= new ConditionDialog(attributes, (name, condition) => setConditions(replaceCondition(state.conditions, name, condition)));
  return made;
}

function wire() {
  byId("run").addEventListener("click", runSql);
  byId("clear").addEventListener("click", () => { state.chosen = []; showChart(); byId("search").focus(); });
  byId("add-condition").addEventListener("click", () => {
    const names = [...attributes.values()].filter((each) => each.kind !== "many").map((each) => each.name);
    const free = (name) => !state.conditions.some((each) => each.attribute === name);
    dialog().open(null, names, state.chosen.find(free) ?? names.find(free) ?? names[0]);
  });
  byId("fold").addEventListener("click", () => {
    const open = byId("fold").getAttribute("aria-expanded") === "true";
    byId("fold").setAttribute("aria-expanded", String(!open));
  });
  for (const id of ["about-open", "methods-open"]) byId(id).addEventListener("click", () => byId("about-dialog").showModal());
  byId("records-open").addEventListener("click", () => {
    byId("records-conditions").hidden = !state.conditions.length;
    byId("records-problem").hidden = true;
    byId("records-dialog").showModal();
  });
  byId("records-cancel").addEventListener("click", () => byId("records-dialog").close());
  byId("records-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { conditions } = state;
    const problem = conditions.length ? await api.refusalOfSample(conditions) : "";
    byId("records-problem").textContent = problem;
    byId("records-problem").hidden = !problem;
    if (problem) return;
    const link = node("a", { href: api.sampleAddress(byId("records-n").value, byId("records-format").value, byId("records-seed").value, conditions), download: "" });
    document.body.append(link);
    link.click();
    link.remove();
    byId("records-dialog").close();
  });
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("juncture-theme", root.dataset.theme); } catch { /* kept for this visit only */ }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea, select, dialog")) {
      event.preventDefault();
      byId("fold").setAttribute("aria-expanded", "true");
      byId("search").focus();
    }
  });
  window.addEventListener("hashchange", () => { if (release) reopen(); });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width || !answer) return;
    width = window.innerWidth;
    drawAnswer();
  });
}
