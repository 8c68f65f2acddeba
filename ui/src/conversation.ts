// One conversation: a window of its pages, its runs, and what is being sent.
//
// The window holds a bounded number of rows, however long the history: pages are fetched at the
// end towards which one scrolls and dropped at the other.
import { batch, computed, signal } from "@preact/signals";
import { ask, get, isGone, sleep, Unreachable, comebacks, connection } from "./api";
import { approvals } from "./approvals";
import { Failures } from "./errors";
import { Times } from "./Timeline";
import { watch } from "./live";
import { hasOpenCalls, pageOf, type Call, type Message, type Page, type Row, type View } from "./history";
import { onDelivered, outbox, post, waiting } from "./outbox";
import { prepare } from "./Prose";
import { Run } from "./run";
import { toast } from "./toast";

const PAGE = 40;
const ROWS_MOST = 360;
const BROKEN = new Set(["error", "interrupted", "died"]);

export interface RunInfo { id: string; state: string; reason?: string; mode?: string; startedAt?: string }
export interface Session { id: string; project?: string; title?: string; createdAt?: string; lastSeq: number; runs: RunInfo[] }

const PREPARE_MS = 400;
const textsOf = (p: Page) => p.rows.flatMap((r) => (r.kind === "message" && r.text ? [r.text] : []));
const weight = (rows: Row[]) => rows.reduce((n, r) => n + 1 + (r.kind === "message" ? r.calls.length : 0), 0);

const OPEN = new Set(["running", "waiting", "queued", "unrecorded", "indeterminate", "not_dispatched"]);

export class Conversation {
  readonly session = signal<Session | null>(null);
  readonly pages = signal<Page[]>([]);
  readonly atStart = signal(false);
  readonly atEnd = signal(false);
  readonly problem = signal("");
  readonly missing = signal(false);
  readonly run = signal<Run | null>(null);
  readonly sending = computed(() => waiting(outbox.value, this.id)?.text ?? "");
  readonly failure = signal("");
  readonly failures: Failures;
  readonly times: Times;
  readonly here = signal<{ seq: number; call?: string | undefined } | null>(null); // the row at the reader's place
  readonly failure_at = signal(0); // which of them is shown, from 1
  private stop = new AbortController();
  private busy = false;
  private path: string;

  constructor(readonly id: string, from?: number) {
    this.path = `/api/chat-sessions/${encodeURIComponent(id)}`;
    this.failures = new Failures(id);
    this.times = new Times(id);
    void this.begin(from);
    const done = watch(`c/${encodeURIComponent(id)}`, 0, () => void this.look().catch((e) => { if (isGone(e)) this.missing.value = true; }));
    let seen = comebacks.peek();
    const off = comebacks.subscribe((n) => { if (n !== seen) { seen = n; void this.look(); } });
    const deaf = onDelivered(async (conversation, run) => { if (conversation === this.id) await this.delivered(run); });
    this.stop.signal.addEventListener("abort", () => { off(); deaf(); done(); });
  }

  close() { this.stop.abort(); this.times.stopped = true; this.failures.close(); this.run.peek()?.leave(); }

  private async view(query: string): Promise<View> {
    const v = await get<View>(`${this.path}/messages?facts=1&tokens=false&${query}`, this.stop.signal, true);
    if (!hasOpenCalls(v)) return v;
    // This view leaves open calls open; the view for a model says what became of them.
    const repaired = await get<View>(`${this.path}/messages?format=openai&tokens=false&after=${v.firstSeq - 1}&before=${v.lastSeq + 1}`, this.stop.signal);
    return { ...v, repairs: [...v.repairs, ...repaired.repairs.filter((r) => !v.repairs.some((x) => x.seq === r.seq && x.class === r.class))] };
  }

  // The conversation is made with its first message, which is still in the outbox: until then there is nothing
  // to request.
  private unmade() { return waiting(outbox.peek(), this.id)?.title !== undefined; }

  private async begin(from?: number) {
    if (this.unmade()) return;
    try {
      await this.look();
      await (from ? this.loadFrom(from) : this.loadEnd());
    } catch (e) { this.complain(e, () => this.begin(from)); }
  }

  again: (() => Promise<void>) | null = null; // what failed, to be tried again
  private complain(e: unknown, again: () => Promise<void>) {
    if (this.stop.signal.aborted) return;
    if (e instanceof Unreachable) {
      let seen = comebacks.peek();
      const off = comebacks.subscribe((n) => { if (n !== seen) { queueMicrotask(off); seen = n; void again(); } });
      return;
    }
    if (isGone(e)) { this.missing.value = true; return; }
    this.again = again;
    this.problem.value = String((e as Error).message);
  }

  // Answers may arrive in any order. Of several jumps to another place the latest one counts, and a page is
  // added only to the rows that it was requested for.
  private jumps = 0;

