export class StenoError extends Error {
  /** The word of steno_code_name: "conflict", "not found", "limit" ... */
  code: string;
  /** The number of enum steno_code. */
  errno: number;
}

export interface Receipt {
  conversation: string;
  first_seq: number;
  last_seq: number;
  ids: string[];
  durability: string;
  replayed: boolean;
  calls?: { message: number; ids: string[] }[];
}

/** Names a large output. */
export interface Ref {
  id: string;
  kind: string;
  mimeType: string;
  byteSize: number;
  hint: string;
  [member: string]: unknown;
}

export interface AppendOptions {
  format?: string;
  idempotencyKey?: string;
  messageId?: string;
  via?: string;
  durability?: 'full' | 'process';
  expectedSeq?: number;
  record?: boolean;
  keepOutputs?: boolean;
  anew?: boolean;
}

export interface ViewOptions {
  format?: string;
  edits?: 'auto' | unknown[] | null;
  pin?: string;
  via?: string;
  budget?: number;
  after?: number;
  before?: number;
  limit?: number;
  last?: number;
  outputs?: 'default' | 'stub' | 'full';
  strict?: boolean;
  allMessages?: boolean;
  ownBytes?: boolean;
  countTokens?: boolean;
  everyMessage?: boolean;
}

export function version(): Promise<string>;
export function open(url: string, options?: { existing?: boolean; sealKey?: string }): Promise<Store>;
export function convert(messages: unknown[] | string,
  options: { from?: string | null; to: string; strict?: boolean }):
  Promise<{ messages: unknown[]; report: Record<string, unknown> }>;
export function checkHistory(provider: 'openai' | 'responses' | 'anthropic' | 'gemini',
  messages: unknown[] | string):
  Promise<{ rule: string; message: number; call?: string; text: string }[]>;

export class Store {
  create(id?: string | null, options?: { project?: string; title?: string; [member: string]: unknown }): Promise<Conversation>;
  conversation(id: string, options?: { project?: string; create?: boolean }): Promise<Conversation>;
  list(options?: { project?: string; limit?: number; cursor?: string; query?: string; complete?: boolean }):
    Promise<{ items: Record<string, unknown>[]; next_cursor?: string; catching_up?: boolean }>;
  remove(id: string, options?: { project?: string }): Promise<string>;
  close(): void;
}

export class Conversation {
  id(): Promise<string>;
  append(messages: object | object[] | string, options?: AppendOptions): Promise<Receipt>;
  amend(kind: 'delete' | 'meta' | 'supersede', target: string, value?: object | null,
    options?: Pick<AppendOptions, 'format' | 'record' | 'keepOutputs' | 'anew'>): Promise<Receipt>;
  delete(target: string): Promise<Receipt>;
  view(options?: ViewOptions): Promise<{ text: string; report: Record<string, unknown> }>;
  messages<T = Record<string, unknown>>(options?: ViewOptions): Promise<T[]>;
  lastSeq(): Promise<number>;
  meta(): Promise<Record<string, unknown>>;
  setMeta(patch: object): Promise<void>;
  wait(after: number, milliseconds: number): Promise<boolean>;
  context(operation: 'list' | 'read' | 'tail' | 'grep', args?: object): Promise<Record<string, unknown>>;
  bytes(ref: string | Ref, options?: { offset?: number; length?: number }): Promise<Buffer>;
  output(content: string | Uint8Array, options: { tool: string; callId: string; server?: string;
    terminal?: boolean; [field: string]: unknown }):
    Promise<{ seq: number; id: string; content: string; ref?: Ref }>;
  fork(options?: { id?: string; project?: string; at?: string; before?: string; atSeq?: number }): Promise<Conversation>;
  close(): void;
}
