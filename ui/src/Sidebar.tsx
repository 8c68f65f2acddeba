// The conversations: filter, open, rename, delete and restore. Everything below the filter is one stop of the
// Tab key: the arrow keys move through buttons, entries and links.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ask, send } from "./api";
import { approvals } from "./approvals";
import { ago, clock, count, plural } from "./format";
import { Glyph, StateIcon } from "./icons";
import { behind, counts, filter, items, MOST, more, only, problem, refreshList, shown, STEP, strangers, titleOf, worst, type Item } from "./list";
import { go, hrefOf, route } from "./route";
import { useRoving } from "./roving";
import { Strip } from "./Strip";
import { cut, plain, show } from "./text";
import { toast } from "./toast";

const day = (iso: string | undefined) => {
  const t = new Date(iso ?? ""), now = new Date();
  const days = Math.floor((new Date(now.toDateString()).getTime() - new Date(t.toDateString()).getTime()) / 86_400_000);
  return Number.isNaN(days) ? "" : days <= 0 ? "Today" : days === 1 ? "Yesterday" : days < 7 ? "This week" : t.toLocaleDateString("en-GB", { month: "long", year: "numeric" });
};

const CHIPS = [["", "All"], ["waiting", "Waiting"], ["running", "Running"], ["error", "Failed"]] as const;

export function Sidebar() {
  const timer = useRef(0);
  const list = items.value;
  const here = route.value.id;
  const box = useRoving<HTMLElement>(".sidebar-head a, .chips button, li > a, .list > .more, .sidebar-foot a", "li > a");
  const groups: [string, Item[]][] = [];
  for (const i of list ?? []) {
    const d = day(i.updatedAt ?? i.createdAt);
    if (groups.at(-1)?.[0] === d) groups.at(-1)![1].push(i); else groups.push([d, [i]]);
  }
  return <nav class="sidebar" aria-label="Conversations" ref={box}>
    <div class="sidebar-head">
      <input id="filter" type="search" aria-label="Filter conversations" placeholder="Filter: title, tool:, model:, after:" value={filter.value}
        onInput={(e) => {
          filter.value = e.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => { shown.value = STEP; void refreshList(); }, 180);
        }}
        onKeyDown={(e) => { if (e.key === "Escape") { filter.value = ""; void refreshList(); e.currentTarget.blur(); } if (e.key === "ArrowDown") { e.preventDefault(); box.current!.querySelector<HTMLElement>("li > a")?.focus(); } }} />
      <a class="button" href={hrefOf({ view: "new", id: "" })} data-act="new" aria-label="New conversation" title="New conversation"><Glyph name="plus" /></a>
    </div>
    <div class="chips" role="group" aria-label="Show only">{CHIPS.map(([k, words]) => <button key={k} type="button" aria-pressed={only.value === k} data-only={k || "all"} title={words}
      onClick={() => { only.value = k; shown.value = STEP; void refreshList(); }}>{k === "" ? words : <><StateIcon status={k} /><span class="hidden">{words}</span><Count of={k} /></>}</button>)}</div>
    {problem.value && <p class="problem" role="alert">{problem}</p>}
    <div class="list" tabIndex={-1}>
      {behind.value && <p class="edge" role="status">Catching up: this list may be out of date.</p>}
      {list && !list.length && !behind.value && <p class="edge">{strangers(filter.value).length ? <>Nothing has {show(strangers(filter.value).join(" "))} in its title. The filters are tool: model: after: before: is:</> : filter.value || only.value ? "Nothing matches." : <>No conversations yet. Start one with <b>+</b>, point an agent at this server, or run <code>steno import</code>.</>}</p>}
      {groups.map(([d, all]) => <div key={d}><p class="day">{d}</p><ul>{all.map((i) => <Entry key={i.id} item={i} current={i.id === here} />)}</ul></div>)}
      {more.value && list && (shown.value < MOST
        ? <button type="button" class="more" onClick={() => { shown.value = Math.min(MOST, shown.value + STEP); void refreshList(); }}>Show more</button>
        : <p class="edge">Filter to find older ones.</p>)}
    </div>
    <div class="sidebar-foot">
      <a href={hrefOf({ view: "usage", id: "" })} aria-current={route.value.view === "usage" ? "page" : undefined}><Glyph name="usage" />Usage</a>
      <a href={hrefOf({ view: "trash", id: "" })} aria-current={route.value.view === "trash" ? "page" : undefined}><Glyph name="trash" />Trash</a>
      <a href={hrefOf({ view: "settings", id: "" })} aria-current={route.value.view === "settings" ? "page" : undefined}><Glyph name="settings" />Settings</a>
    </div>
  </nav>;
}

