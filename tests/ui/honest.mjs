// The page shows only what is so: nothing hides in a call that needs permission, what was not loaded is
// not called empty, what has not begun is not called running, and the match of a search is on the
// screen.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { adopt, assert, equal, holds, Model, openWindow, runTests, Server, sleep, test, until } from "./lib.mjs";

const model = await new Model().start();
const server = new Server("honest", model);
// A tool that may run in parallel, and ends on request.
const tool = join(server.folder, "tool.mjs"), ending = join(server.folder, "end");
writeFileSync(tool, `import { existsSync } from "node:fs"; import { createInterface } from "node:readline";
const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
createInterface(process.stdin).on("line", (l) => {
  const { id, method, params } = JSON.parse(l);
  if (method === "initialize") say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } });
  else if (method === "tools/list") say(id, { tools: [{ name: "wait", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }] });
  else if (method === "tools/call") { const t = setInterval(() => { if (existsSync(${JSON.stringify(ending)})) { clearInterval(t); say(id, { content: [{ type: "text", text: "over" }] }); } }, 20); }
  else if (id !== undefined) say(id, {});
});`);
server.config = { permissions: [{ action: "allow", tool: "execute_command", argvPrefix: ["echo"] }, { action: "allow", server: "slow" }], mcpServers: { slow: { command: process.execPath, args: [tool] } } };
let me;
const scenario = (name, f) => test(name, async () => {
  if (!me) { await server.start(); me = await openWindow(server, { path: "/", width: 1440, height: 900 }); }
  await server.atRest();
  model.plays.length = 0;
  await f(me.page);
});
const E = encodeURIComponent;
const talk = (id) => `/c/${E(id)}`;
const to = (path, page = me.page) => page.evaluate(([t, p]) => { location.hash = `#token=${t}&${p}`; }, [server.token, path]);
const call = (id, name, args = {}) => ({ id, type: "function", function: { name, arguments: JSON.stringify(args) } });
const asks = (content, ...calls) => ({ role: "assistant", content, tool_calls: calls });
const gives = (id, content, more = {}) => ({ role: "tool", tool_call_id: id, content, ...more });
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));
const shown = async (id, page = me.page) => { await to(talk(id), page); await page.waitForSelector(`.talk[data-id="${id}"] #transcript article`); };
const blur = (page) => page.evaluate(() => document.activeElement?.blur());
const artifact = async (title, text, more = {}) => {
  const id = await server.conversation(title, [{ role: "user", content: "go" }, asks("", call("big", "execute_command", { argv: ["make", "all"] })), gives("big", text, more)]);
  const ref = (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0].id;
  return { id, ref, path: `${talk(id)}/o/${ref}` };
};
async function waiting(title, args, ...more) {
  const id = await server.conversation(title, []);
  model.play(async (_, r) => { r.call("execute_command", args); for (const a of more) r.call("execute_command", a); r.end(); });
  model.says("Thank you.");
  void server.api("POST", "/api/chatbot", { sessionId: id, message: "run it", stream: false }).catch(() => {});
  const a = await until("it waits", async () => (await server.api("GET", "/api/approvals")).items.find((x) => x.conversation === id));
  return { ...a, id, over: async () => { await server.api("POST", `/api/runs/${a.run}/approvals/${a.call}`, { approved: false, approval: a.approval }); await server.atRest(); } };
}
// Holds the requests for an address until they are released.
async function hold(page, address) {
  const held = [];
  let open = false;
  await page.route(address, async (r) => { if (!open) await new Promise((go) => held.push(go)); await r.continue().catch(() => {}); });
  return { held, go: async () => { open = true; held.forEach((f) => f()); await page.unrouteAll({ behavior: "wait" }); } };
}

