// A whole output: a window into its lines, search on the server in both directions, following an output that
// grows.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { comebacks, get, Unreachable } from "./api";
import { bytes, count, plural } from "./format";
import type { Ref } from "./history";
import { StateIcon, WORDS } from "./icons";
import { Missing, named } from "./Missing";
import { Lines, type Found, type Line, type Match } from "./lines";
import { nameOf } from "./list";
import { wrap } from "./prefs";
import { useRoving } from "./roving";
import { cameFromConversation, go, hrefOf, route, sharedLink, type Route } from "./route";
import { FoldedJson } from "./Folded";
import { Scroll } from "./scroll";
import { SHELLS } from "./shells";
import { ansi, cut, lastDrawn, Pen, plain, redrawn, show, type Paint } from "./text";
import { copied, LINKED, toast } from "./toast";
import { statusOf, Times, type TimeRow } from "./Timeline";
import { ERRORS } from "./Tool";

const ROW = 20;
const OVER = 12;
const LONG = 4096; // letters; a longer line is a window
const WINDOW = 2048;
const COPY_MOST = 4_000_000;
const COUNT_MOST = 300_000_000; // bytes up to which errors are counted without a click

export function Output({ id, refId }: { id: string; refId: string }) {
  const [lines, setLines] = useState<Lines | null>(null);
  const hint = useSignal(refId);
  const row = useSignal<TimeRow | null>(null); // the call that printed it
  useEffect(() => {
    const l = new Lines(id, refId);
    setLines(l);
    get<{ items: Ref[] }>(`/api/chat-sessions/${encodeURIComponent(id)}/context?limit=200`).then((list) => {
      hint.value = list.items.find((r) => r.id === refId)?.hint ?? refId;
    }, () => {});
    const times = new Times(id);
    void times.look(0);
    const off = times.rows.subscribe((all) => { const r = all.find((x) => x.ref === refId); if (r) { row.value = r; times.stopped = true; } });
    return () => { l.close(); off(); times.stopped = true; };
  }, [id, refId]);
  const r = row.value, name = !r ? hint.value : r.hint && SHELLS.test(r.name ?? "") ? r.hint : `${r.name} ${r.hint}`;
  useEffect(() => { named.value = plain(name, 80); }, [name]);
  if (lines?.missing.value) return <Missing what="output"><a class="button" href={hrefOf({ view: "conversation", id })}>Go to its conversation</a></Missing>;
  return lines ? <Viewer key={`${id}/${refId}`} lines={lines} id={id} refId={refId} name={name} row={r} /> : null;
}

interface Here { match: Match; index: number; total: number }

