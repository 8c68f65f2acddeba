// /v1/responses: conversation, previous_response_id, replay, deletion, background and cancel, with
// openai and @openai/agents unmodified, in front of an endpoint that judges every request.
import { createServer } from "node:http";
import { Server, load, main, ok, same, test, until } from "../http/lib.mjs";
import { needTypes } from "../strict/judges.mjs";
import { Endpoint } from "../strict/server.mjs";
import { lastOf } from "./apps.mjs";

needTypes();
process.env.OPENAI_AGENTS_DISABLE_TRACING = "1";
const OpenAI = (await load("openai7")).default;
const OpenAI6 = (await load("openai6")).default;
const { Agent, OpenAIConversationsSession, OpenAIProvider, Runner, tool } = await load("@openai/agents");

const say = (body) => {
  const last = lastOf("responses", body);
  if (last.results) return { text: `it says ${last.results[0]}` };
  if (/call/.test(last.user)) return { text: "", calls: [{ name: "weather", args: { city: "Graz" } }] };
  return { text: `answer to ${last.user}`, thinking: /think/.test(last.user) ? "hm" : undefined };
};
async function world(script = say) {
  const e = await new Endpoint("responses", script).start();
  const s = new Server();
  s.configure({ upstreams: { openai: { url: `${e.url}/v1`, key: "k" } }, responses: { upstream: "openai" } });
  await s.start();
  const client = (Kind = OpenAI, more = {}) => new Kind({ baseURL: `${s.url}/v1`, apiKey: s.token, maxRetries: 0, ...more });
  return { e, s, client, end: () => { s.kill(); e.stop(); } };
}
const texts = (items) => items.map((i) => i.content?.map?.((c) => c.text).join("") ?? i.output ?? i.name ?? i.type);
const asked = (e, n = -1) => texts(e.requests.at(n).input.map((i) => ({ ...i, content: typeof i.content === "string" ? [{ text: i.content }] : i.content })));

for (const [name, Kind] of Object.entries({ openai6: OpenAI6, openai7: OpenAI }))
  for (const stream of [false, true])
    test(`${name}, ${stream ? "streamed" : "whole"}: input and output are stored in a conversation, and the model gets all of it`, async () => {
      const w = await world();
      const client = w.client(Kind);
      const conv = await client.conversations.create();
      for (const [i, input] of ["one", "think of two", "three"].entries()) {
        const body = { model: "m", input, conversation: i ? { id: conv.id } : conv.id, instructions: "be brief" };
        const r = stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
        same(r.output_text, `answer to ${input}`, "the answer");
        same([r.status, r.conversation?.id, r.previous_response_id], ["completed", conv.id, null], "its state");
        ok(r.id.startsWith("resp_"), "an id", r.id);
        same((await client.responses.retrieve(r.id)).output_text ?? texts(r.output).at(-1), `answer to ${input}`, "it can be read again");
      }
      same(asked(w.e), ["one", "answer to one", "think of two", "reasoning", "answer to think of two", "three"], "what the model was asked last");
      ok(w.e.requests.every((r) => r.instructions === "be brief" && r.store === false && r.conversation === undefined), "the request");
      const items = [];
      for await (const i of client.conversations.items.list(conv.id, { order: "asc" })) items.push(i);
      same(texts(items), ["one", "answer to one", "think of two", "reasoning", "answer to think of two", "three", "answer to three"], "items");
      ok(!JSON.stringify(items).includes("be brief"), "instructions are not stored");
      same(w.e.refusals, [], "refused");
      w.end();
    });

test("previous_response_id continues where that response ended, and from an earlier one in a fork", async () => {
  const w = await world();
  const client = w.client();
  const a = await client.responses.create({ model: "m", input: "one" });
  const b = await client.responses.create({ model: "m", input: "two", previous_response_id: a.id });
  same(asked(w.e), ["one", "answer to one", "two"], "behind the first");
  const c = await client.responses.create({ model: "m", input: "other", previous_response_id: a.id });
  same(asked(w.e), ["one", "answer to one", "other"], "a fork");
  await client.responses.create({ model: "m", input: "more", previous_response_id: b.id });
  same(asked(w.e), ["one", "answer to one", "two", "answer to two", "more"], "the first branch");
  await client.responses.create({ model: "m", input: "last", previous_response_id: c.id });
  same(asked(w.e), ["one", "answer to one", "other", "answer to other", "last"], "the second one");
  same([b.previous_response_id, b.conversation], [a.id, null], "members");
  for (const bad of ["resp_none", "none"]) {
    const e = await client.responses.create({ model: "m", input: "x", previous_response_id: bad }).catch((x) => x);
    same(e.status, 404, bad);
  }
  const both = await client.responses.create({ model: "m", input: "x", previous_response_id: a.id, conversation: "c" }).catch((x) => x);
  same([both.status, both.code], [400, "mutually_exclusive_parameters"], "both");
  same((await client.responses.create({ model: "m", input: "x", conversation: "conv_none" }).catch((x) => x)).status, 404, "no such conversation");
  same(w.e.refusals, [], "refused");
  w.end();
});

