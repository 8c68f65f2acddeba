// Answers that are damaged, odd or several at once. Whatever an endpoint sends, the client gets these
// bytes, and the record has them: as the reply where they can be read, otherwise unchanged. Every API,
// streamed and whole, with every kind of damage.
import { readdirSync } from "node:fs";
import { createServer as createTcp } from "node:net";
import { join } from "node:path";
import { Server, main, ok, same, test, until } from "../http/lib.mjs";

// ---- an endpoint that answers with bytes that the test chooses ----

const up = { answer: null };
const endpoint = createTcp((c) => {
  let got = Buffer.alloc(0);
  c.on("error", () => {});
  c.on("data", (d) => {
    got = Buffer.concat([got, d]);
    const end = got.indexOf("\r\n\r\n");
    const length = Number(/content-length: (\d+)/i.exec(got.toString("latin1"))?.[1] ?? 0);
    if (end < 0 || got.length < end + 4 + length) return;
    got = Buffer.alloc(0);
    up.answer(c);
  });
});
await new Promise((r) => endpoint.listen(0, "127.0.0.1", r));
const url = `http://127.0.0.1:${endpoint.address().port}`;
const s = new Server({ args: ["--no-tools"] });
s.configure({ upstreams: { openai: { url: `${url}/v1`, key: "real" }, gemini: { url, key: "real" }, anthropic: { url, key: "real" } } });
await s.start();

