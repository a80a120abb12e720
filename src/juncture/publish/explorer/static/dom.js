// Nodes are made here and nowhere else, and text stays text: no name can become markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function node(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A message from the server: text between backticks is code.
export function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? node("code", {}, part) : part));
}

export function segments(label, choices, chosen, choose) {
  const group = node("div", { class: "segments", role: "group", "aria-label": label });
  for (const [value, text] of choices) {
    group.append(node("button", {
      type: "button", "aria-pressed": String(value === chosen), onclick: () => choose(value),
    }, text));
  }
  return group;
}

// One of several: buttons beside each other, or a list where there is little room.
export function choice(label, choices, chosen, choose) {
  if (window.innerWidth >= 768) return segments(label, choices, chosen, choose);
  const select = node("select", { class: "small", "aria-label": label, onchange: () => choose(select.value) },
    ...choices.map(([value, text]) => node("option", { value }, text)));
  select.value = chosen;
  return select;
}

export function say(text) {
  byId("live").textContent = text;
}
