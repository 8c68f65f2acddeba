// A call that needs permission. The card shows exactly what will run: every argument, completely. The call can
// be allowed once the end of the card has been on the screen, unchanged, for half a second; with a key only
// while the card has had the focus for as long.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { connection } from "./api";
import { answer, answered, type Approval } from "./approvals";
import { bytes, clock, count, duration, plural, utf8Size } from "./format";
import { readJson, type Json } from "./json";
import { quoted } from "./shells";
import { Tree } from "./Value";
import { exact, plain, show } from "./text";

const FOCUS_MS = 500;

// Rows of a text as they are read: the style sheet marks each wrapped row, and runs of blank lines are counted,
// so that nothing hides behind them.
function Exactly({ text }: { text: string }) {
  const rows: { n: number; text: string; blank?: number }[] = [];
  text.split("\n").forEach((t, i) => {
    const last = rows.at(-1);
    if (t.trim() === "" && t.length < 200) {
      if (last?.blank) { last.blank++; return; }
      rows.push({ n: i + 1, text: t, blank: 1 });
    } else rows.push({ n: i + 1, text: t });
  });
  return <>{rows.map((r, i) => <span key={r.n} class="exact-row" data-n={r.n}>
    {r.blank && r.blank > 2 ? <span class="exact-text odd-lines">{count(r.blank)} empty lines</span>
      : r.blank ? <span class="exact-text">{exact(r.text.length > 8 ? r.text : r.text.replace(/ /g, "␠"))}{r.blank === 2 ? <span class="odd">↵</span> : null}</span>
        : <span class="exact-text">{exact(r.text)}</span>}{i < rows.length - 1 ? "\n" : ""}</span>)}</>;
}

interface Parts { command: string; how: string; rest: [string, Json][]; directory?: string; env?: Json }
// Only for the tool that runs commands: other tools may have an argument "command" that means something else.
function partsOf(a: { tool: string; server?: string; arguments: string }): Parts | null {
  const j = a.tool === "execute_command" && !a.server ? readJson(a.arguments) : null;
  if (!j || j.t !== "object") return null;
  const members = new Map(j.v);
  if (members.size !== j.v.length) return null; // a member occurs twice: then show the exact bytes
  const argv = members.get("argv"), shell = members.get("shell");
  const p: Parts = { command: "", how: "", rest: [] };
  if (argv?.t === "array" && argv.v.every((x) => x.t === "string")) { p.command = argv.v.map((x) => quoted(x.v as string)).join(" "); p.how = plural(argv.v.length, "argument", "arguments") + ", no shell"; }
  else if (shell?.t === "string") { p.command = shell.v; p.how = "shell text, one piece"; }
  else return null;
  for (const [k, v] of j.v) {
    if ((k === "argv" && argv?.t === "array") || (k === "shell" && argv?.t !== "array" && shell)) continue;
    if (k === "directory" && v.t === "string") p.directory = v.v;
    else if (k === "env" || k === "environment") p.env = v;
    else p.rest.push([k, v]);
  }
  return p;
}

const limitsOf = (l: NonNullable<Approval["limits"]>) => [l.seconds && duration(l.seconds * 1000), l.cpuSeconds && `${duration(l.cpuSeconds * 1000)} of a processor`, l.memoryBytes && `${bytes(l.memoryBytes)} of memory`, l.outputBytes && `${bytes(l.outputBytes)} of output`].filter(Boolean).join(", ") || "none";

