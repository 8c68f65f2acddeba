// The lines of an artifact, however many: fetched by range, with a limited number kept. If the server was away,
// it is asked again when it is back.
import { signal } from "@preact/signals";
import { ApiError, ask, comebacks, get, lost, nextComeback, isGone, Unreachable } from "./api";
import type { HubEvent } from "./hub";
import { watch } from "./live";

const CHUNK = 64;
const CHUNKS_KEPT = 300;
const FRESH_KEPT = 6000;
const IN_FLIGHT = 3;
const MATCHES = 60; // of one request

export interface Line { text: string; cut?: boolean; offset?: number }
interface Read { content: string; encoding?: string; offset: number; next_offset: number; done: boolean; total_bytes: number; unfinished?: boolean }
interface Tail { total_lines: number | null; total_bytes: number; offset: number; unfinished?: boolean }
export interface Match { line: number; byte_offset: number; content: string; before?: string[]; after?: string[] }
export interface Found { matches: Match[]; total_matches: number; matches_before?: number; truncated: boolean; next_line?: number; spread?: number[] }

// A child of a JSON value: its place, and its beginning.
export interface Child { key?: string; key_content?: string; type: string; offset: number; bytes: number; content: string }

export function textOf(r: { content: string; encoding?: string }): string {
  if (r.encoding !== "base64") return r.content;
  return new TextDecoder().decode(Uint8Array.from(atob(r.content), (c) => c.charCodeAt(0)));
}

export class Lines {
  readonly total = signal(0);
  readonly bytes = signal(0);
  readonly growing = signal(false);
  readonly ready = signal(false);
  readonly problem = signal("");
  readonly missing = signal(false);
  readonly changed = signal(0);
  private chunks = new Map<number, Line[]>();
  private fresh = new Map<number, Line>(); // what arrived while following
  private grown = { line: 1, partial: "" };
  private wanted: number[] = [];
  private flying = new Map<number, AbortController>();
  private stop = new AbortController();
  private path: string;
  private topic: string;
  private looked: [number, number] = [1, 1];
  private off: () => void = () => {};

  constructor(conversation: string, ref: string) {
    this.path = `/api/chat-sessions/${encodeURIComponent(conversation)}/context/${encodeURIComponent(ref)}`;
    this.topic = `o/${encodeURIComponent(conversation)}/${encodeURIComponent(ref)}`;
    void this.open();
    let seen = comebacks.peek();
    const back = comebacks.subscribe((n) => {
      if (n === seen) return;
      seen = n;
      this.problem.value = "";
      if (!this.ready.peek()) void this.open(); else this.need(...this.looked);
    });
    this.stop.signal.addEventListener("abort", back);
  }

  close() { this.stop.abort(); this.off(); for (const a of this.flying.values()) a.abort(); }

  private complain(e: unknown) {
    // The state of the connection is shown elsewhere, and this is requested again when the server is back.
    if (this.stop.signal.aborted || e instanceof Unreachable) return;
    if (isGone(e)) this.missing.value = true; else this.problem.value = (e as Error).message;
  }

  private async open() {
    try {
      const t = await get<Tail>(`${this.path}/tail?lines=1`, this.stop.signal);
      this.bytes.value = t.total_bytes;
      if (t.total_lines !== null) this.total.value = t.total_lines;
      if (t.unfinished || t.total_lines === null) {
        this.growing.value = !!t.unfinished;
        const line = await this.lineAt(t.offset);
        this.grown = { line, partial: "" };
        this.total.value = Math.max(this.total.value, line);
        this.off();
        this.off = watch(this.topic, t.offset, (e) => this.take(e));
      }
      this.ready.value = true;
      this.changed.value++;
    } catch (e) { this.complain(e); }
  }

  private read(query: string, signal: AbortSignal) { return get<Read>(`${this.path}/read?${query}`, signal); }

