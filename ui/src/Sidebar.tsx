// The conversations: filter, open, rename, delete and take back.
import { useEffect, useRef } from "preact/hooks";
import { signal, useSignal } from "@preact/signals";
import { ask, comebacks, connection, get, send, sleep } from "./api";
import { ago, bytes, plural } from "./format";
import { go, hrefOf, route } from "./route";
import { cut, plain, show } from "./text";
import { toast } from "./toast";

export interface Item { id: string; project?: string; title?: string; createdAt?: string; updatedAt?: string; messages?: number; bytes?: number }
interface List { items: Item[]; next_cursor?: string }

const STEP = 60;
const MOST = 300;
const items = signal<Item[] | null>(null);
const more = signal(false);
const shown = signal(STEP);
export const filter = signal("");
const problem = signal("");

export async function refreshList() {
  const q = filter.peek().trim();
  try {
    const list = await get<List>(`/api/chat-sessions?limit=${shown.peek()}${q ? `&q=${encodeURIComponent(q)}` : ""}`);
    if (q !== filter.peek().trim()) return;
    if (JSON.stringify(list.items) !== JSON.stringify(items.peek())) items.value = list.items;
    more.value = !!list.next_cursor || list.items.length >= shown.peek();
    problem.value = "";
  } catch (e) { if (connection.peek() === "live") problem.value = (e as Error).message; }
}

export function startList() {
  let seen = -1;
  comebacks.subscribe((n) => { if (n !== seen) { seen = n; void refreshList(); } });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) void refreshList(); });
  void (async () => {
    for (;;) {
      await sleep(2500);
      if (!document.hidden && connection.peek() === "live") await refreshList();
    }
  })();
}

export const titleOf = (i: { title?: string; id: string }) => (typeof i.title === "string" && i.title.trim() ? i.title : i.id);

export function Sidebar() {
  const timer = useRef(0);
  const list = items.value;
  const here = route.value.id;
  return <nav class="sidebar" aria-label="Conversations">
    <div class="sidebar-head">
    <input id="filter" type="search" aria-label="Filter conversations" placeholder="Filter…" value={filter.value}
      onInput={(e) => {
        filter.value = e.currentTarget.value;
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => { shown.value = STEP; void refreshList(); }, 180);
      }}
      onKeyDown={(e) => { if (e.key === "Escape") { filter.value = ""; void refreshList(); e.currentTarget.blur(); } }} />
      <a class="button" href={hrefOf({ view: "home", id: "" })} data-act="new">New</a>
    </div>
    {problem.value && <p class="problem" role="alert">{problem}</p>}
    <div class="list" tabIndex={0} role="region" aria-label="List of conversations">
      {list && !list.length && <p class="edge">{filter.value ? "Nothing matches." : "No conversations yet."}</p>}
      <ul>{list?.map((i) => <Entry key={i.id} item={i} current={i.id === here} />)}</ul>
      {more.value && list && list.length >= STEP && (shown.value < MOST
        ? <button type="button" class="more" onClick={() => { shown.value = Math.min(MOST, shown.value + STEP); void refreshList(); }}>Show more</button>
        : <p class="edge">Filter to find older ones.</p>)}
    </div>
    <div class="sidebar-foot"><a href={hrefOf({ view: "stats", id: "" })} aria-current={route.value.view === "stats" ? "page" : undefined}>Stats</a></div>
  </nav>;
}

function Entry({ item: i, current }: { item: Item; current: boolean }) {
  const renaming = useSignal(false);
  const name = titleOf(i);
  const fresh = i.updatedAt && Date.now() - Date.parse(i.updatedAt) < 8000;
  return <li class={current ? "current" : ""} data-conversation={i.id}>
    {renaming.value ? <Rename item={i} done={() => { renaming.value = false; }} /> : <>
      <a href={hrefOf({ view: "conversation", id: i.id })} aria-current={current ? "page" : undefined}>
        <span class="entry-title">{fresh && <span class="pulse" role="img" aria-label="active now" />}<bdi>{show(cut(name, 160))}</bdi></span>
        <span class="entry-facts"><span>{ago(i.updatedAt ?? i.createdAt ?? "")}</span><span>{plural(i.messages ?? 0, "msg")}</span><span>{bytes(i.bytes ?? 0)}</span>
          {i.project && i.project !== "default" && <span class="project">{show(cut(i.project, 40))}</span>}</span>
      </a>
      <span class="entry-acts">
        <button type="button" data-act="rename" aria-label={`Rename ${plain(name, 60)}`} title="Rename" onClick={() => { renaming.value = true; }}>✎</button>
        <button type="button" data-act="delete" aria-label={`Delete ${plain(name, 60)}`} title="Delete" onClick={() => void remove(i)}>✕</button>
      </span></>}
  </li>;
}

function Rename({ item, done }: { item: Item; done: () => void }) {
  const box = useRef<HTMLInputElement>(null);
  const typed = useSignal(item.title ?? "");
  useEffect(() => { box.current!.focus(); box.current!.select(); }, []);
  const keep = async () => {
    const title = typed.peek().trim();
    done();
    if (title === (item.title ?? "")) return;
    try {
      await send("PATCH", `/api/chat-sessions/${encodeURIComponent(item.id)}`, { title: title || null });
      items.value = items.peek()?.map((x) => { if (x.id !== item.id) return x; const { title: _, ...rest } = x; return title ? { ...rest, title } : rest; }) ?? null;
    } catch (e) { toast(`Not renamed: ${(e as Error).message}`); }
  };
  return <input ref={box} class="rename" aria-label="New title" value={typed.value} maxLength={300}
    onInput={(e) => { typed.value = e.currentTarget.value; }} onBlur={() => void keep()}
    onKeyDown={(e) => { if (e.key === "Escape") typed.value = item.title ?? ""; if (e.key === "Enter" || e.key === "Escape") e.currentTarget.blur(); }} />;
}

async function remove(i: Item) {
  const path = `/api/chat-sessions/${encodeURIComponent(i.id)}`;
  try { await ask(path, { method: "DELETE" }); } catch (e) { toast(`Not deleted: ${(e as Error).message}`); return; }
  items.value = items.peek()?.filter((x) => x.id !== i.id) ?? null;
  const was = route.peek();
  if (was.id === i.id) go({ view: "home", id: "" });
  toast(`“${plain(titleOf(i), 60)}” was deleted.`, () => {
    void send("POST", `${path}/restore`).then(() => { void refreshList(); if (was.id === i.id) go(was); }, (e) => toast(`Not restored: ${(e as Error).message}`));
  });
}