test("a response is read again, from any event on, also after a kill, and forgotten when it is deleted", async () => {
  const w = await world();
  const client = w.client();
  const events = [];
  for await (const e of await client.responses.create({ model: "m", input: [{ role: "user", content: "a" }, { role: "user", content: "b" }], stream: true })) events.push(e);
  same(events.map((e) => e.sequence_number), events.map((_, i) => i), "numbers without gaps");
  same([events[0].type, events.at(-1).type], ["response.created", "response.completed"], "first and last");
  const id = events[0].response.id;
  ok(events.filter((e) => e.response).every((e) => e.response.id === id), "one id");
  await w.s.crash();
  const again = [];
  for await (const e of await w.client().responses.retrieve(id, { stream: true })) again.push(e);
  same(again, events, "the same events");
  const rest = [];
  for await (const e of await w.client().responses.retrieve(id, { stream: true, starting_after: 4 })) rest.push(e);
  same(rest, events.slice(5), "those behind the fifth");
  same((await w.client().responses.retrieve(id)).status, "completed", "the response");
  const inputs = async (query) => {
    const list = [];
    for await (const i of w.client().responses.inputItems.list(id, query)) list.push(i);
    return texts(list);
  };
  same(await inputs({}), ["b", "a"], "its input, newest first");
  same(await inputs({ order: "asc", limit: 1 }), ["a", "b"], "page by page");
  await w.client().responses.delete(id);
  same((await w.client().responses.retrieve(id).catch((e) => e)).status, 404, "deleted");
  same((await w.client().responses.create({ model: "m", input: "x", previous_response_id: id }).catch((e) => e)).status, 404, "and not continued");
  w.end();
});

test("a refusal of the upstream reaches the client, and a cut or a kill ends a stream with an error", async () => {
  let reply = { error: { status: 429, message: "slow down" } };
  const w = await world(() => reply);
  const client = w.client();
  const conv = await client.conversations.create();
  const e = await client.responses.create({ model: "m", input: "x", conversation: conv.id }).catch((x) => x);
  same([e.status, /slow down/.test(e.message)], [429, true], "its own words");
  reply = { text: "half of an answer", cut: true };
  const cut = await client.responses.stream({ model: "m", input: "x", conversation: conv.id }).finalResponse().catch((x) => x);
  ok(cut instanceof Error || cut.status === "failed", "told", cut.status);
  const list = await client.conversations.items.list(conv.id);
  same(list.data.length, 0, "nothing half is stored");
  reply = { text: "whole" };
  same((await client.responses.create({ model: "m", input: "y", conversation: conv.id })).output_text, "whole", "it goes on");
  w.end();
});

test("two responses at once in one conversation: the second is refused, and works later", async () => {
  let open;
  const gate = new Promise((done) => { open = done; });
  const w = await world(async (body) => {
    if (/slow/.test(lastOf("responses", body).user)) await gate;
    return say(body);
  });
  const client = w.client();
  const conv = await client.conversations.create();
  const slow = client.responses.create({ model: "m", input: "slow", conversation: conv.id });
  await until("the request", () => w.e.requests.length === 1);
  const e = await client.responses.create({ model: "m", input: "fast", conversation: conv.id }).catch((x) => x);
  same([e.status, e.code], [409, "conversation_locked"], "refused");
  open();
  same((await slow).output_text, "answer to slow", "the first");
  same((await client.responses.create({ model: "m", input: "fast", conversation: conv.id })).output_text, "answer to fast", "the second");
  w.end();
});

