// A whole output: a window into its lines, search on the server, following what grows.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { get } from "./api";
import { bytes, count, plural } from "./format";
import type { Ref } from "./history";
import { Lines, type Found } from "./lines";
import { go, hrefOf, route, sharedLink, type Route } from "./route";
import { Scroll } from "./scroll";
import { ansi, cut, show } from "./text";
import { toast } from "./toast";

const ROW = 20;
const OVER = 12;
const LINE_SHOWN = 2000;
const ERRORS = "\\b(error|exception|traceback|panic|fatal|fail(ed|ure)?)\\b";
const COPY_MOST = 4_000_000;

export function Output({ id, refId }: { id: string; refId: string }) {
  const [lines, setLines] = useState<Lines | null>(null);
  const hint = useSignal("");
  useEffect(() => {
    const l = new Lines(id, refId);
    setLines(l);
    get<{ items: Ref[] }>(`/api/chat-sessions/${encodeURIComponent(id)}/context?limit=200`).then((list) => {
      hint.value = list.items.find((r) => r.id === refId)?.hint ?? refId;
    }, () => { hint.value = refId; });
    return () => l.close();
  }, [id, refId]);
  return lines ? <Viewer key={`${id}/${refId}`} lines={lines} id={id} refId={refId} name={hint.value} /> : null;
}

