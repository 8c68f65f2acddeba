// What people come to the page for: what waits for me, what failed, where was that, what did it cost.
// One window serves most scenarios, so that they take as long as what they show.
import { adopt, assert, equal, holds, long as long_, Model, note, openWindow, runTests, Server, sleep, test, toasted, until } from "./lib.mjs";
import { readFileSync, statSync, writeFileSync } from "node:fs";

const model = await new Model().start();
const server = new Server("found", model);
server.config = { prices: { "mock-1": { input: 2, output: 10, cached: 0.5 } }, permissions: [{ action: "allow", tool: "execute_command", argvPrefix: ["echo"] }] };
let me;
const scenario = (name, f) => test(name, async () => {
  if (!me) { await server.start(); me = await openWindow(server, { path: "/", width: 1400, height: 900, permissions: ["clipboard-read", "clipboard-write"], acceptDownloads: true }); }
  await server.atRest();
  model.plays.length = 0;
  await f(me.page);
});
const E = encodeURIComponent;
const talk = (id) => `/c/${E(id)}`;
// Goes to another address in the same window, without loading the page again.
async function to(path, page = me.page) {
  await page.evaluate(([t, p]) => { location.hash = `#token=${t}&${p}`; }, [server.token, path]);
  await until("there", () => page.evaluate((p) => location.hash.endsWith(p), path));
}
const call = (id, name, args = {}) => ({ id, type: "function", function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) } });
const asks = (content, ...calls) => ({ role: "assistant", content, tool_calls: calls });
const gives = (id, content, more = {}) => ({ role: "tool", tool_call_id: id, content, ...more });
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));
const statuses = (page) => page.$$eval("#transcript [data-status]", (all) => all.map((e) => e.dataset.status));
const say = async (page, words) => { await page.fill("#composer", words); await page.press("#composer", "Enter"); };
const focused = (page, key) => page.evaluate((k) => document.activeElement?.dataset[k], key);
const onScreen = (page, selector) => page.evaluate((s) => { const e = document.querySelector(s); if (!e) return false; const r = e.getBoundingClientRect(); return r.top >= 0 && r.top < innerHeight - 20 && r.height > 0; }, selector);
const shown = async (page, id) => { await to(talk(id), page); await until("the transcript of this conversation", () => page.$(`.talk[data-id="${id}"] #transcript article`)); };
// Waits until a place in the window has not moved for a while: texts become Markdown, and pages arrive.
const still = async (place) => { for (let last = await place(), same = 0; same < 8;) { await sleep(60); const now = await place(); same = now !== null && now === last ? same + 1 : 0; last = now; } };
const artifact = async (title, text, more = {}) => {
  const id = await server.conversation(title, [{ role: "user", content: "go" }, asks("", call("big", "build")), gives("big", text, more)]);
  const ref = (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0]?.id;
  return { id, ref, path: `${talk(id)}/o/${ref}` };
};
const here = (page) => page.$eval(".line-row.here .no", (e) => Number(e.textContent.replace(/,/g, ""))).catch(() => 0);
const settled = (page) => until("the button works", () => page.$("[data-act=approve]:not(:disabled)"));
async function waiting(title, args = { argv: ["printf", "it ran"] }) {
  const id = await server.conversation(title, []);
  model.calls("execute_command", args, "May I?");
  model.says("Thank you.");
  const { runId } = await (async () => { void server.api("POST", "/api/chatbot", { sessionId: id, message: "run it", stream: false }).catch(() => {}); return until("it waits", async () => { const a = (await server.api("GET", "/api/approvals")).items.find((x) => x.conversation === id); return a && { runId: a.run }; }); })();
  return { id, runId };
}