  // The last page: where a reader begins.
  async loadEnd() {
    const jump = ++this.jumps;
    const v = await this.view(`last=${PAGE}`);
    if (jump !== this.jumps) return;
    batch(() => {
      this.pages.value = [pageOf(v)];
      this.atEnd.value = true;
      this.atStart.value = v.firstSeq <= 1;
    });
    this.missed();
  }

  async loadFrom(seq: number) {
    const jump = ++this.jumps;
    const v = await this.view(`after=${Math.max(0, seq - 1)}&limit=${PAGE}`);
    if (jump !== this.jumps) return;
    if (!v.messages.length && seq > 1) { toast("That place is not in this conversation."); return this.loadEnd(); }
    batch(() => {
      this.pages.value = [pageOf(v)];
      this.atEnd.value = !v.next_cursor;
      this.atStart.value = seq <= 1 || v.firstSeq <= 1;
    });
    this.missed();
  }

  // What was stored while rows were on their way: the look that learned of it left the rows alone.
  private missed() {
    if ((this.session.peek()?.lastSeq ?? 0) > this.lastKnown()) void this.refreshEnd().catch(() => {});
  }

  // Makes sure that the message with this seq is among the rows.
  async show(seq: number) {
    if (!this.pages.peek().some((p) => p.first <= seq && seq <= p.last)) await this.loadFrom(Math.max(1, seq - 2));
  }

  private async once(work: () => Promise<void>) {
    if (this.busy) return;
    this.busy = true;
    try { await work(); } catch (e) { this.complain(e, async () => {}); } finally { this.busy = false; this.missed(); }
  }

  earlier() {
    return this.once(async () => {
      const first = this.pages.peek()[0]?.first ?? 0;
      if (this.atStart.peek() || !first) return;
      const page = pageOf(await this.view(`before=${first}&limit=${PAGE}`));
      await prepare(textsOf(page), PREPARE_MS);
      if (this.pages.peek()[0]?.first !== first) return;
      const kept = [page, ...this.pages.peek()];
      let dropped = false;
      while (kept.length > 2 && weight(kept.flatMap((p) => p.rows)) > ROWS_MOST) { kept.pop(); dropped = true; }
      batch(() => {
        this.pages.value = kept;
        this.atStart.value = page.first <= 1 || !page.rows.length;
        if (dropped) this.atEnd.value = false;
      });
    });
  }

  later() {
    return this.once(async () => {
      const last = this.lastKnown();
      if (this.atEnd.peek()) return;
      const v = await this.view(`after=${last}&limit=${PAGE}`);
      const page = pageOf(v);
      await prepare(textsOf(page), PREPARE_MS);
      if (this.lastKnown() !== last) return;
      const kept = [...this.pages.peek(), page];
      let dropped = false;
      while (kept.length > 2 && weight(kept.flatMap((p) => p.rows)) > ROWS_MOST) { kept.shift(); dropped = true; }
      batch(() => {
        this.pages.value = kept;
        this.atEnd.value = !v.next_cursor;
        if (dropped) this.atStart.value = false;
      });
    });
  }

  // The records after the last page. That page is fetched again, because results may have joined it.
  private async refreshNow(): Promise<void> {
    if (!this.atEnd.peek()) return;
    const last = this.pages.peek().at(-1);
    const big = last && weight(last.rows) > PAGE * 2;
    const from = last ? (big ? last.last + 1 : last.first) : 1;
    const v = await this.view(`after=${Math.max(0, from - 1)}&limit=${PAGE * 3}`);
    const pages = this.pages.peek();
    if (pages.at(-1) !== last) return this.refreshNow();
    if (big && !v.messages.length) return;
    const kept = [...(big ? pages : pages.slice(0, -1)), pageOf(v)];
    let dropped = false;
    while (kept.length > 2 && weight(kept.flatMap((p) => p.rows)) > ROWS_MOST) { kept.shift(); dropped = true; }
    batch(() => {
      this.pages.value = kept;
      this.atEnd.value = !v.next_cursor;
      if (dropped) this.atStart.value = false;
      else if (kept.length === 1) this.atStart.value = kept[0]!.first <= 1;
    });
  }

  private lastKnown() { return this.pages.peek().at(-1)?.last ?? 0; }

  // One request at a time; a call meanwhile gets the result of the next one.
  private looking: Promise<void> | null = null;
  private lookAgain: Promise<void> | null = null;
  look(): Promise<void> {
    if (!this.looking) return this.looking = this.lookNow().finally(() => { this.looking = null; });
    return this.lookAgain ??= this.looking.catch(() => {}).then(() => { this.lookAgain = null; return this.look(); });
  }
  private refreshing: Promise<void> | null = null;
  private refreshAgain: Promise<void> | null = null;
  private refreshEnd(): Promise<void> {
    if (!this.refreshing) return this.refreshing = this.refreshNow().finally(() => { this.refreshing = null; });
    return this.refreshAgain ??= this.refreshing.catch(() => {}).then(() => { this.refreshAgain = null; return this.refreshEnd(); });
  }

