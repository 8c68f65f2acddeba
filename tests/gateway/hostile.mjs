// The gateway between hostile clients and endpoints: tokens are not passed on, ambiguous answers are
// refused, and nobody is kept waiting for ever.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { createServer as createTcp, connect } from "node:net";
import { join } from "node:path";
import { Model, Server, main, ok, same, sleep, test, until } from "../http/lib.mjs";

// An endpoint that answers with bytes that the test chooses, and keeps the requests.
async function world(answer, settings = {}) {
  const seen = [];
  const sockets = new Set();
  let connections = 0;
  const up = createTcp((c) => {
    sockets.add(c);
    connections++;
    c.on("error", () => {});
    c.on("close", () => sockets.delete(c));
    let text = "";
    c.on("data", (d) => {
      text += d.toString("latin1"); // as many characters as bytes
      const end = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (end < 0 || text.length < end + 4 + length) return;
      seen.push(text);
      text = "";
      answer(c, seen.at(-1));
    });
  });
  await new Promise((r) => up.listen(0, "127.0.0.1", r));
  const url = `http://127.0.0.1:${up.address().port}`;
  const s = new Server({ args: ["--no-tools", "--log", "access.log"] });
  s.configure({ upstreams: { openai: { url: `${url}/v1`, key: "real", ...settings }, gemini: { url, key: "real" }, anthropic: { url, key: "real" } } });
  await s.start();
  return { s, seen, connections: () => connections, log: () => readFileSync(join(s.work, "access.log"), "utf8"), end: () => { s.kill(); for (const c of sockets) c.destroy(); up.close(); } };
}
const json = (c, body = "{}") => c.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
const chat = (text) => JSON.stringify({ choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: text } }] });
const ask = (w, path = "/openai/v1/chat/completions", more = {}) =>
  w.s.ask("POST", path, { body: { messages: [{ role: "user", content: "hi" }] }, ...more });

test("a token in the query is removed however its name is spelled", async () => {
  const w = await world((c) => json(c));
  for (const name of ["key", "k%65y", "%6Bey", "%6b%65%79"]) {
    same((await ask(w, `/gemini/v1beta/models/m:x?a=1&${name}=${w.s.token}&b=2`, { token: null })).status, 200, name);
    ok(!w.seen.at(-1).includes(w.s.token) && w.seen.at(-1).includes("a=1&b=2"), name, w.seen.at(-1).slice(0, 200));
  }
  w.end();
});

