// A value of a tool, in the form that fits it: tree, diff, list of todos, image, coloured text.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { cut, Long, show, terminal } from "./text";
import { patchOf } from "./diff";
import { count, plural } from "./format";
import { readJson, type Json } from "./json";
import { useRoving } from "./roving";

const CHILDREN = 100;
const DIFF_LINES = 400;

// ---- JSON ----

export function Leaf({ value, most = 2000 }: { value: Json; most?: number }) {
  if (value.t === "string") return <span class="j-string">"<Long text={value.v} most={most} />"</span>;
  return <span class={`j-${value.t === "word" ? (value.v === "null" ? "null" : "boolean") : "number"}`}>{String(value.v)}</span>;
}

const entries = (v: Json): [string, Json, string][] => {
  if (v.t === "array") return v.v.map((x, i) => [String(i), x, ""]);
  if (v.t !== "object") return [];
  const words = again(v.v.map(([k]) => k));
  return v.v.map(([k, x], i) => [k, x, words[i]!]);
};

// For names that occur several times: which one this is.
export function again(keys: (string | undefined)[]): string[] {
  const times = new Map<unknown, number>(), seen = new Map<unknown, number>();
  for (const k of keys) times.set(k, (times.get(k) ?? 0) + 1);
  return keys.map((k) => {
    const all = times.get(k)!;
    seen.set(k, (seen.get(k) ?? 0) + 1);
    return all === 1 ? "" : `${all === 2 ? "twice" : `${count(all)} times`}: ${seen.get(k)} of ${all}`;
  });
}

function Branch({ name, value, depth }: { name?: ComponentChildren; value: Json; depth: number }) {
  const all = entries(value);
  const [open, setOpen] = useState(depth < 2 && all.length <= 30);
  const [most, setMost] = useState(CHILDREN);
  return <div class="j-node">
    <button type="button" class="j-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
      <span class="caret" aria-hidden="true" />{name}
      <span class="j-size">{value.t === "array" ? `[${count(all.length)}]` : `{${count(all.length)}}`}</span>
      {!open && <span class="j-hint">{show(cut(preview(value), 90))}</span>}
    </button>
    {open && <div class="j-children">
      {all.slice(0, most).map(([k, v, again], i) => <Node key={i} name={k} value={v} again={again} depth={depth + 1} />)}
      {all.length > most && <button type="button" class="more" onClick={() => setMost(most + 400)}>… {count(all.length - most)} more</button>}
    </div>}
  </div>;
}

function preview(v: Json): string {
  const some = entries(v).slice(0, 5).map(([k, x]) => {
    const s = x.t === "string" ? x.v.slice(0, 40) : x.t === "array" ? "[…]" : x.t === "object" ? "{…}" : x.v;
    return v.t === "array" ? s : `${k}: ${s}`;
  });
  return some.join(", ").replace(/\s+/g, " ");
}

function Node({ name, value, again, depth }: { name: string; value: Json; again: string; depth: number }) {
  const label = <><span class="j-key">{show(cut(name, 200))}</span>{again && <span class="j-again">{again}</span>}</>;
  if (value.t === "array" || value.t === "object") return <Branch name={label} value={value} depth={depth} />;
  return <div class="j-leaf">{label}<Leaf value={value} /></div>;
}

export function Tree({ value }: { value: Json }) {
  const box = useRoving<HTMLDivElement>("button");
  return <div class="tree" ref={box}><Branch value={value} depth={0} /></div>;
}

// ---- diffs ----

export const looksLikeDiff = (s: string) => /^(diff --git |Index: |--- \S.*\n\+\+\+ )/m.test(s.slice(0, 4000)) && /^@@ /m.test(s.slice(0, 20_000));

