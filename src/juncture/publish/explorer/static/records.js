// The dialog that downloads synthetic records, under the page's conditions.

import { evenNames } from "./about.js";
import * as api from "./api.js";
import { byId, node } from "./dom.js";
import { integer } from "./format.js";

// Fill the dialog in for a release; `conditions` gives those of the page when they are needed.
export function prepareRecords(release, conditions) {
  const even = evenNames(release), { records: limit } = release.limits;
  byId("records-even").textContent = even ? `Not counted: ${even}. Their values are drawn as even.` : "";
  byId("records-even").hidden = !even;
  byId("records-n").value = String(Math.min(Math.max(1, Math.round(release.total)), limit));
  byId("records-n").max = String(limit);
  byId("records-limit").textContent = `At most ${integer(limit)} at a time; the juncture command writes more.`;
  byId("records-open").disabled = false;
  byId("records-open").addEventListener("click", () => {
    byId("records-conditions").hidden = !conditions().length;
    byId("records-problem").hidden = true;
    byId("records-dialog").showModal();
  });
  byId("records-cancel").addEventListener("click", () => byId("records-dialog").close());
  byId("records-form").addEventListener("submit", (event) => {
    event.preventDefault();
    download(conditions());
  });
}

async function download(conditions) {
  const problem = conditions.length ? await api.refusalOfSample(conditions) : "";
  byId("records-problem").textContent = problem;
  byId("records-problem").hidden = !problem;
  if (problem) return;
  const [n, format, seed] = ["n", "format", "seed"].map((name) => byId(`records-${name}`).value);
  const link = node("a", { href: api.sampleAddress(n, format, seed, conditions), download: "" });
  document.body.append(link);
  link.click();
  link.remove();
  byId("records-dialog").close();
}
