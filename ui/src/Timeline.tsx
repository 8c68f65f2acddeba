// Where the time went: every reply and every call as a bar, and the tape, which shows the same in one strip.
// Times in which only a person was waited for are folded.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { signal, useSignal } from "@preact/signals";
import { get, sleep } from "./api";
import { approvals } from "./approvals";
import type { Conversation } from "./conversation";
import { bytes, clock, cost, costOfAll, count, dollars, duration, now, plural, short, type Prices, type Tokens } from "./format";
import type { Status } from "./history";
import { Glyph, StateIcon, Unloaded, WORDS } from "./icons";
import { go, hrefOf } from "./route";
import { cut, plain, show } from "./text";
import { useRoving } from "./roving";
import { SHELLS } from "./shells";

export interface TimeRow {
  k: "user" | "reply" | "call"; seq: number; id: string; at: number; ms?: number; name?: string; model?: string; hint: string; state: string;
  reply?: string; bytes?: number; ref?: string; exit?: number; tokens?: Tokens;
}
export interface Totals {
  messages: number; turns: number; replies: number; calls: number; failed: number; firstAt: number; lastAt: number; workMs: number; tokens: Tokens; seq: number; whole: boolean;
  kept: number; tools: { name: string; calls: number; failed: number; ms: number; tokens: Tokens }[]; models: { name: string; calls: number; failed: number; ms: number; tokens: Tokens }[];
}
interface Answer { now: number; rows: TimeRow[]; next?: number; totals: Totals; prices?: Prices }

const ROWS_MOST = 150_000;
const FOLD_MS = 5000; // a longer pause is a break
const BREAK = 0.02; // of the width

export class Times {
  readonly rows = signal<TimeRow[]>([]);
  readonly totals = signal<Totals | null>(null);
  readonly prices = signal<Prices | undefined>(undefined);
  readonly skew = signal(0); // the server's clock minus ours
  readonly more = signal(false);
  readonly whole = signal(false); // all rows have arrived once
  private seq = -1;
  private busy: Promise<void> | null = null;
  private dirty = false;
  stopped = false;
  private summed = -1;

  constructor(private id: string) {}

  look(lastSeq: number): Promise<void> {
    if (lastSeq === this.seq) return Promise.resolve();
    this.seq = lastSeq;
    if (this.busy) { this.dirty = true; return this.busy; }
    return this.busy = this.load().catch(() => { this.seq = -1; }).finally(() => { this.busy = null; if (this.dirty) { this.dirty = false; this.seq = -1; void this.look(lastSeq); } });
  }

  // Rows that have their result do not change: only those from the first open one on are requested.
  private async load() {
    const known = this.rows.peek();
    const open = known.findIndex((r) => r.state === "open" || r.state === "queued");
    const kept = open < 0 ? known : known.slice(0, known.findIndex((r) => r.seq === known[open]!.seq));
    let from: number | undefined = kept.length ? kept.at(-1)!.seq + 1 : 1;
    const rows = kept.slice();
    let told = rows.length;
    while (from !== undefined && rows.length < ROWS_MOST && !this.stopped) {
      const a: Answer = await get<Answer>(`/api/chat-sessions/${encodeURIComponent(this.id)}/timeline?from=${from}`);
      rows.push(...a.rows);
      this.totals.value = a.totals;
      this.prices.value = a.prices;
      this.skew.value = a.now - Date.now();
      from = a.next;
      // The rows that have arrived are shown while the rest is loading, less often the more rows there are.
      if (from !== undefined && rows.length >= told * 2) { this.rows.value = rows.slice(); told = rows.length; }
    }
    this.more.value = from !== undefined;
    this.rows.value = rows;
    this.whole.value = true;
    // The sums of a long conversation may take longer than its rows.
    const t = this.totals.peek();
    if (t && !t.whole && t.seq !== this.summed) { this.summed = t.seq; this.dirty = true; await sleep(200); }
  }
}

// ---- the scale ----
export interface Bar { row: TimeRow; from: number; to: number; status: Status; lane: number }
interface Scale { bars: Bar[]; breaks: { at: number; ms: number }[]; span: number; lanes: number }

export const statusOf = (r: TimeRow, asked: Set<string>, live: boolean): Status =>
  r.state === "complete" ? "done" : r.state === "error" ? "error" : r.state === "denied" ? "denied" : r.state === "interrupted" ? "interrupted" : r.state === "cut" ? "cut"
    : asked.has(r.id) ? "waiting" : !live ? "unrecorded" : r.state === "queued" ? "queued" : "running";