const SSE = "text/event-stream", JSONS = "application/json";
// With `missing` the answer breaks off: so many bytes fewer come than were announced.
function send(c, body, { type = JSONS, missing = 0, chunked = false } = {}) {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n`;
  if (chunked) {
    c.write(`${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`);
    c.write(body);
    if (missing) c.end("\r\n");
    else c.write("\r\n0\r\n\r\n");
  } else {
    c.write(`${head}Content-Length: ${body.length + missing}\r\n\r\n`);
    if (missing) c.end(body);
    else c.write(body);
  }
}

// ---- the four APIs ----

const sse = (events, named = false) => events.map((e) => `${named && e.type ? `event: ${e.type}\n` : ""}data: ${typeof e === "string" ? e : JSON.stringify(e)}\n\n`);
const words = (text) => [text.slice(0, 3), text.slice(3)];
const WIRES = {
  chat: {
    path: () => "/openai/v1/chat/completions",
    ask: (list) => ({ model: "m", messages: list.map(([role, content]) => ({ role, content })) }),
    whole: (text, choices = [text]) => ({ id: "c1", model: "m", choices: choices.map((t, index) => ({ index, finish_reason: "stop", message: { role: "assistant", content: t, extra: 1 } })) }),
    events: (text, choices = [text]) => sse([
      ...choices.map((t, index) => ({ id: "c1", choices: [{ index, delta: { role: "assistant", content: words(t)[0] } }] })),
      ...choices.map((t, index) => ({ id: "c1", choices: [{ index, delta: { content: words(t)[1] } }] })),
      ...choices.map((t, index) => ({ id: "c1", choices: [{ index, delta: {}, finish_reason: "stop" }] })), "[DONE]"]),
    role: "assistant", said: (m) => m.content, choice: (c) => [c.index, c.message.content, c.finish_reason],
    calls: (list) => ({ id: "c1", choices: [{ index: 0, finish_reason: "tool_calls", message: { role: "assistant", content: null, tool_calls: list.map(([id, args]) => ({ id, type: "function", function: { name: "f", arguments: args } })) } }] }),
    callEvents: (list) => sse([...list.flatMap(([id, args], index) => [
      { choices: [{ index: 0, delta: { tool_calls: [{ index, id, type: "function", function: { name: "f", arguments: "" } }] } }] },
      { choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: args } }] } }] }]),
      { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }, "[DONE]"]),
    called: (m) => m.tool_calls.map((c) => [c.id, c.function.arguments]),
    results: (m) => [m, ...m.tool_calls.map((c, i) => ({ role: "tool", tool_call_id: c.id, content: `r${i}` }))],
    list: "messages",
  },
  responses: {
    path: () => "/openai/v1/responses",
    ask: (list) => ({ model: "m", input: list.map(([role, content]) => ({ role, content })) }),
    whole: (text) => ({ object: "response", id: "resp_1", status: "completed", output: [{ type: "message", id: "i1", role: "assistant", content: [{ type: "output_text", text }] }] }),
    events: (text) => sse([{ type: "response.created", response: { id: "resp_1", status: "in_progress" } },
      ...words(text).map((delta) => ({ type: "response.output_text.delta", output_index: 0, delta })),
      { type: "response.output_item.done", output_index: 0, item: WIRES.responses.whole(text).output[0] },
      { type: "response.completed", response: WIRES.responses.whole(text) }], true),
    role: "assistant", said: (m) => m.content?.[0]?.text,
    calls: (list) => ({ object: "response", id: "resp_1", status: "completed", output: list.map(([id, args]) => ({ type: "function_call", call_id: id, name: "f", arguments: args })) }),
    callEvents: (list) => sse([...WIRES.responses.calls(list).output.map((item, output_index) => ({ type: "response.output_item.done", output_index, item })), { type: "response.completed", response: WIRES.responses.calls(list) }], true),
    called: (m, all) => all.filter((x) => x.type === "function_call").map((c) => [c.call_id, c.arguments]),
    results: (m, all) => { const calls = all.filter((x) => x.type === "function_call"); return [...calls, ...calls.map((c, i) => ({ type: "function_call_output", call_id: c.call_id, output: `r${i}` }))]; },
    list: "input",
  },
  anthropic: {
    path: () => "/anthropic/v1/messages",
    ask: (list) => ({ model: "m", max_tokens: 9, messages: list.map(([role, content]) => ({ role, content })) }),
    whole: (text) => ({ id: "msg_1", type: "message", role: "assistant", model: "m", content: [{ type: "text", text }], stop_reason: "end_turn", usage: { input_tokens: 1, output_tokens: 1 } }),
    events: (text) => sse([{ type: "message_start", message: { ...WIRES.anthropic.whole(text), content: [], stop_reason: null } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      ...words(text).map((t) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: t } })),
      { type: "content_block_stop", index: 0 }, { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } }, { type: "message_stop" }], true),
    role: "assistant", said: (m) => m.content?.[0]?.text,
    calls: (list) => ({ id: "msg_1", type: "message", role: "assistant", content: list.map(([id, args]) => ({ type: "tool_use", id, name: "f", input: args.startsWith("{\"") ? JSON.parse(args) : {} })), stop_reason: "tool_use" }),
    callEvents: (list) => sse([{ type: "message_start", message: { role: "assistant", content: [] } }, ...list.flatMap(([id, args], index) => [
      { type: "content_block_start", index, content_block: { type: "tool_use", id, name: "f", input: {} } },
      { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: args } }, { type: "content_block_stop", index }]),
      { type: "message_delta", delta: { stop_reason: "tool_use" } }, { type: "message_stop" }], true),
    called: (m) => m.content.map((c) => [c.id, typeof c.input === "string" ? c.input : JSON.stringify(c.input)]),
    results: (m) => [m, { role: "user", content: m.content.map((c, i) => ({ type: "tool_result", tool_use_id: c.id, content: `r${i}` })) }],
    list: "messages",
  },
  gemini: {
    path: (stream) => `/gemini/v1beta/models/m:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    ask: (list) => ({ contents: list.map(([role, text]) => ({ role: role === "user" ? "user" : "model", parts: [{ text }] })) }),
    whole: (text, choices = [text]) => ({ responseId: "g1", candidates: choices.map((t, index) => ({ index, content: { role: "model", parts: [{ text: t }] }, finishReason: "STOP" })) }),
    events: (text, choices = [text]) => sse([
      ...choices.map((t, index) => ({ candidates: [{ index, content: { role: "model", parts: [{ text: words(t)[0] }] } }] })),
      ...choices.map((t, index) => ({ candidates: [{ index, content: { role: "model", parts: [{ text: words(t)[1] }] }, finishReason: "STOP" }] }))]),
    role: "model", said: (m) => m.parts?.map((p) => p.text).join(""), choice: (c) => [c.index, c.content.parts[0].text, c.finishReason],
    calls: (list) => ({ candidates: [{ content: { role: "model", parts: list.map(([id, args]) => ({ functionCall: { id, name: "f", args: JSON.parse(args) } })) }, finishReason: "STOP" }] }),
    callEvents: (list) => sse([WIRES.gemini.calls(list)]),
    called: (m) => m.parts.map((p) => [p.functionCall.id, JSON.stringify(p.functionCall.args)]),
    results: (m) => [m, { role: "user", parts: m.parts.map((p, i) => ({ functionResponse: { id: p.functionCall.id, name: "f", response: { output: `r${i}` } } })) }],
    list: "contents",
  },
};
const EACH = Object.keys(WIRES).flatMap((wire) => [false, true].map((stream) => ({ wire, stream, w: WIRES[wire], name: `${wire}, ${stream ? "streamed" : "whole"}` })));

