// What a person who has the page open every day expects of it: settings that are kept, outputs that can
// be wrapped, folded and downloaded over a bad connection, figures of what other programs recorded.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { adopt, assert, equal, holds, Model, note, openWindow, runTests, Server, test, toasted, until, Wire } from "./lib.mjs";

const model = await new Model().start();
const server = new Server("daily", model);
server.config = { prices: { "mock-1": { input: 2, output: 10, cached: 0.5 }, "claude-x": { input: 3, output: 15 } }, upstreams: { openai: { url: model.url } } };
let me;
const scenario = (name, f) => test(name, async () => {
  if (!me) { await server.start(); me = await openWindow(server, { path: "/", width: 1300, height: 800, permissions: ["clipboard-read", "clipboard-write"], acceptDownloads: true }); }
  await server.atRest();
  model.plays.length = 0;
  await f(me.page);
});
const E = encodeURIComponent;
const talk = (id) => `/c/${E(id)}`;
const to = (path, page = me.page, s = server) => page.evaluate(([t, p]) => { location.hash = `#token=${t}&${p}`; }, [s.token, path]);
const call = (id, name, args = {}) => ({ id, type: "function", function: { name, arguments: JSON.stringify(args) } });
const asks = (content, ...calls) => ({ role: "assistant", content, tool_calls: calls });
const gives = (id, content, more = {}) => ({ role: "tool", tool_call_id: id, content, ...more });
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));
const shown = async (id, page = me.page) => { await to(talk(id), page); await page.waitForSelector(`.talk[data-id="${id}"] #transcript article`); };
const blur = (page) => page.evaluate(() => document.activeElement?.blur());
async function artifact(title, text, more = {}) {
  const id = await server.conversation(title, [{ role: "user", content: "go" }, asks("", call("big", "build")), gives("big", text, more)]);
  const ref = (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0].id;
  return { id, ref, path: `${talk(id)}/o/${ref}` };
}

// ---- settings ----
scenario("choose a theme, rows and keys once, and find them after a reload", async (page) => {
  await blur(page);
  await page.keyboard.press("g"); await page.keyboard.press(",");
  await page.waitForSelector("#settings");
  await holds(async () => equal(await page.title(), "Settings · Steno"));
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.check("#settings label:has-text('dark') input");
  await holds(async () => equal(await ground(), "rgb(19, 20, 23)"));
  await page.check("#settings label:has-text('compact') input");
  await page.uncheck("#settings label:has-text('Letters') input");
  await page.reload();
  await page.waitForSelector("#settings");
  await holds(async () => {
    equal(await ground(), "rgb(19, 20, 23)", "dark");
    equal(await page.evaluate(() => document.documentElement.dataset.density), "compact");
  });
  await blur(page);
  await page.keyboard.press("g"); await page.keyboard.press("u");
  assert(!(await page.$("#stats")), "letters do nothing");
  await page.check("#settings label:has-text('Letters') input");
  await page.check("#settings label:has-text('roomy') input");
  await page.check("#settings label:has-text('auto') input");
  await holds(async () => equal(await ground(), "rgb(251, 250, 248)", "as the system has it"));
  equal(await page.evaluate(() => Object.keys(localStorage).filter((k) => /theme|density|letters/.test(k)).join()), "", "what is usual is not stored");
});
scenario("after a start of the machine the list says that it may be out of date, until it is complete", async (page) => {
  await server.conversation("known before", [{ role: "user", content: "hello" }]);
  await to("/");
  let behind = true;
  const lists = "**/api/chat-sessions?**";
  await page.route(lists, async (r) => {
    const answer = await r.fetch();
    const list = await answer.json();
    await r.fulfill({ response: answer, json: behind ? { ...list, items: [], catching_up: true } : list });
  });
  await page.reload();
  await page.waitForSelector(".list [role=status]:has-text('Catching up')");
  assert(!(await texts(page, ".list")).join().includes("No conversations yet"), "nothing is said to be missing");
  behind = false;
  await page.waitForSelector(".list li:has-text('known before')");
  await page.waitForSelector(".list [role=status]", { state: "detached" });
  await page.unrouteAll({ behavior: "wait" });
});
scenario("see which prices costs are counted with, and which file has them", async (page) => {
  await to("/settings");
  await until("the table", async () => (await texts(page, "#settings td, #settings tbody th")).join("|") === "mock-1|$2.00|$10.00|$0.50|claude-x|$3.00|$15.00|$3.00");
  assert((await page.textContent("#settings")).includes("config.json"), "the file");
});
scenario("be told by the browser that a call waits, when the page is out of sight and I asked for it", async () => {
  const w = await openWindow(server, { path: "/settings", permissions: ["notifications"], fresh: true });
  await w.page.waitForSelector("#settings");
  await w.page.evaluate(() => {
    window.told = [];
    window.Notification = class { static requestPermission() { return Promise.resolve("granted"); } constructor(title, how) { window.told.push(`${title}: ${how.body}`); } close() {} };
    Object.defineProperty(document, "hidden", { get: () => true });
  });
  const id = await server.conversation("Notify", []);
  const ask = async () => { model.calls("execute_command", { argv: ["true"] }); void server.api("POST", "/api/chatbot", { sessionId: id, message: "go", stream: false }).catch(() => {}); return until("it waits", async () => (await server.api("GET", "/api/approvals")).items[0]); };
  const deny = (a) => server.api("POST", `/api/runs/${a.run}/approvals/${a.call}`, { approved: false, approval: a.approval });
  await w.page.waitForSelector("#connection[data-state=live]");
  const first = await ask();
  await until("the page knows", async () => (await w.page.title()).startsWith("(1)"));
  await deny(first);
  await until("and that it is over", async () => !(await w.page.title()).startsWith("("));
  await until("the run is over", async () => (await server.api("GET", `/api/chat-sessions/${id}`)).runs[0].state === "finished");
  equal(await w.page.evaluate(() => window.told.length), 0, "not asked for");
  await w.page.check("#settings label:has-text('Notify') input");
  const second = await ask();
  await until("told", () => w.page.evaluate(() => window.told.join()));
  assert(/^A call waits for you: execute_command .*true/.test(await w.page.evaluate(() => window.told.join())), "what waits");
  await deny(second);
  await server.atRest();
  await w.close();
});
scenario("leave: the token is forgotten", async () => {
  const w = await openWindow(server, { path: "/settings" });
  await w.page.click("[data-act=leave]");
  await w.page.waitForSelector("#token");
  await until("not in the address", () => !w.page.url().includes(server.token));
  await w.close();
});

