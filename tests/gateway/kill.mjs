// kill -9 of the gateway at any moment of a request, in every API, streamed and not, with the providers'
// own clients: what the app saw is recorded, and the app continues as if nothing had happened.
import { load, main, ok, pick, random, rounds, same, test } from "../http/lib.mjs";
import { needTypes } from "../strict/judges.mjs";
import { recorded, stored, world } from "./world.mjs";
import { apps } from "./apps.mjs";

needTypes();
const OpenAI = (await load("openai7")).default;
const Anthropic = (await load("@anthropic-ai/sdk")).default;
const { GoogleGenAI } = await load("@google/genai");

// Streams as apps read them: each piece of text as it comes. If a stream fails, the text that the client
// has already seen is kept.
const listen = {
  openai: async (w, messages, on) => {
    const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
    for await (const c of await client.chat.completions.create({ model: "m", messages, stream: true })) on(c.choices[0]?.delta.content ?? "");
  },
  responses: async (w, input, on) => {
    const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
    for await (const e of await client.responses.create({ model: "m", input, stream: true, store: false })) on(e.type === "response.output_text.delta" ? e.delta : "");
  },
  anthropic: async (w, messages, on) => {
    const client = new Anthropic({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
    for await (const e of await client.messages.create({ model: "m", max_tokens: 9, messages, stream: true })) on(e.delta?.text ?? "");
  },
  gemini: async (w, contents, on) => {
    const client = new GoogleGenAI({ apiKey: w.s.token, httpOptions: { baseUrl: w.s.url + w.prefix } });
    for await (const c of await client.models.generateContentStream({ model: "m", contents })) on(c.candidates?.[0]?.content?.parts?.map((p) => p.text ?? "").join("") ?? "");
  },
};

// When the kill comes: the endpoint was asked, it has sent a part of its answer or all of it, the app
// has seen one word, or all of them.
const MOMENTS = ["asked", "sent", "seen", "ended", "answered"];

// Makes the endpoint strike at its moments. It holds back what would come after. A kill belongs to its
// round: one that comes late does nothing.
function arm(e, now) {
  e.stream = async (res, events) => {
    const { moment, strike } = now;
    res.writeHead(200, { "content-type": "text/event-stream" });
    const at = moment === "sent" ? random(events.length) : moment === "seen" ? events.length - 1 : -1;
    for (const [i, x] of events.entries()) {
      if (i === at) return moment === "sent" && strike();
      res.write(`${x.event ? `event: ${x.event}\n` : ""}data: ${typeof x.data === "string" ? x.data : JSON.stringify(x.data)}\n\n`);
      if (random(2)) await new Promise(setImmediate);
    }
    res.end(() => moment === "ended" && strike());
  };
  e.send = (res, status, json) => {
    const { moment, strike } = now;
    const text = Buffer.from(JSON.stringify(json));
    res.writeHead(status, { "content-type": "application/json", "content-length": text.length });
    if (moment === "sent" || moment === "seen") res.write(text.subarray(0, 1 + random(text.length - 1)), strike);
    else res.end(text, () => moment === "ended" && strike());
  };
}

// One request. Returns what the app saw, and whether it saw everything.
async function ask(w, provider, history, stream, now) {
  const got = { text: "", whole: false };
  try {
    if (stream)
      await listen[provider](w, history, (piece) => {
        got.text += piece;
        if (now.moment === "seen" && got.text) now.strike();
      });
    else got.text = (await apps[provider].ask(w)(history, false, provider === "gemini" ? {} : { tools: undefined })).text;
    got.whole = true;
  } catch (error) {
    got.error = error;
  }
  return got;
}

const texts = (messages) => messages.map((m) => `${m.role}: ${typeof m.content === "string" ? m.content : (m.content ?? []).map((p) => p.text).join("")}`);
const reply = { openai: (t) => [{ role: "assistant", content: t }], responses: (t) => [{ role: "assistant", content: t }],
  anthropic: (t) => [{ role: "assistant", content: t }], gemini: (t) => [{ role: "model", parts: [{ text: t }] }] };

for (const [provider, app] of Object.entries(apps))
  test(`${provider}: kill -9 at any moment loses nothing that the app saw, and the app continues`, async () => {
    let said = 0;
    const now = { moment: null, strike: null };
    const w = await world(provider, () => {
      if (now.moment === "asked") now.strike();
      return { text: `answer ${++said}: ${"Grüße 🙂 \u2028 ".repeat(1 + random(30))}end ${said}` };
    });
    arm(w.e, now);
    let talk, history, story, seen;
    // The conversations of this dialogue: one of them is the app's own history, and one has everything
    // that the app saw.
    const check = async () => {
      const list = await recorded(w, (c) => c.title.startsWith(`${talk}:`));
      const views = [];
      for (const c of list) views.push(texts(await stored(w.s, c.id, "openai")));
      ok(views.some((v) => JSON.stringify(v.slice(0, story.length)) === JSON.stringify(story)), "the app's history", story, views);
      // A part that another attempt replaced is no longer shown, and stays in the log.
      const all = list.map((c) => w.s.log(c.id)).join("");
      for (const s of seen) ok(all.includes(JSON.stringify(s).slice(1, -1)), "what was seen", s, all.slice(-3000));
      ok(list.length <= 1 + seen.length, "no conversation without a cause", list.length, seen.length);
    };
    for (let i = 0; i < Math.ceil(rounds(200) / 4); i++) {
      if (i % 5 === 0) {
        talk = `talk ${i}`;
        [history, story, seen] = [[], [], []];
      }
      history.push(...app.user(`${talk}: turn ${i}`));
      story.push(`user: ${talk}: turn ${i}`);
      const stream = random(4) > 0;
      now.moment = pick(MOMENTS);
      const { child } = w.s;
      now.strike = () => { child.kill("SIGKILL"); };
      const asked = w.e.requests.length;
      let got = await ask(w, provider, history, stream, now);
      now.strike(); // also in the round that answered first
      await w.s.over;
      if (got.text) seen.push(got.text);
      ok(w.e.requests.length === asked + 1, "the endpoint was asked once", now.moment, String(got.error));
      ok(got.whole || ["asked", "sent", "seen", "ended"].includes(now.moment), "a failure without a kill", String(got.error));
      now.moment = null;
      await w.s.start();
      if (!got.whole) {
        got = await ask(w, provider, history, random(2) === 0, now);
        ok(got.whole, "once more", String(got.error));
        seen.push(got.text);
      }
      history.push(...reply[provider](got.text));
      story.push(`assistant: ${got.text}`);
      await check();
    }
    same(w.e.refusals, [], "refused");
    w.s.cli("check");
    w.end();
  });

await main();
