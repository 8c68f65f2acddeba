// "stubs" and "contextTools": apps that know nothing of Steno, with results of up to 5 MB, in every API,
// streamed and not, in every form of a result. The model gets a stub and greps it through the gateway;
// the app sees its own calls and one answer. Every request goes to an endpoint that judges it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { long, main, ok, pick, random, same, test } from "../http/lib.mjs";
import { needTypes } from "../strict/judges.mjs";
import { recorded, shown, world } from "./world.mjs";
import { apps, lastOf, offered } from "./apps.mjs";

needTypes();
const CONTEXT = ["context_list", "context_read", "context_tail", "context_grep"];

// Text of about n bytes with a needle in its first half (a result in two parts is cut in the middle),
// and with every kind of character that a string can have.
function haystack(n, needle) {
  const lines = [];
  for (let size = 0, i = 0; size < n; i++) {
    lines.push(pick([`line ${i} of the log, nothing to see`, `"quoted" \\ back\tslash ${i}`, `Grüße ${i} 🙂 \u2028 \u0001`, `{"json": [${i}]}`]));
    size += Buffer.byteLength(lines.at(-1)) + 1;
  }
  lines[Math.floor(lines.length / 3)] = `here is the ${needle}`;
  return lines.join("\n");
}

// A model that asks the app for a dump, looks into the stub, and answers what it found.
const model = (provider, { mixed = false } = {}) => (body) => {
  const last = lastOf(provider, body);
  if (last.user !== undefined) {
    const both = mixed && JSON.stringify(body).match(/ctx_[0-9a-f]{32}/);
    const calls = [{ name: "dump", args: { n: 1 } }];
    if (both) calls.splice(random(2), 0, { name: "context_tail", args: { ref: both[0], lines: 1 } });
    return { text: "one moment", thinking: provider === "anthropic" ? "hm" : undefined, calls };
  }
  const stub = last.results.find((t) => t.includes("the rest is in ctx_"));
  const found = last.results.filter((t) => t.includes('"total_matches":')).map((t) => /here is the (\w+)/.exec(t)).find(Boolean);
  if (found) return { text: `it is ${found[1]}` };
  if (stub && offered(body).includes("context_grep"))
    return { text: "let me look, ", calls: [{ name: "context_grep", args: { ref: /ctx_[0-9a-f]{32}/.exec(stub)[0], pattern: "here is the" } }] };
  return { text: `seen ${Buffer.byteLength(last.results.join(""))} bytes` };
};

async function started(provider, settings, options) {
  const w = await world(provider, model(provider, options), {}, settings);
  const app = apps[provider];
  return { ...w, app, ask: app.ask(w), from: 0 };
}

// One server for all tests that do not need one of their own; no two tests have the same history.
const servers = {};
let talks = 0;
async function shared(provider, settings = { contextTools: true }, options) {
  const key = `${provider} ${JSON.stringify(settings)}`;
  const w = await (servers[key] ??= started(provider, settings));
  w.e.script = model(provider, options);
  w.e.refusals.length = 0;
  return { ...w, from: w.e.requests.length, talk: `talk ${++talks}:` };
}
const ends = (f) => ["stop", "completed", "end_turn", "STOP"].includes(f);
// The conversations of one dialogue.
const ofTalk = (w) => recorded(w, (c) => c.title.startsWith(w.talk));

// The bytes of the list of messages in a request, without its last bracket.
function listOf(w, n) {
  const text = w.e.texts[n];
  const from = text.indexOf(`"${w.app.list}":[`);
  const list = JSON.stringify(w.e.requests[n][w.app.list]);
  const raw = text.slice(from + w.app.list.length + 3, from + w.app.list.length + 3 + list.length);
  same(raw.length, list.length, "the list");
  return raw.slice(0, -1);
}
function prefixesHold(w, what) {
  for (let n = w.from + 1; n < w.e.requests.length; n++) {
    ok(listOf(w, n).startsWith(listOf(w, n - 1)), `${what}: request ${n} begins with request ${n - 1}`, listOf(w, n - 1).slice(-300), listOf(w, n).slice(listOf(w, n - 1).length - 300, listOf(w, n - 1).length + 50));
    same(JSON.stringify(w.e.requests[n].tools), JSON.stringify(w.e.requests[w.from].tools), `${what}: tools`);
  }
}