export function Card({ of: a, title }: { of: Approval; title?: preact.ComponentChildren }) {
  const problem = useSignal("");
  const busy = useSignal(false);
  const seen = useSignal(false);
  const settled = useSignal(false);
  const ready = useSignal(false); // the focus has been here long enough
  const box = useRef<HTMLDivElement>(null);
  const timer = useRef(0);
  const parts = partsOf(a);
  useEffect(() => {
    seen.value = ready.value = false;
    settled.value = false;
    let due = 0;
    // Both ends must be visible: of the text, which scrolls by itself, and of the card.
    const left = new Set(box.current!.querySelectorAll(".end"));
    const watch = new IntersectionObserver((all) => {
      for (const e of all) if (e.isIntersecting) left.delete(e.target);
      if (seen.peek() || left.size) return;
      seen.value = true;
      due = window.setTimeout(() => { settled.value = true; }, FOCUS_MS);
    });
    for (const e of left) watch.observe(e);
    if (box.current?.contains(document.activeElement)) focused();
    return () => { watch.disconnect(); clearTimeout(timer.current); clearTimeout(due); };
  }, [a.approval]);
  const focused = () => { clearTimeout(timer.current); timer.current = window.setTimeout(() => { ready.value = true; }, FOCUS_MS); };
  const blurred = (e: FocusEvent) => { if (!box.current?.contains(e.relatedTarget as Node | null)) { clearTimeout(timer.current); ready.value = false; } };
  const decide = async (yes: boolean) => {
    if (busy.peek() || (yes && (!settled.peek() || away))) return;
    busy.value = true;
    try { await answer(a, yes); } catch (e) { problem.value = (e as Error).message; busy.value = false; }
  };
  const away = connection.value === "lost";
  const done = answered.value.get(a.approval);
  const size = utf8Size(a.arguments);
  return <div class="approval" role="group" aria-label={`May ${plain(a.tool, 80)} run this?`} ref={box} tabIndex={-1} data-approval={a.approval}
    onFocusIn={focused} onFocusOut={blurred}
    onPointerDown={() => { if (!box.current?.contains(document.activeElement)) box.current?.focus({ preventScroll: true }); }}
    onKeyDown={(e) => {
      if (e.repeat || e.ctrlKey || e.metaKey || e.altKey || (e.target as Element).matches("input, textarea")) return;
      if (e.key === "a" || e.key === "d") { e.preventDefault(); e.stopPropagation(); if (e.key === "d" || ready.peek()) void decide(e.key === "a"); }
    }}>
    <p class="approval-title">May <code>{a.server ? <>{show(a.server)}/</> : null}{show(a.tool)}</code> run this?</p>
    {title}
    {a.elsewhere && <p class="quiet">The question comes from another server or a terminal that uses this store.</p>}
    {parts && <pre class="command exact" tabIndex={0} aria-label="Command"><Exactly text={parts.command} /><i class="end" /></pre>}
    <dl class="facts">
      {parts && <><dt>Runs as</dt><dd>{parts.how}</dd></>}
      {a.directory && !a.server && a.tool === "execute_command" && <><dt>Directory</dt><dd class="mono">{show(a.directory)}{parts?.directory ? <> / {show(parts.directory)}</> : null}</dd></>}
      {parts?.env && <FactRow name="Environment" value={parts.env} />}
      {a.environment && <><dt>Environment</dt><dd class="mono">{exact(a.environment.join(" "))}</dd></>}
      {a.limits && <><dt>Limits</dt><dd>{limitsOf(a.limits)}</dd></>}
      {parts?.rest.map(([k, v], i) => <FactRow key={i} name={k} value={v} />)}
    </dl>
    {parts ? <details class="bytes"><summary>Arguments, byte for byte · {plural(size, "byte")}</summary><pre class="command exact" tabIndex={0} aria-label="Arguments, byte for byte"><Exactly text={a.arguments} /></pre></details>
      : <><p class="quiet">Arguments, byte for byte · {plural(size, "byte")}</p><pre class="command exact" tabIndex={0} aria-label="Arguments, byte for byte"><Exactly text={a.arguments} /><i class="end" /></pre></>}
    <i class="end" />
    {done ? <p class="quiet" role="status">{done.word}, {clock(done.at)}</p> : <>
      <p class="quiet seen">{away ? "Not connected: it may have been answered, or its time may be over. " : seen.value ? `You have seen all of it: ${plural(size, "byte")}, ` : "Scroll to its end before you allow it. "}{!away && seen.value && <code>{a.approval.slice(0, 4)}…{a.approval.slice(-4)}</code>}</p>
      <p class="buttons">
        <button type="button" class="primary" data-act="approve" disabled={busy.value || !settled.value || away} onClick={() => void decide(true)}>Allow once <kbd>a</kbd></button>
        <button type="button" class="danger" data-act="deny" disabled={busy.value || away} onClick={() => void decide(false)}>Deny <kbd>d</kbd></button>
        <span role="alert">{problem}</span>
      </p></>}
  </div>;
}

const worded = (v: Json): v is Exclude<Json, { t: "array" | "object" }> => v.t !== "array" && v.t !== "object";
const FactRow = ({ name, value: v }: { name: string; value: Json }) => <><dt>{show(name)}</dt><dd class="mono">{worded(v) ? exact(String(v.v)) : v.t === "array" && v.v.every(worded) ? exact(v.v.map((x) => x.v).join(" ")) : <Tree value={v} />}</dd></>;