// ---- the keyboard ----
scenario("reach everything outside the transcript in twelve stops of the Tab key", async (page) => {
  const id = await server.conversation("Stops", [{ role: "user", content: "x" }, asks("", call("s", "t")), gives("s", "bad", { isError: true })]);
  for (let i = 0; i < 20; i++) await server.conversation(`Another ${i}`, [{ role: "user", content: "y" }]);
  await shown(id);
  await page.waitForSelector("canvas.tape");
  await page.waitForSelector(".time-row");
  await until("the list", async () => (await texts(page, ".list li")).length > 10);
  await page.evaluate(() => { document.activeElement.blur(); getSelection().removeAllRanges(); });
  const stops = await page.evaluate(() => [...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex]")]
    .filter((e) => e.tabIndex >= 0 && !e.disabled && e.offsetParent && !e.closest("dialog:not([open])") && (e.id === "transcript" || !e.closest("#transcript"))).map((e) => e.id || e.dataset.act || e.className || e.textContent.slice(0, 20)));
  note(`${stops.length} stops: ${stops.join(", ")}`);
  assert(stops.length <= 12, `${stops.length}: ${stops.join(", ")}`);
});
scenario("walk the timeline with the keyboard alone: the focus follows, far beyond the rows in the document", async (page) => {
  const turns = Array.from({ length: 60 }, (_, i) => [asks("", call(`w${i}`, "t")), gives(`w${i}`, "ok")]).flat();
  const id = await server.conversation("Walked timeline", [{ role: "user", content: "x" }, ...turns]);
  await to(`/c/${id}/timeline`);
  await until("all rows", async () => Number(await page.getAttribute(".timeline.wide [role=treegrid]", "aria-rowcount").catch(() => 0)) === 121);
  await page.focus(".time-row[aria-selected=true]");
  const at = () => page.evaluate(() => `${document.activeElement.dataset.index} of ${document.querySelectorAll(".time-row[tabindex='0']").length}`);
  for (const [key, there] of [["ArrowDown", 1], ["ArrowDown", 2], ["PageDown", 22], ["ArrowUp", 21], ["End", 120], ["Home", 0]]) {
    await page.keyboard.press(key);
    await until(`${key} brings the focus to row ${there}, and it alone is a stop`, async () => (await at()) === `${there} of 1`);
  }
});
scenario("walk the list, its buttons and its links with the arrow keys", async (page) => {
  for (const title of ["First", "Second"]) await server.conversation(title, [{ role: "user", content: "x" }]);
  await to("/");
  await page.waitForSelector(".home-head");
  await until("both are listed", async () => (await texts(page, ".entry-title")).slice(0, 2).join() === "Second,First");
  await page.focus("#filter");
  await page.keyboard.press("ArrowDown");
  const at = () => page.evaluate(() => document.activeElement.closest("li")?.dataset.conversation ?? document.activeElement.dataset.only ?? document.activeElement.textContent);
  const ids = await page.$$eval(".list li", (all) => all.map((e) => e.dataset.conversation));
  await holds(async () => equal(await at(), ids[0]));
  await page.keyboard.press("ArrowDown");
  await holds(async () => equal(await at(), ids[1]));
  await page.keyboard.press("ArrowUp"); await page.keyboard.press("ArrowUp");
  await holds(async () => equal(await at(), "error", "the last button above"));
  await page.keyboard.press("End");
  await holds(async () => equal(await at(), "Settings"));
  await page.keyboard.press("Shift+Tab");
  await holds(async () => equal(await page.evaluate(() => document.activeElement.id), "filter", "one stop"));
  await page.keyboard.press("Tab");
  await holds(async () => equal(await at(), "Settings", "where I was"));
  await page.keyboard.press("Enter");
  await page.waitForSelector("#settings");
});

// ---- a conversation has its name in every view ----
scenario("see in the list and at home when in a run something failed", async (page) => {
  const id = await server.conversation("Taped", [{ role: "user", content: "x" }, asks("", call("a", "make"), call("b", "make")), gives("a", "ok", { duration: 9000 }), gives("b", "error: no", { duration: 1000, isError: true })]);
  const { items } = await server.api("GET", "/api/chat-sessions?figures=1&q=Taped");
  assert(/^m\d+t\d+e\d+$/.test(items[0].tape), items[0].tape);
  await to("/");
  const strip = (where) => page.$eval(`${where} .strip`, (e) => e.style.backgroundImage).catch(() => "");
  await until("in the list", async () => (await strip(`[data-conversation="${id}"]`)).includes("--bar-err"));
  await until("at home", async () => (await strip(`.home-rows li:has-text("Taped")`)).includes("--bar-err"));
});
scenario("go from the path in an error to its other places, and see what came next", async (page) => {
  const id = await server.conversation("Paths", [{ role: "user", content: "build" }, asks("", call("p", "execute_command", { argv: ["make", "all"] })), gives("p", "cc -c main.c\nsrc/deep/heap.c:41:7: error: expected ;\nmake: failed", { isError: true, exitCode: 2, duration: 5 }),
    asks("I read src/deep/heap.c.", call("r", "read_file", { path: "src/deep/heap.c" })), gives("r", "int x", { duration: 1 }), asks("", call("q", "execute_command", { argv: ["make", "all"] })), gives("q", "ok", { duration: 1 })]);
  await until("it is indexed", async () => (await server.api("GET", `/api/search?q=${E(`"src/deep/heap.c" conversation:${id}`)}`)).items.length > 1);
  await shown(id);
  await until("what came next", async () => (await texts(page, "[data-call=p] .next li")).join("|") === "read_file path: src/deep/heap.c|the same again: execute_command make all" || (await texts(page, "[data-call=p] .next li")).length === 2);
  await until("how it ended", async () => (await texts(page, "[data-call=p] .next li"))[1].includes("the same again"));
  equal(await page.textContent("[data-call=p] [data-path]"), "src/deep/heap.c");
  await page.click("[data-call=p] [data-path]");
  await until("where else", async () => (await texts(page, "[data-hit]")).length >= 2);
  await until("the search", async () => (await page.inputValue("#everywhere")).startsWith('"src/deep/heap.c" conversation:'));
  await to("/");
  await until("the field is empty elsewhere", async () => (await page.inputValue("#everywhere")) === "");
});
scenario("narrow a search by where and by tool, and know how much is left", async (page) => {
  const words = "quokka sighting";
  await server.conversation("Facets", [{ role: "user", content: `${words} one` }, asks(`${words} two`, call("f1", "camera"), call("f2", "notes")), gives("f1", `${words} three`, { isError: true, toolName: "camera" }), gives("f2", `${words} four`, { toolName: "notes" })]);
  await until("it is indexed", async () => (await server.api("GET", `/api/search?q=quokka`)).items.length >= 4);
  await to("/search/quokka");
  await until("counts", async () => (await page.textContent(".facets").catch(() => "")).includes("Everything 4"));
  await holds(async () => { const facets = await texts(page, ".facets button"); for (const f of ["What I said 1", "Failures 1", "camera 2", "notes 2"]) assert(facets.includes(f), `${f} in ${facets}`); });
  await page.click(".facets button:has-text('camera')");
  await until("two are left", async () => (await texts(page, "[data-hit]")).length === 2 && (await texts(page, "[data-hit]")).some((t) => t.includes("three")));
  await until("the counts stay", async () => (await texts(page, ".facets button")).includes("Everything 4"));
});

