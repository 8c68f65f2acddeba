// Numbers and times for people.
import { signal } from "@preact/signals";

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let i = -1;
  do { n /= 1000; i++; } while (n >= 999.5 && i < 3);
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export const count = (n: number) => n.toLocaleString("en-US");
export const plural = (n: number, word: string, many = `${word}s`) => `${count(n)} ${n === 1 ? word : many}`;
// 128 k, 18.2 M: the title should have the exact number.
export const short = (n: number) => (n < 1000 ? String(n) : n < 999_500 ? `${n < 9950 ? (n / 1000).toFixed(1) : Math.round(n / 1000)} k` : `${(n / 1e6).toFixed(n < 9.95e6 ? 1 : 0)} M`);
export const dollars = (n: number) => (n === 0 ? "$0" : n < 0.01 ? `$${n.toPrecision(2)}` : `$${n.toFixed(2)}`);

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  const h = Math.floor(s / 3600), d = Math.floor(h / 24);
  return !h ? `${Math.floor(s / 60)} min ${s % 60} s` : h < 100 ? `${h} h ${Math.floor((s % 3600) / 60)} min` : d < 1000 ? `${d} d ${h % 24} h` : d < 365e4 ? `${count(Math.round(d / 365))} y` : "> 9,999 y";
}

// Ticks while the page is visible, so that times stay correct.
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);
document.addEventListener("visibilitychange", () => { now.value = Date.now(); });

const sameDay = (a: Date, b: Date) => a.toDateString() === b.toDateString();
export function ago(when: string | number, at = now.value): string {
  const t = new Date(when);
  const s = (at - t.getTime()) / 1000;
  if (!Number.isFinite(s)) return "";
  if (s < 2) return "now";
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  const time = t.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (sameDay(t, new Date(at))) return time;
  if (sameDay(t, new Date(at - 86_400_000))) return "yesterday";
  return t.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...(t.getFullYear() === new Date(at).getFullYear() ? {} : { year: "numeric" }) });
}

export function clock(iso: string | number): string {
  const t = new Date(iso);
  if (Number.isNaN(t.getTime())) return "";
  const time = t.toLocaleTimeString("en-GB");
  return sameDay(t, new Date()) ? time : `${t.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })}, ${time}`;
}

export const utf8Size = (s: string) => {
  let n = s.length;
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c > 0x7f) n += c > 0x7ff && (c < 0xd800 || c > 0xdfff) ? 2 : 1;
  }
  return n;
};

// ---- cost ----
export type Prices = Record<string, { input?: number; output?: number; cached?: number }>;
export type Tokens = [number, number, number]; // in, out, cached
// In dollars; undefined: the model has no price.
export function cost(prices: Prices | undefined, model: string, [tin, tout, cached]: Tokens): number | undefined {
  const p = prices?.[model];
  if (!p) return undefined;
  return ((tin - cached) * (p.input ?? 0) + cached * (p.cached ?? p.input ?? 0) + tout * (p.output ?? 0)) / 1e6;
}
export function costOfAll(prices: Prices | undefined, models: { name: string; tokens: Tokens }[]): { sum: number; unpriced: string[] } {
  let sum = 0;
  const unpriced: string[] = [];
  for (const m of models) {
    if (!m.tokens[0] && !m.tokens[1]) continue;
    const c = cost(prices, m.name, m.tokens);
    if (c === undefined) unpriced.push(m.name); else sum += c;
  }
  return { sum, unpriced };
}
