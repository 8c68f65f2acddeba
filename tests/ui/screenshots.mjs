// Makes the pictures of docs/page.md and the README: STENO=build/steno node tests/ui/screenshots.mjs
// [FOLDER]. The conversations are invented; the server, the runs and the page are real.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Model, openWindow, root, runTests, Server, sleep, test, until } from "./lib.mjs";

const folder = process.argv[2] ?? join(root, "docs/screenshots");
mkdirSync(folder, { recursive: true });
const model = await new Model().start();
const server = new Server("pictures", model);
// Making a picture takes as long as it takes: waiting must not time out meanwhile.
server.config = { limits: { approvalSeconds: 3600 }, prices: { "mock-1": { input: 25, output: 100, cached: 2.5 } }, permissions: [{ action: "allow", tool: "execute_command", argvPrefix: ["echo"] }] };
const call = (id, name, args = {}) => ({ id, type: "function", function: { name, arguments: JSON.stringify(args) } });
const asks = (content, ...calls) => ({ role: "assistant", content, tool_calls: calls });
const gives = (id, content, duration, more = {}) => ({ role: "tool", tool_call_id: id, content, duration, ...more });
const talk = (id) => `/c/${encodeURIComponent(id)}`;

const log = (n, at, lines) => Array.from({ length: n }, (_, i) => lines[i - at] ?? `  ✓ test ${i + 1} (${(i * 7) % 23 + 1} ms)`).join("\n");
const failure = ["  × rounds half to even (14 ms)", "", "    AssertionError: expected 12.34 to equal 12.35", "      - Expected  12.35", "      + Received  12.34", "", "      at total (src/totals.ts:41:17)", "      at Object.<anonymous> (test/rounding.test.ts:19:26)"];

async function nightly() {
  const shards = [1, 2, 3, 4, 5, 6, 7, 8], took = [88000, 71000, 96400, 64000, 90000, 58800, 77000, 70000];
  const id = await server.conversation("Why is the nightly build red?", []);
  await server.append(id, [{ role: "user", content: "The nightly build is red since Friday. Find out why, and fix it if it is small." }]);
  await server.append(id, [asks("I look at what changed, and run the eight shards as the nightly job does.",
    call("log", "execute_command", { argv: ["git", "log", "--oneline", "--since=3.days"] }), call("yml", "read_file", { path: ".github/workflows/nightly.yml" }),
    ...shards.map((n) => call(`s${n}`, "execute_command", { argv: ["npm", "test", "--", `--shard=${n}/8`] }))),
  gives("log", "8f2c1aa totals: use Math.round\n1b09d31 docs: spelling", 210), gives("yml", "on:\n  schedule:\n    - cron: '0 2 * * *'", 40),
  ...shards.map((n) => gives(`s${n}`, n === 3 ? log(31_902, 31_877, failure) : log(30_000, -9, []), took[n - 1], n === 3 ? { isError: true, exitCode: 1 } : {}))]);
  await server.append(id, [asks("Shard 3 fails in `test/rounding.test.ts`. Friday's change in `src/totals.ts` replaced **banker's rounding**:\n\n| input | before | now |\n|---|---|---|\n| 12.345 | 12.34 | 12.35 |\n| 12.355 | 12.36 | 12.36 |\n\n```ts\nconst total = Math.round(sum * 100) / 100; // away from zero\n```",
    call("fix", "edit_file", { file_path: "src/totals.ts", old_string: "return Math.round(x * 100) / 100;\n", new_string: "return halfEven(x, 2);\n" }), call("tsc", "execute_command", { argv: ["npx", "tsc", "--noEmit"] })),
  gives("fix", "1 change", 10), gives("tsc", "src/totals.ts(3,10): error TS2305: Module './round' has no exported member 'halfEven'.", 7900, { isError: true, exitCode: 2 })]);
  await server.append(id, [asks("The helper is not exported. I export it and run the test again.", call("fix2", "edit_file", { file_path: "src/round.ts", old_string: "function halfEven", new_string: "export function halfEven" }), call("again", "execute_command", { argv: ["npm", "test", "--", "test/rounding"] })),
    gives("fix2", "1 change", 10), gives("again", "Tests: 12 passed, 12 total", 12300)]);
  return id;
}

