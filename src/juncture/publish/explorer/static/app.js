// The page: one state, one chart of it, and the query behind the chart.

import * as api from "./api.js";
import { bars } from "./bars.js";
import { ConditionDialog, drawChips, replaceCondition, toggleValues } from "./conditions.js";
import { byId, node, prose, say, segments, svg } from "./dom.js";
import { asCsv, asJson, copyText, fileName, save } from "./download.js";
import { Editor } from "./editor.js";
import { between, count, integer, number, share } from "./format.js";
import { MEASURES, drawSlicer, heat, isLarge, takeSlice } from "./heat.js";
import { AttributeList } from "./attributes.js";
import { rowsTable } from "./rows.js";

const state = { chosen: [], conditions: [], measure: "count", view: "chart", slice: null, numbers: null, sql: "" };
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

// A bar or a cell was clicked.
function select(choices) {
  let { conditions } = state;
  for (const [attribute, codes] of choices) {
    const has = chosenCodes(attribute);
    if (choices.length === 1 || !codes.every((code) => has.has(code))) conditions = toggleValues(conditions, attribute, codes);
  }
  setConditions(conditions);
}

const chosenCodes = (attribute) =>
  new Set(state.conditions.find((each) => each.attribute === attribute.name)?.codes ?? []);

// The question is kept in the address, so that reloading, or a link, shows the same answer.
function remember() {
  const { chosen, conditions, measure, view, slice, sql } = state;
  const asked = view === "sql" ? { chosen, conditions, measure, sql } : { chosen, conditions, measure, view, slice };
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
  Object.assign(state, { chosen: [], conditions: [], measure: "count", view: "chart", slice: null, numbers: null, sql: "" });
  try {
    const kept = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    if (typeof kept.sql === "string") state.sql = kept.sql;
    if (kept.view === "table") state.view = "table";
    if (Number.isInteger(kept.slice)) state.slice = kept.slice;
    state.chosen = kept.chosen.filter((name) => attributes.has(name)).slice(0, 3);
    state.conditions = kept.conditions.filter((each) => {
      const attribute = attributes.get(each.attribute);
      return attribute && (each.codes ? each.codes.every((code) => attribute.values[code]) : "low" in each);
    });
    if (MEASURES.some(([name]) => name === kept.measure)) state.measure = kept.measure;
    const third = attributes.get(state.chosen[2]);
    if (!third?.values[state.slice]) state.slice = null;
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
    answer = await askQuestion((signal) => api.marginal(state.chosen, state.conditions, signal));
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

function drawAnswer() {
  const held = focusMark();
  const shown = state.view === "sql" ? null : state.chosen.map((name) => attributes.get(name));
  byId("answer-title").replaceChildren(...title(shown));
  byId("controls").replaceChildren(...controls(shown));
  byId("answer-body").replaceChildren(...content(shown));
  refocus(held);
}

function title(shown) {
  if (!shown) return ["Your query"];
  if (!shown.length) return [state.conditions.length ? "Matching records" : "What would you like to see?"];
  return shown.flatMap((each, index) => (index ? [node("span", { class: "times" }, " × "), each.name] : [each.name]));
}

function controls(shown) {
  const made = [];
  const redraw = (changes) => { Object.assign(state, changes); remember(); drawAnswer(); };
  if (!shown) {
    made.push(node("button", { type: "button", class: "small", onclick: showChart }, "Back to the chart"));
  } else if (shown.length) {
    if (shown.length > 1 && state.view === "chart") {
      made.push(segments("Show", MEASURES, state.measure, (measure) => redraw({ measure })));
      if (isLarge(...shown)) {
        const on = state.numbers ?? false;
        made.push(node("button", { type: "button", class: "small", "aria-pressed": String(on), onclick: () => redraw({ numbers: !on }) }, on ? "Hide numbers" : "Show numbers"));
      }
      made.push(node("button", { type: "button", class: "small", title: "Exchange rows and columns", onclick: swap }, "Swap"));
    }
    made.push(segments("View", [["chart", "Chart"], ["table", "Table"]], state.view, (view) => redraw({ view })));
  }
  if (!shown || shown.length) made.push(downloads(), linkButton());
  return made;
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
  if (answer.rows) return answer;
  const shown = state.chosen.map((name) => attributes.get(name));
  const rows = answer.cells.map((value, at) => {
    const codes = [];
    for (let axis = shown.length - 1, rest = at; axis >= 0; axis--) {
      codes[axis] = rest % answer.shape[axis];
      rest = Math.floor(rest / answer.shape[axis]);
    }
    return [...codes.map((code, axis) => plain(shown[axis], code)), value];
  });
  return { sql: answer.sql, columns: answer.columns, rows, notes: answer.notes };
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
    return [...bars(shown[0], answer.cells, chosenCodes(shown[0]), (codes) => select([[shown[0], codes]]), answer.mean, answer.half_widths), ...notes()];
  }
  const [rows, columns, third] = shown;
  const table = heat({
    rows, columns, measure: state.measure,
    cells: takeSlice(answer.shape, answer.cells, state.slice),
    numbers: state.numbers ?? !isLarge(rows, columns),
    width: byId("answer-body").clientWidth - 40,
    chosen: { rows: chosenCodes(rows), columns: chosenCodes(columns) },
    take: (i, j) => select([...(i < 0 ? [] : [[rows, [i]]]), ...(j < 0 ? [] : [[columns, [j]]])]),
  });
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

// Redrawing removes the focused bar or button: the one that replaces it gets the focus.
function focusMark() {
  for (const id of ["answer-body", "controls"]) {
    const index = [...byId(id).querySelectorAll("button, td, th, select")].indexOf(document.activeElement);
    if (index >= 0) return { id, index };
  }
  return null;
}

function refocus(mark) {
  if (!mark) return;
  const items = byId(mark.id).querySelectorAll("button, td, th, select");
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
