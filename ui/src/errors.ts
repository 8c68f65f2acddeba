// The failures of a conversation, all of them: the server knows them, whichever rows are loaded.
import { signal } from "@preact/signals";
import { get } from "./api";

export interface Failure { n: number; seq: number; call: string; name: string; text: string; at: number; exit?: number }
interface Answer { total: number; items: Failure[]; next?: number; seq: number }

export class Failures {
  readonly all = signal<Failure[]>([]);
  readonly total = signal(0);
  private busy: Promise<void> | null = null;
  private seq = -1;

  constructor(private id: string) {}

  look(lastSeq: number): Promise<void> {
    if (lastSeq === this.seq) return this.busy ?? Promise.resolve();
    this.seq = lastSeq;
    return this.busy ??= this.load().finally(() => { this.busy = null; });
  }

  private async load() {
    const known = this.all.peek();
    const got: Failure[] = [];
    // Failures never go away, so only what is new is fetched.
    for (let from: number | undefined = known.length; from !== undefined;) {
      const a: Answer = await get<Answer>(`/api/chat-sessions/${encodeURIComponent(this.id)}/errors?from=${from}`);
      got.push(...a.items);
      this.total.value = a.total;
      from = a.next;
    }
    if (got.length) this.all.value = [...known, ...got];
  }

  // The next one from a place: `seq` and `call` are those of the row where one stands.
  next(by: 1 | -1, seq: number, call: string | undefined): Failure | undefined {
    const all = this.all.peek();
    const here = call === undefined ? -1 : all.findIndex((f) => f.seq === seq && f.call === call);
    if (here >= 0) return all[here + by];
    return by > 0 ? all.find((f) => f.seq > seq || (f.seq === seq && f.call !== "")) : all.findLast((f) => f.seq < seq || (f.seq === seq && call !== undefined && f.call === ""));
  }
}