// ---- outputs ----
scenario("wrap long lines and read every one of them, to the last", async (page) => {
  const { path } = await artifact("Wrapped", Array.from({ length: 3000 }, (_, i) => `${i + 1} ${"word ".repeat(i % 7 ? 3 : 120)}end${i + 1}`).join("\n"));
  await to(`${path}/L8`);
  await page.waitForSelector(".line-row.here");
  await blur(page);
  await page.keyboard.press("w");
  await page.waitForSelector(".wrapped .line-row.here");
  const rows = () => page.$$eval(".line-row", (all) => all.map((e) => { const r = e.getBoundingClientRect(); return { n: Number(e.dataset.line), top: r.top, bottom: r.bottom, wide: e.scrollWidth > e.clientWidth + 1, text: e.querySelector(".content").textContent }; }));
  await holds(async () => {
    const all = await rows();
    assert(all.length > 5 && !all.some((r) => r.text === "…"), "its lines");
    all.forEach((r, i) => { assert(!r.wide, `line ${r.n} is cut`); if (i) { equal(r.n, all[i - 1].n + 1); assert(Math.abs(r.top - all[i - 1].bottom) < 1, `line ${r.n} follows`); } });
    const eighth = all.find((r) => r.n === 8);
    assert(eighth.bottom - eighth.top > 30, "it takes several rows");
  });
  await page.keyboard.press("G");
  await until("the end", () => page.evaluate(() => { const e = document.querySelector(".line-row[data-line='3000'] .content"); const b = document.getElementById("lines").getBoundingClientRect(); return !!e && e.textContent.includes("end3000") && e.getBoundingClientRect().bottom <= b.bottom + 1; }));
  await page.fill("#find", "end1501\\b");
  await page.press("#find", "Enter");
  await until("a match is on the screen", () => page.evaluate(() => { const e = document.querySelector(".line-row.here"); const b = document.getElementById("lines").getBoundingClientRect(); if (e?.dataset.line !== "1501") return false; const r = e.getBoundingClientRect(); return r.top >= b.top - 1 && r.top < b.bottom; }));
  await page.click("[data-act=wrap]");
  await until("as before", async () => !(await page.$(".wrapped")));
});
scenario("fold a JSON of many megabytes: every number as spelled, members that come twice, any depth", async (page) => {
  const record = (i) => `{"id":${i},"big":12345678901234567890,"text":"a \\"quoted\\" [bracket] {brace} ü"}`;
  const { path } = await artifact("Large JSON", `{"exact":1.50, "huge":1e400,"records" : [${Array.from({ length: 60_000 }, (_, i) => record(i)).join(",\n")}],"twice":1,"twice":2,"long":"${"letters ".repeat(30_000)}the end","tail":{"deep":[[["bottom"]]]}}`);
  await to(path);
  await page.waitForSelector("[data-act=json]");
  await page.click("[data-act=json]");
  await until("its members", async () => (await texts(page, ".folded-json > .j-leaf, .folded-json > .j-node")).length === 7);
  await holds(async () => equal((await texts(page, ".folded-json > .j-leaf")).join("|"), "exact1.50|huge1e400|twicetwice: 1 of 21|twicetwice: 2 of 22"));
  await page.click(".folded-json > .j-node:has-text('tail') > .j-toggle");
  await until("what is small is read whole", async () => (await texts(page, ".folded-json .j-children .j-key")).includes("deep"));
  await page.click(".folded-json > .j-node:has-text('records') > .j-toggle");
  await until("what is large, in steps", async () => (await texts(page, ".folded-json .j-children > .j-node")).length >= 200);
  await page.click(".folded-json .more:has-text('go on')");
  await until("and on", async () => (await texts(page, ".folded-json .j-children > .j-node > .j-toggle > .j-key")).includes("399"));
  await page.click(".folded-json .j-children > .j-node:has-text('\"id\":399') > .j-toggle");
  await until("one of them", async () => (await texts(page, ".folded-json .j-number")).includes("12345678901234567890"));
  await until("its text", async () => (await page.textContent(".folded-json")).includes('a "quoted" [bracket] {brace} ü'));
  const long = ".folded-json > .j-node:has(> .j-toggle > .j-key:text-is('long'))";
  await page.click(`${long} > .j-toggle`);
  for (const read of ["66 KB", "131 KB"]) await page.click(`${long} .more:has-text('${read} of')`);
  await until("a long text to its end", async () => (await page.textContent(`${long} .j-string`).catch(() => "")).includes("letters the end"));
  await page.click("[data-act=json]");
  await page.waitForSelector(".line-row");
  // The same after the server was away.
  const w = await openWindow(server, { path, width: 900, height: 600 });
  await w.page.waitForSelector("[data-act=json]");
  await server.kill();
  await w.page.waitForSelector("#connection[data-state=lost]");
  await w.page.click("[data-act=json]");
  await w.page.waitForSelector(".folded-json .problem");
  await server.start();
  await until("it is read when the server is back", async () => (await texts(w.page, ".folded-json > .j-leaf")).length === 4);
  await w.close();
});
scenario("follow an output that grows with its lines wrapped", async () => {
  const id = await server.conversation("Growing and wrapped", [{ role: "user", content: "go" }, asks("", call("grow", "build"))]);
  const tool = server.cli("output", id, "--tool", "build", "--call", "grow");
  const feed = (from, to) => tool.stdin.write(Array.from({ length: to - from }, (_, i) => `grown ${from + i} ${"and on ".repeat((from + i) % 5 * 20)}\n`).join(""));
  feed(1, 301);
  const ref = await until("its file", async () => (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0]?.id);
  const w = await openWindow(server, { path: "/settings", width: 900, height: 600 });
  await w.page.check("#settings label:has-text('Wrap') input");
  await to(`${talk(id)}/o/${ref}`, w.page);
  const last = () => w.page.evaluate(() => { const e = [...document.querySelectorAll(".line-row")].at(-1), b = document.getElementById("lines")?.getBoundingClientRect(); return e && b && e.getBoundingClientRect().bottom <= b.bottom + 1 ? Number(e.dataset.line) : 0; });
  await until("its end", async () => (await last()) === 300);
  feed(301, 501);
  await until("what comes", async () => (await last()) === 500);
  tool.stdin.end();
  await until("it is over", async () => !(await w.page.$(".flag.live")));
  await w.close();
});
scenario("download an output over a bad connection: it continues where it stopped", async () => {
  const text = Array.from({ length: 300_000 }, (_, i) => `${i} of what has to arrive whole, once and in order`).join("\n");
  const { path, id, ref } = await artifact("Far away", text);
  const raw = `${server.origin}/api/chat-sessions/${id}/context/${ref}/raw`;
  const part = async (range) => { const a = await fetch(raw, { headers: { Authorization: `Bearer ${server.token}`, Range: range } }); return [a.status, a.headers.get("content-range"), await a.text()]; };
  equal(JSON.stringify(await part("bytes=5-14")), JSON.stringify([206, `bytes 5-14/${text.length}`, text.slice(5, 15)]));
  equal(JSON.stringify(await part(`bytes=${text.length - 3}-`)), JSON.stringify([206, `bytes ${text.length - 3}-${text.length - 1}/${text.length}`, text.slice(-3)]));
  equal((await part(`bytes=${text.length}-`))[0], 416);
  for (const odd of ["bytes=-5", "bytes=9-2", "lines=1-2", "bytes=1-2,5-6", "bytes="]) equal((await part(odd))[0], 200, odd);
  const wire = await new Wire(server).start();
  wire.most = 4_000_000; // then it breaks
  const w = await openWindow(wire, { path, acceptDownloads: true });
  await w.page.waitForSelector(".line-row");
  const [d] = await Promise.all([w.page.waitForEvent("download"), w.page.click("[data-act=download]")]);
  const got = readFileSync(await d.path(), "utf8");
  equal(got.length, text.length, "its size");
  assert(got === text, "every byte");
  assert(wire.broken > 0, "it did break");
  await until("the rest was asked for by its range", () => readFileSync(`${server.folder}/log`, "utf8").split("\n").filter((l) => l.includes("/raw") && l.includes("206")).length >= 3);
  await w.close();
});

