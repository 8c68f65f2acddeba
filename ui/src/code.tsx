// Light colours for code: comments, strings, numbers and the words that most languages share.
import type { ComponentChildren } from "preact";
import { show } from "./text";

const WORDS = new Set(("abstract as async await bool boolean break case catch char class const continue def default defer del do double elif else end enum export extends extern false final finally float fn for foreach from func function go if impl implements import in include int interface is lambda let long match mod module mut namespace new nil None not null of or and override package pass private protected pub public raise ref require return self short signed sizeof static string struct super switch template then this throw throws trait true True False try type typedef typeof union unsigned use using val var virtual void volatile when where while with yield").split(" "));
const HASH = /^(sh|bash|zsh|python|py|rb|ruby|yaml|yml|toml|make|makefile|perl|r|dockerfile|ini|conf)$/i;
const NONE = /^(text|txt|plain|log|console|diff|patch|)$/i;

export function colours(text: string, lang: string): ComponentChildren {
  if (NONE.test(lang) || text.length > 60_000) return show(text);
  const comment = HASH.test(lang) ? "#[^\\n]*" : "\\/\\/[^\\n]*|\\/\\*[^]{0,4000}?\\*\\/|--[ ][^\\n]*";
  const token = new RegExp(`(${comment})|("(?:[^"\\\\\\n]|\\\\.){0,2000}"|'(?:[^'\\\\\\n]|\\\\.){0,2000}'|\`[^\`]{0,2000}\`)|(\\b\\d[\\w.]*\\b)|([A-Za-z_]\\w*)`, "g");
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const m of text.matchAll(token)) {
    const kind = m[1] !== undefined ? "comment" : m[2] !== undefined ? "string" : m[3] !== undefined ? "number" : WORDS.has(m[4]!) ? "word" : "";
    if (!kind) continue;
    if (m.index > at) out.push(show(text.slice(at, m.index)));
    out.push(<span class={`t-${kind}`}>{show(m[0])}</span>);
    at = m.index + m[0].length;
    if (out.length > 6000) break;
  }
  out.push(show(text.slice(at)));
  return out;
}
