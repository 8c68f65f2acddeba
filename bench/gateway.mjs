#!/usr/bin/env node
// What the gateway adds to a request: the same requests to an endpoint directly and through the
// gateway, in interleaved rounds, on kept connections.
//
//   gateway.mjs [BUILD]         (or STENO_BUILD; build)
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const build = resolve(process.argv[2] || process.env.STENO_BUILD || join(root, "build"));
const ROUNDS = 5, REQUESTS = 200, BYTES = 40 * 1024;
const dir = mkdtempSync(join(process.env.STENO_BENCH_DIR || tmpdir(), "gateway-"));

const answer = JSON.stringify({ id: "c", object: "chat.completion", model: "m", choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "yes" } }] });
const up = createServer((req, res) => {
  req.resume();
  req.on("end", () => {
    res.setHeader("content-type", "application/json");
    res.end(answer);
  });
});
await new Promise((r) => up.listen(0, "127.0.0.1", r));
const direct = `http://127.0.0.1:${up.address().port}/v1/chat/completions`;

mkdirSync(join(dir, "steno"));
writeFileSync(join(dir, "steno/config.json"), JSON.stringify({ upstreams: { openai: { url: direct.replace("/chat/completions", ""), key: "k" } } }));
const server = spawn(join(build, "steno"), ["--store", join(dir, "store"), "serve", "--listen", "127.0.0.1:0", "--json", "--no-tools", "--log", "/dev/null"],
  { cwd: dir, env: { ...process.env, XDG_CONFIG_HOME: dir }, stdio: ["ignore", "pipe", "ignore"] });
const said = JSON.parse(await new Promise((r) => server.stdout.once("data", (d) => r(String(d)))));
const token = said.address.split("#token=")[1];
const through = `http://127.0.0.1:${said.port}/openai/v1/chat/completions`;

const agent = new Agent({ keepAlive: true });
let serial = 0;
const ask = (url) => new Promise((done, fail) => {
  const body = JSON.stringify({ model: "m", messages: [{ role: "system", content: "x".repeat(BYTES) }, { role: "user", content: `question ${++serial}` }] });
  const from = process.hrtime.bigint();
  const req = request(url, { method: "POST", agent, headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "content-length": Buffer.byteLength(body) } }, (res) => {
    res.resume();
    res.on("end", () => (res.statusCode === 200 ? done(Number(process.hrtime.bigint() - from) / 1e6) : fail(new Error(String(res.statusCode)))));
  });
  req.on("error", fail);
  req.end(body);
});
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

const rounds = [];
for (const url of [direct, through]) for (let i = 0; i < 20; i++) await ask(url);
for (let r = 0; r < ROUNDS; r++) {
  const times = { direct: [], through: [] };
  for (let i = 0; i < REQUESTS; i++) {
    times.direct.push(await ask(direct));
    times.through.push(await ask(through));
  }
  rounds.push({ direct: median(times.direct), through: median(times.through) });
}
const added = rounds.map((r) => r.through - r.direct);
console.log(JSON.stringify({ name: "gateway_added_ms", what: "median of a 40 KiB request through the gateway, less one without it",
  median: Number(median(added).toFixed(3)), min: Number(Math.min(...added).toFixed(3)), max: Number(Math.max(...added).toFixed(3)),
  direct_ms: Number(median(rounds.map((r) => r.direct)).toFixed(3)), through_ms: Number(median(rounds.map((r) => r.through)).toFixed(3)) }));
server.kill("SIGTERM");
await new Promise((r) => server.on("exit", r));
agent.destroy();
up.closeAllConnections();
up.close();
rmSync(dir, { recursive: true, force: true });