  private async lookNow() {
    if (this.unmade()) return;
    const before = this.session.peek()?.lastSeq;
    const s = await get<Session>(this.path, this.stop.signal);
    if (JSON.stringify(s) !== JSON.stringify(this.session.peek())) this.session.value = s;
    void this.failures.look(s.lastSeq).catch(() => {});
    void this.times.look(s.lastSeq);
    const open = s.runs.find((r) => r.state !== "finished") ?? this.brokenOff(s.runs[0]);
    if (open && this.run.peek()?.id !== open.id) this.watch(open.id);
    if (before !== undefined && (s.lastSeq > this.lastKnown() || s.lastSeq !== before) && !this.busy) await this.refreshEnd();
  }

  // The last words of a run that broke off may be only in its journal.
  private brokenOff(r: RunInfo | undefined) {
    return r && !this.run.peek() && BROKEN.has(r.reason ?? "") ? r : undefined;
  }

  watch(id: string) {
    if (this.run.peek()?.id === id || this.stop.signal.aborted) return;
    this.run.peek()?.leave();
    const run: Run = new Run(id, (type) => void this.told(run, type));
    this.run.value = run;
  }

  private async told(run: Run, type: string) {
    for (let tries = 0; tries < 40 && !this.stop.signal.aborted; tries++) {
      try {
        if (!this.atEnd.peek() && type === "run_started") return;
        await this.look();
        await this.refreshEnd();
        if (type === "run_finished" && this.run.peek() === run && !BROKEN.has(run.over.peek())) this.run.value = null;
        return;
      } catch { await sleep(500, this.stop.signal); }
    }
  }

  // The transcript: what is stored, then the live run, then what is being sent.
  rows(): Row[] {
    const run = this.run.value;
    const stored = this.pages.value.flatMap((p) => p.rows);
    const asked = new Map(approvals.value.filter((a) => a.conversation === this.id).map((a) => [a.call, a]));
    const asks = (r: Row): Row => (!asked.size || r.kind !== "message" || !r.calls.some((c) => asked.has(c.id) && OPEN.has(c.status)) ? r
      : { ...r, calls: r.calls.map((c) => { const a = asked.get(c.id); return a && OPEN.has(c.status) ? { ...c, status: "waiting" as const, approval: a.approval } : c; }) });
    if (!run || !this.atEnd.value) return stored.map(asks);
    const rows = stored.map((r) => asks(r.kind === "message" && r.calls.length ? overlay(r, run) : r));
    const known = new Set(stored.map((r) => (r.kind === "message" ? r.id : "")));
    return [...rows, ...run.messages.map((m) => asks(m) as Message).filter((m) => !known.has(m.id) && (m.text || m.thinking || m.calls.length || m.dropped))];
  }

  async say(text: string) {
    this.failure.value = "";
    post(this.id, text);
    if (!this.atEnd.peek()) await this.loadEnd().catch(() => {});
  }

  private async delivered(run: string | null) {
    if (run) this.watch(run);
    for (let tries = 0; tries < 40 && !this.stop.signal.aborted; tries++) {
      try {
        await this.look();
        await (this.pages.peek().length ? this.refreshEnd() : this.loadEnd());
        return;
      } catch (e) {
        if (!(e instanceof Unreachable)) return; // the next look fetches it
        await sleep(500, this.stop.signal);
      }
    }
  }

  goOn() { return this.start(`${this.path}/continue`, {}, crypto.randomUUID()); }

  // Sent again with the same key until there is an answer: it is stored once.
  private async start(path: string, body: object, key: string) {
    while (!this.stop.signal.aborted) {
      try {
        const answer = await ask(path, { method: "POST", body, headers: { "Idempotency-Key": key }, signal: this.stop.signal });
        const run = answer.headers.get("X-Run-Id");
        void answer.body?.cancel();
        if (run) this.watch(run);
        await this.look().catch(() => {});
        await this.refreshEnd().catch(() => {});
        break;
      } catch (e) {
        if (this.stop.signal.aborted) return;
        if (!(e instanceof Unreachable)) { this.failure.value = (e as Error).message; break; }
        while (connection.peek() === "lost" && !this.stop.signal.aborted) await sleep(100, this.stop.signal);
      }
    }
  }
}

// A stored call about which the run knows more.
function overlay(m: Message, run: Run): Message {
  const live = run.messages.find((x) => x.id === m.id);
  if (!live) return m;
  const calls = m.calls.map((c): Call => {
    const l = live.calls.find((x) => x.id === c.id);
    if (!l || c.status === "done" || c.status === "error" || c.status === "denied" || c.status === "interrupted") return l?.steps.length && !c.steps.length ? { ...c, steps: l.steps } : c;
    const { repair: _, ...rest } = c;
    return { ...rest, ...l };
  });
  return { ...m, calls };
}

export const newId = () => `conv_${crypto.randomUUID().replace(/-/g, "")}`;
