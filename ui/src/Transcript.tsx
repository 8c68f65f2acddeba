// The transcript: a window of rows that grows in the direction in which the reader scrolls.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ask, send } from "./api";
import type { Conversation } from "./conversation";
import { clock, count, plural } from "./format";
import type { Call, Message, Row } from "./history";
import { Unloaded } from "./icons";
import { readJson } from "./json";
import { imageOf, Tree } from "./Value";
import { kerning, Prose } from "./Prose";
import { go, hrefOf, keepPlace, placeHere, route, savePlace, sharedLink } from "./route";
import { cut, Long, plain, show } from "./text";
import { Tool } from "./Tool";
import { opened } from "./opened";
import { copied, LINKED, toast } from "./toast";

const NEAR = 900; // pixels from an end at which the next page is fetched
const CALLS = 100; // of one message, in the document at the same time

const rowsOf = (el: Element) => [...el.querySelectorAll<HTMLElement>("[data-row]")];

export function Transcript({ conversation: c }: { conversation: Conversation }) {
  const box = useRef<HTMLDivElement>(null);
  const stick = useRef(true);
  const anchor = useRef<{ key: string; top: number; at: number } | null>(null);
  const away = useSignal(false);
  const rows = c.rows();
  const target = route.value.call ?? route.value.message;
  const reached = useRef("");
  const restore = useRef(placeHere());
  const saving = useRef(0);
  const acts = useRef<Element | null>(null);
  const last = useRef(""); // the row that had the focus last

  // The first row that begins on the screen, or the row that fills the screen. Rows that grow above it then do
  // not move what is read.
  const remember = () => {
    const el = box.current;
    if (!el) return; // the reader has gone away meanwhile
    const edge = el.getBoundingClientRect();
    let filling: HTMLElement | null = null;
    for (const row of el.querySelectorAll<HTMLElement>("article, .mark, .tool")) {
      const r = row.getBoundingClientRect();
      if (r.bottom <= edge.top) continue;
      if (r.top >= edge.top - 2) {
        if (r.top < edge.top + edge.height * 0.8) { anchor.current = { key: row.dataset.row!, top: r.top - edge.top, at: el.scrollTop }; return; }
        break;
      }
      filling = row;
    }
    anchor.current = filling ? { key: filling.dataset.row!, top: filling.getBoundingClientRect().top - edge.top, at: el.scrollTop } : null;
  };

  // Corrections by this code do not count as scrolling by the reader.
  const moved = () => { if (!anchor.current || Math.abs(box.current!.scrollTop - anchor.current.at) > 2) remember(); };

  // The timeline follows: to the row with the focus while that is on the screen, otherwise to the first row.
  const along = () => {
    const edge = box.current?.getBoundingClientRect();
    if (!edge) return;
    const focus = document.activeElement?.closest<HTMLElement>("#transcript [data-seq]"), r = focus?.getBoundingClientRect();
    const row = r && r.bottom > edge.top && r.top < edge.bottom ? focus : box.current!.querySelector<HTMLElement>(`[data-row="${CSS.escape(anchor.current?.key ?? "")}"]`);
    const seq = Number(row?.dataset.seq), call = row?.dataset.call, was = c.here.peek();
    if (seq && (was?.seq !== seq || was.call !== call)) c.here.value = { seq, call };
  };

  const scrolled = () => {
    const el = box.current;
    if (!el) return;
    if (!stick.current) hold(); // rows that have grown since then are not corrected yet
    const below = el.scrollHeight - el.scrollTop - el.clientHeight;
    stick.current = below < 40 && c.atEnd.peek();
    away.value = !stick.current && (below > 400 || !c.atEnd.peek());
    moved();
    clearTimeout(saving.current);
    saving.current = window.setTimeout(() => { savePlace(); along(); }, 250);
    if (el.scrollTop < NEAR && !c.atStart.peek()) void c.earlier();
    else if (below < NEAR && !c.atEnd.peek()) void c.later();
  };

  // The place, for a reader who comes back to this entry of the history.
  useEffect(() => {
    keepPlace(() => {
      if (!box.current || !c.pages.peek().length) return null;
      moved();
      const focus = last.current;
      const row = anchor.current && box.current.querySelector<HTMLElement>(`[data-row="${CSS.escape(anchor.current.key)}"]`);
      const seq = Number(row?.dataset.seq ?? NaN);
      if (stick.current) return focus ? { focus } : {};
      return { from: Number.isFinite(seq) ? Math.max(1, seq - 6) : c.pages.peek()[0]!.first, ...(stick.current || !anchor.current ? {} : { row: anchor.current.key, top: anchor.current.top }), ...(focus ? { focus } : {}) };
    });
    return () => { keepPlace(null); clearTimeout(saving.current); };
  }, [c]);

  const find = (name: string) => box.current!.querySelector<HTMLElement>(`${route.peek().call !== undefined ? "section[data-call" : "article[data-id"}="${CSS.escape(name)}"]`);

  const hold = () => {
    const el = box.current, a = anchor.current;
    const row = el && a ? el.querySelector<HTMLElement>(`[data-row="${CSS.escape(a.key)}"]`) : null;
    if (!el || !a || !row) return;
    // The reader may have scrolled on since then, and the event is still to come.
    const on = el.scrollTop - a.at;
    const by = row.getBoundingClientRect().top - el.getBoundingClientRect().top - a.top + on;
    if (Math.abs(by) <= 1) return;
    el.scrollTop += by;
    a.at = el.scrollTop - on; // not a.at + by: the browser rounds
  };

  // A reader who is at the end stays at the end, except after beginning to scroll away.
  const follow = () => {
    const el = box.current!;
    if (stick.current && anchor.current && el.scrollTop < anchor.current.at - 2) stick.current = el.scrollHeight - el.scrollTop - el.clientHeight < 40;
    if (stick.current && !target) { el.scrollTop = el.scrollHeight; remember(); } else hold();
  };

  // When rows were added or removed, the rows that the reader looks at stay in their place.
  useLayoutEffect(() => {
    const el = box.current;
    if (!el || !rows.length) return;
    const place = restore.current;
    if (place) {
      const row = place.row ? el.querySelector<HTMLElement>(`[data-row="${CSS.escape(place.row)}"]`) : null;
      if (row) {
        el.scrollTop += row.getBoundingClientRect().top - el.getBoundingClientRect().top - (place.top ?? 0);
        stick.current = false;
        reached.current = target ?? "";
        anchor.current = { key: place.row!, top: place.top ?? 0, at: el.scrollTop };
      }
      if (place.focus) el.querySelector<HTMLElement>(`[data-row="${CSS.escape(place.focus)}"]`)?.focus({ preventScroll: true });
      restore.current = null;
      if (row) return;
    }
    if (target && reached.current !== target) {
      const at = rows.find((r) => r.kind === "message" && r.calls.some((x) => x.id === target) && route.peek().call !== undefined) as Message | undefined;
      if (at && !find(target)) { showCall(at, at.calls.findIndex((x) => x.id === target)); return; }
      const row = find(target);
      if (row) {
        reached.current = target;
        stick.current = false;
        row.scrollIntoView({ block: "start" });
        // A reader who is moving along the tape or the timeline stays there.
        if (!document.activeElement?.closest(".tape, .timeline")) row.focus({ preventScroll: true });
        remember();
        return;
      }
    }
    follow();
  });

  // Short pages cannot be scrolled, so the next one is fetched without scrolling.
  useEffect(() => {
    const el = box.current;
    if (!el || !rows.length || el.scrollHeight > el.clientHeight + NEAR) return;
    if (!c.atStart.peek()) void c.earlier(); else if (!c.atEnd.peek()) void c.later();
  });

  // A block that opens, or a text that becomes Markdown, changes heights without a render of this component.
  useEffect(() => {
    const watch = new ResizeObserver(() => { const el = box.current; if (el) follow(); });
    watch.observe(box.current!.firstElementChild!);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, [c, target]);

  const toEnd = async () => {
    if (!c.atEnd.peek()) await c.loadEnd();
    if (!box.current || !c.atEnd.peek()) return false; // the reader has gone elsewhere meanwhile
    if (route.peek().message || route.peek().call) go({ view: "conversation", id: c.id }, true);
    stick.current = true;
    box.current!.scrollTop = box.current!.scrollHeight;
    away.value = false;
    return true;
  };
  const toStart = async () => {
    stick.current = false;
    anchor.current = null;
    if (!c.atStart.peek()) await c.loadFrom(1);
    requestAnimationFrame(() => {
      const el = box.current;
      if (!el) return;
      el.scrollTop = 0;
      rowsOf(el)[0]?.focus();
    });
  };
  // To the next failure, wherever it is: the server has a list of all of them.
  const toFailure = async (by: 1 | -1) => {
    await c.failures.look(c.session.peek()?.lastSeq ?? 0).catch(() => {});
    if (!box.current) return;
    const row = document.activeElement?.closest<HTMLElement>("#transcript [data-seq]") ?? null;
    let seq = by > 0 ? 0 : Infinity, call: string | undefined;
    if (row) { seq = Number(row.dataset.seq); call = row.dataset.call ?? ""; }
    else if (!stick.current || by > 0) {
      const edge = box.current!.getBoundingClientRect();
      const first = [...box.current!.querySelectorAll<HTMLElement>("article[data-seq]")].find((x) => x.getBoundingClientRect().bottom > edge.top + 4);
      if (first && !c.atStart.peek()) seq = Number(first.dataset.seq) - (by > 0 ? 0.5 : 0);
      else if (by > 0) seq = 0;
    }
    const f = c.failures.next(by, seq, call);
    if (!f) { toast(c.failures.total.peek() ? (by > 0 ? "That was the last failure." : "That was the first failure.") : "Nothing has failed here."); return; }
    c.failure_at.value = f.n;
    await c.show(f.seq);
    const open = () => {
      const el = box.current;
      if (!el) return;
      const m = c.rows().find((r) => r.kind === "message" && r.seq === f.seq) as Message | undefined;
      if (m && f.call) showCall(m, m.calls.findIndex((x) => x.id === f.call));
      requestAnimationFrame(() => {
        const to = (f.call ? [...el.querySelectorAll<HTMLElement>(`section[data-seq="${f.seq}"]`)].find((x) => x.dataset.call === f.call) : null) ?? el.querySelector<HTMLElement>(`article[data-seq="${f.seq}"]`);
        if (!to) return;
        stick.current = false;
        to.focus({ preventScroll: true });
        to.scrollIntoView({ block: "start" });
        remember();
      });
    };
    requestAnimationFrame(open);
  };
  useEffect(() => {
    const el = box.current!;
    const start = () => void toStart(), end = () => void toEnd().then((there) => { if (there) rowsOf(el).at(-1)?.focus({ preventScroll: true }); });
    const failure = (e: Event) => void toFailure((e as CustomEvent<1 | -1>).detail);
    el.addEventListener("steno-start", start);
    el.addEventListener("steno-end", end);
    el.addEventListener("steno-failure", failure);
    return () => { el.removeEventListener("steno-start", start); el.removeEventListener("steno-end", end); el.removeEventListener("steno-failure", failure); };
  }, [c]);

  const first = c.pages.value[0]?.first ?? 0, end = c.pages.value.at(-1)?.last ?? 0;
  const all = c.session.value?.lastSeq ?? 0;
  return <div class="transcript-wrap">
    <div class="transcript" id="transcript" ref={box} onScroll={scrolled} onFocusIn={(e) => {
      const row = (e.target as Element).closest<HTMLElement>("[data-row]");
      if (!row) return;
      last.current = row.dataset.row!;
      if (row.dataset.seq) c.here.value = { seq: Number(row.dataset.seq), call: row.dataset.call };
      // The actions of a message are a stop of the Tab key only while it has the focus or the pointer.
      const at = row.closest("article");
      if (at === acts.current) return;
      for (const [of, stop] of [[acts.current, -1], [at, 0]] as const) of?.querySelectorAll<HTMLElement>(".message-acts button").forEach((b) => { b.tabIndex = stop; });
      acts.current = at;
    }} tabIndex={0} role={rows.length ? "feed" : "region"} aria-label="Transcript" aria-busy={!rows.length && !c.problem.value}>
      <div class="rows">
        {!c.atStart.value && rows.length > 0 && <p class="edge">Earlier messages are loaded as you scroll · records {count(first)}–{count(end)} of {count(all)}</p>}
        {c.problem.value && <p class="problem" role="alert">{c.problem} <button type="button" class="small" data-act="again" onClick={() => { c.problem.value = ""; void c.again!(); }}>Try again</button></p>}
        {!rows.length && !c.problem.value && !c.atEnd.value && <Unloaded />}
        {!rows.length && !c.problem.value && c.atEnd.value && !c.sending.value && <p class="edge">There are no messages yet.</p>}
        {rows.map((r) => <RowView key={r.key} row={r} conversation={c} from={first} all={all} marked={!!target && (r.kind === "message" && (r.id === target || r.calls.some((x) => x.id === target)))} />)}
        {c.sending.value && !rows.some((r) => r.kind === "message" && r.live) && <article class="message user sending" data-row="sending" tabIndex={-1} aria-label="Being sent">
          <header><span class="who">You</span><span class="quiet">sending…</span></header><Prose text={c.sending.value} live /></article>}
        <RunState conversation={c} />
      </div>
    </div>
    {away.value && <button type="button" class="jump" onClick={() => void toEnd()}>Jump to latest ↓</button>}
  </div>;
}

function RunState({ conversation: c }: { conversation: Conversation }) {
  const run = c.run.value;
  if (!run) return null;
  const over = run.over.value;
  if (over) {
    const told = c.pages.value.at(-1)?.rows.some((r) => r.kind === "message" && r.error?.code === run.error?.code);
    return <>
      {run.error && !told && <div class="error-box" role="note"><strong>{show(cut(run.error.code, 60))}</strong> <Long text={run.error.message} most={2000} /></div>}
      {over !== "stop" && <p class="edge" role="status">The run ended: {show(cut(over.replace(/_/g, " "), 60))}.</p>}
    </>;
  }
  const asking = run.messages.some((m) => m.calls.some((x) => x.status === "waiting"));
  return <><p class="hidden said" role="status">{run.said}</p><p class="working" role="status"><span class="pulse" aria-hidden="true" />{asking ? "Waiting for your permission" : "Working"}…</p></>;
}

function RowView({ row, conversation, from, marked, all }: { row: Row; conversation: Conversation; from: number; marked: boolean; all: number }) {
  if (row.kind === "mark") return <div class={`mark mark-${row.tone}`} data-row={row.key} tabIndex={-1} role="note"><Long text={row.text} most={600} /></div>;
  return <MessageView message={row} conversation={conversation} from={from} marked={marked} all={all} />;
}

const WHO: Record<string, string> = { user: "You", assistant: "Assistant", system: "System", developer: "Developer", tool: "Tool" };

// Where the window over a message's calls begins.
const callsFrom = (m: Message) => opened(`calls:${m.key}`);
const starts = new Map<string, number>();
function showCall(m: Message, at: number) {
  if (at < 0) return;
  const from = starts.get(m.key) ?? 0;
  if (at >= from && at < from + CALLS) return;
  starts.set(m.key, Math.max(0, Math.min(at - CALLS / 2, m.calls.length - CALLS)));
  const s = callsFrom(m);
  s.value = !s.peek();
}

function Calls({ message: m, conversation }: { message: Message; conversation: Conversation }) {
  const turn = callsFrom(m);
  turn.value;
  const from = Math.min(starts.get(m.key) ?? 0, Math.max(0, m.calls.length - CALLS));
  const to = Math.min(m.calls.length, from + CALLS);
  const move = (n: number) => { starts.set(m.key, Math.max(0, Math.min(n, m.calls.length - CALLS))); turn.value = !turn.peek(); };
  const times = m.calls.map((x) => x.duration ?? 0).sort((a, b) => a - b);
  const slow = times.length >= 5 ? times[Math.floor(times.length * 0.9)]! : Infinity;
  const failed = m.calls.filter((x) => x.status === "error").length;
  return <div class="calls">
    {m.calls.length > CALLS && <p class="calls-head quiet">{plural(m.calls.length, "call")}{failed ? `, ${count(failed)} failed` : ""}: {count(from + 1)} to {count(to)}
      {from > 0 && <button type="button" class="more" data-act="calls-before" onClick={() => move(from - CALLS)}>{count(Math.min(CALLS, from))} before</button>}</p>}
    {m.calls.slice(from, to).map((call: Call, i) => <Tool key={`${call.id}:${from + i}`} call={call} conversation={conversation} rowKey={`${m.id}/${call.id}/${from + i}`} seq={m.seq} slow={(call.duration ?? 0) >= slow && slow > 0} />)}
    {to < m.calls.length && <button type="button" class="more" data-act="calls-after" onClick={() => move(to)}>{m.calls.length - to > CALLS && `${CALLS} of `}{plural(m.calls.length - to, "more call")}</button>}
  </div>;
}

function MessageView({ message: m, conversation, from, marked, all }: { message: Message; conversation: Conversation; from: number; marked: boolean; all: number }) {
  const where = { view: "conversation" as const, id: conversation.id, message: m.id, from: m.live ? from : m.seq };
  const editing = useSignal<string | null>(null);
  const who = WHO[m.role] ?? m.role;
  return <article class={`message ${plain(m.role, 20)}${m.error ? " failed" : ""}${m.dropped ? " dropped" : ""}${marked ? " marked" : ""}`} aria-posinset={Number.isFinite(m.seq) ? m.seq : all} aria-setsize={all || -1}
    data-row={m.key} data-id={m.id} data-seq={Number.isFinite(m.seq) ? m.seq : undefined} data-error={m.error ? "" : undefined} tabIndex={-1} aria-label={`${plain(who, 20)}${m.calls.length ? `, ${plural(m.calls.length, "call")}` : ""}`}>
    <header>
      <span class="who">{show(cut(who, 40))}</span>
      {m.amended && <span class="flag">{m.amended === "supersede" ? "replaced" : m.amended}</span>}
      {m.left && <span class="flag">not in context</span>}
      {m.dropped && <span class="flag">not kept: {show(cut(m.dropped, 120))}</span>}
      {m.live ? (conversation.run.value?.over.value ? <span class="flag">only in the run's journal</span> : <span class="flag live">live</span>) : <a class="when" tabIndex={-1} href={hrefOf(where)} title={`Record ${m.seq}, ${m.at}`}>{clock(m.at) || `#${m.seq}`}</a>}
      {!m.live && <span class="message-acts">
        {m.text && <button type="button" tabIndex={-1} data-act="copy-message" onClick={() => copied(m.text)}>copy</button>}
        <button type="button" class="copy" tabIndex={-1} aria-label="Copy a link to this message" onClick={() => copied(sharedLink(where), LINKED)}>link</button>
        {m.role === "user" && m.text && <button type="button" tabIndex={-1} data-act="edit-message" onClick={() => { editing.value = m.text; }}>edit</button>}
        {m.role === "assistant" && <button type="button" tabIndex={-1} data-act="regenerate" onClick={() => void regenerate(conversation, m)}>regenerate</button>}
      </span>}
    </header>
    {m.thinking && <Thinking text={m.thinking} rowKey={m.key} live={!!m.live && !m.text && !m.calls.length} />}
    {editing.value !== null ? <Editor conversation={conversation} message={m} text={editing.value} done={() => { editing.value = null; }} /> : m.text && <Prose text={m.text} live={!!m.live} />}
    {m.attachments.map((a, i) => <Attached key={i} value={a} />)}
    {m.error && <div class={`error-box${kerning(m.error.message)}`} role="note"><strong>{show(cut(m.error.code, 60))}</strong> <Long text={m.error.message} most={2000} /></div>}
    {m.calls.length > 0 && <Calls message={m} conversation={conversation} />}
  </article>;
}

// ---- another way to continue: nothing is overwritten, it is a fork ----
async function forkBefore(c: Conversation, m: Message, message?: object): Promise<string> {
  const made = await send<{ id: string }>("POST", `/api/chat-sessions/${encodeURIComponent(c.id)}/fork`, { before: m.id, ...(message ? { message } : {}) });
  return made.id;
}
async function regenerate(c: Conversation, m: Message) {
  try {
    const id = await forkBefore(c, m);
    toast("A fork continues from before this reply; this conversation stays as it is.");
    await goOn(id);
  } catch (e) { toast(`Not regenerated: ${(e as Error).message}`); }
}
async function goOn(id: string) {
  go({ view: "conversation", id });
  const answer = await ask(`/api/chat-sessions/${encodeURIComponent(id)}/continue`, { method: "POST", body: {}, headers: { "Idempotency-Key": crypto.randomUUID() } });
  void answer.body?.cancel();
}

function Editor({ conversation, message: m, text, done }: { conversation: Conversation; message: Message; text: string; done: () => void }) {
  const typed = useSignal(text);
  const box = useRef<HTMLTextAreaElement>(null);
  const busy = useSignal(false);
  useEffect(() => { box.current!.focus(); }, []);
  const keep = async () => {
    if (!typed.peek().trim() || busy.peek()) return;
    busy.value = true;
    try {
      const id = await forkBefore(conversation, m, { role: "user", content: typed.peek() });
      toast("A fork continues from your message; this conversation stays as it is.");
      await goOn(id);
    } catch (e) { toast(`Not sent: ${(e as Error).message}`); busy.value = false; }
  };
  return <form class="editor" onSubmit={(e) => { e.preventDefault(); void keep(); }}>
    <textarea ref={box} rows={Math.min(12, text.split("\n").length + 1)} aria-label="Edit the message" value={typed.value} onInput={(e) => { typed.value = e.currentTarget.value; }} onKeyDown={(e) => { e.stopPropagation(); if (e.key === "Escape") done(); }} />
    <p class="buttons"><button class="primary" data-act="send-edit" disabled={busy.value}>Send as a fork</button><button type="button" onClick={done}>Cancel</button></p>
  </form>;
}

function Thinking({ text, rowKey, live }: { text: string; rowKey: string; live: boolean }) {
  const state = opened(`think:${rowKey}`);
  const open = state.value ?? live;
  return <div class="thinking">
    <button type="button" aria-expanded={open} tabIndex={-1} onClick={() => { state.value = !open; }}><span class="caret" aria-hidden="true" />Thinking{!open && <span class="quiet">{show(cut(plain(text, 160), 160))}</span>}</button>
    {open && <div class={`thought${kerning(text)}`} dir="auto"><Long text={text} most={8000} /></div>}
  </div>;
}

function Attached({ value }: { value: unknown }) {
  const picture = imageOf(value);
  if (picture) return <img class="picture" src={picture} alt="Attached image" />;
  const j = readJson(JSON.stringify(value && typeof value === "object" ? value : { value }));
  return <div class="attached">{j && <Tree value={j} />}</div>;
}
