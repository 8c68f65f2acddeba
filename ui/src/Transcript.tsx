// The transcript: a window of rows that grows towards where one scrolls.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { Conversation } from "./conversation";
import { clock, count } from "./format";
import type { Message, Row } from "./history";
import { imageOf, Tree } from "./Value";
import { kerning, Prose } from "./Prose";
import { go, hrefOf, route, sharedLink } from "./route";
import { cut, Long, plain, show } from "./text";
import { Tool } from "./Tool";
import { opened } from "./opened";
import { toast } from "./toast";

const NEAR = 900; // pixels from an end at which the next page is fetched

export function Transcript({ conversation: c }: { conversation: Conversation }) {
  const box = useRef<HTMLDivElement>(null);
  const stick = useRef(true);
  const anchor = useRef<{ key: string; top: number } | null>(null);
  const away = useSignal(false);
  const rows = c.rows();
  const target = route.value.message;
  const reached = useRef("");

  const remember = () => {
    const el = box.current!;
    const edge = el.getBoundingClientRect().top;
    for (const row of el.querySelectorAll<HTMLElement>("article, .mark")) {
      const r = row.getBoundingClientRect();
      if (r.bottom > edge) { anchor.current = { key: row.dataset.row!, top: r.top - edge }; return; }
    }
    anchor.current = null;
  };

  const scrolled = () => {
    const el = box.current;
    if (!el) return;
    const below = el.scrollHeight - el.scrollTop - el.clientHeight;
    stick.current = below < 40 && c.atEnd.peek();
    away.value = !stick.current && (below > 400 || !c.atEnd.peek());
    remember();
    if (el.scrollTop < NEAR && !c.atStart.peek()) void c.earlier();
    else if (below < NEAR && !c.atEnd.peek()) void c.later();
  };

  // Rows were added or dropped: what the reader looks at stays where it is.
  useLayoutEffect(() => {
    const el = box.current;
    if (!el) return;
    if (target && reached.current !== target) {
      const row = el.querySelector<HTMLElement>(`article[data-id="${CSS.escape(target)}"]`);
      if (row) {
        reached.current = target;
        stick.current = false;
        row.scrollIntoView({ block: "start" });
        row.focus({ preventScroll: true });
        remember();
        return;
      }
    }
    if (stick.current && !target) { el.scrollTop = el.scrollHeight; remember(); return; }
    const a = anchor.current;
    if (!a) return;
    const row = el.querySelector<HTMLElement>(`[data-row="${CSS.escape(a.key)}"]`);
    if (!row) return;
    const moved = row.getBoundingClientRect().top - el.getBoundingClientRect().top - a.top;
    if (Math.abs(moved) > 1) el.scrollTop += moved;
  });

  // Short pages do not scroll, so the next one is fetched without being asked.
  useEffect(() => {
    const el = box.current;
    if (el && rows.length && el.scrollHeight <= el.clientHeight + NEAR && !c.atStart.peek()) void c.earlier();
  });

  // A block that opens changes heights without a render here.
  useEffect(() => {
    const watch = new ResizeObserver(() => { const el = box.current; if (el && stick.current && !target) el.scrollTop = el.scrollHeight; });
    watch.observe(box.current!.firstElementChild!);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, [c]);

  const toEnd = async () => {
    if (!c.atEnd.peek()) await c.loadEnd();
    if (!box.current) return;
    if (route.peek().message) go({ view: "conversation", id: c.id }, true);
    stick.current = true;
    box.current!.scrollTop = box.current!.scrollHeight;
    away.value = false;
  };
  const toStart = async () => {
    stick.current = false;
    anchor.current = null;
    if (!c.atStart.peek()) await c.loadFrom(1);
    requestAnimationFrame(() => {
      const el = box.current;
      if (!el) return;
      el.scrollTop = 0;
      el.querySelector<HTMLElement>("[data-row]")?.focus();
    });
  };
  useEffect(() => {
    const el = box.current!;
    const start = () => void toStart(), end = () => void toEnd();
    el.addEventListener("steno-start", start);
    el.addEventListener("steno-end", end);
    return () => { el.removeEventListener("steno-start", start); el.removeEventListener("steno-end", end); };
  }, [c]);

  const first = c.pages.value[0]?.first ?? 0, last = c.pages.value.at(-1)?.last ?? 0;
  const all = c.session.value?.lastSeq ?? 0;
  return <div class="transcript-wrap">
    <div class="transcript" id="transcript" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label="Transcript" aria-live="off">
      <div class="rows">
        {!c.atStart.value && rows.length > 0 && <p class="edge">Earlier messages are loaded as you scroll · records {count(first)}–{count(last)} of {count(all)}</p>}
        {c.problem.value && <p class="problem" role="alert">{c.problem}</p>}
        {!rows.length && !c.problem.value && c.atEnd.value && !c.sending.value && <p class="edge">Nothing has been said yet.</p>}
        {rows.map((r) => <RowView key={r.key} row={r} conversation={c} from={first} marked={target === (r.kind === "message" ? r.id : "")} />)}
        {c.sending.value && !rows.some((r) => r.kind === "message" && r.live) && <article class="message user sending" data-row="sending" tabIndex={-1} aria-label="Being sent">
          <header><span class="who">user</span><span class="quiet">sending…</span></header><Prose text={c.sending.value} /></article>}
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
  const asking = run.messages.some((m) => m.calls.some((x) => x.status === "asking"));
  return <p class="working" role="status"><span class="pulse" aria-hidden="true" />{asking ? "Waiting for your permission" : "Working"}…</p>;
}

function RowView({ row, conversation, from, marked }: { row: Row; conversation: Conversation; from: number; marked: boolean }) {
  if (row.kind === "mark") return <div class={`mark mark-${row.tone}`} data-row={row.key} tabIndex={-1} role="note"><Long text={row.text} most={600} /></div>;
  return <MessageView message={row} conversation={conversation} from={from} marked={marked} />;
}

function MessageView({ message: m, conversation, from, marked }: { message: Message; conversation: Conversation; from: number; marked: boolean }) {
  const where = { view: "conversation" as const, id: conversation.id, message: m.id, from: m.live ? from : m.seq };
  const copyLink = () => void navigator.clipboard?.writeText(sharedLink(where)).then(() => toast("Link copied, without the token."), () => toast("The clipboard is not available."));
  return <article class={`message ${plain(m.role, 20)}${m.error ? " failed" : ""}${m.dropped ? " dropped" : ""}${marked ? " marked" : ""}`}
    data-row={m.key} data-id={m.id} data-error={m.error ? "" : undefined} tabIndex={-1} aria-label={`${plain(m.role, 20)} message`}>
    <header>
      <span class="who">{show(cut(m.role, 40))}</span>
      {m.amended && <span class="flag">{m.amended === "supersede" ? "replaced" : m.amended}</span>}
      {m.left && <span class="flag">not in context</span>}
      {m.dropped && <span class="flag">not kept: {show(cut(m.dropped, 120))}</span>}
      {m.live ? (conversation.run.value?.over.value ? <span class="flag">only in the run's journal</span> : <span class="flag live">live</span>) : <a class="when" href={hrefOf(where)} title={`Record ${m.seq}, ${m.at}`}>{clock(m.at) || `#${m.seq}`}</a>}
      {!m.live && <button type="button" class="copy" aria-label="Copy a link to this message" onClick={copyLink}>link</button>}
    </header>
    {m.thinking && <Thinking text={m.thinking} rowKey={m.key} live={!!m.live && !m.text && !m.calls.length} />}
    {m.text && <Prose text={m.text} />}
    {m.attachments.map((a, i) => <Attached key={i} value={a} />)}
    {m.error && <div class={`error-box${kerning(m.error.message)}`} role="note"><strong>{show(cut(m.error.code, 60))}</strong> <Long text={m.error.message} most={2000} /></div>}
    {m.calls.slice(0, 100).map((call, i) => <Tool key={`${call.id}:${i}`} call={call} conversation={conversation} rowKey={`${m.id}/${call.id}/${i}`} />)}
    {m.calls.length > 100 && <p class="quiet">{count(m.calls.length - 100)} more calls in this message are not shown here.</p>}
  </article>;
}

function Thinking({ text, rowKey, live }: { text: string; rowKey: string; live: boolean }) {
  const state = opened(`think:${rowKey}`);
  const open = state.value ?? live;
  return <div class="thinking">
    <button type="button" aria-expanded={open} onClick={() => { state.value = !open; }}><span class="caret" aria-hidden="true" />Thinking{!open && <span class="quiet">{show(cut(plain(text, 160), 160))}</span>}</button>
    {open && <div class={`thought${kerning(text)}`}><Long text={text} most={8000} /></div>}
  </div>;
}

function Attached({ value }: { value: unknown }) {
  const picture = imageOf(value);
  if (picture) return <img class="picture" src={picture} alt="Attached image" />;
  return <div class="attached"><Tree value={(value && typeof value === "object" ? value : { value }) as object} /></div>;
}
