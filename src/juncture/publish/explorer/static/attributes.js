// The list of attributes: search by name, move by arrow keys, choose by click or Enter.

import { sparks } from "./bars.js";
import { byId, node } from "./dom.js";
import { EVEN } from "./format.js";

const KINDS = { numbers: "numbers", intervals: "intervals", dates: "dates", codes: "codes", texts: "values", many: "values" };

export class AttributeList {
  constructor(choose) {
    this.list = byId("attributes");
    this.search = byId("search");
    this.choose = choose;
    this.search.addEventListener("input", () => this.filter());
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      const first = this.shown[0];
      if (first && event.key === "Enter") this.choose(first.dataset.name);
      else first?.focus();
    });
    this.list.addEventListener("keydown", (event) => this.handleKey(event));
  }

  get shown() { return [...this.list.children].filter((item) => !item.hidden); }

  draw(attributes) {
    this.list.replaceChildren(...attributes.map((each, index) => node("li", {
      role: "option", "aria-selected": "false", tabIndex: index === 0 ? 0 : -1, "data-name": each.name, title: each.name,
      onclick: (event) => { this.rove(event.currentTarget); this.choose(each.name); },
    },
    node("span", { class: "name" }, each.name),
    node("span", { class: "size" }, `${each.size.toLocaleString("en")} ${KINDS[each.kind]}`, each.counted ? null : node("span", { class: "even" }, EVEN)),
    sparks(each.sparks))));
  }

  mark(chosen) {
    for (const item of this.list.children) item.setAttribute("aria-selected", String(chosen.includes(item.dataset.name)));
    byId("clear").hidden = chosen.length === 0;
    byId("fold-now").textContent = chosen.length ? chosen.join(" × ") : "none chosen";
  }

  filter() {
    const wanted = this.search.value.trim().toLowerCase();
    for (const item of this.list.children) item.hidden = !item.dataset.name.toLowerCase().includes(wanted);
    byId("no-attributes").hidden = this.shown.length > 0;
    if (this.shown.length) this.rove(this.shown[0]);
  }

  rove(item) {
    for (const each of this.list.children) each.tabIndex = each === item ? 0 : -1;
  }

  handleKey(event) {
    const items = this.shown, at = items.indexOf(document.activeElement);
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(items[at].dataset.name);
      return;
    }
    if (event.key === "ArrowUp" && at === 0) { event.preventDefault(); this.search.focus(); return; }
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const target = items[Math.min(items.length - 1, to)];
    this.rove(target);
    target.focus();
  }
}
