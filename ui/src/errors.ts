// All failures of a conversation: the server knows them, whichever rows are loaded.
import { signal } from "@preact/signals";
import { get, sleep } from "./api";

export interface Failure { n: number; seq: number; call: string; name: string; text: string; at: number; exit?: number; lines?: number[] }
interface Answer { total: number; items: Failure[]; next?: number; seq: number; whole: boolean }

export class Failures {
  readonly all = signal<Failure[]>([]);
  readonly total = signal(0);
  private busy: Promise<void> | null = null;
  private seq = -1;

  private stop = new AbortController();

  constructor(private id: string) {}

  // Records that arrive during a request are looked at after it. A request that failed is repeated by the next
  // one.
  look(lastSeq: number): Promise<void> {
    if (lastSeq === this.seq) return this.busy ?? Promise.resolve();
    this.seq = lastSeq;
    return this.busy ??= this.rest().catch((e) => { this.seq = -1; throw e; }).finally(() => { this.busy = null; });
  }

  private async rest() {
    for (let seen = NaN; seen !== this.seq;) { seen = this.seq; await this.load(); }
  }

  close() { this.stop.abort(); }

  // Failures never disappear, so only new ones are fetched. The server reads a long conversation part by part:
  // it is asked again until it has read all of it.
  private async load() {
    const { signal } = this.stop;
    for (let before = -1; ;) {
      const known = this.all.peek();
      const a: Answer = await get<Answer>(`/api/chat-sessions/${encodeURIComponent(this.id)}/errors?from=${known.length}`, signal);
      if (a.items.length) this.all.value = [...known, ...a.items];
      this.total.value = a.total;
      if (a.next !== undefined) continue;
      if (a.whole || a.seq === before) return;
      before = a.seq;
      await sleep(200, signal);
    }
  }

  // The next failure from a place: `seq` and `call` are those of the row at the reader's place.
  next(by: 1 | -1, seq: number, call: string | undefined): Failure | undefined {
    const all = this.all.peek();
    const here = call === undefined ? -1 : all.findIndex((f) => f.seq === seq && f.call === call);
    if (here >= 0) return all[here + by];
    // After the last failure, the search continues at the other end.
    return (by > 0 ? all.find((f) => f.seq > seq || (f.seq === seq && f.call !== "")) : all.findLast((f) => f.seq < seq || (f.seq === seq && call !== undefined && f.call === ""))) ?? all.at(by > 0 ? 0 : -1);
  }
}
