// Which conversation a request becomes part of, for every API that the gateway understands: each request
// gets into the right one, and there is no false fork, also when the server is killed in between.
import { createServer, request } from "node:http";
import { main, ok, pick, random, rounds, same, sleep, test, until } from "../http/lib.mjs";
import { needTypes } from "../strict/judges.mjs";
import { conversations, recorded, shown, world } from "./world.mjs";

needTypes();

// How each API spells a history: the same dialogue in four forms.
const apis = {
  openai: {
    path: () => "/chat/completions",
    user: (text) => ({ role: "user", content: text }),
    body: (messages, system) => ({ model: "m", messages: system ? [{ role: "system", content: system }, ...messages] : messages }),
    reply: (r) => [{ role: "assistant", content: r.choices[0].message.content }],
    // Another spelling of the same message.
    respell: (m) => (typeof m.content === "string" ? { content: [{ text: m.content, type: "text" }], role: m.role } : m),
  },
  responses: {
    path: () => "/responses",
    user: (text) => ({ role: "user", content: text }),
    body: (input, system) => ({ model: "m", input, store: false, ...(system && { instructions: system }) }),
    reply: (r) => r.output,
    respell: (m) => (m.role === "user" ? { type: "message", role: "user", content: [{ type: "input_text", text: typeof m.content === "string" ? m.content : m.content[0].text }] } : m),
  },
  anthropic: {
    path: () => "/v1/messages",
    user: (text) => ({ role: "user", content: text }),
    body: (messages, system) => ({ model: "m", max_tokens: 10, messages, ...(system && { system }) }),
    reply: (r) => [{ role: "assistant", content: r.content }],
    respell: (m) => (typeof m.content === "string" ? { role: m.role, content: [{ type: "text", text: m.content, cache_control: { type: "ephemeral" } }] } : m),
  },
  gemini: {
    path: () => "/v1beta/models/m:generateContent",
    user: (text) => ({ role: "user", parts: [{ text }] }),
    body: (contents, system) => ({ contents, ...(system && { systemInstruction: { parts: [{ text: system }] } }) }),
    reply: (r) => [r.candidates[0].content],
    respell: (m) => ({ parts: m.parts, role: m.role }),
  },
};

// A request on a connection of its own: fetch() of this Node.js may wait for ever when the server dies.
const post = (url, headers, body) => new Promise((done, fail) => {
  const req = request(url, { method: "POST", headers, agent: false }, (res) => {
    let text = "";
    res.on("data", (d) => { text += d; });
    res.on("end", () => done({ status: res.statusCode, text }));
    res.on("error", fail);
    res.on("aborted", () => fail(new Error("cut")));
  });
  req.on("error", fail);
  req.end(body);
});

async function asker(name, say) {
  let n = 0;
  const w = await world(name, say ?? (() => ({ text: `reply ${++n}` })));
  const api = apis[name];
  const ask = async (messages, { system, headers = {}, more = {} } = {}) => {
    const r = await post(w.s.url + w.prefix + api.path(), { authorization: `Bearer ${w.s.token}`, "content-type": "application/json", ...headers },
      JSON.stringify({ ...api.body(messages, system), ...more }));
    ok(r.status === 200, "answered", r.status, r.text);
    return api.reply(JSON.parse(r.text));
  };
  return { ...w, api, ask };
}
const texts = (messages) => messages.filter(shown).filter((m) => m.role !== "system" && m.type !== "reasoning").map((m) => {
  const content = m.content ?? m.parts ?? [];
  return typeof content === "string" ? content : content.map((c) => c.text ?? "").join("");
}).join("|");

