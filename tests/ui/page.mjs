// A person at work with the page, in a real Chromium.
import { PATIENCE, adopt, assert, equal, holds, Model, note, openWindow, runTests, Server, sleep, test, toasted, until, Wire } from "./lib.mjs";

const model = await new Model().start();
const server = new Server("work", model);
server.config = { permissions: [{ action: "allow", tool: "execute_command", argvPrefix: ["echo"] }, { action: "allow", tool: "execute_command", argvPrefix: ["sh", "slow.sh"] }] };
let started = false;
const scenario = (name, f) => test(name, async () => {
  if (!started) { started = true; await server.start(); }
  await server.atRest();
  model.plays.length = 0;
  await f();
});

const talkPath = (id) => `/c/${encodeURIComponent(id)}`;
const call = (id, name, args) => ({ id, type: "function", function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) } });
const asks = (content, ...calls) => ({ role: "assistant", content, tool_calls: calls });
const gives = (id, content, more = {}) => ({ role: "tool", tool_call_id: id, content, ...more });

// One conversation with a tool block of every kind.
async function everything() {
  const big = Array.from({ length: 4000 }, (_, i) => (i === 2500 ? "src/a.c:12: error: no such thing" : `line ${i + 1} of a long output`)).join("\n") + "\n";
  const id = await server.conversation("A bit of everything", [
    { role: "user", content: "Please **look** at `a.c`.\n\n```c\nint main(void) { return 0; }\n```" },
    asks("I look.", call("c1", "read_file", { path: "a.c", range: { from: 1, to: 20 } })),
    gives("c1", JSON.stringify({ lines: 20, text: "int main", nested: { deep: [1, 2, { x: null }] } }), { duration: 12, serverName: "files", steps: ["opened", { text: "read", progress: 1, total: 2 }] }),
    asks("And build.", call("c2", "build", { target: "all" }), call("c3", "lint", { files: ["a.c"] })),
    gives("c2", big, { duration: 4321, isError: true, exitCode: 2 }),
    gives("c3", "\u001b[31mred\u001b[0m and \u001b[1;32mbold green\u001b[0m", { duration: 80 }),
    asks("A change.", call("c4", "edit", { file_path: "a.c", old_string: "return 0;\n", new_string: "return 1;\n" })),
    gives("c4", "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n int main(void) {\n-return 0;\n+return 1;\n", { duration: 3 }),
    asks("A picture.", call("c5", "screenshot", {})),
    gives("c5", [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8DAwMDAxMDAwMDAAAANHQEDasKb6QAAAABJRU5ErkJggg==" } }]),
    { role: "assistant", content: "So far", partType: "error", error: { code: "LLM_SERVER", message: "500 from the endpoint", retryable: true } },
    { role: "assistant", content: "All done: one error in a.c, line 12." },
  ]);
  return id;
}
let whole;
const wholeId = () => (whole ??= everything());

const texts = (w, selector) => w.page.$$eval(selector, (all) => all.map((e) => e.textContent));
const statuses = (w) => w.page.$$eval("[data-status]", (all) => all.map((e) => e.dataset.status));
async function open(id, how = {}) {
  const w = await openWindow(server, { path: talkPath(id), ...how });
  await w.page.waitForSelector("#transcript article");
  return w;
}
const clean = (w) => { equal(w.complaints.join("|"), "", "complaints"); equal(w.foreign.length, 0, "foreign requests"); equal(w.dialogs.length, 0, "dialogs"); };
const inside = async (w, selector) => w.page.evaluate((s) => { const r = document.querySelector(s).getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight + 1; }, selector);

// ---- getting in ----
scenario("open the page from its address, with a strict policy and nothing foreign", async () => {
  const answer = await fetch(server.origin + "/");
  const policy = answer.headers.get("content-security-policy");
  for (const part of ["default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"]) assert(policy.includes(part), `${part} in ${policy}`);
  assert(!policy.includes("unsafe"), policy);
  const w = await openWindow(server);
  await w.page.waitForSelector("#connection[data-state=live]");
  clean(w);
  await w.close();
});
scenario("wait for the page's files once: they are named by their content, compressed and kept for ever", async () => {
  const html = await (await fetch(server.origin + "/")).text();
  const names = [...html.matchAll(/\/assets\/[\w.-]+/g)].map((m) => m[0]);
  assert(names.length >= 2, html);
  // The workers are named in the script.
  for (const n of [...names]) if (n.endsWith(".js")) names.push(...[...(await (await fetch(server.origin + n)).text()).matchAll(/\/assets\/(?:worker|lexer)-[\w-]+\.js/g)].map((m) => m[0]));
  equal(names.length, 4, names.join());
  let size = 0;
  for (const n of names) {
    const a = await fetch(server.origin + n, { headers: { "Accept-Encoding": "gzip" } });
    equal(a.headers.get("content-encoding"), "gzip", n);
    assert(a.headers.get("cache-control").includes("immutable"), n);
    size += Number(a.headers.get("content-length"));
    const again = await fetch(server.origin + n, { headers: { "If-None-Match": a.headers.get("etag") } });
    equal(again.status, 304, n);
  }
  note(`JS and CSS: ${size} bytes compressed`);
  assert(size > 1000 && size <= 90_000, `${size} bytes`);
  equal((await fetch(server.origin + "/assets/nothing.js")).status, 404);
});
scenario("log in with a token that is not kept in any storage", async () => {
  const w = await openWindow(server);
  await w.page.goto("about:blank");
  await w.page.goto(`${server.origin}/#/usage`);
  await w.page.fill("#token", server.address());
  await w.page.press("#token", "Enter");
  await w.page.waitForSelector("#stats .card");
  const kept = await w.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert(!kept.includes(server.token.slice(0, 12)), kept);
  await w.page.reload();
  await w.page.waitForSelector("#stats .card");
  await w.close();
});
scenario("be told that a token is wrong, and what to do", async () => {
  const w = await openWindow(server);
  await w.page.goto("about:blank");
  await w.page.goto(`${server.origin}/#token=sk-ac-wrong&/`);
  await w.page.getByText("This token is not accepted").waitFor();
  await w.close();
});

// ---- conversations ----
scenario("see my conversations with activity and size, newest first", async () => {
  await server.conversation("Older one", [{ role: "user", content: "x" }]);
  await server.conversation("Newer one", [{ role: "user", content: "y" }]);
  const w = await openWindow(server);
  const titles = await until("both are listed", async () => { const t = await texts(w, ".entry-title"); return t.includes("Newer one") && t; });
  assert(titles.indexOf("Newer one") < titles.indexOf("Older one"), titles.join());
  await holds(async () => { const facts = await w.page.textContent(".list li .entry-facts"); assert(/1 message.*(now|\d+ (s|min))$/.test(facts), facts); });
  await w.close();
});
scenario("see a conversation of another program appear by itself", async () => {
  const w = await openWindow(server);
  await w.page.waitForSelector(".list");
  await server.conversation("From elsewhere", [{ role: "user", content: "z" }]);
  await w.page.getByText("From elsewhere").waitFor();
  await w.close();
});
scenario("narrow the list by a filter that the server applies", async () => {
  const id = await server.conversation("Zebra crossing", [{ role: "user", content: "stripes" }]);
  const w = await openWindow(server);
  await w.page.waitForSelector(".list li");
  await w.page.fill("#filter", "Zebra");
  await until("only one is left", async () => (await w.page.$$(".list li")).length === 1);
  assert(await w.page.$(`[data-conversation="${id}"]`), "the right one");
  await w.close();
});
scenario("rename a conversation in its place", async () => {
  const id = await server.conversation("Old name", [{ role: "user", content: "x" }]);
  const w = await openWindow(server);
  await w.page.hover(`[data-conversation="${id}"]`);
  await w.page.click(`[data-conversation="${id}"] [data-act=rename]`);
  await w.page.fill(".rename", "New name");
  await w.page.press(".rename", "Enter");
  await w.page.getByText("New name").first().waitFor();
  await until("it is stored", async () => (await server.api("GET", `/api/chat-sessions/${id}`)).title === "New name");
  await w.close();
});
scenario("delete a conversation, and bring it back whole", async () => {
  const id = await server.conversation("To be deleted", [{ role: "user", content: "keep me" }]);
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("article");
  await w.page.hover(`[data-conversation="${id}"]`);
  await w.page.click(`[data-conversation="${id}"] [data-act=delete]`);
  await until("it left the list", async () => !(await w.page.$(`[data-conversation="${id}"]`)));
  await w.page.click("[data-act=undo]");
  await w.page.waitForSelector(`[data-conversation="${id}"]`);
  await w.page.locator("article").getByText("keep me").waitFor();
  await w.close();
});

// ---- the transcript ----
scenario("see name, server, status, duration and bytes of every kind of call", async () => {
  const w = await open(await wholeId());
  await holds(async () => {
    equal((await statuses(w)).join(), "done,error,done,done,done");
    const heads = await texts(w, ".tool-head");
    assert(/Done.*files\/read_file.*12 ms.*B/.test(heads[0]), heads[0]);
    assert(/Failed.*build.*exit 2.*4\.3 s.*KB.*kept out/.test(heads[1]), heads[1]);
    assert(await w.page.getByText("LLM_SERVER").isVisible(), "the failed model call stands out");
  });
  await w.page.click("[data-call=c1] .tool-head");
  await w.page.evaluate(() => { document.getElementById("transcript").scrollTop = 0; document.activeElement.blur(); });
  clean(w);
  await w.close();
});
scenario("open arguments and results from one line to a tree", async () => {
  const w = await open(await wholeId());
  assert(!(await w.page.$("[data-call=c1] .tool-body")), "closed at first");
  await w.page.click("[data-call=c1] .tool-head");
  await w.page.waitForSelector("[data-call=c1] .tree");
  await holds(async () => {
    const tree = await w.page.textContent("[data-call=c1] .tool-body");
    assert(/range.*nested/s.test(tree), tree);
    assert(/opened.*read/s.test(tree), "steps");
  });
  await w.page.click("[data-call=c1] .tool-head");
  await until("closed again", async () => !(await w.page.$("[data-call=c1] .tool-body")));
  await w.close();
});
scenario("read a JSON result unchanged, byte for byte", async () => {
  const odd = '{"n":1.50,"big":12345678901234567890,"n":2}';
  const id = await server.conversation("Exact", [asks("", call("x1", "t", "{}")), gives("x1", odd)]);
  const w = await open(id);
  await w.page.click("[data-call=x1] .tool-head");
  const result = w.page.locator("[data-call=x1] .value").last();
  await result.hover();
  await result.locator(".switch").click();
  await holds(async () => equal(await result.locator("pre").textContent(), odd));
  await w.close();
});
scenario("see a change as a diff, from arguments and from results", async () => {
  const w = await open(await wholeId());
  await w.page.click("[data-call=c4] .tool-head");
  await w.page.waitForSelector("[data-call=c4] .diff");
  await holds(async () => {
    const plus = await texts(w, "[data-call=c4] .d-plus");
    equal(plus.length, 2, "one of the arguments, one of the result");
    assert(plus.every((p) => p.includes("return 1;")), plus.join());
  });
  await w.close();
});
scenario("see colours of a terminal as colours, and an image as an image", async () => {
  const w = await open(await wholeId());
  await w.page.click("[data-call=c3] .tool-head");
  equal(await w.page.textContent("[data-call=c3] .fg-red"), "red");
  await w.page.click("[data-call=c5] .tool-head");
  await w.page.waitForSelector("[data-call=c5] img.picture");
  assert(await w.page.$eval("[data-call=c5] img.picture", (i) => i.complete || true), "loaded");
  clean(w);
  await w.close();
});
scenario("see a tool's own display: todos and the diff of a file", async () => {
  const id = await server.conversation("Displays");
  await server.append(id, [
    { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "todo_write", input: {} }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "t1", toolName: "todo_write", input: {}, result: { llmContent: "ok", returnDisplay: { type: "todo_list", todos: [{ id: "1", content: "find it", status: "completed" }, { id: "2", content: "fix it", status: "in_progress" }] } } }] },
    { role: "assistant", content: [{ type: "tool_use", id: "t2", name: "write_file", input: { path: "b.c" } }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "t2", toolName: "write_file", input: {}, result: { llmContent: "ok", returnDisplay: { fileName: "b.c", fileDiff: "@@ -1 +1 @@\n-old\n+new\n" } } }] },
  ], "?format=toolmessage2");
  const w = await open(id);
  await w.page.click("[data-call=t1] .tool-head");
  await holds(async () => {
    equal((await texts(w, ".todos li")).join(), "find it,fix it");
    assert(await w.page.$(".todo-done"), "status");
  });
  await w.page.click("[data-call=t2] .tool-head");
  equal(await w.page.textContent("[data-call=t2] .d-plus"), "+new");
  await w.close();
});
scenario("see that a call was never answered, and why it is repaired", async () => {
  const id = await server.conversation("Broken off", [{ role: "user", content: "go" }, asks("I try.", call("open1", "deploy", {})), { role: "user", content: "and?" }]);
  const w = await open(id);
  await holds(async () => {
    equal((await statuses(w)).join(), "unrecorded");
    assert((await w.page.textContent("[data-call=open1] .tool-head")).includes("repaired"), "flag");
  });
  await w.page.click("[data-call=open1] .tool-head");
  await holds(async () => assert((await w.page.textContent("[data-call=open1] .note")).includes("no result was stored"), "reason"));
  await w.close();
});
scenario("see an orphan result and a damaged record at their places", async () => {
  const id = await server.conversation("Marks", [{ role: "user", content: "one" }]);
  await server.append(id, [gives("nobody", "an orphan")], "?record=true");
  await server.append(id, [{ role: "assistant", content: "TO BE DAMAGED" }]);
  await server.append(id, [{ role: "user", content: "three" }]);
  const { readFileSync, writeFileSync, readdirSync } = await import("node:fs");
  const folder = readdirSync(`${server.store}/projects/default/conversations`).find((f) => f === id);
  const log = `${server.store}/projects/default/conversations/${folder}/messages.jsonl`;
  writeFileSync(log, readFileSync(log, "utf8").replace("TO BE DAMAGED", "TO BE DaMAGED"));
  const w = await open(id);
  await w.page.waitForSelector(".mark-repaired");
  await holds(async () => {
    const said = (await texts(w, ".mark, .error-box")).join(" ");
    assert(/orphan/i.test(said), said);
    assert(/CORRUPT_RECORD.*record 3/.test(said), said);
    equal((await w.page.$$(".mark, .error-box")).length, 2, "each once");
  });
  await w.close();
});
scenario("open a link to a message at its place, also after a reload", async () => {
  const id = await wholeId();
  const w = await open(id);
  const href = await w.page.getAttribute("article:nth-of-type(3) .when", "href");
  await w.page.goto("about:blank");
  await w.page.goto(`${server.origin}/${href}`);
  await w.page.waitForSelector("article.marked");
  await w.page.reload();
  await w.page.waitForSelector("article.marked");
  await w.close();
});

