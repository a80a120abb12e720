// A box that scrolls, with a hint while there is more to its sides.

import { node } from "./dom.js";

export function scrollBox(properties, content) {
  const hint = node("p", { class: "scroll-hint", hidden: true }, "Scroll sideways to see all columns →");
  const box = node("div", { ...properties, class: "scroll" }, content);
  const frame = node("div", { class: "scroll-frame" }, box);
  const update = () => {
    const hidden = box.scrollWidth - box.clientWidth;
    hint.hidden = hidden <= 1;
    frame.classList.toggle("more-left", hidden > 1 && box.scrollLeft > 1);
    frame.classList.toggle("more-right", hidden > 1 && box.scrollLeft < hidden - 1);
  };
  box.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(box);
  return [hint, frame];
}
