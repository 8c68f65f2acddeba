// Endpoints that speak the wire of OpenAI chat completions, OpenAI Responses, Anthropic Messages and
// Gemini generateContent, streamed and not, and answer what a script says. They judge each request:
// what the strict judges of this folder refuse gets a 400 in the provider's own shape.
//
//   const e = await new Endpoint("openai", (request, n) => ({ text: "Hello" })).start();
//   ... e.url, e.requests, e.refusals ...
//   e.stop();
//
// A reply is {text?, thinking?, calls?: [{id?, name, args}], finish?, error?: {status, message,
// retryAfter?}, cut?: true}: an error is answered instead of it, a cut ends a stream in its middle.
//
// With {lenient: true} unknown members pass, and the endpoint adds opaque members to its replies
// (reasoning_content, extra_content and an unknown one; encrypted reasoning; thinking with a signature;
// thought signatures). It remembers them, and refuses a request in which a reply of its own comes back
// without them or with others, or in which those of another endpoint stand.
import { createServer } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { check } from "./judges.mjs";
import { loneSurrogates } from "./text.mjs";
import { wires } from "./wires.mjs";

const foreign = new Map(); // every opaque value that any endpoint of this process gave -> its endpoint
let serial = 0;

export class Endpoint {
  constructor(provider, script, { lenient = false, name = `${provider}${++serial}` } = {}) {
    Object.assign(this, {
      provider,
      script,
      lenient,
      name,
      wire: wires[provider],
      requests: [],
      texts: [], // unchanged
      refusals: [],
      given: [],
      counter: 0,
    });
  }

  async start() {
    this.server = createServer((req, res) =>
      this.take(req, res).catch((e) => {
        this.refusals.push({ rule: "endpoint_broke", text: String(e?.stack ?? e) });
        res.destroy();
      }),
    );
    await new Promise((ready) => this.server.listen(0, "127.0.0.1", ready));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async take(req, res) {
    const pieces = [];
    for await (const p of req) pieces.push(p);
    const path = req.url.split("?")[0];
    if (req.method !== "POST" || !this.wire.path.test(path))
      return this.send(res, 404, this.wire.error(404, `no such route: ${req.method} ${path}`));
    let body, refused;
    try {
      body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(pieces)));
    } catch (e) {
      refused = [{ rule: "body", text: `the body is no JSON: ${e.message}` }];
    }
    if (!refused) refused = this.judge(body, path);
    this.requests.push(body);
    this.texts.push(Buffer.concat(pieces).toString());
    if (refused.length) {
      this.refusals.push(...refused.map((v) => ({ ...v, request: this.requests.length - 1 })));
      return this.send(res, 400, this.wire.error(400, `${refused[0].rule}: ${refused[0].text}`));
    }
    const reply = await this.script(body, this.requests.length - 1);
    if (reply.error)
      return this.send(
        res,
        reply.error.status,
        this.wire.error(reply.error.status, reply.error.message),
        reply.error,
      );
    const whole = this.wire.reply(
      this.complete(reply),
      this.lenient ? (kind) => this.opaque(kind) : null,
      body,
    );
    this.given.push(...(whole.remember ?? []));
    if (this.wire.streams(body, req.url)) this.stream(res, whole.events, reply);
    else if (reply.cut) res.destroy();
    else this.send(res, 200, whole.json);
  }

  // The history strictly, or leniently with the opaque members instead; and the request around it.
  judge(body, path) {
    const history = this.wire.history(body);
    const found = this.lenient
      ? this.judgeOpaque(body)
      : [...check(this.provider, history), ...this.wire.request(body, path)];
    return [
      ...found,
      ...loneSurrogates(body, "request").map((p) => ({
        rule: "lone_surrogate",
        text: `${p} holds half of a surrogate pair`,
      })),
    ];
  }

  judgeOpaque(body) {
    const found = [];
    walk(body, (value) => {
      if (foreign.has(value) && foreign.get(value) !== this.name)
        found.push({
          rule: "foreign_opaque",
          text: `an opaque member of ${foreign.get(value)} went to ${this.name}: ${value}`,
        });
    });
    for (const g of this.given) {
      const back = this.wire.find(body, g);
      if (back && !isDeepStrictEqual(back.opaque, g.opaque))
        found.push({
          rule: "lost_opaque",
          text: `${g.key} came back with ${JSON.stringify(back.opaque)} instead of ${JSON.stringify(g.opaque)}`,
        });
    }
    return found;
  }

  opaque(kind) {
    const value = Buffer.from(`${kind} ${this.counter++} of ${this.name}`).toString("base64");
    foreign.set(value, this.name);
    return value;
  }

  complete(reply) {
    const calls = (reply.calls ?? []).map((c) => ({
      id: `call_${this.name}_${this.counter++}`,
      args: {},
      ...c,
    }));
    return { text: "", finish: null, ...reply, calls, serial: this.counter++ };
  }

  send(res, status, json, { retryAfter } = {}) {
    res.writeHead(status, {
      "content-type": "application/json",
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    });
    res.end(JSON.stringify(json));
  }

  // `cut`: half of it. `until`: the stream stays open behind its last event.
  stream(res, events, { cut, until }) {
    res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    const all = cut ? events.slice(0, Math.ceil(events.length / 2)) : events;
    for (const e of all)
      res.write(
        `${e.event ? `event: ${e.event}\n` : ""}data: ${typeof e.data === "string" ? e.data : JSON.stringify(e.data)}\n\n`,
      );
    if (cut) setImmediate(() => res.destroy());
    else if (until) until.then(() => res.end());
    else res.end();
  }
}

function walk(value, visit) {
  if (typeof value === "string") visit(value);
  else if (value !== null && typeof value === "object") Object.values(value).forEach((v) => walk(v, visit));
}