test("ten views, as pictures", async () => {
  await server.start();
  for (const [title, what] of [["Summarise the stand-up notes", "three points"], ["Review of pull request 4312", "looks good"], ["Translate the onboarding into German", "fertig"], ["Move CI to Meson", "done"]]) {
    const id = await server.conversation(title, []);
    model.calls("execute_command", { argv: ["echo", what] }, "I look.");
    model.says(`It is done: ${what}.`);
    await server.api("POST", "/api/chatbot", { sessionId: id, message: `${title}, please.`, stream: false });
  }
  await server.conversation("Upgrade Postgres to 17 on staging", [{ role: "user", content: "Upgrade it." }, asks("", call("pg", "execute_command", { argv: ["pg_upgrade", "--check"] })), gives("pg", 'pg_upgrade: error: could not load library "postgis-3"', 61000, { isError: true, exitCode: 1 })]);
  const id = await nightly();
  const ref = (await server.api("GET", `/api/chat-sessions/${id}/errors`)).items[0] && (await server.api("GET", `/api/chat-sessions/${id}/timeline`)).rows.find((r) => r.id === "s3").ref;
  model.calls("execute_command", { shell: "rm -rf dist && npm run release -- --dry-run --tag=next --registry=https://npm.internal.example/ --notes=./release/notes.md\n\n\n\n\ncurl -fsS https://hooks.example/deploy?env=\u200bprod", directory: "packages/checkout" }, "The tests are green. May I make a dry run of the release?");
  void server.api("POST", "/api/chatbot", { sessionId: id, message: "Good. Make a dry run of the release.", stream: false }).catch(() => {});
  await until("it waits", async () => (await server.api("GET", "/api/approvals")).items.length);
  await until("it is indexed", async () => (await server.api("GET", "/api/search?q=rounding")).items.length > 1);
  const shoot = async (name, path, ready, { prepare = async () => {}, ...how } = {}) => {
    const w = await openWindow(server, { path, width: 1440, height: 900, ...how });
    await w.page.waitForSelector(ready);
    await until("the list", () => w.page.$(".list li, .phone-bar"));
    await prepare(w.page);
    await sleep(500);
    await w.page.screenshot({ path: join(folder, `${name}.png`) });
    await w.close();
  };
  const top = async (page) => { await page.evaluate(() => { document.activeElement?.blur(); document.getElementById("transcript").dispatchEvent(new Event("steno-start")); }); await sleep(300); await page.evaluate(() => document.activeElement?.blur()); };
  const firstFailure = async (page) => { await until("failures", () => page.$("[data-act=failures]")); await top(page); await page.click("[data-act=failures]"); await page.waitForSelector(".wrong-row.hit"); };
  await shoot("home", "/", ".home-rows li");
  await shoot("conversation", talk(id), ".time-row", { prepare: top });
  await shoot("failed", talk(id), "[data-call]", { prepare: firstFailure });
  await shoot("timeline", `${talk(id)}/timeline`, ".time-row");
  await shoot("approval", "/", "[data-act=tray]:not([hidden])", { prepare: async (page) => { await page.click("[data-act=tray]"); await page.waitForSelector("#tray [data-act=approve]:not(:disabled)"); } });
  await shoot("output", `${talk(id)}/o/${ref}/L31878/q/rounds`, ".matches li");
  await shoot("search", "/search/rounding", "[data-hit] mark");
  await shoot("usage", "/usage", "#stats .card");
  await shoot("dark", talk(id), "[data-call]", { dark: true, prepare: firstFailure });
  await shoot("phone", `${talk(id)}/timeline`, ".time-row", { width: 390, height: 844, hasTouch: true, deviceScaleFactor: 2 });
});

await runTests();