// ---- asking, and what was recorded ----

let count = 0;
const fresh = () => `q${++count}`;
async function post(k, body, headers = {}) {
  const r = await fetch(s.url + k.w.path(k.stream), { method: "POST", body: JSON.stringify({ ...body, ...(k.stream && k.wire !== "gemini" ? { stream: true } : {}) }),
    headers: { authorization: `Bearer ${s.token}`, "content-type": "application/json", ...headers } });
  try {
    return Buffer.from(await r.arrayBuffer());
  } catch {
    return "cut";
  }
}
const settled = () => until("the recorder", () => readdirSync(s.gatewayFolder()).every((n) => !n.startsWith("ex_")));
const stored = async (id) => (await s.must("GET", `/api/chat-sessions/${id}/messages?format=stored&limit=1000`)).messages.map((m) => m.m);
const kept = (m) => (m.raw !== undefined ? Buffer.from(m.raw) : m.base64 !== undefined ? Buffer.from(m.base64, "base64") : null);
const shown = (m) => m.includeInContext !== false;

// One request with its answer, in a conversation of its own.
async function tell(k, body, options = {}) {
  const id = fresh();
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(Array.isArray(body) ? body.join("") : typeof body === "string" ? body : JSON.stringify(body));
  up.answer = (c) => send(c, bytes, { type: k.stream ? SSE : JSONS, ...options });
  const got = await post(k, k.w.ask([["user", id]]), { "x-steno-conversation": id });
  await settled();
  const all = await stored(id);
  const told = all.slice(all.findIndex((m) => JSON.stringify(m).includes(id)) + 1);
  return { id, bytes, got, all: told, replies: told.filter(shown), beside: told.filter((m) => !shown(m)) };
}
// The client and the record got every byte, and the record says why.
function wholly(name, r, why) {
  ok(Buffer.isBuffer(r.got) && r.got.equals(r.bytes), `${name}: the client's bytes`, String(r.got).slice(0, 200));
  const one = r.beside.find((m) => kept(m)?.equals(r.bytes));
  ok(one, `${name}: the recorded bytes`, JSON.stringify(r.all).slice(0, 600));
  ok(why.test(one.error?.message ?? one.content), `${name}: the word why`, one.error?.message ?? one.content);
  return one;
}

test("an answer without a fault is recorded as its reply alone", async () => {
  for (const k of EACH) {
    const r = await tell(k, k.stream ? k.w.events("hello") : k.w.whole("hello"));
    same([k.name, r.got.equals(r.bytes), r.replies.map(k.w.said), r.beside.length], [k.name, true, ["hello"], 0], k.name);
  }
});

test("a line of a stream that is not JSON does not damage the reply, wherever it is", async () => {
  for (const k of EACH.filter((e) => e.stream)) {
    const events = k.w.events("hello");
    const junk = ["data: not json\n\n", "data: [1]\n\n", Buffer.from("data: {\"a\":\"\xff\xfe\"}\n\n", "latin1"), "data: {\"choices\":\n\n"];
    const places = [0, 1, events.length - 2, events.length - 1].filter((n, i, all) => n >= 0 && all.indexOf(n) === i);
    for (const at of places) {
      const one = junk[(at + count) % junk.length];
      const r = await tell(k, Buffer.concat([...events.slice(0, at), one, ...events.slice(at)].map((e) => Buffer.from(e))));
      same(r.replies.map(k.w.said), ["hello"], `${k.name}, before event ${at}`);
      wholly(`${k.name}, before event ${at}`, r, /event \d+ of the stream is not a JSON object/);
    }
  }
});

