// axe finds no barrier in any view and state, light and dark. The store is small, because axe looks at
// every element.
import { axe, equal, Model, openWindow, runTests, Server, test, until } from "./lib.mjs";

const model = await new Model().start();
const server = new Server("axe", model);
server.config = { prices: { "mock-1": { input: 2, output: 10, cached: 0.5 } } };
const call = (id, name, args = {}) => ({ id, type: "function", function: { name, arguments: JSON.stringify(args) } });
const asks = (content, ...calls) => ({ role: "assistant", content, tool_calls: calls });
const gives = (id, content, more = {}) => ({ role: "tool", tool_call_id: id, content, ...more });
const E = encodeURIComponent;

let me, talk, path, json;
const begin = async () => {
  if (me) return me.page;
  await server.start();
  talk = await server.conversation("A bit of everything", [
    { role: "user", content: "Please **look** at `a.c`.\n\n| a | b |\n|---|---|\n| 1 | [x](https://example.com) |\n\n```c\nint main(void) { return 0; } // fine\n```" },
    { ...asks("I look.", call("c1", "read_file", { path: "a.c", range: { from: 1, to: 20 } })), reasoning_content: "Let me think." },
    gives("c1", JSON.stringify({ lines: 20, nested: { deep: [1, 2, { x: null }] } }), { duration: 12, serverName: "files", steps: ["opened", { text: "read", progress: 1, total: 2 }] }),
    asks("And build.", call("c2", "execute_command", { argv: ["make"] }), call("c3", "lint", { files: ["a.c"] })),
    gives("c2", "cc a.c\n".repeat(900) + "src/a.c:12: error: no such thing\n" + "make: failed\n".repeat(300), { duration: 4321, isError: true, exitCode: 2 }),
    gives("c3", "\u001b[31mred\u001b[0m and \u001b[1;32mbold green\u001b[0m", { duration: 80 }),
    asks("A change.", call("c4", "edit", { file_path: "a.c", old_string: "return 0;\n", new_string: "return 1;\n" }), call("c5", "execute_command", { argv: ["make"] })),
    gives("c4", "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n int main(void) {\n-return 0;\n+return 1;\n", { duration: 3 }), gives("c5", "ok"),
    { role: "assistant", content: "So far", partType: "error", error: { code: "LLM_SERVER", message: "500 from the endpoint", retryable: true } },
  ]);
  json = await server.conversation("JSON", [{ role: "user", content: "go" }, asks("", call("j", "fetch")), gives("j", JSON.stringify({ a: 1, list: Array.from({ length: 4000 }, (_, i) => ({ id: i, name: `n ${i}` })), z: null }))]);
  const gone = await server.conversation("Gone", [{ role: "user", content: "x" }]);
  await server.api("DELETE", `/api/chat-sessions/${gone}`);
  const refOf = async (id) => (await server.api("GET", `/api/chat-sessions/${id}/context`)).items[0].id;
  path = `/c/${E(talk)}/o/${await refOf(talk)}`;
  json = `/c/${E(json)}/o/${await refOf(json)}`;
  model.calls("execute_command", { argv: ["printf", "it ran"] }, "May I?");
  const asking = await server.conversation("Asking", []);
  void server.api("POST", "/api/chatbot", { sessionId: asking, message: "run it", stream: false }).catch(() => {});
  await until("it waits", async () => (await server.api("GET", "/api/approvals")).items.length);
  await until("it is indexed", async () => (await server.api("GET", "/api/search?q=thing")).items.length);
  me = await openWindow(server, { path: "/", width: 1280, height: 800, bypassCSP: true });
  return me.page;
};
const to = (p) => me.page.evaluate(([t, x]) => { location.hash = `#token=${t}&${x}`; }, [server.token, p]);
const there = (selector) => me.page.waitForSelector(selector);