function Viewer({ lines, id, refId, name, row }: { lines: Lines; id: string; refId: string; name: string; row: TimeRow | null }) {
  const box = useRef<HTMLDivElement>(null);
  const tools = useRoving<HTMLDivElement>("button");
  const scroll = useRef(new Scroll(ROW)).current;
  const [, repaint] = useState(0);
  const live = useSignal(false);
  const found = useSignal<Found | null>(null); // the matches around
  const current = useSignal<Here | null>(null);
  const none = useSignal(false);
  const busy = useSignal(false);
  const wrong = useSignal("");
  const context = useSignal(0);
  const cased = useSignal(false);
  const regex = useSignal(true);
  const taking = useSignal("");
  const folded = useSignal(false);
  const wrongs = useSignal<Found | null>(null); // the lines that look like errors
  const pattern = useSignal(route.peek().query ?? ""); // the pattern that was searched for
  const typed = useSignal(pattern.peek());
  const searching = useRef<AbortController | null>(null);
  const started = useRef(false);
  const ending = useRef(false); // the last line should be visible
  const place = route.value;
  const here = (more: Partial<Route>): Route => ({ view: "output", id, ref: refId, ...more });

  lines.changed.value;
  const total = lines.total.value;
  // A wrapped line counts as one row when scrolling, whatever its height; the last line can be scrolled to the
  // top.
  const wrapped = wrap.value === "on";
  const high = Math.ceil((box.current?.clientHeight ?? 0) / ROW);
  scroll.resize(total + (wrapped && total ? high - 1 : 0));

  // A place that the reader jumps to is shown a third below the top.
  const showLine = (n: number, third = true) => {
    const el = box.current!;
    live.value = ending.current = false;
    if (wrap.peek() === "on") third = false; // the lines above may have any height
    scroll.to(el, (n - 1) * ROW - (third ? Math.max(0, (el.clientHeight - ROW) / 3) : 0));
    repaint((x) => x + 1);
  };
  const mark = (n: number) => {
    const line = Math.max(1, Math.min(Math.trunc(n) || 1, lines.total.peek() || 1));
    const { line: was, column, query = "" } = route.peek();
    go(here({ line, ...(was === line && column && query === pattern.peek() ? { column } : {}), ...(pattern.peek() && current.peek() ? { query: pattern.peek() } : {}) }), true);
    showLine(line);
  };
  const toEnd = () => {
    const el = box.current!, y = lines.total.peek() * ROW - el.clientHeight;
    if (!wrapped || !ending.current || scroll.top(el) * ROW < y) scroll.to(el, y);
    ending.current = true;
    repaint((x) => x + 1);
  };
  // How many wrapped lines fit above the end is known only when they are drawn.
  useLayoutEffect(() => {
    const el = box.current!, rows = [...el.querySelectorAll<HTMLElement>(".line-row")];
    if (!wrapped || !ending.current || Number(rows.at(-1)?.dataset.line) !== total) return;
    let first = rows.length - 1;
    for (let left = el.clientHeight - rows[first]!.offsetHeight; first > 0 && rows[first - 1]!.offsetHeight <= left; first--) left -= rows[first - 1]!.offsetHeight;
    const line = Number(rows[first]!.dataset.line);
    if (line - 1 > Math.floor(scroll.top(el))) { scroll.to(el, (line - 1) * ROW); repaint((x) => x + 1); }
  });
  const standing = () => route.peek().line ?? Math.floor(scroll.top(box.current!)) + 1;

  // ---- search: from the reader's place, in both directions; the server counts all matches ----
  // Then the match must be visible, also where its line is wider than the window.
  const aim = useRef(false);
  const aimed = () => {
    const el = box.current, m = aim.current && el?.querySelector<HTMLElement>(".here mark");
    if (!el || !m) return;
    aim.current = false;
    const left = m.getBoundingClientRect().left - el.getBoundingClientRect().left + el.scrollLeft;
    el.scrollLeft = left + m.offsetWidth + 40 < el.clientWidth ? 0 : left - el.clientWidth / 3;
  };
  useLayoutEffect(aimed);
  const arrive = (f: Found, i: number) => {
    found.value = f;
    aim.current = true;
    const match = f.matches[i]!;
    current.value = { match, index: (f.matches_before ?? 0) + i, total: f.total_matches };
    none.value = false;
    mark(match.line);
  };
  const seek = async (text: string, from: number, back: boolean) => {
    searching.current?.abort();
    const stop = searching.current = new AbortController();
    wrong.value = "";
    busy.value = true;
    const how = { context: context.peek(), cased: cased.peek() };
    try {
      const beyond = back && from < 1;
      let f = await lines.grep(text, { ...how, from: beyond ? lines.total.peek() : from, back }, stop.signal);
      // Round the end.
      if (!f.matches.length && f.total_matches) f = await lines.grep(text, { ...how, from: back ? lines.total.peek() : 1, back }, stop.signal);
      if (stop.signal.aborted) return;
      if (text === ERRORS) wrongs.value = f;
      if (!f.matches.length) { found.value = null; current.value = null; none.value = true; owed.current = 0; return; }
      arrive(f, back ? f.matches.length - 1 : 0);
    } catch (e) {
      if (stop.signal.aborted) return;
      if (e instanceof Unreachable) again.current = () => void seek(text, from, back);
      else wrong.value = (e as Error).message;
      owed.current = 0;
    } finally {
      if (searching.current === stop) {
        busy.value = false;
        const by = Math.sign(owed.current) as 1 | 0 | -1;
        owed.current -= by;
        if (by) step(by);
      }
    }
  };
  // Steps that the reader asked for while the server was searching.
  const owed = useRef(0);
  // A search that was interrupted because the server was away is repeated.
  const again = useRef<(() => void) | null>(null);
  useEffect(() => { const f = again.current; again.current = null; f?.(); }, [comebacks.value]);

  useEffect(() => () => searching.current?.abort(), []);
  useEffect(() => {
    if (!lines.ready.value || lines.bytes.peek() > COUNT_MOST) return;
    const stop = new AbortController();
    lines.grep(ERRORS, { most: 1 }, stop.signal).then((f) => { wrongs.value = f; }, () => {});
    return () => stop.abort();
  }, [lines.ready.value, lines.growing.value]);

  const patternOf = (text: string) => (regex.peek() ? text : text.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&"));
  const search = (text: string) => {
    typed.value = text;
    pattern.value = patternOf(text);
    found.value = null;
    current.value = null;
    none.value = false;
    owed.current = 0;
    if (!text) { wrong.value = ""; searching.current?.abort(); busy.value = false; go(here(place.line ? { line: place.line } : {}), true); return; }
    void seek(pattern.peek(), standing(), false);
  };
  const step = (by: 1 | -1) => {
    const now = current.peek(), f = found.peek();
    if (!pattern.peek()) return;
    if (busy.peek()) { owed.current += by; return; }
    if (!now || !f) { void seek(pattern.peek(), standing(), by < 0); return; }
    const i = f.matches.indexOf(now.match) + by;
    const stands = route.peek().line;
    if (stands === now.match.line && f.matches[i]) { arrive(f, i); return; }
    void seek(pattern.peek(), (stands ?? now.match.line) + by, by < 0);
  };
  const errors = (by: 1 | -1) => {
    if (pattern.peek() !== ERRORS) { pattern.value = ERRORS; typed.value = ""; found.value = null; current.value = null; owed.current = 0; void seek(ERRORS, standing() + (by < 0 ? -1 : 0), by < 0); } else step(by);
  };

  // ---- the first view, and later changes ----
  useLayoutEffect(() => {
    const el = box.current!;
    if (!lines.ready.value) return;
    if (!started.current) {
      started.current = true;
      if (place.line) showLine(Math.min(place.line, total || 1));
      if (place.query && !found.peek()) void seek(place.query, place.line ?? 1, false);
      else if (!place.line && lines.growing.peek()) live.value = true;
      el.focus({ preventScroll: true });
    }
    if (live.value) toEnd();
  }, [lines.changed.value, lines.ready.value, live.value]);

  // Another place in the same output, through a link or Back.
  useEffect(() => {
    const el = box.current;
    if (!started.current || !el) return;
    if (place.line) { const y = place.line - 1 - scroll.top(el); if (y < 0 || y > el.clientHeight / ROW - 1) showLine(Math.min(place.line, total || 1)); }
    if (place.query && place.query !== pattern.peek()) { pattern.value = typed.value = place.query; void seek(place.query, place.line ?? 1, false); }
  }, [place.line, place.query]);

  useEffect(() => {
    const el = box.current!;
    const watch = new ResizeObserver(() => repaint((x) => x + 1));
    watch.observe(el);
    const act = (e: Event) => {
      const what = (e as CustomEvent<string>).detail;
      if (what === "start") { go(here({}), true); showLine(1, false); }
      else if (what === "end") { live.value = lines.growing.peek(); toEnd(); }
      else if (what === "next" || what === "previous") step(what === "next" ? 1 : -1);
      else if (what === "error" || what === "error-back") errors(what === "error" ? 1 : -1);
      else if (what === "follow") { live.value = lines.growing.peek(); toEnd(); }
      else if (what === "down" || what === "up") { live.value = ending.current = false; scroll.to(el, scroll.top(el) * ROW + (what === "down" ? ROW : -ROW)); repaint((x) => x + 1); }
    };
    el.addEventListener("steno-act", act);
    return () => { watch.disconnect(); el.removeEventListener("steno-act", act); };
  }, [lines]);

  const el = box.current;
  const top = el ? scroll.top(el) : 0;
  const shown = el ? Math.ceil(el.clientHeight / ROW) : 40;
  const from = Math.max(1, Math.floor(top) + 1 - (wrapped ? 0 : OVER)), to = Math.min(total, Math.floor(top) + shown + OVER);
  useEffect(() => { if (lines.ready.value && total) { const t = setTimeout(() => lines.need(from, to), 25); return () => clearTimeout(t); } }, [from, to, lines.ready.value, total]);

  const scrolled = () => {
    const b = box.current!;
    scroll.scrolled(b);
    if (live.peek() && scroll.top(b) * ROW + b.clientHeight < lines.total.peek() * ROW - ROW * 2) live.value = false;
    repaint((x) => x + 1);
  };

  // ---- download ----
  const copy = async () => {
    try {
      const all = lines.bytes.peek() <= COPY_MOST;
      const text = all ? await (await lines.raw()).text()
        : Array.from({ length: to - from + 1 }, (_, i) => lines.line(from + i)?.text ?? "").join("\n");
      await navigator.clipboard.writeText(text);
      toast(all ? "The whole output is copied." : `It is large: lines ${count(from)} to ${count(to)} are copied.`);
    } catch (e) { toast(`Not copied: ${(e as Error).message}`); }
  };
  const download = async () => {
    try {
      const size = lines.bytes.peek();
      const blob = await lines.raw((n) => { taking.value = `${bytes(n)} of ${bytes(size)}`; });
      const url = URL.createObjectURL(blob);
      const a = document.createElement("a");
      a.href = url;
      a.download = `${refId.replace(/[^\w-]/g, "_")}.txt`;
      a.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (e) { toast(`Not downloaded: ${(e as Error).message}`); } finally { taking.value = ""; }
  };
  const leave = (e: KeyboardEvent) => { if (e.key === "Escape") { e.stopPropagation(); box.current!.focus(); } };
  const link = () => copied(sharedLink(here(place.line ? { line: place.line } : {})), LINKED);

  const at = current.value;
  const hits = new Map(found.value?.matches.map((m) => [m.line, m]));
  const pick = found.value && matcherOf(pattern.value, cased.value), put = marks(pick);
  // A colour may have begun above the lines that are shown.
  const pen = new Pen();
  for (let n = Math.max(1, from - 300); n < from; n++) pen.pass(lines.line(n)?.text ?? "");
  const digits = count(total).length;
  const range = total ? `Lines ${count(Math.floor(top) + 1)} to ${count(Math.min(total, Math.floor(top) + shown))} of ${count(total)}` : "Lines";
  return <section class="output" aria-label="Full output">
    <header class="bar">
      <a class="button small" href={hrefOf({ view: "conversation", id })} data-act="back" onClick={(e) => { if (cameFrom(id)) { e.preventDefault(); history.back(); } }}>← Back</a>
      <h2 title={cut(name, 200)}><span class="quiet wide-only">{show(cut(nameOf(id), 60))} / </span><bdi>{show(cut(name, 200))}</bdi></h2>
      {row && <span class="status">{[statusOf(row, new Set(), lines.growing.value)].map((s) => <><StateIcon status={s} /><span class={s === "error" ? "bad" : "quiet"}>{WORDS[s]}{row.exit ? `, exit ${row.exit}` : ""}</span></>)}</span>}
      <span class="figures" title={plural(lines.bytes.value, "byte")}>{plural(total, "line")} · {bytes(lines.bytes.value)}{lines.growing.value && <span class="flag live">growing</span>}</span>
    </header>
    <div class="bar tools" ref={tools} role="toolbar" aria-label="Output">
      <form class="find" role="search" aria-label="This output" onSubmit={(e) => { e.preventDefault(); const v = typed.peek(); if (current.peek() && patternOf(v) === pattern.peek()) step(1); else search(v); }}>
        <input id="find" name="pattern" type="search" aria-label="Search in the output (regular expression)" placeholder={regex.value ? "Search (regex)…" : "Search…"} value={typed.value} autocomplete="off" spellcheck={false}
          onInput={(e) => { typed.value = e.currentTarget.value; }} onKeyDown={leave} />
        <label class="check"><input type="checkbox" checked={cased.value} onChange={(e) => { cased.value = e.currentTarget.checked; if (typed.peek()) search(typed.peek()); }} />Aa</label>
        <label class="check" title="Regular expression"><input type="checkbox" data-act="regex" checked={regex.value} onChange={(e) => { regex.value = e.currentTarget.checked; if (typed.peek()) search(typed.peek()); }} />.*</label>
        <button type="button" aria-label="Previous match" disabled={!pattern.value || none.value} onClick={() => step(-1)}>↑</button>
        <button type="button" aria-label="Next match" disabled={!pattern.value || none.value} onClick={() => step(1)}>↓</button>
        <span class="hits" role="status">{busy.value && !at ? "searching…" : wrong.value ? <span class="bad">{show(cut(wrong.value, 200))}{regex.value && ". To search for exactly these letters, switch off .*"}</span>
          : at ? `${count(at.index + 1)} of ${count(at.total)}` : none.value ? "no match" : ""}</span>
      </form>
      <div class="acts">
      <button type="button" data-act="errors" class={wrongs.value?.total_matches ? "bad" : ""} onClick={() => errors(1)}>Errors{wrongs.value && ` ${count(wrongs.value.total_matches)}`}</button>
      <form class="line" onSubmit={(e) => { e.preventDefault(); const v = Number(String(new FormData(e.currentTarget).get("line")).replace(/\D/g, "")); if (v) { mark(v); box.current!.focus(); } }}>
        <input id="line" name="line" inputMode="numeric" aria-label="Go to line" placeholder="Line…" size={9} autocomplete="off" onKeyDown={leave} />
      </form>
      <button type="button" data-act="start" onClick={() => { go(here({}), true); showLine(1, false); }}>Start</button>
      <button type="button" data-act="end" onClick={() => { live.value = lines.growing.peek(); toEnd(); }}>End</button>
      {/^\s*[[{]/.test(lines.line(1)?.text ?? "") && <button type="button" data-act="json" aria-pressed={folded.value} onClick={() => { folded.value = !folded.peek(); }}>JSON</button>}
      <button type="button" data-act="wrap" aria-pressed={wrapped} onClick={() => { wrap.value = wrapped ? "off" : "on"; }}>Wrap</button>
      <button type="button" data-act="copy" onClick={() => void copy()}>Copy</button>
      <button type="button" data-act="download" disabled={!!taking.value} onClick={() => void download()}>{taking.value || "Download"}</button>
      <button type="button" data-act="link" onClick={link}>Link</button>
      </div>
    </div>
    {lines.problem.value && <p class="problem" role="alert">{lines.problem}</p>}
    {folded.value && <FoldedJson lines={lines} />}
    <div class="output-body" hidden={folded.value}>
      <div class="lines" id="lines" ref={box} onScroll={scrolled} onWheel={() => { ending.current = false; }} onPointerDown={() => { ending.current = false; }} tabIndex={0} role="region" aria-label={range}>
        <div class={`lines-space${wrapped ? " wrapped" : ""}`} style={{ height: `${scroll.height}px` }}>
          <div class="lines-now">{Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => {
            const n = from + i;
            const l = lines.line(n);
            const hit = hits.get(n);
            const long = l && (l.cut || lastDrawn(l.text).length > LONG);
            if (long) pen.pass(l.text);
            return <div key={n} class={`line-row${n === place.line ? " here" : ""}${hit ? " hit" : ""}`} data-line={n} style={wrapped ? {} : { top: `${(n - 1) * ROW - scroll.offset}px` }}>
              <a class="no" tabIndex={-1} href={hrefOf(here({ line: n }))} style={{ width: `${digits}ch` }}
                onClick={(e) => { e.preventDefault(); go(here({ line: n }), true); repaint((x) => x + 1); }}>{count(n)}</a>
              <span class="content">{!l ? <span class="quiet">…</span> : long ? <LongLine lines={lines} n={n} line={l} match={hit && n === at?.match.line ? at.match : hit} column={n === place.line ? place.column : 0} put={put} drawn={aimed} />
                : redrawn(l.text, hit ? put : show, pen)}</span>
            </div>;
          })}</div>
        </div>
      </div>
      {(found.value || !!wrongs.value?.total_matches) && <Rail lines={[[wrongs.value?.spread, "err"], [found.value?.spread, ""], [at ? [at.match.line] : [], "now"]]} total={total} choose={mark} />}
      {at && found.value && <Matches found={found.value} now={at} context={context.value} pick={pick} errors={pattern.value === ERRORS}
        setContext={(n) => { context.value = n; void seek(pattern.peek(), at.match.line, false); }} choose={(i) => arrive(found.peek()!, i)} />}
    </div>
    {lines.growing.value && !live.value && <button type="button" class="jump" data-act="live" onClick={() => { live.value = true; toEnd(); }}>Jump to live ↓</button>}
  </section>;
}

// If the reader came here from the conversation, Back leads to the place that was left there.
const cameFrom = (id: string) => history.length > 1 && cameFromConversation(id);

// A line that is too long to read: shows a window around the match, or around the place that the reader has
// moved it to.
function LongLine({ lines, n, line, match, column, put, drawn }: { lines: Lines; n: number; line: Line; match: Match | undefined; column: number | undefined; put: Paint; drawn: () => void }) {
  const [view, setView] = useState<{ text: string; before: number; after: number; at: number; of: Match | undefined } | null>(null);
  const [moved, setMoved] = useState<number | null>(null);
  const there = view && view.of === match; // not the window of the previous match
  useLayoutEffect(() => { if (there) drawn(); }, [there]);
  useEffect(() => { setMoved(null); }, [match?.byte_offset]);
  useEffect(() => {
    let gone = false;
    void (async () => {
      const begin = await lines.offsetOf(n);
      const next = n < lines.total.peek() ? await lines.offsetOf(n + 1) - 1 : lines.bytes.peek();
      const found = column ? begin + column - 1 : match?.byte_offset;
      const want = moved ?? (found ? Math.max(begin, found - WINDOW / 8) : begin);
      const p = await lines.piece(Math.max(begin, Math.min(want, Math.max(begin, next - 64))), Math.min(WINDOW, next - begin));
      if (!gone) setView({ text: p.text.replace(/\n[^]*$/, ""), before: p.offset - begin, after: Math.max(0, next - p.end), at: p.offset, of: match });
    })().catch(() => {});
    return () => { gone = true; };
  }, [n, match?.byte_offset, column, moved, lines.total.value]);
  const shown: { text: string; before: number; after: number; at: number } = view ?? { text: cut(line.text, WINDOW), before: 0, after: Math.max(1, line.text.length - WINDOW), at: 0 };
  return <>
    {shown.before > 0 && <button type="button" class="letters" data-act="letters-before" onClick={() => setMoved(Math.max(0, shown.at - WINDOW))}>{plural(shown.before, "byte")} before</button>}
    {redrawn(shown.text, there && match ? put : show)}
    {shown.after > 0 && <button type="button" class="letters" data-act="letters-after" onClick={() => setMoved(shown.at + WINDOW)}>{plural(shown.after, "byte")} after</button>}
  </>;
}

// The places of the matches and the errors in the whole output.
function Rail({ lines, total, choose }: { lines: [number[] | undefined, string][]; total: number; choose: (line: number) => void }) {
  const seen = new Map<number, string>();
  for (const [all, kind] of lines) for (const n of all ?? []) seen.set(Math.round((n / total) * 396), kind); // the last line is above its end
  return <div class="rail" aria-hidden="true" onClick={(e) => { const r = e.currentTarget.getBoundingClientRect(); choose(Math.ceil(((e.clientY - r.top) / r.height) * total)); }}>
    {[...seen].map(([y, kind]) => <i key={y} class={kind} style={{ top: `${y / 4}%` }} />)}</div>;
}

// What the server found is searched for again in the lines that are shown, to mark it. The browser's own search
// has no time limit, so a pattern that could take long is not tried.
function matcherOf(pattern: string, cased: boolean): RegExp | null {
  const bare = pattern.replace(/\\\W/g, "_");
  if (bare.split(/[*+{]/).length > 2 || bare.split("?").length > 9 || /\)[*+{]|\\[1-9k]/.test(bare)) return null;
  try { return new RegExp(pattern, cased ? "g" : "gi"); } catch { return null; }
}
const marks = (pick: RegExp | null): Paint => (text) => {
  const out: preact.ComponentChildren[] = [];
  let from = 0;
  for (const m of pick ? text.matchAll(pick) : []) {
    if (!m[0] || out.length > 200) break;
    out.push(show(text.slice(from, m.index)), <mark>{show(m[0])}</mark>);
    from = m.index + m[0].length;
  }
  return [...out, show(text.slice(from))];
};

function Matches({ found, now, context, pick, errors, setContext, choose }: {
  found: Found; now: Here; context: number; pick: RegExp | null; errors: boolean; setContext: (n: number) => void; choose: (i: number) => void;
}) {
  const first = found.matches_before ?? 0;
  return <aside class="matches" aria-label="Matches">
    <div class="matches-head"><span>{errors ? plural(found.total_matches, "line that looks like an error", "lines that look like errors") : plural(found.total_matches, "match", "matches")}{found.total_matches > found.matches.length ? `, ${count(first + 1)} to ${count(first + found.matches.length)}` : ""}</span>
      <label>Context <select value={context} onChange={(e) => setContext(Number(e.currentTarget.value))}>{[0, 1, 3, 5].map((n) => <option key={n} value={n}>{n}</option>)}</select></label></div>
    <ol tabIndex={0} aria-label="List of matches">{found.matches.map((m, i) => <li key={i} class={m === now.match ? "current" : ""}>
      <button type="button" tabIndex={-1} onClick={() => choose(i)}><span class="no">{count(m.line)}</span>
        <span class="snippet">{(m.before ?? []).map((b, k) => <span key={`b${k}`} class="near">{show(cut(b, 300))}{"\n"}</span>)}
          <span>{pick ? marks(pick)(around(m.content, pick)) : ansi(cut(m.content, 300))}</span>
          {(m.after ?? []).map((b, k) => <span key={`a${k}`} class="near">{"\n"}{show(cut(b, 300))}</span>)}</span></button></li>)}</ol>
  </aside>;
}

function around(text: string, pick: RegExp) {
  const i = text.search(pick);
  return i > 120 ? `…${cut(text.slice(i - 60), 240)}` : cut(text, 300);
}