test("no token reaches an endpoint, wherever it stands, as often as it stands and however it is spelled", async () => {
  const w = await world((c) => json(c));
  const made = w.s.cli("--project", "other", "token", "new");
  const other = made.token ?? made;
  await until("the token", async () => (await w.s.ask("GET", "/api/stats", { token: other })).status === 200);
  const percent = (t) => [...t].map((c) => `%${c.charCodeAt(0).toString(16)}`).join("");
  const basic = (t) => Buffer.from(t).toString("base64");
  const QUERY = [(t) => `key=${t}`, (t) => `k%65y=${t}`, (t) => `api_key=${t}`, (t) => `a=${percent(t)}`, (t) => `a=${percent(percent(t))}`, (t) => `${t}=1`, (t) => `a=x-${t}-y`];
  const HEADERS = [(t) => ["Authorization", `Bearer ${t}`], (t) => ["Authorization", `Basic ${basic(`me:${t}`)}`], (t) => ["x-api-key", t], (t) => ["x-goog-api-key", t], (t) => ["api-key", t],
    (t) => ["Cookie", `a=b; c=${t}; d=e`], (t) => ["Referer", `http://127.0.0.1/~${t}/openai/v1`], (t) => ["X-Other", `${t}abc`], (t) => ["X-Other", percent(t)]];
  const clean = (text, name) => {
    for (const t of [w.s.token, other])
      for (const form of [t, percent(t), percent(percent(t)), basic(`me:${t}`), basic(t)]) ok(!text.includes(form), name, text);
  };
  const send = async (door, query, headers) => {
    const path = `${door === "path" ? `/~${w.s.token}` : ""}/openai/v1/chat/completions?z=1${query.map((q) => `&${q}`).join("")}&y=2`;
    const lines = [...(door === "path" ? [] : [["Authorization", `Bearer ${w.s.token}`]]), ...headers, ["X-Mine", "stays"]].map(([n, v]) => `${n}: ${v}\r\n`).join("");
    const { text } = await w.s.raw(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 15\r\n${lines}\r\n{"messages":[]}`);
    return text;
  };
  for (const door of ["path", "key"])
    for (const token of [w.s.token, other]) {
      const headers = HEADERS.map((h) => h(token)).filter(([n]) => door === "path" || n !== "Authorization");
      const one = (list) => list.filter(([n], i) => list.findIndex(([m]) => m === n) === i); // no header comes twice
      const cases = [...QUERY.map((q) => [[q(token)], []]), ...headers.map((h) => [[], [h]]), [QUERY.map((q) => q(token)), one(headers)]];
      for (const [query, lines] of cases) {
        const name = `${door}, ${JSON.stringify([query, lines])}`, before = w.seen.length;
        const text = await send(door, query, lines);
        ok(/^HTTP\/1.1 200/.test(text) && w.seen.length === before + 1, name, text);
        clean(w.seen.at(-1), name);
        ok(/X-Mine: stays/i.test(w.seen.at(-1)) && w.seen.at(-1).includes("?z=1&y=2 "), `${name}: the rest stays`, w.seen.at(-1));
        const key = door === "key" || lines.some(([n]) => ["Authorization", "x-api-key", "x-goog-api-key"].includes(n)) || query.some((q) => /^k(e|%65)y=/.test(q));
        same(/^authorization: .*$/im.exec(w.seen.at(-1))?.[0], key ? "Authorization: Bearer real" : undefined, `${name}: the endpoint's key`);
      }
    }
  await send("path", ["key=own"], [["Authorization", "Bearer sk-own"], ["x-api-key", "sk-ac-of-somebody-else-altogether"]]);
  ok(["Bearer sk-own", "key=own", "sk-ac-of-somebody-else-altogether"].every((t) => w.seen.at(-1).includes(t)), "a client's own key passes", w.seen.at(-1));
  const before = w.seen.length;
  for (const rest of [`/~${other}/x`, `/files/${other}`, `/x/${percent(w.s.token)}`]) {
    const r = await ask(w, `/openai/v1${rest}`);
    same([r.status, r.json?.error?.code ?? r.json?.code], [400, "token_in_path"], rest + r.text);
  }
  same(w.seen.length, before, "nothing was sent");
  w.end();
});

test("a token as the key is refused where the server has no key for the endpoint", async () => {
  const w = await world((c) => json(c), { key: undefined });
  const r = await ask(w, `/~${w.s.token}/openai/v1/chat/completions`);
  same([r.status, w.seen.length], [400, 0], r.text);
  ok(/Steno token/.test(r.text) && !r.text.includes(w.s.token), "the words", r.text);
  same((await ask(w, `/~${w.s.token}/openai/v1/chat/completions`, { token: "sk-own" })).status, 200, "with a key of its own");
  w.end();
});

test("a header that cannot name a conversation is refused, and a title keeps the text behind a NUL", async () => {
  const w = await world((c) => json(c, chat("fine")));
  for (const name of ["x".repeat(257), "a\tb"]) {
    const r = await ask(w, undefined, { headers: { "x-steno-conversation": name } });
    same([r.status, r.json.error.code, w.seen.length], [400, "bad_headers", 0], r.text);
    ok(/x-steno-conversation/.test(r.text), "the words", r.text);
  }
  same((await ask(w, undefined, { body: { messages: [{ role: "user", content: "one\0two" }] } })).status, 200, "asked");
  await w.s.must("POST", "/api/chat-sessions", { body: { id: "mine", title: "three\0four" } });
  const titles = () => w.s.must("GET", "/api/chat-sessions").then((l) => l.items.map((c) => c.title).sort());
  await until("both titles", async () => (await titles()).length === 2);
  same(await titles(), ["one two", "three four"], "titles");
  w.end();
});

test("no log has a token, wherever it stands in the path", async () => {
  const w = await world((c) => json(c));
  for (const path of ["/~T/openai/v1/x", "/~T/~T/openai/v1/x", "/%7eT/openai/v1/x", "//~T/openai/v1/x", "/openai/v1/~T/x", "/%7ET"])
    await ask(w, path.replaceAll("T", w.s.token), { token: null });
  await until("the log", () => w.log().split("\n").length > 6);
  ok(!w.log().includes(w.s.token), "the log", w.log());
  w.end();
});

