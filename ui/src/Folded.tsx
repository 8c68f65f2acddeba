// The JSON of an output, folded, of any size. One level is read at a time, by bytes: a large value
// is passed over as it streams by and nothing of it is kept; a small one is read whole.
import { useEffect, useState } from "preact/hooks";
import { comebacks } from "./api";
import { count, bytes } from "./format";
import { readJson } from "./json";
import type { Lines } from "./lines";
import { cut, show } from "./text";
import { again, Leaf, Tree } from "./Value";

const WHOLE = 64 * 1024; // bytes of a value that is read at once
const HEAD = 400; // bytes of a child that are kept while it passes
const STEP = 200; // children in one go

interface Child { key?: string; from: number; to: number; text: string } // text: its beginning
interface Level { kids: Child[]; next: number; open: string } // next: where to go on, 0 at the end

const decode = (b: number[]) => new TextDecoder().decode(Uint8Array.from(b));

// Up to STEP children of the value at [from, to); `at` is 0, or where an earlier look ended.
async function level(lines: Lines, from: number, to: number, at: number, open: string, stop: AbortSignal): Promise<Level> {
  const kids: Child[] = [];
  let pos = at || from, depth = at ? 1 : 0, inside = false, escaped = false, colon = -1, start = -1, end = -1;
  let head: number[] = [], key: number[] = [];
  const flush = () => {
    if (start >= 0) kids.push({ ...(open === "{" ? { key: JSON.parse(decode(key).trim()) as string } : {}), from: start, to: end, text: decode(head) });
    start = colon = -1;
    head = [];
    key = [];
  };
  for await (const piece of lines.range(pos, to, stop)) for (const c of piece) {
    const here = pos++;
    if (inside) { if (escaped) escaped = false; else if (c === 92) escaped = true; else if (c === 34) inside = false; }
    else if (c === 34) inside = true;
    else if (c === 123 || c === 91) { if (!depth++) { open = String.fromCharCode(c); continue; } }
    else if (c === 125 || c === 93) { if (!--depth) { flush(); return { kids, next: 0, open }; } }
    else if (depth === 1 && c === 44) { flush(); if (kids.length === STEP) return { kids, next: pos, open }; continue; }
    else if (depth === 1 && c === 58 && open === "{" && colon < 0) { colon = here; continue; }
    else if (c <= 32 && (start < 0 || depth === 1)) continue;
    if (!depth) throw new Error("this is not JSON");
    if (open === "{" && colon < 0) { if (key.length < WHOLE) key.push(c); continue; }
    if (start < 0) start = here;
    end = here + 1;
    if (head.length < HEAD) head.push(c);
  }
  throw new Error("the JSON ends too early");
}

function Kid({ lines, kid, words }: { lines: Lines; kid: Child; words: string }) {
  const [open, setOpen] = useState(false);
  const size = kid.to - kid.from;
  const value = size <= HEAD ? readJson(kid.text) : null;
  const name = kid.key === undefined ? null : <><span class="j-key">{show(cut(kid.key, 200))}</span>{words && <span class="j-again">{words}</span>}</>;
  if (value && value.t !== "array" && value.t !== "object") return <div class="j-leaf">{name}<Leaf value={value} /></div>;
  return <div class="j-node">
    <button type="button" class="j-toggle" aria-expanded={open} onClick={() => setOpen(!open)}><span class="caret" aria-hidden="true" />{name}<span class="j-size">{bytes(size)}</span>{!open && <span class="j-hint">{show(cut(kid.text, 90))}</span>}</button>
    {open && <div class="j-children"><Part lines={lines} from={kid.from} to={kid.to} /></div>}
  </div>;
}

function Part({ lines, from, to }: { lines: Lines; from: number; to: number }) {
  const [whole, setWhole] = useState<string | null>(null);
  const [got, setGot] = useState<Level>({ kids: [], next: 0, open: "" });
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(true);
  const look = async (stop: AbortSignal) => {
    setBusy(true);
    setProblem("");
    try {
      if (to - from <= WHOLE) { const all: number[] = []; for await (const p of lines.range(from, to, stop)) all.push(...p); setWhole(decode(all)); }
      else { const l = await level(lines, from, to, got.next, got.open, stop); setGot({ ...l, kids: [...got.kids, ...l.kids] }); }
    } catch (e) { if (!stop.aborted) setProblem((e as Error).message); }
    setBusy(false);
  };
  // Looked at again when the server is back.
  useEffect(() => { const a = new AbortController(); if (!whole && !got.kids.length) void look(a.signal); return () => a.abort(); }, [from, to, comebacks.value]);
  const value = whole === null ? null : readJson(whole);
  const words = again(got.kids.map((k) => k.key));
  return <>
    {value ? value.t === "array" || value.t === "object" ? <Tree value={value} /> : <Leaf value={value} /> : whole !== null && <p class="problem">This is not JSON.</p>}
    {got.kids.map((k, i) => <Kid key={k.from} lines={lines} kid={got.open === "[" ? { ...k, key: String(i) } : k} words={got.open === "[" ? "" : words[i]!} />)}
    {busy && <p class="quiet" role="status">reading…</p>}
    {problem && <p class="problem" role="alert">{problem}</p>}
    {got.next > 0 && !busy && <button type="button" class="more" onClick={() => void look(new AbortController().signal)}>More than {count(got.kids.length)}: go on</button>}
  </>;
}

export const FoldedJson = ({ lines }: { lines: Lines }) => <div class="tree folded-json" tabIndex={0} role="region" aria-label="The output as JSON"><Part lines={lines} from={0} to={lines.bytes.value} /></div>;