// ---- what hides in a call ----
scenario("see every wrapped row of a command marked as a part of its line, and blanks counted and named", async (page) => {
  const w = await waiting("Blanks", { shell: `echo ${"x".repeat(500)}\necho safe${" ".repeat(400)}rm\u00a0-rf\t/` });
  await shown(w.id);
  await page.waitForSelector(".tool .approval .exact-row");
  await holds(async () => { const said = await page.innerText(".tool .approval .exact"); for (const word of ["400 blanks", "NBSP", "␉"]) assert(said.includes(word), `${word} in ${said}`); });
  // The ground at the right end of a row, where no letter is. What is above the card may still come and
  // move it.
  await holds(async () => {
    const box = await page.$eval(".approval .exact-text", (e) => { e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect(); return { right: r.right, top: r.top, row: parseFloat(getComputedStyle(e).lineHeight), rows: Math.round(r.height / parseFloat(getComputedStyle(e).lineHeight)) }; });
    assert(box.rows >= 4, `${box.rows} rows`);
    const ground = async (i) => (await page.screenshot({ clip: { x: Math.round(box.right - 7), y: Math.round(box.top + (i + 0.5) * box.row - 2), width: 4, height: 4 } })).toString("base64");
    const [first, ...rest] = await Promise.all([0, 1, 2, 3].map(ground));
    rest.forEach((g, i) => { assert(g !== first, `row ${i + 2} is marked`); equal(g, rest[0], `row ${i + 2} as the second`); });
  });
  await w.over();
});
scenario("read at home that more follows than the first line of a command, and what is invisible in it", async (page) => {
  const w = await waiting("More follows", { shell: "echo a\u200bb\nrm -rf ~" });
  await to("/");
  await until("it needs me", async () => (await texts(page, ".needs li")).join().includes("More follows"));
  await holds(async () => { const said = await page.innerText(".needs li"); assert(said.includes("U+200B") && said.includes("9 more characters") && !said.includes("rm -rf"), said); });
  await w.over();
});
scenario("read on the card which variables and limits a call gets", async () => {
  // The stream of a server that says so, read by the page itself.
  const w = await adopt(me.context, server);
  const asked = { run: "run_x", call: "call_x", approval: "a".repeat(64), conversation: "conv_x", tool: "execute_command", arguments: '{"argv":["make"]}', directory: "/tmp", since: new Date().toISOString(),
    environment: ["HOME", "PATH"], limits: { seconds: 600, memoryBytes: 4e9, outputBytes: 5e8, cpuSeconds: 60 } };
  await w.page.addInitScript(() => { delete window.SharedWorker; });
  await w.page.route("**/api/watch**", (r) => r.fulfill(r.request().method() === "POST"
    ? { contentType: "text/event-stream", body: `event: watch\ndata: {"id":"w"}\n\nevent: approvals\ndata: ${JSON.stringify({ items: [asked] })}\n\n` } : { json: {} }));
  await w.page.goto(server.address("/"));
  await w.page.click("[data-act=tray]:not([hidden])");
  await holds(async () => {
    const facts = await w.page.innerText("#tray .facts");
    for (const words of ["HOME PATH", "10 min 0 s", "4.0 GB of memory", "500 MB of output", "1 min 0 s of a processor"]) assert(facts.includes(words), `${words} in ${facts}`);
  });
  await w.page.close();
});

// ---- what was searched for ----
const inside = (page) => page.evaluate(() => { const m = document.querySelector(".line-row.here mark"), b = document.querySelector("#lines"); if (!m) return false; const r = m.getBoundingClientRect(), e = b.getBoundingClientRect(), no = document.querySelector(".line-row.here .no").getBoundingClientRect(); return r.left >= no.right && r.right <= e.right && r.top >= e.top && r.bottom <= e.bottom; });
scenario("see the match of a search in a JSON of one line, and in ordinary lines on a phone", async (page) => {
  const one = await artifact("One line of JSON", `{"records":[${Array.from({ length: 5000 }, (_, i) => `{"id":${i},"v":"x"}`).join(",")},{"id":"timeout-here"}${`,"rest"`.repeat(5000)}]}`);
  await to(`${one.path}/L1/q/timeout-here`);
  await until("it is on the screen", () => inside(page));
  await holds(async () => equal(await page.textContent(".line-row mark"), "timeout-here"));
  const many = await artifact("Ordinary lines", `${"a line of the log that has eighty columns, at the end of which something stands\n".repeat(3000)}${"-".repeat(70)} needle 42\n`);
  for (const q of ["needle", "need[l]e \\d+"]) {
    const w = await openWindow(server, { path: `${many.path}/L1/q/${E(q)}`, width: 390, height: 844, hasTouch: true });
    await until(`${q} is on the screen of a phone`, () => inside(w.page));
    await w.close();
  }
});

