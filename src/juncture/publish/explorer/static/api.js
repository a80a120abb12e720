// Questions to the server. The cookie is sent by the browser; nothing here knows the token.

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  let reply;
  try {
    reply = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. It may have been stopped in its terminal.", 0);
  }
  let body = null;
  try { body = await reply.json(); } catch { /* an answer that is not JSON is an error below */ }
  if (reply.ok && body) return body;
  throw new Refused(body?.error ?? `The server answered with ${reply.status}.`, reply.status);
}

const post = (path, body, signal) => ask(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
});

export const release = () => ask("/api/release");
export const marginal = (attributes, conditions, maxValues, signal) =>
  post("/api/marginal", { attributes, conditions, max_values: maxValues }, signal);
export const sql = (text, signal) => post("/api/sql", { sql: text }, signal);

export function sampleAddress(n, format, seed, conditions) {
  const asked = new URLSearchParams({ n, format });
  if (seed !== "") asked.set("seed", seed);
  if (conditions.length) asked.set("conditions", JSON.stringify(conditions));
  return `/api/sample?${asked}`;
}

// Why records under conditions cannot be drawn; nothing where they can.
export async function refusalOfSample(conditions) {
  const reply = await fetch(sampleAddress(1, "csv", "", conditions));
  return reply.ok ? "" : (await reply.json()).error;
}
