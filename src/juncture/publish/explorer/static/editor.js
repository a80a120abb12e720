// The query's editor: a text area over its own colours, with a list of completions.

import { completions, kindOf, tokens } from "./completion.js";
import { byId, node } from "./dom.js";

export class Editor {
  constructor({ run, changed }) {
    this.area = byId("editor");
    this.colours = byId("highlight");
    this.list = byId("completions");
    this.run = run;
    this.changed = changed;
    this.attributes = [];
    this.result = { from: 0, entries: [] };
    this.active = 0;
    this.area.addEventListener("input", () => { this.draw(); this.changed(); this.complete(false); });
    this.area.addEventListener("scroll", () => { this.colours.scrollTop = this.area.scrollTop; });
    this.area.addEventListener("keydown", (event) => this.handleKey(event));
    this.area.addEventListener("click", () => this.close());
    this.area.addEventListener("blur", () => setTimeout(() => this.close(), 120));
    new ResizeObserver(() => this.draw()).observe(this.area);
  }

  get text() { return this.area.value; }

  set text(value) {
    this.area.value = value;
    this.close();
    this.draw();
  }

  get isOpen() { return !this.list.hidden; }

  draw() {
    const parts = [], caret = this.result.from;
    this.mark = node("span");
    let marked = false;
    for (const { text, at } of tokens(this.area.value)) {
      if (!marked && at >= caret) { parts.push(this.mark); marked = true; }
      const kind = kindOf(text, this.area.value[at + text.length]);
      parts.push(kind ? node("span", { class: kind }, text) : text);
    }
    if (!marked) parts.push(this.mark);
    this.colours.replaceChildren(...parts, "\n");
    this.colours.scrollTop = this.area.scrollTop;
  }

  complete(asked) {
    this.result = completions(this.area.value, this.area.selectionStart, this.attributes, asked);
    if (!this.result.entries.length) { this.close(); return; }
    this.list.replaceChildren(...this.result.entries.map((entry, index) => node("li", {
      role: "option", id: `completion-${index}`, "aria-selected": "false",
      onpointerdown: (event) => { event.preventDefault(); this.active = index; this.accept(); },
    }, node("span", {}, entry.text), node("span", {}, entry.hint))));
    this.list.hidden = false;
    this.area.setAttribute("aria-expanded", "true");
    this.draw();
    this.positionList();
    this.choose(0);
  }

  // The list stands below the beginning of the word.
  positionList() {
    const frame = byId("editor-frame").getBoundingClientRect();
    const mark = this.mark.getBoundingClientRect();
    const line = parseFloat(getComputedStyle(this.area).lineHeight) || 22;
    const left = Math.min(mark.left - frame.left, frame.width - this.list.offsetWidth);
    this.list.style.left = `${Math.max(0, left)}px`;
    this.list.style.top = `${mark.top - frame.top + line + 4}px`;
  }

  choose(index) {
    const items = [...this.list.children];
    this.active = (index + items.length) % items.length;
    items.forEach((item, at) => item.setAttribute("aria-selected", String(at === this.active)));
    this.area.setAttribute("aria-activedescendant", `completion-${this.active}`);
    items[this.active].scrollIntoView({ block: "nearest" });
  }

  close() {
    this.list.hidden = true;
    this.area.setAttribute("aria-expanded", "false");
    this.area.removeAttribute("aria-activedescendant");
  }

  accept() {
    const entry = this.result.entries[this.active];
    this.area.setRangeText(entry.text, this.result.from, this.area.selectionStart, "end");
    this.close();
    this.draw();
    this.changed();
    this.area.focus();
  }

  handleKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.close();
      this.run();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.complete(true);
    } else if (this.isOpen) {
      this.handleListKey(event);
    }
  }

  handleListKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.choose(this.active + step);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) this.accept();
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }
}
