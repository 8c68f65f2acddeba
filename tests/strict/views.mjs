// Random and damaged histories in all formats are appended with record and read back in every view
// that goes to a provider; the strict judges must accept each. Their schemas are the providers' own
// types, so a view that is accepted here also type-checks against npm openai, @anthropic-ai/sdk and
// @google/genai. Views for ai and @langchain/core go through the validators of those packages.
//
// 10,000 histories with STENO_TEST_LONG=1, else a twentieth. They go through one server, and a few
// also through the command line, which must give the same views. Each history has a seed of its own,
// printed when a view of it is refused; STENO_TEST_SEED repeats a run.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Failures, onceWrong } from "./failures.mjs";
import { history, kindsOfHistories } from "./histories.mjs";
import { check, needTypes, providers } from "./judges.mjs";
import { done, here, pooled, ram, report, rounds, run, seed, shown, steno, times } from "./tap.mjs";

needTypes();
const { Server } = await import("../http/lib.mjs");
const server = new Server();
server.store = join(ram, "strict-views");
await server.start();
process.on("exit", () => server.kill());

const seeds = [
  ...new Set([
    ...onceWrong,
    ...times(rounds(10000), (i) => (seed + i * 104729) >>> 0),
  ]),
];
console.log(`# seed ${seed}`);

// ---- what judges a view ----
const judges = Object.fromEntries(providers.map((p) => [p, async (view) => check(p, view)]));
const npm = createRequire(join(here, "../npm/package.json"));
const load = (name) => import(pathToFileURL(npm.resolve(name)).href);
const complaint = (rule, e) => [
  {
    rule,
    text: String(e?.message ?? e)
      .split("\n")
      .slice(0, 3)
      .join(" "),
  },
];
const others = {
  uimessage: async () => {
    const versions = await Promise.all([5, 6, 7].map(async (v) => [v, await load(`ai${v}`)]));
    return async (view) => {
      for (const [v, ai] of versions)
        try {
          await ai.validateUIMessages({ messages: view });
        } catch (e) {
          return complaint(`ai${v}`, e);
        }
      return [];
    };
  },
  modelmessage: async () => {
    const versions = await Promise.all([5, 6, 7].map(async (v) => [v, await load(`ai${v}`)]));
    return async (view) =>
      versions
        .flatMap(([v, ai]) =>
          view.flatMap((m) => {
            const r = ai.modelMessageSchema.safeParse(m);
            return r.success ? [] : complaint(`ai${v}`, r.error);
          }),
        )
        .slice(0, 1);
  },
  langchain: async () => {
    const { mapStoredMessagesToChatMessages, mapChatMessagesToStoredMessages } =
      await load("@langchain/core/messages");
    return async (view) => {
      try {
        const again = mapChatMessagesToStoredMessages(mapStoredMessagesToChatMessages(view));
        return again.length === view.length
          ? []
          : complaint("langchain", "messages were lost on the way through @langchain/core");
      } catch (e) {
        return complaint("langchain", e);
      }
    };
  },
};
for (const [format, make] of Object.entries(others)) judges[format] = await make();

// ---- the histories ----
const edit = (...list) =>
  `&edit_strategies=${encodeURIComponent(JSON.stringify(list.map(([type, params]) => ({ type, params }))))}`;
const narrowings = [
  "&budget=40",
  "&budget=200",
  "&budget=1000",
  "&last=1",
  "&last=3",
  "&after=2",
  "&limit=3",
  "&before=5&limit=3",
  "&outputs=full",
  "&outputs=stub",
  edit(["remove_tool_result", { keep_recent_n_tool_results: 0 }]),
  edit(["remove_tool_call_params", { keep_recent_n_tool_calls: 0 }]),
  edit(["token_limit", { limit_tokens: 100 }]),
  edit(["middle_out", { token_reduce_to: 100 }]),
  edit(["remove_tool_result", { keep_recent_n_tool_results: 1 }], ["token_limit", { limit_tokens: 200 }]),
];
const failures = new Failures();
const tally = { views: 0, empty: 0, taken: 0, routes: new Set() };
const appendPath = (id, h) =>
  `/api/chat-sessions/${id}/messages?record=1&durability=process&format=${h.format}`;
