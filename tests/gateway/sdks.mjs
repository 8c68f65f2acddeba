// The recording gateway with the clients that people use, unmodified, in front of endpoints that judge
// every request: the answers are the same as without the gateway, and each conversation is recorded
// completely and once.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createServer } from "node:http";
import { needTypes } from "../strict/judges.mjs";
import { Server, load, main, ok, same, test, until } from "../http/lib.mjs";
import { recorded, said, shown, stored, world } from "./world.mjs";

needTypes();
const OpenAI = (await load("openai")).default;
const Anthropic = (await load("@anthropic-ai/sdk")).default;

const tools = [{ type: "function", function: { name: "ls", parameters: { type: "object" } } }];

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";
  test(`openai, chat completions, ${how}: the same answers, one conversation with every call and result`, async () => {
    const w = await world("openai");
    const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
    const messages = [{ role: "system", content: "be brief" }, { role: "user", content: "what is there?" }];
    for (let turn = 0; turn < 3; turn++) {
      for (let i = 0; i < 2; i++) {
        let reply;
        if (stream) {
          const s = client.chat.completions.stream({ model: "m", messages, tools });
          reply = (await s.finalChatCompletion()).choices[0].message;
        } else reply = (await client.chat.completions.create({ model: "m", messages, tools })).choices[0].message;
        const { role, content, tool_calls } = reply;
        messages.push({ role, content, ...(tool_calls?.length && { tool_calls: tool_calls.map(({ id, type, function: f }) => ({ id, type, function: { name: f.name, arguments: f.arguments } })) }) });
        for (const c of tool_calls ?? []) messages.push({ role: "tool", tool_call_id: c.id, content: "a.txt" });
      }
      messages.push({ role: "user", content: `and turn ${turn}?` });
    }
    same(w.e.refusals, [], "refused");
    const list = await recorded(w);
    same(list.length, 1, "conversations");
    same(list[0].messages.filter(shown).length, messages.length - 1, "messages");
    const own = messages.slice(0, -1).map((m) => m.tool_calls?.[0]?.id ?? m.tool_call_id ?? m.content);
    same(list[0].messages.filter(shown).map((m) => m.tool_calls?.[0]?.id ?? m.tool_call_id ?? m.content), own, "in order");
    same(list[0].messages.filter((m) => !shown(m)).length, 1, "prompt, tools and parameters, once");
    ok(w.e.requests.every((r) => r.messages), "requests");
    w.end();
  });

  test(`openai, Responses, ${how}: items come back one by one and become one conversation`, async () => {
    const w = await world("responses");
    const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
    const input = [{ role: "user", content: "what is there?" }];
    let replies = 0;
    for (let turn = 0; turn < 2; turn++) {
      for (let i = 0; i < 2; i++) {
        const body = { model: "m", input, store: false };
        const r = stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
        replies += r.output.length;
        input.push(...r.output.map(({ parsed, parsed_arguments, ...item }) => (item.type === "message"
          ? { ...item, content: item.content.map(({ parsed: p, ...c }) => c) } : item)));
        for (const c of r.output.filter((o) => o.type === "function_call"))
          input.push({ type: "function_call_output", call_id: c.call_id, output: "a.txt" });
      }
      input.push({ role: "user", content: `and turn ${turn}?` });
    }
    same(w.e.refusals, [], "refused");
    const list = await recorded(w);
    same(list.length, 1, "conversations");
    same(list[0].messages.filter(shown).length, input.length - 1, "items");
    w.end();
  });

  test(`@anthropic-ai/sdk, ${how}: thinking with its signature, calls and results, one conversation`, async () => {
    const w = await world("anthropic");
    const client = new Anthropic({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
    const messages = [{ role: "user", content: "what is there?" }];
    for (let turn = 0; turn < 2; turn++) {
      for (let i = 0; i < 2; i++) {
        const body = { model: "m", max_tokens: 100, system: "be brief", messages, tools: [{ name: "ls", input_schema: { type: "object" } }] };
        const r = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
        messages.push({ role: "assistant", content: r.content });
        const results = r.content.filter((b) => b.type === "tool_use").map((b) => ({ type: "tool_result", tool_use_id: b.id, content: "a.txt" }));
        if (results.length) messages.push({ role: "user", content: results });
      }
      messages.push({ role: "user", content: [{ type: "text", text: `and turn ${turn}?`, cache_control: { type: "ephemeral" } }] });
    }
    same(w.e.refusals, [], "refused");
    const list = await recorded(w);
    same(list.length, 1, "conversations");
    same(list[0].messages.filter(shown).map((m) => m.role), messages.slice(0, -1).map((m) => m.role), "roles");
    const replies = list[0].messages.filter((m) => m.role === "assistant");
    same(replies.map((m) => m.content), messages.filter((m) => m.role === "assistant").map((m) => m.content), "replies");
    w.end();
  });
}

test("a view of what was recorded is accepted by the endpoint again", async () => {
  const w = await world("openai");
  const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
  const messages = [{ role: "user", content: "x" }];
  const first = (await client.chat.completions.create({ model: "m", messages, tools })).choices[0].message;
  const [c] = await recorded(w);
  const view = await stored(w.s, c.id, "openai");
  const again = await client.chat.completions.create({ model: "m", messages: view, tools });
  ok(again.choices[0].message, "an answer");
  same(w.e.refusals, [], "refused");
  ok(first.tool_calls.length === 1, "a call");
  w.end();
});

test("sessions that share a system prompt and a first message are conversations of their own", async () => {
  let n = 0;
  const w = await world("openai", () => ({ text: `reply ${++n}` }));
  const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
  const sessions = Array.from({ length: 8 }, () => [{ role: "system", content: "shared" }, { role: "user", content: "hello" }]);
  for (let turn = 0; turn < 3; turn++)
    await Promise.all(sessions.map(async (messages, i) => {
      const r = await client.chat.completions.create({ model: "m", messages });
      messages.push({ role: "assistant", content: r.choices[0].message.content }, { role: "user", content: `${i}: turn ${turn}` });
    }));
  const list = await recorded(w);
  same(list.length, 8, "conversations");
  const got = list.map((c) => said(c.messages).join("|")).sort();
  same(got, sessions.map((m) => said(m.slice(0, -1)).join("|")).sort(), "histories");
  w.end();
});

test("an edited history is a fork that shares the messages before the edit", async () => {
  let n = 0;
  const w = await world("openai", () => ({ text: `reply ${++n}` }));
  const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
  const ask = async (messages) => (await client.chat.completions.create({ model: "m", messages })).choices[0].message.content;
  const a = [{ role: "user", content: "one" }];
  a.push({ role: "assistant", content: await ask(a) }, { role: "user", content: "two" });
  a.push({ role: "assistant", content: await ask(a) });
  const b = [...a.slice(0, 2), { role: "user", content: "two, but otherwise" }];
  b.push({ role: "assistant", content: await ask(b) });
  const list = await recorded(w);
  same(list.map((c) => said(c.messages).join("|")).sort(), [said(a).join("|"), said(b).join("|")].sort(), "two conversations");
  w.end();
});

test("an error, a cut stream and a retry are one conversation with one reply", async () => {
  const replies = [{ error: { status: 500, message: "broken" } }, { text: "half of the answer", cut: true }, { text: "the answer" }];
  const w = await world("openai", (_, n) => replies[Math.min(n, 2)]);
  const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
  const messages = [{ role: "user", content: "q" }];
  const stream = async () => {
    let text = "";
    for await (const c of await client.chat.completions.create({ model: "m", messages, stream: true })) text += c.choices[0]?.delta?.content ?? "";
    return text;
  };
  const failures = [];
  for (let i = 0; i < 3; i++) {
    try {
      same(await stream(), "the answer", "text");
    } catch (e) {
      failures.push(e.status ?? e.constructor.name);
    }
    await recorded(w);
  }
  same(failures.length, 2, "two attempts failed for the client as they did for the endpoint");
  same(failures[0], 500, "its status came through");
  const list = await recorded(w);
  same(list.length, 1, "conversations");
  same(said(list[0].messages), ["user:q", "assistant:the answer"], "what a model would be shown");
  const errors = list[0].messages.filter((m) => m.partType === "error");
  same(errors.map((m) => m.error.code), ["UPSTREAM_ERROR", "INCOMPLETE"], "both failures are recorded");
  ok(errors[1].content.length > 0 && "half of the answer".startsWith(errors[1].content), "with the text that had come", errors[1].content);
  w.end();
});

test("without a token the answer is 401 in the form of the API; with a token in the path the client's own key is passed on", async () => {
  const seen = [];
  const up = createServer((req, res) => {
    seen.push({ ...req.headers, url: req.url });
    res.setHeader("content-type", "application/json");
    res.end('{"ok":true}');
  });
  await new Promise((r) => up.listen(0, "127.0.0.1", r));
  const url = `http://127.0.0.1:${up.address().port}`;
  const s = new Server();
  s.configure({ upstreams: { openai: { url: `${url}/v1`, key: "real" }, anthropic: { url, key: "real" }, gemini: { url, key: "real" } } });
  await s.start();
  const get = (path, headers = {}) => fetch(s.url + path, { headers });
  for (const [path, shape] of [["/openai/v1/models", (e) => e.error.type === "authentication_error"],
    ["/anthropic/v1/models", (e) => e.type === "error" && e.error.type === "authentication_error"],
    ["/gemini/v1beta/models", (e) => e.error.status === "UNAUTHENTICATED"]]) {
    for (const headers of [{}, { authorization: "Bearer no" }, { "x-api-key": "no" }, { "x-goog-api-key": "no" }]) {
      const r = await get(path, headers);
      same(r.status, 401, path);
      ok(shape(await r.json()), `${path} in its shape`);
    }
    same((await get(`/~no${path}`, { authorization: `Bearer ${s.token}` })).status, 401, "a wrong token in the path");
    for (const headers of [{ authorization: `Bearer ${s.token}` }, { "x-api-key": s.token }, { "x-goog-api-key": s.token }]) {
      same((await get(path, headers)).status, 200, path);
      ok(!JSON.stringify(seen.at(-1)).includes(s.token) && JSON.stringify(seen.at(-1)).includes("real"), "our token stays here, the real key goes there", seen.at(-1));
    }
    same((await get(`${path}?key=${s.token}&a=1`)).status, 200, path);
    same(seen.at(-1).url.split("?")[1], "a=1", "the key is taken out of the query");
    same((await get(`/~${s.token}${path}?key=k`, { authorization: "Bearer own", "x-api-key": "own" })).status, 200, path);
    same([seen.at(-1).authorization, seen.at(-1)["x-api-key"], seen.at(-1).url.includes("key=k")], ["Bearer own", "own", true], "own credentials pass");
    same(seen.at(-1)["accept-encoding"], "identity", "accept-encoding");
  }
  same(seen.length > 10, true, "requests");
  same((await get(`/~${s.token}/api/chat-sessions`)).status, 401, "a token in the path is good for the gateway only");
  ok(!s.logged.includes(s.token), "no log has the token");
  const r = await fetch(`${s.url}/openai/v1/realtime`, { headers: { authorization: `Bearer ${s.token}`, "x-steno": "1" } });
  same(r.status, 200, "any route is passed on");
  s.kill();
  up.close();
});

test("an endpoint that closes a kept-alive connection gets no request twice, and the client gets an error", async () => {
  let n = 0;
  const up = createServer((req, res) => {
    req.resume();
    req.on("end", () => {
      if (++n === 2) return req.socket.destroy();
      res.setHeader("content-type", "application/json");
      res.end('{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}');
    });
  });
  await new Promise((r) => up.listen(0, "127.0.0.1", r));
  const s = new Server();
  s.configure({ upstreams: { openai: { url: `http://127.0.0.1:${up.address().port}`, key: "k" } } });
  await s.start();
  const ask = async () => (await s.ask("POST", "/openai/v1/chat/completions", { body: { messages: [{ role: "user", content: "q" }] } })).status;
  same([await ask(), await ask(), await ask()], [200, 502, 200], "answers");
  same(n, 3, "requests");
  s.kill();
  up.closeAllConnections();
  up.close();
});

test("kill -9 in the middle of an answer loses nothing that the client saw", async () => {
  const w = await world("openai");
  const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
  const up = createServer((req, res) => {
    req.resume();
    res.setHeader("content-type", "text/event-stream");
    let i = 0;
    const timer = setInterval(() => res.write(`data: ${JSON.stringify({ id: "x", choices: [{ index: 0, delta: { content: `w${i++} ` }, finish_reason: null }] })}\n\n`), 5);
    res.on("close", () => clearInterval(timer));
  });
  await new Promise((r) => up.listen(0, "127.0.0.1", r));
  w.s.kill();
  await w.s.over;
  w.s.configure({ upstreams: { openai: { url: `http://127.0.0.1:${up.address().port}`, key: "k" } } });
  await w.s.start();
  let text = "";
  try {
    for await (const c of await client.withOptions({ baseURL: w.s.url + w.prefix }).chat.completions.create({ model: "m", messages: [{ role: "user", content: "go" }], stream: true })) {
      text += c.choices[0].delta.content;
      if (text.length > 60 && w.s.child) w.s.kill();
    }
  } catch {
    // The connection was cut.
  }
  await w.s.over;
  ok(text.length > 60, "something was seen");
  up.closeAllConnections();
  up.close();
  await w.s.start();
  const [c] = await recorded(w);
  const kept = c.messages.find((m) => m.partType === "error").content;
  ok(kept.startsWith(text), "what was seen is recorded", text, kept);
  same(c.messages.filter((m) => m.role === "user").length, 1, "the question, once");
  ok(existsSync(w.s.gatewayFolder()), "folder");
  w.end();
});

test("SIGTERM while requests come: every answer that was begun is completed, and the server ends without an error", async () => {
  const up = createServer((req, res) => {
    req.resume();
    req.on("end", () => res.setHeader("content-type", "application/json").end('{"choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}]}'));
  });
  await new Promise((r) => up.listen(0, "127.0.0.1", r));
  const s = new Server();
  s.configure({ upstreams: { openai: { url: `http://127.0.0.1:${up.address().port}`, key: "k" } } });
  await s.start();
  let answered = 0, over = false;
  const client = async () => {
    while (!over) {
      const r = await s.ask("POST", "/openai/v1/chat/completions", { body: { messages: [{ role: "user", content: "q" }] } }).catch(() => null);
      if (!r) return;
      if (r.status === 200) same(r.json?.choices?.[0]?.message?.content, "whole", "an answer");
      answered += r.status === 200;
    }
  };
  const clients = Array.from({ length: 20 }, client);
  await until("some answers", () => answered > 40);
  same((await s.stop()).code, 0, "how it ended");
  over = true;
  await Promise.all(clients);
  up.closeAllConnections();
  up.close();
});

test("a client that leaves is noted, and the answer is recorded whole", async () => {
  const w = await world("openai", () => ({ text: "a long answer ".repeat(50) }));
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "go" }], stream: true });
  const gone = new AbortController();
  const r = await fetch(`${w.s.url}${w.prefix}/chat/completions`, { method: "POST", body, signal: gone.signal,
    headers: { authorization: `Bearer ${w.s.token}`, "content-type": "application/json" } });
  const reader = r.body.getReader();
  await reader.read();
  gone.abort();
  const [c] = await until("the recording", async () => {
    const list = await recorded(w);
    return list.length && list;
  });
  same(said(c.messages), ["user:go", `assistant:${"a long answer ".repeat(50)}`], "the whole exchange");
  w.end();
});

await main();