scenario("see in the rail where all matches and all errors of an output are", async (page) => {
  const { path } = await artifact("Everywhere", Array.from({ length: 6000 }, (_, i) => (i === 4500 || i === 5999 ? "error: one" : i % 20 ? "a line" : `needle ${i}`)).join("\n"));
  await to(path);
  const rail = (kind) => page.$$eval(`.rail i${kind}`, (all) => all.map((e) => parseFloat(e.style.top)));
  await until("errors, without a search", async () => (await rail(".err")).join() === "74.25,99");
  equal(await page.$$eval(".rail i", (all) => all.filter((e) => { const r = e.getBoundingClientRect(), b = e.parentElement.getBoundingClientRect(); return r.bottom > b.bottom || r.left < b.left || r.right > b.right; }).length), 0, "all of them within it");
  await page.fill("#find", "needle");
  await page.press("#find", "Enter");
  await until("all parts have matches", async () => { const at = await rail(""); return at.length > 200 && Math.max(...at) > 98; });
  equal((await rail(".now")).length, 1, "and where I am");
  await page.locator(".rail").click({ position: { x: 8, y: 2 + (await (await page.$(".rail")).boundingBox()).height / 2 } });
  await until("a click goes there", () => page.evaluate(() => { const n = Number(/\/L(\d+)/.exec(location.hash)?.[1]); return n > 2800 && n < 3200; }));
});
scenario("see nothing beside the lines of an output without matches and errors", async (page) => {
  const { path } = await artifact("All is well", "a line\n".repeat(3000));
  await to(path);
  await until("there are no errors", async () => (await page.textContent("[data-act=errors]")) === "Errors 0");
  await holds(async () => equal(await page.$eval(".output-body", (e) => [...e.childNodes].map((n) => n.className ?? n.data).join()), "lines"));
});
scenario("read the lines around a hit of a search, and land at its column in a long line", async (page) => {
  const words = ["first line", `${"x ".repeat(30_000)}zebrafish here${" y".repeat(30_000)} the end`, "third line", ...Array.from({ length: 3000 }, (_, i) => `filler ${i}`)];
  const { id } = await artifact("A long line", words.join("\n"), { isError: true });
  await until("it is indexed", async () => (await server.api("GET", "/api/search?q=zebrafish")).items.some((i) => i.ref));
  const hit = (await server.api("GET", "/api/search?q=zebrafish")).items.find((i) => i.ref);
  equal([hit.line, hit.column].join(), "2,60001");
  await until("indexed too", async () => (await server.api("GET", `/api/search?q=${E(`"filler 1500" conversation:${id}`)}`)).items.length);
  await to(`/search/${E('"filler 1500"')}`);
  await until("three lines", async () => (await texts(page, ".hit-lines .no")).join() === "1,503,1,504,1,505");
  await holds(async () => { equal((await texts(page, ".hit-lines .hit-text")).join("|"), "filler 1499|filler 1500|filler 1501"); assert(await page.$(".hit-group h3 .strip"), "the tape of its conversation"); });
  await to("/search/zebrafish");
  await page.click("[data-hit]:has-text('Output')");
  await until("the match is on the screen", () => inside(page));
  await holds(async () => { equal(await page.textContent(".line-row.here mark"), "zebrafish"); assert(page.url().includes("/L2/C60001/"), page.url()); });
  // Another search that finds the same line has a column of its own.
  await page.fill("#find", "the end");
  await page.press("#find", "Enter");
  await until("the other match is on the screen", async () => await inside(page) && (await page.textContent(".line-row.here mark")) === "the end");
});

