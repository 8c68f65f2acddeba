// A long conversation and a huge output: bounded rows, bounded heap, any place in a moment. The
// numbers stand beside a plain <pre>. All of it with STENO_TEST_LONG, else a twentieth. Times are
// printed and never asserted.
import { assert, equal, heapMb, holds, long, note, openBrowser, openWindow, rounds, runTests, Server, test, until } from "./lib.mjs";

const MESSAGES = rounds(100_000);
const CONVERSATIONS = rounds(10_000);
const MANY = MESSAGES.toLocaleString("en-US");
const LINES = rounds(10_000_000);
const PRE_LINES = rounds(200_000);
const HEAP_MOST = 100;
const ROWS_MOST = 500;

const server = new Server("scale");
let started;
const begin = () => (started ??= server.start("--no-tools", "--model", "none", "--base-url", "http://127.0.0.1:1/v1"));

const rowsOf = (w) => w.page.evaluate(() => document.querySelectorAll("#transcript [data-row]").length);
const took = async (f) => { const from = performance.now(); await f(); return Math.round(performance.now() - from); };

// Frames while something scrolls: the 95th percentile of their wall-clock times, and the processor time
// of one frame, which does not depend on what else the machine does.
const FRAMES = long ? 120 : 10;
const frames = async (w, selector, by) => {
  const tools = await w.page.context().newCDPSession(w.page);
  const worked = async () => (await tools.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value * 1000;
  await tools.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = await worked();
  const p95 = await w.page.evaluate(async ([s, step, n]) => {
    const el = document.querySelector(s), all = [];
    let last = performance.now();
    for (let k = 0; k < n; k++) {
      el.scrollTop += step;
      await new Promise((r) => requestAnimationFrame(r));
      const now = performance.now();
      all.push(now - last);
      last = now;
    }
    return all.sort((a, b) => a - b)[Math.floor(all.length * 0.95)].toFixed(1);
  }, [selector, by, FRAMES]);
  const each = ((await worked()) - before) / FRAMES;
  await tools.detach();
  return `${p95} ms, ${each.toFixed(1)} ms of the processor each`;
};

test(`a conversation of ${MANY} messages opens at its end, with few rows and a small heap`, async () => {
  await begin();
  const turns = Array.from({ length: MESSAGES / 4 }, (_, i) => [
    { role: "user", content: `Question ${i} about the build, with a few words more.` },
    { role: "assistant", content: `I look at number ${i}.`, tool_calls: [{ id: `call_${i}`, type: "function", function: { name: "look", arguments: JSON.stringify({ number: i, path: `src/file_${i}.c` }) } }] },
    { role: "tool", tool_call_id: `call_${i}`, content: `result ${i}: ${"a line of output\n".repeat(20)}`, duration: 5, ...(i % 97 === 0 ? { isError: true } : {}) },
    { role: "assistant", content: `Answer ${i}.\n\n\`\`\`\ncode ${i}\n\`\`\`` },
  ]).flat();
  const id = await server.conversation("Many messages", turns);
  const w = await openWindow(server);
  await w.page.waitForSelector(".list li");
  const ms = await took(async () => {
    await w.page.click(`[data-conversation="${id}"] a`);
    await w.page.locator("#transcript").getByText(`Answer ${MESSAGES / 4 - 1}.`).waitFor();
  });
  const rows = await rowsOf(w), heap = await heapMb(w.page);
  note(`${MANY} messages: opened in ${ms} ms, ${rows} rows, heap ${heap.toFixed(1)} MB`);
  assert(rows > 10 && rows <= ROWS_MOST, `${rows} rows`);
  assert(heap < HEAP_MOST, `${heap} MB`);

  // Upwards through a part of it, the way a person scrolls, and then to the very start.
  let most = 0, scrolled = 0;
  await until("the end is dropped from the window", async () => {
    await w.page.$eval("#transcript", (e) => { e.scrollTop = Math.max(0, e.scrollTop - e.clientHeight * 3); });
    most = Math.max(most, await rowsOf(w));
    return ++scrolled >= 40 && !(await w.page.textContent("#transcript")).includes(`Answer ${MESSAGES / 4 - 1}.`);
  });
  assert(most <= ROWS_MOST, `${most} rows while scrolling`);
  await w.page.evaluate(() => document.activeElement.blur());
  const start = await took(async () => { await w.page.keyboard.press("g"); await w.page.keyboard.press("g"); await w.page.locator("#transcript").getByText("Question 0 about").waitFor(); });
  const end = await took(async () => { await w.page.keyboard.press("G"); await w.page.locator("#transcript").getByText(`Answer ${MESSAGES / 4 - 1}.`).waitFor(); });
  const after = await heapMb(w.page);
  note(`scrolled: at most ${most} rows, to the start ${start} ms, to the end ${end} ms, heap ${after.toFixed(1)} MB`);
  assert(after < HEAP_MOST, `${after} MB`);
  note(`a frame (p95) while the transcript scrolls: ${await frames(w, "#transcript", -120)}`);

  // All rows are in the timeline, and every failure is counted.
  const failures = Math.ceil(MESSAGES / 4 / 97);
  await until("every failure", async () => (await w.page.textContent("[data-act=failures]").catch(() => "")).replace(/,/g, "").includes(`${failures} failed`));
  const whole = await took(async () => { await w.page.keyboard.press("g"); await w.page.keyboard.press("t"); await until("every row", async () => Number(await w.page.getAttribute(".timeline.wide [role=treegrid]", "aria-rowcount").catch(() => 0)) === MESSAGES); });
  const bars = await w.page.$$eval(".time-row", (all) => all.length);
  assert(bars <= 60, `${bars} rows of the timeline`);
  const slow = await frames(w, ".timeline-rows", 500);
  const all = await heapMb(w.page);
  note(`timeline: all rows in ${whole} ms, ${bars} in the document, a frame (p95) ${slow}, heap ${all.toFixed(1)} MB`);
  assert(all < HEAP_MOST, `${all} MB`);
  equal(w.complaints.join(), "");
  await w.close();
});

test(`${CONVERSATIONS.toLocaleString("en-US")} conversations: the list is there at once, narrows and stays small`, async () => {
  await begin();
  let next = 0;
  const make = async () => { for (let i; (i = next++) < CONVERSATIONS;) await server.conversation(`Conversation #${i} of many`, [{ role: "user", content: `what about ${i}?` }, { role: "assistant", content: "", tool_calls: [{ id: "c", type: "function", function: { name: i % 500 ? "look" : "rare", arguments: "{}" } }] }, { role: "tool", tool_call_id: "c", content: i % 50 ? "fine" : "error: no", ...(i % 50 ? {} : { isError: true }) }]); };
  await Promise.all(Array.from({ length: 8 }, make));
  const w = await openWindow(server);
  const first = await took(() => w.page.waitForSelector(".list li"));
  const home = await took(() => w.page.waitForSelector(".home-head"));
  for (let k = 0; k < 8 && await w.page.$(".list > .more"); k++) { const before = (await w.page.$$(".list li")).length; await w.page.click(".list > .more"); await until("more", async () => (await w.page.$$(".list li")).length > before); }
  const rows = await w.page.$$eval(".list li", (all) => all.length);
  assert(rows <= ROWS_MOST, `${rows} rows`);
  const slow = await frames(w, ".list", 200);
  // A bare number could occur in another conversation's id, which is searched too.
  const narrow = await took(async () => { await w.page.fill("#filter", `Conversation #${CONVERSATIONS - 7} of`); await until("one", async () => (await w.page.$$(".list li")).length === 1); });
  const rare = await took(async () => { await w.page.fill("#filter", "tool:rare"); await until("few", async () => (await w.page.$$(".list li")).length === Math.min(60, Math.ceil(CONVERSATIONS / 500))); });
  const heap = await heapMb(w.page);
  note(`${CONVERSATIONS} conversations: list ${first} ms, home ${home} ms later, ${rows} rows, a frame (p95) ${slow}, by title ${narrow} ms, by tool ${rare} ms, heap ${heap.toFixed(1)} MB`);
  assert(heap < HEAP_MOST, `${heap} MB`);
  equal(w.complaints.join(), "");
  await w.close();
});

test("the messages that the reader looks at do not move while earlier ones arrive", async () => {
  await begin();
  const { items } = await server.api("GET", "/api/chat-sessions?q=Many%20messages");
  const w = await openWindow(server, { path: `/c/${items[0].id}` });
  await w.page.locator("#transcript").getByText(`Answer ${MESSAGES / 4 - 1}.`).waitFor();
  const jumps = await w.page.evaluate(async () => {
    const box = document.getElementById("transcript");
    const place = (el) => el.getBoundingClientRect().top;
    let worst = 0, compared = 0;
    // Not while a text becomes Markdown on the screen: then it does move.
    const plain = () => [...document.querySelectorAll(".prose:not(.rich)")].some((p) => p.textContent.includes("```"));
    for (let k = 0; k < 25; k++) {
      for (let still = 0; still < 3;) { still = plain() ? 0 : still + 1; await new Promise((r) => setTimeout(r, 40)); }
      const edge = box.getBoundingClientRect().top;
      const row = [...box.querySelectorAll("article")].find((a) => place(a) > edge + 5);
      const before = place(row);
      box.scrollTop -= 240;
      const expected = before + Math.min(240, 240);
      await new Promise((r) => setTimeout(r, 60));
      if (row.isConnected && box.scrollTop > 0) { worst = Math.max(worst, Math.abs(place(row) - expected)); compared++; }
    }
    return { worst, compared };
  });
  assert(jumps.compared > 10, `${jumps.compared} compared`);
  assert(jumps.worst < 3, `it jumped by ${jumps.worst} pixels`);
  await w.close();
});

let ref, talk;
test(`an output of ${LINES.toLocaleString("en-US")} lines opens, and any place in it is a moment away`, async () => {
  await begin();
  talk = await server.conversation("Huge", [{ role: "user", content: "go" }, { role: "assistant", content: "", tool_calls: [{ id: "huge", type: "function", function: { name: "soak", arguments: "{}" } }] }]);
  const p = server.cli("output", talk, "--tool", "soak", "--call", "huge");
  p.stdout.resume();
  let size = 0;
  const BLOCK = 20_000;
  for (let at = 0; at < LINES; at += BLOCK) {
    const n = Math.min(BLOCK, LINES - at);
    const text = Array.from({ length: n }, (_, i) => { const k = at + i + 1; return k === LINES - 1234 ? `line ${k} fatal: the NEEDLE is here` : `line ${String(k).padStart(9, "0")} ${k % 7 ? "ok everything is as it was before, and so it goes on and on, up to a hundred bytes..." : "ok some other words to fill this line, and some more, up to a hundred bytes or so..."}`; }).join("\n") + "\n";
    size += Buffer.byteLength(text);
    if (!p.stdin.write(text)) await new Promise((r) => p.stdin.once("drain", r));
  }
  await new Promise((r) => { p.once("exit", r); p.stdin.end(); });
  ref = (await server.api("GET", `/api/chat-sessions/${talk}/context`)).items[0];
  equal(ref.byteSize, size, "stored whole");
  const w = await openWindow(server);
  await w.page.waitForSelector(".list li");
  const content = (n) => w.page.evaluate((k) => { const t = document.querySelector(`.line-row[data-line='${k}'] .content`)?.textContent; return t && t !== "…" ? t : ""; }, n);
  const jump = (n) => took(async () => { await w.page.fill("#line", String(n)); await w.page.press("#line", "Enter"); await until(`line ${n}`, async () => (await content(n)).startsWith(`line ${n === LINES - 1234 ? n : String(n).padStart(9, "0")}`)); });
  const first = await took(async () => { await w.page.goto(server.address(`/c/${talk}/o/${ref.id}`)); await until("the first line", async () => (await content(1)).startsWith("line 000000001")); });
  const jumps = [];
  for (const n of [Math.floor(LINES / 2), Math.floor(LINES * 0.87), 17, LINES, Math.floor(LINES / 3)]) jumps.push(await jump(n));
  await w.page.click("[data-act=start]");
  const search = await took(async () => { await w.page.fill("#find", "NEEDLE"); await w.page.press("#find", "Enter"); await until("the needle", async () => (await content(LINES - 1234)).includes("NEEDLE")); });
  const heap = await heapMb(w.page), rows = await w.page.$$eval(".line-row", (a) => a.length);
  note(`a frame (p95) while the lines scroll: ${await frames(w, "#lines", 400)}`);
  note(`${(size / 1e6).toFixed(0)} MB, ${LINES} lines: first page ${first} ms, jumps ${jumps.join(", ")} ms, search ${search} ms, ${rows} rows, heap ${heap.toFixed(1)} MB`);
  assert(rows <= ROWS_MOST, `${rows} rows`);
  assert(heap < HEAP_MOST, `${heap} MB`);
  equal(w.complaints.join(), "");
  await w.close();
});

test("it scrolls line by line and by its thumb, without a gap or a double line", async () => {
  const w = await openWindow(server, { path: `/c/${talk}/o/${ref.id}/L${Math.floor(LINES / 2)}` });
  await w.page.waitForSelector(".line-row.here");
  await w.page.hover("#lines");
  const visible = () => w.page.evaluate(() => {
    const b = document.getElementById("lines").getBoundingClientRect();
    return [...document.querySelectorAll(".line-row")].map((e) => [Number(e.dataset.line), e.getBoundingClientRect().top - b.top]).filter(([, t]) => t > -20 && t < b.height).sort((x, y) => x[1] - y[1]);
  });
  await holds(async () => assert((await visible())[0][0] > 1 && !!(await w.page.$(".line-row.here")), "there"));
  let before = (await visible())[0][0];
  for (let k = 0; k < 12; k++) {
    await w.page.mouse.wheel(0, k < 8 ? 300 : -200);
    before = await until(`the wheel has moved it (${k})`, async () => {
      const rows = await visible();
      rows.forEach(([n, top], i) => { if (i) { equal(n, rows[i - 1][0] + 1, "line"); assert(Math.abs(top - rows[i - 1][1] - 20) < 1.5, `row height ${top - rows[i - 1][1]}`); } });
      const moved = rows[0][0] - before;
      assert(Math.abs(moved - (k < 8 ? 15 : -10)) <= 2, `a wheel of ${k < 8 ? 300 : -200} pixels moved ${moved} lines`);
      return rows[0][0];
    });
  }
  for (const part of [0, 0.25, 0.5, 0.9, 1]) {
    await w.page.$eval("#lines", (e, p) => { e.scrollTop = (e.scrollHeight - e.clientHeight) * p; }, part);
    await until(`the thumb is at ${part}`, async () => {
      const rows = await visible();
      assert(Math.abs(rows[0][0] / LINES - part) < 0.02, `the thumb at ${part} shows line ${rows[0][0]}`);
      return true;
    });
  }
  await until("the last line", async () => (await visible()).at(-1)[0] === LINES);
  await w.close();
});

test("the same browser with a plain <pre>, for comparison", async () => {
  const b = await openBrowser();
  const page = await b.newPage();
  await page.goto("about:blank");
  const empty = await heapMb(page);
  const ms = await page.evaluate((n) => {
    const pre = document.createElement("pre");
    const from = performance.now();
    pre.textContent = Array.from({ length: n }, (_, i) => `line ${String(i + 1).padStart(9, "0")} ok everything is as it was before, and so it goes on and on`).join("\n");
    document.body.append(pre);
    pre.getBoundingClientRect();
    return Math.round(performance.now() - from);
  }, PRE_LINES);
  const heap = await heapMb(page);
  note(`<pre> of ${PRE_LINES} lines: ${ms} ms to lay out, heap ${heap.toFixed(1)} MB (empty page ${empty.toFixed(1)} MB)`);
  assert(ms > 0, "measured");
  await page.close();
});

await runTests();
