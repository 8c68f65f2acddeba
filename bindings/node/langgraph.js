// langgraph.js - a checkpointer for LangGraph that keeps threads in a store.
//
//   import { StenoSaver } from 'steno/langgraph';
//   const checkpointer = await StenoSaver.open('./record');
//   const graph = builder.compile({ checkpointer });
//
// A thread is a conversation of the project "langgraph". A checkpoint is a record of it, and so are
// the writes of a task: both are durable when put() and putWrites() have returned, and a thread's
// whole past stays in the log. A checkpoint has the values of those channels that changed with it;
// the others are those that the record of their version has. deleteThread() moves the conversation to the trash.
import { createHash } from 'node:crypto';
import {
  BaseCheckpointSaver, TASKS, WRITES_IDX_MAP, copyCheckpoint, getCheckpointId, maxChannelVersion,
} from '@langchain/langgraph-checkpoint';
import { open } from './index.js';

const CHECKPOINT = 'langgraph.checkpoint';
const WRITES = 'langgraph.writes';

// An id of a conversation has at most 256 bytes and no control characters; a thread's may.
function conversationOf(thread) {
  // eslint-disable-next-line no-control-regex
  if (Buffer.byteLength(thread) <= 256 && !/[\u0000-\u001f\u007f]/.test(thread)) return thread;
  return 'thread-' + createHash('sha256').update(thread).digest('hex');
}

function wanted(name, value, { empty = false } = {}) {
  if (typeof value !== 'string' || (!empty && value === ''))
    throw new Error(`"${name}" in the configurable of the config must be a string${empty ? '' : ' that is not empty'}`);
  return value;
}

/* What is known of a thread: grows as its log does. */
class Thread {
  constructor(name) {
    this.name = name;
    this.seq = 0;
    this.spaces = new Map(); // namespace -> checkpoint id -> { checkpoint, metadata, parent, writes }
    this.values = new Map(); // namespace, channel and version -> value
  }

  #at(ns, id) {
    if (!this.spaces.has(ns)) this.spaces.set(ns, new Map());
    const space = this.spaces.get(ns);
    if (!space.has(id)) space.set(id, { writes: new Map() });
    return space.get(id);
  }

  take(record) {
    this.seq = record.last_seq ?? record.seq;
    const m = record.m;
    if (m?.type === CHECKPOINT) {
      Object.assign(this.#at(m.ns, m.checkpoint_id), m);
      for (const [channel, version, value] of m.values) this.values.set(JSON.stringify([m.ns, channel, version]), value);
    } else if (m?.type === WRITES) {
      const { writes } = this.#at(m.ns, m.checkpoint_id);
      for (const [index, channel, value] of m.writes) {
        const key = `${m.task},${index}`;
        // Ordinary writes stay as they were first; errors and interrupts are replaced.
        if (index < 0 || !writes.has(key)) writes.set(key, [m.task, channel, value]);
      }
    }
  }

  /* Checkpoints of a namespace, newest first: their ids are in order of time. */
  newest(ns) {
    return [...(this.spaces.get(ns) ?? [])].filter(([, c]) => c.checkpoint)
      .sort(([a], [b]) => (a < b ? 1 : a > b ? -1 : 0));
  }
}

export class StenoSaver extends BaseCheckpointSaver {
  #store;
  #project;
  #threads = new Map();

  constructor(store, { project = 'langgraph', serde } = {}) {
    super(serde);
    this.#store = store;
    this.#project = project;
  }

  static async open(url, options) {
    return new StenoSaver(await open(url), options);
  }

  close() {
    this.#store.close();
  }

