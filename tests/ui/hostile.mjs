// Hostile content: shown as text, no dialog, no foreign request, nothing on the console.
import { assert, equal, holds, Model, openWindow, runTests, Server, test, until } from "./lib.mjs";
import { payloads } from "./payloads.mjs";

const model = await new Model().start();
const server = new Server("hostile", model);
let started;
const begin = () => (started ??= server.start());
// One window for all payloads. It is small, because what is visible has to be painted.
let me;
const window_ = async (path) => {
  await begin();
  if (!me) me = await openWindow(server, { path, width: 800, height: 500 });
  else await me.page.evaluate(([t, p]) => { location.hash = `#token=${t}&${p}`; }, [server.token, path]);
  return me;
};
const GROUP = 12;
const groups = Array.from({ length: Math.ceil(payloads.length / GROUP) }, (_, g) => payloads.slice(g * GROUP, (g + 1) * GROUP).map((p, i) => ({ mark: `M${g * GROUP + i}m`, text: p.replace("%M", `M${g * GROUP + i}m`) })));

// One payload in every field.
function messages({ text, mark }, k) {
  const id = `call_${k}`, other = `also_${k}`;
  return [
    { role: "user", content: `U ${text}` },
    { role: "assistant", content: `A ${text}`, reasoning_content: `T ${text}`, tool_calls: [
      { id, type: "function", function: { name: `N ${text}`.slice(0, 800), arguments: JSON.stringify({ [`K ${text}`.slice(0, 3000)]: `V ${text}`, path: text, list: [text, { [mark]: text }] }) } },
      { id: other, type: "function", function: { name: "broken", arguments: `{"cut": ${text}` } },
      { id: `sh_${k}`, type: "function", function: { name: "execute_command", arguments: JSON.stringify({ shell: text }) } },
      { id: `ed_${k}`, type: "function", function: { name: "edit", arguments: JSON.stringify({ file_path: text, old_string: `old ${text}\n`, new_string: `new ${text}\n` }) } }] },
    { role: "tool", tool_call_id: id, toolName: text.slice(0, 300), serverName: `S ${text}`.slice(0, 800), content: `R ${text}`, steps: [`P ${text}`, { text: `Q ${text}`, progress: 1, total: 2 }], duration: 5 },
    { role: "tool", tool_call_id: other, content: `E ${text}`, isError: true, exitCode: 3 },
    { role: "tool", tool_call_id: `sh_${k}`, content: JSON.stringify({ [text.slice(0, 2000)]: text, content: [{ type: "text", text }, { type: "image", mimeType: "image/svg+xml", data: text }] }) },
    { role: "tool", tool_call_id: `ed_${k}`, content: `--- a\n+++ b\n@@ -1 +1 @@\n-${text}\n+${text}` },
    { role: "assistant", content: "", partType: "error", error: { code: `C ${text}`.slice(0, 500), message: `W ${text}`.slice(0, 3000), retryable: false } },
    { role: "user", content: [{ type: "text", text }, { type: "image_url", image_url: { url: `http://evil.test/${k}.png` } }, { type: "image_url", image_url: { url: `javascript:alert(${k})` } }, { type: "image_url", image_url: { url: "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+" } }] },
  ];
}
const displays = ({ text }, k) => [
  { role: "assistant", content: [{ type: "tool_use", id: `d1_${k}`, name: "todo", input: {} }, { type: "tool_use", id: `d2_${k}`, name: "write", input: {} }, { type: "tool_use", id: `d3_${k}`, name: "plain", input: {} }] },
  { role: "tool", content: [
    { type: "tool-result", toolCallId: `d1_${k}`, toolName: "todo", input: {}, result: { llmContent: text, returnDisplay: { type: "todo_list", todos: [{ id: text, content: text, status: text }] } } },
    { type: "tool-result", toolCallId: `d2_${k}`, toolName: "write", input: {}, result: { llmContent: text, returnDisplay: { fileName: text, fileDiff: `@@ -1 +1 @@\n-${text}\n+${text}` } } },
    { type: "tool-result", toolCallId: `d3_${k}`, toolName: "plain", input: {}, result: { llmContent: text, returnDisplay: text } }] },
];