test("a path cannot lead out of the upstream's own, and TRACE and CONNECT are not passed on", async () => {
  const w = await world((c) => json(c));
  for (const path of ["/openai/v1/../../admin", "/openai/v1/%2e%2e/%2e%2e/admin", "/openai/v1/..%2f..%2fadmin", "/openai/v1/a/./b", "/gemini/.."]) {
    const { text: r } = await w.s.raw(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${w.s.token}\r\nConnection: close\r\n\r\n`);
    ok(/^HTTP\/1.1 40[04]/.test(r), path, r.slice(0, 200));
  }
  for (const method of ["TRACE", "CONNECT"]) {
    const { text: r } = await w.s.raw(`${method} /openai/v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${w.s.token}\r\nConnection: close\r\n\r\n`);
    ok(/^HTTP\/1.1 (40|50)\d/.test(r), method, r.slice(0, 200));
  }
  same(w.seen.length, 0, "nothing was passed on");
  same((await ask(w, "/openai/v1/a..b/..c/v1.5")).status, 200, "dots inside a name");
  w.end();
});

test("answers that two readers could understand differently are 502, and so are another protocol and too many headers", async () => {
  const heads = ["HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    `HTTP/1.1 200 OK\r\n${Array.from({ length: 500 }, (_, i) => `X-${i}: ${"v".repeat(40)}`).join("\r\n")}\r\nContent-Length: 2\r\n\r\n{}`,
    `HTTP/1.1 200 OK\r\nX-Huge: ${"h".repeat(300000)}\r\nContent-Length: 2\r\n\r\n{}`];
  let n = 0;
  const w = await world((c) => c.end(heads[n++]));
  for (const head of heads) {
    const r = await ask(w);
    same(r.status, 502, head.slice(0, 60));
    ok(!/memory/i.test(r.text), "the words", r.text);
  }
  w.end();
});

test("headers that a Connection header lists stay with their connection, both ways", async () => {
  const w = await world((c) => c.end("HTTP/1.1 200 OK\r\nConnection: close, X-Secret\r\nX-Secret: s\r\nX-Other: o\r\nContent-Length: 2\r\n\r\n{}"));
  const { text: r } = await w.s.raw(`POST /openai/v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${w.s.token}\r\nConnection: close, X-Keep\r\nX-Keep: 1\r\nX-Pass: 2\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}`);
  ok(/X-Other: o/i.test(r) && !/X-Secret/i.test(r), "to the client", r);
  ok(/X-Pass: 2/i.test(w.seen[0]) && !/X-Keep/i.test(w.seen[0]), "to the endpoint", w.seen[0]);
  w.end();
});

test("when a token is revoked, its answers under way end", async () => {
  const w = await world((c, text) => {
    if (text.includes("/never")) return;
    c.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    const timer = setInterval(() => c.write("9\r\ndata: x\n\n\r\n"), 20);
    c.on("close", () => clearInterval(timer));
  });
  const made = w.s.cli("token", "new");
  const token = made.token ?? made;
  await until("the token", async () => (await w.s.ask("GET", "/api/stats", { token })).status === 200);
  let came = "";
  const over = (path) => new Promise((done) => {
    const c = connect(w.s.port, "127.0.0.1", () => c.write(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`));
    let text = "";
    c.on("data", (d) => {
      text += d;
      if (path.endsWith("/stream")) came = text;
      if (/^HTTP\/1.1 502/.test(text)) c.end();
    });
    c.on("error", () => {});
    c.on("close", () => done(text));
  });
  const stream = over("/openai/v1/stream"), waiting = over("/openai/v1/never");
  await until("both", () => w.seen.length === 2 && came.includes("data: x"));
  const id = (w.s.cli("token", "ls").items ?? []).at(-1).id;
  w.s.cli("-y", "token", "rm", id);
  ok((await stream).includes("data: x"), "the stream was cut");
  ok(/^HTTP\/1.1 502/.test(await waiting), "who waited was told");
  w.end();
});

