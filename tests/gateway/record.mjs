// steno record: a program whose calls to a model are recorded. Codex CLI of npm is in codex.mjs.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { load, main, ok, root, same, scratch, steno, test, until } from "../http/lib.mjs";

await load("openai"); // skips where tests/npm is not installed
let worlds = 0;
function place() {
  const dir = join(scratch, `record${++worlds}`);
  mkdirSync(join(dir, "bin"), { recursive: true });
  const env = { PATH: `${join(dir, "bin")}:${process.env.PATH}`, HOME: dir, XDG_CONFIG_HOME: dir, TMPDIR: process.env.TMPDIR ?? "/tmp" };
  const store = join(dir, "store");
  const run = (args, more = {}) => new Promise((done) => {
    const p = spawn(steno, ["--store", store, ...args], { cwd: dir, env: { ...env, ...more }, stdio: ["ignore", "pipe", "pipe"] });
    let out = "", err = "";
    p.stdout.on("data", (d) => { out += d; });
    p.stderr.on("data", (d) => { err += d; });
    p.on("close", (code, signal) => done({ code, signal, out, err }));
    run.last = p;
  });
  const messages = () => {
    const ask = (...args) => JSON.parse(spawnSync(steno, ["--store", store, "--json", ...args], { cwd: dir, env }).stdout.toString());
    const list = ask("ls");
    return (list.items ?? list).map((c) => ({ id: c.id, title: c.title, list: ask("messages", c.id, "--format", "stored").map((m) => m.m) }));
  };
  const program = (name, text) => {
    writeFileSync(join(dir, "bin", name), text);
    chmodSync(join(dir, "bin", name), 0o755);
  };
  return { dir, run, messages, program };
}

// An endpoint of chat completions.
async function endpoint() {
  const seen = [];
  const server = createServer(async (req, res) => {
    let text = "";
    for await (const p of req) text += p;
    const body = text ? JSON.parse(text) : {};
    seen.push({ method: req.method, url: req.url, headers: req.headers, body });
    if (req.url.endsWith("/chat/completions")) {
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify({ id: "c1", object: "chat.completion", model: "m", choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: `said ${body.messages.at(-1).content}` } }] }));
    } else {
      res.setHeader("content-type", "application/json");
      res.end('{"data":[],"models":[]}');
    }
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return { seen, url: `http://127.0.0.1:${server.address().port}/v1`, end: () => { server.closeAllConnections(); server.close(); } };
}

const client = `
const OpenAI = require(${JSON.stringify(join(root, "tests/npm/node_modules/openai"))});
(async () => {
  const c = new OpenAI(); // the key and the address come from the environment
  const messages = [{ role: "user", content: "one" }];
  const r = await c.chat.completions.create({ model: "m", messages });
  messages.push(r.choices[0].message, { role: "user", content: "two" });
  console.log((await c.chat.completions.create({ model: "m", messages })).choices[0].message.content);
  process.exit(7);
})();
`;

test("a program with the openai package is recorded through its environment alone, and its exit code is kept", async () => {
  const p = place(), e = await endpoint();
  writeFileSync(join(p.dir, "agent.cjs"), client);
  const r = await p.run(["record", "--", process.execPath, "agent.cjs"], { OPENAI_BASE_URL: e.url, OPENAI_API_KEY: "sk-own" });
  same([r.code, r.out], [7, "said two\n"], "as the program ended");
  ok(r.err.includes("recorded 2 requests"), "the count", r.err);
  same(e.seen.map((s) => s.headers.authorization), ["Bearer sk-own", "Bearer sk-own"], "its own key");
  ok(e.seen.every((s) => s.url === "/v1/chat/completions"), "no token in the address", e.seen.map((s) => s.url));
  const [c, ...more] = p.messages();
  same(more.length, 0, "one conversation");
  same(c.title, "one", "title");
  same(c.list.filter((m) => m.includeInContext !== false).map((m) => m.content), ["one", "said one", "two", "said two"], "messages");
  const log = (await p.run(["--json", "log", c.id])).out;
  ok(log.includes("said two") && !log.includes("sk-own"), "the key is not stored");
  e.end();
});

test("record warns if a program calls no model, exits with 127 if there is no such program, and passes signals on", async () => {
  const p = place();
  const none = await p.run(["record", "--", "sh", "-c", "exit 3"]);
  same(none.code, 3, "exit code");
  ok(/no request was recorded/.test(none.err), "a warning", none.err);
  const unknown = await p.run(["record", "--", "no-such-program"]);
  same(unknown.code, 127, "exit code");
  ok(unknown.err.includes("no-such-program"), "which", unknown.err);
  p.program("waiter", "#!/bin/sh\ntrap 'echo ended; exit 9' TERM\necho ready\nwhile :; do sleep 0.1; done\n");
  const waiting = p.run(["record", "--", "waiter"]);
  let out = "";
  p.run.last.stdout.on("data", (d) => { out += d; });
  await until("the program", () => out.includes("ready"));
  p.run.last.kill("SIGTERM");
  same((await waiting).code, 9, "the program decided");
});

test("a signal is passed on to the program however early it comes", async () => {
  const p = place();
  p.program("early", "#!/bin/sh\ntrap 'exit 9' TERM\nkill -TERM $PPID\nwhile :; do sleep 0.02; done\n");
  for (let i = 0; i < 5; i++) same((await p.run(["record", "--", "early"])).code, 9, `run ${i}`);
});

test("the environment leads to the gateway; its token is valid for nothing else and ends with the program", async () => {
  const p = place();
  p.program("show", "#!/bin/sh\nenv | grep -E '_BASE|NO_PROXY|TRACING' | sort\necho \"code $(curl -s -o /dev/null -w '%{http_code}' \"${OPENAI_BASE_URL%/openai/v1}/api/chat-sessions\")\"\necho \"code $(curl -s -o /dev/null -w '%{http_code}' -H \"Authorization: Bearer $(echo $OPENAI_BASE_URL | sed 's/.*~\\([^/]*\\).*/\\1/')\" \"http://$(echo $OPENAI_BASE_URL | cut -d/ -f3)/api/chat-sessions\")\"\n");
  const r = await p.run(["record", "--", "show"], { NO_PROXY: "example.com" });
  const base = /OPENAI_BASE_URL=(.*)\/openai\/v1/.exec(r.out)[1];
  for (const line of [`OPENAI_API_BASE=${base}/openai/v1`, `ANTHROPIC_BASE_URL=${base}/anthropic`, `GOOGLE_GEMINI_BASE_URL=${base}/gemini`,
    "NO_PROXY=example.com,127.0.0.1,localhost", "OPENAI_AGENTS_DISABLE_TRACING=1"]) ok(r.out.includes(`${line}\n`), line, r.out);
  same(r.out.match(/code 401/g)?.length, 2, "its token is good for the gateway alone");
  const gone = await fetch(`${base}/openai/v1/models`).then(() => "answered", () => "refused");
  same(gone, "refused", "nobody listens any more");
});

test("codex, which reads no such variable, gets the address as an option", async () => {
  const p = place();
  p.program("codex", "#!/bin/sh\nfor a in \"$@\"; do echo \"arg:$a\"; done\n");
  const r = await p.run(["record", "--", "codex", "exec", "hello"]);
  const args = r.out.trim().split("\n").map((l) => l.slice(4));
  same([args[0], args.slice(2)], ["-c", ["exec", "hello"]], "arguments");
  ok(/^openai_base_url="http:\/\/127\.0\.0\.1:\d+\/~rec-[0-9a-f]+\/openai\/v1"$/.test(args[1]), "option", args[1]);
});

await main();
