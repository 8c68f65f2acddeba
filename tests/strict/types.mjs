// The TypeScript compiler agrees with the schemas that were generated from its declarations: what the
// judges accept, of the corpus and of views, type-checks against npm openai, @anthropic-ai/sdk and
// @google/genai, and what they refuse for its type does not.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { typeCheck } from "./generate.mjs";
import { history } from "./histories.mjs";
import { check, needTypes, providers } from "./judges.mjs";
import { done, here, pooled, ram, report, rounds, seed, shown, times } from "./tap.mjs";

needTypes();
console.log(`# seed ${seed}`);
const { Server } = await import("../http/lib.mjs");
const server = new Server();
server.store = join(ram, "strict-types");
await server.start();
process.on("exit", () => server.kill());

// In the types of @google/genai all members are optional, and members of Vertex AI are included;
// comments say the rest, and only the schemas use the comments. tsc also accepts a member that belongs
// to another member of a union.
const beyondTypes = (p, e) =>
  (p === "gemini" && (e.rule === "missing_member" || /Vertex/.test(e.name))) ||
  (p === "responses" && e.name === "a name on a message");

const samples = {},
  meant = [];
const add = (p, h, ok, what) => {
  meant.push({ p, index: (samples[p] ??= []).push(h.messages ?? h) - 1, ok, what });
};
for (const p of providers)
  for (const e of readFileSync(join(here, "corpus", `${p}.jsonl`), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))) {
    if (JSON.stringify(e.history).length > 3000) continue; // many calls show no more than one, and take long
    if (e.verdict === "ok") add(p, e.history, true, `corpus: ${e.name}`);
    else if (["unknown_member", "missing_member", "member_type"].includes(e.rule) && !beyondTypes(p, e))
      add(p, e.history, false, `corpus: ${e.name}`);
  }
const views = Object.fromEntries(providers.map((p) => [p, 0]));
await pooled(
  times(rounds(1200), (i) => (seed + i * 7907) >>> 0),
  async (s) => {
    const h = history(s);
    const { id } = await server.must("POST", "/api/chat-sessions", { body: {} });
    await server.ask(
      "POST",
      `/api/chat-sessions/${id}/messages?record=1&durability=process&format=${h.format}`,
      { body: h.messages },
    );
    for (const p of providers) {
      const { messages } = await server.must(
        "GET",
        `/api/chat-sessions/${id}/messages?format=${p}&strict=1&tokens=0`,
      );
      if (messages.length === 0 || check(p, messages).length) continue; // views.test checks those
      views[p]++;
      add(p, messages, true, `seed ${s}, ${h.kind}`);
    }
  },
);
server.kill();

const wrong = new Map(typeCheck(samples).map((d) => [`${d.provider} ${d.index}`, d.text]));
for (const p of providers) {
  const of = meant.filter((m) => m.p === p);
  const said = (m) => wrong.get(`${p} ${m.index}`);
  const off = of.filter((m) => m.ok && said(m)),
    missed = of.filter((m) => !m.ok && !said(m));
  report(
    off.length === 0,
    `${p}: ${of.filter((m) => m.ok).length} accepted histories type-check, ${views[p]} of them views`,
    off.map((m) => `${m.what}: ${said(m)}\n  ${shown(samples[p][m.index])}`),
  );
  report(
    missed.length === 0,
    `${p}: ${of.filter((m) => !m.ok).length} histories that are refused for their type do not`,
    missed.map((m) => m.what),
  );
}
done();