function Count({ of: k }: { of: "waiting" | "running" | "error" }) {
  const n = k === "waiting" ? approvals.value.length : counts.value[k];
  return n ? <b>{count(n)}{k === "error" && counts.value.more}</b> : null;
}

const When = ({ at }: { at: string }) => <span title={`${clock(at)} (${at})`}>{ago(at)}</span>;

function Entry({ item: i, current }: { item: Item; current: boolean }) {
  const renaming = useSignal(false);
  const name = titleOf(i);
  return <li class={current ? "current" : ""} data-conversation={i.id}>
      {renaming.value ? <Rename item={i} done={() => { renaming.value = false; }} /> : <>
        <a href={hrefOf({ view: "conversation", id: i.id })} aria-current={current ? "page" : undefined}>
          <StateIcon status={worst(i)} word />
          <span class="entry-title"><bdi>{show(cut(name, 160))}</bdi></span>
          <span class="entry-facts">
            {i.project && i.project !== "default" && <span class="project">{show(cut(i.project, 40))}</span>}
            {i.state === "waiting" && <span class="waits">waits for you</span>}
            {!!i.failed && <span class="bad">{plural(i.failed, "failed", "failed")}</span>}
            {i.state !== "waiting" && <span>{i.calls ? plural(i.calls, "call") : plural(i.messages ?? 0, "message")}</span>}
            <When at={i.updatedAt ?? i.createdAt ?? ""} /></span>
          <Strip of={i} />
        </a>
        <span class="entry-acts">
          <button type="button" data-act="rename" tabIndex={-1} aria-label={`Rename ${plain(name, 60)}`} title="Rename" onClick={() => { renaming.value = true; }}>✎</button>
          <button type="button" data-act="delete" tabIndex={-1} aria-label={`Move ${plain(name, 60)} to the trash`} title="To the trash" onClick={() => void remove(i)}>✕</button>
        </span></>}
    </li>;
}

export function Rename({ item, done }: { item: { id: string; title?: string }; done: (title?: string) => void }) {
  const box = useRef<HTMLInputElement>(null);
  const typed = useSignal(item.title ?? "");
  useEffect(() => { box.current!.focus(); box.current!.select(); }, []);
  const keep = async () => {
    const title = typed.peek().trim();
    if (title === (item.title ?? "")) { done(); return; }
    try {
      await send("PATCH", `/api/chat-sessions/${encodeURIComponent(item.id)}`, { title: title || null });
      items.value = items.peek()?.map((x) => { if (x.id !== item.id) return x; const { title: _, ...rest } = x; return title ? { ...rest, title } : rest; }) ?? null;
      done(title);
    } catch (e) { toast(`Not renamed: ${(e as Error).message}`); done(); }
  };
  return <input ref={box} class="rename" aria-label="New title" value={typed.value} maxLength={300}
    onInput={(e) => { typed.value = e.currentTarget.value; }} onBlur={() => void keep()}
    onKeyDown={(e) => { e.stopPropagation(); if (e.key === "Escape") typed.value = item.title ?? ""; if (e.key === "Enter" || e.key === "Escape") e.currentTarget.blur(); }} />;
}

export async function remove(i: { id: string; title?: string; first?: string }) {
  const path = `/api/chat-sessions/${encodeURIComponent(i.id)}`;
  try { await ask(path, { method: "DELETE" }); } catch (e) { toast(`Not deleted: ${(e as Error).message}`); return; }
  items.value = items.peek()?.filter((x) => x.id !== i.id) ?? null;
  const was = route.peek();
  if (was.id === i.id) go({ view: "home", id: "" });
  toast(`“${plain(titleOf(i), 60)}” is in the trash.`, () => {
    void send("POST", `${path}/restore`).then(() => { void refreshList(); if (was.id === i.id) go(was); }, (e) => toast(`Not restored: ${(e as Error).message}`));
  });
}
