// Redrawing removes the focused bar or button: the one that replaces it gets the focus.

import { byId } from "./dom.js";

const FOCUSED = "button, td, th, select, [data-at]";

export function keepFocus(redraw) {
  const held = findFocus();
  redraw();
  if (!held) return;
  const items = byId(held.id).querySelectorAll(FOCUSED);
  (items[Math.min(held.index, items.length - 1)] ?? byId("answer")).focus({ preventScroll: true });
}

function findFocus() {
  for (const id of ["answer-body", "controls"]) {
    const index = [...byId(id).querySelectorAll(FOCUSED)].indexOf(document.activeElement);
    if (index >= 0) return { id, index };
  }
  return null;
}