// ---- what waits for me ----
scenario("learn, whatever I look at, that a call of another conversation waits, and allow it there", async (page) => {
  await to("/usage");
  await page.waitForSelector("#stats .card");
  const { id } = await waiting("Waits elsewhere");
  await until("the title says so", async () => (await page.title()).startsWith("(1) "));
  await until("the button", async () => (await page.textContent("[data-act=tray]")).includes("1"));
  await until("the list says so", async () => (await page.textContent(`[data-conversation="${id}"]`)).includes("waits for you"));
  await until("the tab", async () => (await page.getAttribute("link[rel=icon]", "href")).includes("circle"));
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForSelector("#tray [data-approval]");
  equal(await page.textContent("#tray .command"), "printf 'it ran'");
  await settled(page);
  await page.click("#tray [data-act=approve]");
  await until("it ran", async () => (await server.api("GET", `/api/chat-sessions/${id}/messages`)).messages.some((m) => m.toolCalls?.[0]?.result?.includes("it ran")));
  await until("nothing waits any more", async () => !(await page.title()).startsWith("(") && !(await page.$("#tray")));
});
scenario("see a call that waits as one that needs me, not as running or repaired, also after a reload", async (page) => {
  const { id } = await waiting("Needs me");
  await shown(page, id);
  await until("it needs me", async () => (await statuses(page)).join() === "waiting");
  for (const again of [false, true]) {
    if (again) { await page.reload(); await until("it needs me again", async () => (await statuses(page)).join() === "waiting" && await page.$(".tool .approval")); }
    await holds(async () => { const head = await page.textContent(".tool-head"); assert(head.includes("Needs you") && !/running|repaired/i.test(head), head); });
  }
  await page.click(".tool [data-act=deny]");
  await until("denied", async () => (await statuses(page)).join() === "denied");
});
scenario("answer while a second person answers: one answer counts, and the other window shows the result", async (page) => {
  const { id } = await waiting("Two people");
  const other = await openWindow(server, { path: "/", width: 1000, height: 700 });
  for (const p of [page, other.page]) {
    await until("asked", () => p.$("[data-act=tray]:not([hidden])"));
    await p.click("[data-act=tray]");
    await settled(p);
  }
  // Not page.click: one of the two may come too late, and would wait for a button that no longer exists.
  const press = (p, act) => p.evaluate((a) => document.querySelector(`#tray [data-act=${a}]`)?.click(), act);
  await Promise.all([press(page, "approve"), press(other.page, "deny")]);
  for (const p of [page, other.page]) await until("gone in both", async () => !(await p.$("#tray [data-act=approve]")));
  await until("one of them is told", async () => (await Promise.all([page, other.page].map((p) => p.evaluate(() => window.toasts.some((t) => /^execute_command: (Allowed|Denied) in another window, \d\d:\d\d:\d\d\.$/.test(t)))))).filter((x) => x).length === 1);
  await until("decided once", async () => (await server.api("GET", `/api/chat-sessions/${id}/messages`)).messages.at(-1).content === "Thank you.");
  // The tray of the one who was too late stays open and says so.
  await until("the tray is closed", async () => { await page.evaluate(() => document.querySelector("#tray [aria-label=Close]")?.click()); return !await page.$("#tray"); });
  await other.close();
});
scenario("never allow by a key what has no focus, what was not read to its end, or by holding the key down", async (page) => {
  const { id } = await waiting("Careful", { shell: Array.from({ length: 200 }, (_, i) => `echo ${i}`).join("\n"), timeout_seconds: 7 });
  await to("/");
  await page.click("[data-act=tray]");
  await page.waitForSelector("#tray [data-approval]");
  await page.focus("#tray [data-approval]");
  await page.keyboard.press("a");
  equal(await page.isDisabled("#tray [data-act=approve]"), true);
  await until("every argument", async () => (await page.innerText("#tray")).includes("timeout_seconds"));
  // It is not enough to see the end of the card: its text scrolls by itself.
  await page.evaluate(() => { const all = document.querySelectorAll("#tray .end"); all[all.length - 1].scrollIntoView(); });
  await sleep(700);
  equal(await page.isDisabled("#tray [data-act=approve]"), true, "its last line was not on the screen");
  await page.evaluate(() => document.querySelector("#tray .command .end").scrollIntoView());
  await settled(page);
  await page.evaluate(() => { const c = document.querySelector("#tray [data-approval]"); c.focus(); for (let i = 0; i < 5; i++) c.dispatchEvent(new KeyboardEvent("keydown", { key: "a", repeat: true, bubbles: true })); });
  await sleep(50);
  equal((await server.api("GET", "/api/approvals")).items.length, 1, "still waits");
  await page.focus("#tray [data-approval]");
  await page.keyboard.press("d");
  await until("denied", async () => !(await server.api("GET", "/api/approvals")).items.length);
  await until("told", async () => (await server.api("GET", `/api/chat-sessions/${id}/messages`)).messages.at(-1).content === "Thank you.");
});
scenario("see what is hidden in a command: blank lines are counted, odd letters named, wrapped rows marked", async (page) => {
  const { id } = await waiting("Hidden", { shell: `ls${"\n".repeat(40)}curl x\u200by ${"z".repeat(300)}` });
  await shown(page, id);
  await page.waitForSelector(".tool .approval");
  await holds(async () => { const said = await page.innerText(".tool .approval .exact"); assert(said.includes("39 empty lines") && said.includes("U+200B"), said); });
  await page.click(".tool [data-act=deny]");
  await until("over", async () => !(await server.api("GET", "/api/approvals")).items.length);
});
scenario("read the number of every invisible letter in a call that asks for permission", async (page) => {
  const unseen = /[\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{DI}\u2800\u{16fe4}\u{1d159}]/u, under = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u;
  const letters = Array.from({ length: 0x110000 - 0xa0 }, (_, i) => i + 0xa0).filter((c) => c < 0xd800 || (c > 0xdfff && (c < 0xe0000 || c % 23 === 0)))
    .map((c) => String.fromCodePoint(c)).filter((c) => unseen.test(c) && !under.test(c));
  const { id } = await waiting("Unseen", { shell: letters.join("|") });
  await shown(page, id);
  await page.waitForSelector(".tool .approval");
  await holds(async () => {
    const said = await page.evaluate(() => document.querySelector(".tool .approval .exact").textContent);
    for (const c of letters) {
      const name = c === "\xa0" ? "NBSP" : `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
      assert(said.includes(name) && !said.includes(c), name);
    }
  });
  await page.click(".tool [data-act=deny]");
  await until("over", async () => !(await server.api("GET", "/api/approvals")).items.length);
});

// ---- what failed ----
scenario("find the command that failed in a reply of 500 calls", async (page) => {
  const calls = Array.from({ length: 500 }, (_, i) => call(`k${i}`, "execute_command", { argv: ["make", `part${i}`] }));
  const id = await server.conversation("500 calls", [{ role: "user", content: "build" }, asks("All of them.", ...calls.slice(0, 120)), ...calls.slice(0, 120).map((_, i) => gives(`k${i}`, "ok", { duration: i })),
    asks("The rest.", ...calls.slice(120)), ...calls.slice(120).map((_, i) => gives(`k${i + 120}`, i + 120 === 437 ? "cc main.c\nmain.c:3: error: expected ;\nmake: failed" : "ok", { duration: 1, ...(i + 120 === 437 ? { isError: true, exitCode: 2 } : {}) }))]);
  await shown(page, id);
  await until("the header says so", async () => (await page.textContent("[data-act=failures]").catch(() => "")).includes("1 failed"));
  await page.click("[data-act=failures]");
  await until("it has the focus", async () => (await focused(page, "call")) === "k437");
  await until("its error is on the screen", () => onScreen(page, "[data-call=k437] .wrong-row.hit"));
  await until("what is wrong", async () => (await page.textContent("[data-call=k437] .wrong")).includes("expected ;"));
  assert((await page.$$("#transcript .tool")).length <= 210, "a window of the calls");
});
scenario("walk to all calls of a message, beyond the hundredth", async (page) => {
  const n = 140;
  const id = await server.conversation("140 calls", [{ role: "user", content: "x" }, asks("", ...Array.from({ length: n }, (_, i) => call(`w${i}`, "t"))), ...Array.from({ length: n }, (_, i) => gives(`w${i}`, `${i}`))]);
  await shown(page, id);
  await page.waitForSelector("[data-call=w0]");
  await page.click("[data-act=calls-after]");
  await page.waitForSelector("[data-call=w139]");
  await page.click("[data-act=calls-before]");
  await page.waitForSelector("[data-call=w0]");
});
let long;
const longId = () => (long ??= (async () => {
  const messages = Array.from({ length: 5000 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: i % 2 ? `message ${i} with **bold** and \`code\`\n\n- one\n- two` : `message ${i}` }));
  for (const at of [700, 4200]) messages.splice(at, 2, asks("", call(`f${at}`, "deploy", { to: "production" })), gives(`f${at}`, "Error: no route", { isError: true, duration: 400 }));
  return server.conversation("5,000 messages", messages);
})());
scenario("find two failures among 5,000 messages with e and E, from wherever I am", async (page) => {
  await shown(page, await longId());
  await until("2 failed", async () => (await page.textContent("[data-act=failures]").catch(() => "")).includes("2 failed"));
  await page.evaluate(() => document.activeElement.blur());
  await page.click("[data-act=failures]");
  await until("from the end, the first one", async () => (await focused(page, "call")) === "f700" && onScreen(page, "[data-call=f700]"));
  await page.keyboard.press("G");
  await until("the end again", () => page.evaluate(() => document.activeElement.closest("article")?.textContent.includes("message 4999")));
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("E");
  await until("the last one", async () => (await focused(page, "call")) === "f4200" && onScreen(page, "[data-call=f4200]"));
  await page.keyboard.press("E");
  await until("the one before", async () => (await focused(page, "call")) === "f700" && onScreen(page, "[data-call=f700]"));
  await until("which one it is", async () => (await page.textContent("[data-act=failures]")).includes("1 of 2"));
  await page.keyboard.press("e");
  await until("and on again", async () => (await focused(page, "call")) === "f4200");
  await page.keyboard.press("e");
  await toasted(page, "That was the last failure.");
});
scenario("stay where I jumped to when pages that were asked for before come late", async (page) => {
  // Every page that scrolling requests is held until the reader is somewhere else.
  const pages = /\/messages\?.*&(before|after)=\d+&limit=/;
  const seqs = () => page.$$eval("#transcript article[data-seq]", (all) => all.map((e) => Number(e.dataset.seq)));
  const scrollTo = (share) => page.$eval("#transcript", (e, s) => { e.scrollTop = s * e.scrollHeight; }, share);
  const jumps = [["e", "f700", 0], ["E", "f4200", 1]]; // the row, the script, and what was requested before
  await shown(page, await longId());
  for (const [key, call, end] of jumps) {
    await page.keyboard.press(end ? "G" : "g");
    if (!end) await page.keyboard.press("g");
    await until("the edge", async () => (await seqs()).includes(end ? 5000 : 1));
    await still(() => page.$eval("#transcript", (e) => e.scrollHeight));
    const held = [];
    let asked = 0;
    await page.route(pages, async (r) => { if (!asked++) await new Promise((go) => held.push(go)); await r.continue().catch(() => {}); });
    await scrollTo(end ? 0 : 1);
    await until("a page is asked for", () => held.length);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press(key);
    await until("the failure", async () => (await focused(page, "call")) === call && onScreen(page, `[data-call=${call}]`));
    held.forEach((go) => go());
    await page.unroute(pages);
    await still(() => page.$eval("#transcript", (e) => e.scrollTop));
    const now = await seqs();
    assert(now.every((seq, i) => !i || seq > now[i - 1]) && now.at(-1) - now[0] <= now.length + 2, `one stretch, in order: ${now}`);
    equal(await focused(page, "call"), call);
    assert(await onScreen(page, `[data-call=${call}]`), "still on the screen");
  }
});
scenario("open a failed call and read its error first, not the head of the log", async (page) => {
  const { id } = await artifact("Failed build", Array.from({ length: 6000 }, (_, i) => (i === 4000 ? "src/heap.c:41: error: out of heap" : `compiling file ${i}`)).join("\n"), { isError: true, exitCode: 1, duration: 5000 });
  await shown(page, id);
  await until("the lines", () => page.$("[data-call=big] .wrong-row.hit"));
  await holds(async () => {
    equal(await page.textContent("[data-call=big] .wrong-row.hit .no"), "4,001");
    assert((await page.$$("[data-call=big] .wrong-row")).length === 12, "three before and eight behind");
  });
  assert(!(await page.textContent("[data-call=big]")).includes("compiling file 1\n"), "the head is folded");
  await page.click("[data-call=big] [data-wrong]");
  await until("at the line", async () => (await here(page)) === 4001);
});
scenario("be told when a failed call has printed nothing", async (page) => {
  const id = await server.conversation("Silent", [{ role: "user", content: "go" }, asks("", call("mute", "execute_command", { argv: ["false"] })), gives("mute", "", { isError: true, exitCode: 1 })]);
  await shown(page, id);
  await until("the words", async () => (await page.textContent("[data-call=mute]")).includes("It printed nothing."));
  assert(!(await page.$("[data-call=mute] .wrong-row")), "no empty line stands for it");
});
scenario("see only conversations that failed, run or use a tool", async (page) => {
  await to("/");
  await page.click("[data-only=error]");
  await until("only failed ones", async () => { const all = await texts(page, ".list li"); return all.length > 0 && all.every((t) => t.includes("failed")); });
  await page.click("[data-only=all]");
  await page.fill("#filter", "tool:deploy");
  await until("only that one", async () => (await texts(page, ".list .entry-title")).join() === "5,000 messages");
  await page.fill("#filter", "");
  await until("all again", async () => (await texts(page, ".list li")).length > 3);
});

