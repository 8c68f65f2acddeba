// "Record your agent in five minutes" of the README, row by row: the line of the row is run with the
// address and the token of a real server, in a clean home, by a program that knows nothing but its
// environment. For clients that are in no package, the SDK that they use takes their place. Rows that
// other tests run name these tests, and a row that nobody runs fails.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { needTypes } from "../strict/judges.mjs";
import { load, main, ok, root, same, scratch, steno, test } from "../http/lib.mjs";
import { recorded, world } from "./world.mjs";

needTypes();
await load("openai"); // skips where tests/npm is not installed
const packages = join(root, "tests/npm/node_modules");
const of = (name) => JSON.stringify(join(packages, name));
// Expressions, whose promise is kept when the client got its answer.
const openai = `new (require(${of("openai")}))({ maxRetries: 0 }).chat.completions
  .create({ model: "m", messages: [{ role: "user", content: "from the recipe" }] })`;
const anthropic = `new (require(${of("@anthropic-ai/sdk")}))({ maxRetries: 0 }).messages
  .create({ model: "m", max_tokens: 100, messages: [{ role: "user", content: "from the recipe" }] })`;
const gemini = `new (require(${of("@google/genai")}).GoogleGenAI)({ apiKey: process.env.GEMINI_API_KEY }).models
  .generateContent({ model: "gemini-x", contents: "from the recipe" })`;
const plain = `fetch(process.env.OPENAI_API_BASE + "/chat/completions", { method: "POST",
  headers: { "content-type": "application/json", authorization: "Bearer " + process.env.OPENAI_API_KEY },
  body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "from the recipe" }] }) })
  .then((r) => r.status === 200 ? r.json() : Promise.reject(new Error("status " + r.status)))`;

// Row of the README -> which endpoint, and the program; or the test that runs it.
const rows = {
  "Claude Code": { provider: "anthropic", program: anthropic },
  "Codex CLI": { by: "tests/gateway/codex.long.test" },
  "aider": { provider: "openai", program: plain },
  "Gemini CLI, `@google/genai`": { provider: "gemini", program: gemini },
  "the OpenAI SDKs, LangChain": { provider: "openai", program: openai },
  "the Anthropic SDKs": { provider: "anthropic", program: anthropic },
  "the AI SDK (`useChat`)": { by: "tests/http/vercel.test" },
  "`@openai/agents`, LangGraph": { by: "tests/bindings" },
  "an agent in an editor (ACP)": { by: "tests/acp/acp.test" },
  "an MCP client": { by: "tests/mcpd/clients.test" },
  "sessions that these tools have already written": { by: "tests/import/import.test" },
};

const readme = readFileSync(join(root, "README.md"), "utf8");
const section = readme.split("## Record your agent in five minutes")[1].split("\n## ")[0];
const table = [...section.matchAll(/^\| ([^|]+) \| ([^|]+) \|$/gm)].map((m) => [m[1].trim(), m[2].trim()])
  .filter(([who]) => who !== "you have" && !who.startsWith("---"));

let homes = 0;
const clean = () => {
  const home = join(scratch, `home${++homes}`);
  mkdirSync(home);
  return { PATH: process.env.PATH, HOME: home, TMPDIR: process.env.TMPDIR ?? "/tmp", OPENAI_API_KEY: "own-key", ANTHROPIC_API_KEY: "own-key", GEMINI_API_KEY: "own-key" };
};
const run = (argv, env) => new Promise((done) => {
  const p = spawn(argv[0], argv.slice(1), { env, cwd: env.HOME, stdio: ["ignore", "pipe", "pipe"] });
  let out = "", err = "";
  p.stdout.on("data", (d) => { out += d; });
  p.stderr.on("data", (d) => { err += d; });
  p.on("close", (code) => done({ code, out, err }));
});
const node = (program) => [process.execPath, "-e",
  `(${program}).then(() => console.log("answered"), (e) => { console.error(e); process.exit(1); })`];

