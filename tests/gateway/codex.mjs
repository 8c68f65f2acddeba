// Codex CLI as npm has it, unmodified, against a scripted endpoint: two subagents with a command each,
// an answer that is cut, a compaction and a resume; directly, through `steno record`, and through a
// gateway that is killed in the middle. STENO_TEST_CODEX is a folder in which @openai/codex is
// installed; else it is installed anew.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Server, long, main, ok, same, scratch, sleep, steno, test, until } from "../http/lib.mjs";

const folder = process.env.STENO_TEST_CODEX || scratch;
if (!long && !process.env.STENO_TEST_CODEX) {
  console.log("1..0 # SKIP Codex is installed in the long run only");
  process.exit(0);
}
if (!existsSync(join(folder, "node_modules/.bin/codex")))
  spawnSync("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "@openai/codex@0.166.0"], { encoding: "utf8" });
if (!existsSync(join(folder, "node_modules/.bin/codex"))) {
  console.log("1..0 # SKIP @openai/codex could not be installed");
  process.exit(0);
}

// ---- the endpoint ----
const message = (text) => ({ type: "message", id: `msg_${text.replace(/\W/g, "")}`, role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] });
const call = (id, name, args, namespace) => ({ type: "function_call", id: `fc_${id}`, call_id: id, name, ...(namespace && { namespace }), arguments: JSON.stringify(args), status: "completed" });
const results = (body) => body.input.filter((i) => i.type === "function_call_output");
const kind = (s) => JSON.parse(s.headers["x-codex-turn-metadata"] ?? "{}").request_kind;

// What the model answers to a request. `state` belongs to one endpoint.
function say(body, headers, state) {
  const done = results(body).map((i) => i.call_id), text = JSON.stringify(body.input);
  if (body.input.at(-1).type === "compaction_trigger") return { items: [{ type: "compaction", id: "cmp_1", encrypted_content: "SUMMARY of the work" }] };
  if (kind({ headers }) === "compaction") return { items: [message("SUMMARY of the work")] };
  if (headers["x-openai-subagent"]) {
    const who = /you are child ([ab])/.exec(text)[1];
    return done.includes(`c${who}`) ? { items: [message(`child ${who} is done`)] } : { items: [call(`c${who}`, "exec_command", { cmd: `echo from ${who}` })] };
  }
  if (text.includes("SUMMARY of the work")) return { items: [message("all is done")] };
  if (!done.includes("sa")) return { items: ["a", "b"].map((w) => call(`s${w}`, "spawn_agent", { message: `you are child ${w}` }, "multi_agent_v1")) };
  if (!done.includes("run")) // its item is complete and runs; then the answer breaks off, or the gateway dies
    return state.broken++ ? { items: [call("run", "exec_command", { cmd: "echo once" })] } : { items: [], cut: true };
  if (!done.includes("wait")) {
    const targets = results(body).map((i) => /"agent_id":"([^"]+)"/.exec(typeof i.output === "string" ? i.output : "")?.[1]).filter(Boolean);
    return { items: [call("wait", "wait_agent", { targets, timeout_ms: 30000 }, "multi_agent_v1")] };
  }
  if (!text.includes("and now more")) return { items: [message("the first turn is over")] };
  return done.includes("more") ? { items: [message("not compacted")] } : { items: [call("more", "exec_command", { cmd: "echo more" })], tokens: 200000 };
}

async function endpoint(onCut) {
  const seen = [], state = { broken: 0 };
  const server = createServer(async (req, res) => {
    let text = "";
    for await (const p of req) text += p;
    if (req.method !== "POST") return res.setHeader("content-type", "application/json").end('{"data":[],"models":[]}');
    const body = JSON.parse(text);
    seen.push({ headers: req.headers, body });
    const turn = say(body, req.headers, state), id = `resp_${seen.length}`;
    const send = (type, o) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...o })}\n\n`);
    res.setHeader("content-type", "text/event-stream");
    send("response.created", { response: { id, object: "response", status: "in_progress", output: [] } });
    turn.items.forEach((item, i) => send("response.output_item.done", { output_index: i, item }));
    if (turn.cut) {
      await onCut();
      return res.destroy();
    }
    const tokens = turn.tokens ?? 5;
    send("response.completed", { response: { id, object: "response", status: "completed", output: turn.items, usage: { input_tokens: tokens, output_tokens: 5, total_tokens: tokens + 5, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } } } });
    res.end();
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return { seen, url: `http://127.0.0.1:${server.address().port}/v1`, end: () => { server.closeAllConnections(); server.close(); } };
}