// ---- what did it print ----
let ticks;
const ticksOf = () => (ticks ??= artifact("Ticks", Array.from({ length: 20_000 }, (_, i) => `${i + 1} tick of the clock${i === 15_000 ? " needle" : ""}`).join("\n") + "\n"));
scenario("search from line 9,000 both ways, with every one of 20,000 matches counted", async (page) => {
  const { path } = await ticksOf();
  await to(`${path}/L9000`);
  await until("there", async () => (await here(page)) === 9000);
  await page.fill("#find", "tick");
  await page.press("#find", "Enter");
  await until("the match here", async () => (await page.textContent(".hits")) === "9,000 of 20,000");
  await holds(async () => equal(await here(page), 9000, "it stays"));
  await page.click("[aria-label='Previous match']");
  await until("the one before", async () => (await here(page)) === 8999 && (await page.textContent(".hits")) === "8,999 of 20,000");
  await page.click("[aria-label='Next match']");
  await page.click("[aria-label='Next match']");
  await until("the one behind", async () => (await here(page)) === 9001);
  await page.fill("#line", "20000");
  await page.press("#line", "Enter");
  await until("at the end", async () => (await here(page)) === 20_000);
  await page.focus("#lines");
  await page.keyboard.press("n");
  await until("round the end", async () => (await here(page)) === 1);
  await page.keyboard.press("N");
  await until("and back", async () => (await here(page)) === 20_000);
});
scenario("see the match in a line of five million letters, and what is around it", async (page) => {
  const { path } = await artifact("One line", `{"records":[${Array.from({ length: 250_000 }, (_, i) => `{"id":${i},"v":"x"}`).join(",")},{"id":"NEEDLE","v":12345678901234567890}],"rest":"${"y".repeat(300_000)}"}`);
  await to(path);
  await page.waitForSelector(".line-row .letters");
  await page.fill("#find", "NEEDLE");
  await page.press("#find", "Enter");
  await until("it is marked", async () => (await page.textContent(".line-row mark").catch(() => "")) === "NEEDLE");
  await until("and on the screen", () => onScreen(page, ".line-row mark"));
  await holds(async () => { const chips = await texts(page, ".letters"); assert(/[45],\d{3},\d{3} bytes before/.test(chips[0]) && /(29|30)\d,\d{3} bytes after/.test(chips[1]), chips.join()); });
  const text = () => page.textContent(".line-row .content");
  const before = await text();
  await page.click("[data-act=letters-after]");
  await until("one can go on", async () => (await text()) !== before && (await text()).includes("yyyy"));
});
scenario("come back to my place with Back", async (page) => {
  await shown(page, await longId());
  await page.evaluate(() => document.activeElement.blur());
  await until("2 failed", async () => (await page.textContent("[data-act=failures]").catch(() => "")).includes("2"));
  await page.keyboard.press("E");
  await until("at a failure", async () => (await focused(page, "call")) === "f4200");
  await page.evaluate(() => { document.getElementById("transcript").scrollTop += 33; });
  const top = () => page.$eval("[data-call=f4200]", (e) => Math.round(e.getBoundingClientRect().top)).catch(() => null);
  await still(top);
  const was = await top();
  await page.click(".sidebar-foot a >> nth=0");
  await page.waitForSelector("#stats .card");
  await page.goBack();
  await until("the same row at the same height", async () => { const now = await top(); return now !== null && Math.abs(now - was) <= 3; });
  await holds(async () => equal(await focused(page, "call"), "f4200", "and the focus"));
  // At the very top, below texts that become Markdown later, also after a reload.
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("E");
  const f700 = () => page.$eval("[data-call=f700]", (e) => Math.round(e.getBoundingClientRect().top)).catch(() => null);
  await until("the other failure", async () => (await focused(page, "call")) === "f700");
  await still(f700);
  const height700 = await f700();
  await page.click(".sidebar-foot a >> nth=0");
  await page.waitForSelector("#stats .card");
  await page.goBack();
  for (const how of ["Back", "a reload"]) {
    if (how !== "Back") await page.reload();
    await until("the row", async () => (await f700()) !== null);
    await still(f700);
    const now = await f700();
    assert(Math.abs(now - height700) <= 3, `after ${how} at ${now}, and it was at ${height700}`);
  }
  // From an output, Back leads to the call that it belongs to.
  const { id } = await artifact("Out and back", "line\n".repeat(5000));
  await server.append(id, Array.from({ length: 60 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `later ${i}` })));
  await shown(page, id);
  await until("its end", async () => (await texts(page, "article .prose")).includes("later 59"));
  await page.keyboard.press("g"); await page.keyboard.press("g");
  await until("its start", () => page.$("[data-call=big]"));
  await page.click("[data-call=big] .tool-head");
  const height = () => page.$eval("[data-call=big]", (e) => Math.round(e.getBoundingClientRect().top)).catch(() => null);
  await page.click("[data-call=big] [data-full]");
  await page.waitForSelector(".line-row[data-line='1']");
  await page.keyboard.press("Escape");
  await until("back at the call, which is still open", async () => (await height()) !== null && (await height()) < 700 && !!(await page.$("[data-call=big] .tool-body")));
});
scenario("read progress bars as a terminal left them, and colours as colours", async (page) => {
  const { path } = await artifact("Progress", `start\n${Array.from({ length: 50 }, (_, i) => `\r${i * 2} %`).join("")}\rdone\n\x1b[31mred\x1b[0m\n${"pad\n".repeat(4000)}`);
  await to(path);
  await until("folded", async () => (await page.textContent(".line-row[data-line='2'] .content").catch(() => "")).startsWith("done"));
  await until("counted", async () => (await page.textContent(".line-row[data-line='2'] .redraws")).includes("50 redraws"));
  await page.waitForSelector(".line-row[data-line='3'] .fg-red");
});
scenario("see every colour and mark that a terminal would have shown", async (page) => {
  // The characters that are sent before an x, and the class and style that the x must get.
  const marks = [
    ["31", "fg-red", ""], ["94", "fg-bright-blue", ""], ["42", "bg-green", ""], ["103", "bg-bright-yellow", ""],
    ["1;4;9", "sgr-bold sgr-underline sgr-strikethrough", ""], ["2;3", "sgr-dim sgr-italic", ""], ["7", "sgr-reverse", ""],
    ["38;5;9", "fg-bright-red", ""], ["48;5;4", "bg-blue", ""], ["38;5;196", "", "color: rgb(255, 0, 0);"], ["38;5;244", "", "color: rgb(128, 128, 128);"],
    ["38;2;1;20;30", "", "color: rgb(1, 20, 30);"], ["48;2;1;2;3;1", "sgr-bold", "background-color: rgb(1, 2, 3);"],
    ["38:5:196", "", "color: rgb(255, 0, 0);"], ["38:2::1:2:3", "", "color: rgb(1, 2, 3);"], ["4:3", "sgr-underline", ""],
    ["1;2;31;41;0", null, null], ["1;2;22", null, null], ["31;39;41;49", null, null], ["3;23;4;24;7;27;9;29", null, null], ["", null, null], ["77", null, null],
  ];
  const { path } = await artifact("Colours", `${marks.map(([m]) => `\x1b[0m\x1b[${m}mx`).join("\n")}\x1b[0m\n${"pad\n".repeat(4000)}`);
  await to(path);
  await holds(async () => {
    const got = await page.evaluate((n) => Array.from({ length: n }, (_, i) => {
      const e = document.querySelector(`.line-row[data-line='${i + 1}'] .content`);
      const span = e.querySelector("span");
      return [e.textContent, span && span.className, span && (span.getAttribute("style") ?? "")];
    }), marks.length);
    marks.forEach(([m, cls, style], i) => equal(JSON.stringify(got[i]), JSON.stringify(["x", cls, style]), m));
  });
});
scenario("share a link to a line", async (page) => {
  const { path } = await ticksOf();
  await to(`${path}/L77`);
  await until("there", async () => (await here(page)) === 77);
  await page.click("[data-act=link]");
  await toasted(page, "Link copied, without the token.");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert(link.endsWith("/L77") && !link.includes(server.token), link);
});

// ---- exactly the stored text ----
scenario("trust the numbers of a JSON result: as spelled, and members that come twice are there twice", async (page) => {
  const id = await server.conversation("Exact", [{ role: "user", content: "x" }, asks("", call("j", "t", '{"big":12345678901234567890,"command":"not a shell","n":1.50}')), gives("j", '{"a":12345678901234567890,"b":1e400,"c":1.50,"d":1,"d":2,"e":-0}')]);
  await shown(page, id);
  await page.click("[data-call=j] .tool-head");
  await page.waitForSelector("[data-call=j] .tree");
  await holds(async () => {
    equal((await texts(page, "[data-call=j] .j-number")).join(" "), "12345678901234567890 1.50 12345678901234567890 1e400 1.50 1 2 -0");
    equal((await texts(page, "[data-call=j] .j-again")).join(), "twice: 1 of 2,twice: 2 of 2");
  });
  assert(!(await page.$("[data-call=j] .command-line")), "an argument called command is no shell command");
});
scenario("read Markdown in full: tables, lists, quotes, links that say where they lead, code to copy", async (page) => {
  const id = await server.conversation("Markdown", [{ role: "assistant", content: "# Title\n\n| a | b |\n|---|--:|\n| 1 | **2** |\n\n1. one\n2. two\n   - deep\n\n- [x] done\n- [ ] open\n\n> quoted\n\nsee [the docs](https://example.com/deep/path) and [bad](javascript:alert(1)) and ![img](https://evil.test/x.png)\n\n```js\nconst a = 'x'; // why\n```\n\nשלום עולם" }]);
  await shown(page, id);
  await page.waitForSelector(".rich table");
  equal((await texts(page, ".rich td")).join(), "1,2");
  equal((await page.$$(".rich ol > li")).length, 2);
  assert(await page.$(".rich blockquote") && await page.$(".rich .box.checked") && await page.$(".rich li li"), "quote, task, nested list");
  equal((await texts(page, ".rich li.task")).join("|"), "done|open", "a box stands for its brackets");
  const links = await page.$$eval(".rich a", (all) => all.map((a) => [a.href, a.rel, a.target]));
  equal(JSON.stringify(links), JSON.stringify([["https://example.com/deep/path", "noopener noreferrer", "_blank"]]));
  assert((await page.textContent(".rich")).includes("(example.com/deep/path)"), "where it leads");
  assert(!(await page.$(".rich img")), "no pictures of others");
  assert(await page.$(".t-word") && await page.$(".t-string") && await page.$(".t-comment"), "light colours");
  await page.click(".copy-code");
  await holds(async () => equal(await page.evaluate(() => navigator.clipboard.readText()), "const a = 'x'; // why"));
  equal(await page.$eval(".rich > p:last-child", (e) => getComputedStyle(e).direction), "rtl", "its own direction");
});
scenario("read on while a text that no Markdown reader survives stays plain", async (page) => {
  const evil = ["_a*".repeat(5000), "> ".repeat(2000) + "x", "[".repeat(3000), "*a _b ".repeat(4000), "`".repeat(30) + "x\n".repeat(20)];
  const id = await server.conversation("Evil", [...evil.map((t) => ({ role: "user", content: `E${t}` })), { role: "assistant", content: "**fine**" }]);
  await shown(page, id);
  await until("the last is rich", () => page.$(".rich strong"));
  await until("all of them", async () => (await page.$$("#transcript article")).length === 6);
  const from = Date.now();
  await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => r(1))));
  note(`a frame took ${Date.now() - from} ms`);
  equal((await page.$$("#transcript article")).length, 6);
  assert((await page.textContent("#transcript")).includes("_a*_a*"), "as it stands");
});
scenario("know a conversation without a title by its first words, and trust its times", async (page) => {
  const { id } = await server.api("POST", "/api/chat-sessions", {});
  await server.append(id, [{ role: "user", content: "Please find out why the nightly build has been failing since last Friday, and tell me." }]);
  await until("its first words", async () => (await page.textContent(`[data-conversation="${id}"] .entry-title`).catch(() => "")) === "Please find out why the nightly build has been failing since…");
  await shown(page, id);
  await until("one record", async () => /\b1 record(?!s)/.test(await page.textContent(".bar .figures").catch(() => "")));
  const when = () => page.textContent(`[data-conversation="${id}"] .entry-facts span:last-child`);
  const a = await until("a time that counts", async () => { const t = await when(); return /^\d+ (s|min)$/.test(t) && t; });
  await until("they count on", async () => (await when()) !== a);
});

