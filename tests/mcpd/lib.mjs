// What the tests of the MCP server share: a store with conversations and large outputs, a server on
// it, real clients of both generations over both transports, and lines over stdio.
import { spawn, spawnSync } from "node:child_process";
import { Server, load, ok, steno } from "../http/lib.mjs";

export const server = await new Server().start();

const call = (id) => ({ role: "assistant", content: null,
  tool_calls: [{ id, type: "function", function: { name: "build", arguments: "{}" } }] });

export function run(args, input) {
  const r = spawnSync(steno, ["--store", server.store, ...args], { input, env: server.environment(), maxBuffer: 1 << 28 });
  ok(r.status === 0, `steno ${args.join(" ")}:`, r.stderr.toString());
  return r.stdout.toString();
}

// A conversation with one large output; its ref.
export function conversation(id, output, project = "default") {
  const p = ["--project", project];
  run([...p, "new", "--id", id]);
  run([...p, "append", id], [{ role: "user", content: `asked in ${id}` }, call("c1")].map((m) => JSON.stringify(m)).join("\n"));
  run([...p, "output", id, "--tool", "build", "--call", "c1"], output);
  run([...p, "append", id], JSON.stringify({ role: "assistant", content: "long ".repeat(2000) + "end" }));
  return JSON.parse(run([...p, "--json", "context", "list", id])).items[0].id;
}
export function another(id, callId, output) {
  run(["append", id], JSON.stringify(call(callId)));
  run(["output", id, "--tool", "build", "--call", callId], output);
}

// Lines with characters of two and four bytes, so that a page's end can fall into one.
export const lines = Buffer.from(Array.from({ length: 30000 },
  (_, i) => `line ${i} é😀 ${i % 1000 === 7 ? "NEEDLE" : "hay"}\n`).join(""));
export const bytes = Buffer.from(Array.from({ length: 300000 }, (_, i) => (i * 7 + (i >> 8)) & 255));
export const ref = conversation("mine", lines);
export const secret = conversation("theirs", "secret of another conversation\n".repeat(2000));
export const foreign = conversation("far", "secret of another project\n".repeat(2000), "other");
export const binary = conversation("binary", bytes);

export const path = (id = "mine") => `/mcp?conversation=${encodeURIComponent(id)}`;

// ---- real clients ----
const old = await load("@modelcontextprotocol/sdk/client/index.js");
const oldStdio = await load("@modelcontextprotocol/sdk/client/stdio.js");
const oldHttp = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const young = await load("@modelcontextprotocol/client");
const youngStdio = await load("@modelcontextprotocol/client/stdio");
const about = { name: "test", version: "1" };
const GENERATIONS = {
  "sdk 1": { make: () => new old.Client(about), Stdio: oldStdio.StdioClientTransport, Http: oldHttp.StreamableHTTPClientTransport, modern: false },
  "client 2": { make: () => new young.Client(about), modern: false },
  "client 2, auto": { make: () => new young.Client(about, { versionNegotiation: { mode: "auto" } }), modern: true },
  "client 2, pinned": { make: () => new young.Client(about, { versionNegotiation: { mode: { pin: "2026-07-28" } } }), modern: true },
};
const TRANSPORTS = {
  stdio: (g, args) => new (g.Stdio ?? youngStdio.StdioClientTransport)({ command: steno,
    args: ["--store", server.store, ...args], env: server.environment(), stderr: "inherit" }),
  http: (g, args, address) => new (g.Http ?? young.StreamableHTTPClientTransport)(
    new URL(server.url + address), { requestInit: { headers: { authorization: `Bearer ${server.token}` } } }),
  "http, token in the path": (g, args, address) => new (g.Http ?? young.StreamableHTTPClientTransport)(
    new URL(`${server.url}/~${server.token}${address}`)),
};
export const kinds = Object.keys(GENERATIONS).flatMap((g) => Object.keys(TRANSPORTS).map((t) => ({ g, t,
  modern: GENERATIONS[g].modern, name: `${g} over ${t}` })));

export async function client(kind, f, { args = ["mcp", "--conversation", "mine"], address = path() } = {}) {
  const g = GENERATIONS[kind.g];
  const c = g.make();
  await c.connect(TRANSPORTS[kind.t](g, args, address));
  try {
    return await f(c);
  } finally {
    await c.close();
  }
}

// ---- lines ----
export const META = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
export const rpc = (id, method, params) => ({ jsonrpc: "2.0", id, method, params });

// All output for one whole input. Lines are texts or values.
export async function talk(input, args = ["mcp", "--conversation", "mine"]) {
  const child = spawn(steno, ["--store", server.store, ...args], { env: server.environment(), stdio: ["pipe", "pipe", "pipe"] });
  const out = [], err = [];
  child.stdout.on("data", (d) => out.push(d));
  child.stderr.on("data", (d) => err.push(d));
  child.stdin.on("error", () => {});
  child.stdin.end(Array.isArray(input) ? input.map((l) => (typeof l === "string" ? l : JSON.stringify(l)) + "\n").join("") : input);
  const code = await new Promise((done) => child.on("close", (c, s) => done(s ?? c)));
  const text = Buffer.concat(out).toString();
  const list = text.split("\n").slice(0, -1).map((l) => JSON.parse(l));
  ok(text === "" || text.endsWith("\n"), "the last line is whole");
  return { code, list, err: Buffer.concat(err).toString(), of: (id) => list.find((m) => m.id === id) };
}