async function harmless(w, what) {
  equal(w.dialogs.join(), "", `${what}: dialogs`);
  equal(w.foreign.join(), "", `${what}: foreign requests`);
  equal(w.complaints.join(" | "), "", `${what}: console`);
  const found = await w.page.evaluate(() => ({
    pwned: window.__pwned,
    alien: [...document.querySelectorAll("#app script, #app iframe, #app object, #app embed, #app link, #app style, #app base, #app meta, #app video, #app audio, #app form[action], #app portal, #app image, #app use, #app animate")].map((e) => e.outerHTML.slice(0, 80)),
    handlers: [...document.querySelectorAll("#app *")].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name))).map((e) => e.tagName),
    links: [...document.querySelectorAll("#app [href], #app [src]")].filter((e) => !(e.tagName === "A" && /^(https?|mailto):/i.test(e.getAttribute("href")) && /noopener/.test(e.rel) && e.closest(".prose"))).map((e) => e.getAttribute("href") ?? e.getAttribute("src")).filter((u) => !/^(#|data:image\/(png|jpeg|gif|webp|avif|bmp);base64,)/.test(u)),
    here: location.origin,
  }));
  equal(found.pwned, undefined, `${what}: script ran`);
  equal(found.alien.join(), "", `${what}: alien elements`);
  equal(found.handlers.join(), "", `${what}: handlers`);
  equal(found.links.join(), "", `${what}: links`);
  equal(found.here, server.origin, `${what}: still here`);
}
// The window over a long transcript moves: each row is opened and read while it is inside of it, from
// the last to the first.
const seenText = (w) => w.page.evaluate(async () => {
  const box = document.getElementById("transcript");
  const seen = (window.seenRows ??= new Map());
  if (window.seenIn !== location.hash) { window.seenIn = location.hash; seen.clear(); }
  box.scrollTop = box.scrollHeight;
  // The page has done what it was asked two frames later.
  const pause = () => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
  for (;;) {
    for (let round = 0; round < 3 && box.querySelector("[aria-expanded=false]"); round++) {
      box.querySelectorAll("[aria-expanded=false]").forEach((b) => b.click());
      await pause();
    }
    for (const row of box.querySelectorAll("article, .mark")) if ((seen.get(row.dataset.row)?.length ?? 0) < row.textContent.length) seen.set(row.dataset.row, row.textContent);
    const first = !box.querySelector(".rows > .edge");
    if (first && box.scrollTop <= 0) break;
    box.scrollTop = Math.max(0, box.scrollTop - box.clientHeight * 6);
    await pause();
  }
  return [...seen.values()].join("\n");
});

test(`there are at least 100 payloads (${payloads.length})`, async () => { assert(payloads.length >= 100, `${payloads.length}`); });

groups.forEach((group, g) => test(`payloads ${g * GROUP + 1} to ${g * GROUP + group.length} are text in every field of a transcript`, async () => {
  await begin();
  const id = await server.conversation(group[0].text.slice(0, 4000));
  for (const [k, p] of group.entries()) {
    await server.append(id, messages(p, k));
    await server.append(id, displays(p, k), "?format=toolmessage2");
  }
  const w = await window_(`/c/${encodeURIComponent(id)}`);
  await w.page.waitForSelector(`.talk[data-id="${id}"] #transcript article`);
  // A block may show what arrives with a later answer: then it is read again.
  await holds(async () => {
    const text = await seenText(w);
    for (const p of group) {
      // A field may be cut after its first letters, and large results are excerpts; the marks of all
      // fields are counted.
      const wanted = p.text.indexOf(p.mark) < 0 ? 0 : p.text.indexOf(p.mark) < 60 ? 20 : 6;
      const found = text.split(p.mark).length - 1;
      assert(found >= wanted, `${p.mark} is seen ${found} times: ${JSON.stringify(p.text.slice(0, 80))}`);
    }
  });
  await harmless(w, "transcript");
}));

