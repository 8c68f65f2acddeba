// What the tests of views share: chance, histories with damage, and the program that makes views.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const build = resolve(process.argv[2] || process.env.STENO_BUILD || join(root, "build"));
export const seed = Number(process.env.STENO_TEST_SEED || (Date.now() ^ process.pid) >>> 0);
export const rounds = (n) => (process.env.STENO_TEST_LONG ? n : Math.ceil(n / 20));

let state = seed;
export function random(n) {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
export const pick = (list) => list[random(list.length)];
export const times = (n, f) => Array.from({ length: n }, (_, i) => f(i));

// Each request is what view_lines.c takes; answers come in order. A string of Node cannot hold those of
// the long run together.
const AT_ONCE = 500;
export const views = (requests) => times(Math.ceil(requests.length / AT_ONCE), (i) => someViews(requests.slice(i * AT_ONCE, (i + 1) * AT_ONCE))).flat();
function someViews(requests) {
  const folder = mkdtempSync(join(process.env.STENO_TEST_RAM || process.env.STENO_TEST_TMP || tmpdir(), "views-"));
  try {
    const run = spawnSync(join(build, "tests/view/view_lines"), [join(folder, "store")],
      { input: requests.map((r) => JSON.stringify(r) + "\n").join(""), maxBuffer: 1 << 30 });
    if (run.status !== 0) throw new Error(`view_lines: ${run.error ?? ""} ${run.signal ?? ""} ${run.stderr}`);
    return run.stdout.toString().trimEnd().split("\n").map((line) => JSON.parse(line));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// ---- openai messages ----
const words = ["alpha", "beta", "gamma", "<tag> & co", "übung", "emoji 🎉", "two\nlines", "a \"quote\"", "tab\t"];
export const text = () => times(1 + random(6), () => pick(words)).join(" ");
const args = () => pick(["{}", '{"path":"a.txt"}', '{"q":"x","n":[1,2]}', "", '{"path":"a', '"', "[1]", "null"]);
export const call = (id, name = pick(["read", "write", "grep"])) =>
  ({ id, type: "function", function: { name, arguments: args() } });
export const user = (t = text()) => ({ role: "user", content: t });
export const says = (t = text()) => ({ role: "assistant", content: t });
export const asks = (ids, content = pick([null, text(), ""])) =>
  ({ role: "assistant", content, tool_calls: ids.map((id) => call(id)) });
export const result = (id, content = text()) => ({ role: "tool", tool_call_id: id, content });

let made = 0;
const freshId = () => pick([() => `call_${made++}`, () => `call_${random(3)}`, () => `call:${random(3)}/x`])();

// A history in order, of turns; then it is damaged.
export function history({ turns = 4, damage = 3 } = {}) {
  const list = random(2) ? [{ role: pick(["system", "developer"]), content: text() }] : [];
  for (let t = 1 + random(turns); t > 0; t--) {
    list.push(user());
    for (let k = random(3); k > 0; k--) {
      const ids = [...new Set(times(1 + random(3), freshId))];
      list.push(asks(ids), ...ids.map((id) => result(id)));
    }
    if (random(4)) list.push(says());
  }
  for (let d = random(damage + 1); d > 0; d--) pick(damages)(list);
  return list;
}

const at = (list, f) => { const i = list.map((m, k) => (f(m) ? k : -1)).filter((k) => k >= 0); return i.length ? pick(i) : -1; };
const isResult = (m) => m.role === "tool";
export const damages = [
  function call_without_result(l) { const i = at(l, isResult); if (i >= 0) l.splice(i, 1); },
  function cut_at_any_place(l) { l.length = 1 + random(l.length); },
  function starts_at_any_place(l) { l.splice(0, random(l.length)); },
  function orphan(l) { l.splice(random(l.length + 1), 0, result(pick(["nobody", "call_0", "call_1"]))); },
  function duplicate(l) { const i = at(l, isResult); if (i >= 0) l.splice(random(l.length - i) + i + 1, 0, { ...l[i] }); },
  function swapped(l) { if (l.length > 1) { const i = random(l.length - 1); [l[i], l[i + 1]] = [l[i + 1], l[i]]; } },
  function late_result(l) { const i = at(l, isResult); if (i >= 0) { const [m] = l.splice(i, 1); l.splice(i + random(l.length - i + 1), 0, m); } },
  function cut_arguments(l) { const i = at(l, (m) => m.tool_calls?.at(-1).function); if (i >= 0) l[i].tool_calls.at(-1).function.arguments = '{"path":"/etc/pas'; },
  function two_user_turns(l) { const i = random(l.length + 1); l.splice(i, 0, user(), user()); },
  function no_words(l) { const i = at(l, (m) => m.role === "assistant"); if (i >= 0) l[i].content = pick([null, "", "  ", []]); },
  function user_without_words(l) { const i = at(l, (m) => m.role === "user"); if (i >= 0) l[i].content = pick(["", " ", []]); },
  function result_without_id(l) { const i = at(l, isResult); if (i >= 0) { l[i] = { ...l[i], ...(random(2) && { toolName: "read" }) }; delete l[i].tool_call_id; if (random(3) === 0) l[i].tool_call_id = null; } },
  function call_without_id(l) { const i = at(l, (m) => m.tool_calls); if (i >= 0) { const c = { ...pick(l[i].tool_calls) }; delete c.id; l[i] = { ...l[i], tool_calls: random(2) ? [c] : [...l[i].tool_calls, c] }; } },
  function twin_calls(l) { const i = at(l, (m) => m.tool_calls); if (i >= 0) l[i].tool_calls.push(call(l[i].tool_calls[0].id)); },
  function error_message(l) { l.splice(random(l.length + 1), 0, { role: "assistant", content: pick(["", "half a"]), partType: "error", error: { code: "LLM_ERROR", message: "x", retryable: true } }); },
  function own_fields(l) { for (const m of l) if (random(2)) Object.assign(m, { createdAt: "2026-01-02T03:04:05.678Z", mode: "chat" }, isResult(m) ? { toolName: "read", duration: 3, isError: true } : {}); },
  function off_context(l) { const i = random(l.length || 1); if (l[i]) l[i].includeInContext = false; },
  function complete_call(l) { l.splice(random(l.length + 1), 0, { role: "assistant", content: null, tool_calls: [{ id: `own_${random(3)}`, name: "read", arguments: "{}", result: "r", steps: [] }] }); },
  function image(l) { const i = at(l, (m) => m.role === "user"); if (i >= 0) l[i].content = [{ type: "text", text: "see" }, { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }]; },
  function extra_words(l) { const i = at(l, (m) => m.role === "assistant"); if (i >= 0) l[i].reasoning_content = "hm"; },
];

// ---- TAP ----
let tests = 0;
let bad = 0;
export function ok(good, name, more) {
  console.log(`${good ? "ok" : "not ok"} ${++tests} - ${name}`);
  if (!good) {
    bad++;
    if (more !== undefined) console.log(`# ${(typeof more === "string" ? more : JSON.stringify(more)).replaceAll("\n", "\n# ")}`);
  }
  return good;
}
export function done() {
  console.log(`1..${tests}`);
  process.exitCode = bad ? 1 : 0;
}
