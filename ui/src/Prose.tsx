// What a person or a model writes, as Markdown: tokens of marked's lexer become nodes, never markup.
//
// The lexer runs in a worker that is killed when a text takes longer than a moment, because there
// are texts on which every Markdown reader takes minutes. The part of the text that it was at stays
// plain then. So is a text until its answer is there, and one that is too long.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import lexerUrl from "./lexer?worker&url";
import { colours } from "./code";
import { scriptUrl } from "./trusted";
import { cut, Long, show } from "./text";
import { toast } from "./toast";

// How long a text may take. A text that took longer is tried again behind all others, in a new worker, because
// perhaps the machine was busy. It is not tried a third time.
const TIME_MS = [250, 5000, 20_000];
const TEXT_MOST = 64_000;
const PARAGRAPH_MOST = 4000;
const DEEPEST = 24;
const KEPT = 1500;

interface Token {
  type: string; raw: string; text?: string; tokens?: Token[]; depth?: number; lang?: string; href?: string;
  ordered?: boolean; start?: number | ""; items?: Token[]; task?: boolean; checked?: boolean;
  header?: Cell[]; rows?: Cell[][]; align?: (string | null)[];
}
interface Cell { text: string; tokens: Token[] }

// ---- the worker ----
let worker: Worker | null = null;
let last = 0;
interface Job { id: number; text: string; tries: number; skip: number[]; made?: Token[]; done: (t: Token[] | null) => void }
const SKIP_MOST = 8;
let reached = -1; // the part that the worker is reading
const queue: Job[] = [];
const known = new Map<string, Token[] | null>();
let timer = 0;

function next() {
  const job = queue[0];
  if (!job) return;
  worker ??= begin();
  reached = -1;
  worker.postMessage({ id: job.id, text: job.text, skip: job.skip });
  // A worker has to be loaded before it can begin.
  timer = window.setTimeout(late, Math.max(TIME_MS[job.tries]!, warm ? 0 : TIME_MS[1]!));
}
function late() {
  worker?.terminate();
  worker = null;
  const job = queue[0];
  if (job && !job.tries && reached >= 0 && job.skip.length < SKIP_MOST) job.skip.push(reached);
  else if (!job || job.made || ++job.tries >= TIME_MS.length) { finish(job?.made ?? null); return; }
  queue.push(queue.shift()!);
  next();
}
let warm = false;
function finish(tokens: Token[] | null) {
  clearTimeout(timer);
  const job = queue.shift();
  if (job) {
    known.set(job.text, tokens);
    if (known.size > KEPT) known.delete(known.keys().next().value!);
    job.done(tokens);
    // These texts were shown without some of their parts: they are tried again.
    if (tokens && job.skip.length) { queue.push(job); job.made = tokens; job.skip = []; job.tries = 1; }
  }
  next();
}
function begin() {
  const w = new Worker(scriptUrl(lexerUrl) as string, { type: "module" });
  warm = false;
  w.onmessage = ({ data: d }: MessageEvent<{ id: number; at?: number; tokens: Token[] | null }>) => { warm = true; if (queue[0]?.id === d.id) { if (d.at !== undefined) reached = d.at; else finish(d.tokens); } };
  w.onerror = () => { w.terminate(); if (worker === w) worker = null; finish(null); };
  return w;
}
function lex(text: string, done: (t: Token[] | null) => void): () => void {
  const job: Job = { id: ++last, text, tries: 0, skip: [], done };
  queue.push(job);
  if (queue.length === 1) next();
  return () => { job.done = () => {}; };
}