export function Diff({ text, name }: { text: string; name?: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  const [most, setMost] = useState(DIFF_LINES);
  const added = lines.filter((l) => l.startsWith("+") && !l.startsWith("+++")).length;
  const removed = lines.filter((l) => l.startsWith("-") && !l.startsWith("---")).length;
  return <div class="diff">
    <div class="diff-head">{name && <span class="mono">{show(cut(name, 300))}</span>}
      <span class="added">+{count(added)}</span><span class="removed">−{count(removed)}</span></div>
    <pre tabIndex={0} aria-label="Diff">{lines.slice(0, most).map((l, i) => {
      const kind = l.startsWith("+++") || l.startsWith("---") || l.startsWith("diff ") || l.startsWith("Index:") ? "file"
        : l.startsWith("@@") ? "hunk" : l[0] === "+" ? "plus" : l[0] === "-" ? "minus" : "same";
      return <div key={i} class={`d-${kind}`}>{show(cut(l, 2000)) || " "}</div>;
    })}</pre>
    {lines.length > most && <button type="button" class="more" onClick={() => setMost(most + 2000)}>… {plural(lines.length - most, "more line")}</button>}
  </div>;
}

const text = (o: Record<string, unknown>, ...keys: string[]) => {
  for (const k of keys) if (typeof o[k] === "string") return o[k] as string;
  return undefined;
};

// Arguments or a display that describe a change of a text.
export function changeOf(value: unknown): { name: string; patch: string } | null {
  if (!value || typeof value !== "object" || Array.isArray(value)) return null;
  const o = value as Record<string, unknown>;
  const name = text(o, "fileName", "file_path", "filePath", "path", "file") ?? "";
  const ready = text(o, "fileDiff", "diff", "patch");
  if (ready && /^@@ /m.test(ready)) return { name, patch: ready };
  const before = text(o, "old_string", "oldText", "old_str", "originalContent");
  const after = text(o, "new_string", "newText", "new_str", "newContent");
  if (before === undefined || after === undefined || before.length + after.length > 400_000) return null;
  const patch = patchOf(before, after);
  return patch ? { name, patch } : null;
}

// ---- todos ----

interface Todo { content: string; status: string }
export function todosOf(value: unknown): Todo[] | null {
  const o = value as { type?: unknown; todos?: unknown } | null;
  const list = o && typeof o === "object" && Array.isArray(o.todos) ? o.todos : null;
  if (!list || !list.every((t) => t && typeof t === "object")) return null;
  return list.map((t: Record<string, unknown>) => ({ content: text(t, "content", "text", "title", "activeForm") ?? JSON.stringify(t), status: text(t, "status", "state") ?? "pending" }));
}

const TODO_WORDS: Record<string, string> = { completed: "done", done: "done", in_progress: "in progress", active: "in progress", cancelled: "cancelled" };

export function Todos({ list }: { list: Todo[] }) {
  return <ul class="todos">{list.slice(0, 200).map((t, i) => {
    const word = TODO_WORDS[t.status] ?? "open";
    return <li key={i} class={`todo-${word.replace(" ", "-")}`}><span class="box" role="img" aria-label={word} /><span><Long text={t.content} most={1000} /></span></li>;
  })}</ul>;
}

// ---- images ----

const IMAGE = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;
export function imageOf(v: unknown): string | null {
  if (typeof v === "string") return /^data:image\/(png|jpeg|gif|webp|avif|bmp);base64,[A-Za-z0-9+/=\s]+$/.test(v.slice(0, 200)) || (v.length > 200 && /^data:image\/(png|jpeg|gif|webp|avif|bmp);base64,/.test(v)) ? v : null;
  if (!v || typeof v !== "object") return null;
  const o = v as Record<string, unknown>;
  const nested = o.image_url ?? o.imageUrl ?? o.source ?? o.image ?? o.inlineData;
  const url = typeof nested === "string" ? nested : (nested as { url?: unknown } | undefined)?.url ?? o.url;
  if (typeof url === "string" && imageOf(url)) return url;
  const from = (nested && typeof nested === "object" ? nested : o) as Record<string, unknown>;
  const mime = text(from, "mimeType", "media_type", "mime_type", "mediaType") ?? text(o, "mimeType", "media_type", "mediaType");
  const data = text(from, "data") ?? text(o, "data");
  return mime && IMAGE.test(mime) && data && /^[A-Za-z0-9+/=\s]{8,}$/.test(data.slice(0, 400)) ? `data:${mime};base64,${data}` : null;
}

// ---- whichever fits ----

function parsed(s: string): object | null {
  const c = s.trimStart()[0];
  if ((c !== "{" && c !== "[") || s.length > 2_000_000) return null;
  try { const v: unknown = JSON.parse(s); return v && typeof v === "object" ? v : null; } catch { return null; }
}

export function Value({ value, display, label }: { value: unknown; display?: unknown; label: string }) {
  const [raw, setRaw] = useState(false);
  const exact = typeof value === "string" ? value : JSON.stringify(value, null, 1) ?? "";
  const seen = raw ? null : shape(value, display);
  const canSwitch = raw || (seen !== null && exact !== "");
  return <div class="value">
    {canSwitch && <button type="button" class="switch" aria-pressed={raw} onClick={() => setRaw(!raw)}>{raw ? "Rendered" : "As it is"}</button>}
    {seen ?? <pre class="text" tabIndex={0} aria-label={label}>{exact ? <Long text={exact} as={terminal} /> : <span class="quiet">(empty)</span>}</pre>}
  </div>;
}

const treeOf = (v: object) => { const j = readJson(JSON.stringify(v)); return j && <Tree value={j} />; };

function shape(value: unknown, display: unknown): ComponentChildren | null {
  for (const v of [display, typeof value === "string" ? parsed(value) : value]) {
    const todos = todosOf(v);
    if (todos) return <Todos list={todos} />;
    const change = changeOf(v);
    if (change) return <Diff text={change.patch} name={change.name} />;
  }
  if (typeof display === "string" && display) return looksLikeDiff(display) ? <Diff text={display} /> : <pre class="text" tabIndex={0} aria-label="Display"><Long text={display} as={terminal} /></pre>;
  if (typeof value === "string") {
    if (looksLikeDiff(value)) return <Diff text={value} />;
    const img = imageOf(value);
    if (img) return <img class="picture" src={img} alt="Image returned by the tool" />;
    const p = parsed(value);
    return p ? shapeOf(p, value) : null;
  }
  return value && typeof value === "object" ? shapeOf(value) : null;
}

// A result that consists of text parts.
export const wordsOf = (v: unknown): string[] | null => (Array.isArray(v) && v.length && v.every((p) => p?.type === "text" && typeof p.text === "string") ? v.map((p) => p.text) : null);

// `exact` is the text that the value was read from: its tree shows exactly that text.
function shapeOf(v: object, exact?: string): ComponentChildren {
  const parts = Array.isArray(v) ? v : Array.isArray((v as { content?: unknown }).content) ? (v as { content: unknown[] }).content : [v];
  const pictures = parts.map(imageOf).filter((x): x is string => x !== null);
  const texts = exact === undefined ? wordsOf(v) : null;
  if (!pictures.length && !texts) {
    const j = exact === undefined ? null : readJson(exact);
    return j ? <Tree value={j} /> : treeOf(v);
  }
  const words = parts.filter((p) => typeof (p as { text?: unknown })?.text === "string").map((p) => (p as { text: string }).text);
  return <>{words.map((w, i) => <pre key={i} class="text" tabIndex={0} aria-label="Text"><Long text={w} as={terminal} /></pre>)}
    {pictures.slice(0, 20).map((p, i) => <img key={i} class="picture" src={p} alt="Image returned by the tool" />)}</>;
}
