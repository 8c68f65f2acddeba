// What the tests of the page share: a server, a model that does what it is told, a real browser, and
// TAP.
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { connect, createServer as createTcp } from "node:net";
import { createRequire } from "node:module";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const steno = process.env.STENO ? resolve(process.env.STENO) : join(root, "build/steno");
export const long = !!process.env.STENO_TEST_LONG;
export const rounds = (n) => (long ? n : Math.ceil(n / 20));
export const scratch = mkdtempSync(join(process.env.STENO_TEST_TMP || tmpdir(), "ui-"));
const require = createRequire(join(root, "tests/npm/package.json"));
// The short run takes Debian's Chromium without a window, which is the same engine and page and costs
// a third less; the long one takes the whole browser.
const chromiumPath = [...(long ? [] : ["/usr/bin/chromium-headless-shell"]), "/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);

export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
// No machine is this slow: waiting longer means waiting for something that never happens.
export const PATIENCE = 1000 * Number(process.env.STENO_TEST_PATIENCE || 300);
export async function until(what, test) {
  const end = Date.now() + PATIENCE;
  for (let last; ; await sleep(40)) {
    try { last = await test(); if (last) return last; } catch (e) { last = e; }
    if (Date.now() > end) throw new Error(`never: ${what} (${last instanceof Error ? last.message : JSON.stringify(last)})`);
  }
}
export function assert(ok, words) { if (!ok) throw new Error(words); }
// The page may show something with a later answer than the one that was waited for: this waits until the
// assertions in `f` hold.
export const holds = (f) => until("it holds", async () => { await f(); return true; });
export function equal(a, b, words = "") { if (a !== b) throw new Error(`${words} ${JSON.stringify(a)} is not ${JSON.stringify(b)}`); }

// ---- TAP ----
const tests = [];
export const test = (name, f) => tests.push([name, f]);
export const note = (text) => console.log(`# ${text}`);

export async function runTests(after = async () => {}) {
  const only = process.env.UI_ONLY;
  const chosen = only ? tests.filter(([n]) => new RegExp(only).test(n)) : tests;
  let missing = "";
  try { require.resolve("playwright-core"); } catch { missing = "no playwright-core: tools/deps installs it"; }
  if (!chromiumPath) missing = "no chromium: tools/deps installs it";
  if (missing) {
    console.log(`1..0 # SKIP ${missing}`);
    process.exit(0);
  }
  console.log(`1..${chosen.length}`);
  let failed = 0, n = 0;
  for (const [name, f] of chosen) {
    n++;
    const from = Date.now();
    try {
      await f();
      console.log(`ok ${n} - ${name}${process.env.UI_TIMES ? ` (${Date.now() - from} ms)` : ""}`);
    } catch (e) {
      failed++;
      console.log(`not ok ${n} - ${name}`);
      for (const line of String(e.stack ?? e).split("\n").slice(0, 12)) console.log(`# ${line}`);
      await shotOfFailure(n);
    }
  }
  await after();
  if (process.env.UI_TIMES) note(`${cpuSeconds().toFixed(1)} s of processor time`);
  await closeAll();
  process.exit(failed ? 1 : 0);
}

// What the browser and the servers have used of a processor so far.
function cpuSeconds() {
  const all = new Map();
  for (const pid of readdirSync("/proc").filter((x) => /^\d+$/.test(x))) {
    try { const f = readFileSync(`/proc/${pid}/stat`, "latin1").replace(/^.*\) /s, "").split(" "); all.set(Number(pid), { parent: Number(f[1]), ticks: f.slice(11, 15).reduce((n, x) => n + Number(x), 0) }); } catch { /* it has ended */ }
  }
  const ours = (pid) => pid === process.pid || (all.has(pid) && ours(all.get(pid).parent));
  return [...all.keys()].filter(ours).reduce((n, pid) => n + all.get(pid).ticks, 0) / 100;
}

