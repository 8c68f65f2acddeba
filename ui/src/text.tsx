// Text from outside, shown as text: what would be invisible or would reorder its surroundings is
// made visible, and of colours only SGR is understood.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import Anser from "anser";
import { count, plural } from "./format";

// Controls, bidirectional marks, invisible letters, tags, halves of surrogate pairs.
const ODD = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]+/gu;

function nameOf(c: string): string {
  const n = c.codePointAt(0)!;
  if (n < 0x20) return String.fromCharCode(0x2400 + n);
  if (n === 0x7f) return "␡";
  return `U+${n.toString(16).toUpperCase().padStart(4, "0")}`;
}

function oddMark(run: string): ComponentChildren {
  const all = [...run];
  const shown = all.slice(0, 6).map(nameOf).join(" ");
  return <span class="odd">{shown}{all.length > 6 ? ` ×${count(all.length)}` : ""}</span>;
}

export function show(text: string): ComponentChildren {
  text = text.replace(/\r\n/g, "\n");
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const m of text.matchAll(ODD)) {
    if (m.index > at) out.push(text.slice(at, m.index));
    out.push(oddMark(m[0]));
    at = m.index + m[0].length;
  }
  if (!out.length) return text;
  if (at < text.length) out.push(text.slice(at));
  return out;
}

// One line, for attributes and headings: no marks, nothing odd.
export const plain = (text: string, most = 300) => text.slice(0, most * 2).replace(ODD, "�").replace(/\s+/g, " ").slice(0, most);

const classOf = (kind: string, name: string | null) => (name ? ` ${kind}-${name.replace(/^ansi-/, "")}` : "");
const rgb = (name: string | null, triple: string | null): string | undefined => {
  if (name === "ansi-truecolor" && triple && /^[\d, ]+$/.test(triple)) return `rgb(${triple})`;
  const n = /^ansi-palette-(\d+)$/.exec(name ?? "");
  if (!n) return undefined;
  const i = Number(n[1]);
  if (i > 231) return `rgb(${Array(3).fill(8 + (i - 232) * 10).join()})`;
  const k = i - 16, step = (v: number) => (v ? 55 + v * 40 : 0);
  return `rgb(${[step(Math.floor(k / 36)), step(Math.floor(k / 6) % 6), step(k % 6)].join()})`;
};

export function ansi(text: string): ComponentChildren {
  if (!text.includes("\x1b")) return show(text);
  const safe = text.replace(/\x1b(?!\[[0-9;:]{0,40}m)/g, "␛");
  return Anser.ansiToJson(safe, { json: true, use_classes: true, remove_empty: true }).map((c) => {
    const d = c.decorations as string[];
    const cls = `${classOf("fg", c.fg)}${classOf("bg", c.bg)}${d.map((x) => ` sgr-${x}`).join("")}`;
    const color = rgb(c.fg, c.fg_truecolor), background = rgb(c.bg, c.bg_truecolor);
    if (!cls) return show(c.content);
    const style: Record<string, string> = {};
    if (color) style.color = color;
    if (background) style.backgroundColor = background;
    return <span class={cls.trim()} style={style}>{show(c.content)}</span>;
  });
}

// As a terminal would have left it: of a line that was drawn over and over, the last that was drawn.
export function redrawn(text: string): ComponentChildren {
  const line = text.endsWith("\r") ? text.slice(0, -1) : text;
  if (!line.includes("\r")) return ansi(line);
  const drawn = line.split("\r").filter((x) => x !== "");
  const last = drawn.at(-1) ?? "";
  return <>{ansi(last)}{drawn.length > 1 && <span class="odd redraws">{plural(drawn.length - 1, "redraw")} folded into the last</span>}</>;
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