// ---- where did the time go ----
let run;
const runOf = () => (run ??= (async () => {
  const id = await server.conversation("Timed", [{ role: "user", content: "go" }, asks("", ...Array.from({ length: 8 }, (_, i) => call(`s${i}`, "execute_command", { argv: ["npm", "test", "--", `--shard=${i + 1}/8`] }))),
    ...Array.from({ length: 8 }, (_, i) => gives(`s${i}`, i === 2 ? "AssertionError: no" : "ok", { duration: i === 2 ? 9000 : 500 + i, ...(i === 2 ? { isError: true, exitCode: 1 } : {}) }))]);
  model.says("Shard three fails.");
  await server.api("POST", "/api/chatbot", { sessionId: id, message: "and?", stream: false }).catch(() => {});
  return id;
})());
scenario("see where the time of a run went, and go from a bar to its call", async (page) => {
  const id = await runOf();
  await to(`${talk(id)}/timeline`);
  await until("rows", async () => (await page.$$(".time-row")).length === 12);
  await holds(async () => {
    const names = await texts(page, ".k-call .time-hint");
    assert(names[2].includes("--shard=3/8") && names[2].startsWith("…"), names[2]);
    assert(await page.$(".k-call.s-error.slow"), "the failed one, the slowest, stands out");
  });
  const width = (n) => page.$eval(`[data-time=s${n}] .tbar`, (e) => e.getBoundingClientRect().width);
  await until("to scale", async () => await width(2) > 5 * await width(1));
  await page.click(".timeline .seg button:has-text('Slowest')");
  // Durations of calls: how long the model and the run take depends on the machine.
  await holds(async () => equal(await page.$eval(".time-row.k-call", (e) => e.dataset.time), "s2", "slowest first"));
  await page.click(".timeline .seg button:has-text('Failed')");
  await holds(async () => equal((await page.$$(".time-row")).length, 1));
  await page.click("[data-time=s2]");
  await until("at the call", async () => (await focused(page, "call")) === "s2");
});
scenario("read tokens and cost of a run from my own prices", async (page) => {
  await shown(page, await runOf());
  await until("in the header", async () => /1\.0 k tokens in, 50 out/.test(await page.textContent(".facts-line").catch(() => "")));
  await until("what it cost", async () => (await page.textContent(".facts-line")).includes("$0.0019"));
  await to("/usage");
  await until("by model", async () => /mock-1.*\d k.*\$/s.test(await page.textContent("#stats").catch(() => "")));
});
scenario("walk the tape with the arrow keys and be told where I am", async (page) => {
  await shown(page, await runOf());
  await page.waitForSelector("canvas.tape");
  await page.focus("canvas.tape");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await until("a word", async () => /^Call \d of 8/.test(await page.getAttribute("canvas.tape", "aria-valuetext")));
  await until("and the transcript goes along", async () => page.$("article.marked"));
});