// The run may know that a call has begun before the rows do, which are older.
function statusesOf(rows: TimeRow[], asked: Set<string>, live: boolean, begun: string): Status[] {
  const run = new Set(begun.split("\n"));
  return rows.map((r) => { const s = statusOf(r, asked, live); return s === "queued" && run.has(r.id) ? "running" : s; });
}

function scaleOf(rows: TimeRow[], asked: Set<string>, live: boolean, begun: string, at: number, order: boolean): Scale {
  const bars: Bar[] = [];
  const timed = rows.filter((r) => r.k !== "user"), all = statusesOf(timed, asked, live, begun);
  if (order) {
    timed.forEach((row, i) => bars.push({ row, from: i / timed.length, to: (i + 1) / timed.length, status: all[i]!, lane: row.k === "reply" ? 0 : 1 }));
    return { bars, breaks: [], span: 0, lanes: 2 };
  }
  const ends = timed.map((r, i) => ({ r, status: all[i]! })).map(({ r, status }) => ({ r, status, from: r.at, to: r.at + Math.max(1, r.ms ?? (status === "running" || status === "waiting" ? at - r.at : 1)) }));
  // Pieces of time in which something was working; a call that waits for a person does not count.
  const pieces = ends.filter((e) => e.status !== "waiting").map((e) => [e.from, e.to] as [number, number]).sort((a, b) => a[0] - b[0]);
  for (const e of ends) if (e.status === "waiting") pieces.push([e.from, e.from + 1]);
  pieces.sort((a, b) => a[0] - b[0]);
  const runs: [number, number][] = [];
  for (const [a, b] of pieces) { const l = runs.at(-1); if (l && a <= l[1] + FOLD_MS) l[1] = Math.max(l[1], b); else runs.push([a, b]); }
  const work = runs.reduce((n, [a, b]) => n + b - a, 0) || 1;
  const gaps = Math.max(0, runs.length - 1);
  const unit = Math.min(BREAK, gaps ? 0.4 / gaps : BREAK);
  const wide = 1 - gaps * unit - (ends.some((e) => e.status === "waiting") ? 0.06 : 0);
  const breaks: Scale["breaks"] = [];
  const starts: { a: number; b: number; x: number; w: number }[] = [];
  let x = 0;
  runs.forEach(([a, b], i) => {
    const w = ((b - a) / work) * wide;
    starts.push({ a, b, x, w });
    x += w;
    if (i < gaps) { breaks.push({ at: x + unit / 2, ms: runs[i + 1]![0] - b }); x += unit; }
  });
  let at_ = 0;
  const place = (t: number) => {
    while (at_ > 0 && t < starts[at_]!.a) at_--;
    while (at_ < starts.length - 1 && t >= starts[at_ + 1]!.a) at_++;
    const s = starts[at_];
    return s ? s.x + Math.min(1, Math.max(0, (t - s.a) / Math.max(1, s.b - s.a))) * s.w : 0;
  };
  const lanes: number[] = [];
  for (const e of ends) {
    const from = place(e.from), to = e.status === "waiting" ? Math.min(1, from + 0.06) : place(e.to);
    let lane = 0;
    if (e.r.k === "call") { lane = 1; while ((lanes[lane] ?? 0) > e.from + 1) lane++; lanes[lane] = e.to; }
    bars.push({ row: e.r, from, to: Math.max(to, from), status: e.status, lane });
  }
  return { bars, breaks, span: work, lanes: Math.max(2, lanes.length) };
}

const RANK: Record<string, number> = { waiting: 5, error: 4, indeterminate: 3, running: 2, denied: 1 };
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colourOf = (b: Bar) => (b.status === "error" ? "--bar-err" : b.status === "waiting" ? "--wait" : b.status === "running" ? "--run" : b.status === "denied" || b.status === "indeterminate" ? "--odd" : b.row.k === "reply" ? "--bar-model" : "--bar-tool");

