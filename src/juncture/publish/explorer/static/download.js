// Answers as files, made on the page from what is shown.

import { node } from "./dom.js";

const quoteCsv = (value) => {
  if (value === null) return "";
  const text = String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function asCsv({ columns, rows }) {
  return [columns, ...rows].map((row) => row.map(quoteCsv).join(",")).join("\r\n") + "\r\n";
}

export function asJson({ columns, rows, sql, notes = [], ranges = [], even = [] }) {
  return `${JSON.stringify({ sql, columns, rows, notes, ranges, not_counted: even }, null, 1)}\n`;
}

export function save(name, kind, text) {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = node("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export const fileName = (parts, ending) => {
  const stem = parts.join("-").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  return `${(stem || "answer").slice(0, 80)}.${ending}`;
};

// Whether a text could be copied: browsers allow it on secure pages only.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