// Is there anything that Markdown would change? Runs of characters that stall every parser are left as they
// are.
const MARKS = /[`*_#>|~[\]]|^\s*([-+]|\d+[.)]) |https?:\/\/|\n\s*\n/m;
const worth = (text: string) => text.length <= TEXT_MOST && MARKS.test(text) && !/([*_`[\]>~#|-])\1{60}|(> ?){30}|\S{4000}/.test(text) && text.split(/\n\s*\n/).every((p) => p.length <= PARAGRAPH_MOST * 4);

// Reads texts before they are shown, for a limited time: rows that are inserted above the reader's place must
// have their height from the beginning.
export function prepare(texts: string[], ms: number): Promise<void> {
  const jobs = texts.filter((t) => worth(t) && !known.has(t)).map((t) => new Promise<void>((done) => { lex(t, () => done()); }));
  if (!jobs.length) return Promise.resolve();
  return Promise.race([Promise.all(jobs).then(() => {}), new Promise<void>((done) => { setTimeout(done, ms); })]);
}

// ---- nodes ----
const SAFE = /^(https?:|mailto:)/i;

function inline(tokens: Token[] | undefined, depth: number): ComponentChildren {
  if (!tokens) return null;
  return tokens.map((t, i) => inlineOne(t, i, depth));
}

// An item of a list of tasks.
const box = (t: Token, key: number) => <span key={key} class={`box${t.checked ? " checked" : ""}`} role="img" aria-label={t.checked ? "done" : "open"} />;

function inlineOne(t: Token, key: number, depth: number): ComponentChildren {
  if (depth > DEEPEST) return show(t.raw);
  switch (t.type) {
    case "strong": return <strong key={key}>{inline(t.tokens, depth + 1)}</strong>;
    case "em": return <em key={key}>{inline(t.tokens, depth + 1)}</em>;
    case "del": return <del key={key}>{inline(t.tokens, depth + 1)}</del>;
    case "codespan": return <code key={key}>{show(t.text ?? "")}</code>;
    case "br": return <br key={key} />;
    case "checkbox": return box(t, key);
    case "escape": return show(t.text ?? t.raw);
    case "link": {
      const href = t.href ?? "";
      if (!SAFE.test(href) || href.length > 2000) return show(t.raw);
      // The target is shown beside the link, unless the link's text is the target.
      const words = t.text ?? "";
      return <span key={key}><a href={href} rel="noopener noreferrer" target="_blank">{inline(t.tokens, depth + 1)}</a>{words !== href && !href.endsWith(words) && <span class="where"> ({show(cut(href.replace(/^https?:\/\//, ""), 60))})</span>}</span>;
    }
    case "text": return t.tokens ? <span key={key}>{inline(t.tokens, depth + 1)}</span> : show(t.raw);
    default: return show(t.raw); // images from other servers, HTML and everything else: as it is written
  }
}

function Code({ text, lang }: { text: string; lang: string }) {
  const copy = () => void navigator.clipboard?.writeText(text).then(() => toast("Copied."), () => toast("The clipboard is not available."));
  return <div class="code-block">
    <div class="code-head"><span>{show(cut(lang, 40))}</span><button type="button" class="copy-code" aria-label="Copy the code" onClick={copy}>Copy</button></div>
    <pre class="text code" tabIndex={0} aria-label="Code"><Long text={text} as={(s) => colours(s, lang)} /></pre>
  </div>;
}

function Table({ t, depth }: { t: Token; depth: number }) {
  const cell = (c: Cell, i: number, head: boolean) => {
    const style = { textAlign: (["left", "center", "right"].includes(t.align?.[i] ?? "") ? t.align![i] : "left") as "left" };
    return head ? <th key={i} scope="col" style={style}>{inline(c.tokens, depth + 1)}</th> : <td key={i} style={style}>{inline(c.tokens, depth + 1)}</td>;
  };
  return <div class="table-wrap" tabIndex={0} role="region" aria-label="Table"><table>
    <thead><tr>{(t.header ?? []).slice(0, 50).map((c, i) => cell(c, i, true))}</tr></thead>
    <tbody>{(t.rows ?? []).slice(0, 500).map((r, k) => <tr key={k}>{r.slice(0, 50).map((c, i) => cell(c, i, false))}</tr>)}</tbody>
  </table></div>;
}

function block(t: Token, key: number, depth: number): ComponentChildren {
  if (depth > DEEPEST) return <p key={key} dir="auto" class="para">{show(t.raw)}</p>;
  switch (t.type) {
    case "space": case "def": return t.type === "def" ? <p key={key} dir="auto" class="para">{show(t.raw.trimEnd())}</p> : null;
    case "heading": return <p key={key} dir="auto" class={`heading h-${t.depth}`} role="heading" aria-level={Math.min(6, 3 + (t.depth ?? 1))}>{inline(t.tokens, depth)}</p>;
    case "code": return <Code key={key} text={t.text ?? ""} lang={t.lang ?? ""} />;
    case "blockquote": return <blockquote key={key}>{blocks(t.tokens, depth + 1)}</blockquote>;
    case "hr": return <hr key={key} />;
    case "list": {
      const items = (t.items ?? []).map((i, k) => <li key={k} dir="auto" class={i.task ? "task" : undefined}>{blocks(i.tokens, depth + 1)}</li>);
      return t.ordered ? <ol key={key} start={typeof t.start === "number" ? t.start : 1}>{items}</ol> : <ul key={key}>{items}</ul>;
    }
    case "checkbox": return box(t, key);
    case "table": return <Table key={key} t={t} depth={depth} />;
    case "text": return <span key={key} dir="auto">{t.tokens ? inline(t.tokens, depth) : show(t.raw)}</span>;
    case "paragraph": return <p key={key} dir="auto" class="para">{inline(t.tokens, depth)}</p>;
    default: return <p key={key} dir="auto" class="para">{show(t.raw)}</p>;
  }
}
const blocks = (tokens: Token[] | undefined, depth: number): ComponentChildren => (tokens ?? []).map((t, i) => block(t, i, depth));

// Kerning makes the browser shape a word again for each line that it is broken into: for a word of 30,000
// letters that takes seconds.
export const kerning = (text: string) => (/\S{500}/.test(text) ? " unkerned" : "");

export function Prose({ text, live = false }: { text: string; live?: boolean }) {
  const rich = !live && worth(text);
  const [made, setMade] = useState<{ text: string; tokens: Token[] | null } | null>(() => (rich && known.has(text) ? { text, tokens: known.get(text)! } : null));
  useEffect(() => {
    if (!rich || made?.text === text) return;
    if (known.has(text)) { setMade({ text, tokens: known.get(text)! }); return; }
    return lex(text, (tokens) => setMade({ text, tokens }));
  }, [text, rich]);
  const tokens = rich && made?.text === text ? made.tokens : null;
  if (tokens) return <div class={`prose rich${kerning(text)}`}>{blocks(tokens, 0)}</div>;
  return <div class={`prose${kerning(text)}`} dir="auto"><Long text={text} most={30_000} as={(s) => <div class="para">{show(s)}</div>} /></div>;
}