const sizes = long ? { small: 900, middle: 9000, large: 60000, huge: 5 << 20 } : { small: 900, large: 40000 };
for (const [provider, app] of Object.entries(apps))
  for (const stream of [false, true])
    for (const shape of Object.keys(app.shapes)) {
      const how = stream ? "streamed" : "whole";
      test(`${provider}, ${how}, a result as ${shape}: the model gets a stub, its greps are hidden, and the app gets one answer`, async () => {
        const w = await shared(provider);
        const history = [];
        const texts = [];
        let turns = 0;
        for (const [name, size] of Object.entries({ ...sizes, ...(shape === "string" && stream && { huge: 5 << 20 }) })) {
          const needle = `needle${turns++}`;
          const text = haystack(size, needle);
          texts.push(text);
          history.push(...app.user(`${w.talk} go ${name}`));
          const first = await w.ask(history, stream);
          same(first.calls.map((c) => c.name), ["dump"], `${name}: the app's call`);
          same(first.text, "one moment", `${name}: its words`);
          history.push(...first.back, ...app.results([{ call: first.calls[0], text }], app.shapes[shape]));
          const before = w.e.requests.length;
          const second = await w.ask(history, stream);
          same(second.calls, [], `${name}: no call that is not the app's`);
          const rounds = w.e.requests.length - before;
          if (name === "small") {
            ok(second.text.startsWith("seen "), "a small result is not touched", second.text);
          } else {
            same(second.text, `let me look, it is ${needle}`, `${name}: the words of both rounds`);
            same(rounds, 2, `${name}: rounds`);
            ok(w.e.texts.at(-1).length < 100000, `${name}: the model got no more than the stub`, w.e.texts.at(-1).length);
          }
          same(second.usage, 10 * rounds, `${name}: usage of all rounds`);
          ok(ends(second.finish), `${name}: it ended`, second.finish);
          history.push(...second.back);
        }
        same(w.e.refusals, [], "refused");
        for (const r of w.e.requests.slice(w.from)) same(offered(r), ["dump", ...CONTEXT], "the tools, behind the app's");
        prefixesHold(w, how);
        const list = await ofTalk(w);
        same(list.length, 1, "conversations");
        const calls = JSON.stringify(list[0].messages.filter(shown)).match(/"name":"context_grep"/g) ?? [];
        ok(calls.length >= Object.keys(sizes).length - 1, "the record has the model's own calls", calls.length);
        const own = JSON.stringify(list[0].messages);
        if (shape === "string") for (const t of texts) ok(own.includes(JSON.stringify(t)), "and each result whole");
        const ref = /ctx_[0-9a-f]{32}/.exec(w.e.texts.at(-1))[0];
        if (shape === "string" || shape === "part") {
          const answer = await w.s.must("GET", `/api/chat-sessions/${list[0].id}/context/${ref}/grep?pattern=here%20is%20the`);
          same(answer.total_matches, 1, "the ref of a stub is good for the recorded conversation");
        }
        const view = await w.s.must("GET", `/api/chat-sessions/${list[0].id}/messages?format=${provider}&limit=1000`);
        ok(view.messages.length > 4, "a view");
        same(readdirSync(w.s.gatewayFolder()).filter((n) => /^(ex|ro|kept)_/.test(n)), [], "nothing is left over");
      });
    }

for (const [provider, app] of Object.entries(apps))
  test(`${provider}: the prompt of fifty turns grows at its end only, with calls of both kinds at once`, async () => {
    const w = await shared(provider, { contextTools: true }, { mixed: true });
    const history = [];
    for (let turn = 0; turn < (long ? 50 : 8); turn++) {
      history.push(...app.user(`${w.talk} go ${turn}`));
      let reply = await w.ask(history, random(2) === 0);
      same(reply.calls.map((c) => c.name), ["dump"], "the app's calls");
      ok(["tool_calls", "completed", "tool_use", "STOP"].includes(reply.finish), "it waits for the app", reply.finish);
      const text = random(3) ? haystack(5000 + random(20000), `needle${turn}`) : "little";
      history.push(...reply.back, ...app.results([{ call: reply.calls[0], text }], app.shapes.string));
      reply = await w.ask(history, random(2) === 0);
      same(reply.calls, [], "no call");
      history.push(...reply.back);
      if (turn === 3) await w.s.crash(); // nothing is left that is only in memory
    }
    same(w.e.refusals, [], "refused");
    prefixesHold(w, provider);
    same((await ofTalk(w)).length, 1, "conversations");
  });