function Viewer({ lines, id, refId, name }: { lines: Lines; id: string; refId: string; name: string }) {
  const box = useRef<HTMLDivElement>(null);
  const scroll = useRef(new Scroll(ROW)).current;
  const [, repaint] = useState(0);
  const live = useSignal(false);
  const found = useSignal<Found | null>(null);
  const at = useSignal(-1);
  const busy = useSignal(false);
  const wrong = useSignal("");
  const context = useSignal(0);
  const cased = useSignal(false);
  const pattern = useSignal(route.peek().query ?? ""); // what was searched
  const typed = useSignal(pattern.peek());
  const searching = useRef<AbortController | null>(null);
  const started = useRef(false);
  const place = route.value;
  const here = (more: Partial<Route>): Route => ({ view: "output", id, ref: refId, ...more });

  lines.changed.value;
  const total = lines.total.value;
  scroll.resize(total);

  const showLine = (n: number, centre = true) => {
    const el = box.current!;
    live.value = false;
    scroll.to(el, (n - 1) * ROW - (centre ? Math.max(0, (el.clientHeight - ROW) / 2) : 0));
    repaint((x) => x + 1);
  };
  const mark = (n: number) => {
    const line = Math.max(1, Math.min(Math.trunc(n) || 1, lines.total.peek() || 1));
    go(here({ line, ...(found.peek() ? { query: pattern.peek() } : {}) }), true);
    showLine(line);
  };
  const toEnd = () => { scroll.to(box.current!, lines.total.peek() * ROW); repaint((x) => x + 1); };

  // ---- search ----
  const step = (by: number) => {
    const all = found.peek()?.matches ?? [];
    if (!all.length) return;
    at.value = (at.peek() + by + all.length) % all.length;
    mark(all[at.peek()]!.line);
  };
  const search = async (text: string, first?: "next" | "previous") => {
    searching.current?.abort();
    const stop = searching.current = new AbortController();
    pattern.value = typed.value = text;
    wrong.value = "";
    found.value = null;
    at.value = -1;
    if (!text) { go(here(place.line ? { line: place.line } : {}), true); return; }
    busy.value = true;
    try {
      const f = await lines.grep(text, context.peek(), cased.peek(), stop.signal);
      found.value = f;
      if (!f.matches.length) return;
      const now = route.peek().line ?? Math.floor(scroll.top(box.current!)) + 1;
      let i = f.matches.findIndex((m) => m.line >= now);
      if (first === "previous") i = i < 0 ? f.matches.length - 1 : i - 1 < 0 ? f.matches.length - 1 : i - 1;
      at.value = i < 0 ? 0 : i;
      mark(f.matches[at.peek()]!.line);
    } catch (e) {
      if (!stop.signal.aborted) wrong.value = (e as Error).message;
    } finally { if (searching.current === stop) busy.value = false; }
  };
  const errors = (by: 1 | -1) => {
    if (found.peek() && pattern.peek() === ERRORS) step(by);
    else void search(ERRORS, by < 0 ? "previous" : "next");
  };

  // ---- the first look, and what comes after ----
  useLayoutEffect(() => {
    const el = box.current!;
    if (!lines.ready.value) return;
    if (!started.current) {
      started.current = true;
      if (place.line) showLine(Math.min(place.line, total || 1));
      if (place.query && !found.peek()) void search(place.query);
      else if (!place.line && lines.growing.peek()) live.value = true;
      el.focus({ preventScroll: true });
    }
    if (live.value) toEnd();
  }, [lines.changed.value, lines.ready.value, live.value]);

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
      else if (what === "down" || what === "up") { live.value = false; scroll.to(el, scroll.top(el) * ROW + (what === "down" ? ROW : -ROW)); repaint((x) => x + 1); }
    };
    el.addEventListener("steno-act", act);
    return () => { watch.disconnect(); el.removeEventListener("steno-act", act); };
  }, [lines]);

  const el = box.current;
  const top = el ? scroll.top(el) : 0;
  const shown = el ? Math.ceil(el.clientHeight / ROW) : 40;
  const from = Math.max(1, Math.floor(top) + 1 - OVER), to = Math.min(total, Math.floor(top) + shown + OVER);
  useEffect(() => { if (lines.ready.value && total) { const t = setTimeout(() => lines.need(from, to), 25); return () => clearTimeout(t); } }, [from, to, lines.ready.value, total]);

  const scrolled = () => {
    const b = box.current!;
    scroll.scrolled(b);
    if (live.peek() && scroll.top(b) * ROW + b.clientHeight < lines.total.peek() * ROW - ROW * 2) live.value = false;
    repaint((x) => x + 1);
  };

  // ---- taking it along ----
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
      const url = URL.createObjectURL(await lines.raw());
      const a = document.createElement("a");
      a.href = url;
      a.download = `${refId.replace(/[^\w-]/g, "_")}.txt`;
      a.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (e) { toast(`Not downloaded: ${(e as Error).message}`); }
  };
  const link = () => void navigator.clipboard?.writeText(sharedLink(here(place.line ? { line: place.line } : {}))).then(() => toast("Link copied, without the token."), () => toast("The clipboard is not available."));

  const hits = new Set(found.value?.matches.map((m) => m.line));
  const literal = found.value && /^[^\\^$.|?*+()[\]{}]+$/.test(pattern.value) ? pattern.value : "";
  const digits = String(total).length;
  return <section class="output" aria-label="Full output">
    <header class="bar">
      <a class="button small" href={hrefOf({ view: "conversation", id })} data-act="back">← Back</a>
      <h2 title={cut(name, 200)}><bdi>{show(cut(name, 200))}</bdi></h2>
      <span class="figures">{plural(total, "line")} · {bytes(lines.bytes.value)}{lines.growing.value && <span class="flag live">growing</span>}</span>
    </header>
    <div class="bar tools" role="toolbar" aria-label="Output">
      <form class="find" role="search" onSubmit={(e) => { e.preventDefault(); const v = typed.peek(); if (found.peek() && v === pattern.peek()) step(1); else void search(v); }}>
        <input id="find" name="pattern" type="search" aria-label="Search in the output (regular expression)" placeholder="Search (regex)…" value={typed.value} autocomplete="off" spellcheck={false}
          onInput={(e) => { typed.value = e.currentTarget.value; }}
          onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); box.current!.focus(); } }} />
        <label class="check"><input type="checkbox" checked={cased.value} onChange={(e) => { cased.value = e.currentTarget.checked; if (pattern.peek()) void search(pattern.peek()); }} />Aa</label>
        <button type="button" aria-label="Previous match" disabled={!found.value?.matches.length} onClick={() => step(-1)}>↑</button>
        <button type="button" aria-label="Next match" disabled={!found.value?.matches.length} onClick={() => step(1)}>↓</button>
        <span class="hits" role="status">{busy.value ? "searching…" : wrong.value ? <span class="bad">{show(cut(wrong.value, 200))}</span>
          : found.value ? found.value.total_matches ? `${count(at.value + 1)} of ${count(found.value.total_matches)}${found.value.truncated ? ` (first ${count(found.value.matches.length)} listed)` : ""}` : "no match" : ""}</span>
      </form>
      <button type="button" data-act="errors" onClick={() => errors(1)}>Errors</button>
      <form class="line" onSubmit={(e) => { e.preventDefault(); const v = Number(String(new FormData(e.currentTarget).get("line")).replace(/\D/g, "")); if (v) mark(v); }}>
        <input id="line" name="line" inputMode="numeric" aria-label="Go to line" placeholder="Line…" size={9} autocomplete="off" />
      </form>
      <button type="button" data-act="start" onClick={() => { go(here({}), true); showLine(1, false); }}>Start</button>
      <button type="button" data-act="end" onClick={() => { live.value = lines.growing.peek(); toEnd(); }}>End</button>
      <button type="button" data-act="copy" onClick={() => void copy()}>Copy</button>
      <button type="button" data-act="download" onClick={() => void download()}>Download</button>
      <button type="button" data-act="link" onClick={link}>Link</button>
    </div>
    {lines.problem.value && <p class="problem" role="alert">{lines.problem}</p>}
    <div class="output-body">
      <div class="lines" id="lines" ref={box} onScroll={scrolled} tabIndex={0} role="region" aria-label="Lines">
        <div class="lines-space" style={{ height: `${scroll.height}px` }}>
          {Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => {
            const n = from + i;
            const l = lines.line(n);
            return <div key={n} class={`line-row${n === place.line ? " here" : ""}${hits.has(n) ? " hit" : ""}`} data-line={n} style={{ top: `${(n - 1) * ROW - scroll.offset}px` }}>
              <a class="no" tabIndex={-1} href={hrefOf(here({ line: n }))} style={{ width: `${digits + 1}ch` }}
                onClick={(e) => { e.preventDefault(); go(here({ line: n }), true); repaint((x) => x + 1); }}>{n}</a>
              <span class="content">{l ? <>{literal && hits.has(n) ? marked(l.text, literal, cased.value) : ansi(cut(l.text, LINE_SHOWN))}{(l.cut || l.text.length > LINE_SHOWN) && <span class="odd">… a long line</span>}</> : <span class="quiet">…</span>}</span>
            </div>;
          })}
        </div>
      </div>
      {found.value && found.value.matches.length > 0 && <Matches found={found.value} at={at.value} context={context.value} literal={literal} cased={cased.value}
        setContext={(n) => { context.value = n; void search(pattern.peek()); }} choose={(i) => { at.value = i; mark(found.peek()!.matches[i]!.line); }} />}
    </div>
    {lines.growing.value && !live.value && <button type="button" class="jump" data-act="live" onClick={() => { live.value = true; toEnd(); }}>Jump to live ↓</button>}
  </section>;
}