test("an answer that cannot be read keeps its bytes", async () => {
  const bad = Buffer.from(JSON.stringify({ id: "t", choices: [{ index: 0, message: { role: "assistant", content: "a\xff\xfeb" }, finish_reason: "stop" }] }), "latin1");
  for (const k of EACH.filter((e) => !e.stream)) {
    const cut = JSON.stringify(k.w.whole("hello")).slice(0, -5);
    for (const body of ["{}", "[]", "null", "7", "\"x\"", "not json", "<html>é</html>", cut, bad, Buffer.from([0, 1, 255]), "{\"choices\":[],\"output\":[],\"candidates\":[]}"]) {
      const r = await tell(k, body);
      const one = wholly(`${k.name}, ${String(body).slice(0, 20)}`, r, /./);
      same([one.partType, one.error?.code, r.replies.length], ["error", "UNREADABLE", 0], `${k.name}, ${String(body).slice(0, 20)}: ${JSON.stringify(r.all)}`);
    }
    const r = await tell(k, "");
    same(r.beside.map((m) => m.error?.code), ["UNREADABLE"], `${k.name}, nothing at all`);
  }
  for (const k of EACH.filter((e) => e.stream)) {
    const r = await tell(k, Buffer.from("data: \xff\n\n: nothing\n\n", "latin1"));
    same(wholly(k.name, r, /./).error.code, "INCOMPLETE", k.name);
  }
});

test("a stream with the type of JSON, and JSON with the type of a stream, are read by their contents", async () => {
  for (const k of EACH) {
    const r = await tell(k, k.stream ? k.w.events("hello") : k.w.whole("hello"), { type: k.stream ? JSONS : SSE });
    same(r.replies.map(k.w.said), ["hello"], k.name);
  }
});

test("a member that occurs twice is recorded as it came, and never joined", async () => {
  for (const k of EACH) {
    const twice = (text) => text.replace(/"(content|text|delta)":"(\w+)"/, "\"$1\":\"XX\",\"$1\":\"$2\"");
    const body = k.stream ? k.w.events("hello").map((e, i, all) => (all.findIndex((x) => twice(x) !== x) === i ? twice(e) : e)) : twice(JSON.stringify(k.w.whole("hello")));
    const r = await tell(k, body);
    wholly(k.name, r, /occurs twice/);
    same(r.replies.map(k.w.said), ["hello"], k.name);
    if (k.stream) continue;
    const lines = (await s.ask("GET", `/api/chat-sessions/${r.id}/messages?format=stored&limit=100`)).text;
    ok(/"(content|text)":"XX","(content|text)":"hello"/.test(lines), `${k.name}: both are in the reply`, lines);
  }
});

test("a role that a reply cannot have is reported, and the reply is kept", async () => {
  for (const k of EACH.filter((e) => e.wire !== "responses")) {
    const wizard = (text) => text.replaceAll(`"role":"${k.w.role}"`, "\"role\":\"wizard\"");
    const r = await tell(k, wizard(k.stream ? k.w.events("hello").join("") : JSON.stringify(k.w.whole("hello"))));
    wholly(k.name, r, /the role "wizard"/);
    same(r.replies.map((m) => [m.role, k.w.said(m)]), [[k.w.role, "hello"]], k.name);
  }
});

test("an answer that breaks off is not a reply, its bytes are kept, and a repetition is the next attempt", async () => {
  for (const k of EACH)
    for (const chunked of [false, true]) {
      const q = fresh(), name = `${k.name}${chunked ? ", in chunks" : ""}`;
      const text = Buffer.from(k.stream ? k.w.events("hello").slice(0, -1).join("") : JSON.stringify(k.w.whole("hello")));
      for (const missing of [1, 1, 0]) {
        const body = missing ? text : Buffer.from(k.stream ? k.w.events("hello").join("") : text);
        up.answer = (c) => send(c, body, { type: k.stream ? SSE : JSONS, missing, chunked });
        const got = await post(k, k.w.ask([["user", q]]));
        same(got === "cut", missing === 1, `${name}: the client sees it`);
        await settled();
      }
      const mine = [];
      for (const c of (await s.must("GET", "/api/chat-sessions?limit=1000")).items)
        if (c.title === q) mine.push(await s.must("GET", `/api/chat-sessions/${c.id}/messages?format=stored&limit=100`));
      same(mine.length, 1, `${name}: one conversation`);
      same(mine[0].messages.map((m) => m.m).filter((m) => shown(m) && m.role !== "user").map(k.w.said), ["hello"], `${name}: one reply`);
      const r = await tell(k, text, { missing: 1, chunked });
      const one = r.beside.find((m) => m.error);
      same([one?.error.code, kept(one)?.equals(text), r.got], ["INCOMPLETE", true, "cut"], `${name}: ${JSON.stringify(r.all)}`);
    }
});

