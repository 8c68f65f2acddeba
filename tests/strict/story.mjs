// A story: turns with texts, thoughts and calls, the same for all formats. It has everything that
// clients were seen to store: names and ids that no provider accepts, broken media and arguments, halves
// of surrogate pairs, empty and blank texts.
import { pick, random, times } from "./tap.mjs";

export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const JPEG =
  "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z";
const GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
export const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
export const PDF = "JVBERi0xLjQKJSVFT0YK";

export const chance = (n) => random(n) === 0; // one in n
export const maybe = (n, o) => (chance(n) ? o : {});
const words = [
  "alpha",
  "beta",
  "<tag> & co",
  "übung",
  "🎉",
  "two\nlines",
  'a "quote"',
  "tab\t",
  "\u0000",
  "\u001b[31mred",
];
const strange = [
  "",
  " ",
  "\n\n",
  "cut \ud83d",
  "\ude00 tail",
  "x".repeat(3000),
  "<function_call>{",
  "null",
  '{"a":1}',
  "[1,2]",
  "ends with space ",
];
export const text = () => (chance(7) ? pick(strange) : times(1 + random(5), () => pick(words)).join(" "));
export const names = ["read_file", "write", "grep", "execute_command"];
const strangeNames = [
  "multi_tool_use.parallel",
  "fs/read",
  "read file",
  "größe",
  "21st_magic",
  "a:b",
  "x".repeat(64),
  "y".repeat(65),
  "z".repeat(130),
  "mcp__server__tool.name",
  "",
  "a.b",
  "a_b",
];
const name = () => (chance(4) ? pick(strangeNames) : pick(names));

// Numbers for ids; they begin again with each history.
export const serial = { made: 0 };
const freshId = () =>
  pick([
    () => `call_${serial.made++}`,
    () => `call_${serial.made++}`,
    () => `toolu_${serial.made++}`,
    () => `call_${random(3)}`,
    () => `functions.read:${random(3)}`,
    () => `call_${serial.made++}|fc_${serial.made}`,
    () => `c${serial.made++}`.padEnd(41 + random(40), "x"),
    () => `id é/${serial.made++}`,
  ])();

function args() {
  return pick([
    () => ({}),
    () => ({ path: "a.txt" }),
    () => ({ q: text(), n: [1, 2.5, null] }),
    () => ({ nested: { deep: [{ a: text() }] } }),
  ])();
}
const brokenArgs = () => pick(["", '{"path":"a', "[1]", "null", '"words"', "not json", '{"a":"\\ud83d"}']);

function media() {
  return pick([
    () => ({ type: "image/png", data: PNG }),
    () => ({ type: "image/jpeg", data: JPEG }),
    () => ({ type: "image/gif", data: GIF }),
    () => ({ type: "image/png", data: JPEG }),
    () => ({ type: "image/jpg", data: JPEG }),
    () => ({ type: "image/svg+xml", data: "PHN2Zy8+" }),
    () => ({ type: "image/png", data: "" }),
    () => ({ type: "image/png", data: "@@not base64@@" }),
    () => ({ url: "https://example.com/a.png" }),
    () => ({ url: "http://example.com/a.png" }),
    () => ({ url: `data:image/png;base64,${PNG}` }),
    () => ({ url: PNG }),
    () => ({ url: "" }),
    () => ({ url: "file:///tmp/a.png" }),
    () => ({ url: "data:image/svg+xml,<svg/>" }),
  ])();
}
export const mediaUrl = (m) => m.url ?? `data:${m.type};base64,${m.data}`;

function call() {
  return {
    id: freshId(),
    name: name(),
    args: args(),
    broken: chance(8) ? brokenArgs() : null,
    result: result(),
    kind: pick(kinds),
  };
}
const kinds = [
  "function",
  "function",
  "function",
  "custom",
  "mcp",
  "shell",
  "local_shell",
  "computer",
  "web_search",
  "file_search",
  "code_interpreter",
  "image_generation",
  "apply_patch",
];
function result() {
  return {
    parts: pick([
      () => [text()],
      () => [text()],
      () => [text()],
      () => [text(), text()],
      () => [],
      () => [text(), media()],
      () => [media()],
    ])(),
    error: chance(5),
    exit: random(3),
  };
}
function step() {
  return {
    thinking: chance(3)
      ? {
          text: pick([text(), "hmm", ""]),
          signature: pick(["c2lnbmF0dXJl", "c2lnbmF0dXJl", "", null, "claude#x"]),
          redacted: chance(8),
        }
      : null,
    text: chance(2) ? text() : null,
    calls: chance(300) ? times(130, call) : times(pick([0, 1, 1, 2, 3]), call),
  };
}
function turn() {
  return {
    user: times(pick([1, 1, 1, 2]), () => (chance(5) ? media() : text())),
    steps: times(pick([0, 1, 1, 2]), step),
    answer: chance(5) ? null : text(),
  };
}
export function story() {
  return { system: chance(3) ? text() : null, turns: times(1 + random(3), turn) };
}
export const isMedia = (p) => typeof p === "object";
export const plain = (parts) => parts.map((p) => (isMedia(p) ? "[image]" : p)).join("");
export const argText = (c) => c.broken ?? JSON.stringify(c.args);