function marked(text: string, literal: string, cased: boolean) {
  text = cut(text, LINE_SHOWN);
  const hay = cased ? text : text.toLowerCase(), needle = cased ? literal : literal.toLowerCase();
  if (hay.length !== text.length) return show(text);
  const out = [];
  let from = 0;
  for (let i = hay.indexOf(needle); i >= 0 && out.length < 100; i = hay.indexOf(needle, from)) {
    out.push(show(text.slice(from, i)), <mark>{show(text.slice(i, i + needle.length))}</mark>);
    from = i + needle.length;
  }
  out.push(show(text.slice(from)));
  return out;
}

function Matches({ found, at, context, literal, cased, setContext, choose }: {
  found: Found; at: number; context: number; literal: string; cased: boolean; setContext: (n: number) => void; choose: (i: number) => void;
}) {
  const SHOWN = 60;
  const from = Math.max(0, Math.min(at - SHOWN / 2, found.matches.length - SHOWN));
  return <aside class="matches" aria-label="Matches">
    <div class="matches-head"><span>{plural(found.total_matches, "match").replace("matchs", "matches")}</span>
      <label>Context <select value={context} onChange={(e) => setContext(Number(e.currentTarget.value))}>{[0, 1, 3, 5].map((n) => <option key={n} value={n}>{n}</option>)}</select></label></div>
    <ol tabIndex={0} aria-label="List of matches">{found.matches.slice(from, from + SHOWN).map((m, i) => <li key={from + i} class={from + i === at ? "current" : ""}>
      <button type="button" onClick={() => choose(from + i)}><span class="no">{count(m.line)}</span>
        <span class="snippet">{(m.before ?? []).map((b, k) => <span key={`b${k}`} class="near">{show(cut(b, 300))}{"\n"}</span>)}
          <span>{literal ? marked(cut(m.content, 300), literal, cased) : show(cut(m.content, 300))}</span>
          {(m.after ?? []).map((b, k) => <span key={`a${k}`} class="near">{"\n"}{show(cut(b, 300))}</span>)}</span></button></li>)}</ol>
  </aside>;
}