// ---- outputs ----
const openFull = async (w, callId) => {
  if (!(await w.page.$(`[data-call=${callId}] [data-full]`))) await w.page.click(`[data-call=${callId}] .tool-head`);
  await w.page.click(`[data-call=${callId}] [data-full]`);
  await w.page.waitForSelector(".line-row[data-line='1'] .content");
  await until("its lines are there", async () => (await w.page.textContent(".line-row[data-line='1'] .content")) !== "…");
};
scenario("open a whole output as a window into its lines", async () => {
  const w = await open(await wholeId());
  await openFull(w, "c2");
  await holds(async () => {
    assert((await w.page.textContent(".output .figures")).includes("4,000 lines"), "figures");
    assert((await w.page.$$(".line-row")).length < 150, "a window only");
    equal(await w.page.textContent(".line-row[data-line='2'] .content"), "line 2 of a long output");
  });
  clean(w);
  await w.close();
});
scenario("jump to a line, to the end, to the start, and to an error", async () => {
  const w = await open(await wholeId());
  await openFull(w, "c2");
  await w.page.fill("#line", "3,210");
  await w.page.press("#line", "Enter");
  await until("line 3210", async () => (await w.page.textContent(".line-row.here .content")) === "line 3210 of a long output");
  await w.page.click("[data-act=end]");
  await w.page.waitForSelector(".line-row[data-line='4000']");
  await w.page.click("[data-act=start]");
  await w.page.waitForSelector(".line-row[data-line='1']");
  await w.page.click("[data-act=errors]");
  await until("the error", async () => (await w.page.textContent(".line-row.here .content")) === "src/a.c:12: error: no such thing");
  await w.close();
});
scenario("go to the next and the previous match of a search, with context", async () => {
  const w = await open(await wholeId());
  await openFull(w, "c2");
  await w.page.fill("#find", "line 39\\d\\d");
  await w.page.press("#find", "Enter");
  const here = () => w.page.textContent(".line-row.here .no").catch(() => "");
  await until("the first match", async () => (await here()) === "3,900");
  await until("how many", async () => (await w.page.textContent(".hits")).startsWith("1 of 100"));
  await w.page.click("[aria-label='Next match']");
  await until("the next", async () => (await here()) === "3,901");
  await w.page.click("[aria-label='Previous match']");
  await w.page.click("[aria-label='Previous match']");
  await until("round to the last", async () => (await here()) === "3,999");
  await w.page.selectOption(".matches select", "1");
  await until("context", async () => (await w.page.$$(".matches .near")).length > 0);
  await w.close();
});
scenario("be told why a pattern is bad", async () => {
  const w = await open(await wholeId());
  await openFull(w, "c2");
  await w.page.fill("#find", "(unclosed");
  await w.page.press("#find", "Enter");
  await w.page.waitForSelector(".hits .bad");
  await w.page.fill("#find", "line 7 of");
  await w.page.press("#find", "Enter");
  await until("and a good one works after", async () => (await w.page.textContent(".hits")).startsWith("1 of 1"));
  await w.close();
});
scenario("open a link to a line and a search, after a reload as well", async () => {
  const w = await open(await wholeId());
  await openFull(w, "c2");
  await w.page.click(".line-row[data-line='9'] .no");
  const address = await until("the line is in the address", () => w.page.evaluate(() => location.href.endsWith("/L9") && location.href));
  await w.page.goto("about:blank");
  await w.page.goto(address.replace("/L9", "/L2345/q/no%20such"));
  await until("the line", async () => (await w.page.textContent(".line-row.here .no")) !== "");
  await until("the search", async () => (await w.page.textContent(".hits")).startsWith("1 of 1"));
  await w.page.reload();
  await w.page.waitForSelector(".line-row.here");
  await w.close();
});
scenario("copy a whole output, and download its raw bytes", async () => {
  const w = await open(await wholeId(), { permissions: ["clipboard-read", "clipboard-write"], acceptDownloads: true });
  await openFull(w, "c2");
  await w.page.click("[data-act=copy]");
  await toasted(w.page, "The whole output is copied.");
  const text = await w.page.evaluate(() => navigator.clipboard.readText());
  equal(text.split("\n").length, 4001);
  const [d] = await Promise.all([w.page.waitForEvent("download"), w.page.click("[data-act=download]")]);
  const { statSync } = await import("node:fs");
  equal(statSync(await d.path()).size, Buffer.byteLength(text));
  await w.close();
});
scenario("follow a growing output, leave it, and jump to its end again", async () => {
  const id = await server.conversation("Growing", [{ role: "user", content: "go" }, asks("", call("grow1", "build", {}))]);
  const tool = server.cli("output", id, "--tool", "build", "--call", "grow1");
  const feed = (from, to) => tool.stdin.write(Array.from({ length: to - from }, (_, i) => `grown ${from + i}\n`).join(""));
  feed(1, 1001);
  const ref = await until("it has a file", async () => (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0]?.id);
  await until("it has content", async () => (await server.api("GET", `/api/chat-sessions/${id}/context/${ref}/tail?lines=1`)).content.includes("grown 1000"));
  const w = await openWindow(server, { path: `/c/${id}/o/${ref}` });
  const lastLine = () => w.page.$$eval(".line-row", (all) => all.map((e) => `${e.dataset.line} ${e.querySelector(".content").textContent}`).at(-1));
  await until("the end is shown", async () => (await lastLine()) === "1000 grown 1000");
  feed(1001, 1501);
  await until("what comes is shown", async () => (await lastLine()) === "1500 grown 1500");
  await w.page.click("[data-act=start]");
  await until("one can leave", async () => (await w.page.textContent(".line-row[data-line='1'] .content")) === "grown 1");
  feed(1501, 1601);
  await w.page.click("[data-act=live]");
  await until("and come back", async () => (await lastLine()) === "1600 grown 1600");
  tool.stdin.end();
  await until("it ends", async () => !(await w.page.$(".flag.live")));
  clean(w);
  await w.close();
});