test("a connection that has been idle for seconds gets no request: its endpoint may close it at any moment", async () => {
  const w = await world((c) => json(c, chat("x")));
  same((await ask(w)).status, 200, "one");
  await sleep(3200);
  same((await ask(w)).status, 200, "another");
  same([w.seen.length, w.connections()], [2, 2], "each on its own connection");
  w.end();
});

test("a name that a conversation cannot have is refused before anything is sent", async () => {
  const w = await world((c) => json(c, chat("x")));
  const r = await ask(w, undefined, { headers: { "x-steno-conversation": "a".repeat(300) } });
  same([r.status, w.seen.length], [400, 0], r.text);
  w.end();
});

test("a reply that was delivered stays, however often the same is asked after a failure", async () => {
  let n = 0;
  const w = await world((c) => (++n === 1 ? c.destroy() : json(c, chat(`reply ${n}`))));
  for (let i = 0; i < 5; i++) await ask(w);
  await until("the recorder", () => readdirSync(w.s.gatewayFolder()).every((f) => !f.startsWith("ex_")));
  const views = [];
  for (const c of (await w.s.must("GET", "/api/chat-sessions")).items)
    views.push(...(await w.s.must("GET", `/api/chat-sessions/${c.id}/messages`)).messages.filter((m) => m.role === "assistant" && m.content).map((m) => m.content));
  same(views.sort(), ["reply 2", "reply 3", "reply 4", "reply 5"], "every reply is in a view");
  w.end();
});

test("the gateway's files are for their owner alone", async () => {
  const w = await world((c) => json(c, chat("x")));
  await ask(w);
  for (const name of readdirSync(w.s.gatewayFolder()))
    same(statSync(join(w.s.gatewayFolder(), name)).mode & 0o077, 0, name);
  w.end();
});

test("a page that the endpoint sends cannot run on the server's own origin", async () => {
  const types = ["text/html", "image/svg+xml", "text/plain", "application/json; charset=utf-8", "text/event-stream", ""];
  let n = 0;
  const w = await world((c) => {
    const type = types[n++];
    c.write(`HTTP/1.1 200 OK\r\n${type && `Content-Type: ${type}\r\n`}Content-Length: 2\r\n\r\n{}`);
  });
  for (const type of types) {
    const { headers } = await ask(w);
    const data = type.startsWith("application/json") || type === "text/event-stream";
    same([headers.get("content-security-policy"), headers.get("x-content-type-options")], data ? [null, null] : ["sandbox", "nosniff"], type || "no type");
  }
  w.end();
});

