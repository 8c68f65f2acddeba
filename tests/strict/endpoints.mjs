// The strict endpoints are what they say: the providers' own clients understand their replies, streamed
// and not; a history that a judge refuses gets a 400 that the client takes as its BadRequestError; and
// the lenient ones notice what became of their opaque members.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { needTypes, providers } from "./judges.mjs";
import { Endpoint } from "./server.mjs";
import { done, here, pooled, report, shown } from "./tap.mjs";

needTypes();
const npm = createRequire(join(here, "../npm/package.json"));
const load = (name) => import(pathToFileURL(npm.resolve(name)).href);
const { default: OpenAI } = await load("openai7");
const { default: Anthropic } = await load("@anthropic-ai/sdk");
const { GoogleGenAI } = await load("@google/genai");

// Each sends a request with the provider's client and returns {text, calls: [{id, name, args}]}.
const clients = {
  openai: (url) => {
    const c = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });
    const read = (m) => ({
      text: m.content ?? "",
      calls: (m.tool_calls ?? []).map((t) => ({
        id: t.id,
        name: t.function.name,
        args: JSON.parse(t.function.arguments),
      })),
      message: m,
    });
    return async (messages, stream) =>
      stream
        ? read(
            (await c.chat.completions.stream({ model: "m", messages }).finalChatCompletion()).choices[0]
              .message,
          )
        : read((await c.chat.completions.create({ model: "m", messages })).choices[0].message);
  },
  responses: (url) => {
    const c = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });
    const read = (r) => ({
      text: r.output_text,
      calls: r.output
        .filter((i) => i.type === "function_call")
        .map((i) => ({ id: i.call_id, name: i.name, args: JSON.parse(i.arguments) })),
      items: r.output,
    });
    return async (input, stream) =>
      read(
        stream
          ? await c.responses.stream({ model: "m", input }).finalResponse()
          : await c.responses.create({ model: "m", input }),
      );
  },
  anthropic: (url) => {
    const c = new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 });
    const read = (m) => ({
      text: m.content
        .filter((b) => b.type === "text")
        .map((b) => b.text)
        .join(""),
      calls: m.content
        .filter((b) => b.type === "tool_use")
        .map((b) => ({ id: b.id, name: b.name, args: b.input })),
      content: m.content,
    });
    return async (messages, stream) =>
      read(
        stream
          ? await c.messages.stream({ model: "m", max_tokens: 9, messages }).finalMessage()
          : await c.messages.create({ model: "m", max_tokens: 9, messages }),
      );
  },
  gemini: (url) => {
    const c = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: url } });
    const read = (parts) => ({
      text: parts
        .filter((p) => p.text && !p.thought)
        .map((p) => p.text)
        .join(""),
      calls: parts.filter((p) => p.functionCall).map((p) => p.functionCall),
      parts,
    });
    return async (contents, stream) => {
      if (!stream)
        return read((await c.models.generateContent({ model: "m", contents })).candidates[0].content.parts);
      const parts = [];
      for await (const piece of await c.models.generateContentStream({ model: "m", contents }))
        parts.push(...piece.candidates[0].content.parts);
      return read(parts.filter((p) => p.text !== ""));
    };
  },
};
const hello = {
  openai: [{ role: "user", content: "Hello" }],
  responses: [{ role: "user", content: "Hello" }],
  anthropic: [{ role: "user", content: "Hello" }],
  gemini: [{ role: "user", parts: [{ text: "Hello" }] }],
};

for (const p of providers)
  for (const stream of [false, true]) {
    const how = stream ? "streamed" : "whole";
    const e = await new Endpoint(
      p,
      (_, n) =>
        [
          { text: "It is done.", thinking: "hm" },
          { text: "I look.", calls: [{ name: "f", args: { a: [1, "ü"] } }, { name: "g" }] },
          { error: { status: 500, message: "broken" } },
          { text: "cut in the middle", cut: true },
        ][n],
    ).start();
    const ask = clients[p](e.url);
    const text = await ask(hello[p], stream);
    report(text.text === "It is done.", `${p}: its client reads a ${how} text`, [text]);
    const called = await ask(hello[p], stream);
    report(
      called.text === "I look." &&
        called.calls.length === 2 &&
        called.calls[0].name === "f" &&
        JSON.stringify(called.calls[0].args) === '{"a":[1,"ü"]}',
      `${p}: its client reads ${how} parallel calls`,
      [called],
    );
    const failed = await ask(hello[p], stream).catch((x) => x);
    report(failed.status === 500, `${p}: its client sees an error as one, asked for ${how}`, [
      String(failed),
    ]);
    const cut = await ask(hello[p], stream).then(
      () => null,
      (x) => x,
    );
    report(cut !== null, `${p}: its client sees a cut, asked for ${how}`);
    report(e.refusals.length === 0, `${p}: the endpoint refuses nothing of that`, e.refusals);
    e.stop();
  }

