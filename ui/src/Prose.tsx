// What a model writes: paragraphs, code, headings, lists. A small part of Markdown, made of text
// nodes; links stay text.
import type { ComponentChildren } from "preact";
import { Long, show } from "./text";

function inline(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const m of text.matchAll(/`([^`\n]{1,400})`|\*\*([^*\n]{1,400})\*\*/g)) {
    if (m.index > at) out.push(show(text.slice(at, m.index)));
    out.push(m[1] !== undefined ? <code>{show(m[1])}</code> : <strong>{show(m[2]!)}</strong>);
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push(show(text.slice(at)));
  return out;
}

function lines(text: string): ComponentChildren[] {
  return text.split("\n").map((l, i, all) => {
    const end = i < all.length - 1 ? "\n" : "";
    const head = /^(#{1,6}) (.*)$/.exec(l);
    if (head) return <><strong class="heading">{inline(head[2]!)}</strong>{end}</>;
    const item = /^(\s*)[-*] (.*)$/.exec(l);
    if (item) return <>{item[1]}{"• "}{inline(item[2]!)}{end}</>;
    return <>{inline(l)}{end}</>;
  });
}

function render(text: string): ComponentChildren {
  const parts = text.split(/^```([^\n`]*)$\n?/m);
  return parts.map((p, i) => {
    // text, info, code, info, text, ...: fences come in pairs, the last may be open
    const phase = i % 4;
    if (phase === 0) return p.trim() ? <div key={i} class="para">{lines(p.replace(/\n+$/, ""))}</div> : null;
    if (phase === 2) return <pre key={i} class="text code" tabIndex={0} aria-label="Code">{show(p.replace(/\n$/, ""))}</pre>;
    return null;
  });
}

// Kerning makes the browser shape a word again for each line it is broken into: with a word of
// 30,000 letters that takes seconds.
export const kerning = (text: string) => (/\S{500}/.test(text) ? " unkerned" : "");

export const Prose = ({ text }: { text: string }) => <div class={`prose${kerning(text)}`} dir="auto"><Long text={text} most={30_000} as={render} /></div>;