test("when the disk fills up during a stream, the client gets an error event of the API, and a reset", async () => {
  const events = {
    "/openai/v1/chat/completions": (e) => e.data.error?.code === "record_failed",
    "/openai/v1/responses": (e) => e.event === "error" && e.data.type === "error" && e.data.code === "record_failed",
    "/anthropic/v1/messages": (e) => e.event === "error" && e.data.error?.type === "api_error",
    "/gemini/v1beta/models/m:streamGenerateContent": (e) => e.data.error?.status === "INTERNAL",
  };
  const piece = `data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(3000)}"}}]}\n\n`;
  const w = await world((c) => {
    c.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    let left = 400;
    const more = () => { if (left-- && !c.destroyed) c.write(piece, () => setImmediate(more)); };
    more();
  });
  spawnSync("prlimit", ["--pid", String(w.s.child.pid), "--fsize=300000"]);
  for (const [path, is] of Object.entries(events)) {
    const bytes = await w.s.raw(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${w.s.port}\r\nAuthorization: Bearer ${w.s.token}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"messages":[{"role":"user","content":"hi"}]}     `);
    const text = String(bytes.text ?? bytes);
    const last = /(?:event: (\w+)\n)?data: (\{[^\n]*error[^\n]*\})\n\n/.exec(text);
    ok(last && is({ event: last[1], data: JSON.parse(last[2]) }), path, text.slice(-400));
    ok(!text.endsWith("0\r\n\r\n"), "no clean end", path);
  }
  w.end();
});

test("with bestEffort an app does not notice a full disk, and the record says what it lacks", async () => {
  const piece = `data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(3000)}"}}]}\n\n`;
  const many = 400, end = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  for (const bestEffort of [true, false]) {
    const w = await world((c, request) => {
      if (!request.includes('"stream"')) return json(c, chat("small"));
      c.write(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: ${many * piece.length + end.length}\r\n\r\n`);
      let left = many;
      const more = () => {
        if (c.destroyed) return;
        if (left--) c.write(piece, () => setImmediate(more));
        else c.write(end);
      };
      more();
    }, { bestEffort });
    const limit = (bytes) => spawnSync("prlimit", ["--pid", String(w.s.child.pid), `--fsize=${bytes}:unlimited`]);
    const stream = async () => {
      const r = await fetch(`${w.s.url}/openai/v1/chat/completions`, { method: "POST", body: JSON.stringify({ stream: true, messages: [{ role: "user", content: "much" }] }),
        headers: { authorization: `Bearer ${w.s.token}`, "content-type": "application/json" } });
      return [r.status, await r.text().then((t) => t === piece.repeat(many) + end, () => "cut")];
    };
    const failures = () => (w.s.logged.match(/could not record/g) ?? []).length;
    same((await ask(w)).status, 200, "before");
    limit(300000); // the file fills up in the middle of the answer
    same(await stream(), [200, bestEffort ? true : "cut"], "in the middle of an answer");
    if (bestEffort) await until("the recorder", () => failures() === 1);
    limit(0); // and then there is no room for a request
    same((await ask(w)).status, bestEffort ? 200 : 507, "before an answer");
    if (bestEffort) await until("the recorder", () => failures() === 2);
    limit("unlimited");
    same((await ask(w, undefined, { body: { messages: [{ role: "user", content: "afterwards" }] } })).status, 200, "when there is room again");
    const said = await until("the record", async () => {
      const list = (await w.s.must("GET", "/api/chat-sessions?limit=100")).items;
      const all = [];
      for (const c of list) all.push(...(await w.s.must("GET", `/api/chat-sessions/${c.id}/messages?format=stored&limit=100`)).messages.map((m) => m.m));
      return all.some((m) => m.content === "afterwards") && all;
    });
    const gaps = said.filter((m) => m.partType === "gap");
    same(gaps.map((m) => [m.includeInContext, m.content.replace(/ since .* could/, " since T could")]),
      bestEffort ? [[false, "2 requests of this client since T could not be recorded"]] : [], "the gap");
    same((await ask(w)).status, 200, "once more");
    w.end();
  }
});

test("a request whose body ends while the server stops gets an error that says so, and may be sent again", async () => {
  const w = await world((c) => c.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\ndata: {"choices":[]}\n\n'));
  const talk = (head, body) => new Promise((begun) => {
    const t = { text: "" };
    t.closed = new Promise((closed) => {
      t.socket = connect(w.s.port, "127.0.0.1", () => t.socket.write(`POST /openai/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${w.s.token}\r\nContent-Type: application/json\r\n${head}\r\n${body}`));
      t.socket.on("data", (d) => { t.text += d; begun(t); });
      t.socket.on("error", () => {});
      t.socket.on("close", closed);
    });
  });
  const streamed = await talk("Content-Length: 15\r\n", '{"messages":[]}');
  const late = await talk("Content-Length: 15\r\nExpect: 100-continue\r\n", '{"mess');
  ok(/^HTTP\/1.1 200 /.test(streamed.text) && /^HTTP\/1.1 100 /.test(late.text), "both are under way", streamed.text, late.text);
  w.s.child.kill("SIGTERM");
  await streamed.closed; // the gateway has stopped
  late.socket.write('ages":[]}');
  await late.closed;
  // A server that was held up for longer than it waits for requests has closed the connection.
  const [, status] = /HTTP\/1.1 (?!100)(\d+)/.exec(late.text) ?? [];
  ok(status === undefined || (status === "503" && late.text.includes('"stopping"') && !/x-should-retry: false/i.test(late.text)), "its words", late.text);
  w.end();
});

test("an answer that came encoded is passed on, and recorded with its bytes", async () => {
  const packed = gzipSync(chat("squeezed"));
  const w = await world((c) => c.write(Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`), packed])));
  const r = await fetch(`${w.s.url}/openai/v1/chat/completions`, { method: "POST", body: JSON.stringify({ messages: [{ role: "user", content: "hi" }] }),
    headers: { authorization: `Bearer ${w.s.token}`, "content-type": "application/json" } });
  same((await r.json()).choices[0].message.content, "squeezed", "the client reads it");
  const message = await until("the record", async () => {
    const [c] = (await w.s.must("GET", "/api/chat-sessions?limit=10")).items;
    return c && (await w.s.must("GET", `/api/chat-sessions/${c.id}/messages?format=stored&limit=10`)).messages.map((m) => m.m).find((m) => m.partType === "error");
  });
  same([message.error.code, message.includeInContext, Buffer.from(message.base64, "base64").equals(packed)], ["ENCODED", false, true], "as it came");
  w.end();
});