test("every row of the README's table is run here or by another test that exists", () => {
  same(table.map(([who]) => who), Object.keys(rows), "rows");
  for (const [who, row] of Object.entries(rows)) ok(row.program || existsSync(join(root, row.by)), `${who}: ${row.by}`);
});

for (const [who, recipe] of table.filter(([who]) => rows[who]?.program)) {
  test(`${who}: the line of the README records, from a clean home`, async () => {
    const w = await world(rows[who].provider, () => ({ text: "the answer" }));
    const [, variable, address] = recipe.match(/`([A-Z_]+)=(http:[^ `]+)/);
    const env = { ...clean(), [variable]: address.replace("http://127.0.0.1:7717", w.s.url).replace("TOKEN", w.s.token) };
    const r = await run(node(rows[who].program), env);
    same([r.code, r.out], [0, "answered\n"], r.err);
    const list = await recorded(w);
    same(list.length, 1, "conversations");
    const text = JSON.stringify(list[0].messages);
    ok(text.includes("from the recipe") && text.includes("the answer"), text.slice(0, 800));
    w.end();
  });
}

test("steno record -- PROGRAM: the first command of the README records, from a clean home", async () => {
  const w = await world("openai", () => ({ text: "the answer" }));
  const env = { ...clean(), OPENAI_BASE_URL: `${w.e.url}/v1` };
  const r = await run([steno, "record", "--", ...node(openai)], env);
  same([r.code, r.out], [0, "answered\n"], r.err);
  const list = JSON.parse((await run([steno, "--json", "ls"], env)).out).items;
  same(list.length, 1, "conversations");
  const log = await run([steno, "log", list[0].id], env);
  ok(log.out.includes("from the recipe") && log.out.includes("the answer"), log.out + log.err);
  w.end();
});

test("a mistake in the set-up gets an answer that names the right step", async () => {
  const w = await world("openai", () => ({ text: "the answer" }));
  const ask = async (path, key = "Bearer own-key") => {
    const r = await fetch(w.s.url + path, { method: "POST", headers: { "content-type": "application/json", ...(key ? { authorization: key } : {}) },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }] }) });
    return [r.status, (await r.json()).error.message];
  };
  const says = async ([status, words], expected, ...parts) => {
    same(status, expected, words);
    for (const part of parts) ok(words.includes(part), `${part} is not in: ${words}`);
  };
  // The README's placeholder left unchanged, the address without a token, an incomplete address.
  await says(await ask("/~TOKEN/openai/v1/chat/completions"), 401, "token in the address is not known", "steno serve");
  await says(await ask("/openai/v1/chat/completions"), 401, "this token is not known", "steno serve");
  await says(await ask("/openai/v1/chat/completions", null), 401, "/~TOKEN before the path");
  await says(await ask(`/~${w.s.token}/openai/chat/completions`), 404, "/~TOKEN/openai/v1");
  await says(await ask(`/~${w.s.token}/v1/chat/completions`), 401, "/~TOKEN/openai/v1");
  await says(await ask("/v1/conversations", null), 401, "a token is needed: Authorization: Bearer");
  w.end();
});

test("an error names an endpoint that cannot be reached, without its secrets", async () => {
  const gone = "127.0.0.1:1";
  const w = await world("openai", () => ({ text: "the answer" }), {}, { url: `http://name:pass@${gone}/v1` });
  const r = await fetch(`${w.s.url}/~${w.s.token}/openai/v1/chat/completions?key=secret`, { method: "POST",
    headers: { "content-type": "application/json" }, body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }] }) });
  const { error } = await r.json();
  same(r.status, 502, error.message);
  ok(error.message.includes(`(http://${gone})`) && !/secret|pass/.test(error.message), error.message);
  const list = await recorded(w);
  ok(JSON.stringify(list[0].messages).includes(`(http://${gone})`), "the record names it too");
  w.end();
});

await main();
