// What could come at the caret: columns, values of the compared column, SQL's own words.

import { EVEN } from "./format.js";

const TOKEN = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[\p{L}_][\p{L}\p{N}_]*|<=|>=|<>|!=|\s+|./giu;

export const KEYWORDS = [
  "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "AND", "OR", "NOT", "IN", "BETWEEN",
  "IS NULL", "IS NOT NULL", "LIKE", "AS", "DESC", "ASC", "CASE", "WHEN", "THEN", "ELSE", "END", "FILTER (WHERE",
];
const FUNCTIONS = ["COUNT(*)", "SUM(", "AVG(", "ROUND(", "ABS(", "COALESCE(", "NULLIF("];
const WORDS = new Set([...KEYWORDS, ...FUNCTIONS].flatMap((text) => text.match(/[A-Z]+/g)));
const CALLED = new Set(FUNCTIONS.map((text) => text.match(/[A-Z]+/)[0]));
const COMPARISONS = new Set(["=", "<>", "!=", "<", ">", "<=", ">=", "LIKE"]);
const MAX_ENTRIES = 50;

export function tokens(text) {
  return [...text.matchAll(TOKEN)].map((match) => ({ text: match[0], at: match.index }));
}

export function kindOf(token, next) {
  const first = token[0];
  if (first === "'") return "s";
  if (token.startsWith("--")) return "c";
  if (/\d/.test(first)) return "d";
  const word = token.toUpperCase();
  return CALLED.has(word) ? (next === "(" ? "k" : "") : WORDS.has(word) ? "k" : "";
}

const isOpen = (text, mark) =>
  text[0] === mark && (text.length === 1 || !text.endsWith(mark) || (text.match(new RegExp(mark, "g")).length % 2 === 1));

function findAttribute(attributes, token) {
  if (token === undefined) return undefined;
  const plain = token[0] === '"' ? token.slice(1, -1).replaceAll('""', '"') : token;
  return attributes.find((each) => each.name === plain)
    ?? attributes.find((each) => each.name.toLowerCase() === plain.toLowerCase());
}

// The column that a value at the end of these tokens is compared with, if there is one.
function findComparedColumn(attributes, before) {
  const words = before.map((token) => token.text);
  const last = words.at(-1)?.toUpperCase();
  if (COMPARISONS.has(last) || last === "BETWEEN") {
    const offset = words.at(-2)?.toUpperCase() === "NOT" ? -3 : -2;
    return findAttribute(attributes, words.at(offset));
  }
  let at = words.length - 1;
  while (at >= 0 && (words[at] === "," || "'0123456789-".includes(words[at][0]) || /^(true|false)$/i.test(words[at]))) at -= 1;
  if (words[at] === "(" && words[at - 1]?.toUpperCase() === "IN" && (at === words.length - 1 || words.at(-1) === ",")) {
    return findAttribute(attributes, words[at - 2]?.toUpperCase() === "NOT" ? words[at - 3] : words[at - 2]);
  }
  return undefined;
}

export function context(text, caret, attributes) {
  const all = tokens(text.slice(0, caret));
  const last = all.at(-1);
  const written = last && (isOpen(last.text, "'") || isOpen(last.text, '"') || /^[\p{L}\p{N}_]/u.test(last.text));
  const before = (written ? all.slice(0, -1) : all).filter((token) => token.text.trim());
  const prefix = written ? last.text : "";
  return { from: written ? last.at : caret, prefix, column: findComparedColumn(attributes, before), quiet: last?.text.startsWith("--") };
}

function rankEntries(entries, prefix) {
  const wanted = prefix.replace(/^['"]/, "").toLowerCase();
  const matches = [];
  for (const entry of entries) {
    const at = entry.key.toLowerCase().indexOf(wanted);
    if (at >= 0) matches.push([at === 0 ? 0 : 1, entry]);
  }
  return matches.sort((a, b) => a[0] - b[0]).map(([, entry]) => entry).slice(0, MAX_ENTRIES);
}

function valuesOf(column) {
  return column.values.filter((value) => !value.special).map((value) => ({
    key: value.label, text: value.sql ?? String(value.low), hint: value.sql ? "value" : "from",
  }));
}

export function completions(text, caret, attributes, asked) {
  const { from, prefix, column, quiet } = context(text, caret, attributes);
  if (quiet) return { from, entries: [] };
  if (column && prefix[0] !== '"') return { from, entries: rankEntries(valuesOf(column), prefix) };
  if (prefix[0] === "'" || /^\d/.test(prefix) || (!prefix && !asked)) return { from, entries: [] };
  const columns = attributes.map((each) => ({ key: each.name, text: each.sql, hint: each.counted ? `${each.size} values` : EVEN }));
  const words = prefix[0] === '"' ? [] : [
    ...FUNCTIONS.map((word) => ({ key: word, text: word, hint: "function" })),
    ...KEYWORDS.map((word) => ({ key: word, text: word, hint: "" })),
  ];
  const ofWords = words.filter((word) => word.key.toLowerCase().startsWith(prefix.toLowerCase()));
  const entries = [...rankEntries(columns, prefix), ...(prefix || asked ? ofWords : [])].slice(0, MAX_ENTRIES);
  const done = entries.length === 1 && entries[0].text.toLowerCase() === prefix.toLowerCase();
  return { from, entries: done ? [] : entries };
}