// ---- what was not loaded ----
scenario("learn why a conversation is empty when I open it while the server is away", async (page) => {
  const id = await server.conversation("Opened while away", [{ role: "user", content: "hello" }]);
  await to("/search/hello");
  await until("something was searched", async () => /place|Nothing/.test(await page.textContent(".search-view h2").catch(() => "")));
  await page.context().setOffline(true);
  await to(talk(id));
  await until("the cause, and a second chance", async () => (await page.textContent("#transcript").catch(() => "")).includes("the server cannot be reached") && page.$("#transcript [data-act=again]"));
  await holds(async () => {
    assert(/What you see is from \d\d:\d\d:\d\d\./.test(await page.textContent("#connection")), await page.textContent("#connection"));
    const pane = await page.textContent(".timeline");
    assert(!/0 calls|Nothing has been called/.test(pane), pane);
    assert(["Opened while away", "Not loaded"].includes(await page.textContent(".bar h2")), "its name, or that it has none yet");
  });
  await to("/search/other");
  await until("not searched", async () => (await page.textContent(".search-view h2").catch(() => "")) === "Not searched");
  assert(!/\d/.test(await page.textContent(".facets")), "no counts of the search before");
  await to(talk(id));
  await page.context().setOffline(false);
  await until("it comes by itself", () => page.$("#transcript article"));
});
scenario("read no count of calls as a fact while the timeline is still loading", async (page) => {
  const n = 300;
  const id = await server.conversation("Long to load", Array.from({ length: n }, (_, i) => [asks("", call(`l${i}`, "t")), gives(`l${i}`, "ok", i % 250 ? {} : { isError: true })]).flat());
  let go;
  await page.route("**/timeline?from=*", async (r) => { if (!r.request().url().endsWith("from=1")) await new Promise((done) => { go = done; }); await r.continue().catch(() => {}); });
  await to(talk(id));
  await until("the second part is asked for", () => go);
  await holds(async () => {
    const said = await page.textContent(".timeline-head");
    assert(/loading: \d+ of 300 calls/.test(said), said);
    equal(await page.getAttribute("canvas.tape", "aria-valuemax"), String(2 * n - 1), "the end of the slider");
  });
  go();
  await until("all of it", async () => (await page.textContent(".timeline-head")).includes("300 calls, 300 replies"));
  await holds(async () => equal(await page.getAttribute("canvas.tape", "aria-valuemax"), String(2 * n - 1), "the same end"));
  await page.unrouteAll({ behavior: "wait" });
});
// Stores a message, and returns when the page has learned of it and has done what it does then.
const meanwhile = async (page, id, message) => {
  const { lastSeq } = await server.api("GET", `/api/chat-sessions/${id}`);
  const look = page.waitForResponse(async (r) => r.url().endsWith(`/api/chat-sessions/${id}`) && (await r.json()).lastSeq > lastSeq);
  await server.append(id, [message]);
  await (await look).finished();
  await page.evaluate(() => new Promise((done) => setTimeout(done, 50)));
};
scenario("see a message that is stored while the rows are on their way, and one while earlier rows are", async (page) => {
  const id = await server.conversation("Meanwhile", Array.from({ length: 100 }, (_, i) => ({ role: "user", content: `question ${i}\n`.repeat(5) })));
  let held = false;
  await page.route("**/messages?*&last=*", async (r) => {
    const answer = await r.fetch();
    if (!held) { held = true; await meanwhile(page, id, { role: "user", content: "behind the last page" }); }
    await r.fulfill({ response: answer });
  });
  await shown(id);
  await until("the first", async () => (await page.innerText("#transcript")).includes("behind the last page"));
  await page.unrouteAll({ behavior: "wait" });
  const earlier = await hold(page, "**/messages?*&before=*");
  await page.$eval("#transcript", (e) => { e.scrollTop = 0; });
  await until("earlier rows are asked for", () => earlier.held.length);
  await meanwhile(page, id, { role: "user", content: "behind the earlier page" });
  await earlier.go();
  await until("the second", async () => (await page.$$eval("#transcript article", (all) => all.map((e) => e.textContent))).join().includes("behind the earlier page"));
});
scenario("leave a conversation right after e, and an output while it is searched, without being taken back", async (page) => {
  const { id, path } = await artifact("Left quickly", "a line\n".repeat(3000), { isError: true });
  const errors = await hold(page, "**/errors?*");
  await shown(id);
  await blur(page);
  await page.keyboard.press("e");
  await to("/");
  await page.waitForSelector("#home");
  await errors.go();
  await to(path);
  await page.waitForSelector(".line-row");
  const grep = await hold(page, "**/grep?pattern=line&*");
  await page.fill("#find", "line");
  await page.press("#find", "Enter");
  await until("it is searched", () => grep.held.length);
  await to("/usage");
  await page.waitForSelector("#stats");
  await grep.go();
  await sleep(100);
  assert((await page.evaluate(() => location.hash)).endsWith("/usage"), "still there");
  equal(me.complaints.filter((c) => /TypeError/.test(c)).join(), "");
});
scenario("recognise a conversation without a user's message by its contents or its time, not by an id", async (page) => {
  const picture = [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }];
  const made = [];
  for (const m of [{ role: "user", content: picture }, { role: "user", content: " \n" }, { role: "assistant", content: "Nobody asked." }]) {
    const { id } = await server.api("POST", "/api/chat-sessions", {});
    await server.append(id, [m]);
    made.push(id);
  }
  await to("/");
  const names = [/^Image$/, /^Untitled, \d\d:\d\d:\d\d$/, /^Nobody asked\.$/];
  for (const [i, id] of made.entries()) await until("in the list", async () => names[i].test(await page.textContent(`[data-conversation="${id}"] .entry-title`).catch(() => "")));
  await shown(made[1]);
  await until("in its header", async () => /^Untitled, /.test(await page.textContent(".bar h2")));
});