  // The number of the line that begins at an offset: by bisection, because nobody counts the lines of an output
  // that is still growing.
  private async lineAt(offset: number): Promise<number> {
    let low = 1, high = 2;
    if (offset === 0) return 1;
    while (await this.offsetOf(high) < offset) { low = high; high *= 4; }
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (await this.offsetOf(middle) < offset) low = middle + 1; else high = middle;
    }
    return low;
  }
  // Where a line begins.
  async offsetOf(n: number) { return (await this.read(`line=${n}&count=1&limit=1`, this.stop.signal)).offset; }
  async piece(offset: number, limit: number) {
    const r = await this.read(`offset=${offset}&limit=${limit}`, this.stop.signal);
    return { text: textOf(r), offset: r.offset, end: r.next_offset };
  }

  private take(e: HubEvent) {
    if (e.type === "end") { this.growing.value = false; this.off(); void this.fix(); }
    else if (e.type === "gone") { this.growing.value = false; this.off(); }
    else if (e.type === "tail") { const r = e as unknown as Read; this.add(textOf(r), r.next_offset); }
  }

  private add(text: string, end: number) {
    const pieces = (this.grown.partial + text).split("\n");
    this.grown.partial = pieces.pop() ?? "";
    for (const p of pieces) this.fresh.set(this.grown.line++, { text: p });
    if (this.grown.partial.length > 20_000) this.grown.partial = this.grown.partial.slice(0, 20_000);
    if (this.grown.partial) this.fresh.set(this.grown.line, { text: this.grown.partial });
    for (const k of this.fresh.keys()) { if (this.fresh.size <= FRESH_KEPT) break; this.fresh.delete(k); }
    this.total.value = this.grown.line - (this.grown.partial ? 0 : 1);
    this.bytes.value = Math.max(this.bytes.value, end);
    this.changed.value++;
  }

  private async fix() {
    try {
      const t = await get<Tail>(`${this.path}/tail?lines=1`, this.stop.signal);
      if (t.total_lines !== null) this.total.value = t.total_lines;
      this.bytes.value = t.total_bytes;
      this.changed.value++;
    } catch { /* what is known stays */ }
  }

  line(n: number): Line | undefined {
    return this.fresh.get(n) ?? this.chunks.get(Math.floor((n - 1) / CHUNK))?.[(n - 1) % CHUNK];
  }

  // The lines that are visible now; lines that are no longer visible are not fetched any more.
  need(first: number, last: number) {
    const want: number[] = [];
    this.looked = [first, last];
    for (let c = Math.floor((first - 1) / CHUNK); c <= Math.floor((last - 1) / CHUNK); c++) {
      const kept = this.chunks.get(c);
      if (kept) { this.chunks.delete(c); this.chunks.set(c, kept); continue; }
      let covered = true;
      for (let n = c * CHUNK + 1; n <= Math.min((c + 1) * CHUNK, last) && covered; n++) covered = n < first || this.fresh.has(n);
      if (!covered) want.push(c);
    }
    for (const [c, a] of this.flying) if (!want.includes(c)) { a.abort(); this.flying.delete(c); }
    this.wanted = want.filter((c) => !this.flying.has(c));
    this.pump();
  }

  private pump() {
    while (this.flying.size < IN_FLIGHT && this.wanted.length) {
      const c = this.wanted.shift()!;
      const a = new AbortController();
      this.flying.set(c, a);
      this.fetch(c, a.signal).then((lines) => {
        if (lines.length === CHUNK || !this.growing.peek()) this.chunks.set(c, lines);
        else lines.forEach((l, i) => { const n = c * CHUNK + 1 + i; if (!this.fresh.has(n)) this.fresh.set(n, l); });
        for (const k of this.chunks.keys()) { if (this.chunks.size <= CHUNKS_KEPT) break; this.chunks.delete(k); }
        this.changed.value++;
      }, (e) => { if (!a.signal.aborted) this.complain(e); })
        .finally(() => { if (this.flying.get(c) === a) this.flying.delete(c); this.pump(); });
    }
  }

  private async fetch(c: number, signal: AbortSignal): Promise<Line[]> {
    const out: Line[] = [];
    while (out.length < CHUNK) {
      const r = await this.read(`line=${c * CHUNK + 1 + out.length}&count=${CHUNK - out.length}`, signal);
      const text = textOf(r);
      if (!text) break;
      const pieces = text.split("\n");
      const rest = pieces.pop()!;
      for (const p of pieces) out.push({ text: p });
      if (rest && r.done) out.push({ text: rest });
      else if (rest && !pieces.length) out.push({ text: rest, cut: true, offset: r.offset }); // longer than one answer
      if (r.done) break;
    }
    return out;
  }

  // The matches after a line, or before it, and how many there are before them and in all.
  grep(pattern: string, how: { from?: number; back?: boolean; context?: number; cased?: boolean; most?: number }, signal: AbortSignal): Promise<Found> {
    const q = new URLSearchParams({ pattern, max_results: String(how.most ?? MATCHES), context_lines: String(how.context ?? 0), case_sensitive: String(!!how.cased), spread: "256", from_line: String(Math.max(1, how.from ?? 1)) });
    if (how.back) q.set("direction", "backward");
    return get<Found>(`${this.path}/grep?${q}`, signal);
  }

  // The children of the JSON value at a byte, from the place where an earlier answer ended.
  level(at: number, cursor: string | null, signal: AbortSignal) {
    return get<{ items: Child[]; type: string; next_cursor: string | null }>(`${this.path}/json?limit=200&${cursor ? `cursor=${cursor}` : `at=${at}`}`, signal);
  }

  // The bytes from one place to another, unchanged.
  async *range(from: number, to: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const reader = (await ask(`${this.path}/raw`, { signal, headers: { Range: `bytes=${from}-${to - 1}` } })).body!.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read().catch((e) => {
          if (signal.aborted) throw e;
          lost(); // the reader of this asks again when the server is back
          throw new Unreachable("the answer broke off");
        });
        if (done) return;
        yield value;
      }
    } finally { void reader.cancel().catch(() => {}); }
  }

  // The whole output, with progress. A download that breaks off continues at the same byte when the server is
  // back.
  async raw(progress: (n: number) => void = () => {}): Promise<Blob> {
    const pieces: BlobPart[] = [];
    const signal = this.stop.signal;
    for (let n = 0; ;) {
      try {
        const answer = await ask(`${this.path}/raw`, { signal, ...(n ? { headers: { Range: `bytes=${n}-` } } : {}) });
        if (n && answer.status !== 206) { pieces.length = 0; n = 0; }
        const reader = answer.body!.getReader();
        for (;;) {
          const { done, value } = await reader.read();
          if (done) return new Blob(pieces, { type: "text/plain" });
          pieces.push(value as BlobPart);
          progress(n += value.length);
        }
      } catch (e) {
        if (e instanceof ApiError && e.status === 416) return new Blob(pieces, { type: "text/plain" });
        if (signal.aborted || e instanceof ApiError) throw e;
        const back = nextComeback(signal);
        lost();
        await back;
      }
    }
  }
}
