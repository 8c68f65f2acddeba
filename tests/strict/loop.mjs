// The loop against the strict endpoints: whatever a conversation holds, an endpoint refuses no request
// of it; and the opaque members that an endpoint gave come back to it verbatim and go to no other.
//
// 10,000 random histories with STENO_TEST_LONG=1, else a twentieth, are stored and asked on.
import { join } from "node:path";
import { Failures, onceWrong } from "./failures.mjs";
import { history } from "./histories.mjs";
import { needTypes, providers } from "./judges.mjs";
import { Endpoint } from "./server.mjs";
import { done, pooled, ram, report, rounds, run, scratch, seed, shown, steno, times } from "./tap.mjs";

needTypes();
const { Server } = await import("../http/lib.mjs");
const help = (await run(steno, ["run", "--help"])).stdout;
// The providers that the help of --provider names.
const spoken = /--provider NAME([^]*?)\n +--/.exec(help)[1].match(/[a-z]+/g);
const strictly = (text) => (/--strict\b/.test(text) ? ["--strict"] : []);
const strict = strictly(help),
  strictServer = strictly((await run(steno, ["serve", "--help"])).stdout);
const baseUrl = (p, url) => (p === "openai" || p === "responses" ? `${url}/v1` : url);
console.log(`# seed ${seed}`);

const failures = new Failures();
const store = join(scratch, "loop-store");
// The test reports what the loop cannot speak yet, and runs it as soon as the help names it.
const silent = providers.filter((p) => !spoken.includes(p));
if (silent.length > 0) console.log(`# the loop does not speak ${silent.join(", ")}`);
for (const p of providers.filter((p) => spoken.includes(p))) {
  await scripted(p);
  await opaque(p);
  await random(p);
}
done();

// ---- what a run of every kind sends ----
async function scripted(p) {
  const section = `loop ${p} scripted`;
  const replies = [
    { text: "I look.", calls: [{ name: "context_list" }] },
    { calls: [{ name: "context_list" }, { name: "context_list" }], thinking: "two at once" },
    { text: "Both are empty." },
    { error: { status: 500, message: "broken" } },
    { text: "again" },
    { calls: [{ name: "context_grep", args: '{"ref":"ctx' }], finish: "length" },
    { text: "that was cut" },
    { calls: [{ name: "no.such tool", args: {} }] },
    { text: "no such tool" },
    { text: "cut in the middle of it", cut: true },
    { text: "after the cut" },
    { thinking: "only thoughts" },
    { text: "last" },
    { text: "more" },
    { text: "more" },
  ];
  for (const whole of [[], ["--no-stream"]]) {
    const e = await new Endpoint(p, (_, n) => replies[Math.min(n, replies.length - 1)]).start();
    const conv = await newConversation(`scripted-${p}${whole.length}`);
    for (const prompt of ["Look.", "And again?", "Go on.", "And?", "Well?", "So?"])
      await loop(p, e, "run", conv, "--prompt", prompt, ...strict, ...whole);
    await loop(p, e, "continue", conv, ...strict, ...whole);
    // A refusal ends a run early, and is reported below.
    report(
      e.refusals.length > 0 || e.requests.length >= 11,
      `${p}: a scripted conversation is asked on, ${whole.length ? "whole" : "streamed"}: ${e.requests.length} requests`,
    );
    for (const v of e.refusals)
      failures.add(section, v.rule, 0, `${v.text}\n  ${shown(e.requests[v.request])}`);
    e.stop();
  }
  failures.report(section, `${p}: the endpoint refuses no request of a scripted conversation`);
}

// ---- opaque members ----
async function opaque(p) {
  const section = `loop ${p} opaque`;
  for (const whole of [[], ["--no-stream"]]) {
    // Each endpoint sends different texts, so that one's text is not taken for the other's.
    const script = (name) => (_, n) =>
      n % 3 < 2
        ? // not the same call again and again, because the loop would end
          { text: `step ${n} of ${name}`, calls: [1, 2].map((i) => ({ name: "context_list", args: { limit: 2 * n + i } })) }
        : { text: `answer ${n} of ${name}` };
    const [a, b] = [
      await new Endpoint(p, script("a"), { lenient: true, name: `${p}-a${whole.length}` }).start(),
      await new Endpoint(p, script("b"), { lenient: true, name: `${p}-b${whole.length}` }).start(),
    ];
    const conv = await newConversation(`opaque-${p}${whole.length}`);
    for (const e of [a, a, b, a, b]) await loop(p, e, "run", conv, "--prompt", "Go on.", ...whole);
    report(
      a.refusals.length + b.refusals.length > 0 || (a.requests.length >= 7 && b.requests.length >= 4),
      `${p}: two endpoints share a conversation, ${whole.length ? "whole" : "streamed"}: ${a.requests.length} and ${b.requests.length} requests`,
    );
    for (const e of [a, b])
      for (const v of e.refusals)
        failures.add(section, v.rule, 0, `${v.text}\n  ${shown(e.requests[v.request])}`);
    a.stop();
    b.stop();
  }
  failures.report(section, `${p}: opaque members come back to their endpoint verbatim, and to no other`);
}

async function newConversation(id) {
  const r = await run(steno, ["--store", store, "new", "--id", id]);
  if (r.status !== 0) throw new Error(r.stderr);
  return id;
}

function loop(p, e, command, conv, ...more) {
  return run(steno, [
    "--store",
    store,
    command,
    conv,
    "--provider",
    p,
    "--base-url",
    baseUrl(p, e.url),
    "--model",
    "m",
    "--no-tools",
    ...more,
  ]);
}

// ---- random histories ----
async function random(p) {
  const section = `loop ${p}`;
  const seeds = [
    ...new Set([...onceWrong, ...times(rounds(10000), (i) => (seed + i * 15485863) >>> 0)]),
  ];
  const e = await new Endpoint(p, () => ({ text: "Yes." })).start();
  const server = new Server({
    args: ["--no-tools", "--provider", p, "--base-url", baseUrl(p, e.url), "--model", "m", ...strictServer],
  });
  server.store = join(ram, `strict-loop-${p}`);
  await server.start();
  process.on("exit", () => server.kill());
  let asked = 0;
  const told = await pooled(
    seeds,
    async (s) => {
      const h = history(s);
      const { id } = await server.must("POST", "/api/chat-sessions", { body: {} });
      const path = `/api/chat-sessions/${id}/messages?record=1&durability=process&format=${h.format}`;
      if ((await server.ask("POST", path, { body: h.messages })).status >= 300)
        for (const m of h.messages) await server.ask("POST", path, { body: m });
      const r = await server.ask("POST", "/api/chatbot", {
        body: { sessionId: id, message: `Go on, ${s}.`, stream: false },
      });
      asked += r.status === 200;
      return h;
    },
    6,
  );
  for (const v of e.refusals) {
    // The prompt says which history a request is about.
    const request = JSON.stringify(e.requests[v.request]);
    const s = Number(/.*Go on, (\d+)\./s.exec(request)?.[1]),
      h = told[seeds.indexOf(s)];
    failures.add(
      section,
      v.rule,
      s,
      `${h?.kind}: ${v.text}\n  stored ${shown(h?.messages ?? "")}\n  request ${shown(request)}`,
      request.length,
    );
  }
  failures.report(section, `${p}: the endpoint refuses no request of ${seeds.length} random histories`);
  report(asked === seeds.length, `${p}: each of ${seeds.length} histories was continued: ${asked}`);
  server.kill();
  e.stop();
}
