// What the gateway's tests share: an endpoint that judges, a server in front of it, and readers of what
// was recorded.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Endpoint } from "../strict/server.mjs";
import { Server, until } from "../http/lib.mjs";

// What the endpoints answer: a call, then the answer.
export const script = (request, n) => (n % 2 === 0
  ? { text: `look ${n}`, calls: [{ name: "ls", args: { path: `/${n}`, deep: 1.0 } }], thinking: "hm" }
  : { text: `done ${n}` });

export async function world(provider, say = script, options = {}, settings = {}) {
  const e = await new Endpoint(provider, say, options).start();
  const s = new Server();
  const v1 = provider === "openai" || provider === "responses" ? "/v1" : "";
  const name = provider === "responses" ? "openai" : provider;
  s.configure({ upstreams: { [name]: { url: e.url + v1, key: "upstream-key", ...settings } } });
  await s.start();
  return { e, s, prefix: name === "openai" ? "/openai/v1" : `/${name}`, end: () => { s.kill(); e.stop(); } };
}

export const conversations = async (s) => (await s.must("GET", "/api/chat-sessions?limit=1000")).items ?? [];
export const stored = async (s, id, format = "stored") =>
  (await s.must("GET", `/api/chat-sessions/${id}/messages?format=${format}&limit=1000${format === "stored" ? "" : "&strict=1"}`)).messages.map((m) => (format === "stored" ? m.m : m));
// Everything that was recorded, once nothing is under way any more.
export async function recorded(w, wanted = () => true) {
  await until("the recorder", () => readdirSync(w.s.gatewayFolder()).every((n) => !n.startsWith("ex_")));
  const list = [];
  for (const c of (await conversations(w.s)).filter(wanted)) list.push({ id: c.id, meta: c, messages: await stored(w.s, c.id) });
  return list;
}
export const shown = (m) => m.includeInContext !== false;
export const said = (list) => list.filter(shown).map((m) => `${m.role}:${typeof m.content === "string" ? m.content : JSON.stringify(m.content)}`);