// A port that only this file has while it runs. The kernel could give an arbitrary port to another test
// while a server is away. tests/run says where these ports begin.
const firstPort = Number(process.env.STENO_TEST_PORTS) || 20000 + 256 * Math.floor(Math.random() * 49);
let portsGiven = 0;
const ownPort = () => firstPort + portsGiven++ % 256;

// ---- the server ----
const closing = [];
export const atEnd = (f) => closing.push(f);
async function closeAll() {
  for (const f of closing.reverse()) { try { await f(); } catch { /* the next one */ } }
  rmSync(scratch, { recursive: true, force: true });
}
for (const s of ["SIGTERM", "SIGINT"]) process.on(s, () => closeAll().then(() => process.exit(1)));

export class Server {
  constructor(name, model) {
    this.folder = join(scratch, name);
    this.store = join(this.folder, "store");
    this.model = model;
    this.port = 0;
    mkdirSync(this.folder, { recursive: true });
    atEnd(() => this.kill());
  }
  async start(...more) {
    const config = join(this.folder, "config/steno");
    mkdirSync(config, { recursive: true });
    if (this.config) writeFileSync(join(config, "config.json"), JSON.stringify(this.config));
    const args = ["--store", this.store, "serve", "--listen", `127.0.0.1:${this.port || ownPort()}`, "--json", "--log", join(this.folder, "log"), ...more];
    if (this.model) args.push("--base-url", this.model.url, "--model", "mock-1");
    this.process = spawn(steno, args, { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, HOME: this.folder, XDG_CONFIG_HOME: join(this.folder, "config"), OPENAI_API_KEY: "none" } });
    let said = "", wrong = "";
    const closed = new Promise((done) => this.process.once("close", done));
    const end = this.trying ||= Date.now() + PATIENCE;
    this.process.stdout.on("data", (d) => { said += d; });
    this.process.stderr.on("data", (d) => { wrong += d; });
    await until("the server started", () => said.includes("\n") || this.process.exitCode !== null).catch((e) => { throw new Error(`${e.message} ${wrong}`); });
    if (!said) {
      await closed;
      if (/is in use by/.test(wrong) && Date.now() < end) { await sleep(40); return this.start(...more); } // by a process that does not belong to these tests
      throw new Error(`steno serve: ${wrong}`);
    }
    this.trying = 0;
    const { address, port } = JSON.parse(said);
    this.port = port;
    this.token = address.split("token=")[1];
    this.direct = `http://127.0.0.1:${port}`;
    if (JITTER) this.slow ??= await new SlowLine(this).start();
    this.origin = this.slow?.origin ?? this.direct;
    return this;
  }
  kill(signal = "SIGKILL") {
    const p = this.process;
    if (!p || p.exitCode !== null || p.signalCode) return Promise.resolve();
    return new Promise((done) => { p.once("exit", done); p.kill(signal); });
  }
  address(path = "/") { return `${this.origin}/#token=${this.token}&${path}`; }
  async api(method, path, body, headers = {}) {
    const answer = await fetch(this.direct + path, { method, headers: { Authorization: `Bearer ${this.token}`, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }
  async conversation(title, messages = [], extra = {}) {
    const { id } = await this.api("POST", "/api/chat-sessions", { title, ...extra });
    for (let i = 0; i < messages.length; i += 500) await this.append(id, messages.slice(i, i + 500));
    return id;
  }
  // No run is working and none waits, so a run of the previous test cannot take what this test tells the
  // model.
  atRest() { return until("nothing is at work", async () => { const h = await this.api("GET", "/api/home?days=1"); return !h.running.length && !h.waiting.items.length; }); }
  append(id, messages, query = "") { return this.api("POST", `/api/chat-sessions/${encodeURIComponent(id)}/messages${query}`, messages); }
  // Uses the command line, which writes an artifact piece by piece.
  cli(...args) { return spawn(steno, ["--store", this.store, ...args], { stdio: ["pipe", "pipe", "pipe"] }); }
  cliRun(input, ...args) {
    const run = spawnSync(steno, ["--store", this.store, ...args], { input, maxBuffer: 1 << 28 });
    if (run.status !== 0) throw new Error(`steno ${args[0]}: ${run.stderr}`);
    return run.stdout.toString();
  }
}

// ---- a line on which everything takes a while ----
// UI_JITTER=SEED lets every piece of a request, an answer and a stream wait for up to 400 ms, so that
// two answers come in any order. UI_SLOW=RATE makes the browser's processor slower by that factor.
// Neither is on in `make test`: whoever writes a test of the page runs it with a few seeds.
const JITTER = Number(process.env.UI_JITTER || 0), SLOW = Number(process.env.UI_SLOW || 0);
let seed = JITTER;
const random = () => { // mulberry32
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
class SlowLine {
  constructor(server) {
    this.sockets = new Set();
    this.tcp = createTcp((near) => {
      const far = connect(server.port, "127.0.0.1");
      this.sockets.add(near);
      for (const [a, b] of [[near, far], [far, near]]) {
        let due = 0;
        const line = []; // timers may fire in a different order than they were set
        const later = (f) => { line.push(f); due = Math.max(due, Date.now() + random() * 400); setTimeout(() => line.shift()(), due - Date.now()); };
        a.on("error", () => {});
        a.on("data", (d) => { a.pause(); setTimeout(() => a.resume(), 5); later(() => b.writable && b.write(d)); });
        a.on("close", () => { this.sockets.delete(near); later(() => b.destroy()); });
      }
    });
    atEnd(() => { for (const s of this.sockets) s.destroy(); this.tcp.close(); });
  }
  async start() {
    await new Promise((r) => this.tcp.listen(0, "127.0.0.1", r));
    this.origin = `http://127.0.0.1:${this.tcp.address().port}`;
    return this;
  }
}

// ---- a line between browser and server that can be cut ----
export class Wire {
  constructor(server) {
    this.server = server;
    this.sockets = new Set();
    this.open = true;
    this.tcp = createTcp((near) => {
      if (!this.open) { near.destroy(); return; }
      const far = connect(server.port, "127.0.0.1");
      this.sockets.add(near);
      for (const [a, b] of [[near, far], [far, near]]) { a.on("error", () => {}); a.on("close", () => { b.destroy(); this.sockets.delete(near); }); }
      // One that carries only `most` bytes towards the browser breaks there, again and again.
      let carried = 0;
      if (this.most) far.on("data", (d) => { near.write(d); carried += d.length; if (carried > this.most) { this.broken = (this.broken ?? 0) + 1; near.destroy(); } else if (near.writableLength > 1 << 20) { far.pause(); near.once("drain", () => far.resume()); } });
      else far.pipe(near);
      near.on("data", (d) => {
        far.write(d);
        if (this.swallow && this.swallow.test(d.toString("latin1"))) { this.swallow = null; far.unpipe(near); setTimeout(() => near.destroy(), 400); }
      });
    });
    atEnd(() => { this.cut(); this.tcp.close(); });
  }
  async start() {
    await new Promise((r) => this.tcp.listen(0, "127.0.0.1", r));
    this.origin = `http://127.0.0.1:${this.tcp.address().port}`;
    return this;
  }
  address(path) { return `${this.origin}/#token=${this.server.token}&${path}`; }
  cut() { this.open = false; for (const s of this.sockets) s.destroy(); }
  mend() { this.open = true; }
}

// ---- a model that does what it is told ----
// play(fn): fn(request, reply) answers the next request; reply.text("..."), reply.call(name, args),
// reply.end(), and it may wait as long as it likes in between.
export class Model {
  constructor() {
    this.plays = [];
    this.requests = [];
    this.http = createServer((q, a) => void this.answer(q, a));
    atEnd(() => { this.http.closeAllConnections(); this.http.close(); });
  }
  async start() {
    await new Promise((r) => this.http.listen(0, "127.0.0.1", r));
    this.url = `http://127.0.0.1:${this.http.address().port}/v1`;
    return this;
  }
  play(...fns) { this.plays.push(...fns); }
  says(text, each = 0) { this.play(async (_, r) => { await r.text(text, each); r.end(); }); }
  calls(name, args, text = "") { this.play(async (_, r) => { if (text) await r.text(text); r.call(name, args); r.end(); }); }
  fails(status, words = "no") { this.play(Object.assign(() => {}, { status, words })); }
  async answer(q, a) {
    let body = "";
    for await (const d of q) body += d;
    const request = JSON.parse(body || "{}");
    this.requests.push(request);
    const play = this.plays.shift() ?? (async (_, r) => { await r.text("I have nothing more to say."); r.end(); });
    if (play.status) {
      a.writeHead(play.status, { "Content-Type": "application/json" });
      a.end(JSON.stringify({ error: { message: play.words } }));
      return;
    }
    if (request.stream === false) throw new Error("the page asks for streams");
    a.writeHead(200, { "Content-Type": "text/event-stream" });
    const put = (d, finish = null) => a.write(`data: ${JSON.stringify({ model: request.model, choices: [{ index: 0, delta: d, finish_reason: finish }] })}\n\n`);
    let calls = 0;
    const reply = {
      gone: () => a.destroyed,
      text: async (t, each = 0) => {
        if (!each) { put({ content: t }); return; }
        for (const piece of t.match(/.{1,6}/gs) ?? []) { if (a.destroyed) return; put({ content: piece }); await sleep(each); }
      },
      thinking: (t) => put({ reasoning_content: t }),
      call: (name, args, id = `call_${Math.random().toString(36).slice(2, 10)}`) =>
        put({ tool_calls: [{ index: calls++, id, type: "function", function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) } }] }),
      end: (why) => {
        if (a.destroyed) return;
        put({}, why ?? (calls ? "tool_calls" : "stop"));
        a.write(`data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050, prompt_tokens_details: { cached_tokens: 400 } } })}\n\n`);
        a.end("data: [DONE]\n\n");
      },
      break: () => a.destroy(),
    };
    try { await play(request, reply); } catch { a.destroy(); }
  }
}

// ---- the browser ----
let browser;
export async function openBrowser() {
  if (browser) return browser;
  const { chromium } = require("playwright-core");
  browser = await chromium.launch({ executablePath: chromiumPath, headless: true, timeout: PATIENCE,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-default-apps", "--js-flags=--expose-gc", "--enable-precise-memory-info"] });
  atEnd(() => browser.close());
  return browser;
}

// A window: what it asked of others, what it complained about, which dialogs it opened. Browsers'
// contexts and pages are expensive, so one that is like the one wanted is used again, with nothing
// in its storage and nothing loaded.
const shown = [];
const idle = new Map();
// Two things of the page end after a while: the key g waits 900 ms for a second letter, and Undo is
// offered for 12 s. On a busy machine a test would come too late, so both last longer here. Short
// messages are kept in window.toasts.
const patient = () => {
  const real = window.setTimeout;
  window.setTimeout = (f, ms, ...more) => real(f, ms === 900 || ms === 12_000 ? 3_600_000 : ms, ...more);
  window.toasts = [];
  const look = () => { for (const t of document.querySelectorAll(".toast > span")) if (window.toasts.at(-1) !== t.textContent) window.toasts.push(t.textContent); };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
};
export const toasted = (page, words) => until(words, () => page.evaluate((x) => window.toasts.includes(x), words));
export async function openWindow(server, { path = "/", width = 1280, height = 800, dark = false, fresh = false, ...more } = {}) {
  const b = await openBrowser();
  const how = { viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce", locale: "en-GB", ...more };
  const key = JSON.stringify(how);
  const context = (!fresh && idle.get(key)?.pop()) || await b.newContext(how);
  const w = await adopt(context, server, context.pages()[0]);
  w.close = async () => {
    const page = w.page;
    for (const p of context.pages()) if (p !== page) await p.close();
    if (fresh || page.isClosed()) { await context.close(); return; }
    page.removeAllListeners();
    await context.setOffline(false);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.evaluate(() => { try { localStorage.clear(); sessionStorage.clear(); } catch { /* no page */ } }).catch(() => {});
    // An empty page of the same site: for another site the browser would start a new process.
    const empty = `${server.origin}/__empty`;
    await page.route(empty, (r) => r.fulfill({ contentType: "text/html", body: "" }));
    await page.goto(empty);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    idle.set(key, [...(idle.get(key) ?? []), context]);
  };
  await w.page.goto(server.address(path));
  return w;
}
export async function adopt(context, server, known) {
  const page = known ?? await context.newPage();
  if (!known) await page.addInitScript(patient);
  const w = { context, page, foreign: [], complaints: [], asked: [], dialogs: [], server, close: () => context.close() };
  page.on("request", (r) => { const u = r.url(); if (!u.startsWith(server.origin) && !u.startsWith("data:") && !u.startsWith("blob:")) w.foreign.push(u); });
  const from = Date.now();
  const tell = (word) => (r) => w.asked.push(`${Date.now() - from} ms ${word} ${r.method?.() ?? ""} ${r.url().replace(server.origin, "").slice(0, 120)} ${r.status?.() ?? ""}`);
  page.on("request", tell("asks"));
  page.on("response", tell("answered"));
  page.on("requestfailed", tell("failed"));
  page.on("requestfinished", tell("finished"));
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") w.complaints.push(m.text()); });
  page.on("pageerror", (e) => w.complaints.push(String(e)));
  page.on("dialog", (d) => { w.dialogs.push(d.message()); void d.dismiss(); });
  page.setDefaultTimeout(PATIENCE);
  if (SLOW && !known) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: SLOW });
  shown.push(w);
  if (shown.length > 4) shown.shift();
  return w;
}
async function shotOfFailure(n) {
  const last = shown.findLast((w) => !w.page.isClosed());
  for (const line of last?.asked.slice(-(process.env.UI_ASKED ?? 14)) ?? []) console.log(`#   ${line}`);
  for (const line of last?.complaints ?? []) console.log(`#   complaint: ${line}`);
  if (!process.env.UI_SHOTS) return;
  for (const w of shown) if (!w.page.isClosed()) await w.page.screenshot({ path: join(process.env.UI_SHOTS, `fail-${n}-${shown.indexOf(w)}.png`) }).catch(() => {});
}

export async function heapMb(page) {
  const s = await page.context().newCDPSession(page);
  await s.send("HeapProfiler.collectGarbage");
  const { usedSize, embedderHeapUsedSize = 0, backingStorageSize = 0 } = await s.send("Runtime.getHeapUsage");
  await s.detach();
  return (usedSize + embedderHeapUsedSize + backingStorageSize) / 1e6;
}

// What axe finds. All rules except those about colours give the same result in light and dark, so a
// second look at the same view checks only the colours.
export async function axe(page, coloursOnly = false) {
  if (!(await page.evaluate(() => "axe" in window))) await page.addScriptTag({ path: axeSource() });
  return page.evaluate((only) => axe.run(document, { resultTypes: ["violations"], ...(only ? { runOnly: ["color-contrast", "link-in-text-block"] } : {}) })
    .then((r) => r.violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.any[0]?.message ?? n.all[0]?.message ?? ""}`).slice(0, 3).join(" / ")}`).join("\n")), coloursOnly);
}
const axeSource = () => require.resolve("axe-core/axe.min.js");
export { require };
