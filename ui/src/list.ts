// The conversations as the list knows them.
import { signal } from "@preact/signals";
import { comebacks, connection, get } from "./api";
import { watch } from "./live";
import type { Failure } from "./errors";
import { clock, type Tokens } from "./format";

export interface Item {
  id: string; project?: string; title?: string; first?: string; createdAt?: string; updatedAt?: string; messages?: number; bytes?: number;
  state?: "idle" | "running" | "waiting"; calls?: number; failed?: number; tokens?: Tokens; whole?: boolean; tape?: string; lastFailure?: Failure; doing?: { k: string; name?: string; since: number | string };
}
interface List { items: Item[]; next_cursor?: string; catching_up?: boolean }

export const STEP = 60;
export const MOST = 300;
export const items = signal<Item[] | null>(null);
export const more = signal(false);
// After a start of the machine: the list may be out of date.
export const behind = signal(false);
export const shown = signal(STEP);
export const filter = signal("");
export const only = signal<"" | "error" | "running" | "waiting">("");
export const problem = signal("");
// How many of the listed conversations run, and how many have failed; 0 if a narrowed list cannot tell.
export const counts = signal<{ running: number; error: number; more: string }>({ running: 0, error: 0, more: "" });

// tool:, model:, after:, before: and is: narrow the list; all other words are searched for in titles.
export function queryOf(words: string): URLSearchParams {
  const q = new URLSearchParams();
  const rest: string[] = [];
  for (const w of words.trim().split(/\s+/)) {
    const m = /^(tool|model|after|before|is):(.+)$/.exec(w);
    if (m) q.set(m[1]!, m[2]!); else if (w) rest.push(w);
  }
  if (rest.length) q.set("q", rest.join(" "));
  return q;
}

// Words that look like a filter but are none.
export const strangers = (words: string) => words.match(/(^|\s)(?!(tool|model|after|before|is):)[a-z]+:\S/g)?.map((w) => w.trim().slice(0, -1)) ?? [];

let asked = 0;
export async function refreshList() {
  const mine = ++asked;
  const q = queryOf(filter.peek());
  if (only.peek()) q.set("is", only.peek());
  q.set("figures", "1");
  const most = shown.peek();
  try {
    const got: Item[] = [];
    let cursor: string | undefined, late = false;
    do {
      q.set("limit", String(Math.min(60, most - got.length)));
      if (cursor) q.set("cursor", cursor);
      const list: List = await get<List>(`/api/chat-sessions?${q}`);
      if (mine !== asked) return;
      got.push(...list.items);
      cursor = list.next_cursor;
      late ||= !!list.catching_up;
      // The conversations that are already known are shown while the others are being searched for.
      if (cursor && got.length && got.length < most && !items.peek()) items.value = got.slice();
    } while (cursor && got.length < most);
    if (JSON.stringify(got) !== JSON.stringify(items.peek())) {
      items.value = got;
      // A long conversation is summed up part by part.
      if (got.some((i) => i.whole === false)) setTimeout(listSoon, 1000);
    }
    more.value = !!cursor;
    const is = only.peek(), of = (k: string, f: (i: Item) => unknown) => (!is || is === k ? got.filter(f).length : 0);
    counts.value = { running: of("running", (i) => i.state === "running"), error: of("error", (i) => i.failed), more: cursor ? "+" : "" };
    behind.value = late;
    if (late) setTimeout(listSoon, 500);
    problem.value = "";
  } catch (e) { if (mine === asked && connection.peek() === "live") problem.value = (e as Error).message; }
}

let due = 0, dirty = false;
export function listSoon() {
  if (document.hidden) { dirty = true; return; }
  if (!due) due = window.setTimeout(() => { due = 0; void refreshList(); }, 120);
}

export function startList() {
  let seen = -1;
  comebacks.subscribe((n) => { if (n !== seen) { seen = n; void refreshList(); } });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && dirty) { dirty = false; listSoon(); } });
  watch("list", 0, listSoon);
  watch("approvals", 0, listSoon);
}

// The title, or the first words of the user, or, where there are none, the time when it began.
const says = (s: string | undefined): s is string => typeof s === "string" && /[^\s\p{C}]/u.test(s);
export const titleOf = (i: { title?: string; first?: string; createdAt?: string }) =>
  (says(i.title) ? i.title : says(i.first) ? cutWords(i.first) : `Untitled${i.createdAt ? `, ${clock(i.createdAt)}` : ""}`);
const cutWords = (s: string) => { const t = [...s.trim().replace(/\s+/g, " ")]; return t.length > 60 ? `${t.slice(0, 60).join("").trimEnd()}…` : t.join(""); };

export const worst = (i: Item) => (i.state === "waiting" ? "waiting" : i.state === "running" ? "running" : i.failed ? "error" : "done");

// The same for any conversation: one that is not in the list is requested once.
const names = signal(new Map<string, string>());
export function nameOf(id: string): string {
  const i = items.value?.find((x) => x.id === id);
  // It keeps its name when it leaves the list, for example for the trash.
  if (i) { const title = titleOf(i); names.peek().set(id, title); return title; }
  const known = names.value.get(id);
  if (known === undefined) { names.peek().set(id, "…"); void learn(id); }
  return known ?? "…";
}
async function learn(id: string) {
  const path = `/api/chat-sessions/${encodeURIComponent(id)}`;
  let name = id;
  try {
    const i = await get<Item>(path);
    name = titleOf(says(i.title) ? i : { ...i, ...await get<{ first?: string }>(`${path}/errors?limit=1`) });
  } catch { /* not there: its id */ }
  names.value = new Map(names.peek()).set(id, name);
}