// The tape: the worst state in each pixel wins. While rows are still loading, they take only their part of it.
function Tape({ scale, choose, at, part, calls, all }: { scale: Scale; choose: (b: Bar) => void; at: number; part: number; calls: number; all: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const bars = scale.bars;
  const [wide, setWide] = useState(0);
  useEffect(() => { const w = new ResizeObserver(() => setWide(canvas.current?.clientWidth ?? 0)); w.observe(canvas.current!); return () => w.disconnect(); }, []);
  useEffect(() => {
    const c = canvas.current!, ratio = devicePixelRatio || 1, full = c.clientWidth, W = full * part, H = 34;
    c.width = Math.max(1, full * ratio); c.height = H * ratio;
    const g = c.getContext("2d");
    if (!g) return;
    g.scale(ratio, ratio);
    g.fillStyle = css("--sunken");
    g.fillRect(0, 0, full, H);
    const step = Math.min(5, 24 / scale.lanes);
    const colours = new Map<string, string>();
    const colour = (name: string) => { let c = colours.get(name); if (c === undefined) colours.set(name, c = css(name)); return c; };
    for (const b of [...bars].sort((p, q) => (RANK[p.status] ?? 0) - (RANK[q.status] ?? 0))) {
      const x = b.from * W, w = Math.max(b.status === "error" || b.status === "waiting" ? 3 : 1, (b.to - b.from) * W);
      g.fillStyle = colour(colourOf(b));
      const y = b.row.k === "reply" ? 1 : 10 + Math.min(b.lane - 1, scale.lanes) * step;
      g.fillRect(x, y, w, b.row.k === "reply" ? 7 : Math.max(b.status === "error" ? 3 : 1.5, step - 1));
      // Failures and waiting calls are visible at any size.
      if (b.status === "error" || b.status === "waiting") g.fillRect(Math.max(0, Math.min(W - 3, x + w - 3)), 9, 3, 24);
    }
    g.strokeStyle = css("--edge");
    g.setLineDash([2, 2]);
    for (const k of scale.breaks) { g.beginPath(); g.moveTo(k.at * W, 0); g.lineTo(k.at * W, H); g.stroke(); }
  }, [scale, wide, part]);
  const here = bars[at];
  const words = here ? `${here.row.k === "call" ? `Call ${bars.slice(0, at + 1).filter((b) => b.row.k === "call").length} of ${calls}` : "Reply"}, ${WORDS[here.status].toLowerCase()}: ${plain(here.row.hint || here.row.name || here.row.model || "", 80)}` : `${plural(calls, "call")}, ${plural(all - calls, "reply", "replies")}`;
  const move = (i: number) => { const b = bars[Math.max(0, Math.min(bars.length - 1, i))]; if (b) choose(b); };
  return <canvas ref={canvas} class="tape" height={34} role="slider" tabIndex={0} aria-label="Tape of the run" aria-valuemin={0} aria-valuemax={Math.max(0, all - 1)} aria-valuenow={Math.max(0, at)} aria-valuetext={words} title={words}
    onKeyDown={(e) => {
      const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : e.key === "PageDown" ? 20 : e.key === "PageUp" ? -20 : 0;
      if (by) { e.preventDefault(); move(at + by); } else if (e.key === "Home") move(0); else if (e.key === "End") move(bars.length - 1);
    }}
    onClick={(e) => {
      const x = e.offsetX / e.currentTarget.clientWidth / part;
      let best = 0, far = Infinity;
      bars.forEach((b, i) => { const d = (x < b.from ? b.from - x : x > b.to ? x - b.to : 0) - (RANK[b.status] ?? 0) * 0.002; if (d < far) { far = d; best = i; } });
      move(best);
    }} />;
}

function useScale(c: Conversation, order: boolean): Scale {
  const rows = c.times.rows.value;
  const live = !!c.run.value && !c.run.value.over.value;
  const asked = new Set(approvals.value.filter((a) => a.conversation === c.id).map((a) => a.call));
  const key = useRef<{ rows: TimeRow[]; live: boolean; begun: string; asked: string; order: boolean; at: number; scale: Scale } | null>(null);
  // While something is open, the scale grows in steps and not with every tick.
  const open = live && rows.some((r) => r.state === "open");
  const at = open ? Math.floor((now.value + c.times.skew.value) / 1000) * 1000 : 0;
  const names = [...asked].join(), begun = c.run.value?.begun.value ?? "";
  if (!key.current || key.current.rows !== rows || key.current.live !== live || key.current.begun !== begun || key.current.asked !== names || key.current.order !== order || key.current.at !== at)
    key.current = { rows, live, begun, asked: names, order, at, scale: scaleOf(rows, asked, live, begun, at || Date.now(), order) };
  return key.current.scale;
}

// The header of a conversation: its figures, and the tape.
export function Vitals({ conversation: c }: { conversation: Conversation }) {
  const scale = useScale(c, false);
  const t = c.times.totals.value;
  const here = c.here.value;
  const chosen = useMemo(() => scale.bars.findIndex((b) => isHere(b.row, here)), [scale, here]);
  if (!t) return <div class="vitals" aria-hidden="true"><p class="facts-line">&nbsp;</p></div>;
  const live = !!c.run.value && !c.run.value.over.value;
  const waits = approvals.value.some((a) => a.conversation === c.id);
  const state: Status = waits ? "waiting" : live ? "running" : "done";
  const money = costOfAll(c.times.prices.value, t.models);
  const whole = c.times.whole.value, calls = scale.bars.filter((b) => b.row.k === "call").length;
  const all = whole ? scale.bars.length : Math.max(scale.bars.length, t.calls + t.replies);
  const choose = (b: Bar) => goTo(c, b.row, true);
  return <div class="vitals">
    <p class="facts-line"><span class={`state-word s-${state}`}><StateIcon status={state} />{waits ? "Waits for you" : live ? "At work" : "Idle"}</span>
      {t.workMs > 0 && <span title={plural(Math.round(t.workMs), "millisecond")}>{duration(t.workMs)} at work</span>}
      {t.calls > 0 && <span>{plural(t.calls, "call")}</span>}
      {(t.tokens[0] > 0 || t.tokens[1] > 0) && <span title={`${count(t.tokens[0])} in (${count(t.tokens[2])} of them cached), ${count(t.tokens[1])} out`}>{short(t.tokens[0])} tokens in, {short(t.tokens[1])} out</span>}
      {money.sum > 0 && <span title={money.unpriced.length ? `without a price: ${money.unpriced.join(", ")}` : "from the prices of your configuration"}>{dollars(money.sum)}{money.unpriced.length ? "+" : ""}</span>}
      {t.kept > 0 && <span class="kept" title={`${plural(t.kept, "byte")} are in outputs and were kept out of contexts`}>{bytes(t.kept)} kept out</span>}
      {t.models.slice(0, 2).map((m) => <span key={m.name}>{show(cut(m.name, 40))}</span>)}
    </p>
    {scale.bars.length > 0 && <Tape scale={scale} choose={choose} at={chosen} part={whole ? 1 : scale.bars.length / all} calls={whole ? calls : t.calls} all={all} />}
    {scale.bars.length > 0 && <p class="tape-scale" aria-hidden="true"><span>{clock(t.firstAt)}</span>{scale.breaks.length > 0 && <span>{plural(scale.breaks.length, "pause")} folded, {duration(scale.breaks.reduce((n, b) => n + b.ms, 0))}</span>}<span>{live ? "now" : clock(t.lastAt)}</span></p>}
  </div>;
}

const isHere = (r: TimeRow, h: Conversation["here"]["value"]) => !!h && r.seq === h.seq && (r.k === "call" ? r.id === h.call : h.call === undefined);

function goTo(c: Conversation, r: TimeRow, replace = false) {
  c.here.value = { seq: r.seq, call: r.k === "call" ? r.id : undefined };
  go({ view: "conversation", id: c.id, from: r.seq, ...(r.k === "call" ? { call: r.id } : { message: r.id }) }, replace);
}

// A beginning that siblings share says nothing about one of them: only the first one shows it.
function hintsOf(rows: TimeRow[]): Map<TimeRow, string> {
  const out = new Map<TimeRow, string>();
  for (const words of [1, 2]) {
    const groups = new Map<string, TimeRow[]>();
    for (const r of rows) if (r.k === "call" && !out.has(r)) { const g = `${r.reply}\n${r.name}\n${r.hint.split(/[\s/]+/, words).join(" ")}`; const all = groups.get(g); if (all) all.push(r); else groups.set(g, [r]); }
    for (const all of groups.values()) if (all.length > 2) {
      const first = all[0]!.hint;
      let n = 0;
      while (n < first.length && all.every((r) => r.hint[n] === first[n])) n++;
      n = /^.*\s(?=-\S*$)|^.*[^a-z0-9]|^/i.exec(first.slice(0, n))![0].length;
      if (n > 6) all.forEach((r, i) => out.set(r, i ? `… ${r.hint.slice(n)}` : r.hint));
    }
  }
  return out;
}

const PHONE = matchMedia("(max-width: 760px)");
type Sort = "time" | "order" | "slowest" | "costliest" | "failed";
export function Waterfall({ conversation: c, wide }: { conversation: Conversation; wide: boolean }) {
  const all = useRoving<HTMLElement>(".seg button, .time-row[aria-selected=true]", ".time-row");
  const sort = useSignal<Sort>("time");
  const ROW = PHONE.matches ? 40 : 25;
  const scale = useScale(c, sort.value === "order");
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const focus = useSignal(0);
  const rows = c.times.rows.value, t = c.times.totals.value;
  // Breaks that are too close to tell apart become one.
  const breaks = useMemo(() => [...new Map(scale.breaks.map((x) => [Math.round(x.at * 60), x])).values()], [scale]);
  const bars = useMemo(() => new Map(scale.bars.map((b) => [b.row, b])), [scale]);
  const prices = c.times.prices.value;
  const took = (r: TimeRow) => r.ms ?? 0;
  const paid = (r: TimeRow) => (r.tokens ? cost(prices, r.model ?? "", r.tokens) ?? (r.tokens[0] + r.tokens[1]) / 1e9 : 0);
  // Not for every row that is scrolled past: there may be a hundred thousand.
  const { list, hints, slow, calls, replies } = useMemo(() => {
    const list = sort.value === "slowest" ? rows.filter((r) => r.k !== "user").sort((a, b) => took(b) - took(a)) : sort.value === "costliest" ? rows.filter((r) => r.k === "reply").sort((a, b) => paid(b) - paid(a))
      : sort.value === "failed" ? rows.filter((r) => r.state === "error" || r.state === "denied") : rows;
    const times = rows.filter((r) => r.k === "call").map(took).sort((a, b) => a - b);
    const slow = times.length >= 5 ? Math.max(1, times[Math.floor(times.length * 0.9)]!) : Infinity;
    return { list, hints: hintsOf(list), slow, calls: times.length, replies: rows.filter((r) => r.k === "reply").length };
  }, [rows, sort.value, prices]);
  // The selected row is the one at the reader's place.
  const here = c.here.value;
  useEffect(() => {
    const el = box.current!, i = here ? list.findIndex((r) => isHere(r, here)) : -1;
    if (i < 0 || i === focus.peek() || el.contains(document.activeElement)) return;
    focus.value = i;
    const y = i * ROW - el.scrollTop;
    if (y < 0 || y > el.clientHeight - ROW) el.scrollTop = i * ROW - el.clientHeight / 3;
  }, [here, list]);
  const high = box.current?.clientHeight ?? 600;
  const from = Math.max(0, Math.floor(top / ROW) - 8), to = Math.min(list.length, Math.ceil((top + high) / ROW) + 8);
  const key = (e: KeyboardEvent) => {
    const by = e.key === "ArrowDown" || e.key === "j" ? 1 : e.key === "ArrowUp" || e.key === "k" ? -1 : e.key === "PageDown" ? 20 : e.key === "PageUp" ? -20 : 0;
    let next = by ? focus.peek() + by : e.key === "Home" ? 0 : e.key === "End" ? list.length - 1 : -1;
    if (e.key === "ArrowUp" && !focus.peek()) return; // out of the rows, to the buttons above
    if (e.key === "Enter") { const r = list[focus.peek()]; if (r) { e.preventDefault(); goTo(c, r); } return; }
    if (e.key === "e" || e.key === "E") { const d = e.key === "e" ? 1 : -1; next = focus.peek(); do next += d; while (list[next] && list[next]!.state !== "error"); if (!list[next]) return; }
    if (next < 0 && !by) return;
    e.preventDefault();
    e.stopPropagation();
    focus.value = Math.max(0, Math.min(list.length - 1, next));
    const el = box.current!, y = focus.peek() * ROW;
    if (y < el.scrollTop) el.scrollTop = y; else if (y + ROW * 2 > el.scrollTop + el.clientHeight) el.scrollTop = y + ROW * 2 - el.clientHeight;
    requestAnimationFrame(() => el.querySelector<HTMLElement>(`[data-index="${focus.peek()}"]`)?.focus({ preventScroll: true }));
  };
  return <section class={`timeline${wide ? " wide" : ""}`} aria-label="Timeline" ref={all}>
    <header class="timeline-head"><h3>Timeline</h3><span class="quiet">{!c.times.whole.value ? t && `loading: ${count(calls)} of ${plural(t.calls, "call")}` : t && `${plural(calls, "call")}, ${plural(replies, "reply", "replies")}${c.times.more.value ? ", the first of more" : ""}`}</span>
      <span class="seg" role="group" aria-label="Order of rows">{(wide ? ["time", "order", "slowest", "costliest", "failed"] : ["time", "order", "slowest", "failed"]).map((s) => <button key={s} type="button" aria-pressed={sort.value === s} onClick={() => { sort.value = s as Sort; focus.value = 0; box.current!.scrollTop = 0; }}>{s[0]!.toUpperCase() + s.slice(1)}</button>)}</span></header>
    <div class="timeline-rows" ref={box} role="treegrid" aria-label="Replies and calls" aria-rowcount={c.times.whole.value ? list.length : -1} onScroll={(e) => setTop(e.currentTarget.scrollTop)} onKeyDown={key} tabIndex={-1}>
      {list.length === 0 && <div role="row"><p role="gridcell" class="edge">{!c.times.whole.value ? <Unloaded /> : sort.value === "failed" ? "Nothing has failed." : "Nothing has been called yet."}</p></div>}
      <div class="timeline-space" role="presentation" style={{ height: `${list.length * ROW}px` }}>
        {list.slice(from, to).map((r, k) => {
          const i = from + k, b = bars.get(r), status = b?.status ?? "done";
          return <div key={`${r.seq}:${r.id}`} class={`time-row k-${r.k} s-${status}${took(r) >= slow && r.k === "call" ? " slow" : ""}`} role="row" tabIndex={focus.value === i ? 0 : -1} aria-rowindex={i + 1} aria-level={r.k === "call" ? 2 : 1} aria-selected={focus.value === i} data-index={i} data-time={r.id} style={{ top: `${i * ROW}px` }}
            onClick={() => { focus.value = i; goTo(c, r); }}>
            <span class="time-name" role="gridcell">{r.k === "user" ? <Glyph name="person" /> : r.k === "reply" ? <Glyph name="model" /> : <StateIcon status={status} word />}
              <span class="time-hint">{r.k === "call" ? <>{hints.get(r)?.startsWith("…") || (r.hint && SHELLS.test(r.name ?? "")) ? null : <b>{show(cut(r.name ?? "", 60))} </b>}{show(cut(plain(hints.get(r) ?? r.hint, 120), 120))}</> : r.k === "reply" ? show(cut(r.model || "Reply", 60)) : show(cut(plain(r.hint, 90), 90))}</span></span>
            <span class="time-track" role="gridcell">{b && <i class={`tbar b-${r.k}`} style={{ left: `${b.from * 100}%`, width: `max(2px, ${(b.to - b.from) * 100}%)` }} />}
              {sort.value === "time" && breaks.map((x, n) => <i key={n} class="break" style={{ left: `${x.at * 100}%` }} title={`${duration(x.ms)} idle`} />)}</span>
            <span class="time-took" role="gridcell" title={clock(r.at)}>{wide && r.tokens && <span class="quiet" title={`${count(r.tokens[0])} in, ${count(r.tokens[1])} out`}>{short(r.tokens[0] + r.tokens[1])} tok</span>}{wide && r.tokens && cost(prices, r.model ?? "", r.tokens) !== undefined && <span class="quiet">{dollars(cost(prices, r.model ?? "", r.tokens)!)}</span>}{wide && r.bytes ? <span class="quiet">{bytes(r.bytes)}</span> : null}
              {r.exit ? <span class="bad">exit {r.exit}</span> : null}{r.k === "user" ? clock(r.at).split(", ").at(-1) : r.ms !== undefined ? duration(r.ms) : status === "waiting" ? "waits" : status === "running" ? duration(Math.max(0, now.value + c.times.skew.value - r.at)) : "—"}</span>
          </div>;
        })}
      </div>
    </div>
    <p class="legend" aria-hidden="true"><i class="tbar b-reply" />model <i class="tbar b-call" />tool <i class="tbar b-err" />failed <i class="tbar b-wait" />needs you</p>
  </section>;
}

export const timelineHref = (id: string) => hrefOf({ view: "timeline", id });
