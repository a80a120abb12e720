// What went wrong, in words: below the query, or in place of the answer.

import { byId, node, prose } from "./dom.js";

export function showProblem(error) {
  byId("problem").replaceChildren(...prose(error.message));
  byId("problem").hidden = false;
}

export function hideProblem() { byId("problem").hidden = true; }

export function showRefusal(error) {
  const token = error.status === 401;
  byId("answer-title").textContent = token ? "This page needs its token" : "That did not work";
  byId("controls").replaceChildren();
  byId("answer-body").replaceChildren(token
    ? node("div", { class: "empty" }, node("p", { class: "lead" }, "Open the address that the terminal shows."),
      node("p", {}, "It ends in a token, which gives this browser access. Without it, the page shows nothing of the release."))
    : node("p", { class: "problem", role: "alert" }, ...prose(error.message)));
  byId("answer-body").setAttribute("aria-busy", "false");
}