test("characters that would reorder or hide text are made visible", async () => {
  await begin();
  const id = await server.conversation("Bidi", [{ role: "user", content: "safe\u202egnp.exe\u2066 and \u200b zero \x07 bell \x1b[31mred" }]);
  const w = await window_(`/c/${id}`);
  await w.page.waitForSelector(`.talk[data-id="${id}"] article .odd`);
  await holds(async () => { const marks = await w.page.$$eval("article .odd", (all) => all.map((e) => e.textContent)); for (const m of ["U+202E", "U+2066", "U+200B", "␇", "␛"]) assert(marks.includes(m), `${m} in ${marks}`); });
});

test("payloads in an output are text: lines, matches, hint and link", async () => {
  await begin();
  const lines = payloads.map((p, i) => p.replace("%M", `L${i}l`).replace(/\n/g, " ")).map((l) => [...l].slice(0, 1900).join(""));
  const id = await server.conversation("Output", [{ role: "user", content: "x" }, { role: "assistant", content: "", tool_calls: [{ id: "<img src=x onerror=alert(1)>", type: "function", function: { name: "<b>tool</b>", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "<img src=x onerror=alert(1)>", content: lines.join("\n") + "\n" + "filler\n".repeat(3000) }]);
  const ref = (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0].id;
  const w = await window_(`/c/${id}/o/${ref}`);
  await w.page.waitForSelector(".line-row");
  let seen = "";
  for (let y = 0; y < lines.length; y += 20) {
    await w.page.$eval("#lines", (e, t) => { e.scrollTop = t; }, y * 20);
    await until("lines", () => w.page.evaluate((n) => { const r = document.querySelector(`.line-row[data-line='${n}'] .content`); return r && r.textContent !== "…"; }, Math.min(y + 20, lines.length)));
    seen += await w.page.textContent("#lines");
  }
  for (let i = 0; i < lines.length; i++) if (lines[i].includes(`L${i}l`)) assert(seen.includes(`L${i}l`), `line ${i + 1}`);
  for (const q of ["<script>", "onerror=", "\\x1b", "(?i)svg", "%"]) {
    await w.page.fill("#find", q);
    await w.page.press("#find", "Enter");
    await until("searched", async () => /\d of|no match/.test(await w.page.textContent(".hits")));
  }
  await harmless(w, "output");
});

test("payloads that stream in live are text as well", async () => {
  await begin();
  const some = payloads.map((p, i) => p.replace("%M", `S${i}s`)).filter((p) => p.length < 2000);
  const id = await server.conversation("Live", []);
  model.play(async (_, r) => {
    for (const p of some.slice(0, 60)) { r.thinking(p); await r.text(p + "\n"); }
    r.call(some[0].slice(0, 60), { x: some[1] });
    r.call("execute_command", { shell: `echo ${some[2]}` });
    r.end();
  });
  model.play(async (_, r) => { for (const p of some.slice(60)) await r.text(p + "\n"); r.end(); });
  const w = await window_(`/c/${id}`);
  await w.page.waitForSelector(`.talk[data-id="${id}"] #composer`);
  await w.page.fill("#composer", `go ${some[3]}`);
  await w.page.press("#composer", "Enter");
  await w.page.waitForSelector("[data-act=approve]");
  await harmless(w, "approval");
  await w.page.click("[data-act=deny]");
  await until("the end", async () => !(await w.page.$(".working")) && (await w.page.$$("article")).length >= 3);
  await holds(async () => {
    const text = await w.page.textContent("#transcript");
    for (const i of [0, 10, 30]) assert(text.includes(`S${payloads.findIndex((p) => p.replace("%M", "") === some[i].replace(/S\d+s/, ""))}s`), `payload ${i}`);
  });
  await harmless(w, "live");
  await server.atRest();
});

test("payloads are text in the list, at home, in a timeline, in a search, in the tray and in the trash", async () => {
  await begin();
  const some = payloads.filter((p) => p.includes("%M") && p.length < 900).filter((_, i) => i % 9 === 0).slice(0, 12).map((p, i) => p.replace("%M", `V${i}v`));
  const ids = [];
  for (const [i, p] of some.entries()) {
    const name = [...p].slice(0, 200).join("");
    ids.push(await server.conversation(i % 2 ? p.slice(0, 3000) : "", [{ role: "user", content: p }, { role: "assistant", content: p, tool_calls: [{ id: `v${i}`, type: "function", function: { name: `n ${name}`, arguments: JSON.stringify({ path: p, command: p }) } }] }, { role: "tool", tool_call_id: `v${i}`, content: `error ${p}`, isError: true }]));
  }
  const w = await window_("/");
  await w.page.waitForSelector(".home-rows li");
  await until("the list", async () => (await w.page.$$(".list li")).length > 3);
  await harmless(w, "home");
  const to = (path) => w.page.evaluate(([t, p]) => { location.hash = `#token=${t}&${p}`; }, [server.token, path]);
  for (const [i, id] of ids.entries()) {
    await to(`/c/${encodeURIComponent(id)}/timeline`);
    await until("its rows", () => w.page.evaluate((x) => !!document.querySelector(`[data-time="${x}"]`), `v${i}`));
  }
  await harmless(w, "timeline");
  await until("it is indexed", async () => (await server.api("GET", "/api/search?q=error")).items.length >= 5);
  await to("/search/error");
  await w.page.waitForSelector("[data-hit] mark");
  await harmless(w, "search");
  model.play(async (_, r) => { r.call("execute_command", { shell: some.join("\n").slice(0, 5000), [some[0]]: some[1], env: { [some[2]]: some[3] } }); r.end(); });
  void server.api("POST", "/api/chatbot", { sessionId: ids[0], message: "go", stream: false }).catch(() => {});
  await w.page.waitForSelector("[data-act=tray]:not([hidden])");
  await w.page.click("[data-act=tray]");
  await w.page.waitForSelector("#tray [data-approval]");
  await w.page.evaluate(() => document.querySelectorAll("#tray details").forEach((d) => { d.open = true; }));
  await harmless(w, "tray");
  await w.page.click("#tray [data-act=deny]");
  await until("answered", async () => !(await server.api("GET", "/api/approvals")).items.length);
  for (const id of ids.slice(1, 4)) await server.api("DELETE", `/api/chat-sessions/${encodeURIComponent(id)}`);
  await to("/trash");
  await until("the trash", async () => (await w.page.$$(".trash-rows li")).length >= 3);
  await harmless(w, "trash");
});

test("hostile addresses of the page have no effect", async () => {
  await begin();
  const paths = ["/c/<img src=x onerror=alert(1)>", "/c/%00", "/c/..%2f..%2fetc", "/c/x/o/<svg onload=alert(1)>/L99999999999999999999/q/<script>", "javascript:alert(1)", "/c/%E0%A4%A", "/c/__proto__/m/constructor@NaN", "/search/<img src=x onerror=alert(1)>", "/c/x/k/<b>@-1", "/c/x/timeline/<script>"];
  // The first address is loaded; the others are reached by navigation.
  const w = await openWindow(server, { path: paths[0] });
  await w.page.waitForSelector(".top");
  for (const path of paths) {
    await w.page.evaluate(([t, p]) => { location.hash = `#token=${t}&${p}`; }, [server.token, path]);
    await w.page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
    equal(w.dialogs.join() + w.foreign.join(), "", path);
    equal(await w.page.evaluate(() => window.__pwned), undefined, path);
    assert(await w.page.$(".top"), `${path}: the page stands`);
  }
  await w.close();
});

test("the policy alone would stop the payloads, if the page had a mistake", async () => {
  await begin();
  const w = await openWindow(server, { fresh: true });
  await w.page.waitForSelector(".top");
  const stopped = await w.page.evaluate(() => {
    try { const d = document.createElement("div"); d.innerHTML = "<b>x</b>"; return "innerHTML worked"; } catch (e) { return e.name; }
  });
  equal(stopped, "TypeError");
  const script = await w.page.evaluate(() => {
    try { const s = document.createElement("script"); s.text = "window.__e = 1"; document.body.append(s); return window.__e ? "it ran" : "it did not run"; } catch (e) { return e.name; }
  });
  equal(script, "TypeError");
  const image = await w.page.evaluate(() => new Promise((r) => { const i = new Image(); i.onload = () => r("loaded"); i.onerror = () => r("blocked"); i.src = "http://evil.test/x.png"; }));
  equal(image, "blocked");
  await w.close();
});

await runTests();