// ---- as a terminal left it ----
const DRAWN = `${Array.from({ length: 101 }, (_, i) => `\rdownloading ${i}%`).join("")}\n\x1b[31mred\nstill red\x1b[0m\nwro\b\b\bright \x1b]8;;http://x.example\x1b\\link\x1b]8;;\x1b\\\x1b[2Jend\n`;
scenario("read a result in the transcript and a match in an output as a terminal left them", async (page) => {
  const small = await server.conversation("Drawn over", [{ role: "user", content: "go" }, asks("", call("d", "t")), gives("d", DRAWN)]);
  await shown(small);
  await page.click("[data-call=d] .tool-head");
  await page.waitForSelector("[data-call=d] .tool-body pre");
  await holds(async () => {
    const said = await page.textContent("[data-call=d] .tool-body");
    assert(said.includes("downloading 100%100 redraws") && !said.includes("downloading 99%"), said);
    equal((await texts(page, "[data-call=d] .fg-red")).join("|"), "red|still red");
    assert(said.includes("right linkscreen clearedend"), said);
  });
  const { path } = await artifact("Drawn over, large", `${DRAWN}${"pad\n".repeat(4000)}`);
  await to(`${path}/L1/q/downloading`);
  await until("the match", () => page.$(".line-row[data-line='1'] mark"));
  await holds(async () => {
    const said = await page.textContent(".line-row[data-line='1'] .content");
    assert(said.startsWith("downloading 100%") && said.includes("100 redraws"), said);
    equal(await page.textContent(".line-row[data-line='3'] .fg-red"), "still red");
    assert((await page.textContent(".line-row[data-line='4'] .content")).includes("right linkscreen clearedend"), "controls");
  });
});
scenario("read the Markdown of a message although one of its paragraphs cannot be read in time", async () => {
  const id = await server.conversation("One bad part", [{ role: "user", content: "go" }, { role: "assistant", content: `# H\n\n**b1**\n\n${"_a*".repeat(200)}\n\n**b2**\n\n- x` }]);
  // This request takes very long on every machine: it is the only part that is slow enough to be
  // announced.
  const w = await openWindow(server, { path: "/", width: 1440, height: 900, fresh: true });
  let hung = 0;
  await w.page.route("**/lexer-*.js", async (r) => {
    const answer = await r.fetch();
    hung++;
    await r.fulfill({ response: answer, body: `let skip = []; addEventListener("message", (e) => { skip = e.data.skip; }); const say = postMessage.bind(globalThis); globalThis.postMessage = (m) => { say(m); if (m.at !== undefined && !skip.includes(m.at)) for (;;); };\n${await answer.text()}` });
  });
  await shown(id, w.page);
  await until("all that can be read", async () => (await texts(w.page, "article.assistant strong")).join() === "b1,b2" && w.page.$("article.assistant li") && w.page.$("article.assistant .heading"));
  assert((await w.page.textContent("article.assistant")).includes("_a*_a*_a*"), "and the rest as it is");
  assert(hung > 1, "it hung");
  await w.close();
});

// ---- what has not begun ----
scenario("tell a call that waits for its turn from one that runs", async (page) => {
  const w = await waiting("One after the other", { argv: ["printf", "first"] }, { argv: ["echo", "second"] });
  await page.route("**/timeline?*", async (r) => {
    const answer = await r.fetch();
    const t = await answer.json();
    await r.fulfill({ response: answer, json: { ...t, rows: t.rows.map((row, i) => (i === 3 && row.state === "open" ? { ...row, state: "queued" } : row)) } });
  });
  await shown(w.id);
  await until("the second is queued", async () => (await states(page)) === "waiting,queued");
  await holds(async () => {
    equal((await texts(page, "#transcript .status-word")).join(), "Needs you,Queued");
    equal((await page.$$("#transcript [data-status=queued] .took")).length, 0, "no clock");
    equal((await page.$$(".time-row.s-queued")).length, 1, "in the timeline");
  });
  await page.unrouteAll({ behavior: "wait" });
  await w.over();
  await until("it had its turn", async () => (await states(page)) === "denied,done");
});

const states = async (page) => (await page.$$eval("#transcript [data-status]", (all) => all.map((e) => e.dataset.status))).join();
scenario("see that calls which run side by side all run, and since when, also after a reload", async (page) => {
  const id = await server.conversation("Side by side", []);
  model.play(async (_, r) => { for (const n of ["s1", "s2"]) r.call("mcp__slow__wait", { n }, n); r.call("execute_command", { argv: ["echo", "after"] }, "s3"); r.end(); });
  model.says("All over.");
  const done = server.api("POST", "/api/chatbot", { sessionId: id, message: "wait", stream: false });
  try { await sideBySide(page, id); } finally { writeFileSync(ending, ""); }
  await done;
  await until("over", async () => (await states(page)) === "done,done,done");
});
async function sideBySide(page, id) {
  await shown(id);
  await until("both run, and the last one waits for them", async () => (await states(page)) === "running,running,queued");
  await holds(async () => equal((await page.$$(".time-row.s-running")).length, 2, "in the timeline"));
  const at = Date.parse((await server.api("GET", `/api/chat-sessions/${id}/timeline`)).rows.find((r) => r.id === "s1").at) || Date.now();
  await until("some time has passed", () => Date.now() - at > 1500);
  await page.reload();
  await until("they still run", async () => (await states(page)) === "running,running,queued");
  await holds(async () => assert(/^[1-9]/.test(await page.textContent("[data-call=s1] .took")), "since they began, not since the reload"));
}

