// What the server's tests share: a server that can be killed and started again on its port, plain
// HTTP and raw sockets, readers of event streams, a model that is told what to say, and TAP.
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { mkdirSync, mkdtempSync, writeFileSync, readFileSync, readdirSync, existsSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const steno = process.env.STENO || join(process.env.STENO_BUILD || join(root, "build"), "steno");
export const scratch = process.env.STENO_TEST_TMP || mkdtempSync(join(tmpdir(), "server-"));
export const long = Boolean(process.env.STENO_TEST_LONG);
export const seed = Number(process.env.STENO_TEST_SEED || (Date.now() ^ process.pid) >>> 0);
export const sanitized = Boolean(process.env.STENO_TEST_SANITIZER); // a sanitizer changes how much memory is used
// A sanitizer makes them several times slower and checks the same code each time.
export const rounds = (n) => (long ? n : Math.ceil(n / (sanitized ? 50 : 20)));
// No machine is this slow: waiting longer means waiting for something that never happens.
export const PATIENCE = 1000 * Number(process.env.STENO_TEST_PATIENCE || 300);
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

let chance = seed;
export function random(n) {
  chance = (chance + 0x6d2b79f5) | 0;
  let t = Math.imul(chance ^ (chance >>> 15), 1 | chance);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
export const pick = (list) => list[random(list.length)];

// ---- packages of tests/npm ----
const npm = createRequire(join(root, "tests/npm/package.json"));
export async function load(name) {
  try {
    return await import(pathToFileURL(npm.resolve(name)).href);
  } catch (e) {
    if (e.code !== "MODULE_NOT_FOUND") throw e;
    console.log("1..0 # SKIP tests/npm is not installed (make deps)");
    process.exit(0);
  }
}

// ---- TAP ----
const tests = [];
export const test = (sentence, run) => tests.push({ sentence, run });
const shown = (v) => {
  const text = typeof v === "string" ? v : JSON.stringify(v);
  return text && text.length > 600 ? text.slice(0, 600) + "..." : text;
};
export function ok(truth, what, ...more) {
  if (!truth) throw new Error([what, ...more.map(shown)].join(" "));
}
export function same(got, want, what) {
  const g = JSON.stringify(got), w = JSON.stringify(want);
  if (g !== w) throw new Error(`${what}\n  got  ${shown(g)}\n  want ${shown(w)}`);
}
export async function until(what, f) {
  for (const end = Date.now() + PATIENCE; ;) {
    const v = await f();
    if (v) return v;
    if (Date.now() > end) throw new Error(`waited ${PATIENCE} ms for ${what}`);
    await sleep(20);
  }
}

const started = [];
process.on("exit", () => started.forEach((s) => s.kill()));
export async function main() {
  const only = process.argv[2];
  const list = only ? tests.filter((t) => t.sentence.includes(only)) : tests;
  let failed = 0;
  console.log(`# seed ${seed}`);
  for (const [i, t] of list.entries()) {
    const from = Date.now();
    try {
      const skip = await t.run();
      console.log(`ok ${i + 1} - ${t.sentence}${skip ? ` # SKIP ${skip}` : ""}`);
    } catch (e) {
      failed++;
      console.log(`not ok ${i + 1} - ${t.sentence}`);
      for (let cause = e; cause; cause = cause.cause) console.log(String(cause.stack ?? cause).replace(/^/gm, "#   "));
    }
    if (only) console.log(`# ${Date.now() - from} ms`);
  }
  console.log(`1..${list.length}`);
  process.exit(failed ? 1 : 0);
}

// A port that only this file has while it runs. The kernel could give an arbitrary port to another test
// while a server is away. tests/run says where these ports begin.
const firstPort = Number(process.env.STENO_TEST_PORTS) || 20000 + 256 * Math.floor(Math.random() * 49);
let portsGiven = 0;
export const ownPort = () => firstPort + portsGiven++ % 256;

// ---- the server ----
let worlds = 0;
export class Server {
  constructor(options = {}) {
    this.options = options;
    this.folder = join(scratch, `world${++worlds}`);
    this.store = join(this.folder, "store");
    this.config = join(this.folder, "config");
    this.work = join(this.folder, "work");
    mkdirSync(join(this.config, "steno"), { recursive: true });
    mkdirSync(this.work);
    this.port = 0;
    this.logged = "";
    started.push(this);
  }
  environment() {
    const env = { ...process.env, XDG_CONFIG_HOME: this.config, XDG_STATE_HOME: join(this.config, "state"), OPENAI_API_KEY: "none",
      ...this.options.env };
    for (const name of ["OPENAI_BASE_URL", "STENO_STORE", "http_proxy", "https_proxy"]) delete env[name];
    return env;
  }
  // A folder that the server keeps for itself: in the store, or beside the user's other state where the
  // store has no folder.
  ownFolder(name) {
    const own = join(this.store, name), state = join(this.config, "state/steno");
    return existsSync(own) || !existsSync(state) ? own : join(state, readdirSync(state)[0], name);
  }
  gatewayFolder() {
    return this.ownFolder("gateway");
  }
  configure(config) {
    writeFileSync(join(this.config, "steno/config.json"), JSON.stringify(config));
  }
  // On its port, or, the first time, on one of ours.
  async start(...more) {
    const end = Date.now() + PATIENCE;
    for (;;) {
      const said = this.logged.length;
      try {
        return await this.startAt(this.port || ownPort(), ...more);
      } catch (e) {
        if (!/is in use by/.test(this.logged.slice(said)) || Date.now() > end) throw e;
        await sleep(20); // a process that has it does not belong to this run of the tests
      }
    }
  }
  async startAt(port, ...more) {
    const args = ["--store", this.store, "serve", "--listen", `127.0.0.1:${port}`, "--json",
      ...(this.options.args || ["--no-tools"]), ...more];
    const [program, ...words] = [...(this.options.through ?? []), steno, ...args]; // such as prlimit
    const child = spawn(program, words, { cwd: this.work, env: this.environment(), stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    this.over = new Promise((done) => child.on("exit", (code, signal) => {
      if (this.child === child) this.child = null;
      done({ code, signal });
    }));
    child.stderr.on("data", (d) => {
      this.logged += d;
      if (process.env.STENO_TEST_SHOW) process.stderr.write(d);
    });
    let out = "";
    const line = await new Promise((done, fail) => {
      child.stdout.on("data", (d) => {
        out += d;
        if (out.includes("\n")) done(out);
      });
      child.on("close", (code, signal) => fail(new Error(`serve ended: ${code} ${signal} ${this.logged.slice(-2000)}`)));
    });
    const said = JSON.parse(line);
    this.port = said.port;
    this.token = said.address.split("#token=")[1];
    this.url = `http://127.0.0.1:${this.port}`;
    return this;
  }
  kill() {
    this.child?.kill("SIGKILL");
  }
  // kill -9, then a start on the same port.
  async crash(...more) {
    this.kill();
    await this.over;
    return this.start(...more);
  }
  async stop() {
    this.child.kill("SIGTERM");
    return this.over;
  }
  cli(...args) {
    const run = spawnSync(steno, ["--store", this.store, "--json", ...args], { cwd: this.work, env: this.environment() });
    if (run.status) throw new Error(`steno ${args.join(" ")}: ${run.stderr}`);
    return JSON.parse(run.stdout.toString() || "null");
  }
  // A token that the server has already noticed.
  async newToken(project) {
    const { token } = this.cli("--project", project, "token", "new");
    await until("the new token", async () => (await this.ask("GET", "/api/routes", { token })).status === 200);
    return token;
  }
  tokens() {
    return this.cli("token", "ls").items;
  }
  // Status, headers and body; the body as JSON when it is.
  async ask(method, path, { body, token = this.token, headers = {}, raw, signal } = {}) {
    const h = { ...(token ? { authorization: `Bearer ${token}` } : {}), ...headers };
    if (body !== undefined && !h["content-type"]) h["content-type"] = "application/json";
    const r = await fetch(this.url + path, { method, headers: h, signal,
      body: body === undefined ? undefined : typeof body === "string" || raw ? body : JSON.stringify(body) });
    const text = await r.text();
    let json;
    try { json = JSON.parse(text); } catch { json = undefined; }
    return { status: r.status, headers: r.headers, text, json };
  }
  async must(method, path, options) {
    const r = await this.ask(method, path, options);
    if (r.status >= 300) throw new Error(`${method} ${path}: ${r.status} ${r.text.slice(0, 500)}`);
    return r.json;
  }
  stream(method, path, options) {
    return new Events(this, method, path, options);
  }
  rss() {
    const status = readFileSync(`/proc/${this.child.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+)/.exec(status)[1]) * 1024;
  }
  raw(bytes, options) {
    return exchange(this.port, bytes, options);
  }
  // All records of a conversation as they were stored, also those that no view shows.
  log(id) {
    const run = spawnSync(steno, ["--store", this.store, "--json", "log", id], { cwd: this.work, env: this.environment(), maxBuffer: 1 << 30 });
    if (run.status) throw new Error(`steno log ${id}: ${run.stderr}`);
    return run.stdout.toString();
  }
  file(...path) {
    const p = join(this.store, ...path);
    return existsSync(p) ? readFileSync(p) : null;
  }
}

// ---- event streams ----
export class Events {
  constructor(server, method, path, { body, token = server.token, headers = {} } = {}) {
    this.list = [];
    this.clean = null; // true: ended as HTTP says; false: cut off
    this.abort = new AbortController();
    this.waiters = [];
    this.text = "";
    this.done = this.#run(server, method, path, body, token, headers);
  }
  async #run(server, method, path, body, token, headers) {
    try {
      const r = await fetch(server.url + path, { method, signal: this.abort.signal,
        headers: { ...(token ? { authorization: `Bearer ${token}` } : {}),
          ...(body ? { "content-type": "application/json" } : {}), ...headers },
        body: body && JSON.stringify(body) });
      this.status = r.status;
      this.headers = r.headers;
      // Pieces are joined when an event ends: an event of megabytes arrives in thousands of pieces.
      let pieces = [], last = "";
      const decode = new TextDecoder();
      for await (const chunk of r.body) {
        const piece = decode.decode(chunk, { stream: true });
        if (!piece) continue;
        this.text += piece;
        pieces.push(piece);
        const ends = piece.includes("\n\n") || (last === "\n" && piece[0] === "\n");
        last = piece.at(-1);
        if (!ends) continue;
        const blocks = pieces.join("").split("\n\n");
        pieces = [blocks.pop()];
        blocks.forEach((block) => this.#take(block));
      }
      this.clean = true;
    } catch (e) {
      this.error = e;
      this.clean = false;
    }
    this.waiters.forEach((w) => w());
  }
  #take(block) {
    const event = {};
    for (const line of block.split("\n")) {
      const m = /^(id|event|data): ?(.*)$/.exec(line);
      if (m) event[m[1]] = m[2];
    }
    if (event.data === undefined) return;
    event.json = JSON.parse(event.data);
    this.list.push(event);
    this.waiters.forEach((w) => w());
  }
  of(type) {
    return this.list.filter((e) => e.event === type).map((e) => e.json);
  }
  last() {
    return this.list.filter((e) => e.id).at(-1)?.id;
  }
  async wait(f) {
    const end = Date.now() + PATIENCE;
    for (;;) {
      const v = f(this);
      if (v) return v;
      if (this.clean !== null) throw new Error(`the stream ended first: ${this.error ?? ""} ${this.text.slice(-800)}`);
      if (Date.now() > end) throw new Error(`the stream said too little: ${this.text.slice(-800)}`);
      await new Promise((done) => {
        const t = setTimeout(done, 200);
        this.waiters.push(() => { clearTimeout(t); done(); });
      });
      this.waiters = [];
    }
  }
  leave() {
    this.abort.abort();
    return this.done;
  }
}

// ---- raw sockets ----
// Sends bytes (or pieces of them) and collects what comes until the server closes, or `ms` pass.
// With `await: true` each further piece waits for something to have come.
export function exchange(port, bytes, { ms = PATIENCE, pause = 0, end = false, ...more } = {}) {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1");
    let text = "", closed = false;
    const finish = () => {
      clearTimeout(timer);
      socket.destroy();
      done({ text, closed, statuses: [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((m) => Number(m[1])) });
    };
    const timer = setTimeout(finish, ms);
    socket.on("data", (d) => (text += d.toString("latin1")));
    socket.on("close", () => { closed = true; finish(); });
    socket.on("error", () => {});
    socket.on("connect", async () => {
      const pieces = Array.isArray(bytes) ? bytes : [bytes];
      for (const [i, piece] of pieces.entries()) {
        while (more.await && i && !text && !closed) await sleep(5);
        socket.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
        if (pause) await sleep(pause);
      }
      if (end) socket.end();
    });
  });
}

// ---- a model ----
// An OpenAI-compatible endpoint whose replies are made by `reply(messages, request)`:
// {text?, calls?:[{id,name,arguments}], pieces?, pauseMs?, hold?}. Chat completions and responses.
// A streamed reply does not end before `hold`, a promise, is kept.
export class Model {
  constructor(reply) {
    this.reply = reply;
    this.requests = [];
  }
  async start() {
    this.http = createServer((q, r) => this.#serve(q, r).catch((e) => r.destroy(e)));
    await new Promise((done) => this.http.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.http.address().port}/v1`;
    return this;
  }
  stop() {
    this.http.closeAllConnections();
    this.http.close();
  }
  async #serve(q, r) {
    let body = "";
    for await (const d of q) body += d;
    const request = JSON.parse(body || "{}");
    this.requests.push(request);
    const said = await this.reply(request.messages ?? request.input ?? [], request);
    if (said.status) {
      r.writeHead(said.status, { "content-type": "application/json" });
      r.end(JSON.stringify({ error: { message: "no", type: "x", code: "x" } }));
    } else if (q.url.endsWith("/responses")) {
      this.#responses(r, request, said);
    } else {
      await this.#chat(r, request, said);
    }
  }
  async #chat(r, request, said) {
    const calls = said.calls?.map((c, index) => ({ index, id: c.id, type: "function",
      function: { name: c.name, arguments: JSON.stringify(c.arguments) } }));
    const finish = calls ? "tool_calls" : "stop";
    if (!request.stream) {
      r.writeHead(200, { "content-type": "application/json" });
      r.end(JSON.stringify({ id: "x", object: "chat.completion", model: "m", choices: [{ index: 0, finish_reason: finish,
        message: { role: "assistant", content: said.text ?? null, ...(calls ? { tool_calls: calls } : {}) } }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }));
      return;
    }
    r.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) => r.write(`data: ${JSON.stringify({ id: "x",
      object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    send({ role: "assistant" });
    const text = said.text ?? "";
    const size = Math.max(1, Math.ceil(text.length / (said.pieces ?? 3)));
    for (let i = 0; i < text.length; i += size) {
      send({ content: text.slice(i, i + size) });
      if (said.pauseMs) await sleep(said.pauseMs);
    }
    for (const c of calls ?? []) send({ tool_calls: [c] });
    const beat = said.hold && setInterval(() => r.write(": still here\n\n"), 10000); // otherwise the wait would be too long
    await said.hold;
    clearInterval(beat);
    send({}, finish);
    if (said.usage) r.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "m", choices: [], usage: said.usage })}\n\n`);
    r.end("data: [DONE]\n\n");
  }
  #responses(r, request, said) {
    const output = [];
    if (said.text) output.push({ type: "message", id: `msg_${this.requests.length}`, role: "assistant", status: "completed",
      content: [{ type: "output_text", text: said.text, annotations: [], logprobs: [] }] });
    for (const c of said.calls ?? []) output.push({ type: "function_call", id: `fc_${c.id}`, call_id: c.id, name: c.name,
      arguments: JSON.stringify(c.arguments), status: "completed" });
    r.writeHead(200, { "content-type": "application/json" });
    r.end(JSON.stringify({ id: `resp_${this.requests.length}`, object: "response", created_at: 1, status: "completed",
      model: request.model ?? "m", output, error: null, incomplete_details: null, instructions: null, metadata: {},
      parallel_tool_calls: true, temperature: 1, top_p: 1, tool_choice: "auto", tools: [], previous_response_id: null,
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 0 } } }));
  }
}