// ---- home and search ----
scenario("open the page and know what needs me, what failed, and where", async (page) => {
  const { id } = await waiting("On the desk");
  await to("/");
  await until("a sentence", async () => (await page.textContent(".home-head").catch(() => "")) === "One call waits for you.");
  await until("the command", async () => (await texts(page, ".needs code")).join().includes("printf 'it ran'"));
  await until("the error line of what failed", async () => (await page.textContent("#home")).includes("src/heap.c:41: error: out of heap"));
  await page.click("[data-act=look]");
  await page.waitForSelector("#tray [data-act=deny]");
  await page.click("#tray [data-act=deny]");
  await until("answered", async () => (await page.textContent(".home-head")) === "Nothing needs you." || (await page.textContent(".home-head")).includes("at work"));
  await page.click(".used .number >> nth=0");
  await until("a number is a link", async () => (await page.inputValue("#filter")) !== "");
  await page.fill("#filter", "");
  assert(id, "");
});
scenario("search everything and land on the exact line of an output", async (page) => {
  await ticksOf();
  await until("it is indexed", async () => (await server.api("GET", "/api/search?q=needle")).items.some((i) => i.ref));
  await to("/");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("needle clock");
  await page.keyboard.press("Enter");
  await until("found", () => page.$("[data-hit] mark"));
  await page.click("[data-hit]:has-text('Output')");
  await until("the very line", async () => (await here(page)) === 15_001);
  await until("with the word marked", async () => (await page.textContent(".line-row.here mark").catch(() => "")) === "needle");
});
scenario("search inside one conversation with /", async (page) => {
  const id = await runOf();
  await until("it is indexed", async () => (await server.api("GET", `/api/search?q=${E(`AssertionError conversation:${id}`)}`)).items.length);
  await shown(page, id);
  await page.evaluate(() => document.activeElement.blur());
  // A person keeps typing, however long the page takes to draw the next frame.
  await page.evaluate(() => { const real = window.nextFrame = window.requestAnimationFrame; window.requestAnimationFrame = (f) => window.setTimeout(() => real(f), 300); });
  await page.keyboard.press("/");
  await page.keyboard.type("AssertionError");
  equal(await page.inputValue("#everywhere"), `conversation:${id} AssertionError`);
  await page.evaluate(() => { window.requestAnimationFrame = window.nextFrame; });
  await page.keyboard.press("Enter");
  await until("only here", async () => /in 1 conversation$/.test(await page.textContent(".search-view h2")));
  await page.click("[data-hit]");
  await page.waitForSelector("#transcript article");
});