for (const name of Object.keys(apis)) {
  test(`${name}: histories that are spelled differently each time stay one conversation`, async () => {
    const w = await asker(name);
    const history = [];
    for (let i = 0; i < 4; i++) {
      history.push(w.api.user(`question ${i}`));
      const sent = history.map((m) => (random(2) ? w.api.respell(m) : m));
      history.push(...await w.ask(sent, { system: "be brief" }));
    }
    const list = await recorded(w);
    same(list.map((c) => texts(c.messages)), [texts(history)], "one conversation");
    same(w.e.refusals, [], "refused");
    w.end();
  });

  test(`${name}: forty sessions at once with one prompt are forty conversations, and no fork`, async () => {
    const w = await asker(name);
    const sessions = Array.from({ length: rounds(800) }, () => []);
    for (let turn = 0; turn < 3; turn++)
      await Promise.all(sessions.map(async (history, i) => {
        history.push(w.api.user(turn === 0 ? "hello" : `${i}: ${turn}`));
        history.push(...await w.ask([...history], { system: "shared" }));
      }));
    const list = await recorded(w);
    same(list.map((c) => texts(c.messages)).sort(), sessions.map(texts).sort(), "histories");
    w.end();
  });

  test(`${name}: a random tree of edits and repetitions has a conversation for each branch`, async () => {
    const w = await asker(name);
    const branches = [];
    const first = [w.api.user("root")];
    first.push(...await w.ask([...first]));
    branches.push(first);
    await recorded(w);
    for (let i = 0; i < 12; i++) {
      const from = pick(branches);
      const edit = from.length > 2 && random(3) === 0;
      const history = edit ? from.slice(0, 2) : [...from];
      history.push(w.api.user(`step ${i}`));
      history.push(...await w.ask([...history]));
      if (edit) branches.push(history);
      else branches[branches.indexOf(from)] = history;
      await recorded(w);
    }
    same((await recorded(w)).map((c) => texts(c.messages)).sort(), branches.map(texts).sort(), "branches");
    w.end();
  });

  test(`${name}: a request for a title inside a named session does not become part of it`, async () => {
    const w = await asker(name);
    const headers = { "x-session-id": "s1" };
    const title = await w.ask([w.api.user("hello")], { system: "make a title", headers });
    const history = [w.api.user("hello")];
    history.push(...await w.ask([...history], { system: "main", headers }));
    await w.ask([...history, w.api.user("and a better title?")], { system: "make a title", headers });
    history.push(w.api.user("go on"));
    history.push(...await w.ask([...history], { system: "main", headers }));
    const list = (await recorded(w)).map((c) => texts(c.messages));
    ok(list.includes(texts(history)), "the session is whole", list);
    same(list.length, 3, "each title is apart");
    ok(title.length > 0, "a title");
    w.end();
  });

  test(`${name}: x-steno-conversation names the conversation, whatever the history`, async () => {
    const w = await asker(name);
    const headers = { "x-steno-conversation": "mine" };
    await w.ask([w.api.user("one")], { headers });
    await w.ask([w.api.user("two")], { headers });
    const list = await recorded(w);
    same(list.map((c) => [c.id, texts(c.messages)]), [["mine", "one|reply 1|two|reply 2"]], "one conversation");
    w.end();
  });
}

test("responses: previous_response_id and item references stand for what was recorded", async () => {
  const w = await asker("responses");
  const ask = async (body) => {
    const r = await fetch(`${w.s.url}/openai/v1/responses`, { method: "POST", body: JSON.stringify({ model: "m", ...body }),
      headers: { authorization: `Bearer ${w.s.token}`, "content-type": "application/json" } });
    return r.json();
  };
  w.e.lenient = true;
  const first = await ask({ input: "one" });
  await recorded(w);
  w.e.refusals.length = 0;
  await ask({ input: "two", previous_response_id: first.id });
  let list = await recorded(w);
  same(list.length, 1, "one conversation");
  const items = first.output.map((o) => ({ type: "item_reference", id: o.id }));
  await ask({ input: [{ role: "user", content: "one" }, ...items, { role: "user", content: "three" }] });
  list = await recorded(w);
  same(list.length, 2, "the reference is the recorded item, so this is a fork");
  ok(list.some((c) => texts(c.messages).startsWith("one|reply 1|three")), "with the item itself", list.map((c) => texts(c.messages)));
  w.end();
});

// Requests that send only what is new, to endpoints whose judges know only whole histories.
async function naming(name, say) {
  const w = await asker(name, say);
  w.e.judge = () => [];
  const send = async (body, headers = {}) => {
    const r = await post(w.s.url + w.prefix + w.api.path(), { authorization: `Bearer ${w.s.token}`, "content-type": "application/json", ...headers },
      JSON.stringify({ model: "m", ...body })).catch(() => null);
    const list = (await recorded(w)).map((c) => texts(c.messages)).sort();
    return { id: r?.status === 200 ? JSON.parse(r.text).id : null, list };
  };
  return { ...w, send };
}