// One history in four or two is stored through another route, chosen by the seed.
const routes = {
  responses: ["conversations", "conversations"],
  openai: ["acontext"],
  anthropic: ["acontext"],
  gemini: ["acontext"],
  acontext: ["acontext", "acontext"],
};
const openers = {
  append: async () => (await server.must("POST", "/api/chat-sessions", { body: {} })).id,
  conversations: async () => (await server.must("POST", "/v1/conversations", { body: {} })).id,
  acontext: async () => (await server.must("POST", "/api/v1/session", { body: {} })).data.id,
};
const senders = {
  conversations: (id, h, m) => server.ask("POST", `/v1/conversations/${id}/items`, { body: { items: [m] } }),
  acontext: (id, h, m) =>
    server.ask("POST", `/api/v1/session/${id}/messages`, { body: { format: h.format, blob: m } }),
};
await pooled(seeds, async (s) => {
  const h = history(s);
  const id = await store(h, s);
  for (const format of Object.keys(judges)) await judge(h, s, id, format);
  // Also one provider's view that is cut, edited or a page.
  await judge(h, s, id, providers[s % providers.length], narrowings[(s >>> 3) % narrowings.length]);
});

// A recording append accepts whatever a client sent. Some histories are stored through routes of other
// APIs instead; what these refuse, as their upstreams would, is then appended.
async function store(h, s) {
  const route = routes[h.format]?.[s % 4] ?? "append";
  const id = await openers[route]();
  let rest = h.messages;
  if (route === "append") {
    const all = await server.ask("POST", appendPath(id, h), { body: h.messages });
    if (all.status < 300) rest = [];
  } else {
    rest = [];
    for (const m of h.messages) if ((await senders[route](id, h, m)).status >= 300) rest.push(m);
  }
  tally.taken += h.messages.length - rest.length;
  tally.routes.add(route);
  // If one message is refused, the others are still stored.
  for (const m of rest) {
    const r = await server.ask("POST", appendPath(id, h), { body: m });
    if (r.status < 300) tally.taken++;
    else {
      const why = String(r.json?.error?.message ?? r.text);
      failures.add(
        "append",
        `${h.format}: ${why.replace(/"[^"]*"/g, "*").replace(/\d+/g, "N")}`,
        s,
        `${why}\n  ${shown(m)}`,
      );
    }
  }
  return id;
}

async function judge(h, s, id, format, narrowing = "") {
  const r = await server.ask(
    "GET",
    `/api/chat-sessions/${id}/messages?format=${format}&strict=1${narrowing || "&tokens=0"}`,
  );
  tally.views++;
  if (r.status === 200 && r.json.messages.length === 0) return void (tally.empty += narrowing === "");
  const found =
    r.status === 200
      ? await judges[format](r.json.messages)
      : [{ rule: "no_view", text: `${r.status} ${r.text}` }];
  for (const v of new Map(found.map((f) => [f.rule, f])).values())
    failures.add(
      format,
      v.rule,
      s,
      `${h.kind}: ${v.text}${narrowing && ` with ${narrowing}`}\n  stored ${shown(h.messages)}\n  ${format} ${shown(r.json?.messages ?? r.text)}`,
      JSON.stringify(h.messages).length,
    );
}

failures.report("append", `a recording append takes every message of ${seeds.length} histories`);
for (const format of Object.keys(judges))
  failures.report(format, `${format}: the judge accepts the views of ${seeds.length} histories`);
report(
  tally.empty * 10 < tally.views,
  `fewer than a tenth of ${tally.views} views are empty: ${tally.empty}`,
);
report(
  kindsOfHistories.length === 13 && tally.routes.size === 3 && tally.taken > seeds.length,
  `${tally.taken} messages of ${kindsOfHistories.length} kinds were taken by ${tally.routes.size} routes`,
);

// ---- the command line gives the same views ----
const strict = /--strict\b/.test((await run(steno, ["messages", "--help"])).stdout) ? ["--strict"] : [];
const unlike = [];
await pooled(
  times(8, (i) => (seed + i * 7919) >>> 0),
  async (s) => {
    const h = history(s);
    const id = `cli-${s}`;
    await run(steno, ["--store", server.store, "new", "--id", id]);
    await run(
      steno,
      ["--store", server.store, "append", "--record", "--format", h.format, id],
      h.messages.map((m) => JSON.stringify(m) + "\n").join(""),
    );
    for (const p of providers) {
      const cli = await run(steno, ["--store", server.store, "messages", id, "--format", p, ...strict]);
      const web = await server.ask("GET", `/api/chat-sessions/${id}/messages?format=${p}&strict=1&tokens=0`);
      if (cli.status !== 0 || JSON.stringify(JSON.parse(cli.stdout)) !== JSON.stringify(web.json?.messages))
        unlike.push(
          `seed ${s}, ${p}: ${shown(cli.stdout || cli.stderr, 400)}\n  but ${shown(web.text, 400)}`,
        );
    }
  },
  2,
);
report(unlike.length === 0, "the command line gives the same views as the server", unlike);
done();
server.kill();