// ---- changing things ----
scenario("rename, fork and trash a conversation, and take it back from the trash", async (page) => {
  const id = await server.conversation("To be moved", [{ role: "user", content: "one" }, { role: "assistant", content: "two" }]);
  await shown(page, id);
  await page.click("[data-act=menu]");
  await page.click("[data-act=menu-rename]");
  await page.fill(".bar .rename", "Moved");
  await page.press(".bar .rename", "Enter");
  await until("renamed", async () => (await page.textContent(".bar h2")) === "Moved");
  await page.click("[data-act=menu]");
  await page.click("[data-act=fork]");
  await until("in the fork", async () => !page.url().includes(id) && (await texts(page, "article .prose")).join() === "one,two");
  await page.click("[data-act=menu]");
  await page.click("[data-act=menu-trash]");
  await page.click("[data-act=undo]");
  await until("undone", async () => (await texts(page, "article .prose")).join() === "one,two");
  const fork = decodeURIComponent(page.url().split("/c/")[1]);
  await page.click("[data-act=menu]");
  await page.click("[data-act=menu-trash]");
  await until("in the trash", async () => !(await server.api("GET", "/api/chat-sessions?limit=60")).items.some((i) => i.id === fork));
  await to("/trash");
  await page.click(`[data-trash="${fork}"] [data-act=restore]`);
  await until("restored", async () => page.url().includes(fork) && (await texts(page, "article .prose")).join() === "one,two");
  await server.api("DELETE", `/api/chat-sessions/${fork}`);
  await to("/trash");
  await page.click(`[data-trash="${fork}"] [data-act=ask-purge]`);
  await holds(async () => equal(await page.isDisabled("[data-act=purge]"), true, "not without its name"));
  await page.fill(".purge input", fork);
  await page.click("[data-act=purge]");
  await until("gone for good", async () => !(await page.$(`[data-trash="${fork}"]`)));
});
scenario("download a conversation as a bundle, HTML, Markdown and JSON", async (page) => {
  await shown(page, await runOf());
  for (const [format, begins] of [["bundle", "\x28\xb5\x2f\xfd"], ["html", "<!doctype html>"], ["md", "#"], ["json", "["]]) {
    await page.click("[data-act=menu]");
    const [d] = await Promise.all([page.waitForEvent("download"), page.click(`[data-export=${format}]`)]);
    assert(readFileSync(await d.path(), "latin1").trimStart().toLowerCase().startsWith(begins), format);
  }
});
scenario("edit a message: the new one is in a fork, and the old one stays", async (page) => {
  const id = await server.conversation("Edit me", []);
  for (const [role, content] of [["user", "first"], ["assistant", "reply"], ["user", "seocnd"], ["assistant", "what?"]]) await server.append(id, [{ role, content }]);
  await shown(page, id);
  model.says("Understood.");
  await page.hover("article.user >> nth=1");
  await page.click("article.user >> nth=1 >> [data-act=edit-message]");
  await page.fill(".editor textarea", "second");
  await page.click("[data-act=send-edit]");
  await until("answered in the fork", async () => (await texts(page, "article .prose")).join() === "first,reply,second,Understood.");
  equal((await server.api("GET", `/api/chat-sessions/${id}/messages`)).messages.map((m) => m.content).join(), "first,reply,seocnd,what?", "the old one");
  await shown(page, id);
  await until("the old one is shown", async () => (await texts(page, "article .prose")).includes("what?"));
  model.says("Another answer.");
  await page.hover("article.assistant >> nth=1");
  await page.click("article.assistant >> nth=1 >> [data-act=regenerate]");
  await until("regenerated", async () => (await texts(page, "article .prose")).join() === "first,reply,seocnd,Another answer.");
});

