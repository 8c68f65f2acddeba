// Text from outside, shown as text: characters that would be invisible or would reorder the text around them
// are made visible, and of escape sequences only SGR colours are applied.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { count, plural } from "./format";

// Controls, bidirectional marks, invisible letters, tags, halves of surrogate pairs.
const ODD = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}\p{Cs}]+/gu;

// The same, and blanks that could hide what follows them: long runs, and blanks other than the space; also
// characters that some languages and pictures need, but that a call which needs permission does not.
const BLANKS = new RegExp(`${ODD.source}| {9,}|[\\t\\xa0\\u1680\\u180b-\\u180f\\u2000-\\u200a\\u200c\\u200d\\u202f\\u205f\\u2800\\u3000\\ufe00-\\ufe0f\\u{13430}-\\u{1343f}\\u{16fe4}\\u{1d159}\\u{e0100}-\\u{e01ef}]+`, "gu");

function nameOf(c: string): string {
  const n = c.codePointAt(0)!;
  if (n < 0x20) return String.fromCharCode(0x2400 + n);
  if (n === 0x7f) return "␡";
  if (n === 0xa0) return "NBSP";
  return `U+${n.toString(16).toUpperCase().padStart(4, "0")}`;
}

export type Paint = (text: string) => ComponentChildren;

function oddMark(run: string): ComponentChildren {
  if (run[0] === " ") return <span class="odd">{count(run.length)} blanks</span>;
  const all = [...run];
  const shown = all.slice(0, 6).map(nameOf).join(" ");
  return <span class="odd">{shown}{all.length > 6 ? ` ×${count(all.length)}` : ""}</span>;
}

export function show(text: string, odd = ODD): ComponentChildren {
  text = text.replace(/\r\n/g, "\n");
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const m of text.matchAll(odd)) {
    if (m.index > at) out.push(text.slice(at, m.index));
    out.push(oddMark(m[0]));
    at = m.index + m[0].length;
  }
  if (!out.length) return text;
  if (at < text.length) out.push(text.slice(at));
  return out;
}

export const exact = (text: string) => show(text, BLANKS);

// One line, for attributes and headings: without marks and odd characters.
export const plain = (text: string, most = 300) => text.slice(0, most * 2).replace(ODD, "�").replace(/\s+/g, " ").slice(0, most);

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const MARKS: Record<number, string> = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strikethrough" };

// One of the 256 colours: by name where the theme has one, otherwise its exact value.
function paletteOf(i = 0): string {
  if (i < 16) return (i > 7 ? "bright-" : "") + COLOURS[i % 8];
  if (i > 231) return `rgb(${Array(3).fill(8 + (i - 232) * 10)})`;
  return `rgb(${[36, 6, 1].map((d) => { const v = Math.floor((i - 16) / d) % 6; return v && 55 + v * 40; })})`;
}

// 38:5:n and 38:2::r:g:b are other spellings of 38;5;n and 38;2;r;g;b.
const codesOf = (s: string) => s.split(";").flatMap((p) => {
  const all = p.split(":");
  if (all.length === 6) all.splice(2, 1);
  return (/^[34]8:/.test(p) ? all : [all[0]]).map(Number);
});

