// The AI SDK of Vercel with its own providers, unmodified, through the gateway: the results are the same
// as without it, streamed and not, and each dialogue becomes one conversation, also where the SDK sends
// references to items instead of the items.
import { load, long, main, ok, same, test } from "../http/lib.mjs";
import { needTypes } from "../strict/judges.mjs";
import { Endpoint } from "../strict/server.mjs";
import { recorded, shown, world } from "./world.mjs";

needTypes();
const { APICallError, generateText, isStepCount, jsonSchema, stepCountIs, streamText, tool } = await load("ai7");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const steps = isStepCount ?? stepCountIs;

// How each provider's package is pointed at an endpoint.
const apis = {
  "chat completions": { wire: "openai", model: (url, apiKey) => createOpenAI({ baseURL: `${url}`, apiKey }).chat("gpt-4o"), v1: "/v1" },
  Responses: { wire: "responses", model: (url, apiKey) => createOpenAI({ baseURL: `${url}`, apiKey })("gpt-4o"), v1: "/v1" },
  Messages: { wire: "anthropic", model: (url, apiKey) => createAnthropic({ baseURL: `${url}/v1`, apiKey })("claude-sonnet-4-5"), v1: "" },
};
const ls = tool({ description: "list", inputSchema: jsonSchema({ type: "object", properties: { path: { type: "string" } }, required: ["path"], additionalProperties: false }),
  execute: async ({ path }) => `a.txt in ${path}` });
const say = (body, n) => (n % 2 === 0 ? { text: `look ${n}`, calls: [{ name: "ls", args: { path: `/${n}` } }] } : { text: `done ${n}` });

// The endpoint of Responses keeps its replies, as the real one does by default, and refuses a reference
// to anything else. Its judges know only the types of items, which have no references.
function remembering(e) {
  const known = new Set();
  const { reply } = e.wire;
  e.wire = { ...e.wire, reply: (...args) => {
    const whole = reply(...args);
    for (const item of whole.json.output) known.add(item.id);
    return whole;
  } };
  e.judge = (body) => body.input.filter((i) => i.type === "item_reference" && !known.has(i.id)).map((i) => ({ rule: "reference", text: `${i.id} is not known` }));
}
async function places(api, script, name) {
  const options = { lenient: api.wire === "responses", name };
  const alone = await new Endpoint(api.wire, script(), options).start();
  const w = await world(api.wire, script(), options);
  if (api.wire === "responses") [alone, w.e].forEach(remembering);
  return { alone, w, end: () => { w.end(); alone.stop(); } };
}

// One call of the SDK; returns what the app sees.
async function ask(model, stream, messages, more = {}) {
  const errors = [];
  const options = { model, messages, system: "be brief", tools: { ls }, stopWhen: steps(4), maxRetries: 0, onError: ({ error }) => errors.push(error), ...more };
  const r = stream ? streamText(options) : await generateText(options);
  if (stream) await r.consumeStream({ onError: (e) => errors.push(e) });
  if (errors.length) throw errors[0];
  const [text, finish, usage, response, calls, results] = [await r.text, await r.finishReason, await (r.totalUsage ?? r.usage), await r.response, await r.toolCalls, (await r.steps).length];
  return { text, finish, usage: { in: usage.inputTokens, out: usage.outputTokens }, calls: calls.length, steps: results, messages: (await r.responseMessages) ?? response.messages };
}
async function talk(model, stream, turns) {
  const messages = [], seen = [];
  for (let i = 0; i < turns; i++) {
    messages.push({ role: "user", content: `question ${i}` });
    const r = await ask(model, stream, messages);
    messages.push(...r.messages);
    seen.push(r);
  }
  return seen;
}

