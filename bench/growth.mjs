#!/usr/bin/env node
// bench/growth.mjs [BUILD]: how the cost of a turn grows with the conversation in what other agents
// keep theirs in, for the curves of bench_growth.c: the memory session of @openai/agents, and the
// SQLite checkpointer of LangGraph.
//
// The checkpointer is a package with a compiled part that Steno does not need. Where it is installed,
// STENO_BENCH_LANGGRAPH names the folder that has it in its node_modules; without it there is no such
// curve. STENO_BENCH_GROWTH is the largest power of ten of messages (5), as in bench_growth.c.
// Medians of five rounds.
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const build = process.argv[2] || join(here, "../build");
const folder = mkdtempSync(join(process.env.STENO_BENCH_DIR || join(build, "bench"), "growth-"));
const most = 10 ** Number(process.env.STENO_BENCH_GROWTH || 5);
const text = "x".repeat(990);

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

// The median of a few calls, in microseconds; a call that takes seconds is not repeated.
async function cost(call) {
  const took = [];
  for (let i = 0, sum = 0; i < 20 && sum < 2000; i++) {
    const start = performance.now();
    await call();
    took.push(performance.now() - start);
    sum += took[i];
  }
  return median(took) * 1000;
}

// `keeper` has grow(count), add() and tail(); up to `largest` messages.
async function curves(who, keeper, largest) {
  const points = { append: [], tail: [] };
  for (let size = 100; size <= Math.min(most, largest); size *= 10) {
    await keeper.grow(size);
    const append = [], tail = [];
    for (let round = 0; round < 5; round++) {
      append.push(await cost(keeper.add));
      tail.push(await cost(keeper.tail));
    }
    points.append.push([size, median(append)]);
    points.tail.push([size, median(tail)]);
  }
  for (const [curve, list] of Object.entries(points))
    console.log(JSON.stringify({ bench: "growth", curve, who, unit: "us", points: list }));
}

async function memorySession() {
  const require = createRequire(join(here, "../tests/npm/package.json"));
  const { MemorySession } = require("@openai/agents");
  const session = new MemorySession();
  const item = { type: "message", role: "user", content: text };
  let count = 0;
  const grow = async (to) => {
    await session.addItems(Array.from({ length: to - count }, () => item));
    count = to;
  };
  await curves("@openai/agents, in memory", { grow, add: () => session.addItems([item]), tail: () => session.getItems(50) }, 1e6);
}

// A checkpoint contains the state of the graph, and therefore all messages: a turn writes all of it.
async function checkpointer(installed) {
  const require = createRequire(join(installed, "package.json"));
  const { SqliteSaver } = require("@langchain/langgraph-checkpoint-sqlite");
  const saver = SqliteSaver.fromConnString(join(folder, "checkpoints.db"));
  const messages = [];
  const base = { configurable: { thread_id: "one", checkpoint_ns: "" } };
  let step = 0, config = base;
  const grow = async (to) => {
    while (messages.length < to) messages.push({ role: "user", content: text });
  };
  const add = async () => {
    const checkpoint = { v: 4, id: String(++step).padStart(12, "0"), ts: new Date().toISOString(), channel_values: { messages },
      channel_versions: { messages: step }, versions_seen: {} };
    config = await saver.put(config, checkpoint, { source: "loop", step, parents: {} }, { messages: step });
  };
  const tail = async () => (await saver.getTuple(base)).checkpoint.channel_values.messages.slice(-50);
  await curves("LangGraph, SQLite", { grow, add, tail }, 1e4);
}

try {
  await memorySession();
  if (process.env.STENO_BENCH_LANGGRAPH) await checkpointer(process.env.STENO_BENCH_LANGGRAPH);
} finally {
  rmSync(folder, { recursive: true });
}