test("previous_response_id of an answer that was continued already makes a fork, and a repeated request does not", async () => {
  let n = 0;
  const w = await naming("responses", (body) => (JSON.stringify(body.input).includes("fails") && n++ === 0 ? { text: "lost", cut: true } : { text: `reply ${body.input}` }));
  const one = await w.send({ input: "one" });
  const two = await w.send({ input: "two", previous_response_id: one.id });
  same(two.list, ["one|reply one|two|reply two"], "one conversation");
  const other = await w.send({ input: "other", previous_response_id: one.id });
  same(other.list, ["one|reply one|other|reply other", "one|reply one|two|reply two"], "a fork");
  await w.send({ input: "fails", previous_response_id: two.id });
  const again = await w.send({ input: "fails", previous_response_id: two.id });
  same(again.list, ["one|reply one|other|reply other", "one|reply one|two|reply two|fails|reply fails"], "the second attempt");
  const on = await w.send({ input: "three", previous_response_id: again.id });
  same(on.list.at(-1), "one|reply one|two|reply two|fails|reply fails|three|reply three", "and what follows it");
  w.end();
});

test("a conversation of the endpoint is one conversation here, whether it is named by a string or an object", async () => {
  const w = await naming("responses", (body) => ({ text: `reply ${body.input}` }));
  await w.send({ input: "a1", conversation: "conv_theirs" });
  await w.send({ input: "b1", conversation: { id: "conv_other" } });
  await w.send({ input: "a2", conversation: { id: "conv_theirs" } });
  const { list } = await w.send({ input: "b2", conversation: "conv_other" });
  same(list, ["a1|reply a1|a2|reply a2", "b1|reply b1|b2|reply b2"], "two conversations");
  w.end();
});

test("thread.previous_message_id of Messages stands for what was recorded", async () => {
  const w = await naming("anthropic", (body) => ({ text: `reply ${body.messages.at(-1).content}` }));
  const ask = (text, thread) => w.send({ max_tokens: 9, thread, messages: [{ role: "user", content: text }] }, { "anthropic-beta": "message-threads-2026-08-12" });
  let r = await ask("one", { type: "create" });
  for (const text of ["two", "three"]) r = await ask(text, { type: "continue", previous_message_id: r.id });
  same(r.list, ["one|reply one|two|reply two|three|reply three"], "one conversation");
  w.end();
});

test("a session in metadata.user_id counts as a session, and a user's name does not", async () => {
  const uuid = (c) => `${c.repeat(8)}-1111-4111-8111-111111111111`;
  const spelled = [(id) => `user_abc_account__session_${id}`, (id) => JSON.stringify({ device_id: "d", session_id: id })];
  for (const spell of spelled) {
    const w = await asker("anthropic");
    const say = (history, session, system) => w.ask(history, { system, more: { metadata: { user_id: spell(uuid(session)) } } });
    const a = [w.api.user("hello")], b = [w.api.user("hello")];
    a.push(...await say([...a], "a", "main"));
    await recorded(w);
    await say([...a, w.api.user("a title, please")], "a", "make a title");
    b.push(...await say([...b], "b", "main"));
    a.push(w.api.user("go on"));
    a.push(...await say([...a], "a", "main"));
    const list = await recorded(w);
    const got = list.map((c) => texts(c.messages));
    ok(got.includes(texts(a)) && got.includes(texts(b)) && got.length === 3, "the title stands apart", got);
    w.end();
  }
  const w = await asker("anthropic");
  const history = [w.api.user("hello")], more = { metadata: { user_id: "somebody" } };
  history.push(...await w.ask([...history], { system: "x", more }));
  history.push(w.api.user("again"));
  history.push(...await w.ask([...history], { system: "another prompt", more }));
  same((await recorded(w)).map((c) => texts(c.messages)), [texts(history)], "a person's name makes no session");
  w.end();
});

