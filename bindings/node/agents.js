// agents.js - a Session for @openai/agents that keeps every item of every run in a store.
//
//   import { StenoSession } from 'steno/agents';
//   const session = await StenoSession.open('./record', 'support-42');
//   await run(agent, 'What failed?', { session });
//
// Items are stored in the shape of the Responses API, so that every view, the command line and the
// page show them. An item whose shape cannot say all of it carries the original beside it, in
// `entry`, which never goes to a provider; getItems() gives back exactly what was added.
//
// A change that takes items away (replace_suffix, a compaction, clearSession) must be one write. It
// is a batch: a marker that says how many items end there, and what replaces them. What a marker
// has dropped is then written down by its ids, and deleted from the views; if the process dies in
// between, the next reader of the session does it.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { open } from './index.js';

const MARKER = 'steno.session';

/* ---- the two shapes of an item ---- */


function partsToResponses(content) {
  if (!Array.isArray(content)) return content;
  return content.map((part) => (part.type === 'input_image' && typeof part.image === 'string'
    ? { ...omit(part, ['image']), image_url: part.image } : part));
}

function partsFromResponses(content) {
  if (!Array.isArray(content)) return content;
  return content.map((part) => (part.type === 'input_image' && 'image_url' in part
    ? { ...omit(part, ['image_url']), image: part.image_url } : part));
}