  async #dump(value) {
    const [type, bytes] = await this.serde.dumpsTyped(value);
    return type === 'json' ? [type, Buffer.from(bytes).toString('utf8')]
      : [type, Buffer.from(bytes).toString('base64')];
  }

  async #load([type, text]) {
    return this.serde.loadsTyped(type, Buffer.from(text, type === 'json' ? 'utf8' : 'base64'));
  }

  async #read(name) {
    let conversation;
    try {
      conversation = await this.#store.conversation(conversationOf(name), { project: this.#project });
    } catch (e) {
      if (e.code !== 'not found') throw e;
      this.#threads.delete(name);
      return new Thread(name);
    }
    try {
      // Another conversation of that name, or the same one with more in it?
      const { createdAt } = await conversation.meta();
      let thread = this.#threads.get(name);
      if (thread?.createdAt !== createdAt) {
        thread = new Thread(name);
        thread.createdAt = createdAt;
        this.#threads.set(name, thread);
      }
      if ((await conversation.lastSeq()) > thread.seq) {
        for (const record of await conversation.messages({ format: 'stored', after: thread.seq }))
          thread.take(record);
      }
      return thread;
    } finally {
      conversation.close();
    }
  }

  async #append(name, record) {
    const conversation = await this.#store.conversation(conversationOf(name), { project: this.#project, create: true });
    try {
      await conversation.append([record], { format: 'responses', record: true });
    } finally {
      conversation.close();
    }
  }

  async #tuple(thread, ns, id, saved, config) {
    const checkpoint = await this.#load(saved.checkpoint);
    const values = saved.values.map(([channel, , value]) => [channel, value]);
    for (const [channel, version] of Object.entries(checkpoint.channel_versions ?? {})) {
      const value = thread.values.get(JSON.stringify([ns, channel, version]));
      if (value) values.push([channel, value]);
    }
    checkpoint.channel_values = {};
    for (const [channel, value] of values) checkpoint.channel_values[channel] ??= await this.#load(value);
    if (checkpoint.v < 4 && saved.parent !== undefined) await this.#bringSends(thread, ns, saved.parent, checkpoint);
    const pendingWrites = [];
    for (const [task, channel, value] of saved.writes.values())
      pendingWrites.push([task, channel, await this.#load(value)]);
    return {
      config: config ?? { configurable: { thread_id: thread.name, checkpoint_ns: ns, checkpoint_id: id } },
      checkpoint,
      metadata: await this.#load(saved.metadata),
      pendingWrites,
      ...(saved.parent !== undefined && {
        parentConfig: { configurable: { thread_id: thread.name, checkpoint_ns: ns, checkpoint_id: saved.parent } },
      }),
    };
  }

  /* Before version 4 the sends of a step were writes of the checkpoint before it. */
  async #bringSends(thread, ns, parent, checkpoint) {
    const sends = [];
    for (const [, channel, value] of thread.spaces.get(ns)?.get(parent)?.writes.values() ?? [])
      if (channel === TASKS) sends.push(await this.#load(value));
    checkpoint.channel_values ??= {};
    checkpoint.channel_values[TASKS] = sends;
    checkpoint.channel_versions ??= {};
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] = versions.length ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  async getTuple(config) {
    const name = config.configurable?.thread_id;
    if (name === undefined) return undefined;
    const ns = wanted('checkpoint_ns', config.configurable?.checkpoint_ns ?? '', { empty: true });
    const thread = await this.#read(wanted('thread_id', name));
    const id = getCheckpointId(config);
    if (id) {
      const saved = thread.spaces.get(ns)?.get(id);
      return saved?.checkpoint && this.#tuple(thread, ns, id, saved, config);
    }
    const [newest] = thread.newest(ns);
    return newest && this.#tuple(thread, ns, newest[0], newest[1]);
  }

  async * #names() {
    for (let cursor = null; ;) {
      const page = await this.#store.list({ project: this.#project, limit: 1000, cursor, complete: true });
      for (const item of page.items) yield item.metadata?.thread ?? item.id;
      cursor = page.next_cursor;
      if (!cursor) return;
    }
  }

  async * list(config, { limit, before, filter } = {}) {
    const { thread_id: name, checkpoint_ns: ns, checkpoint_id: only } = config.configurable ?? {};
    const bound = before?.configurable?.checkpoint_id;
    for await (const thread of name ? [name] : this.#names()) {
      const state = await this.#read(thread);
      for (const space of ns === undefined ? state.spaces.keys() : [ns]) {
        for (const [id, saved] of state.newest(space)) {
          if ((only && id !== only) || (bound && id >= bound)) continue;
          const metadata = filter && await this.#load(saved.metadata);
          if (filter && !Object.entries(filter).every(([key, value]) => metadata[key] === value)) continue;
          if (limit !== undefined && limit-- <= 0) return;
          yield this.#tuple(state, space, id, saved);
        }
      }
    }
  }

  async put(config, checkpoint, metadata, newVersions) {
    const { channel_values: values, ...rest } = copyCheckpoint(checkpoint);
    const changed = newVersions ?? checkpoint.channel_versions ?? {};
    const name = wanted('thread_id', config.configurable?.thread_id);
    const ns = wanted('checkpoint_ns', config.configurable?.checkpoint_ns ?? '', { empty: true });
    await this.#append(name, {
      type: CHECKPOINT, ns, checkpoint_id: wanted('checkpoint_id', checkpoint.id),
      parent: config.configurable?.checkpoint_id,
      checkpoint: await this.#dump(rest),
      values: await Promise.all(Object.keys(changed).filter((channel) => channel in values)
        .map(async (channel) => [channel, changed[channel], await this.#dump(values[channel])])),
      metadata: await this.#dump(metadata),
    });
    return { configurable: { thread_id: name, checkpoint_ns: ns, checkpoint_id: checkpoint.id } };
  }

  async putWrites(config, writes, taskId) {
    const name = wanted('thread_id', config.configurable?.thread_id);
    const ns = wanted('checkpoint_ns', config.configurable?.checkpoint_ns ?? '', { empty: true });
    const id = wanted('checkpoint_id', config.configurable?.checkpoint_id);
    await this.#append(name, {
      type: WRITES, ns, checkpoint_id: id, task: wanted('task_id', taskId),
      writes: await Promise.all(writes.map(async ([channel, value], index) => [
        WRITES_IDX_MAP[channel] || index, channel, await this.#dump(value),
      ])),
    });
  }

  async deleteThread(name) {
    this.#threads.delete(wanted('thread_id', name));
    try {
      await this.#store.remove(conversationOf(name), { project: this.#project });
    } catch (e) {
      if (e.code !== 'not found') throw e;
    }
  }
}