// ---- many windows, and servers that go away ----
const TABS = long_ ? 20 : 9; // more than a browser has connections
scenario(`keep ${TABS} tabs open: all of them live, through one stream`, async () => {
  // This test has its own server: the log has only its streams, each with its end.
  const alone = await new Server("tabs", model).start();
  const id = await alone.conversation("Twenty", [{ role: "user", content: "x" }]);
  const w = await openWindow(alone, { path: talk(id), width: 900, height: 600, fresh: true });
  const tabs = [w];
  for (let i = 1; i < TABS; i++) { const t = await adopt(w.context, alone); await t.page.goto(alone.address(talk(id))); tabs.push(t); }
  for (const t of tabs) await t.page.waitForSelector("#transcript article");
  await alone.append(id, [{ role: "assistant", content: "heard by all" }]);
  for (const t of tabs) await until("each hears it", async () => (await texts(t.page, "article .prose")).includes("heard by all"));
  for (const t of tabs) await t.page.waitForSelector("#connection[data-state=live]");
  await w.close();
  const streams = () => readFileSync(`${alone.folder}/log`, "utf8").split("\n").filter((x) => x.includes("/api/watch") && x.includes("POST")).length;
  await until("the stream is over", () => streams());
  await alone.kill("SIGTERM"); // the others would end now
  equal(streams(), 1, "one stream");
});
scenario("lose the server in any view and go on when it is back", async () => {
  const id = await runOf();
  const { path } = await ticksOf();
  const views = { home: ["/", ".home-head"], conversation: [talk(id), "#transcript article"], timeline: [`${talk(id)}/timeline`, ".time-row"], output: [`${path}/L5`, ".line-row.here"], search: ["/search/needle", ".search-view h2"], usage: ["/usage", "#stats .card"], trash: ["/trash", "main h2"] };
  const w = await openWindow(server, { path: views.home[0], width: 1300, height: 800 });
  const tabs = { home: w };
  for (const name of Object.keys(views).slice(1)) { tabs[name] = await adopt(w.context, server); await tabs[name].page.goto(server.address(views[name][0])); }
  for (const [name, t] of Object.entries(tabs)) await t.page.waitForSelector(views[name][1]);
  await server.kill();
  for (const t of Object.values(tabs)) await t.page.waitForSelector("#connection[data-state=lost]");
  for (const [name, t] of Object.entries(tabs)) assert(await t.page.$(views[name][1]), `${name}: what was there stays`);
  await server.start();
  for (const t of Object.values(tabs)) await t.page.waitForSelector("#connection[data-state=live]");
  const o = tabs.output.page;
  await o.fill("#line", "19000");
  await o.press("#line", "Enter");
  await until("lines that were never loaded", async () => (await o.textContent(".line-row.here .content").catch(() => "")).startsWith("19000 tick"));
  await o.fill("#find", "needle");
  await o.press("#find", "Enter");
  await until("and its search", async () => (await o.textContent(".hits")) === "1 of 1");
  await server.append(id, [{ role: "assistant", content: "after the restart" }]);
  await until("the conversation", async () => (await texts(tabs.conversation.page, "article .prose")).includes("after the restart"));
  await until("the timeline", async () => (await tabs.timeline.page.$$(".time-row")).length >= 13);
  const fresh = await server.conversation("After the restart", [{ role: "user", content: "x" }]);
  for (const t of Object.values(tabs)) if (!(t === tabs.output)) await t.page.waitForSelector(`[data-conversation="${fresh}"]`);
  await w.close();
});
scenario("follow an output that grows through a restart of the server", async () => {
  const id = await server.conversation("Growing", [{ role: "user", content: "go" }, asks("", call("grow1", "build"))]);
  const tool = server.cli("output", id, "--tool", "build", "--call", "grow1");
  const feed = (from, n) => tool.stdin.write(Array.from({ length: n - from }, (_, i) => `grown ${from + i}\n`).join(""));
  feed(1, 501);
  const ref = await until("its file", async () => (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0]?.id);
  const w = await openWindow(server, { path: `${talk(id)}/o/${ref}` });
  const last = () => w.page.$$eval(".line-row .content", (all) => all.at(-1)?.textContent ?? "");
  await until("its end", async () => (await last()) === "grown 500");
  await server.kill();
  await w.page.waitForSelector("#connection[data-state=lost]");
  feed(501, 801);
  await server.start();
  await until("what came meanwhile", async () => (await last()) === "grown 800");
  feed(801, 901);
  await until("and what comes now", async () => (await last()) === "grown 900");
  tool.stdin.end();
  await until("its end", async () => !(await w.page.$(".flag.live")));
  await w.close();
});