function omit(object, names) {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/* How each type of item is written in the Responses API, and read back. What is not given back as
 * it was keeps its original. */
const SHAPES = {
  function_call: {
    to: ({ callId, ...rest }) => ({ call_id: callId, ...rest }),
    from: ({ call_id: callId, ...rest }) => ({ callId, ...rest }),
  },
  function_call_result: {
    type: 'function_call_output',
    to: ({ callId, name, output, ...rest }) => ({
      call_id: callId, ...rest, output: isText(output) ? output.text : output,
    }),
    from: ({ call_id: callId, ...rest }) => ({ callId, ...rest }),
  },
  message: {
    to: ({ content, ...rest }) => ({ ...rest, content: partsToResponses(content) }),
    from: ({ content, ...rest }) => ({ ...rest, content: partsFromResponses(content) }),
  },
  reasoning: {
    to: ({ content = [], rawContent, ...rest }) => ({
      ...rest, summary: content.map((part) => ({ type: 'summary_text', text: part.text })),
    }),
    from: ({ summary = [], ...rest }) => ({
      ...rest, content: summary.map((part) => ({ type: 'input_text', text: part.text })),
    }),
  },
};
const AGENT_TYPE = Object.fromEntries(Object.entries(SHAPES)
  .map(([name, shape]) => [shape.type ?? name, name]));

const isText = (output) => output?.type === 'text' && typeof output.text === 'string';

const shapeOf = (name, item) => SHAPES[name ?? (item.role ? 'message' : '')];

function fromStored(m) {
  if (m.entry !== undefined) {
    // A text is not stored twice: it stands in the result itself.
    return m.entry.output?.type === 'text' && m.entry.output.text === undefined
      ? { ...m.entry, output: { ...m.entry.output, text: m.output } } : m.entry;
  }
  const name = AGENT_TYPE[m.type];
  const shape = shapeOf(name, m);
  if (!shape) return m;
  return { ...(name && { type: name }), ...shape.from(omit(m, ['type'])) };
}

function toStored(item) {
  const plain = JSON.parse(JSON.stringify(item));
  const shape = shapeOf(plain.type, plain);
  if (!shape) return plain;
  const stored = {
    ...(plain.type && { type: shape.type ?? plain.type }),
    ...shape.to(omit(plain, ['type', 'providerData'])),
  };
  if (isDeepStrictEqual(fromStored(stored), plain)) return stored;
  const entry = isText(plain.output) ? { ...plain, output: omit(plain.output, ['text']) } : plain;
  return { ...stored, entry };
}

/* ---- the session ---- */

const digest = (value) => createHash('sha256').update(JSON.stringify(value)).digest('hex');

function mutated(items, mutations) {
  for (const { type, callId, replacement } of mutations) {
    if (type !== 'replace_function_call') throw new Error(`mutation "${type}" is not known`);
    let kept = false;
    items = items.flatMap((item) => {
      if (item.type !== 'function_call' || item.callId !== callId) return [item];
      if (kept) return [];
      kept = true;
      return [replacement];
    });
  }
  return items;
}

export class StenoSession {
  #conversation;
  #store;

  constructor(conversation, store = null) {
    this.#conversation = conversation;
    this.#store = store;
  }

  /** The session `id` of a store, which are both made on first use. */
  static async open(url, id, { project = 'default' } = {}) {
    const store = await open(url);
    try {
      return new StenoSession(await store.conversation(id, { project, create: true }), store);
    } catch (e) {
      store.close();
      throw e;
    }
  }

  close() {
    this.#conversation.close();
    this.#store?.close();
  }

  /** The conversation that it is stored in. */
  get conversation() {
    return this.#conversation;
  }

  async getSessionId() {
    return this.#conversation.id();
  }

  /* What the log says: the items there are, the last seq, how often the session was cleared. */
  async #state() {
    for (;;) {
      const seq = await this.#conversation.lastSeq();
      const records = (await this.#conversation.messages({ format: 'stored', before: seq + 1 }))
        .filter((record) => record.m !== undefined); // one that is damaged is named by check
      const markers = records.filter((record) => record.m.type === MARKER);
      const named = new Map(markers.map(({ m }) => [m.of, m.ids]));
      const dropped = [];
      const unnamed = [];
      let kept = [];
      for (const record of records) {
        const { m, id } = record;
        if (m.type !== MARKER) {
          kept.push(record);
        } else if (named.has(id)) {
          dropped.push(...kept.filter((r) => named.get(id).includes(r.id)));
          kept = kept.filter((r) => !named.get(id).includes(r.id));
        } else if (m.drop) {
          const gone = kept.splice(m.drop === 'all' ? 0 : kept.length - m.drop);
          dropped.push(...gone);
          if (m.drop !== 'all') unnamed.push({ type: MARKER, of: id, ids: gone.map((r) => r.id) });
        }
      }
      if (unnamed.length && !(await this.#name(unnamed, seq))) continue;
      await this.#tidy(dropped, markers);
      if (unnamed.length) continue; // with the markers that are new
      const meta = await this.#conversation.meta();
      return { seq, records: kept, items: kept.map((r) => fromStored(r.m)), clears: meta.metadata?.clears ?? 0 };
    }
  }

  /* A marker counts what it drops, and the count is wrong as soon as some of that is deleted: the
   * items are named before. False: somebody has written meanwhile. */
  async #name(unnamed, expectedSeq) {
    try {
      await this.#append(unnamed, { expectedSeq });
      return true;
    } catch (e) {
      if (e.code !== 'conflict') throw e;
      return false;
    }
  }

  /* Deletes what markers have dropped, and then the markers, oldest first: one that counts goes
   * before the one that names what it has counted. */
  async #tidy(dropped, markers) {
    for (const record of [...dropped, ...markers]) {
      try {
        await this.#conversation.delete(record.id);
      } catch (e) {
        if (e.code !== 'not found') throw e; // somebody else was as tidy
      }
    }
  }

  async getItems(limit) {
    if (limit !== undefined && limit <= 0) return [];
    const { items } = await this.#state();
    return limit === undefined ? items : items.slice(-limit);
  }

  async addItems(items) {
    if (items.length === 0) return;
    await this.#append(items.map(toStored));
  }

  async #append(items, options = {}) {
    return this.#conversation.append(items, { format: 'responses', record: true, anew: true, ...options });
  }

  /* Runs `change` on the newest state until nobody has written meanwhile. */
  async #atomically(change) {
    for (;;) {
      const state = await this.#state();
      const batch = change(state);
      if (batch === null) return state;
      try {
        await this.#append(batch, { expectedSeq: state.seq });
        await this.#state();
        return state;
      } catch (e) {
        if (e.code !== 'conflict') throw e;
      }
    }
  }

  async popItem() {
    for (;;) {
      const { records, items } = await this.#state();
      if (items.length === 0) return undefined;
      try {
        await this.#conversation.delete(records.at(-1).id);
        return items.at(-1);
      } catch (e) {
        if (e.code !== 'not found') throw e; // another one has popped it
      }
    }
  }

  async clearSession() {
    await this.#atomically(({ items }) => (items.length ? [{ type: MARKER, drop: 'all' }] : null));
    const meta = await this.#conversation.meta();
    await this.#conversation.setMeta({ metadata: { ...meta.metadata, clears: (meta.metadata?.clears ?? 0) + 1 } });
  }

  async replaceHistoryWithCompaction(items) {
    await this.#atomically(() => [{ type: MARKER, drop: 'all' }, ...items.map(toStored)]);
  }

  async applyHistoryMutations({ mutations }) {
    if (mutations.length === 0) return;
    await this.#atomically(({ items }) => {
      const next = JSON.parse(JSON.stringify(mutated(items, mutations)));
      let same = 0;
      while (same < items.length && isDeepStrictEqual(items[same], next[same])) same++;
      if (same === items.length && next.length === same) return null;
      return [{ type: MARKER, drop: items.length - same }, ...next.slice(same).map(toStored)];
    });
  }

  /** Atomic, and done once for an operationId however often it is asked for. */
  async applyHistoryTransaction({ operationId, transaction }) {
    if (typeof operationId !== 'string' || operationId.trim() === '')
      throw new TypeError('operationId must be a string that is not empty');
    const change = JSON.parse(JSON.stringify(transaction));
    const state = await this.#state();
    const idempotencyKey = `${state.clears}:${operationId}`;
    if (change.type === 'append_items') {
      // An empty transaction has to be remembered as well.
      const items = change.items.length ? change.items.map(toStored) : [{ type: MARKER, drop: 0 }];
      await this.#append(items, { idempotencyKey });
      return;
    }
    if (change.type !== 'replace_suffix') throw new TypeError(`transaction "${change.type}" is not known`);
    const { expectedSuffix, replacement } = change;
    const batch = [
      { type: MARKER, drop: expectedSuffix.length, expected: digest(expectedSuffix) },
      ...replacement.map(toStored),
    ];
    for (let now = state; ; now = await this.#state()) {
      const start = now.items.length - expectedSuffix.length;
      const fits = start >= 0 && isDeepStrictEqual(now.items.slice(start), expectedSuffix);
      try {
        // Where it does not fit, no seq is the expected one: only a replay is accepted.
        await this.#append(batch, { idempotencyKey, expectedSeq: fits ? now.seq : Number.MAX_SAFE_INTEGER });
        await this.#state();
        return;
      } catch (e) {
        if (e.code !== 'conflict') throw e;
        if (/idempotency key/.test(e.message))
          throw new Error('this operationId was used for another transaction', { cause: e });
        if (!fits) throw new Error('the end of the history is not the expected one', { cause: e });
        // Somebody wrote between the look and the append: look again.
      }
    }
  }
}