// ---- where I am ----
scenario("see the timeline follow when I scroll", async (page) => {
  const id = await server.conversation("Scrolled", Array.from({ length: 60 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `message ${i}\n\n${"words ".repeat(80)}` })));
  await shown(id);
  const selected = () => page.$eval(".time-row[aria-selected=true]", (e) => Number(e.dataset.index)).catch(() => -1);
  await until("the end is selected", async () => (await selected()) > 50);
  await page.evaluate(() => { document.getElementById("transcript").scrollTop -= 3000; });
  const first = () => page.evaluate(() => { const t = document.getElementById("transcript").getBoundingClientRect(); return Number([...document.querySelectorAll("#transcript article")].find((a) => a.getBoundingClientRect().top >= t.top - 2)?.dataset.seq) - 1; });
  await until("the first on the screen", async () => { const n = await first(); return n < 50 && (await selected()) === n; });
});
scenario("see in the timeline and on the tape where e has taken me, among calls that differ at their end only", async (page) => {
  const n = 140;
  const id = await server.conversation("Many of a kind", [{ role: "user", content: "go" }, asks("", ...Array.from({ length: n }, (_, i) => call(`m${i}`, "read_file", { path: `src/modules/part_${i}.ts` }))), ...Array.from({ length: n }, (_, i) => gives(`m${i}`, "ok", i === 132 ? { isError: true } : {}))]);
  await shown(id);
  await until("how many there are", async () => (await page.textContent(".timeline-head").catch(() => "")).includes("140 calls, 1 reply"));
  // The timeline is where the transcript is, which depends on what was loaded first.
  await until("what differs", async () => (await texts(page, ".time-hint")).some((t) => /^… \d+\.ts$/.test(t)));
  await page.$eval(".timeline-rows", (e) => { e.scrollTop = 0; });
  await holds(async () => assert((await texts(page, ".time-hint")).some((t) => t.includes("read_file") && t.includes("src/modules/part_0.ts")), "the first has all of it"));
  await blur(page);
  await until("one failed", () => page.$("[data-act=failures]"));
  await page.keyboard.press("e");
  await until("the row", async () => (await page.$eval(".time-row[aria-selected=true]", (e) => e.dataset.time).catch(() => "")) === "m132");
  await holds(async () => assert((await page.getAttribute("canvas.tape", "aria-valuetext")).startsWith("Call 133 of 140, failed"), await page.getAttribute("canvas.tape", "aria-valuetext")));
});