test("a request for a compaction is not a turn, and the conversation after it names the one before", async () => {
  for (const header of [true, false]) {
    const w = await naming("responses", (body) => ({ text: `reply ${JSON.stringify(body.input).length}` }));
    const meta = (kind) => ({ "thread-id": "t1", ...(header && { "x-codex-turn-metadata": JSON.stringify({ request_kind: kind }) }) });
    const input = [{ role: "developer", content: "prompt" }, { role: "user", content: "work" }];
    await w.send({ input }, meta("turn"));
    const [first] = await recorded(w);
    const reply = first.messages.find((m) => m.role === "assistant");
    const history = [...input, { type: "message", role: "assistant", content: reply.content }];
    await w.send({ input: [...history, header ? { role: "user", content: "sum it up" } : { type: "compaction_trigger" }] }, meta("compaction"));
    await w.send({ input: [{ role: "developer", content: "another prompt" }, { role: "user", content: "the summary" }] }, meta("turn"));
    const list = await recorded(w);
    const now = list.find((c) => c.id === first.id);
    same(texts(now.messages), texts(first.messages), "the session's conversation is as it was");
    const after = list.find((c) => texts(c.messages).includes("the summary"));
    const info = await w.s.must("GET", `/api/chat-sessions/${after.id}`);
    ok(JSON.stringify(info).includes(`"compactedFrom":"${first.id}"`), "where it came from", info);
    w.end();
  }
});

test("a client that continues before the end of an answer is recorded makes no fork", async () => {
  const late = [];
  const up = createServer((req, res) => {
    let text = "";
    req.on("data", (d) => { text += d; });
    req.on("end", () => {
      const n = JSON.parse(text).messages.length;
      const say = (delta, finish_reason = null) => res.write(`data: ${JSON.stringify({ id: `c${n}`, choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
      res.setHeader("content-type", "text/event-stream");
      say({ role: "assistant", content: `reply ${n}` });
      say({}, "stop");
      res.write("data: [DONE]\n\n");
      if (n === 5) res.end();
      else late.push(() => res.end()); // the answer has arrived, and its end has not
    });
  });
  await new Promise((r) => up.listen(0, "127.0.0.1", r));
  const w = await asker("openai");
  w.s.kill();
  await w.s.over;
  w.s.configure({ upstreams: { openai: { url: `http://127.0.0.1:${up.address().port}`, key: "k" } } });
  await w.s.start();
  const history = [];
  for (let turn = 0; turn < 3; turn++) {
    history.push({ role: "user", content: `q${turn}` });
    const r = await fetch(`${w.s.url}/openai/v1/chat/completions`, { method: "POST", body: JSON.stringify({ model: "m", stream: true, messages: history }),
      headers: { authorization: `Bearer ${w.s.token}`, "content-type": "application/json" } });
    let text = "";
    for await (const d of r.body) {
      text += Buffer.from(d);
      if (text.includes("[DONE]")) break;
    }
    history.push({ role: "assistant", content: /reply \d/.exec(text)[0] });
  }
  await until("the last one", async () => (await conversations(w.s)).length > 0);
  for (const end of late.reverse()) {
    end();
    await sleep(50);
  }
  const list = await recorded(w);
  same(list.map((c) => texts(c.messages)), [texts(history)], "one conversation");
  up.closeAllConnections();
  up.close();
  w.end();
});

test("kill -9 at any moment, with eight clients that retry: every conversation whole, nothing twice", async () => {
  const w = await asker("openai");
  for (let round = 0; round < rounds(200); round++) {
    const sessions = Array.from({ length: 8 }, (_, i) => [w.api.user(`round ${round}, client ${i}`)]);
    let dead = 0, starting = null, killed = null;
    const timer = setTimeout(() => { killed = w.s.over; w.s.kill(); }, random(120));
    const restart = () => {
      if (!w.s.child) starting ??= w.s.start().then(() => { starting = null; });
      return starting;
    };
    await Promise.all(sessions.map(async (history) => {
      for (let turn = 0; turn < 2;) {
        try {
          const reply = await w.ask([...history]);
          history.push(...reply);
          if (++turn < 2) history.push(w.api.user("and then?"));
        } catch {
          dead++;
          await restart();
          await sleep(5);
        }
      }
    }));
    clearTimeout(timer);
    await killed; // it may have come after the last answer
    await restart();
    const list = await recorded(w);
    const got = list.map((c) => texts(c.messages));
    for (const history of sessions)
      same(got.filter((g) => g.startsWith(texts(history.slice(0, 1)))).filter((g) => g === texts(history)).length, 1,
        `round ${round}: ${texts(history)} (${dead} requests failed) among ${JSON.stringify(got.filter((g) => g.startsWith(texts(history.slice(0, 1)))))}`);
  }
  w.end();
});

await main();