// ---- a session ----
let homes = 0;
// `before` is what is written before the command; without it the address is in Codex's own file.
async function session(url, before = [], more = {}) {
  const home = join(scratch, `codex${++homes}`), own = join(home, ".codex");
  mkdirSync(own, { recursive: true });
  const provider = before.length ? "" : `model_provider = "x"\n[model_providers.x]\nname = "x"\nbase_url = "${url}"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\nrequest_max_retries = 50\nstream_max_retries = 50\n`;
  writeFileSync(join(own, "config.toml"), `model = "gpt-5"\nmodel_auto_compact_token_limit = 50000\n${provider}[features]\nmulti_agent = true\n`);
  const env = { PATH: `${join(folder, "node_modules/.bin")}:${process.env.PATH}`, HOME: home, XDG_CONFIG_HOME: home, CODEX_HOME: own, OPENAI_API_KEY: "sk-own", ...more };
  const run = (words) => new Promise((done) => {
    const argv = [...before, "codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", ...words];
    const p = spawn(argv[0], argv.slice(1), { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
    let out = "", err = "";
    p.stdout.on("data", (d) => { out += d; });
    p.stderr.on("data", (d) => { err += d; });
    p.on("close", (code) => done({ code, out: out.trim(), err }));
  });
  const first = await run(["do it"]);
  const second = await run(["resume", /session id: (\S+)/.exec(first.err)?.[1] ?? "--last", "and now more"]); // the last one may be a subagent's
  return { home, own, env, first, second, codes: [first.code, second.code], outs: [first.out, second.out] };
}
// Each call that was in any request, with the part of its output that is the same in every run: an
// import leaves out the lines that Codex writes above a command's output.
const outputOf = (o) => (typeof o === "string" ? o : JSON.stringify(o)).replace(/^[^]*\nOutput:\n/, "").replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID").replace(/(chunk id|wall time|nickname)[^\n,]*/gi, "");
const calls = (items) => Object.fromEntries(items.filter((i) => i.type === "function_call_output").map((i) => [i.call_id, i.call_id === "wait" ? "" : outputOf(i.output)]).sort());

const alone = await endpoint(async () => {});
const direct = await session(alone.url);
const wanted = calls(alone.seen.flatMap((s) => s.body.input));

test("without the gateway the session has its subagents, its cut answer, its compaction and its end", async () => {
  same([direct.codes, direct.outs[1]], [[0, 0], "all is done"], `the end ${direct.second.err.slice(-500)}`);
  same(Object.keys(wanted), ["ca", "cb", "more", "run", "sa", "sb", "wait"], "calls");
  same(alone.seen.filter((s) => kind(s) === "compaction").length, 1, "compactions");
});

// What must be true of the record, whichever way it was made.
function holds(what, s, e, list) {
  same([s.codes, s.outs[1]], [direct.codes, direct.outs[1]], `${what}: the same end ${s.second.err.slice(-500)}`);
  const asked = calls(e.seen.flatMap((x) => x.body.input));
  same(asked, wanted, `${what}: the same calls with the same results`);
  const stored = list.flatMap((c) => c.messages.filter((m) => m.includeInContext !== false));
  same(calls(stored), wanted, `${what}: all of them recorded`);
  // Four histories: the session, its two subagents, and the session after the compaction; beside them
  // the request for the compaction, which is a fork of the first.
  const threads = new Set(e.seen.map((x) => x.headers["thread-id"]));
  same(threads.size, 3, `${what}: threads`);
  const about = (c) => c.meta.gateway ?? {};
  const parent = e.seen[0].headers["thread-id"];
  same(list.filter((c) => about(c).parent === parent).length, 2, `${what}: subagents are linked to it`);
  const root = list.filter((c) => about(c).group === parent && !about(c).compactedFrom);
  same(root.length, 1, `${what}: one conversation of the session`);
  same(list.filter((c) => about(c).compactedFrom).map((c) => about(c).compactedFrom), [root[0].id], `${what}: the one after the compaction`);
  same(list.filter((c) => about(c).group === `side/${parent}`).length, 1, `${what}: the request for it`);
  same(list.length, 5, `${what}: no false fork`);
  const said = root[0].messages.filter((m) => m.includeInContext !== false && m.type === "function_call").map((m) => m.call_id);
  same(said, ["sa", "sb", "run", "wait", "more"], `${what}: each call once, in order`);
  ok(root[0].messages.some((m) => m.partType === "error"), `${what}: the cut answer`);
}
const ask = (store, env, ...args) => {
  const r = spawnSync(steno, ["--store", store, "--json", ...args], { env, encoding: "utf8", maxBuffer: 1 << 28 });
  ok(r.status === 0, args.join(" "), r.stderr);
  return JSON.parse(r.stdout);
};
function read(store, env) {
  const list = ask(store, env, "ls");
  return (list.items ?? list).map((c) => {
    for (const format of ["responses", "openai", "anthropic", "gemini"]) ask(store, env, "messages", c.id, "--format", format, "--strict");
    return { id: c.id, meta: JSON.parse(readFileSync(join(store, "projects/default/conversations", c.id, "meta.json"), "utf8")), messages: ask(store, env, "messages", c.id, "--format", "stored").map((m) => m.m) };
  });
}

test("through steno record: the same session, recorded whole, and its own transcript has the same calls", async () => {
  const e = await endpoint(async () => {});
  const store = join(scratch, "record-store");
  const s = await session(e.url, [steno, "--store", store, "record", "--"], { OPENAI_BASE_URL: e.url });
  holds("record", s, e, read(store, s.env));
  const other = join(scratch, "import-store");
  const r = spawnSync(steno, ["--store", other, "import", join(s.own, "sessions")], { env: s.env, encoding: "utf8" });
  ok(r.status === 0, "import", r.stderr);
  same(calls(read(other, s.env).flatMap((c) => c.messages.map((m) => (m.role === "tool" ? { type: "function_call_output", call_id: m.tool_call_id, output: m.content } : m)))), wanted, "the same calls");
  e.end();
});

test("through a server that is killed in the middle and started again: the same session, recorded whole", async () => {
  const server = new Server();
  let killed = 0;
  const e = await endpoint(async () => {
    await sleep(100); // the first bytes are on their way
    await server.crash();
    killed++;
  });
  server.configure({ upstreams: { openai: { url: e.url, key: "sk-server" } } });
  await server.start();
  const s = await session(`${server.url}/openai/v1`, [], { OPENAI_API_KEY: server.token });
  same(killed, 1, "kills");
  await until("the recorder", () => readdirSync(server.gatewayFolder()).every((n) => !n.startsWith("ex_")));
  holds("serve", s, e, read(server.store, s.env));
  e.end();
});

await main();
