// What the tests of this folder share: TAP, chance with a printed seed, the program, a pool of processes.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const here = dirname(fileURLToPath(import.meta.url));
export const steno = resolve(
  process.env.STENO || join(process.env.STENO_BUILD || join(here, "../../build"), "steno"),
);
export const scratch = process.env.STENO_TEST_TMP || mkdtempSync(join(tmpdir(), "strict-"));
export const ram = process.env.STENO_TEST_RAM || scratch;
export const long = Boolean(process.env.STENO_TEST_LONG);
export const seed = Number(process.env.STENO_TEST_SEED || (Date.now() ^ process.pid) >>> 0);
export const rounds = (n) => (long ? n : Math.ceil(n / 20));

let state = seed;
export const reseed = (s) => {
  state = s | 0;
};
export function random(n) {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
export const pick = (list) => list[random(list.length)];
export const times = (n, f) => Array.from({ length: n }, (_, i) => f(i));

export const json = (file) => JSON.parse(readFileSync(join(here, file), "utf8"));
export const shown = (v, most = 1500) => {
  const text = typeof v === "string" ? v : JSON.stringify(v);
  return text.length > most ? `${text.slice(0, most)}...` : text;
};

const results = [];
// One test: a sentence, whether it holds, and lines that explain why it does not.
export function report(holds, sentence, lines = []) {
  results.push(holds);
  console.log(`${holds ? "ok" : "not ok"} ${results.length} - ${sentence}`);
  if (!holds) for (const line of lines) console.log(`#   ${shown(line).replace(/\n/g, "\n#   ")}`);
}
export function done() {
  console.log(`1..${results.length}`);
  process.exitCode = results.every(Boolean) ? 0 : 1;
}

// Runs a program with some input: {status, stdout, stderr}.
export function run(file, args, input = "") {
  return new Promise((settle, fail) => {
    const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"] });
    const out = [[], []];
    child.stdout.on("data", (d) => out[0].push(d));
    child.stderr.on("data", (d) => out[1].push(d));
    child.stdin.on("error", () => {}); // A program that refuses early closes its input.
    child.on("error", fail);
    child.on("close", (status) =>
      settle({ status, stdout: String(Buffer.concat(out[0])), stderr: String(Buffer.concat(out[1])) }),
    );
    child.stdin.end(input);
  });
}

// f for each element of a list, a few at a time; results are in order.
export async function pooled(list, f, width = 3) {
  const answers = new Array(list.length);
  let next = 0;
  await Promise.all(
    times(width, async () => {
      while (next < list.length) {
        const i = next++;
        answers[i] = await f(list[i], i);
      }
    }),
  );
  return answers;
}
