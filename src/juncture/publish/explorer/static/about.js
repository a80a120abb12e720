// About the release: the line at the top, and the dialog with the details.

import { byId, node } from "./dom.js";
import { count, integer, number, share } from "./format.js";

const CLOSE = 0.1; // a gap above it is neither good nor bad news, so only the details show it
const MAX_NAMES = 8;

export function introduce(release) {
  document.title = `${release.name} · Juncture explorer`;
  byId("release-name").textContent = release.name;
  byId("release-name").title = release.name;
  byId("facts").replaceChildren(...inShort(release).map((parts) => node("li", {}, ...parts)));
  const facts = inDetail(release), even = evenNames(release);
  if (even) facts.push(["Not counted", `${even}: no measurement is about them, so all their values are shown as even.`]);
  byId("about-facts").replaceChildren(...facts.map(([term, text]) => node("div", {}, node("dt", {}, term), node("dd", {}, text))));
}

// The columns in no measurement, in words; empty where there are none.
export function evenNames(release) {
  const even = release.attributes.filter((each) => !each.counted).map((each) => each.name);
  return even.length > MAX_NAMES ? `${even.slice(0, MAX_NAMES).join(", ")} and ${even.length - MAX_NAMES} more` : even.join(", ");
}

function inShort({ guarantee, certificate, total, attributes }) {
  const gap = certificate?.gap ?? null;
  return [
    [node("b", {}, integer(total)), " records"],
    [node("b", {}, String(attributes.length)), " attributes"],
    guarantee ? ["private with ", node("b", {}, guaranteeText(guarantee))] : ["no guarantee stated"],
    certificate ? [gap !== null && gap <= CLOSE ? `fit within ${share(gap)} of the best` : certificate.short] : [],
  ].filter((parts) => parts.length);
}

function inDetail({ guarantee, certificate, total }) {
  const gap = certificate?.gap ?? null;
  return [
    ["Records", `${count(total)}: the total of the model`],
    ["Guarantee", guarantee ? guaranteeWords(guarantee) : "The release states no privacy guarantee. Ask its publisher."],
    ["Fit", certificate?.status ?? "The release does not say how the fit ended."],
    ["Certificate", gap === null ? "No useful bound on how much better another model could fit."
      : `No model has a loss more than ${share(gap)} below this one's.`],
  ];
}

function guaranteeText({ symbol, value, delta }) {
  const spent = `${symbol} = ${number(Number(value.toPrecision(4)))}`;
  return delta === null ? spent : `${spent}, δ = ${delta}`;
}

function guaranteeWords(guarantee) {
  const words = { epsilon: "pure differential privacy", rho: "zero-concentrated differential privacy", delta: "approximate differential privacy" };
  const { notion, events, budget, neighbours } = guarantee;
  return [
    `${guaranteeText(guarantee)}, ${words[notion]}, spent in ${events} ${events === 1 ? "event" : "events"}.`,
    budget ? `The budget was ${budget}.` : "",
    neighbours ? `Protected: ${neighbours}.` : "",
    "The ledger in the release lists the events.",
  ].filter(Boolean).join(" ");
}
