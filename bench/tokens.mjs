#!/usr/bin/env node
// Counts the tokens of the same texts here and with js-tiktoken, and prints how they compare.
//
//   tokens.mjs [BUILD]         (or STENO_BUILD; build)
//
// Both are timed inside their own process: starting up and loading the vocabulary is left out.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const build = resolve(process.argv[2] || process.env.STENO_BUILD || join(root, "build"));
const helper = join(build, "tests/view/count_tokens");
const tiktoken = join(root, "tools/npm/node_modules/js-tiktoken");
const ROUNDS = 3;

if (!existsSync(tiktoken) || !existsSync(helper)) skip("js-tiktoken or count_tokens is missing");
const require = createRequire(import.meta.url);
const { Tiktoken } = require(join(tiktoken, "dist/lite.cjs"));
const reference = new Tiktoken(require(join(tiktoken, "dist/ranks/o200k_base.cjs")));

function corpus() {
  const sources = join(root, "src/view");
  const texts = readdirSync(sources).filter((f) => /\.[ch]$/.test(f))
    .map((f) => readFileSync(join(sources, f), "utf8"));
  texts.push(readFileSync(join(root, "LICENSE"), "utf8"));
  texts.push(JSON.stringify(texts.map((t, i) => ({ id: `call_${i}`, role: "tool", content: t }))));
  texts.push("\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u3002 \u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u{1F600}\u{1F44D}\u{1F3FD}\n".repeat(300));
  return texts;
}

function countHere(texts) {
  const chunks = texts.flatMap((t) => {
    const bytes = Buffer.from(t);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return [length, bytes];
  });
  const run = spawnSync(helper, ["-t"], { input: Buffer.concat(chunks), maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(`${helper}: ${run.error || run.stderr}`);
  const [mode, ...numbers] = run.stdout.toString().trimEnd().split("\n");
  return { exact: mode === "exact", ns: Number(numbers.pop()), counts: numbers.map(Number) };
}

function countThere(texts) {
  const start = process.hrtime.bigint();
  const counts = texts.map((t) => reference.encode(t, [], []).length);
  return { ns: Number(process.hrtime.bigint() - start), counts };
}

function skip(why) {
  console.log(JSON.stringify({ bench: "tokens_vs_js_tiktoken", skipped: why }));
  process.exit(0);
}

const texts = corpus();
const bytes = texts.reduce((sum, t) => sum + Buffer.byteLength(t), 0);
if (!countHere(texts).exact) skip("this build estimates");
countThere(texts);
const here = [];
const there = [];
for (let i = 0; i < ROUNDS; i++) {
  here.push(countHere(texts));
  there.push(countThere(texts));
}
const best = (runs) => Math.min(...runs.map((r) => r.ns));
const rate = (ns) => Math.round((bytes * 1e4) / ns) / 10;
console.log(JSON.stringify({
  bench: "tokens_vs_js_tiktoken",
  equal: here[0].counts.every((n, i) => n === there[0].counts[i]),
  bytes,
  tokens: there[0].counts.reduce((a, b) => a + b, 0),
  steno_mb_per_s: rate(best(here)),
  js_tiktoken_mb_per_s: rate(best(there)),
  ratio: Math.round((best(there) / best(here)) * 10) / 10,
}));
