// index.js - the library for Node.js: stores, conversations, views, outputs.
//
// Every method returns a promise; the work is done on threads of Node's pool, so the event loop
// never waits for a disk. Failures are StenoError with the code of steno.h as a word ("conflict",
// "not found") and its number in errno.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const native = require(process.env.STENO_NODE ?? './steno.node');

export class StenoError extends Error {
  constructor(code, message, errno) {
    super(message);
    this.name = 'StenoError';
    this.code = code;
    this.errno = errno;
  }
}

async function call(name, handle, text = [], numbers = []) {
  try {
    return await native.call(name, handle, text, numbers.map((n) => Number(n ?? 0)));
  } catch (e) {
    if (e.errno === undefined) throw e;
    const error = new StenoError(e.code, e.message, e.errno);
    throw error;
  }
}

const json = (value) => (value === undefined || value === null ? null
  : typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value));

const APPEND = { record: 1, expectSeq: 2, keepOutputs: 4, anew: 32 };
const OUTPUTS = { default: 0, stub: 1, full: 2 };

function flagsOf(options) {
  let flags = 0;
  for (const [name, bit] of Object.entries(APPEND)) if (options[name]) flags |= bit;
  return flags;
}

export async function version() {
  return (await call('version', null)).json;
}

/** Opens a store; makes it on first use, unless `existing` is set. */
export async function open(url, { existing = false, sealKey = null } = {}) {
  return new Store(await call('open', null, [url, sealKey], [existing ? 1 : 0]));
}

/** A history from one format to another. */
export async function convert(messages, { from = null, to, strict = false }) {
  const answer = await call('convert', null, [from, to, json(messages)], [strict ? 1 : 0]);
  return { messages: JSON.parse(answer.json), report: JSON.parse(answer.report) };
}

/** What a provider would have against a history: an empty array when it is acceptable. */
export async function checkHistory(provider, messages) {
  return JSON.parse((await call('checkHistory', null, [provider, json(messages)])).json);
}

class Handle {
  #external;

  constructor(external) {
    this.#external = external;
  }

  get handle() {
    return this.#external;
  }

  /** Closes it now, or when the last call that uses it has ended. The garbage collector does so
   *  too, but later. */
  close() {
    if (this.#external) native.close(this.#external);
    this.#external = null;
  }

  [Symbol.dispose ?? Symbol.for('dispose')]() {
    this.close();
  }
}

export class Store extends Handle {
  async create(id = null, { project = 'default', ...meta } = {}) {
    const given = Object.keys(meta).length ? json(meta) : null;
    return new Conversation(await call('create', this.handle, [project, id, given]));
  }

  async conversation(id, { project = 'default', create = false } = {}) {
    for (let tries = 0; ; tries++) {
      try {
        return new Conversation(await call('conversation', this.handle, [project, id]));
      } catch (e) {
        if (!create || e.code !== 'not found') throw e;
      }
      try {
        return await this.create(id, { project });
      } catch (e) {
        // Somebody else made it between the two.
        if (e.code !== 'conflict' || tries > 2) throw e;
      }
    }
  }

  /** The first list after a boot may say `catching_up`: it answers from what was known before. With
   * `complete` it waits instead until every conversation was looked at. */
  async list({ project = 'default', limit = 20, cursor = null, query = null, complete = false } = {}) {
    return JSON.parse((await call('list', this.handle, [project, cursor, query], [limit, complete ? 1 : 0])).json);
  }

  /** To the trash. */
  async remove(id, { project = 'default' } = {}) {
    return (await call('remove', this.handle, [project, id])).json;
  }
}

export class Conversation extends Handle {
  async id() {
    return (await call('id', this.handle)).json;
  }

  /** Appends a message, or an array of them at once or not at all. */
  async append(messages, options = {}) {
    const { format = null, idempotencyKey = null, messageId = null, via = null,
      durability = 'full', expectedSeq } = options;
    let flags = flagsOf(options);
    if (expectedSeq !== undefined) flags |= APPEND.expectSeq;
    const answer = await call('append', this.handle,
      [json(messages), format, idempotencyKey, messageId, via],
      [flags, durability === 'process' ? 1 : 0, expectedSeq]);
    return { ...JSON.parse(answer.json), replayed: answer.number === 1 };
  }

  async amend(kind, target, value = null, options = {}) {
    const answer = await call('amend', this.handle, [kind, target, json(value), options.format], [flagsOf(options)]);
    return JSON.parse(answer.json);
  }

  async delete(target) {
    return this.amend('delete', target);
  }

  /** The messages in a format, with `report`, as JSON text: `text` is what the store gave. */
  async view(options = {}) {
    const { format = 'openai', edits = null, pin = null, via = null, budget, after, before, limit,
      last, outputs = 'default', strict, allMessages, ownBytes, countTokens, everyMessage } = options;
    if (!(outputs in OUTPUTS)) throw new StenoError('invalid', `outputs: "${outputs}"`, -2);
    const flags = (strict ? 1 : 0) | (allMessages ? 2 : 0) | (ownBytes ? 4 : 0) | (countTokens ? 8 : 0)
      | (everyMessage ? 16 : 0);
    const answer = await call('view', this.handle, [format, json(edits), pin, via],
      [budget, after, before, limit, last, OUTPUTS[outputs], flags]);
    return { text: answer.json, report: JSON.parse(answer.report) };
  }

  /** The messages themselves. */
  async messages(options = {}) {
    return JSON.parse((await this.view(options)).text);
  }

  async lastSeq() {
    return (await call('lastSeq', this.handle)).number;
  }

  async meta() {
    return JSON.parse((await call('meta', this.handle)).json);
  }

  async setMeta(patch) {
    await call('setMeta', this.handle, [json(patch)]);
  }

  /** True when there is a record behind `after`, false when the time is over. */
  async wait(after, milliseconds) {
    return (await call('wait', this.handle, [], [after, milliseconds])).number === 1;
  }

  /** list, read, tail or grep over the large outputs. */
  async context(operation, args = {}) {
    return JSON.parse((await call('context', this.handle, [operation, json(args)])).json);
  }

  /** The bytes of a large output, by its ref or the ref's id. */
  async bytes(ref, { offset = 0, length = 0 } = {}) {
    return call('contextRaw', this.handle, [ref?.id ?? ref], [offset, length]);
  }

  /** Stores a tool's output and the tool message for it: what a model would see, and its ref. */
  async output(content, { tool, callId, server = null, terminal = false, ...fields }) {
    const more = Object.keys(fields).length ? json(fields) : null;
    return JSON.parse((await call('output', this.handle,
      [Buffer.from(content), tool, callId, server, more], [terminal ? 1 : 0])).json);
  }

  async fork({ id = null, project = null, at = null, before = null, atSeq = 0 } = {}) {
    return new Conversation(await call('fork', this.handle, [id, project, at, before], [atSeq]));
  }
}