test("calls keep the ids and arguments that the endpoint gave them, and the client's results continue the conversation", async () => {
  const lists = [[["call_0", "{\"a\":1}"], ["call_0", "{\"a\":2}"]], [["", "{\"a\":1}"], ["", "{\"a\":2}"]], [["a b\t", "{\"a\":1}"]]];
  for (const k of EACH)
    for (const list of lists) {
      const name = `${k.name}, ${JSON.stringify(list)}`, q = fresh();
      const body = Buffer.from(k.stream ? k.w.callEvents(list).join("") : JSON.stringify(k.w.calls(list)));
      up.answer = (c) => send(c, body, { type: k.stream ? SSE : JSONS });
      await post(k, k.w.ask([["user", q]]));
      await settled();
      const find = async () => {
        const ids = (await s.must("GET", "/api/chat-sessions?limit=1000")).items.filter((c) => c.title === q).map((c) => c.id);
        return Promise.all(ids.map(stored));
      };
      const [all] = await find();
      const replies = all.filter((m) => shown(m) && m.role !== "user");
      // A stream expresses a call without an id by leaving the id out.
      same(k.w.called(replies[0], replies).map(([id, args]) => [id ?? "", args]), list, name);
      const request = k.w.ask([["user", q]]);
      request[k.w.list].push(...k.w.results(replies[0], replies));
      up.answer = (c) => send(c, Buffer.from(k.stream ? k.w.events("done!").join("") : JSON.stringify(k.w.whole("done!"))), { type: k.stream ? SSE : JSONS });
      await post(k, request);
      await settled();
      const now = await find();
      same([now.length, k.w.said(now[0].at(-1))], [1, "done!"], `${name}: one conversation`);
    }
});

test("arguments that are not JSON stay unchanged, byte for byte", async () => {
  for (const k of EACH.filter((e) => e.wire !== "gemini" && (e.wire !== "anthropic" || e.stream)))
    for (const args of ["{\"a\": 1.0, }", "{\"a\":", "x", "[1]"]) {
      const r = await tell(k, k.stream ? k.w.callEvents([["c1", args]]) : k.w.calls([["c1", args]]));
      same(k.w.called(r.replies[0], r.replies), [["c1", args]], `${k.name}, ${args}`);
      if (k.wire === "anthropic") continue; // the arguments of its calls are a value, which may be a string
      // Only arguments that end too early were cut off; it is not known whether the app ran the others.
      const report = await s.must("GET", `/api/chat-sessions/${r.id}/messages?format=openai&strict=1&limit=100`);
      same(report.repairs.map((x) => x.class), [args.endsWith(":") ? "cut" : "unrecorded"], `${k.name}, ${args}: ${JSON.stringify(report)}`);
    }
});

test("every choice of an answer is recorded, and a client may continue with any of them", async () => {
  for (const k of EACH.filter((e) => e.w.choice))
    for (const taken of [0, 1, 2]) {
      const q = fresh(), texts = ["zero", "first", "second"];
      up.answer = (c) => send(c, Buffer.from(k.stream ? k.w.events("", texts).join("") : JSON.stringify(k.w.whole("", texts))), { type: k.stream ? SSE : JSONS });
      await post(k, k.w.ask([["user", q]]));
      await settled();
      const find = async () => (await s.must("GET", "/api/chat-sessions?limit=1000")).items.filter((c) => c.title === q);
      const name = `${k.name}, goes on with ${taken}`;
      let [c, ...rest] = await find();
      const first = await stored(c.id);
      same([rest.length, first.filter((m) => shown(m) && m.role !== "user").map(k.w.said)], [0, ["zero"]], name);
      const finish = k.wire === "chat" ? "stop" : "STOP";
      same(first.filter((m) => m.partType === "choice").map((m) => [m.content, ...k.w.choice(m.choice)]), [["first", 1, "first", finish], ["second", 2, "second", finish]], `${name}: the others`);
      up.answer = (x) => send(x, Buffer.from(k.stream ? k.w.events("done!").join("") : JSON.stringify(k.w.whole("done!"))), { type: k.stream ? SSE : JSONS });
      await post(k, k.w.ask([["user", q], ["assistant", texts[taken]], ["user", "go on"]]));
      await settled();
      const now = await find();
      same(now.length, 1, `${name}: one conversation`);
      const view = (await s.must("GET", `/api/chat-sessions/${c.id}/messages?format=openai&strict=1&limit=100`)).messages;
      same(view.map((m) => (typeof m.content === "string" ? m.content : m.content.map((p) => p.text).join(""))), [q, texts[taken], "go on", "done!"], name);
      // Another client with the same history that takes another choice makes a fork.
      await post(k, k.w.ask([["user", q], ["assistant", texts[(taken + 1) % 3]], ["user", "elsewhere"]]));
      await settled();
      same((await find()).length, 2, `${name}: a fork`);
      const again = (await s.must("GET", `/api/chat-sessions/${c.id}/messages?format=openai&strict=1&limit=100`)).messages.length;
      same(again, 4, `${name}: what went on before stays`);
    }
});