// ---- messages and errors of the page ----
scenario("hear how a call ended, with a screen reader", async (page) => {
  const id = await server.conversation("Heard", []);
  model.calls("execute_command", { argv: ["sh", "-c", "exit 3"] });
  let go;
  const held = new Promise((r) => { go = r; });
  model.play(async (_, r) => { await held; await r.text("It failed."); r.end(); });
  await to(talk(id));
  await page.waitForSelector(`.talk[data-id="${id}"] #composer`);
  await page.fill("#composer", "run it");
  await page.press("#composer", "Enter");
  await page.waitForSelector(".tool [data-act=approve]:not(:disabled)");
  await page.click(".tool [data-act=approve]");
  await until("it is said", async () => (await page.textContent(".said[role=status]").catch(() => "")) === "execute_command failed, exit 3");
  go();
  await until("the end", async () => (await texts(page, "article .prose")).includes("It failed."));
});
scenario("repeat a request that the server could not answer", async (page) => {
  const id = await server.conversation("Again", [{ role: "user", content: "still here" }]);
  await page.route(`**/${id}/messages?**`, (r) => r.fulfill({ status: 500, contentType: "application/json", headers: { "X-Request-Id": "req_7" }, body: JSON.stringify({ error: { code: "internal", message: "the disk is slow today" } }) }), { times: 1 });
  await to(talk(id));
  await page.getByText("the disk is slow today (request req_7)").waitFor();
  await page.click("[data-act=again]");
  await until("there it is", async () => (await texts(page, "article .prose")).includes("still here"));
  await until("nothing is wrong any more", async () => !(await page.$("#transcript .problem")));
  me.complaints.length = 0;
});

// ---- figures ----
scenario("read tokens and cost of a conversation that another tool recorded", async (page) => {
  const line = (n, type, message) => JSON.stringify({ type, uuid: `u${n}`, parentUuid: n > 1 ? `u${n - 1}` : null, sessionId: "s9", timestamp: `2026-01-01T00:00:0${n}.000Z`, cwd: "/x", version: "2.0.0", message });
  const reply = (content, out) => ({ id: "msg_1", type: "message", role: "assistant", model: "claude-x", content: [content], usage: { input_tokens: 10, cache_read_input_tokens: 100, output_tokens: out } });
  const file = join(server.folder, "recorded.jsonl");
  writeFileSync(file, [line(1, "user", { role: "user", content: "hello" }), line(2, "assistant", reply({ type: "text", text: "hi" }, 5)), line(3, "assistant", reply({ type: "tool_use", id: "t1", name: "Bash", input: { command: "ls" } }, 25))].join("\n") + "\n");
  server.cliRun("", "import", file);
  const id = (await server.api("GET", "/api/chat-sessions?limit=60")).items.find((i) => i.id.startsWith("claude-")).id;
  await shown(id);
  // One reply in two records is counted once, with its final figures.
  await until("in the header", async () => /110 tokens in, 25 out/.test(await page.textContent(".facts-line").catch(() => "")));
  const { totals } = await server.api("GET", `/api/chat-sessions/${id}/timeline`);
  equal(JSON.stringify(totals.models.map((m) => [m.name, m.tokens])), JSON.stringify([["claude-x", [110, 25, 100]]]));
  await until("what it cost", async () => (await page.textContent(".facts-line")).includes("$"));
});
scenario("look at the time of a conversation that was picked up again hundreds of times", async (page) => {
  const at = (n) => new Date(Date.UTC(2026, 0, 1) + n * 30_000).toISOString();
  const file = join(server.folder, "pauses.jsonl");
  writeFileSync(file, Array.from({ length: 600 }, (_, n) => JSON.stringify({ type: n % 2 ? "assistant" : "user", uuid: `p${n}`, parentUuid: n ? `p${n - 1}` : null, sessionId: "s10", timestamp: at(Math.floor(n / 2) * 2 + (n % 2) * 0.02), cwd: "/x", version: "2.0.0", message: n % 2 ? { id: `m${n}`, type: "message", role: "assistant", model: "claude-x", content: [{ type: "text", text: `answer ${n}` }] } : { role: "user", content: `question ${n}` } })).join("\n") + "\n");
  server.cliRun("", "import", file);
  const { id } = (await server.api("GET", "/api/chat-sessions?limit=60")).items.find((i) => i.id.startsWith("claude-p"));
  await to(`${talk(id)}/timeline`);
  await until("its rows", async () => (await page.getAttribute(".timeline.wide [role=treegrid]", "aria-rowcount").catch(() => "")) === "600");
  await page.getByText("299 pauses folded").waitFor();
  await holds(async () => {
    const marks = await page.$$eval(".time-row", (all) => all.map((e) => e.querySelectorAll(".break").length));
    assert(Math.max(...marks) > 10 && Math.max(...marks) <= 61, `${Math.max(...marks)} marks in a row`);
  });
});
scenario("read tokens of what came through the gateway", async (page) => {
  model.says("Recorded.");
  const answer = await fetch(`${server.origin}/~${server.token}/openai/v1/chat/completions`, { method: "POST", headers: { "Content-Type": "application/json", Authorization: "Bearer sk-mine" }, body: JSON.stringify({ model: "mock-1", stream: true, stream_options: { include_usage: true }, messages: [{ role: "user", content: "through the gateway" }] }) });
  equal(answer.status, 200);
  await answer.text();
  const id = await until("recorded", async () => (await server.api("GET", "/api/chat-sessions?figures=1")).items.find((i) => i.first === "through the gateway" && i.tokens[0])?.id);
  await shown(id);
  await until("in the header", async () => /1\.0 k tokens in, 50 out/.test(await page.textContent(".facts-line").catch(() => "")));
  const { totals } = await server.api("GET", `/api/chat-sessions/${id}/timeline`);
  equal(JSON.stringify(totals.models.map((m) => [m.name, m.calls, m.tokens])), JSON.stringify([["mock-1", 1, [1000, 50, 400]]]));
});
scenario("know how many bytes each tool kept out of contexts", async (page) => {
  await artifact("Kept", "a line that is long enough\n".repeat(20_000));
  await to("/usage");
  await until("by tool", async () => { const row = (await texts(page, "#stats tbody tr")).find((t) => t.startsWith("build")); return row && /\d (KB|MB)$/.test(row.trim()); });
});