test("a client that has read the last event of a response can continue at once, also while the upstream keeps the stream open", async () => {
  let close;
  const until = new Promise((done) => { close = done; });
  const w = await world((body) => ({ ...say(body), until: w.e.requests.length === 1 ? until : undefined }));
  const client = w.client();
  const conv = await client.conversations.create();
  for await (const e of await client.responses.create({ model: "m", input: "one", conversation: conv.id, stream: true })) if (e.type === "response.completed") break;
  const next = await client.responses.create({ model: "m", input: "two", conversation: conv.id });
  close();
  same(next.output_text, "answer to two", "the next one");
  same(asked(w.e), ["one", "answer to one", "two"], "behind the first");
  w.end();
});

test("a response in the background is answered at once, polled, and can be cancelled", async () => {
  let open;
  const gate = new Promise((done) => { open = done; });
  const w = await world(async (body) => {
    await gate;
    return say(body);
  });
  const client = w.client();
  const r = await client.responses.create({ model: "m", input: "one", background: true });
  same(r.status, "queued", "at once");
  const doomed = await client.responses.create({ model: "m", input: "two", background: true });
  await until("both requests", () => w.e.requests.length === 2);
  same((await client.responses.cancel(doomed.id)).status, "cancelled", "cancelled");
  open();
  await until("the end", async () => (await client.responses.retrieve(r.id)).status === "completed");
  same(texts((await client.responses.retrieve(r.id)).output), ["answer to one"], "its output");
  same((await client.responses.retrieve(doomed.id)).status, "cancelled", "it stays cancelled");
  w.end();
});

test("a repeated request joins the response that it began", async () => {
  let open;
  const gate = new Promise((done) => { open = done; });
  const w = await world(async (body) => {
    await gate;
    return say(body);
  });
  const conv = await w.client().conversations.create();
  // This is what the client does at its time-out: the same body again, with a count.
  const post = (count, signal) => fetch(`${w.s.url}/v1/responses`, { method: "POST", signal, body: JSON.stringify({ model: "m", input: "one", conversation: conv.id }),
    headers: { authorization: `Bearer ${w.s.token}`, "content-type": "application/json", "x-stainless-retry-count": String(count) } });
  const gone = new AbortController();
  const first = post(0, gone.signal).catch((e) => e.name);
  await until("the request", () => w.e.requests.length === 1);
  gone.abort();
  same(await first, "AbortError", "the client left");
  const second = post(1);
  open();
  const r = await (await second).json();
  same(texts(r.output), ["answer to one"], "the answer");
  same(w.e.requests.length, 1, "the model was asked once");
  same((await w.client().conversations.items.list(conv.id)).data.length, 2, "and everything is stored once");
  w.end();
});

for (const stream of [false, true])
  test(`@openai/agents, ${stream ? "streamed" : "whole"}: conversationId, previousResponseId and a session, with calls of a tool`, async () => {
    const w = await world();
    const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: w.client(), useResponses: true }), tracingDisabled: true });
    const weather = tool({ name: "weather", description: "weather", strict: false,
      parameters: { type: "object", properties: { city: { type: "string" } }, required: [], additionalProperties: true }, execute: async () => "rain" });
    const agent = new Agent({ name: "a", instructions: "be brief", model: "m", tools: [weather] });
    const run = async (input, options) => {
      const r = await runner.run(agent, input, { ...options, stream });
      if (stream) {
        for await (const _ of r.toStream()) { /* until its end */ }
        await r.completed;
      }
      return r;
    };
    const conv = await w.client().conversations.create();
    same((await run("please call", { conversationId: conv.id })).finalOutput, "it says rain", "a call");
    same((await run("and then?", { conversationId: conv.id })).finalOutput, "answer to and then?", "the next turn");
    same(asked(w.e), ["please call", "weather", "rain", "it says rain", "and then?"], "the model saw everything");
    const a = await run("first", {});
    const b = await run("second", { previousResponseId: a.lastResponseId });
    same(b.finalOutput, "answer to second", "previousResponseId");
    same(asked(w.e), ["first", "answer to first", "second"], "the model saw the first");
    w.e.lenient = true; // the client sends ids of messages back, which its own types do not have
    const session = new OpenAIConversationsSession({ client: w.client() });
    await run("please call", { session });
    same((await run("once more", { session })).finalOutput, "answer to once more", "a session");
    same(asked(w.e).filter((t) => t !== "reasoning"), ["please call", "weather", "rain", "it says rain", "once more"], "its history");
    same(w.e.refusals, [], "refused");
    w.end();
  });

