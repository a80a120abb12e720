// The page: questions are asked here, and answers drawn; everything else is in modules of its own.

import { introduce } from "./about.js";
import * as api from "./api.js";
import { AttributeList } from "./attributes.js";
import { ConditionDialog, drawChips, replaceCondition, toggleValues } from "./conditions.js";
import { chosenCodes, content, title } from "./content.js";
import { controls } from "./controls.js";
import { byId, say } from "./dom.js";
import { Editor } from "./editor.js";
import { keepFocus } from "./focus.js";
import { between, count, share } from "./format.js";
import { page, remember, restore } from "./page.js";
import { hideProblem, showProblem, showRefusal } from "./problems.js";
import { prepareRecords } from "./records.js";
import { arrangeAnswer, maxValues } from "./shown.js";

const { state } = page;
const editor = new Editor({ run: () => runSql(), changed: () => { hideProblem(); byId("run").disabled = !editor.text.trim(); } });
const list = new AttributeList((name) => choose(name));
let dialog = null; // that of conditions
let waiting = null;

async function start() {
  wire();
  try {
    page.release = await api.release();
  } catch (error) {
    showRefusal(error);
    return;
  }
  const { release } = page;
  page.attributes = new Map(release.attributes.map((each) => [each.name, each]));
  editor.attributes = release.attributes;
  introduce(release);
  list.draw(release.attributes);
  prepareRecords(release, () => state.conditions);
  dialog = new ConditionDialog(page.attributes, (name, condition) => setConditions(replaceCondition(state.conditions, name, condition)));
  byId("add-condition").disabled = false;
  await reopen();
}

// Changes of the state.

const redraw = (changes) => { Object.assign(state, changes); remember(); drawAnswer(); };
const ask = (changes) => { Object.assign(state, changes); refresh(); };
const showChart = () => ask({ view: "chart", slice: null, numbers: null });
const show = (chosen) => { state.chosen = [...chosen]; showChart(); };

function choose(name) {
  const { chosen } = state;
  if (!chosen.includes(name) && chosen.length === 3) say(`${chosen[0]} was dropped: a chart has at most three attributes.`);
  byId("fold").setAttribute("aria-expanded", "false"); // on a phone, the answer is below the list
  show(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name].slice(-3));
}

function setConditions(conditions) {
  ask({ conditions, view: state.view === "sql" ? "chart" : state.view });
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
    if (choices.length === 1 || !codes.every((code) => has.has(code))) {
      conditions = toggleValues(conditions, page.attributes.get(axis.name), codes);
    }
  }
  setConditions(conditions);
}

// Questions.

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
  drawChips(state.conditions, page.attributes, (condition) => dialog.open(condition),
    (condition) => setConditions(replaceCondition(state.conditions, condition.attribute, null)));
  hideProblem();
  try {
    page.answer = await askQuestion((signal) => api.marginal(state.chosen, state.conditions, maxValues(), signal));
  } catch (error) {
    if (error.name !== "AbortError") showRefusal(error);
    return;
  }
  const { answer, release: { total } } = page;
  editor.text = answer.sql;
  byId("run").disabled = false;
  const range = answer.count_range ? ` (${between(answer.count_range)})` : "";
  byId("matching").textContent = state.conditions.length
    ? `${count(answer.count)}${range} of ${count(total)} records · ${share(answer.count / total)}` : "";
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
  page.answer = { ...result, sql: text };
  list.mark(state.chosen);
  byId("run").disabled = false;
  redraw({ view: "sql", sql: text });
  say(`Your query has ${result.rows.length} ${result.rows.length === 1 ? "row" : "rows"}`);
  return true;
}

function drawAnswer() {
  const shown = arrangeAnswer();
  if (shown && !shown.axes[2]?.values[state.slice]) state.slice = null;
  keepFocus(() => {
    byId("answer-title").replaceChildren(...title(shown));
    byId("controls").replaceChildren(...controls(shown, { redraw, ask, showChart }));
    byId("answer-body").replaceChildren(...content(shown, { select, redraw, show }));
  });
}

// Buttons and keys.

function addCondition() {
  const names = [...page.attributes.values()].filter((each) => each.kind !== "many").map((each) => each.name);
  const free = (name) => !state.conditions.some((each) => each.attribute === name);
  dialog.open(null, names, state.chosen.find(free) ?? names.find(free) ?? names[0]);
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("juncture-theme", root.dataset.theme); } catch { /* kept for this visit only */ }
}

function wire() {
  byId("run").addEventListener("click", runSql);
  byId("clear").addEventListener("click", () => { show([]); byId("search").focus(); });
  byId("add-condition").addEventListener("click", addCondition);
  byId("fold").addEventListener("click", () => {
    const open = byId("fold").getAttribute("aria-expanded") === "true";
    byId("fold").setAttribute("aria-expanded", String(!open));
  });
  for (const id of ["about-open", "methods-open"]) byId(id).addEventListener("click", () => byId("about-dialog").showModal());
  byId("theme").addEventListener("click", switchTheme);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea, select, dialog")) {
      event.preventDefault();
      byId("fold").setAttribute("aria-expanded", "true");
      byId("search").focus();
    }
  });
  window.addEventListener("hashchange", () => { if (page.release) reopen(); });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width || !page.answer) return;
    width = window.innerWidth;
    drawAnswer();
  });
}

start();