// ---- more than one server ----
scenario("answer a call that waits at another server of the same store", async (page) => {
  const other = new Server("daily-other", model);
  other.store = server.store;
  await other.start();
  const id = await server.conversation("Asked elsewhere", []);
  model.calls("execute_command", { argv: ["printf", "from afar"] }, "May I?");
  model.says("Thank you.");
  void other.api("POST", "/api/chatbot", { sessionId: id, message: "run it", stream: false }).catch(() => {});
  await to("/usage");
  await until("the title says so", async () => (await page.title()).startsWith("(1) "));
  await until("the list says so", async () => (await page.textContent(`[data-conversation="${id}"]`).catch(() => "")).includes("waits for you"));
  await page.click("[data-act=tray]");
  await page.waitForSelector("#tray [data-approval]");
  await holds(async () => equal(await page.textContent("#tray .command"), "printf 'from afar'"));
  await until("where it is asked", async () => (await page.textContent("#tray")).includes("another server or a terminal"));
  await page.waitForSelector("#tray [data-act=approve]:not(:disabled)");
  await page.click("#tray [data-act=approve]");
  await until("it ran there", async () => (await server.api("GET", `/api/chat-sessions/${id}/messages`)).messages.some((m) => m.toolCalls?.[0]?.result?.includes("from afar")));
  await until("nothing waits any more", async () => !(await page.title()).startsWith("("));
  await server.atRest();
  await other.kill("SIGTERM");
});