// ---- an upstream that has only chat completions ----

async function chatWorld(script, options) {
  const e = await new Endpoint("openai", script, options).start();
  const s = new Server();
  s.configure({ upstreams: { openai: { url: `${e.url}/v1`, key: "k" } }, responses: { upstream: "openai", wire: "chat" } });
  await s.start();
  const client = (Kind = OpenAI) => new Kind({ baseURL: `${s.url}/v1`, apiKey: s.token, maxRetries: 0 });
  return { e, s, client, end: () => { s.kill(); e.stop(); } };
}
const sayChat = (body) => {
  const last = lastOf("openai", body);
  if (last.results) return { text: `it says ${last.results[0]}` };
  if (/call/.test(last.user)) return { text: "I look", calls: [{ name: "weather", args: { city: "Graz" } }, { name: "weather", args: { city: "Linz" } }] };
  return { text: `answer to ${last.user}` };
};
const spoken = (e, n = -1) => e.requests.at(n).messages.map((m) => m.content ?? m.tool_calls?.[0].function.name);

for (const [name, Kind] of Object.entries({ openai6: OpenAI6, openai7: OpenAI }))
  for (const stream of [false, true])
    test(`chat completions behind ${name}, ${stream ? "streamed" : "whole"}: a conversation with calls, and the events of Responses`, async () => {
      const w = await chatWorld(sayChat);
      const client = w.client(Kind);
      const conv = await client.conversations.create();
      const tools = [{ type: "function", name: "weather", description: "d", strict: false, parameters: { type: "object" } }];
      const ask = async (input) => {
        const body = { model: "m", input, conversation: conv.id, instructions: "be brief", tools, max_output_tokens: 99, reasoning: { effort: "low" }, ...(!stream && { text: { format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: false } } }) }; // the text of a stream would have to be JSON
        return stream ? client.responses.stream(body).finalResponse() : client.responses.create(body);
      };
      const first = await ask("call it");
      same(first.output.map((o) => [o.type, o.name ?? o.content[0].text]), [["message", "I look"], ["function_call", "weather"], ["function_call", "weather"]], "output");
      same([first.status, first.conversation.id, first.usage.total_tokens > 0, first.instructions], ["completed", conv.id, true, "be brief"], "the response");
      const calls = first.output.filter((o) => o.type === "function_call");
      same(calls.map((c) => JSON.parse(c.arguments).city), ["Graz", "Linz"], "arguments");
      const second = await ask(calls.map((c) => ({ type: "function_call_output", call_id: c.call_id, output: "rain" })));
      same(second.output_text, "it says rain", "the answer");
      same(spoken(w.e), ["be brief", "call it", "I look", "rain", "rain"], "what the model was asked");
      const { model, messages, tools: nested, response_format, max_completion_tokens, reasoning_effort, stream: streamed, stream_options, ...rest } = w.e.requests[0];
      same([nested, response_format, max_completion_tokens, reasoning_effort, rest], [[{ type: "function", function: { name: "weather", description: "d", strict: false, parameters: { type: "object" } } }],
        stream ? undefined : { type: "json_schema", json_schema: { name: "n", schema: { type: "object" }, strict: false } }, 99, "low", {}], "as a chat completion says it");
      same(w.e.refusals, [], "refused");
      const items = [];
      for await (const i of client.conversations.items.list(conv.id, { order: "asc" })) items.push(i.type);
      same(items, ["message", "message", "function_call", "function_call", "function_call_output", "function_call_output", "message"], "items");
      w.end();
    });

test("chat completions: events are numbered, each piece comes once, and all can be read again after a kill", async () => {
  const w = await chatWorld(() => ({ text: "one two three", thinking: "hm" }), { lenient: true });
  const events = [];
  for await (const e of await w.client().responses.create({ model: "m", input: "q", stream: true })) events.push(e);
  same(events.map((e) => e.sequence_number), events.map((_, i) => i), "numbers without gaps");
  same([events[0].type, events.at(-1).type], ["response.created", "response.completed"], "first and last");
  same(events.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join(""), "one two three", "text");
  same(events.at(-1).response.output.at(-1).content[0].text, "one two three", "the whole of it");
  ok(events.filter((e) => e.type === "response.output_item.done").every((e, i) => e.output_index === i), "indexes");
  const id = events[0].response.id;
  await w.s.crash();
  const again = [];
  for await (const e of await w.client().responses.retrieve(id, { stream: true })) again.push(e);
  same(again, events, "the same events");
  w.end();
});

