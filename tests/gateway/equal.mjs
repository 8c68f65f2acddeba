// A client gets through the gateway what the endpoint sent, byte for byte: for every API, streamed and
// not, with errors, cut-offs and missing ends; with the providers' clients, and 64 at once.
import { createServer } from "node:http";
import { connect } from "node:net";
import { Server, load, long, main, ok, random, same, test } from "../http/lib.mjs";
import { needTypes } from "../strict/judges.mjs";
import { wires } from "../strict/wires.mjs";
import { recorded, world } from "./world.mjs";
import { apps } from "./apps.mjs";

needTypes();
const { Agent, OpenAIProvider, Runner, tool } = await load("@openai/agents");
const OpenAI = (await load("openai7")).default;

const routes = {
  openai: { prefix: "/openai/v1", path: "/chat/completions", body: (stream) => ({ model: "m", stream, messages: [{ role: "user", content: "hi" }] }) },
  responses: { prefix: "/openai/v1", path: "/responses", body: (stream) => ({ model: "m", stream, input: "hi" }) },
  anthropic: { prefix: "/anthropic", path: "/v1/messages", body: (stream) => ({ model: "m", max_tokens: 9, stream, messages: [{ role: "user", content: "hi" }] }) },
  gemini: { prefix: "/gemini", path: (stream) => `/v1beta/models/m:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`, body: () => ({ contents: [{ role: "user", parts: [{ text: "hi" }] }] }) },
};
const replies = {
  words: { text: "Grüße 🙂 and \u2028 more".repeat(3) },
  call: { text: "look", calls: [{ id: "call_1", name: "ls", args: { a: 1 } }] },
  thinking: { text: "x", thinking: "hm" },
};
// How an answer ends: as it should, with an error's status, broken off, or cleanly without its last event.
const endings = ["whole", "error", "cut", "early", "odd"];