test("a request that cannot be recorded is kept whole, and steno check names it", async () => {
  const w = await world((c) => json(c, chat("x")));
  same((await ask(w, undefined, { body: { messages: [{ role: "robot", content: "hi" }] } })).status, 200, "it is passed on");
  const name = await until("the file", () => readdirSync(w.s.gatewayFolder()).find((n) => n.startsWith("kept_")));
  await until("the server's line", () => w.s.logged.includes(name));
  const said = JSON.stringify(w.s.cli("check"));
  ok(said.includes(`gateway/${name}`), "and so does the check", said);
  w.end();
});

test("a HEAD has an answer without a body, so that no client reads a body as the next answer", async () => {
  const model = await new Model(() => ({ text: "x" })).start(); // it sends no length
  const s = new Server({ args: ["--no-tools", "--base-url", model.url, "--model", "m"] });
  s.configure({ upstreams: { openai: { url: model.url, key: "k" } } });
  await s.start();
  const { runId, sessionId } = await s.must("POST", "/api/chatbot", { body: { message: "hi", stream: false } });
  for (const path of ["/openai/v1/models", `/~${s.token}/openai/v1/x`, `/api/runs/${runId}/events`, `/api/chat-sessions/${sessionId}/messages`, "/healthz"]) {
    const { text } = await s.raw(`HEAD ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${s.token}\r\nConnection: close\r\n\r\n`);
    ok(/^HTTP\/1.1 200 /.test(text) && text.indexOf("\r\n\r\n") === text.length - 4, path, text);
    for (let i = 0; i < 3; i++) same((await s.ask("HEAD", path)).status, 200, `${path}: a client that keeps its connection`);
  }
  s.kill();
  model.stop();
});

// What a model may send in a hidden round or after it, from what endpoints were seen to send.
test("text in parts, no finish reason and no choice at all pass through hidden rounds as they would without them", async () => {
  const call = { id: "a", type: "function", function: { name: "context_list", arguments: "{}" } };
  const parts = [{ type: "thinking", thinking: [] }, { type: "text", text: "one " }, { type: "text", text: "\u00e9 \"two\"" }];
  const hidden = (message, finish_reason = "tool_calls") => ({ index: 0, finish_reason, message: { role: "assistant", content: null, tool_calls: [call], ...message } });
  const end = (message, finish_reason = "stop") => ({ index: 0, finish_reason, message: { role: "assistant", ...message } });
  for (const [name, first, second, want] of [
    ["parts before", hidden({ content: parts }), end({ content: "fin" }), ['one \u00e9 "two"fin', "stop"]],
    ["parts behind", hidden({ content: "look, " }), end({ content: parts }), ['look, one \u00e9 "two"', "stop"]],
    ["no reason before", hidden({}, null), end({ content: "fin" }), ["fin", "stop"]],
    ["no reason behind", hidden({}), end({ content: "fin" }, null), ["fin", "stop"]],
    ["no choice behind", hidden({}), null, null]]) {
    const w = await world((c, text) => json(c, JSON.stringify({ id: "x", object: "chat.completion", choices: [text.includes('"role":"tool"') ? second : first].filter(Boolean) })), { contextTools: true });
    const r = await ask(w, undefined, { body: { messages: [{ role: "user", content: "hi" }], tools: [{ type: "function", function: { name: "f" } }] } });
    same([r.status, w.seen.length], [200, 2], `${name}: ${r.text}`);
    const [choice] = r.json.choices;
    same(choice ? [choice.message.content, choice.finish_reason] : null, want, name);
    w.end();
  }
});

await main();