// A client that is recorded from the middle of its dialogue on: results follow the user's question, with
// the user's role in some of the APIs.
for (const [provider, app] of Object.entries(apps))
  test(`${provider}: a first request that ends with results gets the person's question as its title`, async () => {
    const w = await started(provider, { contextTools: true });
    for (const [shape, make] of Object.entries(app.shapes)) {
      const talk = `talk of ${shape}`;
      const asked = app.user(`${talk} go`);
      const { calls, back } = await w.ask(app.user("another one"), false);
      await w.ask([...asked, ...back, ...app.results([{ call: calls[0], text: "all of it" }], make)], false);
      const titles = (await recorded(w)).map((c) => c.meta.title);
      same(titles.filter((t) => t === `${talk} go`).length, 1, `${shape}: ${JSON.stringify(titles)}`);
    }
  });

for (const [provider, app] of Object.entries(apps)) {
  test(`${provider}: stubs without tools name no tool, and the answer passes byte for byte`, async () => {
    const w = await shared(provider, { stubs: true });
    const history = [...app.user(`${w.talk} go`)];
    const first = await w.ask(history, true);
    history.push(...first.back, ...app.results([{ call: first.calls[0], text: haystack(50000, "x") }], app.shapes.string));
    const second = await w.ask(history, true);
    ok(second.text.startsWith("seen "), "an answer", second.text);
    same(offered(w.e.requests.at(-1)), ["dump"], "tools");
    ok(w.e.texts.at(-1).includes("the rest is in ctx_") && !w.e.texts.at(-1).includes("context_"), "a stub that names no tool");
    same(w.e.refusals, [], "refused");
  });

  test(`${provider}: no context tool is offered if the app chooses a tool itself, has none, or has one of the names`, async () => {
    const w = await shared(provider);
    const none = { openai: { tool_choice: "none" }, responses: { tool_choice: "required" }, anthropic: { tool_choice: { type: "any" } },
      gemini: { toolConfig: { functionCallingConfig: { mode: "ANY" } } } }[provider];
    await w.ask(app.user("go"), false, none);
    same(offered(w.e.requests.at(-1)), ["dump"], "its own choice");
    const taken = { openai: { tools: [{ type: "function", function: { name: "context_read", parameters: { type: "object" } } }] },
      responses: { tools: [{ type: "function", name: "context_read", parameters: { type: "object" }, strict: false }] },
      anthropic: { tools: [{ name: "context_read", input_schema: { type: "object" } }] },
      gemini: { tools: [{ functionDeclarations: [{ name: "context_read" }] }] } }[provider];
    await w.ask(app.user("go"), false, taken);
    same(offered(w.e.requests.at(-1)), ["context_read"], "a name that is taken");
    if (provider !== "gemini") {
      await w.ask(app.user("go"), false, { tools: undefined });
      same(offered(w.e.requests.at(-1)), [], "no tools at all");
    }
  });

  test(`${provider}: a model that never stops calling context tools has to answer after eight rounds`, async () => {
    const w = await shared(provider);
    w.e.script = (body) => (offered(body).includes("context_list") ? { text: "", calls: [{ name: "context_list", args: {} }] } : { text: "enough" });
    for (const stream of [false, true]) {
      const before = w.e.requests.length;
      const reply = await w.ask(app.user(`${w.talk} look ${stream}`), stream);
      same(w.e.requests.length - before, 9, "requests");
      for (const [i, r] of w.e.requests.slice(before).entries())
        same([offered(r).includes("context_list"), offered(r).length > 0], [i < 8, true], `tools of request ${i}`);
      same([reply.calls, reply.text], [[], "enough"], "the answer");
      ok(ends(reply.finish), "it ended", reply.finish);
    }
    same(w.e.refusals, [], "refused");
  });

  // A model that calls tools which it is no longer offered: the text beside the calls is the answer.
  // Without any text there is no answer, and an app must not take that for an empty one.
  const dump = { name: "dump", args: { n: 1 } }, list = { name: "context_list", args: {} };
  for (const [name, last, answered] of [
    ["nothing else", { text: "", calls: [list] }, false],
    ["two of them", { text: "", calls: [list, { name: "context_tail", args: { ref: "x" } }] }, false],
    ["thoughts", { text: "", thinking: "hm", calls: [list] }, false],
    ["words", { text: "enough", calls: [list] }, true],
    ["a call of the app's", { text: "", calls: [list, dump] }, true],
    ["a call of the app's first", { text: "", calls: [dump, list] }, true]])
    for (const before of long ? ["", "let me look, "] : [pick(["", "let me look, "])])
      test(`${provider}: tools that are no longer offered are called with ${name}${before && ", after words"}: ${answered ? "the app has its answer" : "the app is told that there is none"}`, async () => {
        const w = await shared(provider);
        for (const stream of [false, true]) {
          w.e.script = (body) => (lastOf(provider, body).user?.startsWith("go on") ? { text: "fine" } : offered(body).includes("context_list") ? { text: before, calls: [list] } : last);
          const from = w.e.requests.length;
          const history = app.user(`${w.talk} look ${stream}`);
          const reply = await w.ask(history, stream).catch((error) => ({ error }));
          same(w.e.requests.length - from, 9, "requests, and none again");
          if (answered) {
            same([reply.error, reply.text, reply.calls.map((c) => c.name)], [undefined, before.repeat(8) + last.text, last.text ? [] : ["dump"]], "the answer");
          } else {
            ok(reply.error, "a failure", reply);
            if (!stream) ok(reply.error.status === 502 && /called context tools in more than 8 rounds and gave no answer/.test(reply.error.message), "its words", String(reply.error));
            else ok(/gave no answer|terminated|Connection|network|error/i.test(String(reply.error)), "the failure", String(reply.error));
          }
        }
        if (!answered) {
          const histories = (await ofTalk(w)).map((c) => c.messages);
          same(histories.map((m) => m.filter((x) => x.partType === "error").map((x) => [x.error.code, x.error.message])),
            Array(2).fill([["INCOMPLETE", "the model called context tools in more than 8 rounds and gave no answer"]]), "the record says why");
          ok(histories.every((m) => JSON.stringify(m.filter(shown)).split('"context_list"').length > 8), "and has every round", histories);
        }
        same((await w.ask(app.user("go on"), true)).text, "fine", "the next turn");
        same(w.e.refusals, [], "refused");
      });

  test(`${provider}: an edited reply loses its hidden calls, and nothing else`, async () => {
    const w = await shared(provider);
    const history = [...app.user(`${w.talk} go`)];
    const first = await w.ask(history, true);
    history.push(...first.back, ...app.results([{ call: first.calls[0], text: haystack(50000, "needle") }], app.shapes.string));
    const second = await w.ask(history, true);
    same(second.text, "let me look, it is needle", "found");
    const edited = JSON.parse(JSON.stringify(second.back).replaceAll("needle", "nothing"));
    await w.ask([...history, ...edited, ...app.user("go on")], false);
    ok(!w.e.texts.at(-1).includes('"name":"context_grep","arg') && !/"type":"tool_use"[^}]*context_grep/.test(w.e.texts.at(-1)), "left out");
    ok(!/functionCall":\{[^}]*context_grep/.test(w.e.texts.at(-1)), "left out");
    same(w.e.refusals, [], "refused");
  });

  test(`${provider}: a failure in a hidden round is reported to the app, and a retry works`, async () => {
    const w = await shared(provider);
    const usual = w.e.script;
    for (const stream of [false, true])
      for (const failure of [{ error: { status: 500, message: "broken" } }, { text: "half of it", cut: true }]) {
        const history = [...app.user(`${w.talk} go ${stream} ${JSON.stringify(failure).length}`)];
        const first = await w.ask(history, stream);
        history.push(...first.back, ...app.results([{ call: first.calls[0], text: haystack(50000, "needle") }], app.shapes.string));
        let n = 0;
        w.e.script = (body) => (n++ === 1 ? failure : usual(body));
        let failed = false;
        try {
          await w.ask(history, stream);
        } catch (e) {
          failed = true;
        }
        ok(failed, "the app is told", stream, failure);
        w.e.script = usual;
        same((await w.ask(history, stream)).text, "let me look, it is needle", "a retry");
      }
    same(w.e.refusals, [], "refused");
    same((await ofTalk(w)).length, 4, "conversations");
  });
}

await main();