// ---- chat ----
const say = async (w, words) => { await w.page.fill("#composer", words); await w.page.press("#composer", "Enter"); };
const lastText = async (w) => (await texts(w, "article .prose")).at(-1);
scenario("type, see the answer stream in, and find it stored", async () => {
  let go;
  const seen = new Promise((r) => { go = r; });
  model.play(async (_, r) => { await r.text("The answer is"); await seen; await r.text(" forty-two, said slowly."); r.end(); });
  const w = await openWindow(server);
  await w.page.waitForSelector("#composer");
  await say(w, "What is the answer?");
  await w.page.waitForSelector("article .flag.live");
  await until("part of it", async () => (await lastText(w)) === "The answer is");
  go();
  await until("all of it", async () => (await lastText(w)) === "The answer is forty-two, said slowly.");
  await until("at rest", async () => !(await w.page.$(".working")) && !(await w.page.$("article .flag.live")));
  await holds(async () => {
    equal((await texts(w, "article .prose")).length, 2);
    equal(await w.page.title(), "What is the answer? · Steno");
  });
  clean(w);
  await w.close();
});
scenario("stop a run, keep its text, and continue it", async () => {
  const id = await server.conversation("Stop and go", []);
  model.play(async (_, r) => { await r.text("Words that were said before"); while (!r.gone()) { await r.text("."); await sleep(50); } r.end(); });
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await say(w, "Talk on and on");
  await until("it talks", async () => (await texts(w, "article .prose")).some((t) => t.includes("said before..")));
  await w.page.click("[data-act=stop]");
  await w.page.waitForSelector("[data-act=continue]");
  await until("kept", async () => (await texts(w, "article .prose")).some((t) => t.includes("said before")));
  model.says("And this is the rest.");
  await w.page.click("[data-act=continue]");
  await until("it went on", async () => (await texts(w, "article .prose")).at(-1) === "And this is the rest.");
  await w.close();
});
scenario("allow a call by its exact command, and see it run", async () => {
  const id = await server.conversation("Permission", []);
  model.calls("execute_command", { argv: ["printf", "%s\n", "it ran; $(really)"] }, "I need to run this.");
  model.says("Thank you.");
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await say(w, "Run it");
  await w.page.waitForSelector("[data-status=waiting] .command");
  equal(await w.page.textContent("[data-status=waiting] .command >> nth=0"), "printf '%s\n' 'it ran; $(really)'", "exactly");
  await w.page.click("[data-act=approve]");
  await until("it ran", async () => (await statuses(w)).join() === "done");
  await until("and went on", async () => (await lastText(w)) === "Thank you.");
  await w.page.click(".tool-head");
  await until("its output", async () => (await w.page.textContent(".tool-body")).includes("it ran; $(really)"));
  await w.close();
});
scenario("allow only a call that has the focus and was seen to its end, with every argument shown", async () => {
  const id = await server.conversation("Hidden", []);
  const shell = `ls -l${"\n".repeat(60)}rm -rf hidden`;
  model.calls("execute_command", { shell, directory: "far/away", timeout_seconds: 5000 });
  model.says("Then not.");
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await say(w, "Look");
  await w.page.waitForSelector("[data-status=waiting] .command");
  await holds(async () => {
    const shown = await w.page.innerText("[data-status=waiting] .approval");
    for (const part of ["ls -l", "59 empty lines", "rm -rf hidden", "far/away", "5000"]) assert(shown.includes(part), `${part} in ${shown}`);
  });
  // The key does nothing while another element has the focus.
  await w.page.evaluate(() => document.activeElement?.blur());
  await w.page.keyboard.press("a");
  await w.page.keyboard.press("d");
  equal((await statuses(w)).join(), "waiting");
  await w.page.focus("[data-status=waiting] .approval");
  await w.page.keyboard.press("d");
  await until("denied", async () => (await statuses(w)).join() === "denied");
  // Nothing is sent while a run is at work.
  await until("at rest", async () => (await lastText(w)) === "Then not." && !(await w.page.$(".working")) && !(await w.page.$("[data-act=stop]")));
  // A call whose end is below the visible part cannot be allowed before it was scrolled to.
  model.calls("execute_command", { shell: Array.from({ length: 300 }, (_, i) => `echo line ${i}`).join("\n") + "; true" });
  model.says("Thank you.");
  await say(w, "Again");
  await w.page.waitForSelector("[data-status=waiting] [data-act=approve]");
  equal(await w.page.isDisabled("[data-status=waiting] [data-act=approve]"), true);
  await w.page.focus("[data-status=waiting] .approval");
  await w.page.keyboard.press("a");
  equal((await statuses(w)).at(-1), "waiting");
  // The card of the run gives way to that of the stored message, which has not been read yet.
  await until("it was seen to its end", async () => {
    await w.page.evaluate(() => document.querySelector("[data-status=waiting] .end").scrollIntoView());
    return !await w.page.isDisabled("[data-status=waiting] [data-act=approve]");
  });
  await w.page.focus("[data-status=waiting] .approval");
  await holds(async () => equal(await w.page.evaluate(() => !!document.activeElement.closest(".approval")), true));
  await until("done, once it has had the focus for a while", async () => { await w.page.keyboard.press("a"); return (await statuses(w)).at(-1) === "done"; });
  await w.close();
});
scenario("deny a call, and see that the model is told", async () => {
  const id = await server.conversation("Denial", []);
  model.calls("execute_command", { shell: "rm -rf everything" });
  model.says("Then not.");
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await say(w, "Clean up");
  await w.page.waitForSelector("[data-act=deny]");
  equal(await w.page.textContent("[data-status=waiting] .command >> nth=0"), "rm -rf everything");
  await w.page.click("[data-act=deny]");
  await until("denied", async () => (await statuses(w)).join() === "denied");
  await until("at rest", async () => (await lastText(w)) === "Then not.");
  await w.page.reload();
  await until("denied after a reload", async () => (await statuses(w)).join() === "denied");
  await w.close();
});
scenario("give in one window the approval that another asked for", async () => {
  const id = await server.conversation("Two windows", []);
  model.calls("execute_command", { argv: ["printf", "two"] });
  model.says("Done.");
  const a = await openWindow(server, { path: talkPath(id) });
  await a.page.waitForSelector("#composer");
  await say(a, "Go");
  await a.page.waitForSelector("[data-status=waiting]");
  const b = await openWindow(server, { path: talkPath(id) });
  await b.page.click("[data-act=approve]");
  for (const w of [a, b]) await until("done in both", async () => (await statuses(w)).join() === "done" && (await lastText(w)) === "Done.");
  await a.close();
  await b.close();
});
scenario("be told that a model cannot be reached, and try again", async () => {
  const id = await server.conversation("Trouble", []);
  model.fails(401, "no such key");
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await say(w, "Try");
  await w.page.waitForSelector(".error-box");
  model.says("Now it works.");
  await w.page.click("[data-act=continue]");
  await until("it works", async () => (await lastText(w)) === "Now it works.");
  await w.close();
});

