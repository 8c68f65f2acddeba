#!/usr/bin/env node
/*
 * Sealing beside `openssl dgst -sha256` of the same log, in processor time, which another program on the
 * machine changes less than the clock on the wall:
 *
 *   bench/seal.mjs BUILD          STENO_BENCH_RECORDS=1000000 unless told
 *
 * Then the slowest append of a writer alone, and while a backup is made.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

const build = resolve(process.argv[2] ?? "build");
const records = Math.ceil(Number(process.env.STENO_BENCH_RECORDS ?? 1000000) / 1000) * 1000;
const dir = mkdtempSync(join(process.env.STENO_BENCH_DIR ?? build, "seal-"));
const env = { ...process.env, STENO_STORE: join(dir, "store"), XDG_CONFIG_HOME: join(dir, "config") };
const steno = (args, more) => execFileSync(join(build, "steno"), args, { env, stdio: ["pipe", "pipe", "ignore"], maxBuffer: 1 << 30, ...more });

/* Seconds of processor time of a command, the least of three. */
function cost(command, args, before = () => {}) {
  let least = Infinity;
  for (let i = 0; i < 3; i++) {
    before();
    const r = spawnSync("bash", ["-c", 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>&1', "time", command, ...args], { env, encoding: "utf8" });
    const [user, sys] = r.stderr.trim().split("\n").at(-1).split(" ").map(Number);
    least = Math.min(least, user + sys);
  }
  return least;
}

function fill() {
  steno(["new", "--id", "m"]);
  const batch = JSON.stringify(Array.from({ length: 1000 }, (_, i) => ({ role: "user", content: `message ${i} ` + "x".repeat(1000) }))) + "\n";
  for (let done = 0; done < records;) {
    const n = Math.min(100, (records - done) / 1000);
    steno(["append", "m", "--durability", "process"], { input: batch.repeat(n) });
    done += n * 1000;
  }
}

/* The slowest of `count` appends, in ms. */
async function slowest(count) {
  const p = spawn(join(build, "steno"), ["append", "w"], { env, stdio: ["pipe", "pipe", "ignore"] });
  let wake, worst = 0;
  p.stdout.on("data", () => wake());
  for (let i = 0; i < count; i++) {
    const from = performance.now();
    const answered = new Promise((done) => { wake = done; });
    p.stdin.write(JSON.stringify({ role: "user", content: `append ${i}` }) + "\n");
    await answered;
    worst = Math.max(worst, performance.now() - from);
  }
  p.stdin.end();
  await new Promise((done) => p.on("close", done));
  return worst;
}

try {
  fill();
  steno(["key", "new"]);
  const folder = join(dir, "store", "projects", "default", "conversations", "m");
  const bytes = statSync(join(folder, "messages.jsonl")).size;
  const seal = cost(join(build, "steno"), ["seal", "m"], () => {
    rmSync(join(folder, "seal"), { recursive: true, force: true });
    rmSync(join(dir, "store", "seal"), { recursive: true, force: true });
  });
  const plain = cost("openssl", ["dgst", "-sha256", join(folder, "messages.jsonl")]);
  console.log(JSON.stringify({ what: "seal", records, bytes, seconds: seal, openssl: plain, ratio: +(plain / seal).toFixed(2) }));
  steno(["new", "--id", "w"]);
  const alone = await slowest(300);
  const backup = spawn(join(build, "steno"), ["backup", join(dir, "backup")], { env, stdio: "ignore" });
  const ended = new Promise((done) => backup.on("close", done));
  const beside = await slowest(300);
  await ended;
  const first = statSync(join(dir, "backup", "complete.json")).size > 0;
  const again = cost(join(build, "steno"), ["backup", join(dir, "backup")]);
  console.log(JSON.stringify({ what: "backup", complete: first, slowestAppendMs: +alone.toFixed(1), slowestBesideBackupMs: +beside.toFixed(1), secondBackupSeconds: again }));
} finally {
  rmSync(dir, { recursive: true, force: true });
}
