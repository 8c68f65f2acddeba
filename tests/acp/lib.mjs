// What the tests of the ACP recorder share: an agent and a client with the SDK of npm, with and
// without the recorder between them, and what was recorded.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { load, ok, scratch, steno } from "../http/lib.mjs";

export const sdk = { 1: await load("@agentclientprotocol/sdk"), 2: await load("@agentclientprotocol/sdk/experimental/v2") };
const agent = fileURLToPath(new URL("agent.mjs", import.meta.url));

let worlds = 0;
export class World {
  constructor({ version = 1 } = {}) {
    this.version = version;
    this.folder = join(scratch, `acp${++worlds}`);
    this.store = join(this.folder, "store");
    mkdirSync(this.folder, { recursive: true });
    this.runs = 0;
  }
  env(more = {}) {
    const env = { ...process.env, VERSION: String(this.version), XDG_CONFIG_HOME: this.folder, XDG_STATE_HOME: join(this.folder, "state"), ...more };
    for (const name of ["STENO_STORE", "STENO_PROJECT"]) delete env[name];
    return env;
  }
  steno(...args) {
    const r = spawnSync(steno, ["--store", this.store, ...args], { env: this.env(), maxBuffer: 1 << 30 });
    ok(r.status === 0, `steno ${args.join(" ")}: ${r.status}`, r.stderr.toString());
    return r.stdout;
  }
  json(...args) {
    return JSON.parse(this.steno("--json", ...args));
  }
  conversations() {
    const r = spawnSync(steno, ["--store", this.store, "--json", "ls", "-n", "1000"], { env: this.env() });
    if (r.status === 0) return JSON.parse(r.stdout).items;
    ok(/there is no store/.test(r.stderr), "steno ls", r.stderr.toString());
    return [];
  }
  // Every message of a conversation as it is stored.
  messages(id) {
    return JSON.parse(this.steno("messages", id, "--format", "stored")).map((m) => m.m);
  }
  view(id, format = "openai") {
    return JSON.parse(this.steno("messages", id, "--format", format));
  }
  output(id, ref) {
    return this.steno("context", "read", id, ref, "--all");
  }
  // Runs a client with the agent, through the recorder or directly.
  async client(work, { through = true, options = [], env = {}, answers = {}, command = [process.execPath, agent] } = {}) {
    const n = ++this.runs;
    const file = (name) => join(this.folder, `${name}.${n}`);
    const argv = through ? [steno, "--store", this.store, "acp", ...options, "--", ...command] : command;
    const child = spawn(argv[0], argv.slice(1), { cwd: this.folder, stdio: ["pipe", "pipe", "pipe"],
      env: this.env({ AGENT_IN: file("agent-in"), AGENT_OUT: file("agent-out"), AGENT_SESSIONS: join(this.folder, "sessions.json"), ...env }) });
    const sent = [], got = [], errors = [];
    child.stderr.on("data", (d) => errors.push(d));
    child.stdin.on("error", () => {});
    const tap = (list) => new TransformStream({ transform(c, o) { list.push(Buffer.from(c)); o.enqueue(c); } });
    const up = tap(sent);
    up.readable.pipeTo(Writable.toWeb(child.stdin)).catch(() => {});
    const seen = [], over = new Promise((done) => child.on("close", (code, signal) => done(signal ?? code)));
    const acp = sdk[this.version];
    const terminals = new Terminals();
    const app = acp.client({ name: "test-client" })
      .onNotification("session/update", ({ params }) => { seen.push(params); answers.update?.(params); })
      .onNotification("*", () => {})
      .onRequest("session/request_permission", () => ({ outcome: { outcome: "selected", optionId: "no" } }))
      .onRequest("*", ({ params, method }) => (method === "_vendor/ask" ? { answer: params.q, ...answers.vendor } : {}));
    if (this.version === 1) {
      app.onRequest("fs/read_text_file", () => ({ content: "file ".repeat(20000) }));
      terminals.serve(app, answers);
    }
    const stream = acp.ndJsonStream(up.writable, Readable.toWeb(child.stdout).pipeThrough(tap(got)));
    let result;
    const connection = app.connect(stream);
    const agentSide = connection.agent;
    try {
      await agentSide.request("initialize", { protocolVersion: this.version,
        ...(this.version === 1 ? { clientCapabilities: { terminal: true, fs: { readTextFile: true } } } : { info: { name: "c", version: "1" }, capabilities: {} }) });
      result = await work({ agent: agentSide, seen, child, terminals });
    } catch (e) {
      e.message += `\nthe recorder said: ${Buffer.concat(errors)}`;
      throw e;
    } finally {
      child.stdin.end();
    }
    const code = await over;
    const read = (name) => (existsSync(file(name)) ? readFileSync(file(name)) : Buffer.alloc(0));
    return { result, code, seen, errors: Buffer.concat(errors).toString(), terminals,
      client: { sent: Buffer.concat(sent), got: Buffer.concat(got) },
      agent: { got: read("agent-in"), sent: read("agent-out") } };
  }
  async prompt(agentSide, sessionId, text, seen) {
    const prompt = typeof text === "string" ? [{ type: "text", text }] : text;
    const r = await agentSide.request("session/prompt", { sessionId, prompt });
    if (this.version === 2) {
      const idle = () => seen.filter((s) => s.update.state === "idle").length;
      this.idle = (this.idle ?? 0) + 1;
      while (idle() < this.idle) await new Promise((done) => setTimeout(done, 5));
      this.idle = 0;
      seen.length = 0;
    }
    return r;
  }
  session(agentSide, more = {}) {
    return agentSide.request("session/new", { cwd: this.folder, ...(this.version === 1 ? { mcpServers: [] } : {}), ...more });
  }
  // The recorder's own folder, on the machine where the recorder runs.
  place() {
    const made = existsSync(join(this.folder, "state")) ? readdirSync(join(this.folder, "state"), { recursive: true }) : [];
    return [join(this.store, "acp"), ...made.filter((n) => basename(n) === "acp").map((n) => join(this.folder, "state", n))].find(existsSync);
  }
  left() {
    return this.place() ? readdirSync(this.place()).filter((n) => n !== "sessions") : [];
  }
}