// ---- everybody ----
scenario("reach the transcript in a few steps of the Tab key, or in one with the skip link", async (page) => {
  await page.reload();
  await shown(page, await runOf());
  await page.evaluate(() => { document.activeElement.blur(); document.body.focus(); });
  await page.keyboard.press("Tab");
  await holds(async () => equal(await page.evaluate(() => document.activeElement.className), "skip"));
  await page.keyboard.press("Enter");
  await holds(async () => equal(await page.evaluate(() => document.activeElement.id), "transcript"));
  await page.evaluate(() => { document.activeElement.blur(); getSelection().removeAllRanges(); });
  await page.reload();
  await page.waitForSelector("#transcript article");
  let stops = 0;
  for (; stops < 40; stops++) { await page.keyboard.press("Tab"); if (await page.evaluate(() => document.activeElement.id === "transcript")) break; }
  assert(stops <= 12, `${stops} stops`);
  note(`${stops} stops before the transcript`);
});
scenario("switch the letter keys off", async (page) => {
  await shown(page, await runOf());
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await page.locator("dialog.help").waitFor();
  await holds(async () => equal(await page.$eval("dialog.help", (e) => e.scrollTop), 0, "the help is read from its top"));
  await page.click("dialog.help input[type=checkbox]");
  await page.keyboard.press("Escape");
  await page.keyboard.press("g"); await page.keyboard.press("u");
  await sleep(100);
  assert(await page.$("#transcript"), "nothing happened");
  await page.click("[data-act=help]");
  await page.click("dialog.help input[type=checkbox]");
  await page.keyboard.press("Escape");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("g"); await page.keyboard.press("u");
  await page.waitForSelector("#stats");
});
scenario("open a link to a call", async (page) => {
  const id = await longId();
  const { items } = await server.api("GET", `/api/chat-sessions/${id}/errors`);
  await to("/");
  await to(`${talk(id)}/k/f700@${items[0].seq}`);
  await until("at the call", async () => (await focused(page, "call")) === "f700" && onScreen(page, "[data-call=f700]"));
  // Of a name that is too long the end is shown, and a title.
  await to("/");
  await to(`${talk(id)}/k/never@99999999`);
  await toasted(page, "That place is not in this conversation.");
  await until("its end", async () => (await texts(page, "article .prose")).some((t) => t.includes("message 4999")));
});
scenario("use a phone: nothing is cut off, what waits is a sheet, the timeline is a view", async () => {
  const id = await runOf();
  const { id: asking } = await waiting("On the phone");
  const w = await openWindow(server, { path: talk(id), width: 390, height: 844, hasTouch: true });
  const wide = (what) => holds(async () => equal(await w.page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)), 390, what));
  await w.page.waitForSelector("#transcript article");
  await wide("conversation");
  await w.page.click("[data-act=tray]");
  await settled(w.page);
  await wide("tray");
  await holds(async () => { const box = await (await w.page.$("#tray")).boundingBox(); assert(box.y + box.height >= 840 && box.height <= 844 * 0.9, "from below"); });
  const button = await (await w.page.$("#tray [data-act=deny]")).boundingBox();
  assert(button.height >= 30, "a finger can hit it");
  await w.page.click("#tray [data-act=deny]");
  await until("answered", async () => !(await server.api("GET", "/api/approvals")).items.length);
  await w.page.click(".phone-bar a:has-text('Timeline')");
  await w.page.waitForSelector(".time-row");
  await wide("timeline");
  for (const path of ["/", "/usage", "/search/needle", "/trash"]) { await to(path, w.page); await w.page.waitForSelector("main h2"); await sleep(80); await wide(path); }
  assert(asking, "");
  await w.close();
});
scenario("show no motion to people who asked for less of it", async (page) => {
  await shown(page, await runOf());
  await holds(async () => equal(await page.evaluate(() => document.getAnimations().filter((a) => a.playState === "running").length), 0));
});
scenario("see no error in the console and no request to another host after all of this", async () => {
  equal(me.complaints.filter((c) => !/net::ERR_|404/.test(c)).join(" | "), "", "complaints");
  equal(me.foreign.length, 0, "foreign requests");
  equal(me.dialogs.length, 0, "dialogs");
  assert(statSync(server.store).isDirectory() && writeFileSync, "");
});

await runTests();
