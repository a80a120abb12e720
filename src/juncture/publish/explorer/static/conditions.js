// Conditions, at most one per attribute: chips that show them, a dialog that edits them.

import { byId, node, segments } from "./dom.js";
import { EVEN, conditionWords, hasNumbers } from "./format.js";

// The conditions with some values of an attribute added, or removed if all of them were there.
export function toggleValues(conditions, attribute, codes) {
  const before = conditions.find((each) => each.attribute === attribute.name);
  const had = new Set(before?.codes ?? []);
  const all = codes.every((code) => had.has(code));
  // A selected range replaces the condition; single values add up.
  const kept = codes.length > 1 && !all ? new Set() : had;
  codes.forEach((code) => (all ? kept.delete(code) : kept.add(code)));
  const chosen = [...kept].sort((a, b) => a - b);
  const whole = chosen.length === attribute.size;
  return replaceCondition(conditions, attribute.name, chosen.length && !whole ? { attribute: attribute.name, codes: chosen } : null);
}

export function replaceCondition(conditions, name, condition) {
  const index = conditions.findIndex((each) => each.attribute === name);
  const others = conditions.filter((each) => each.attribute !== name);
  if (condition) others.splice(index < 0 ? others.length : index, 0, condition);
  return others;
}

export function drawChips(conditions, attributes, edit, remove) {
  byId("where-word").textContent = conditions.length ? "Where" : "All records";
  byId("chips").replaceChildren(...conditions.map((condition) => {
    const attribute = attributes.get(condition.attribute);
    const words = conditionWords(attribute, condition);
    const all = condition.codes?.map((code) => attribute.values[code].label).join(", ");
    return node("li", { class: "chip" },
      node("button", { type: "button", title: all, "aria-label": `Change: ${attribute.name} ${words}`, onclick: () => edit(condition) },
        node("b", {}, attribute.name), ` ${words}`, attribute.counted ? null : node("span", { class: "even" }, EVEN)),
      node("button", { type: "button", "aria-label": `Remove: ${attribute.name} ${words}`, onclick: () => remove(condition) }, "×"));
  }));
}

export class ConditionDialog {
  constructor(attributes, apply) {
    this.attributes = attributes;
    this.dialog = byId("condition-dialog");
    this.apply = apply;
    byId("condition-cancel").addEventListener("click", () => this.dialog.close());
    byId("condition-remove").addEventListener("click", () => { this.dialog.close(); this.apply(this.attribute.name, null); });
    byId("condition-form").addEventListener("submit", (event) => this.submit(event));
  }

  open(condition, names, suggested) {
    this.fixed = condition !== null;
    this.names = names;
    byId("condition-remove").hidden = !this.fixed;
    this.start(this.attributes.get(condition?.attribute ?? suggested), condition);
    this.dialog.showModal();
  }

  start(attribute, condition) {
    this.attribute = attribute;
    this.low = condition?.low ?? null;
    this.high = condition?.high ?? null;
    this.codes = new Set(condition?.codes ?? []);
    this.form = hasNumbers(attribute) && !condition?.codes ? "range" : "values";
    this.filter = "";
    this.draw();
  }

  draw() {
    byId("condition-problem").hidden = true;
    byId("condition-title").textContent = this.fixed ? this.attribute.name : "Add a condition";
    const body = [];
    if (!this.fixed) body.push(this.chooser());
    if (hasNumbers(this.attribute)) {
      body.push(segments("How to choose", [["range", "Range"], ["values", "Values"]], this.form, (form) => { this.form = form; this.draw(); }));
    }
    body.push(...(this.form === "range" ? this.range() : this.values()));
    byId("condition-body").replaceChildren(...body);
  }

  chooser() {
    const select = node("select", { "aria-label": "Attribute" }, ...this.names.map((name) =>
      node("option", { value: name }, this.attributes.get(name).counted ? name : `${name} (${EVEN})`)));
    select.value = this.attribute.name;
    select.addEventListener("change", () => this.start(this.attributes.get(select.value), null));
    return node("label", { class: "field" }, "Attribute", select);
  }

  range() {
    const known = this.attribute.values.filter((value) => !value.special);
    const [lowest, highest] = [known[0].low, known.at(-1).high];
    const field = (label, name, hint) => {
      const input = node("input", { type: "number", step: "any", placeholder: String(hint), value: this[name] === null ? "" : String(this[name]) });
      input.addEventListener("input", () => { this[name] = input.value === "" ? null : input.valueAsNumber; });
      return node("label", {}, label, input);
    };
    return [node("div", { class: "fields" }, field("From", "low", lowest), field("To", "high", highest)),
      node("p", { class: "soft" }, "Both ends are included. Leave one empty for no bound.")];
  }

  values() {
    const list = node("div", { class: "choices", role: "group", "aria-label": `Values of ${this.attribute.name}` });
    const fill = () => {
      const shown = [...this.attribute.values.entries()].filter(([, value]) => value.label.toLowerCase().includes(this.filter));
      list.replaceChildren(...shown.map(([code, value]) => {
        const box = node("input", { type: "checkbox", checked: this.codes.has(code) });
        box.addEventListener("change", () => (box.checked ? this.codes.add(code) : this.codes.delete(code)));
        return node("label", {}, box, node("span", { class: value.special ? "soft" : "" }, value.label));
      }));
    };
    fill();
    if (this.attribute.values.length <= 12) return [list];
    const search = node("input", { type: "search", placeholder: "Search values", "aria-label": "Search values" });
    search.addEventListener("input", () => { this.filter = search.value.toLowerCase(); fill(); });
    return [node("div", { class: "fields" }, search), list];
  }

  submit(event) {
    const { attribute, low, high } = this;
    const condition = this.form === "range" ? { attribute: attribute.name, low, high }
      : { attribute: attribute.name, codes: [...this.codes].sort((a, b) => a - b) };
    const wrong = this.form === "range"
      ? (low === null && high === null && "Give at least one end of the range.")
        || (low !== null && high !== null && low > high && "The range must not end before it begins.")
      : condition.codes.length === 0 && "Choose at least one value.";
    if (wrong) {
      event.preventDefault();
      byId("condition-problem").textContent = wrong;
      byId("condition-problem").hidden = false;
      return;
    }
    this.apply(attribute.name, condition);
  }
}