for (const [name, api] of Object.entries(apis))
  for (const stream of [false, true])
    test(`ai with ${name}, ${stream ? "streamed" : "whole"}: the same results as without the gateway, in one conversation`, async () => {
      const { alone, w, end } = await places(api, () => say, "same");
      const direct = await talk(api.model(alone.url + api.v1, "k"), stream, 3);
      const through = await talk(api.model(w.s.url + w.prefix, w.s.token), stream, 3);
      same(through, direct, "what the app sees");
      same(w.e.requests, alone.requests, "what the endpoint is asked");
      same([through.length, through.every((r) => r.steps === 2 && r.text.startsWith("done"))], [3, true], "calls were run");
      same(w.e.refusals, [], "refused");
      const list = await recorded(w);
      same(list.length, 1, "conversations");
      const text = JSON.stringify(list[0].messages.filter(shown));
      for (let i = 0; i < 3; i++) {
        ok(text.includes(`question ${i}`) && text.includes(`done ${2 * i + 1}`) && text.includes(`a.txt in /${2 * i}`), `turn ${i} is recorded`, text);
        same(text.split(`done ${2 * i + 1}`).length, 2, "once");
      }
      end();
    });

for (const [name, api] of Object.entries(apis))
  test(`ai with ${name}: a refusal, a cut stream and another attempt are one conversation with one reply`, async () => {
    const replies = [{ error: { status: 429, message: "slow down" } }, { text: "half of what was to be said", cut: true }, { text: "whole" }];
    const { alone, w, end } = await places(api, () => (_, n) => replies[Math.min(n, 2)]);
    const outcome = async (url, key) => {
      const list = [];
      for (let i = 0; i < 3; i++) {
        try {
          list.push((await ask(api.model(url, key), true, [{ role: "user", content: "q" }])).text);
        } catch (e) {
          list.push(APICallError.isInstance(e) ? [e.statusCode, e.message, e.isRetryable] : "broken");
        }
        if (key !== "k") await recorded(w);
      }
      return list;
    };
    const direct = await outcome(alone.url + api.v1, "k"), through = await outcome(w.s.url + w.prefix, w.s.token);
    same(through, direct, "as without the gateway");
    same(through.at(-1), "whole", "the last attempt");
    const list = await recorded(w);
    same(list.length, 1, "conversations");
    same(list[0].messages.filter((m) => shown(m) && m.role === "assistant").length, 1, "one reply");
    same(list[0].messages.filter((m) => m.partType === "error").length, 2, "both failures");
    end();
  });

test("ai with Responses sends references to items, which stand for what was recorded", async () => {
  const { w, end } = await places(apis.Responses, () => say);
  const seen = await talk(apis.Responses.model(w.s.url + w.prefix, w.s.token), true, 2);
  same(seen.length, 2, "turns");
  const references = w.e.requests.flatMap((r) => r.input).filter((i) => i.type === "item_reference");
  ok(references.length > 0, "references were sent", w.e.requests.at(-1));
  const [c] = await recorded(w);
  ok(!JSON.stringify(c.messages).includes("item_reference"), "none is recorded as one");
  end();
});

test("ai: many sessions at once with one prompt are as many conversations", async () => {
  for (const api of Object.values(apis)) {
    let n = 0;
    const { w, end } = await places(api, () => () => ({ text: `reply ${++n}` }));
    const model = api.model(w.s.url + w.prefix, w.s.token);
    const talks = await Promise.all(Array.from({ length: long ? 40 : 8 }, async (_, i) => {
      const messages = [{ role: "user", content: "hello" }], said = [];
      for (let turn = 0; turn < 2; turn++) {
        const r = await ask(model, i % 2 === 0, messages);
        said.push(r.text);
        messages.push(...r.messages, { role: "user", content: `${i}: go on` });
      }
      return said.join("|");
    }));
    const list = await recorded(w);
    const got = list.map((c) => c.messages.filter((m) => shown(m) && m.role === "assistant").map((m) => (typeof m.content === "string" ? m.content : m.content.map((p) => p.text).join(""))).join("|"));
    same(got.sort(), talks.sort(), api.wire);
    end();
  }
});

await main();