// ---- what is wrong, and where ----
scenario("open a large output at its error, also before its lines have arrived", async (page) => {
  const { id } = await artifact("Fails at its end", `${Array.from({ length: 6000 }, (_, i) => (i === 4000 ? "src/heap.c:41: error: out of heap" : `compiling file ${i}`)).join("\n")}\n`, { isError: true, exitCode: 1 });
  const lines = await hold(page, /\/(grep|read)\?/);
  await shown(id);
  await page.waitForSelector("[data-call=big] .wrong .bars i");
  await page.focus("[data-call=big]");
  await page.keyboard.press("o");
  await lines.go();
  await until("at the line", () => page.evaluate(() => location.hash.endsWith("/L4001")));
});
scenario("read at home what a run is doing now", async (page) => {
  await page.route("**/api/home?*", async (r) => {
    const answer = await r.fetch();
    const home = await answer.json();
    await r.fulfill({ response: answer, json: { ...home, running: [{ id: "conv_x", title: "Busy", state: "running", calls: 1, updatedAt: new Date().toISOString(), doing: { k: "call", name: "execute_command", since: Date.now() - 36_000 } }] } });
  });
  await to("/usage");
  await page.waitForSelector("#stats");
  await to("/");
  await until("the tool and its time", async () => /execute_command for \d+ s/.test(await page.textContent(".home-rows").catch(() => "")));
  await page.unrouteAll({ behavior: "wait" });
});
scenario("know an output by its command and how it ended, count its errors, and search for letters as they are", async (page) => {
  const { path } = await artifact("Many errors", `${"fine\n".repeat(4000)}error: foo(bar\n${"error: again\n".repeat(30)}`, { isError: true, exitCode: 2 });
  await to(path);
  await until("its command", async () => (await page.textContent(".output h2 bdi").catch(() => "")) === "make all");
  await until("how it ended", async () => (await page.textContent(".output .status")) === "Failed, exit 2");
  await until("in the tab", async () => (await page.title()) === "make all · Steno");
  await until("how many errors", async () => (await page.textContent("[data-act=errors]")) === "Errors 31");
  await page.fill("#find", "foo(bar");
  await page.press("#find", "Enter");
  await until("why not, and what to do", async () => /switch off \.\*/.test(await page.textContent(".hits")));
  await page.uncheck("[data-act=regex]");
  await until("found", async () => (await page.textContent(".hits")) === "1 of 1");
  await holds(async () => { equal(await page.textContent(".line-row.here mark"), "foo(bar"); equal(await page.textContent(".line-row.here .no"), "4,001"); });
});
scenario("use the timeline, the settings, an output and the figures on a phone without a word cut off", async () => {
  const { id, path } = await artifact("On a phone", "a line\n".repeat(3000), { duration: 12_345 });
  const w = await openWindow(server, { path: `${talk(id)}/timeline`, width: 390, height: 844, hasTouch: true });
  await w.page.waitForSelector(".time-row.k-call");
  await holds(async () => {
    const [row, name, track] = await w.page.$eval(".time-row.k-call", (e) => [e, e.querySelector(".time-name"), e.querySelector(".time-track")].map((x) => { const r = x.getBoundingClientRect(); return { top: r.top, bottom: r.bottom, width: r.width, height: r.height }; }));
    equal(row.height, 40);
    assert(track.top >= name.bottom - 1 && track.width > 340, "the bar has a line of its own");
  });
  await to("/settings", w.page);
  await w.page.waitForSelector("#settings [data-act=leave]");
  for (const b of ["copy-address", "leave"]) { const r = await (await w.page.$(`[data-act=${b}]`)).boundingBox(); assert(r.x + r.width <= 390, `${b} ends at ${r.x + r.width}`); }
  await to(path, w.page);
  await w.page.waitForSelector(".line-row");
  await holds(async () => { const r = await (await w.page.$(".tools")).boundingBox(); assert(r.height < 120, `the buttons take ${r.height}`); });
  await to("/usage", w.page);
  await w.page.waitForSelector("#stats .used td");
  await holds(async () => { for (const t of await w.page.$$eval("#stats .table-wrap", (all) => all.map((e) => e.scrollWidth - e.clientWidth))) equal(t, 0, "cut off"); });
  await w.close();
});

scenario("know how many conversations run and have failed before I press the button", async (page) => {
  for (const n of [1, 2]) await server.conversation(`Failed ${n}`, [asks("", call("f", "t")), gives("f", "no", { isError: true })]);
  const w = await waiting("Counted", { argv: ["printf", "x"] });
  await to("/");
  const at = async (only) => Number(await page.$eval(`[data-only=${only}] b`, (e) => e.textContent).catch(() => 0));
  const listed = async (state) => (await server.api("GET", `/api/chat-sessions?is=${state}&limit=60`)).items.length;
  await until("failed", async () => (await listed("error")) > 1 && (await at("error")) === await listed("error"));
  await holds(async () => {
    equal(await at("waiting"), 1, "waiting");
    equal(await at("running") || (await listed("running")), 0, "what waits does not run");
  });
  await page.click("[data-only=error]");
  await server.conversation("Failed 3", [asks("", call("f", "t")), gives("f", "no", { isError: true })]);
  await until("one more, in a narrowed list as well", async () => (await listed("error")) > 2 && (await at("error")) === await listed("error"));
  await page.click("[data-only=all]");
  await w.over();
});
scenario("read a result in Anthropic's format as text, a number in another's as it is written, and count only what failed", async (page) => {
  const { id } = await server.api("POST", "/api/chat-sessions", { title: "Of others" });
  const put = (format, text) => server.api("POST", `/api/chat-sessions/${id}/messages?format=${format}`, text);
  await put("anthropic", [{ role: "user", content: "go" }, { role: "assistant", content: ["n1", "n2"].map((x) => ({ type: "tool_use", id: x, name: "look", input: {} })) },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "n1", is_error: true, content: [{ type: "text", text: "error: no such file" }] }, { type: "tool_result", tool_use_id: "n2", content: "fine" }] }]);
  await put("uimessage", '{"id":"u9","role":"assistant","parts":[{"type":"tool-count","toolCallId":"n3","state":"output-available","input":{},"output":{"n":12345678901234567890,"m":1e400,"k":1.50}}]}');
  await shown(id);
  await until("one failed", async () => (await page.textContent("[data-act=failures]").catch(() => "")).startsWith("1 failed"));
  await holds(async () => equal((await page.$$("#transcript .tool-error, .time-row.s-error")).length, 2, "in the transcript and in the timeline"));
  await holds(async () => equal((await texts(page, "[data-call=n1] .wrong-row")).join(), "1error: no such file"));
  await page.click("[data-call=n3] .tool-head");
  await until("as it is written", async () => { const t = await page.textContent("[data-call=n3] .tool-body"); return ["12345678901234567890", "1e400", "1.50"].every((n) => t.includes(n)); });
});

