import type { BaseCheckpointSaver, SerializerProtocol } from '@langchain/langgraph-checkpoint';
import type { Store } from './index.js';

export class StenoSaver extends BaseCheckpointSaver {
  constructor(store: Store, options?: { project?: string; serde?: SerializerProtocol });
  static open(url: string, options?: { project?: string; serde?: SerializerProtocol }): Promise<StenoSaver>;
  close(): void;
}
