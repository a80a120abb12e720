// Numbers and values as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value) {
  if (value < 1e-6) return "0";
  if (value < 0.95) return small.format(value);
  return value < 99.95 ? tenth.format(value) : whole.format(value);
}

export function share(value) {
  if (!Number.isFinite(value)) return "–";
  if (value > 0 && value < 0.0005) return "<0.1 %";
  return `${tenth.format(100 * value)} %`;
}

export const number = (value) => precise.format(value);
export const compact = (value) => short.format(value);
export const integer = (value) => whole.format(value);

// What a value can be wherever in their bins the numbers lie.
export function between([low, high]) {
  const digits = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(Math.max(high - low, 1e-12)))));
  const written = new Intl.NumberFormat("en", { maximumFractionDigits: Math.min(digits, 2) });
  return `${written.format(low)} to ${written.format(high)}`;
}

// How to write the values of one column of an answer: all numbers with the same digits.
export function columnFormat(values) {
  const numbers = values.filter((value) => typeof value === "number");
  const largest = numbers.reduce((top, value) => Math.max(top, Math.abs(value)), 0);
  const digits = largest >= 1000 ? 1 : largest >= 10 ? 2 : 4;
  const fixed = new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const plain = numbers.every(Number.isInteger) || largest >= 1e15 ? String : fixed.format;
  return (value) => (value === null ? "missing" : typeof value === "number" ? plain(value) : String(value));
}

const ORDERED = new Set(["numbers", "intervals", "dates", "codes"]);
export const isOrdered = (attribute) => ORDERED.has(attribute.kind);
export const hasNumbers = (attribute) => isOrdered(attribute) && attribute.kind !== "dates";

// Labels cut to a length; those that begin alike keep their end, so that they can be told apart.
export function shortLabels(labels, room) {
  const cut = (label, last) => (label.length <= room ? label
    : `${label.slice(0, room - 1 - last).trimEnd()}…${last ? label.slice(-last).trimStart() : ""}`);
  const shown = labels.map((label) => cut(label, 0));
  for (let last = Math.floor(room / 2); last < room - 1; last++) {
    const seen = new Map();
    shown.forEach((text, index) => seen.set(text, (seen.get(text) ?? new Set()).add(labels[index])));
    if ([...seen.values()].every((full) => full.size === 1)) break;
    shown.forEach((text, index) => { if (seen.get(text).size > 1) shown[index] = cut(labels[index], last); });
  }
  return shown;
}

// A run of codes, by the first and the last of them.
export function span(attribute, first, last) {
  const [a, b] = [attribute.values[first], attribute.values[last]];
  if (first === last) return a.label;
  if (attribute.kind === "intervals") return `${number(a.low)} to ${number(b.high)}`;
  return `${a.label} to ${b.label}`;
}

function isRun(codes) {
  return codes.every((code, index) => index === 0 || code === codes[index - 1] + 1);
}

// A condition in words, to stand after the attribute.
export function conditionWords(attribute, condition) {
  if (!condition.codes) {
    const { low, high } = condition;
    if (low === null) return `at most ${number(high)}`;
    return high === null ? `at least ${number(low)}` : `${number(low)} to ${number(high)}`;
  }
  const { codes } = condition;
  const regular = codes.every((code) => !attribute.values[code].special);
  if (isOrdered(attribute) && regular && codes.length > 2 && isRun(codes)) {
    return span(attribute, codes[0], codes.at(-1));
  }
  const labels = codes.map((code) => attribute.values[code].label);
  if (labels.length <= 3) return `is ${labels.join(" or ")}`;
  return `is one of ${labels.length} values`;
}

// Of a column that is in no measurement.
export const EVEN = "not counted: shown as even";