test("events behind the end of an answer, and an answer without a message, are kept", async () => {
  for (const k of EACH.filter((e) => e.stream && e.wire !== "gemini")) {
    const events = k.w.events("hello");
    const r = await tell(k, [...events, events[1]]);
    same(r.replies.map(k.w.said), ["hello"], k.name);
    wholly(k.name, r, /1 event came after the end/);
  }
  const k = EACH.find((e) => e.wire === "gemini" && !e.stream);
  const r = await tell(k, { candidates: [{ finishReason: "SAFETY", index: 0 }] });
  same(wholly(k.name, r, /no message/).partType, "answer", k.name);
});

test("pieces of a stream are joined: objects, and lists of parts with text between them", async () => {
  const k = EACH.find((e) => e.wire === "chat" && e.stream);
  const delta = (list) => sse([...list.map((d) => ({ choices: [{ index: 0, delta: d }] })), { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]"]);
  const part = (text) => ({ type: "text", text });
  const cases = [
    [[{ audio: { id: "au", data: "QUJD" } }, { audio: { id: "au", data: "REVG", expires_at: 5 } }], { content: "", audio: { id: "au", data: "QUJDREVG", expires_at: 5 } }],
    [[{ x: { a: { b: "1" }, l: [1] } }, { x: { a: { b: "2" }, l: [2], n: null } }, { x: null }], { content: "", x: { a: { b: "12" }, l: [1, 2], n: null } }],
    [[{ content: [{ type: "thinking", thinking: [part("T")] }] }, { content: "the " }, { content: "answer" }], { content: [{ type: "thinking", thinking: [part("T")] }, part("the answer")] }],
    [[{ content: "a" }, { content: [part("b")] }, { content: "c" }, { content: [part("d")] }, { content: "" }], { content: [part("a"), part("b"), part("c"), part("d")] }],
    [[{ content: [] }, { content: "c\"\ud83d" }, { content: "\ude00" }], { content: [part("c\"😀")] }],
    [[{ tool_calls: [{ index: 0, id: "c", type: "custom", custom: { name: "x", input: "a" } }] }, { tool_calls: [{ index: 0, custom: { input: "b" } }] }], { content: null, tool_calls: [{ id: "c", type: "custom", custom: { name: "x", input: "ab" } }] }],
    [[{ function_call: { name: "f", arguments: "{" } }, { function_call: { arguments: "}" } }], { content: null, function_call: { name: "f", arguments: "{}" } }],
    [[{ tool_calls: [{ index: 0, function: { name: "", arguments: "" } }] }], { content: null, tool_calls: [{ function: { name: "", arguments: "" } }] }],
  ];
  for (const [pieces, want] of cases) {
    const r = await tell(k, delta(pieces));
    same(r.replies.map((m) => ({ ...m })), [{ role: "assistant", ...want }].map((m) => Object.fromEntries(Object.keys(r.replies[0] ?? {}).map((n) => [n, m[n]]))), JSON.stringify(pieces));
    same(Object.keys(r.replies[0]).sort(), Object.keys({ role: 1, ...want }).sort(), JSON.stringify(pieces));
    same(r.beside.length, 0, JSON.stringify(pieces));
  }
  for (const kinds of [[{ a: 1 }, "text"], [[part("a")], 5], ["text", { a: 1 }]])
    wholly(JSON.stringify(kinds), await tell(k, delta(kinds.map((content) => ({ content })))), /belong to no part/);
});

test("a request that cannot be read is passed on, and kept with a note about it", async () => {
  const bodies = [Buffer.from("\ufeff{\"messages\":[]}"), Buffer.from("{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", "latin1"), "{\"messages\":[],\"t\":NaN}", "{\"messages\":[],}",
    `{"messages":${"[".repeat(600)}${"]".repeat(600)}}`, "", "x"];
  const files = () => readdirSync(s.gatewayFolder()).filter((n) => n.startsWith("kept_"));
  for (const k of EACH.filter((e) => !e.stream))
    for (const body of bodies) {
      const before = files().length;
      up.answer = (c) => send(c, Buffer.from(JSON.stringify(k.w.whole("hello"))));
      const r = await fetch(s.url + k.w.path(false), { method: "POST", body, headers: { authorization: `Bearer ${s.token}`, "content-type": "application/json" } });
      same([r.status, k.w.said(k.wire === "chat" ? (await r.json()).choices[0].message : { content: [{ text: "hello" }], parts: [{ text: "hello" }] })], [200, "hello"], `${k.name}, ${String(body).slice(0, 30)}`);
      await settled();
      same(files().length, before + 1, `${k.name}, ${String(body).slice(0, 30)}: it is kept`);
    }
  const words = await until("the words", () => s.logged.split("\n").filter((l) => l.includes("not JSON that can be read")).length === bodies.length * 4 && s.logged);
  for (const name of files()) ok(words.includes(name), "the server names each", name);
});

test("the other parts of a cut reply are recorded as far as they came", async () => {
  const thinking = {
    chat: [{ choices: [{ index: 0, delta: { role: "assistant", reasoning_content: "REASON" } }] }, { choices: [{ index: 0, delta: { content: "TEXT" } }] },
      { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "f", arguments: "{}" } }] } }] }],
    anthropic: [{ type: "message_start", message: { role: "assistant", content: [] } }, { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "REASON", signature: "s" } },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "TEXT" } }, { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: "c1", name: "f", input: {} } }],
    gemini: [{ candidates: [{ index: 0, content: { role: "model", parts: [{ text: "REASON", thought: true }, { text: "TEXT" }, { functionCall: { id: "c1", name: "f", args: {} } }] } }] }],
  };
  for (const k of EACH.filter((e) => e.stream && thinking[e.wire])) {
    const r = await tell(k, sse(thinking[k.wire], k.wire === "anthropic"), { missing: 1 });
    const one = r.beside.find((m) => m.error);
    const said = JSON.stringify(one.reply);
    ok(["REASON", "TEXT", "c1"].every((t) => said?.includes(t)) && one.content === "TEXT", k.name, JSON.stringify(one));
    ok(/ended before the reply was complete|broke off the answer/.test(one.error.message) && r.replies.length === 0, `${k.name}: the words`, one.error.message);
  }
  const k = EACH.find((e) => e.wire === "responses" && e.stream);
  const r = await tell(k, k.w.events("hello").slice(0, -1), { missing: 1 });
  same([r.replies.map(k.w.said), r.beside.map((m) => m.content)], [["hello"], [""]], "an item that is whole is not told twice");
  const g = EACH.find((e) => e.wire === "gemini" && !e.stream);
  const blocked = await tell(g, { promptFeedback: { blockReason: "SAFETY" } });
  same(blocked.beside.map((m) => m.error?.message), ["the endpoint refused the prompt: SAFETY"], "a prompt that was refused");
});

test("a named conversation that was removed is made again under its name, with its parameters", async () => {
  for (const k of EACH.filter((e) => !e.stream))
    for (const same_again of [true, false]) {
      const id = fresh();
      const ask = async (text) => {
        up.answer = (c) => send(c, Buffer.from(JSON.stringify(k.w.whole("hello"))));
        await post(k, { ...k.w.ask([["user", text]]), temperature: 0.5 }, { "x-steno-conversation": id });
        await settled();
      };
      await ask("one");
      const before = await stored(id);
      s.cli("-y", "rm", id);
      await until("its end", async () => (await s.ask("GET", `/api/chat-sessions/${id}/messages?format=stored`)).status === 404);
      await ask(same_again ? "one" : "two");
      const shape = (list) => list.map((m) => [m.role, m.partType, JSON.stringify(m.request)]);
      same(shape(await stored(id)), shape(before), `${k.name}, ${same_again ? "the same" : "another"} request`);
    }
});

await main();
