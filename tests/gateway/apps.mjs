// Apps as people write them, with the providers' own clients, in four APIs: a tool called `dump` whose
// result the app chooses, and any other text and calls of the model. They know nothing of Steno.
import { load } from "../http/lib.mjs";

const OpenAI = (await load("openai7")).default;
const Anthropic = (await load("@anthropic-ai/sdk")).default;
const { GoogleGenAI } = await load("@google/genai");

const schema = { type: "object", properties: { n: { type: "integer" } } };
const image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
function inHalves(text) {
  const middle = text.length >> 1;
  const at = text.codePointAt(middle - 1) > 0xffff ? middle + 1 : middle; // not within a character
  return [text.slice(0, at), text.slice(at)];
}

// Each app: `user` and `results` make messages, `ask` sends the history and answers what the app saw:
// {text, calls: [{id, name, args}], usage, finish, back}, where `back` is what the client sends back.
export const apps = {
  openai: {
    list: "messages",
    shapes: { string: (t) => t, part: (t) => [{ type: "text", text: t }], parts: (t) => inHalves(t).map((text) => ({ type: "text", text })) },
    user: (text) => [{ role: "user", content: text }],
    results: (list, shape) => list.map(({ call, text }) => ({ role: "tool", tool_call_id: call.id, content: shape(text) })),
    ask: (w) => {
      const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
      return async (messages, stream, more = {}) => {
        const body = { model: "m", messages, tools: [{ type: "function", function: { name: "dump", parameters: schema } }], ...more };
        const whole = stream ? await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
          : await client.chat.completions.create(body);
        const { message: m, finish_reason } = whole.choices[0];
        const tool_calls = m.tool_calls?.map(({ id, type, function: f }) => ({ id, type, function: { name: f.name, arguments: f.arguments } }));
        return { text: m.content ?? "", calls: (tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, args: JSON.parse(c.function.arguments) })),
          usage: whole.usage?.prompt_tokens, finish: finish_reason, id: whole.id, back: [{ role: "assistant", content: m.content, ...(tool_calls?.length && { tool_calls }) }] };
      };
    },
  },
  responses: {
    list: "input",
    shapes: { string: (t) => t, part: (t) => [{ type: "input_text", text: t }], parts: (t) => inHalves(t).map((text) => ({ type: "input_text", text })),
      image: (t) => [{ type: "input_text", text: t }, { type: "input_image", image_url: `data:image/png;base64,${image}`, detail: "auto" }] },
    user: (text) => [{ role: "user", content: text }],
    results: (list, shape) => list.map(({ call, text }) => ({ type: "function_call_output", call_id: call.id, output: shape(text) })),
    ask: (w) => {
      const client = new OpenAI({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
      return async (input, stream, more = {}) => {
        const body = { model: "m", input, store: false, tools: [{ type: "function", name: "dump", parameters: schema, strict: false }], ...more };
        const r = stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
        const back = r.output.map(({ parsed, parsed_arguments, ...item }) => (item.type === "message"
          ? { ...item, content: item.content.map(({ parsed: p, ...c }) => c) } : item));
        return { text: r.output_text, calls: r.output.filter((o) => o.type === "function_call").map((c) => ({ id: c.call_id, name: c.name, args: JSON.parse(c.arguments) })),
          usage: r.usage.input_tokens, finish: r.status, id: r.id, back };
      };
    },
  },
  anthropic: {
    list: "messages",
    shapes: { string: (t) => t, part: (t) => [{ type: "text", text: t }], parts: (t) => inHalves(t).map((text) => ({ type: "text", text })),
      image: (t) => [{ type: "image", source: { type: "base64", media_type: "image/png", data: image } }, ...inHalves(t).map((text) => ({ type: "text", text }))] },
    user: (text) => [{ role: "user", content: text }],
    results: (list, shape) => [{ role: "user", content: list.map(({ call, text }) => ({ type: "tool_result", tool_use_id: call.id, content: shape(text) })) }],
    ask: (w) => {
      const client = new Anthropic({ baseURL: w.s.url + w.prefix, apiKey: w.s.token, maxRetries: 0 });
      return async (messages, stream, more = {}) => {
        const body = { model: "m", max_tokens: 100, messages, tools: [{ name: "dump", input_schema: schema }], ...more };
        const r = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
        return { text: r.content.map((b) => b.text ?? "").join(""), calls: r.content.filter((b) => b.type === "tool_use").map((b) => ({ id: b.id, name: b.name, args: b.input })),
          usage: r.usage.input_tokens, finish: r.stop_reason, id: r.id, back: [{ role: "assistant", content: r.content }] };
      };
    },
  },
  gemini: {
    list: "contents",
    shapes: { string: (t) => ({ output: t }), object: (t) => ({ result: { lines: t.split("\n") } }) },
    user: (text) => [{ role: "user", parts: [{ text }] }],
    results: (list, shape) => [{ role: "user", parts: list.map(({ call, text }) => ({ functionResponse: { id: call.id, name: call.name, response: shape(text) } })) }],
    ask: (w) => {
      const client = new GoogleGenAI({ apiKey: w.s.token, httpOptions: { baseUrl: w.s.url + w.prefix } });
      return async (contents, stream, { tool_choice, ...more } = {}) => {
        const config = { tools: [{ functionDeclarations: [{ name: "dump", parametersJsonSchema: schema }] }], ...more };
        const body = { model: "gemini-2", contents, config };
        const answers = [];
        if (stream) for await (const c of await client.models.generateContentStream(body)) answers.push(c);
        else answers.push(await client.models.generateContent(body));
        const parts = [];
        for (const p of answers.flatMap((a) => a.candidates?.[0]?.content?.parts ?? [])) {
          const last = parts.at(-1);
          if (p.text === "") continue;
          if (p.text !== undefined && last?.text !== undefined && Boolean(last.thought) === Boolean(p.thought)) last.text += p.text;
          else parts.push({ ...p });
        }
        const said = parts.filter((p) => p.text !== undefined && !p.thought).map((p) => p.text).join("");
        return { text: said, calls: parts.filter((p) => p.functionCall).map((p) => ({ id: p.functionCall.id, name: p.functionCall.name, args: p.functionCall.args })),
          usage: answers.at(-1).usageMetadata.promptTokenCount, finish: answers.at(-1).candidates[0].finishReason, id: answers[0].responseId, back: [{ role: "model", parts }] };
      };
    },
  },
};

// What the last message of a request is, for a model that has to decide: {user} or {results: [...]}.
export function lastOf(provider, body) {
  const text = (c) => (typeof c === "string" ? c : (c ?? []).map((p) => p.text ?? "").join(""));
  if (provider === "openai") {
    const m = body.messages.at(-1);
    return m.role === "tool" ? { results: [text(m.content)] } : { user: text(m.content) };
  }
  if (provider === "responses") {
    const m = Array.isArray(body.input) ? body.input.at(-1) : { content: body.input };
    return m.type === "function_call_output" ? { results: [text(m.output)] } : { user: text(m.content) };
  }
  const m = (body.messages ?? body.contents).at(-1);
  if (provider === "anthropic") {
    const results = Array.isArray(m.content) ? m.content.filter((b) => b.type === "tool_result") : [];
    return results.length ? { results: results.map((b) => text(b.content)) } : { user: text(m.content) };
  }
  const results = m.parts.filter((p) => p.functionResponse).map((p) => p.functionResponse.response);
  return results.length ? { results: results.map((r) => r.output ?? r.error ?? JSON.stringify(r)) } : { user: text(m.parts) };
}

// The names of the tools that a request offers.
export const offered = (body) => (body.tools ?? []).flatMap((t) => t.functionDeclarations ?? [t.function ?? t]).map((t) => t.name);