// ---- small things ----
scenario("read the whole time of an old message in the timeline", async (page) => {
  const { id } = await server.api("POST", "/api/chat-sessions", { title: "Of old" });
  await server.append(id, [{ role: "user", content: "long ago", createdAt: "2020-01-02T03:04:05Z" }]);
  await page.route("**/timeline?*", async (r) => { const answer = await r.fetch(), t = await answer.json(); await r.fulfill({ response: answer, json: { ...t, rows: t.rows.map((x) => ({ ...x, at: Date.parse("2020-01-02T03:04:05") })) } }); });
  await shown(id);
  const row = await page.waitForSelector(".time-row .time-took");
  await holds(async () => assert(await row.evaluate((e) => e.scrollWidth <= e.clientWidth && e.getBoundingClientRect().left >= e.previousElementSibling.getBoundingClientRect().left), "nothing is cut off"));
  equal(await row.textContent(), "03:04:05");
  equal(await row.getAttribute("title"), "2 Jan 2020, 03:04:05");
  await page.unrouteAll({ behavior: "wait" });
});
scenario("press the buttons at the top of an output and of a search on a phone, each wide enough for its text", async () => {
  const { path } = await artifact("Small screen", Array.from({ length: 3000 }, (_, i) => (i % 9 ? "a line" : "error: no")).join("\n"));
  const waits = await waiting("Small screen, waiting", { argv: ["printf", "x"] });
  const w = await openWindow(server, { path, width: 390, height: 844, hasTouch: true });
  const squeezed = () => w.page.$$eval(".acts button, .tray-button", (all) => all.filter((e) => e.offsetWidth && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent));
  await until("its errors", async () => (await w.page.textContent("[data-act=errors]").catch(() => "")).includes("334"));
  equal((await squeezed()).join(), "");
  await to("/search/error", w.page);
  await w.page.waitForSelector(".tray-button b");
  await holds(async () => equal((await squeezed()).join(), ""));
  await w.close();
  await waits.over();
});
scenario("be told that a filter is unknown, and enter the list at the open conversation", async (page) => {
  const id = await server.conversation("Somewhere in the list", [{ role: "user", content: "hello" }]);
  await server.conversation("Above it", [{ role: "user", content: "hello" }]);
  await to("/");
  await page.reload();
  await shown(id);
  await until("it is in the list", () => page.$(`[data-conversation="${id}"] a[aria-current]`));
  await holds(async () => equal((await page.$$eval(".sidebar li > a[tabindex='0']", (all) => all.map((e) => e.closest("li").dataset.conversation))).join(), id));
  await page.fill("#filter", "project:other");
  await until("what is wrong with it", async () => /Nothing has project: in its title. The filters are tool: /.test(await page.textContent(".list")));
  await page.fill("#filter", "");
  await until("all again", async () => (await texts(page, ".list li")).length > 3);
});
scenario("read todos of arguments as a list, and many marks over a letter within their message", async (page) => {
  const id = await server.conversation("Small things", [{ role: "user", content: `z${"\u0301".repeat(300)}` }, asks("", call("todo", "todo_write", { todos: [{ content: "dig", status: "completed" }, { content: "fill", status: "pending" }] })), gives("todo", "ok")]);
  await shown(id);
  await page.click("[data-call=todo] .tool-head");
  await until("a list", async () => (await texts(page, "[data-call=todo] .todos li")).join() === "dig,fill");
  equal(await page.$eval("article.user .prose", (e) => getComputedStyle(e).overflow), "clip");
});
scenario("learn that only both ends of a large output are searched", async (page) => {
  await page.route("**/api/search?*", (r) => r.fulfill({ json: { items: [], missing: 0, partial: 2 } }));
  await to("/search/middle");
  await until("the note", async () => (await page.textContent(".search-view").catch(() => "")).includes("Only the first and last 64 MiB of a large output are searched."));
  await page.unrouteAll({ behavior: "wait" });
});

await runTests();