test("chat completions: reasoning is an item, a reply that was too long is incomplete, hosted tools are refused", async () => {
  const w = await chatWorld(sayChat);
  // Literal bytes, as endpoints send them.
  const chunk = (o, finish_reason = null) => `data: ${JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, delta: o, finish_reason }] })}\n\n`;
  const answers = {
    think: [chunk({ reasoning_content: "let me " }), chunk({ role: "assistant", reasoning_content: "see" }), chunk({ content: "yes" }), chunk({}, "stop"), "data: [DONE]\n\n"],
    long: [chunk({ content: "cut" }), chunk({ tool_calls: [{ index: 0, id: "x", type: "function", function: { name: "f", arguments: "{\"a\":" } }] }), chunk({}, "length"), "data: [DONE]\n\n"],
    error: [chunk({ content: "so" }), 'data: {"error":{"message":"it broke","code":"server_error"}}\n\n'],
    early: [chunk({ content: "so f" })],
  };
  const up = createServer(async (req, res) => {
    let text = "";
    for await (const p of req) text += p;
    const kind = JSON.parse(text).messages.at(-1).content;
    if (kind === "whole") return res.setHeader("content-type", "application/json").end(JSON.stringify({ choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "in one" } }], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, prompt_tokens_details: { cached_tokens: 2 } } }));
    res.setHeader("content-type", "text/event-stream");
    for (const a of answers[kind]) res.write(a);
    res.end();
  });
  await new Promise((r) => up.listen(0, "127.0.0.1", r));
  w.s.kill();
  await w.s.over;
  w.s.configure({ upstreams: { openai: { url: `http://127.0.0.1:${up.address().port}/v1`, key: "k" } }, responses: { wire: "chat" } });
  await w.s.start();
  const ask = (input, more = {}) => w.client().responses.create({ model: "m", input, ...more });
  const think = await ask("think");
  same(think.output.map((o) => [o.type, o.content[0].text]), [["reasoning", "let me see"], ["message", "yes"]], "reasoning");
  const long = await ask("long");
  same([long.status, long.incomplete_details.reason, long.output.map((o) => o.type)], ["incomplete", "max_output_tokens", ["message"]], "a cut call is not told");
  const whole = await ask("whole");
  same([whole.output_text, whole.usage.input_tokens, whole.usage.input_tokens_details.cached_tokens, whole.usage.output_tokens], ["in one", 3, 2, 4], "not streamed");
  for (const kind of ["error", "early"]) {
    const r = await ask(kind).catch((e) => e);
    ok(r.status === "failed" || r.status >= 500, `${kind} is a failure`, r.status);
    const streamed = await w.client().responses.stream({ model: "m", input: kind }).finalResponse().catch((e) => e);
    ok(streamed instanceof Error || streamed.status === "failed", `${kind} streamed`, streamed);
  }
  for (const type of ["web_search", "file_search", "custom"]) {
    const e = await ask("think", { tools: [{ type, name: "x" }] }).catch((x) => x);
    same([e.status, e.param], [400, "tools"], type);
  }
  up.closeAllConnections();
  up.close();
  w.end();
});

for (const stream of [false, true])
  test(`chat completions: @openai/agents with conversationId, ${stream ? "streamed" : "whole"}`, async () => {
    const w = await chatWorld(sayChat);
    const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: w.client(), useResponses: true }), tracingDisabled: true });
    const weather = tool({ name: "weather", description: "weather", strict: false,
      parameters: { type: "object", properties: { city: { type: "string" } }, required: [], additionalProperties: true }, execute: async () => "rain" });
    const agent = new Agent({ name: "a", instructions: "be brief", model: "m", tools: [weather] });
    const conv = await w.client().conversations.create();
    for (const [input, want] of [["please call", "it says rain"], ["and then?", "answer to and then?"]]) {
      const r = await runner.run(agent, input, { conversationId: conv.id, stream });
      if (stream) {
        for await (const _ of r.toStream()) { /* until its end */ }
        await r.completed;
      }
      same(r.finalOutput, want, "the answer");
    }
    same(spoken(w.e), ["be brief", "please call", "I look", "rain", "rain", "it says rain", "and then?"], "the model saw everything");
    same(w.e.refusals, [], "refused");
    w.end();
  });

await main();