const SGR = /\x1b\[([\d;:]{0,40})m/g;
// Other sequences: those that erase the rest of a line, and modes, show nothing.
const CSI = /(\x1b\[[\d;?]{0,20}[@-ln-~])/;
const LINK = /\x1b\]8;[^\x07\x1b]*(\x07|\x1b\\)/g;

// The colours and styles that are on. They continue on the next lines.
export class Pen {
  private on = new Set<string | undefined>();
  private colour = ["", ""]; // of the letters, and behind them
  take(sequence: string) {
    const { on, colour } = this, codes = codesOf(sequence);
    for (let k = 0; k < codes.length; k++) {
      const c = codes[k]!, digit = c % 10, ten = (c - digit) / 10;
      if (!c) { on.clear(); colour.fill(""); }
      else if (c < 10) on.add(MARKS[c]);
      else if (ten === 2) { on.delete(MARKS[digit]); if (digit === 2) on.delete("bold"); }
      else if (ten === 3 || ten === 4 || ten === 9 || ten === 10) {
        const rgb = codes[k + 1] === 2;
        colour[Number(ten === 4 || ten === 10)] = digit < 8 ? (ten > 8 ? "bright-" : "") + COLOURS[digit]
          : digit > 8 ? "" : rgb ? `rgb(${codes.slice(k + 2, k + 5)})` : paletteOf(codes[k + 2]);
        if (digit === 8) k += rgb ? 4 : 2;
      }
    }
  }
  // Text that is not shown.
  pass(text: string) { for (const m of text.matchAll(SGR)) this.take(m[1]!); }
  draw(shown: ComponentChildren): ComponentChildren {
    const marks = [...this.on].filter((x) => x).map((m) => `sgr-${m}`);
    const [color, backgroundColor] = this.colour.map((c, k) => {
      if (c.startsWith("rgb")) return c;
      if (c) marks.push(`${k ? "bg" : "fg"}-${c}`);
      return undefined;
    });
    return !marks.length && !color && !backgroundColor ? shown : <span class={marks.join(" ")} style={{ color, backgroundColor }}>{shown}</span>;
  }
}

// What is written after a backspace replaces the letter before it.
function overwritten(text: string): string {
  const out: string[] = [];
  let at = 0;
  for (const c of text) if (c === "\b") at = Math.max(0, at - 1); else out[at++] = c;
  return out.join("");
}

function piece(text: string, put: Paint): ComponentChildren {
  if (text.includes("\b")) text = overwritten(text);
  return !text.includes("\x1b[") ? put(text) : text.split(CSI).map((t, i) => (i % 2 === 0 ? t && put(t) : /[Khl]$/.test(t) ? null : <span class="odd">{/J$/.test(t) ? "screen cleared" : `␛${t.slice(1)}`}</span>));
}

export function ansi(text: string, put: Paint = show, pen = new Pen()): ComponentChildren {
  return text.replace(LINK, "").split(SGR).map((t, i) => (i % 2 ? pen.take(t) : t && pen.draw(piece(t, put))) ?? null);
}

// As a terminal would have left it: for a line that was drawn again and again, the last state.
export function redrawn(text: string, put: Paint = show, pen = new Pen()): ComponentChildren {
  if (!text.includes("\r")) return ansi(text, put, pen);
  const drawn = text.split("\r").filter((x) => x.replace(CSI, ""));
  const last = drawn.pop() ?? "";
  pen.pass(drawn.join(""));
  return <>{ansi(last, put, pen)}{drawn.length > 0 && <span class="odd redraws">{plural(drawn.length, "redraw")} folded into the last</span>}</>;
}
// The part of a line that stays visible.
export const lastDrawn = (text: string) => text.slice(text.lastIndexOf("\r", text.length - 2) + 1);
export function terminal(text: string): ComponentChildren {
  const pen = new Pen();
  return text.split("\n").map((l, i) => <>{i ? "\n" : ""}{redrawn(l, show, pen)}</>);
}

// Cuts between characters.
export function cut(text: string, n: number): string {
  if (text.length <= n) return text;
  const c = text.charCodeAt(n - 1);
  return text.slice(0, c >= 0xd800 && c < 0xdc00 ? n - 1 : n);
}

// The beginning of a long text, and more on request, so that no text can stall the page.
export function Long({ text, most = 12_000, as = show }: { text: string; most?: number; as?: (t: string) => ComponentChildren }) {
  const [shown, setShown] = useState(most);
  if (text.length <= shown) return <>{as(text)}</>;
  return <>
    {as(cut(text, shown))}
    <button type="button" class="more" onClick={() => setShown(shown + 60_000)}>
      … {count(text.length - shown)} more characters
    </button>
  </>;
}