const views = {
  "home, with something that waits": async () => { await to("/"); await there(".home-rows li"); await there(".list li"); },
  "the tray": async (page) => { await page.click("[data-act=tray]"); await there("#tray [data-act=approve]:not(:disabled)"); },
  "a conversation with open calls, a failed one and a menu": async (page) => {
    await page.click("#tray [aria-label=Close]");
    await to(`/c/${E(talk)}`);
    await there("[data-call=c2] .wrong-row");
    for (const c of ["c1", "c3", "c4"]) await page.click(`[data-call=${c}] .tool-head`);
    await there("canvas.tape");
    await page.click("[data-act=menu]");
  },
  "a timeline": async () => { await to(`/c/${E(talk)}/timeline`); await there(".timeline.wide .time-row"); },
  "an output with matches": async () => { await to(`${path}/L5/q/cc`); await there(".matches li"); },
  "an output with its lines wrapped": async (page) => { await page.click("[data-act=wrap]"); await there(".wrapped .line-row"); },
  "an output as JSON": async (page) => { await to(json); await page.waitForSelector("[data-act=json]"); await page.click("[data-act=json]"); await there(".folded-json .j-node"); },
  "a search": async () => { await to("/search/thing"); await there("[data-hit] mark"); },
  "usage": async () => { await to("/usage"); await there("#stats .card"); },
  "the trash": async () => { await to("/trash"); await there(".trash-rows li"); },
  "settings": async () => { await to("/settings"); await there("#settings table"); },
  "a new conversation": async () => { await to("/new"); await there(".welcome #composer"); },
  "what is not there": async (page) => { await to("/c/nowhere"); await page.getByText("There is no such conversation").waitFor(); },
  "the keyboard's help": async (page) => { await page.click("[data-act=help]"); await there("dialog.help[open]"); },
};
for (const [name, go] of Object.entries(views)) test(`axe finds nothing in ${name}, light and dark`, async () => {
  const page = await begin();
  await go(page);
  equal(await axe(page), "", "light");
  await page.emulateMedia({ colorScheme: "dark" });
  equal(await axe(page, true), "", "dark");
  await page.emulateMedia({ colorScheme: "light" });
});
test("axe finds nothing on a phone, in any view", async () => {
  const page = await begin();
  await page.keyboard.press("Escape");
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [p, ready] of [["/", ".home-rows li"], ["/list", ".list li"], [`/c/${E(talk)}`, "[data-call=c2] .wrong-row"], [`/c/${E(talk)}/timeline`, ".time-row"], [`${path}/L5/q/cc`, ".matches li"], [json, ".line-row"],
    ["/search/thing", "[data-hit] mark"], ["/usage", "#stats .card"], ["/trash", ".trash-rows li"], ["/settings", "#settings table"]]) {
    await to(p);
    await there(ready);
    equal(await axe(page), "", p);
  }
  await page.click("[data-act=tray]");
  await there("#tray [data-act=approve]");
  equal(await axe(page), "", "the sheet");
  await page.click("#tray [aria-label=Close]");
  await page.setViewportSize({ width: 1280, height: 800 });
});
test("axe finds nothing in empty views, in views with errors, and while the server is away", async () => {
  const page = await begin();
  await to("/search/nonesuchword");
  await page.getByText("Nothing was found").waitFor();
  equal(await axe(page), "", "nothing found");
  let asked = 0;
  await page.route("**/api/home?**", (r) => ++asked && r.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify({ error: { code: "internal", message: "no" }, request_id: "req_x" }) }));
  await to("/");
  await page.reload();
  await page.getByText("Try again").first().waitFor();
  equal(await axe(page), "", "something is wrong");
  // The page also asks by itself when something changes, and the button may be drawn again meanwhile.
  const again = () => page.evaluate(() => document.querySelector("[data-act=again]")?.click());
  const before = asked;
  await until("asked again", async () => { await again(); return asked > before; });
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await until("loaded", async () => { await again(); return page.$(".home-head"); });
  me.complaints = me.complaints.filter((c) => !/500/.test(c));
  const bare = await new Server("bare").start("--no-tools");
  const other = await openWindow(bare, { path: "/", bypassCSP: true });
  await other.page.getByText("There is nothing here yet").waitFor();
  equal(await axe(other.page), "", "an empty store");
  await bare.kill();
  await other.page.waitForSelector(".state:not(.state-live)");
  equal(await axe(other.page), "", "the server is away");
  await other.page.close();
});
test("axe finds nothing where a token is asked for", async () => {
  const page = await begin();
  equal(me.complaints.filter((c) => !/404/.test(c)).join(), "", "complaints so far");
  await page.goto("about:blank");
  await page.goto(`${server.origin}/#/usage`);
  await page.waitForSelector("#token");
  equal(await axe(page), "", "light");
  equal(me.foreign.join(), "", "foreign requests");
});

await runTests();
