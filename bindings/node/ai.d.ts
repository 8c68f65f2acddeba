import type { UIMessage } from 'ai';
import type { Store } from './index.js';

export class ChatStore {
  constructor(store: Store, options?: { project?: string });
  static open(url: string, options?: { project?: string }): Promise<ChatStore>;
  load<M extends UIMessage = UIMessage>(id: string): Promise<M[]>;
  save(id: string, messages: UIMessage[]): Promise<void>;
  close(): void;
}