// An endpoint of raw bytes, which sends everybody who asks the same request the same answer.
async function endpoint() {
  const server = createServer(async (req, res) => {
    let text = "";
    for await (const p of req) text += p;
    const [provider, kind, ending, stream] = req.headers["x-case"].split(" ");
    const body = JSON.parse(text);
    if (ending === "error") {
      res.writeHead(429, { "content-type": "application/json", "retry-after": "7", "x-request-id": "req_7" });
      return res.end(JSON.stringify(wires[provider].error(429, "slow down")));
    }
    const whole = wires[provider].reply({ text: "", calls: [], finish: null, serial: 1, ...replies[kind] }, null, body);
    if (stream !== "true") {
      res.writeHead(200, { "content-type": "application/json", "x-request-id": "req_1", ...(ending === "cut" && { "content-length": "100000" }) });
      return ending === "cut" ? res.write('{"half":', () => res.destroy()) : res.end(JSON.stringify(whole.json));
    }
    res.writeHead(200, { "content-type": "text/event-stream", "x-request-id": "req_2" });
    const events = whole.events.map((e) => `${e.event ? `event: ${e.event}\n` : ""}data: ${typeof e.data === "string" ? e.data : JSON.stringify(e.data)}\n\n`);
    if (ending === "odd") events.splice(1, 0, ": a comment\n\n", "id: 7\nretry: 100\nevent: unknown.kind\ndata: {\"type\":\"unknown.kind\",\"x\":[1,2.0]}\r\n\r\n");
    const some = ending === "cut" || ending === "early" ? events.slice(0, Math.ceil(events.length / 2)) : events;
    for (const e of some) res.write(e);
    if (ending === "cut") setTimeout(() => res.destroy(), 20);
    else res.end();
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return { port: server.address().port, end: () => { server.closeAllConnections(); server.close(); } };
}

// Status, the headers that matter, the body without its framing, and whether it ended as HTTP says.
const ask = (port, path, body, headers) => new Promise((done) => {
  const text = JSON.stringify(body);
  const socket = connect(port, "127.0.0.1");
  let raw = Buffer.alloc(0);
  const lines = { host: `127.0.0.1:${port}`, "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers };
  socket.write(`POST ${path} HTTP/1.1\r\n${Object.entries(lines).map(([k, v]) => `${k}: ${v}`).join("\r\n")}\r\nconnection: close\r\n\r\n${text}`);
  socket.on("data", (d) => { raw = Buffer.concat([raw, d]); });
  socket.on("error", () => {});
  socket.on("close", () => {
    const at = raw.indexOf("\r\n\r\n");
    const head = raw.subarray(0, at).toString("latin1").split("\r\n");
    const names = Object.fromEntries(head.slice(1).map((l) => [l.slice(0, l.indexOf(":")).toLowerCase(), l.slice(l.indexOf(":") + 1).trim()]));
    let rest = raw.subarray(at + 4), bytes = [], clean = false;
    if (/chunked/.test(names["transfer-encoding"] ?? "")) {
      for (;;) {
        const end = rest.indexOf("\r\n");
        if (end < 0) break;
        const n = parseInt(rest.subarray(0, end).toString(), 16);
        if (n === 0) { clean = true; break; }
        bytes.push(rest.subarray(end + 2, end + 2 + n));
        rest = rest.subarray(end + 4 + n);
      }
      bytes = Buffer.concat(bytes);
    } else {
      bytes = rest;
      clean = names["content-length"] === undefined || Number(names["content-length"]) === rest.length;
    }
    done({ status: Number(head[0].split(" ")[1]), type: names["content-type"], id: names["x-request-id"], retry: names["retry-after"], clean, body: bytes.toString("base64") });
  });
});

for (const [provider, route] of Object.entries(routes))
  test(`${provider}: the same status, headers and bytes as without the gateway, however the answer ends`, async () => {
    const e = await endpoint();
    const s = new Server();
    const url = `http://127.0.0.1:${e.port}`;
    s.configure({ upstreams: { openai: { url: `${url}/v1`, key: "k" }, anthropic: { url, key: "k" }, gemini: { url, key: "k" } } });
    await s.start();
    let cases = 0;
    for (const stream of [false, true])
      for (const kind of Object.keys(replies))
        for (const ending of endings) {
          const path = typeof route.path === "function" ? route.path(stream) : route.path;
          const headers = { "x-case": `${provider} ${kind} ${ending} ${stream}` };
          const there = route.prefix === "/openai/v1" ? "/v1" : "";
          const direct = await ask(e.port, there + path, route.body(stream), headers);
          const through = await ask(s.port, route.prefix + path, route.body(stream), { ...headers, authorization: `Bearer ${s.token}` });
          same(through, direct, `${kind}, ${ending}, ${stream ? "streamed" : "whole"}`);
          cases++;
        }
    same(cases, 30, "cases");
    s.kill();
    e.end();
  });

for (const [provider, app] of Object.entries(apps))
  test(`${provider}: sixty-four clients at once, each with its own conversation`, async () => {
    const w = await world(provider, (body) => {
      const who = /client (\d+)/.exec(JSON.stringify(body))[1];
      return { text: `for ${who}` };
    });
    const asker = app.ask(w);
    await Promise.all(Array.from({ length: 64 }, async (_, i) => {
      const history = [];
      for (let turn = 0; turn < (long ? 5 : 1); turn++) {
        history.push(...app.user(`client ${i} turn ${turn}`));
        const reply = await asker(history, random(2) === 0);
        same(reply.text, `for ${i}`, "its own answer");
        history.push(...reply.back);
      }
    }));
    same((await recorded(w)).length, 64, "conversations");
    same(w.e.refusals, [], "refused");
    w.end();
  });

for (const useResponses of [true, false])
  for (const stream of [false, true])
    test(`@openai/agents over ${useResponses ? "Responses" : "chat completions"}, ${stream ? "streamed" : "whole"}: a run with a tool is one conversation`, async () => {
      const provider = useResponses ? "responses" : "openai";
      const w = await world(provider, (_, n) => (n % 2 ? { text: "it rains" } : { text: "", calls: [{ name: "weather", args: { city: "Graz" } }] }), { lenient: useResponses }); // the SDK sends ids back that its own types do not have
      const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
      const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client, useResponses }), tracingDisabled: true });
      const weather = tool({ name: "weather", description: "w", strict: false, parameters: { type: "object", properties: { city: { type: "string" } }, required: [], additionalProperties: true }, execute: async () => "rain" });
      const r = await runner.run(new Agent({ name: "a", model: "m", instructions: "brief", tools: [weather] }), "and now?", { stream });
      if (stream) await r.completed;
      same(r.finalOutput, "it rains", "the answer");
      const list = await recorded(w);
      same(list.length, 1, "conversations");
      ok(JSON.stringify(list[0].messages).includes('"rain"'), "with the result");
      w.end();
    });

await main();
