// ai.js - what an app with the AI SDK (npm: ai) needs to keep its chats in a store.
//
//   import { ChatStore } from 'steno/ai';
//   const chats = await ChatStore.open('./record');
//   const messages = await chats.load(id);
//   // in onFinish of toUIMessageStreamResponse:
//   await chats.save(id, messages);
//
// save() takes the whole list, as useChat has it. Messages that are new are appended, those that
// changed are superseded (the earlier text stays in the record), those that are gone, after a
// regenerate, are deleted. load() gives back what was saved, message for message.
import { isDeepStrictEqual } from 'node:util';
import { open } from './index.js';

const HOW = { format: 'uimessage', record: true, keepOutputs: true };

export class ChatStore {
  #store;
  #project;

  constructor(store, { project = 'default' } = {}) {
    this.#store = store;
    this.#project = project;
  }

  static async open(url, options) {
    return new ChatStore(await open(url), options);
  }

  close() {
    this.#store.close();
  }

  async #with(id, create, use) {
    const conversation = await this.#store.conversation(id, { project: this.#project, create });
    try {
      return await use(conversation);
    } finally {
      conversation.close();
    }
  }

  /** The messages of a chat; none where there is no such chat. */
  async load(id) {
    try {
      return await this.#with(id, false, async (conversation) => {
        const records = await conversation.messages({ format: 'stored' });
        return records.filter((r) => r.m).map((r) => r.m);
      });
    } catch (e) {
      if (e.code === 'not found') return [];
      throw e;
    }
  }

  async save(id, messages) {
    const wanted = JSON.parse(JSON.stringify(messages));
    await this.#with(id, true, async (conversation) => {
      const records = (await conversation.messages({ format: 'stored' })).filter((r) => r.m);
      const there = new Map(records.map((r) => [r.m.id, r]));
      const added = [];
      for (const message of wanted) {
        const record = there.get(message.id);
        if (!record) added.push(message);
        else if (!isDeepStrictEqual(record.m, message)) await conversation.amend('supersede', record.id, message, { ...HOW, anew: true });
        there.delete(message.id);
      }
      for (const record of there.values()) await conversation.delete(record.id);
      if (added.length)
        await conversation.append(added, HOW);
    });
  }
}