// ---- a phone ----
scenario("go to the list with g l, walk it with j and k, and do the same with what a search found", async (page) => {
  const ids = [];
  for (const n of [1, 2, 3]) ids.push(await server.conversation(`Pebble ${n}`, [{ role: "user", content: `a pebble, number ${n}` }, asks("", call("a", "polish", {}), call("b", "throw_far", { what: "pebble" })), gives("a", "shiny"), gives("b", "gone")]));
  await until("it is indexed", async () => (await server.api("GET", "/api/search?q=pebble")).items.length >= 6);
  await to(`/c/${E(ids[0])}`);
  await page.waitForSelector("#transcript article");
  await page.evaluate(() => document.activeElement.blur());
  const here = () => page.evaluate(() => document.activeElement.closest("[data-conversation]")?.dataset.conversation ?? "");
  await page.keyboard.press("g");
  await page.keyboard.press("l");
  const first = await until("a row of the list", here);
  await page.keyboard.press("j");
  const second = await until("the next one", async () => { const now = await here(); return now !== first && now; });
  await page.keyboard.press("k");
  await until("and back", async () => (await here()) === first && second);
  // From the field to the hits without a mouse, and no letter lands in the field.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("pebble");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[data-hit]");
  const hit = () => page.evaluate(() => [...document.querySelectorAll("[data-hit]")].indexOf(document.activeElement));
  await page.keyboard.press("j");
  await until("the first hit", async () => (await hit()) === 0);
  await page.keyboard.press("j");
  await until("the second", async () => (await hit()) === 1);
  equal(await page.inputValue("#everywhere"), "pebble");
  // A hit in the second call of a reply belongs to that call, and the button counts it there.
  await holds(async () => {
    const facets = await page.$$eval(".facets button", (all) => all.map((b) => b.textContent));
    assert(facets.includes("throw_far 3") && facets.includes("polish 3"), facets.join());
    const labels = await page.$$eval("[data-hit]", (all) => all.filter((a) => a.textContent.includes('"what"')).map((a) => a.querySelector("code").textContent));
    equal([...new Set(labels)].join(), "throw_far");
  });
  await page.keyboard.press("Enter");
  await until("its place", () => page.evaluate(() => location.hash.includes("/c/")));
});
scenario("press every button with a finger on a phone", async () => {
  const id = await server.conversation("Fingers", [{ role: "user", content: "go" }, asks("", call("f", "look", { a: 1 })), gives("f", `${"a line\n".repeat(3000)}error: no\n`, { isError: true, duration: 5 })]);
  const ref = (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0].id;
  const w = await openWindow(server, { path: "/", width: 390, height: 844, hasTouch: true, isMobile: true });
  for (const [path, ready] of [["/", ".home-rows li"], ["/list", ".list li"], [`/c/${E(id)}`, "[data-call=f] .wrong-row"], [`/c/${E(id)}/timeline`, ".time-row"], [`/c/${E(id)}/o/${ref}/L5/q/line`, ".matches li"], ["/search/line", "[data-hit]"], ["/usage", "#stats .card"], ["/trash", "#main h2"], ["/settings", "#settings table"]]) {
    await to(path, w.page);
    await w.page.waitForSelector(ready);
    await holds(async () => {
      // A bar of the days is as tall as a finger and has its figures in a table; a fold of JSON is a line of text.
      const small = await w.page.$$eval("button, select, a.button, input:not([type=checkbox], [type=radio]), .sidebar-foot a, .phone-bar a", (all) => all.filter((e) => e.offsetParent && !e.matches(".j-toggle, .days button, .copy-code, .prose button"))
        .map((e) => [e.getBoundingClientRect().height, e.textContent || e.id]).filter(([h]) => h && h < 40).map((x) => x.join(" ")));
      equal(small.join(), "", path);
      equal(await w.page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)), 390, path);
    });
  }
  await w.close();
});
scenario("read the title of a conversation on a phone of 375 pixels", async () => {
  const id = await server.conversation("Why is the nightly build red since Friday?", [{ role: "user", content: "x" }, asks("", call("s", "t")), gives("s", "bad", { isError: true, exitCode: 127, duration: 96_400 })]);
  const w = await openWindow(server, { path: talk(id), width: 375, height: 812, hasTouch: true });
  await w.page.waitForSelector("[data-act=failures]");
  await holds(async () => {
    const wide = await w.page.$eval(".bar h2", (e) => e.getBoundingClientRect().width);
    assert(wide > 140, `${wide} pixels`);
    equal(await w.page.$eval("article .copy", (e) => getComputedStyle(e).opacity), "1", "no finger hovers: what can be done with a message is seen");
  });
  await to(`${talk(id)}/timeline`, w.page);
  await w.page.waitForSelector(".time-row.s-error");
  await holds(async () => { const [bar, took] = await w.page.$eval(".time-row.s-error", (e) => [e.querySelector(".time-track"), e.querySelector(".time-took")].map((x) => { const r = document.createRange(); r.selectNodeContents(x); return r.getBoundingClientRect(); }).map((r) => ({ top: r.top, bottom: r.bottom })));
  assert(took.bottom <= bar.top + 1, `the words stand over the bar: ${took.bottom} and ${bar.top}`); });
  for (const path of ["/", talk(id), `${talk(id)}/timeline`, "/usage", "/settings", "/search/quokka", "/trash"]) {
    await to(path, w.page);
    await w.page.waitForSelector("main h2");
    await holds(async () => equal(await w.page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)), 375, path));
  }
  await w.close();
});
scenario("read all figures and titles beside names without a space, and wide tables by their words", async () => {
  const long = "W".repeat(300);
  const id = await server.conversation(`quagga ${long}`, [{ role: "user", content: `|${"column|".repeat(24)}\n|${"---|".repeat(24)}\n|${"cell|".repeat(24)}` }, { ...asks("", call("w", long)), model: long }, gives("w", "done", { duration: 5 })]);
  for (const how of [{ width: 1280, height: 800 }, { width: 390, height: 844, hasTouch: true, isMobile: true }]) {
    const w = await openWindow(server, { path: "/", ...how });
    const inside = (selector) => holds(async () => { const right = await w.page.$$eval(selector, (all) => Math.max(...all.map((e) => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect().right; }))); assert(right > 0 && right <= how.width, `${selector} ends at ${right} of ${how.width}`); });
    await until("the tool", async () => (await texts(w.page, ".used th")).some((t) => t.startsWith("WWW")));
    // A table may scroll, but its names leave room for the figures.
    await inside(".used td:nth-child(3)");
    await until("found", async () => (await server.api("GET", "/api/search?q=column")).items.length > 0);
    await to("/search/column", w.page);
    await w.page.waitForSelector("[data-hit]");
    await inside(".hit-group h3 bdi");
    await shown(id, w.page);
    await w.page.waitForSelector(".rich th");
    equal(await w.page.$eval(".rich th", (e) => { const r = document.createRange(); r.selectNodeContents(e); return r.getClientRects().length; }), 1, "lines of a word");
    await w.close();
  }
});
scenario("be told that the server is away, also where the script of the shared stream never came", async () => {
  const own = await new Server("noworker").start("--no-tools");
  let deaf = false;
  const held = [];
  const line = createServer((q, a) => {
    if (/worker-/.test(q.url)) { a.destroy(); return; }
    if (deaf && q.url.startsWith("/api/watch")) { held.push(a); return; }
    const far = request(own.direct + q.url, { method: q.method, headers: q.headers }, (b) => { a.writeHead(b.statusCode, b.rawHeaders); b.pipe(a).on("close", () => b.destroy()); b.on("close", () => a.destroy()); });
    far.on("error", () => a.destroy());
    q.pipe(far);
  });
  await new Promise((done) => line.listen(0, "127.0.0.1", done));
  const there = { address: (path) => `http://127.0.0.1:${line.address().port}/#token=${own.token}&${path}`, origin: `http://127.0.0.1:${line.address().port}` };
  const w = await openWindow(there, { path: "/", fresh: true });
  const id = await own.conversation("written meanwhile");
  await w.page.getByText("written meanwhile").first().waitFor();
  // A stream that has not been answered yet.
  deaf = true;
  const early = await openWindow(there, { path: "/settings", fresh: true });
  await early.page.waitForSelector("#settings");
  await until("its stream is asked for", () => held.some((a) => a.req.method === "POST"));
  await own.kill();
  deaf = false;
  for (const a of held) a.destroy();
  for (const x of [w, early]) await x.page.waitForSelector(".state:not(.state-live)");
  await early.close();
  await w.close();
  line.closeAllConnections();
  line.close();
  assert(id, "made");
});
scenario("do with the keyboard alone what is done with a message, and go on from where I jumped to", async (page) => {
  const id = await server.conversation("By keys", []);
  for (const [role, content] of [["user", "first words"], ["assistant", "a reply"], ["user", "more words"], ["assistant", "the last reply"]]) await server.append(id, [{ role, content }]);
  await shown(id);
  await blur(page);
  const at = () => page.evaluate(() => document.activeElement.closest("#transcript [data-row], #transcript button") && document.activeElement.innerText.trim());
  await page.keyboard.press("g"); await page.keyboard.press("g");
  await until("the first message", async () => (await at())?.includes("first words"));
  for (const act of ["copy", "link", "edit"]) { await page.keyboard.press("Tab"); await holds(async () => equal(await at(), act)); }
  model.says("A reply to other words.");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".editor textarea:focus");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("other words");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await until("a fork of its own", async () => (await texts(page, "article .prose")).join() === "other words,A reply to other words.");
  await shown(id);
  await blur(page);
  await page.keyboard.press("g"); await page.keyboard.press("g");
  await until("the first message", async () => (await at())?.includes("first words"));
  await page.keyboard.press("G");
  await until("the last one", async () => (await at())?.includes("the last reply"));
  await page.keyboard.press("k");
  await until("the one before it", async () => (await at())?.includes("more words"));
  await page.keyboard.press("Tab");
  await holds(async () => equal(await at(), "copy", "what can be done with this one"));
  await page.keyboard.press("Shift+Tab"); await page.keyboard.press("Shift+Tab");
  assert(!(await page.evaluate(() => document.activeElement.closest(".message-acts"))), "and not with the others");
});
scenario("leave the field of line numbers for the line, and reach every control of figures, searches and outputs in a few stops", async (page) => {
  const { path } = await artifact("Lines by keys", Array.from({ length: 3000 }, (_, i) => `brook ${i + 1}`).join("\n"));
  await to(path, page);
  await page.waitForSelector(".line-row");
  await page.keyboard.press(":");
  await page.keyboard.type("1200");
  await page.keyboard.press("Enter");
  await until("the line", async () => (await page.textContent(".line-row.here .content").catch(() => "")) === "brook 1200");
  await holds(async () => equal(await page.evaluate(() => document.activeElement.id), "lines"));
  await page.keyboard.press(":");
  await page.keyboard.press("Escape");
  await holds(async () => equal(await page.evaluate(() => document.activeElement.id), "lines"));
  const stops = async (inside) => {
    await page.evaluate(() => { document.activeElement.blur(); document.querySelector(".skip").focus(); });
    let n = 0;
    for (let i = 0; i < 80; i++) { await page.keyboard.press("Tab"); const where = await page.evaluate((s) => (document.activeElement === document.body || document.activeElement.matches(".skip") ? "over" : document.activeElement.closest(s) ? "in" : ""), inside); if (where === "over") break; n += where === "in" ? 1 : 0; }
    return n;
  };
  const few = async (inside, most) => { const n = await stops(inside); assert(n > 0 && n <= most, `${inside}: ${n} stops`); };
  await few(".output .tools", 4);
  await until("it is indexed", async () => (await server.api("GET", "/api/search?q=brook")).items.length);
  await to("/search/brook", page);
  await page.waitForSelector("[data-hit]");
  await few(".facets", 1);
  await page.focus(".facets button"); await page.keyboard.press("ArrowRight"); await page.keyboard.press("Enter");
  await until("narrowed by the arrow", () => page.evaluate(() => /in%3Aoutput$/.test(location.hash)));
  await to("/usage", page);
  await page.waitForSelector(".days button");
  await few(".days", 1);
  await few(".table-wrap", 4);
});
scenario("know a conversation without a title by its words, also where the list does not have it", async (page) => {
  const id = (await server.api("POST", "/api/chat-sessions", {})).id;
  await server.append(id, [{ role: "user", content: "where the wombats dig" }]);
  const titled = await server.conversation("A title of wombats", [{ role: "user", content: "wombats again" }]);
  await until("it is indexed", async () => (await server.api("GET", "/api/search?q=wombats")).items.length > 1);
  await to("/", page);
  await page.fill("#filter", "nothing has this name");
  await until("an empty list", async () => (await page.textContent(".list")).includes("Nothing matches"));
  await shown(id);
  await holds(async () => { equal(await page.textContent(".bar h2"), "where the wombats dig"); equal(await page.title(), "where the wombats dig · Steno"); });
  await to("/search/wombats", page);
  await until("both by name", async () => (await texts(page, ".hit-group h3 bdi")).sort().join() === "A title of wombats,where the wombats dig");
  await page.fill("#filter", "");
  await until("all again", async () => (await texts(page, ".list li")).length > 3);
  assert(titled, "");
});
// ---- what waits, and what no longer waits ----
const waits = async (s, title, args = { argv: ["printf", "it ran"] }) => {
  const id = await s.conversation(title, []);
  model.calls("execute_command", args, "May I?");
  model.says("Then not.");
  void s.api("POST", "/api/chatbot", { sessionId: id, message: "run it", stream: false }).catch(() => {});
  return { id, ...await until("it waits", async () => (await s.api("GET", "/api/approvals")).items.find((a) => a.conversation === id)) };
};
scenario("learn that a call expired while I was offline: nothing offers to allow it any more", async () => {
  const own = new Server("runs-out", model);
  own.config = { limits: { approvalSeconds: 1 } };
  await own.start();
  const wire = await new Wire(own).start();
  const w = await openWindow(wire, { path: "/usage", width: 1300, height: 800, fresh: true });
  await w.page.waitForSelector("#connection[data-state=live]");
  const other = await adopt(w.context, wire);
  const { id } = await waits(own, "Runs out");
  await other.page.goto(wire.address(talk(id)));
  await other.page.waitForSelector(".tool [data-act=approve]:not(:disabled)");
  await w.page.click("[data-act=tray]");
  await w.page.waitForSelector("#tray [data-act=approve]:not(:disabled)");
  await holds(async () => { equal(await w.page.textContent("[data-only=waiting] b"), "1", "the list counts it"); assert((await w.page.title()).startsWith("(1) "), "and the tab"); });
  wire.cut();
  // A call cannot be allowed while it is not known to wait.
  await w.page.waitForSelector("#tray [data-act=approve]:disabled");
  await other.page.waitForSelector(".tool [data-act=approve]:disabled");
  await until("it ran out", async () => !(await own.api("GET", "/api/approvals")).items.length);
  wire.mend();
  for (const page of [w.page, other.page]) await page.waitForSelector("#connection[data-state=live]");
  await until("the tray says why", async () => /Denied, because nobody answered in time, \d\d:/.test(await w.page.textContent("#tray").catch(() => "")));
  await until("told", () => w.page.evaluate(() => window.toasts.some((t) => /^execute_command: Denied, because nobody answered in time, \d\d:\d\d:\d\d\.$/.test(t))));
  await holds(async () => {
    equal(await w.page.textContent("#tray h2"), "Nothing waits for you");
    for (const page of [w.page, other.page]) {
      equal(await page.$$eval("[data-act=approve], [data-act=deny]", (all) => all.length), 0, "buttons");
      assert(!(await page.title()).startsWith("("), "the tab");
      assert(!(await page.getAttribute("link[rel=icon]", "href")).includes("circle"), "its icon");
      equal(await page.$$eval("[data-only=waiting] b", (all) => all.length), 0, "the list's count");
      assert(!(await page.textContent(`[data-conversation="${id}"]`)).includes("waits for you"), "its row");
    }
    equal(await other.page.$eval(".tool", (e) => e.dataset.status), "denied", "the card is the call again");
    assert((await other.page.textContent(".tool")).includes("nobody was there"), "which says why");
  });
  await w.close();
  await own.kill();
});
scenario("see what happened to a call whose run was stopped, or that was answered elsewhere", async (page) => {
  for (const [how, said] of [["stop", "The run was stopped"], ["deny", "Denied in another window"], ["allow", "Allowed in another window"]]) {
    const a = await waits(server, `Elsewhere: ${how}`);
    await page.waitForSelector("[data-act=tray]:not([hidden])");
    await page.click("[data-act=tray]");
    await page.waitForSelector("#tray [data-act=approve]");
    if (how === "stop") await server.api("POST", `/api/runs/${a.run}/stop`);
    else await server.api("POST", `/api/runs/${a.run}/approvals/${a.call}`, { approved: how === "allow", approval: a.approval });
    await until(said, async () => (await page.textContent("#tray").catch(() => "")).includes(`${said}, `));
    await page.click("#tray [aria-label=Close]");
    await page.waitForSelector("#tray", { state: "detached" });
    await server.atRest();
    model.plays.length = 0;
  }
});
scenario("read at home that nothing is at work while a run only waits for me", async (page) => {
  const a = await waits(server, "Only waits");
  await to("/", page);
  await until("the sentence", async () => (await page.textContent(".home-head").catch(() => "")) === "One call waits for you.");
  await holds(async () => {
    const home = await page.innerText("#home");
    assert(home.includes("Nothing else is at work.") && !/^At work/m.test(home), home);
    equal((await texts(page, ".needs a")).join(), "Only waits");
  });
  await server.api("POST", `/api/runs/${a.run}/approvals/${a.call}`, { approved: false, approval: a.approval });
  await server.atRest();
});
scenario("read at home why a call failed that printed nothing", async (page) => {
  await server.conversation("Said nothing", [{ role: "user", content: "go" }, asks("", call("mute", "execute_command", { argv: ["false"] })), gives("mute", "", { isError: true, exitCode: 7 })]);
  await to("/", page);
  await until("the reason", async () => (await texts(page, ".home-rows li")).some((t) => t.includes("Said nothing") && t.includes("execute_command: exit 7, it printed nothing")));
});
scenario("read a change line by line: distant places are separate hunks, and a rewritten file is shown as replaced", async (page) => {
  const lines = Array.from({ length: 60 }, (_, i) => `line ${i}`);
  const changed = lines.map((l, i) => (i === 5 || i === 50 ? `${l}!` : l));
  const anew = (mark) => Array.from({ length: 900 }, (_, i) => `${mark} ${i}`).join("\n");
  const id = await server.conversation("Changes", [{ role: "user", content: "go" }, asks("",
    call("two", "edit", { file_path: "a", old_string: lines.join("\n"), new_string: changed.join("\n") }), call("all", "edit", { file_path: "b", old_string: anew("old"), new_string: anew("new") }), call("end", "edit", { file_path: "c", old_string: "x", new_string: "x\n" })), gives("two", "ok"), gives("all", "ok"), gives("end", "ok")]);
  await shown(id);
  for (const c of ["two", "all", "end"]) { await page.click(`[data-call=${c}] .tool-head`); await page.waitForSelector(`[data-call=${c}] .diff`); }
  await holds(async () => {
    equal((await texts(page, "[data-call=two] .diff pre > div")).join("\n"), ["@@ -3,7 +3,7 @@", " line 2", " line 3", " line 4", "-line 5", "+line 5!", " line 6", " line 7", " line 8", "@@ -48,7 +48,7 @@", " line 47", " line 48", " line 49", "-line 50", "+line 50!", " line 51", " line 52", " line 53"].join("\n"));
    equal(await page.textContent("[data-call=all] .diff-head"), "b+900−900");
    equal((await texts(page, "[data-call=end] .diff pre > div")).join("|"), "@@ -1,1 +1,2 @@| x|+");
  });
});
scenario("see the name of an output, or its id until the name has come", async (page) => {
  const { path, ref } = await artifact("Named", "a line\n".repeat(3000));
  let go;
  await page.route("**/context?limit=200", async (r) => { await new Promise((done) => { go = done; }); await r.continue(); });
  await page.route("**/timeline?*", (r) => r.abort());
  await to(path, page);
  await page.waitForSelector(".line-row");
  await until("asked", () => go);
  equal(await page.textContent(".output h2 bdi"), ref);
  go();
  await until("its name", async () => (await page.textContent(".output h2 bdi")).includes("build"));
  await page.unrouteAll({ behavior: "ignoreErrors" });
});
scenario("read on a phone what stands beside a switch, and durations of years", async () => {
  const id = await server.conversation("Small", [{ role: "user", content: "go" }, asks("", call("a", "edit_file", { file_path: "src/a.ts", old_string: "const a = 1;\n", new_string: "const a = 2;\n" }), call("b", "wait"), call("c", "wait_more")),
    gives("a", JSON.stringify({ text: "a long line ".repeat(20) }), { duration: 3.2e11 }), gives("b", "ok", { duration: 4e8 }), gives("c", "ok", { duration: 1e15 })]);
  const w = await openWindow(server, { path: talk(id), width: 390, height: 844, hasTouch: true, isMobile: true });
  await w.page.click("[data-call=a] .tool-head");
  await w.page.waitForSelector("[data-call=a] .switch >> nth=1");
  await holds(async () => {
    const over = await w.page.$$eval(".value", (all) => all.flatMap((v) => {
      const s = v.querySelector(".switch")?.getBoundingClientRect();
      if (!s) return [];
      const words = document.createTreeWalker(v, NodeFilter.SHOW_TEXT), out = [];
      for (let n = words.nextNode(); n; n = words.nextNode()) { if (n.parentElement.closest(".switch")) continue; const r = document.createRange(); r.selectNodeContents(n); for (const b of r.getClientRects()) if (b.width && b.right > s.left && b.left < s.right && b.bottom > s.top && b.top < s.bottom) out.push(n.textContent); }
      return out;
    }));
    equal(over.join(), "", "covered");
  });
  await to(`${talk(id)}/timeline`, w.page);
  await w.page.waitForSelector("[data-time=c]");
  await holds(async () => {
    equal((await w.page.$$eval(".k-call .time-took", (all) => all.map((e) => e.innerText))).join("|"), "10 y|4 d 15 h|> 9,999 y");
    for (const [bar, words] of await w.page.$$eval(".k-call", (all) => all.map((e) => { const r = document.createRange(); r.selectNodeContents(e.querySelector(".time-took")); return [e.querySelector(".time-track").getBoundingClientRect().top, r.getBoundingClientRect().bottom]; }))) assert(words <= bar + 1, `the words end at ${words}, the bar begins at ${bar}`);
  });
  await w.close();
});
scenario("go from a number at home to the list that it counts, on a phone as well", async () => {
  await server.conversation(`Numbers ${"and more ".repeat(20)}`, [{ role: "user", content: "go" }, asks("", call("n", "count_up")), gives("n", "1 2 3")]);
  const w = await openWindow(server, { path: "/", width: 390, height: 844, hasTouch: true, isMobile: true });
  await w.page.waitForSelector(".used .number");
  await w.page.click(".phone-bar a:has-text('List')");
  await w.page.waitForSelector(".list li");
  await w.page.click(".phone-bar a:has-text('Home')");
  await w.page.click(".used .number >> nth=0");
  await w.page.waitForSelector(".list li");
  await holds(async () => assert(/^(model|tool):/.test(await w.page.inputValue("#filter")), "narrowed"));
  await holds(async () => {
    const [words, acts] = await w.page.$eval(".list li", (e) => [Math.max(...[...e.querySelectorAll(".entry-title, .entry-facts")].map((x) => x.getBoundingClientRect().right)), e.querySelector(".entry-acts").getBoundingClientRect().left]);
    assert(words <= acts + 1, `the words end at ${words}, the buttons begin at ${acts}`);
  });
  await w.page.click(".list li > a");
  await w.page.waitForSelector("#transcript article");
  await w.page.click("[aria-label='Back to the list']");
  await w.page.waitForSelector(".list li");
  await w.close();
});
scenario("see no error in the console and no request to another host after all of this", async () => {
  equal(me.complaints.filter((c) => !/net::ERR_|404/.test(c)).join(" | "), "", "complaints");
  equal(me.foreign.length, 0, "foreign requests");
  equal(me.dialogs.length, 0, "dialogs");
});

await runTests();
