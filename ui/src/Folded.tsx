// The JSON of an output as a tree, of any size. The server returns one level at a time; a small value is read
// whole, and a long string as far as the reader wants.
import { useEffect, useState } from "preact/hooks";
import { comebacks } from "./api";
import { count, bytes } from "./format";
import { readJson } from "./json";
import type { Child, Lines } from "./lines";
import { cut, Long, show } from "./text";
import { again, Leaf, Tree } from "./Value";

const WHOLE = 64 * 1024; // bytes of a value that are read at once

const holds = (type?: string) => type === "object" || type === "array";

function Kid({ lines, kid, name, words }: { lines: Lines; kid: Child; name: string; words: string }) {
  const [open, setOpen] = useState(false);
  const value = holds(kid.type) ? null : readJson(kid.content);
  const label = <><span class="j-key">{show(cut(name, 200))}</span>{words && <span class="j-again">{words}</span>}</>;
  if (value) return <div class="j-leaf">{label}<Leaf value={value} /></div>;
  return <div class="j-node">
    <button type="button" class="j-toggle" aria-expanded={open} onClick={() => setOpen(!open)}><span class="caret" aria-hidden="true" />{label}<span class="j-size">{bytes(kid.bytes)}</span>{!open && <span class="j-hint">{show(cut(kid.content, 90))}</span>}</button>
    {open && <div class="j-children"><Part lines={lines} at={kid.offset} size={kid.bytes} type={kid.type} /></div>}
  </div>;
}

function Part({ lines, at, size, type }: { lines: Lines; at: number; size: number; type?: string }) {
  const [text, setText] = useState("");
  const [read, setRead] = useState(0); // bytes of the text
  const [kids, setKids] = useState<Child[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [list, setList] = useState(false);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(true);
  const byLevel = size > WHOLE && (!type || holds(type));
  const look = async (stop: AbortSignal) => {
    setBusy(true);
    setProblem("");
    try {
      if (byLevel) {
        const l = await lines.level(at, cursor, stop);
        setList(l.type === "array");
        setKids([...kids, ...l.items]);
        setCursor(l.next_cursor);
      } else {
        const end = Math.min(size, read * 2 || WHOLE), decoder = new TextDecoder();
        let more = "";
        for await (const p of lines.range(at, at + end, stop)) more += decoder.decode(p, { stream: true });
        setText(more);
        setRead(end);
      }
    } catch (e) { if (!stop.aborted) setProblem((e as Error).message); }
    setBusy(false);
  };
  // Read again when the server is back.
  useEffect(() => { const a = new AbortController(); if (!text && !kids.length) void look(a.signal); return () => a.abort(); }, [at, size, comebacks.value]);
  const value = read === size ? readJson(text) : null;
  const words = again(kids.map((k) => list ? undefined : k.key));
  const more = cursor ? `More than ${count(kids.length)}` : text && read < size ? `${bytes(read)} of ${bytes(size)}` : "";
  return <>
    {value ? holds(value.t) ? <Tree value={value} /> : <Leaf value={value} most={read} /> : text && (type ? <span class="j-string"><Long text={text} most={read} /></span> : <p class="problem">This is not JSON.</p>)}
    {kids.map((k, i) => <Kid key={k.offset} lines={lines} kid={k} name={list ? String(i) : k.key ?? k.key_content ?? ""} words={list ? "" : words[i]!} />)}
    {busy && <p class="quiet" role="status">reading…</p>}
    {problem && <p class="problem" role="alert">{problem}</p>}
    {more && !busy && <button type="button" class="more" onClick={() => void look(new AbortController().signal)}>{more}: go on</button>}
  </>;
}

export const FoldedJson = ({ lines }: { lines: Lines }) => <div class="tree folded-json" tabIndex={0} role="region" aria-label="The output as JSON"><Part lines={lines} at={0} size={lines.bytes.value} /></div>;
