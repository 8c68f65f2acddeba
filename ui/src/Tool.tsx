// A tool call: one line that says how it went, and everything else behind it. A failed call opens at the lines
// that say what is wrong.
import { useEffect, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { get } from "./api";
import { Card } from "./Approval";
import { approvals } from "./approvals";
import type { Conversation } from "./conversation";
import { bytes, count, duration, now, plural, utf8Size } from "./format";
import type { Call, Ref } from "./history";
import { Bars, StateIcon, WORDS } from "./icons";
import { readJson } from "./json";
import { textOf, type Found } from "./lines";
import { go, hrefOf, sharedLink } from "./route";
import { cut, Long, Pen, plain, redrawn, show } from "./text";
import { quoted, SHELLS } from "./shells";
import { statusOf, type TimeRow } from "./Timeline";
import { changeOf, Diff, Todos, todosOf, Tree, Value, wordsOf } from "./Value";
import { opened } from "./opened";
import { copied, LINKED } from "./toast";

const REPAIRS: Record<string, string> = {
  not_dispatched: "it was never started", indeterminate: "it was started, then the process died: its effects are unknown",
  cut: "its arguments were cut off, so it was not run", interrupted: "it was stopped",
  unrecorded: "no result was stored", renamed: "it shares its id with another call",
};

const STUB = "[INCOMPLETE:";
export const ERRORS = "\\b(error|exception|traceback|panic|fatal|fail(ed|ure|ing)?)\\b|AssertionError|\\w+Error:|\\b(E|FAIL)[: ]";
const parse = (s: string): unknown => { try { return JSON.parse(s); } catch { return undefined; } };

// The command that a person would recognise, if the call has one.
export function commandOf(name: string, args: string): string | null {
  if (!SHELLS.test(name)) return null;
  const a = parse(args) as Record<string, unknown> | null | undefined;
  if (!a || typeof a !== "object") return null;
  if (Array.isArray(a.argv)) return a.argv.map((x) => quoted(String(x))).join(" ");
  if (Array.isArray(a.command)) return a.command.map((x) => quoted(String(x))).join(" ");
  for (const k of ["shell", "command", "cmd", "script"]) if (typeof a[k] === "string") return a[k];
  return null;
}

function summary(c: Call): string {
  const command = commandOf(c.name, c.arguments);
  if (command !== null) return command;
  const j = readJson(c.arguments.slice(0, 20_000));
  if (!j || j.t !== "object") return c.arguments;
  return j.v.map(([k, v]) => `${k}: ${v.t === "array" ? `[${v.v.length}]` : v.t === "object" ? `{${v.v.length}}` : v.v}`).join("  ");
}

const saidBy = (c: Call) => (typeof c.result === "string" ? c.result : wordsOf(c.result)?.join("\n") ?? JSON.stringify(c.result) ?? "");

function sizeOf(c: Call): { all: number; kept: number } | null {
  const text = saidBy(c);
  if (c.result === undefined && !c.ref) return null;
  const shown = utf8Size(text.slice(0, 2_000_000));
  const all = c.ref?.byteSize || shown;
  return { all, kept: text.startsWith(STUB) ? Math.max(0, all - shown) : 0 };
}

const Took = ({ call: c, skew }: { call: Call; skew: number }) => {
  const took = c.duration ?? (c.status === "running" && c.startedAt ? Math.max(0, now.value + skew - c.startedAt) : undefined);
  return took === undefined ? null : <span class="took" title={`${count(Math.round(took))} ms`}>{duration(took)}</span>;
};

export function Tool({ call: c, conversation, rowKey, seq, slow }: { call: Call; conversation: Conversation; rowKey: string; seq: number; slow?: boolean }) {
  const state = opened(rowKey);
  const bad = c.status === "error" || c.status === "denied" || c.status === "indeterminate";
  const open = state.value ?? bad;
  const size = sizeOf(c);
  const head = `${WORDS[c.status]}: ${plain(c.name, 80)}`;
  const asked = c.status === "waiting" ? approvals.value.find((a) => a.call === c.id && a.conversation === conversation.id) : undefined;
  return <section class={`tool tool-${c.status}${slow ? " slow" : ""}`} data-row={rowKey} data-status={c.status} data-call={c.id} data-seq={seq} tabIndex={-1} role="group" aria-label={head}>
    <button type="button" class="tool-head" aria-expanded={open} onClick={() => { state.value = !open; }} tabIndex={-1}>
      <span class="status"><StateIcon status={c.status} /><span class={c.status === "done" ? "hidden" : "status-word"}>{WORDS[c.status]}</span></span>
      <span class="tool-name">{c.server && <span class="server">{show(cut(c.server, 80))}/</span>}{show(cut(c.name, 120))}</span>
      <span class="tool-args">{show(cut(plain(summary(c), 240), 240))}</span>
      <span class="tool-figures">
        {c.exitCode !== undefined && c.exitCode !== 0 && <span class="bad">exit {c.exitCode}</span>}
        {c.repair && <span class="flag">repaired</span>}
        <Took call={c} skew={conversation.times.skew.value} />
        {size && <span title={plural(size.all, "byte")}>{bytes(size.all)}</span>}
        {size && size.kept > 0 && <span class="kept" title={`${plural(size.kept, "byte")} kept out of the model's context`}>{bytes(size.kept)} kept out</span>}
      </span>
    </button>
    {c.status === "waiting" && (asked ? <Card of={asked} /> : <p class="quiet waits-elsewhere">It waits for permission where it was started.</p>)}
    {open && <ToolBody call={c} conversation={conversation} seq={seq} />}
    {!open && c.status === "running" && c.steps.length > 0 && <Steps call={c} last={1} />}
  </section>;
}

function Arguments({ call: c }: { call: Call }) {
  const raw = useSignal(false);
  const args = parse(c.arguments);
  const change = changeOf(args), todos = todosOf(args);
  const command = commandOf(c.name, c.arguments);
  if (/^\s*(\{\s*\})?\s*$/.test(c.arguments)) return <p class="quiet">none</p>;
  const tree = readJson(c.arguments);
  const seen = raw.value ? null : todos ? <Todos list={todos} /> : change ? <Diff text={change.patch} name={change.name} /> : command !== null ? <pre class="text command-line" tabIndex={0} aria-label="Arguments"><Long text={command} /></pre>
    : tree && (tree.t === "object" || tree.t === "array") ? <Tree value={tree} /> : null;
  return <div class="value">
    {(raw.value || seen) && <button type="button" class="switch" aria-pressed={raw.value} onClick={() => { raw.value = !raw.value; }}>{raw.value ? "Rendered" : "As it is"}</button>}
    {seen ?? <pre class="text" tabIndex={0} aria-label="Arguments"><Long text={c.arguments} /></pre>}
  </div>;
}

function ToolBody({ call: c, conversation, seq }: { call: Call; conversation: Conversation; seq: number }) {
  const failed = c.status === "error";
  const said = c.result !== undefined || c.status === "done";
  return <div class="tool-body">
    {c.repair && <p class="note">Repaired in this view: {REPAIRS[c.repair.class] ?? c.repair.class}.</p>}
    {failed && <><Wrong call={c} conversation={conversation} seq={seq} /><Next call={c} conversation={conversation} seq={seq} /></>}
    <h3>Arguments</h3>
    <Arguments call={c} />
    <Steps call={c} last={50} />
    {said && (failed && c.ref ? <Folded words={c.ref ? "What the model saw" : "As it is"}><Result call={c} /></Folded>
      : <><h3>{failed ? "As it is" : c.failed ? "Error" : "Result"}</h3><Result call={c} /></>)}
    {c.status === "running" && <FollowLink call={c} conversation={conversation} />}
    <p class="tool-acts">
      {c.ref && <a class="button" data-full={c.ref.id} href={hrefOf({ view: "output", id: conversation.id, ref: c.ref.id })}>Open the output · {bytes(c.ref.byteSize)}</a>}
      {Number.isFinite(seq) && <button type="button" class="quiet-link" data-act="copy-link" onClick={() => copied(sharedLink({ view: "conversation", id: conversation.id, call: c.id, from: seq }), LINKED)}>Copy link</button>}
      {typeof c.result === "string" && <button type="button" class="quiet-link" onClick={() => copied(c.result as string)}>Copy what the model saw</button>}
    </p>
  </div>;
}

function Folded({ words, children }: { words: string; children: preact.ComponentChildren }) {
  const open = useSignal(false);
  return <div class="folded"><button type="button" aria-expanded={open.value} class="fold" onClick={() => { open.value = !open.peek(); }}><span class="caret" aria-hidden="true" />{words}</button>{open.value && children}</div>;
}

// ---- what is wrong ----
interface Wrongs { rows: { n: number; text: string; hit: boolean }[]; first: number; total?: number }

// Three lines before, eight lines after, joined where they meet.
function rowsOf(hits: { line: number; content: string; before: string[]; after: string[] }[]): Wrongs["rows"] {
  const rows = new Map<number, { n: number; text: string; hit: boolean }>();
  const put = (n: number, text: string, hit: boolean) => { if (hit || !rows.has(n)) rows.set(n, { n, text, hit }); };
  for (const h of hits) {
    h.before.slice(-3).forEach((t, i, all) => put(h.line - all.length + i, t, false));
    put(h.line, h.content, true);
    h.after.slice(0, 8).forEach((t, i) => put(h.line + 1 + i, t, false));
  }
  return [...rows.values()].sort((a, b) => a.n - b.n);
}

function wrongsOf(text: string): Wrongs {
  const lines = text.replace(/\n$/, "").split("\n");
  const pattern = new RegExp(ERRORS, "i");
  const hits: number[] = [];
  lines.forEach((l, i) => { if (pattern.test(l.slice(0, 2000))) hits.push(i); });
  const some = hits.length ? hits.slice(0, 3) : [];
  const rows = some.length ? rowsOf(some.map((i) => ({ line: i + 1, content: lines[i]!, before: lines.slice(Math.max(0, i - 3), i), after: lines.slice(i + 1, i + 9) })))
    : lines.slice(-20).map((t, i, all) => ({ n: lines.length - all.length + i + 1, text: t, hit: false }));
  return { rows, first: some.length ? some[0]! + 1 : Math.max(1, lines.length - 19), total: hits.length };
}

// The lines around those that the server reports as errors.
async function linesAt(path: string, numbers: number[], stop: AbortSignal): Promise<Wrongs> {
  const hits = await Promise.all(numbers.map(async (line) => {
    const from = Math.max(1, line - 3), at = line - from;
    const all = textOf(await get<{ content: string }>(`${path}/read?line=${from}&count=${at + 9}`, stop)).replace(/\n$/, "").split("\n");
    return { line, content: all[at] ?? "", before: all.slice(0, at), after: all.slice(at + 1) };
  }));
  return { rows: rowsOf(hits), first: numbers[0]! };
}

function Wrong({ call: c, conversation, seq }: { call: Call; conversation: Conversation; seq: number }) {
  const numbers = conversation.failures.all.value.find((f) => f.call === c.id && f.seq === seq)?.lines ?? [];
  const text = saidBy(c);
  const [found, setFound] = useState<Wrongs | null>(c.ref ? null : wrongsOf(text));
  useEffect(() => {
    if (!c.ref) { setFound(wrongsOf(text)); return; }
    const stop = new AbortController();
    const path = `/api/chat-sessions/${encodeURIComponent(conversation.id)}/context/${encodeURIComponent(c.ref.id)}`;
    void (async () => {
      if (numbers.length) { setFound(await linesAt(path, numbers, stop.signal)); return; }
      const f = await get<Found>(`${path}/grep?pattern=${encodeURIComponent(ERRORS)}&max_results=3&context_lines=8`, stop.signal);
      if (f.matches.length) { setFound({ rows: rowsOf(f.matches.map((m) => ({ ...m, before: m.before ?? [], after: m.after ?? [] }))), first: f.matches[0]!.line, total: f.total_matches }); return; }
      const t = await get<{ content: string; first_line: number | null }>(`${path}/tail?lines=20`, stop.signal);
      setFound({ rows: t.content.replace(/\n$/, "").split("\n").map((x, i) => ({ n: (t.first_line ?? 1) + i, text: x, hit: false })), first: t.first_line ?? 1, total: 0 });
    })().catch(() => { if (!stop.signal.aborted) setFound(wrongsOf(text)); });
    return () => stop.abort();
  }, [c.ref?.id, text, numbers.join()]);
  const place = (line?: number) => ({ view: "output" as const, id: conversation.id, ref: c.ref?.id ?? "", ...(line ? { line } : {}) });
  // Opened before the line was known: scrolls there as soon as it is.
  const owed = useRef(false);
  useEffect(() => { if (found && owed.current) go(place(found.first)); }, [found]);
  const first = found?.first ?? numbers[0];
  const open = c.ref && <a class="button primary" data-wrong href={hrefOf(place(first))} onClick={(e) => { if (!first) { e.preventDefault(); owed.current = true; } }}>Open the output at {first ? `line ${count(first)}` : "its error"}</a>;
  if (!found) return <div class="wrong"><div class="wrong-lines"><Bars /></div><p class="tool-acts">{open}</p></div>;
  if (found.rows.every((r) => !r.text)) return <p class="quiet wrong-nothing">It printed nothing.</p>;
  let before = 0;
  return <div class="wrong">
    <pre class="wrong-lines" tabIndex={0} aria-label="What is wrong">{found.rows.map((r) => {
      const gap = before && r.n > before + 1 ? r.n - before - 1 : 0;
      before = r.n;
      return <>{gap > 0 && <div class="gap">{plural(gap, "line")}</div>}<div class={r.hit ? "wrong-row hit" : "wrong-row"}><span class="no">{count(r.n)}</span><span class="wrong-text">{withPaths(cut(r.text, r.text.includes("\r") ? 20_000 : 1000), conversation.id) || " "}</span></div></>;
    })}</pre>
    <p class="tool-acts">{open}
      <span class="quiet">{found.total ? plural(found.total, "error line") : found.total === 0 ? "its last lines" : ""}{c.ref ? ` · ${bytes(c.ref.byteSize)} stored` : ""}</span></p>
  </div>;
}

// path:line searches for that path in this conversation.
function withPaths(text: string, id: string): preact.ComponentChildren {
  if (/[\x1b\r\b]/.test(text)) return redrawn(text);
  const out: preact.ComponentChildren[] = [];
  let at = 0;
  for (const m of text.matchAll(/(?:[\w.@+-]*\/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,5}(?=[:(]\d)/g)) {
    out.push(show(text.slice(at, m.index)), <a class="path" data-path tabIndex={-1} href={hrefOf({ view: "search", id: "", query: `"${m[0]}" conversation:${id}` })} title={`Where else ${m[0]} occurs in this conversation`}>{m[0]}</a>);
    at = m.index + m[0].length;
  }
  return at ? [...out, show(text.slice(at))] : show(text);
}

// The calls that followed, and how the same call ended later. Nothing is guessed.
function Next({ call: c, conversation, seq }: { call: Call; conversation: Conversation; seq: number }) {
  const rows = conversation.times.rows.value;
  const here = rows.findIndex((r) => r.k === "call" && r.id === c.id && r.seq === seq);
  if (here < 0) return null;
  const asked = new Set(approvals.value.map((a) => a.call));
  const later = rows.slice(here + 1).filter((r) => r.k === "call" && r.seq > seq);
  const again = later.find((r) => r.name === rows[here]!.name && r.hint === rows[here]!.hint && r.hint !== "");
  const Row = ({ r, words }: { r: TimeRow; words?: string }) => {
    const status = statusOf(r, asked, !!conversation.run.value);
    return <li><a href={hrefOf({ view: "conversation", id: conversation.id, call: r.id, from: r.seq })}><StateIcon status={status} word />{words && <span>{words}</span>}<code>{show(cut(plain(`${r.name} ${r.hint}`, 140), 140))}</code></a></li>;
  };
  return later.length ? <div class="next"><h3>What came next</h3><ul>{later.slice(0, 3).map((r) => <Row key={`${r.seq}${r.id}`} r={r} {...(r === again ? { words: "the same again: " } : {})} />)}
    {again && later.indexOf(again) > 2 && <Row r={again} words={`the same, ${plural(later.indexOf(again), "call")} later: `} />}</ul></div> : null;
}

function Result({ call: c }: { call: Call }) {
  if (typeof c.result === "string" && c.result.startsWith(STUB)) return <Stub text={c.result} />;
  return <Value value={c.result} display={c.display} label="Result" />;
}

function Stub({ text }: { text: string }) {
  const lines = text.split("\n"), pen = new Pen();
  return <div class="stub"><pre class="text" tabIndex={0} aria-label="Excerpt of the output">{lines.slice(0, 400).map((l, i) => {
    const part = i === 0 || /^--- .* ---$/.test(l);
    return <div key={i} class={part ? "stub-part" : undefined}>{l ? redrawn(cut(l, l.includes("\r") ? 20_000 : 2000), show, pen) : " "}</div>;
  })}</pre></div>;
}

function Steps({ call: c, last }: { call: Call; last: number }) {
  if (!c.steps.length) return null;
  return <ol class="steps" aria-label="Steps">{c.steps.slice(-last).map((s, i) => <li key={i}>
    <span><Long text={s.text} most={500} /></span>
    {s.total ? <progress value={s.progress ?? 0} max={s.total} aria-label="Progress" /> : null}
  </li>)}</ol>;
}

// The output of a running tool is a file before the call has a result.
function FollowLink({ call, conversation }: { call: Call; conversation: Conversation }) {
  const note = useSignal("");
  const find = async () => {
    const list = await get<{ items: Ref[] }>(`/api/chat-sessions/${encodeURIComponent(conversation.id)}/context?limit=50`);
    const found = list.items.find((r) => r.hint?.includes(call.id));
    if (found) go({ view: "output", id: conversation.id, ref: found.id });
    else note.value = "Nothing was written yet.";
  };
  return <p><button type="button" class="button" data-follow={call.id} onClick={() => void find().catch((e) => { note.value = e.message; })}>Follow its output</button> <span class="quiet">{note}</span></p>;
}