// A client's terminals, as in an editor: the end of the output is kept, up to the limit.
class Terminals {
  constructor() {
    this.all = new Map();
    this.whole = new Map(); // all bytes of each, whatever the limit was
    this.limits = [];
    this.released = [];
    this.asked = 0; // how often the output was sent
  }
  serve(app, answers) {
    app.onRequest("terminal/create", ({ params }) => {
      const id = `t${this.whole.size + 1}`;
      const child = spawn(params.command, params.args, { stdio: ["ignore", "pipe", "pipe"] });
      const t = { pieces: [], limit: params.outputByteLimit ?? Infinity, exit: null };
      this.limits.push(params.outputByteLimit);
      child.stdout.on("data", (d) => t.pieces.push(d));
      child.stderr.on("data", (d) => t.pieces.push(d));
      t.over = new Promise((done) => child.on("close", (exitCode, signal) => { t.exit = { exitCode, signal }; done(); }));
      this.all.set(id, t);
      this.whole.set(id, () => Buffer.concat(t.pieces));
      return { terminalId: id };
    }).onRequest("terminal/output", ({ params }) => {
      if (answers.silent) return new Promise(() => {});
      const t = this.all.get(params.terminalId);
      if (!t) throw new Error("it was released");
      let all = Buffer.concat(t.pieces), from = Math.max(0, all.length - t.limit);
      while (from < all.length && (all[from] & 0xc0) === 0x80) from++;
      this.asked++;
      return { output: all.subarray(from).toString(), truncated: from > 0, exitStatus: t.exit };
    }).onRequest("terminal/wait_for_exit", async ({ params }) => {
      const t = this.all.get(params.terminalId);
      await t.over;
      return t.exit;
    }).onRequest("terminal/release", ({ params }) => {
      this.all.delete(params.terminalId);
      this.released.push(params.terminalId);
      return {};
    }).onRequest("terminal/kill", () => ({}));
  }
}