// ---- tool blocks survive ----
// A run with a finished tool, a running one with steps to come, and a model that waits for us.
async function midway(title) {
  const id = await server.conversation(title, []);
  let go;
  const gate = new Promise((r) => { go = r; });
  model.calls("execute_command", { argv: ["echo", "first tool"] }, "First.");
  model.play(async (_, r) => { await r.text("Second part begins"); await Promise.race([gate, sleep(PATIENCE)]); await r.text(" and ends."); r.end(); });
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await say(w, "Go on");
  await until("midway", async () => (await statuses(w)).join() === "done" && (await lastText(w)) === "Second part begins");
  const finished = async (x = w) => {
    go();
    await until("the end", async () => (await lastText(x)) === "Second part begins and ends." && (await statuses(x)).join() === "done" && !(await x.page.$(".working")));
    await holds(async () => equal((await texts(x, "article .prose")).length, 3, "nothing twice, nothing lost"));
  };
  return { id, w, go, finished };
}
scenario("switch to another conversation and back in the middle of a run, and miss no call", async () => {
  const { id, w, finished } = await midway("Switching");
  const other = await wholeId();
  await w.page.click(`[data-conversation="${other}"] a`);
  await until("the other is shown", async () => (await statuses(w)).length === 5);
  await w.page.click(`[data-conversation="${id}"] a`);
  await until("midway again", async () => (await lastText(w)) === "Second part begins" && (await statuses(w)).join() === "done");
  await finished();
  clean(w);
  await w.close();
});
scenario("reload in the middle of a stream, and miss no call", async () => {
  const { w, finished } = await midway("Reloading");
  await w.page.reload();
  await until("midway again", async () => (await lastText(w)) === "Second part begins" && (await statuses(w)).join() === "done");
  await finished();
  await w.close();
});
scenario("see the same stream in a second window", async () => {
  const { id, w, finished } = await midway("Second window");
  const b = await openWindow(server, { path: talkPath(id) });
  await until("midway there too", async () => (await lastText(b)) === "Second part begins" && (await statuses(b)).join() === "done");
  await finished(b);
  await finished(w);
  await b.close();
  await w.close();
});
scenario("see that I am offline, and the stream go on by itself when I am back", async () => {
  const { w, go, finished } = await midway("Offline");
  await w.context.setOffline(true);
  await w.page.waitForSelector("#connection[data-state=lost]");
  equal((await statuses(w)).join(), "done", "what was there stays");
  go();
  await sleep(300);
  await w.context.setOffline(false);
  await w.page.waitForSelector("#connection[data-state=live]");
  await finished();
  await w.close();
});
scenario("lose the connection in the middle, and read no word twice", async () => {
  const id = await server.conversation("Cut", []);
  const wire = await new Wire(server).start();
  let go, end;
  const gate = new Promise((r) => { go = r; }), last = new Promise((r) => { end = r; });
  model.play(async (_, r) => { await r.text("One, two,"); await gate; await r.text(" three,"); await last; await r.text(" four."); r.end(); });
  const w = await openWindow(wire, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await say(w, "Count");
  await until("two", async () => (await lastText(w)) === "One, two,");
  wire.cut();
  await w.page.waitForSelector("#connection[data-state=lost]");
  go();
  await sleep(200);
  wire.mend();
  await until("three, while it still goes on", async () => (await lastText(w)) === "One, two, three,");
  end();
  await until("four", async () => (await lastText(w)) === "One, two, three, four.");
  await w.close();
});
scenario("send a message whose answer is lost on the way, and find it stored once", async () => {
  const id = await server.conversation("Lost answer", []);
  const wire = await new Wire(server).start();
  model.says("Heard once.");
  const w = await openWindow(wire, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  wire.swallow = /^POST \/api\/chatbot/;
  await say(w, "Only once");
  await until("answered", async () => (await lastText(w)) === "Heard once." && !(await w.page.$("article.sending")));
  await sleep(300);
  const { messages } = await server.api("GET", `/api/chat-sessions/${id}/messages`);
  equal(messages.map((m) => m.content).join("|"), "Only once|Heard once.");
  await w.close();
});
scenario("lose nothing when the server is killed in the middle of a stream", async () => {
  const { w } = await midway("Killed");
  await server.kill();
  await w.page.waitForSelector("#connection[data-state=lost]");
  equal((await lastText(w)), "Second part begins", "what was there stays");
  await server.start();
  await w.page.waitForSelector("#connection[data-state=live]");
  await w.page.waitForSelector("[data-act=continue]");
  await until("the words and the tool are kept, the end is said", async () => (await texts(w, "article .prose")).includes("Second part begins") && (await statuses(w)).join() === "done" && await w.page.$(".error-box"));
  model.plays.length = 0;
  model.says("Third part.");
  await w.page.click("[data-act=continue]");
  await until("it goes on", async () => (await lastText(w)) === "Third part.");
  await w.close();
});
scenario("type while the server is away, and have it sent once when it is back", async () => {
  const id = await server.conversation("Away", [{ role: "user", content: "before" }, { role: "assistant", content: "yes" }]);
  const w = await open(id);
  await w.context.setOffline(true);
  await w.page.waitForSelector("#connection[data-state=lost]");
  model.says("I heard you.");
  await say(w, "Are you there?");
  await w.page.waitForSelector("article.sending");
  await w.context.setOffline(false);
  await until("answered", async () => (await lastText(w)) === "I heard you.");
  await holds(async () => equal((await texts(w, "article.user .prose")).filter((t) => t === "Are you there?").length, 1));
  await w.close();
});
scenario("send while the server is down, leave, reload, and have it sent once after the restart", async () => {
  const id = await server.conversation("Down", []), other = await server.conversation("Elsewhere", []);
  model.says("Here again.");
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await until("there", () => w.page.$(".edge"));
  await server.kill();
  await say(w, "Is anybody there?");
  await w.page.waitForSelector("article.sending");
  equal((await texts(w, "article.sending .prose")).join(), "Is anybody there?", "shown at once");
  await w.page.evaluate((h) => { location.hash = h; }, talkPath(other));
  await w.page.waitForFunction(() => !document.querySelector("article.sending"));
  await w.page.evaluate((h) => { location.hash = h; }, talkPath(id));
  await w.page.waitForSelector("article.sending");
  await w.page.reload().catch(() => {}); // there is no page without a server
  await server.start();
  // A navigation of the browser may be ended by an earlier one that comes late.
  await until("the error page has gone", async () => { if (w.page.url() !== "about:blank") await w.page.goto("about:blank").catch(() => {}); return w.page.url() === "about:blank"; });
  await until("the page is there again", () => w.page.goto(server.address(talkPath(other))).then(() => true));
  const stored = async () => (await server.api("GET", `/api/chat-sessions/${id}/messages`)).messages;
  await until("sent though another conversation is open", async () => (await stored()).length === 2);
  await w.page.evaluate((h) => { location.hash = h; }, talkPath(id));
  await until("shown", async () => (await lastText(w)) === "Here again.");
  await w.page.reload();
  await until("shown again", async () => (await lastText(w)) === "Here again.");
  equal((await stored()).map((m) => m.content).join("|"), "Is anybody there?|Here again.");
  await holds(async () => equal(await w.page.evaluate(() => Object.keys(localStorage).filter((k) => k.startsWith("steno-outbox:")).length), 0));
  await w.close();
});
scenario("begin a conversation while the server is down, and find it made when it is back", async () => {
  const w = await openWindow(server, { path: "/" });
  await w.page.waitForSelector("#composer");
  model.says("Welcome.");
  await server.kill();
  await say(w, "First words");
  await w.page.waitForSelector("article.sending");
  await server.start();
  await until("answered", async () => (await lastText(w)) === "Welcome.");
  await holds(async () => equal((await texts(w, "article.user .prose")).filter((t) => t === "First words").length, 1));
  await w.close();
});
scenario("keep a message that is refused in the composer, with the reason", async () => {
  const id = await server.conversation("Refused", []);
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await w.page.route("**/api/chatbot", (r) => r.fulfill({ status: 413, contentType: "application/json", body: JSON.stringify({ error: { code: "too_large", message: "this message is too large" } }) }));
  await say(w, "Far too much");
  await until("the reason", async () => (await texts(w, ".composer .problem")).join() === "this message is too large");
  await holds(async () => {
    equal(await w.page.inputValue("#composer"), "Far too much");
    assert(!(await w.page.$("article.sending")), "it is not shown as being sent");
  });
  await w.page.unroute("**/api/chatbot");
  await w.page.reload();
  await w.page.waitForSelector("#composer");
  await holds(async () => {
    equal(await w.page.inputValue("#composer"), "Far too much");
    equal((await texts(w, ".composer .problem")).join(), "this message is too large");
  });
  model.says("Now it fits.");
  await w.page.press("#composer", "Enter");
  await until("answered", async () => (await lastText(w)) === "Now it fits.");
  equal((await server.api("GET", `/api/chat-sessions/${id}/messages`)).messages.length, 2);
  await w.close();
});
scenario("find my draft after a reload", async () => {
  const w = await open(await wholeId());
  await w.page.fill("#composer", "half a thought");
  await w.page.reload();
  await w.page.waitForSelector("#composer");
  await holds(async () => equal(await w.page.inputValue("#composer"), "half a thought"));
  await w.page.fill("#composer", "");
  await w.close();
});
scenario("see the state of a running tool, and follow its output", async () => {
  const { writeFileSync } = await import("node:fs");
  writeFileSync(`${server.folder}/slow.sh`, 'i=0; while [ ! -e enough ]; do i=$((i+1)); echo "tick $i"; sleep 0.02; done\n');
  const id = await server.conversation("Long tool", []);
  model.calls("execute_command", { argv: ["sh", "slow.sh"] });
  model.says("It is over.");
  const w = await openWindow(server, { path: talkPath(id) });
  await w.page.waitForSelector("#composer");
  await say(w, "Tick");
  await w.page.waitForSelector("[data-status=running]");
  await w.page.click(".tool-head");
  await w.page.click("[data-follow]");
  await w.page.waitForSelector(".flag.live");
  const last = () => w.page.$$eval(".line-row .content", (all) => all.at(-1)?.textContent ?? "");
  const before = await until("some ticks", async () => /tick \d+/.test(await last()) && (await last()));
  await until("more ticks", async () => (await last()) !== before);
  writeFileSync(`${server.folder}/enough`, "");
  await w.page.click("[data-act=back]");
  await w.page.waitForSelector("[data-status]");
  await until("it ends by itself", async () => (await statuses(w)).join() === "done" && (await lastText(w)) === "It is over.");
  await w.close();
});

// ---- keyboard ----
scenario("use the whole page with the keyboard alone", async () => {
  const id = await wholeId();
  const w = await openWindow(server);
  const key = (k) => w.page.keyboard.press(k);
  await w.page.waitForSelector(".list li");
  await key("/");
  await w.page.keyboard.type("bit of everything");
  await until("filtered", async () => (await w.page.$$(".list li")).length === 1);
  await key("Tab");
  await until("the entry has the focus", () => w.page.evaluate(() => !!document.activeElement.closest("li")));
  await key("Enter");
  await w.page.waitForSelector("#transcript article");
  equal(await w.page.evaluate(() => decodeURIComponent(location.hash).includes("/c/")), true);
  await until("all of it", async () => (await statuses(w)).length === 5);
  await w.page.evaluate(() => document.activeElement.blur());
  await key("g"); await key("g");
  await until("first row", () => w.page.evaluate(() => document.activeElement === document.querySelector("#transcript [data-row]")));
  await key("j"); await key("j");
  await holds(async () => equal(await w.page.evaluate(() => document.activeElement.dataset.call), "c1"));
  await key("Enter");
  await w.page.waitForSelector("[data-call=c1] .tool-body");
  await key("e");
  await until("the failed call", () => w.page.evaluate(() => document.activeElement.dataset.call === "c2"));
  await w.page.waitForSelector("[data-call=c2] [data-wrong]");
  await key("o");
  await w.page.waitForSelector(".line-row.here[data-line='2501']");
  await key("G");
  await w.page.waitForSelector(".line-row[data-line='4000']");
  await key("g"); await key("g");
  await w.page.waitForSelector(".line-row[data-line='1']");
  await key("/");
  await w.page.keyboard.type("line 100\\d");
  await key("Enter");
  await until("found", async () => (await w.page.textContent(".hits")).startsWith("1 of 10"));
  await key("Escape");
  await key("n");
  await until("next", async () => (await w.page.textContent(".hits")).startsWith("2 of 10"));
  await key("N");
  await until("previous", async () => (await w.page.textContent(".hits")).startsWith("1 of 10"));
  await key("e");
  await until("error", async () => (await w.page.textContent(".line-row.here .content")).includes("error"));
  await key("Escape");
  await w.page.waitForSelector("#transcript article");
  await key("?");
  await w.page.locator("dialog.help").waitFor();
  await key("Escape");
  await w.page.locator("dialog.help").waitFor({ state: "hidden" });
  await key("s");
  await w.page.waitForSelector("#stats");
  assert(id, "");
  clean(w);
  await w.close();
});
scenario("walk back with k and E, and go to the latest with G", async () => {
  const w = await open(await wholeId());
  await w.page.waitForSelector("[data-act=failures]");
  await w.page.keyboard.press("G");
  await w.page.keyboard.press("E");
  await until("the failed model call", () => w.page.evaluate(() => document.activeElement.hasAttribute("data-error")));
  await w.page.keyboard.press("E");
  await until("the failed tool", () => w.page.evaluate(() => document.activeElement.dataset.call === "c2"));
  await w.page.keyboard.press("k");
  await until("a row", () => w.page.evaluate(() => document.activeElement.matches("[data-row]") && document.activeElement.dataset.call !== "c2"));
  await w.close();
});

// ---- looks ----
scenario("reach everything at 360 pixels, with nothing cut off", async () => {
  const id = await wholeId();
  const w = await openWindow(server, { width: 360, height: 740, hasTouch: true });
  await w.page.waitForSelector(".home-head");
  assert(await w.page.evaluate(() => document.documentElement.scrollWidth) <= 360, "home");
  await w.page.click(".phone-bar a:has-text('List')");
  await w.page.waitForSelector(".list li");
  const wide = () => w.page.evaluate(() => document.documentElement.scrollWidth);
  assert(await wide() <= 360, "list");
  await w.page.click(`[data-conversation="${id}"] a`);
  await w.page.waitForSelector("#transcript article");
  assert(await wide() <= 360, "transcript");
  assert(await inside(w, "#composer"), "composer");
  const rowsWide = await w.page.$eval("#transcript", (e) => e.scrollWidth - e.clientWidth);
  equal(rowsWide, 0, "the transcript does not scroll sideways");
  await openFull(w, "c2");
  assert(await wide() <= 360, "output");
  await w.page.fill("#find", "error");
  await w.page.press("#find", "Enter");
  await w.page.waitForSelector(".matches");
  await until("its lines", async () => (await w.page.textContent(".line-row.here .content")).includes("error"));
  await w.page.click("[data-act=back]");
  await w.page.waitForSelector("#transcript article");
  await w.page.click(".bar a");
  await w.page.waitForSelector(".list li");
  await w.close();
});
scenario("use the page dark as the system is, or as I choose", async () => {
  const id = await wholeId();
  const w = await open(id, { dark: true });
  const background = () => w.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await holds(async () => equal(await background(), "rgb(19, 20, 23)"));
  await w.page.click("[data-act=theme]");
  await w.page.click("[data-act=theme]");
  await holds(async () => equal(await background(), "rgb(251, 250, 248)"));
  await w.page.reload();
  await w.page.waitForSelector("article");
  await holds(async () => equal(await background(), "rgb(251, 250, 248)", "kept"));
  await w.close();
});
scenario("know how much was kept out of contexts, how large the store is, and what was used", async () => {
  await wholeId();
  const w = await openWindow(server, { path: "/usage" });
  // They come with two answers, in any order.
  for (const word of ["Materializations", "Characters saved", "Store size", "By model", "By tool", "By day"])
    await until(word, async () => (await w.page.textContent("#stats")).includes(word));
  await holds(async () => { const figure = await w.page.textContent(".card dd"); assert(Number(figure.replace(/,/g, "")) >= 1, figure); });
  clean(w);
  await w.close();
});
scenario("be told that a conversation is not there, with a way back and nothing to type into", async () => {
  const w = await openWindow(server, { path: "/c/nowhere" });
  for (const view of ["", "/timeline"]) {
    await w.page.evaluate((v) => { location.hash = location.hash.replace(/&.*/, `&/c/nowhere${v}`); }, view);
    await w.page.getByText("There is no such conversation").waitFor();
    await holds(async () => equal(await w.page.title(), "Not found · Steno"));
    equal(await w.page.$$eval("main :is(textarea, canvas, [data-act=menu], #transcript)", (all) => all.length), 0, "nothing of a conversation");
  }
  await w.page.click("#missing a >> nth=0");
  await w.page.waitForSelector(".home-head");
  // A conversation that is deleted elsewhere while it is read.
  const id = await server.conversation("Soon gone", [{ role: "user", content: "x" }]);
  await w.page.evaluate((v) => { location.hash = location.hash.replace(/&.*/, `&/c/${v}`); }, id);
  await w.page.waitForSelector("#transcript article");
  await w.page.evaluate((v) => { location.hash = location.hash.replace(/&.*/, `&/c/${v}/o/ctx_nowhere`); }, id);
  await w.page.getByText("There is no such output").waitFor();
  equal(await w.page.$$eval("main :is(input, #lines)", (all) => all.length), 0, "nothing of an output");
  await w.page.click("#missing a >> nth=1");
  await w.page.waitForSelector("#transcript article");
  await server.api("DELETE", `/api/chat-sessions/${id}`);
  await w.page.getByText("There is no such conversation").waitFor();
  await w.page.click("#missing a >> nth=1");
  await w.page.waitForSelector(`[data-trash="${id}"]`);
  await w.close();
});
scenario("share nothing but the address with a second tab", async () => {
  const id = await wholeId();
  const w = await open(id);
  const other = await adopt(w.context, server);
  await other.page.goto(`${server.origin}/#/c/${id}`);
  await other.page.getByText("A token is needed").waitFor();
  await w.close();
});

await runTests();
