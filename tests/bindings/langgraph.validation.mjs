// LangGraph's own tests, over a checkpointer in a fresh store for each set of them.
import { mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { validate } from '@langchain/langgraph-checkpoint-validation';
import { StenoSaver } from './steno/langgraph.js';

let folder;
validate({
  checkpointerName: 'StenoSaver',
  createCheckpointer() {
    folder = mkdtempSync(path.join(process.cwd(), 'graph-'));
    return StenoSaver.open(path.join(folder, 'store'));
  },
  destroyCheckpointer(saver) {
    saver.close();
    rmSync(folder, { recursive: true, force: true });
  },
});
