import type { AgentInputItem, Session } from '@openai/agents';
import type { Conversation, Store } from './index.js';

/** A Session of @openai/agents, with every optional change of history that its runner knows. */
export class StenoSession implements Session {
  constructor(conversation: Conversation, store?: Store | null);
  static open(url: string, id: string, options?: { project?: string }): Promise<StenoSession>;
  readonly conversation: Conversation;
  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<AgentInputItem[]>;
  addItems(items: AgentInputItem[]): Promise<void>;
  popItem(): Promise<AgentInputItem | undefined>;
  clearSession(): Promise<void>;
  replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void>;
  applyHistoryMutations(args: { mutations: unknown[] }): Promise<void>;
  applyHistoryTransaction(args: { operationId: string; transaction: unknown }): Promise<void>;
  close(): void;
}
