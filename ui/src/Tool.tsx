// A tool call: one line that says how it went, and everything behind it.
import { useEffect, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { get } from "./api";
import type { Conversation } from "./conversation";
import { bytes, count, duration, plural, utf8Size } from "./format";
import type { Call, Ref } from "./history";
import { go, hrefOf } from "./route";
import { answerCall } from "./run";
import { cut, Long, plain, show } from "./text";
import { changeOf, Diff, Value } from "./Value";
import { opened } from "./opened";

const WORDS: Record<Call["status"], string> = {
  running: "Running", asking: "Wants permission", done: "Done", error: "Error",
  interrupted: "Interrupted", denied: "Denied", pending: "Not answered",
};
const REPAIRS: Record<string, string> = {
  not_dispatched: "never started", indeterminate: "started, then the process died: its effects are unknown",
  cut: "its arguments were cut off, so it was not run", interrupted: "it was stopped",
  unrecorded: "no result was stored", renamed: "it shares its id with another call", running: "still running",
};

const STUB = "[INCOMPLETE:";
const parse = (s: string): unknown => { try { return JSON.parse(s); } catch { return undefined; } };

// The command a person would recognise.
export function commandOf(c: Call): string {
  const a = parse(c.arguments) as Record<string, unknown> | undefined;
  if (a && Array.isArray(a.argv)) return a.argv.map((x) => quoted(String(x))).join(" ");
  for (const k of ["shell", "command", "cmd"]) if (a && typeof a[k] === "string") return a[k];
  return c.arguments;
}
const quoted = (s: string) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replace(/'/g, "'\\''")}'`);

const isCommand = (a: unknown) => {
  const o = a as Record<string, unknown> | null | undefined;
  return !!o && typeof o === "object" && (Array.isArray(o.argv) || ["shell", "command", "cmd"].some((k) => typeof o[k] === "string"));
};

function summary(c: Call): string {
  const a = parse(c.arguments);
  if (!a || typeof a !== "object" || Array.isArray(a)) return c.arguments;
  const o = a as Record<string, unknown>;
  if (isCommand(o)) return commandOf(c);
  return Object.entries(o).map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`).join("  ");
}

function useClock(on: boolean) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!on) return;
    const t = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(t);
  }, [on]);
  return now;
}

function sizeOf(c: Call): { all: number; kept: number } | null {
  const text = typeof c.result === "string" ? c.result : c.result === undefined ? "" : JSON.stringify(c.result);
  if (c.result === undefined && !c.ref) return null;
  const shown = utf8Size(text.slice(0, 2_000_000));
  const all = c.ref?.byteSize || shown;
  return { all, kept: text.startsWith(STUB) ? Math.max(0, all - shown) : 0 };
}

export function Tool({ call: c, conversation, rowKey }: { call: Call; conversation: Conversation; rowKey: string }) {
  const state = opened(rowKey);
  const open = state.value ?? (c.status === "error" || c.status === "denied");
  const now = useClock(c.status === "running");
  const took = c.duration ?? (c.status === "running" && c.startedAt ? now - c.startedAt : undefined);
  const size = sizeOf(c);
  const head = `${WORDS[c.status]}: ${plain(c.name, 80)}`;
  return <section class={`tool tool-${c.status}`} data-row={rowKey} data-status={c.status} data-call={c.id} tabIndex={-1} aria-label={head}>
    <button type="button" class="tool-head" aria-expanded={open} onClick={() => { state.value = !open; }}>
      <span class="caret" aria-hidden="true" />
      <span class="status"><span class="dot" aria-hidden="true" />{WORDS[c.status]}</span>
      <span class="tool-name">{c.server && <span class="server">{show(cut(c.server, 80))}/</span>}{show(cut(c.name, 120))}</span>
      <span class="tool-args">{show(cut(plain(summary(c), 240), 240))}</span>
      <span class="tool-figures">
        {c.exitCode !== undefined && c.exitCode !== 0 && <span class="bad">exit {c.exitCode}</span>}
        {c.repair && <span class="flag">repaired</span>}
        {took !== undefined && <span>{duration(took)}</span>}
        {size && <span>{bytes(size.all)}</span>}
        {size && size.kept > 0 && <span class="kept" title="Kept out of the model's context">{bytes(size.kept)} kept out</span>}
      </span>
    </button>
    {c.status === "asking" && <Approval call={c} conversation={conversation} />}
    {open && <ToolBody call={c} conversation={conversation} />}
    {!open && c.status === "running" && c.steps.length > 0 && <Steps call={c} last={1} />}
  </section>;
}

function ToolBody({ call: c, conversation }: { call: Call; conversation: Conversation }) {
  const args = parse(c.arguments);
  const change = changeOf(args);
  return <div class="tool-body">
    {c.repair && <p class="note">Repaired in this view: {REPAIRS[c.repair.class] ?? c.repair.class}.</p>}
    <h3>Arguments</h3>
    {change ? <Diff text={change.patch} name={change.name} /> : isCommand(args) ? <Command call={c} /> : /^\s*(\{\s*\})?\s*$/.test(c.arguments) ? <p class="quiet">none</p> : <Value value={args !== undefined && typeof args === "object" && args !== null && exactly(c.arguments) ? args : c.arguments} label="Arguments" />}
    <Steps call={c} last={50} />
    {(c.result !== undefined || c.status === "done") && <><h3>{c.failed ? "Error" : "Result"}</h3><Result call={c} /></>}
    {c.status === "running" && <FollowLink call={c} conversation={conversation} />}
    {c.ref && <FullLink refer={c.ref} conversation={conversation} />}
  </div>;
}

function Command({ call: c }: { call: Call }) {
  const raw = useSignal(false);
  return <div class="value">
    <button type="button" class="switch" aria-pressed={raw.value} onClick={() => { raw.value = !raw.value; }}>{raw.value ? "As a command" : "As it is"}</button>
    <pre class="text command-line" tabIndex={0} aria-label="Arguments"><Long text={raw.value ? c.arguments : commandOf(c)} /></pre>
  </div>;
}

// A tree shows numbers as JavaScript reads them; where that is not what was written, the text stays.
const exactly = (s: string) => !/\d{16}|\d[eE]|\.\d*0[,\s}\]]/.test(s);

function Result({ call: c }: { call: Call }) {
  if (typeof c.result === "string" && c.result.startsWith(STUB)) return <Stub text={c.result} />;
  return <Value value={c.result} display={c.display} label="Result" />;
}

function Stub({ text }: { text: string }) {
  const lines = text.split("\n");
  return <div class="stub"><pre class="text" tabIndex={0} aria-label="Excerpt of the output">{lines.slice(0, 400).map((l, i) => {
    const part = i === 0 || /^--- .* ---$/.test(l);
    return <div key={i} class={part ? "stub-part" : undefined}>{show(cut(l, 2000)) || " "}</div>;
  })}</pre></div>;
}

function Steps({ call: c, last }: { call: Call; last: number }) {
  if (!c.steps.length) return null;
  return <ol class="steps" aria-label="Steps">{c.steps.slice(-last).map((s, i) => <li key={i}>
    <span><Long text={s.text} most={500} /></span>
    {s.total ? <progress value={s.progress ?? 0} max={s.total} aria-label="Progress" /> : null}
  </li>)}</ol>;
}

function FullLink({ refer, conversation }: { refer: Ref; conversation: Conversation }) {
  return <p><a class="button" data-full={refer.id} href={hrefOf({ view: "output", id: conversation.id, ref: refer.id })}>View full output · {bytes(refer.byteSize)}</a></p>;
}

// The output of a running tool has a file before it has a result.
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

// Runs of blank lines are counted, so that nothing hides behind them.
function Exactly({ text }: { text: string }) {
  const pieces = text.split(/\n((?:[^\S\n]*\n){3,})/);
  return <>{pieces.map((t, i) => (i % 2 ? <span key={i} class="odd">{`⋮ ${count(t.split("\n").length - 1)} blank lines`}</span> : <span key={i}>{i ? "\n" : ""}{show(t)}{i < pieces.length - 1 ? "\n" : ""}</span>))}</>;
}

// A call that waits for permission: every argument stands here, and it can be allowed once its end has
// been on the screen.
function Approval({ call, conversation }: { call: Call; conversation: Conversation }) {
  const problem = useSignal("");
  const busy = useSignal(false);
  const seen = useSignal(false);
  const end = useRef<HTMLElement>(null);
  useEffect(() => {
    const watch = new IntersectionObserver((all) => { if (all.some((e) => e.isIntersecting)) seen.value = true; });
    if (end.current) watch.observe(end.current);
    return () => watch.disconnect();
  }, [call.id, call.approval]);
  const run = conversation.run.value;
  const answer = async (yes: boolean) => {
    if (yes && !seen.value) return;
    busy.value = true;
    try { if (run) await answerCall(run.id, call, yes); } catch (e) { problem.value = (e as Error).message; busy.value = false; }
  };
  const command = commandOf(call);
  return <div class="approval" role="group" aria-label="Permission">
    <p>The model wants to run this, exactly as it stands here:</p>
    {command !== call.arguments && <pre class="command" tabIndex={0} aria-label="Command"><Exactly text={command} /></pre>}
    <p class="quiet">{plain(call.name)}, arguments byte for byte · {plural(utf8Size(call.arguments), "byte")}</p>
    <pre class="command" tabIndex={0} aria-label="Arguments, byte for byte"><Exactly text={call.arguments} /><i ref={end} class="end" /></pre>
    <p class="buttons">
      <button type="button" class="primary" data-act="approve" disabled={busy.value || !seen.value} title={seen.value ? undefined : "Scroll to the end of the arguments first"} onClick={() => void answer(true)}>Allow once</button>
      <button type="button" class="danger" data-act="deny" disabled={busy.value} onClick={() => void answer(false)}>Deny</button>
      <span role="alert">{problem}</span>
    </p>
  </div>;
}
