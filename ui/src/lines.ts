// The lines of an artifact, however many: fetched by range, a bounded number kept.
import { signal } from "@preact/signals";
import { ask, follow, get, type ServerEvent } from "./api";

const CHUNK = 64;
const CHUNKS_KEPT = 300;
const FRESH_KEPT = 6000;
const IN_FLIGHT = 3;
const MATCHES_KEPT = 1000;

export interface Line { text: string; cut?: boolean }
interface Read { content: string; encoding?: string; offset: number; next_offset: number; done: boolean; total_bytes: number; unfinished?: boolean }
interface Tail { total_lines: number | null; total_bytes: number; offset: number; unfinished?: boolean }
export interface Match { line: number; byte_offset: number; content: string; before?: string[]; after?: string[] }
export interface Found { matches: Match[]; total_matches: number; truncated: boolean; next_line?: number }

function textOf(r: { content: string; encoding?: string }): string {
  if (r.encoding !== "base64") return r.content;
  return new TextDecoder().decode(Uint8Array.from(atob(r.content), (c) => c.charCodeAt(0)));
}

export class Lines {
  readonly total = signal(0);
  readonly bytes = signal(0);
  readonly growing = signal(false);
  readonly ready = signal(false);
  readonly problem = signal("");
  readonly changed = signal(0);
  private chunks = new Map<number, Line[]>();
  private fresh = new Map<number, Line>(); // what came while following
  private grown = { line: 1, partial: "" };
  private wanted: number[] = [];
  private flying = new Map<number, AbortController>();
  private stop = new AbortController();
  private path: string;

  constructor(conversation: string, ref: string) {
    this.path = `/api/chat-sessions/${encodeURIComponent(conversation)}/context/${encodeURIComponent(ref)}`;
    void this.open();
  }

  close() { this.stop.abort(); for (const a of this.flying.values()) a.abort(); }

  private async open() {
    try {
      const t = await get<Tail>(`${this.path}/tail?lines=1`, this.stop.signal);
      this.bytes.value = t.total_bytes;
      if (t.total_lines !== null) this.total.value = t.total_lines;
      if (t.unfinished || t.total_lines === null) {
        this.growing.value = !!t.unfinished;
        await this.grow(t.offset);
      }
      this.ready.value = true;
      this.changed.value++;
    } catch (e) {
      if (!this.stop.signal.aborted) this.problem.value = (e as Error).message;
    }
  }

  private read(query: string, signal: AbortSignal) { return get<Read>(`${this.path}/read?${query}`, signal); }

  // The number of the line that begins at an offset: by halving, since nobody counts what still grows.
  private async lineAt(offset: number): Promise<number> {
    let low = 1, high = 2;
    const begins = async (n: number) => (await this.read(`line=${n}&count=1`, this.stop.signal)).offset;
    if (offset === 0) return 1;
    while (await begins(high) < offset) { low = high; high *= 4; }
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (await begins(middle) < offset) low = middle + 1; else high = middle;
    }
    return low;
  }

  private async grow(offset: number) {
    const line = await this.lineAt(offset);
    this.grown = { line, partial: "" };
    this.total.value = Math.max(this.total.value, line);
    let first = true;
    void follow(`${this.path}/tail?follow=1&lines=1`, (e) => this.take(e, () => {
      // The tail may have moved on between the two requests.
      const moved = first;
      first = false;
      return moved ? offset : -1;
    }), this.stop.signal).catch((e) => { this.problem.value = (e as Error).message; });
  }

  private take(e: ServerEvent, begin: () => number): boolean {
    if (e.type === "end") { this.growing.value = false; this.fix(); return true; }
    if (e.type !== "tail") return false;
    const r = JSON.parse(e.data) as Read;
    const from = begin();
    if (from >= 0 && r.offset !== from) { void this.catchUp(from, r); return false; }
    this.add(textOf(r), r.next_offset);
    return false;
  }

  private gap: Promise<void> | null = null;
  private async catchUp(from: number, then: Read) {
    this.gap = (async () => {
      for (let at = from; at < then.offset;) {
        const r = await this.read(`offset=${at}&limit=${Math.min(12_288, then.offset - at)}`, this.stop.signal);
        this.add(textOf(r), r.next_offset);
        at = r.next_offset;
      }
      this.add(textOf(then), then.next_offset);
    })();
    await this.gap.catch(() => {});
    this.gap = null;
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

  // What is looked at now; what is no longer is not fetched any more.
  need(first: number, last: number) {
    const want: number[] = [];
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
      }, (e) => { if (!a.signal.aborted) this.problem.value = (e as Error).message; })
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
      else if (rest && !pieces.length) out.push({ text: rest, cut: true }); // longer than one answer
      if (r.done) break;
    }
    return out;
  }

  // An answer is small enough for a model's context, so a search is several of them.
  async grep(pattern: string, context: number, cased: boolean, signal: AbortSignal): Promise<Found> {
    const query = `pattern=${encodeURIComponent(pattern)}&context_lines=${context}&case_sensitive=${cased}`;
    const all: Found = { matches: [], total_matches: 0, truncated: true };
    let from: number | undefined = 1;
    while (from && all.matches.length < MATCHES_KEPT) {
      const f: Found = await get<Found>(`${this.path}/grep?${query}&max_results=${MATCHES_KEPT - all.matches.length}&from_line=${from}`, signal);
      all.matches.push(...f.matches);
      all.total_matches = f.total_matches;
      all.truncated = f.truncated;
      from = f.next_line;
    }
    return all;
  }

  async raw(signal?: AbortSignal): Promise<Blob> {
    return await (await ask(`${this.path}/raw`, signal ? { signal } : {})).blob();
  }
}
