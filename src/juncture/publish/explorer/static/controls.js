// The choices beside the title: how the answer is shown, and what is done with it.

import { SORTS } from "./axes.js";
import { choice, node, say, segments } from "./dom.js";
import { asCsv, asJson, copyText, fileName, save } from "./download.js";
import { MEASURES, isLarge } from "./heat.js";
import { DETAILS, FORMS, page } from "./page.js";
import { asRows, canHaveLines, chartForm, isLines } from "./shown.js";

// `redraw` shows the same answer with changes of the state, `ask` asks anew.
export function controls(shown, { redraw, ask, showChart }) {
  if (!shown) {
    return [node("button", { type: "button", class: "small", onclick: showChart }, "Back to the chart"), downloads(), linkButton()];
  }
  const { axes } = shown, { state } = page;
  if (!axes.length) return [];
  const made = [segments("View", [["chart", "Chart"], ["table", "Table"]], state.view, (view) => (state.form === "heat" ? redraw : ask)({ view }))];
  const two = axes.length > 1, isChart = two && state.view === "chart";
  if (isChart) made.push(choice("Form", FORMS.filter(([form]) => form !== "lines" || canHaveLines()), chartForm(), (form) => ask({ form })));
  made.push(choice("Show", two ? MEASURES : MEASURES.slice(0, 2), two || state.measure === "all" ? state.measure : "count", (measure) => redraw({ measure })));
  if (!isLines()) made.push(choice("Sort", SORTS, state.sort, (sort) => redraw({ sort })));
  if (axes.some((each) => each.grouped || each.size > DETAILS.at(-1))) made.push(detailChoice(ask));
  if (isChart && state.form === "heat" && isLarge(...axes)) made.push(numbersButton(redraw));
  if (isChart) made.push(node("button", { type: "button", class: "small", title: "Exchange rows and columns", onclick: () => ask(swapped()) }, "Swap"));
  return [...made, downloads(), linkButton()];
}

function detailChoice(ask) {
  const { detail } = page.state;
  const select = node("select", {
    class: "small", "aria-label": "Values", title: "More values become ranges, or the largest and others",
    onchange: () => ask({ detail: select.value === "" ? null : Number(select.value), slice: null }),
  }, ...DETAILS.map((size) => node("option", { value: size === null ? "" : String(size) }, size === null ? "All values" : `At most ${size} values`)));
  select.value = detail === null ? "" : String(detail);
  return select;
}

function numbersButton(redraw) {
  const on = page.state.numbers ?? false;
  return node("button", {
    type: "button", class: "small", "aria-pressed": String(on), onclick: () => redraw({ numbers: !on }),
  }, on ? "Hide numbers" : "Show numbers");
}

function swapped() {
  const { chosen: [a, b, ...rest], measure } = page.state;
  return { chosen: [b, a, ...rest], measure: { row: "column", column: "row" }[measure] ?? measure };
}

function downloads() {
  const { release, state } = page;
  const name = state.view === "sql" ? ["query"] : state.chosen;
  const button = (form, kind, text) => node("button", {
    type: "button", "aria-label": `Download as ${form}`,
    onclick: () => save(fileName([release.name, ...name], form.toLowerCase()), kind, text(asRows())),
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