// Every history of the corpus is sent: 400 where a judge refuses, 200 where it accepts.
for (const p of providers) {
  const corpus = readFileSync(join(here, "corpus", `${p}.jsonl`), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const e = await new Endpoint(p, () => ({ text: "ok" })).start();
  const send = (h) =>
    ({
      openai: () => ["/v1/chat/completions", { model: "m", messages: h }],
      responses: () => ["/v1/responses", { model: "m", input: h }],
      anthropic: () => [
        "/v1/messages",
        { model: "m", max_tokens: 9, ...(Array.isArray(h) ? { messages: h } : h) },
      ],
      gemini: () => ["/v1beta/models/m:generateContent", { contents: h }],
    })[p]();
  const wrong = (
    await pooled(corpus, async (c) => {
      const [path, body] = send(c.history);
      const r = await fetch(e.url + path, { method: "POST", body: JSON.stringify(body) });
      const said = await r.json();
      const endsWithModel =
        ["anthropic", "gemini"].includes(p) &&
        ["assistant", "model"].includes((c.history.messages ?? c.history).at(-1)?.role);
      const want = c.verdict === "ok" && !endsWithModel ? 200 : 400;
      return r.status === want && (want === 200 || typeof said.error.message === "string")
        ? null
        : `${c.name}: ${r.status} ${shown(said, 300)}`;
    })
  ).filter(Boolean);
  report(
    wrong.length === 0,
    `${p}: the endpoint answers 400 to what the corpus refuses, and 200 to the rest that ends with the user`,
    wrong,
  );
  e.stop();
}

// The lenient endpoints accept a reply that comes back whole, and refuse one without its opaque members
// or from another endpoint.
const again = {
  openai: (r, drop) => [
    ...hello.openai,
    drop
      ? {
          role: "assistant",
          content: r.message.content,
          tool_calls: r.message.tool_calls.map(({ id, type, function: f }) => ({ id, type, function: f })),
        }
      : r.message,
    { role: "tool", tool_call_id: r.calls[0].id, content: "x" },
  ],
  responses: (r, drop) => [
    ...hello.responses,
    ...r.items.filter((i) => !drop || i.type !== "reasoning"),
    { type: "function_call_output", call_id: r.calls[0].id, output: "x" },
  ],
  anthropic: (r, drop) => [
    ...hello.anthropic,
    { role: "assistant", content: r.content.filter((b) => !drop || b.type !== "thinking") },
    { role: "user", content: [{ type: "tool_result", tool_use_id: r.calls[0].id, content: "x" }] },
  ],
  gemini: (r, drop) => [
    ...hello.gemini,
    { role: "model", parts: r.parts.map((x) => (drop ? { functionCall: x.functionCall } : x)) },
    { role: "user", parts: [{ functionResponse: { name: "f", id: r.calls[0].id, response: {} } }] },
  ],
};
for (const p of providers) {
  const script = () => ({ calls: [{ name: "f" }] });
  const [a, b] = [
    await new Endpoint(p, script, { lenient: true }).start(),
    await new Endpoint(p, script, { lenient: true }).start(),
  ];
  const r = await clients[p](a.url)(hello[p], true);
  await clients[p](a.url)(again[p](r, false), true);
  report(a.refusals.length === 0, `${p}: a lenient endpoint takes its opaque members back`, a.refusals);
  await clients[p](a.url)(again[p](r, true), true).catch(() => {});
  report(
    a.refusals.some((v) => v.rule === "lost_opaque"),
    `${p}: it notices that they were lost`,
    a.refusals,
  );
  await clients[p](b.url)(again[p](r, false), true).catch(() => {});
  report(
    b.refusals.some((v) => v.rule === "foreign_opaque"),
    `${p}: another one notices that they are not its own`,
    b.refusals,
  );
  a.stop();
  b.stop();
}
done();
