// Search over everything: hits by conversation, each with a link to its line.
import { Bars, Problem, StateIcon } from "./icons";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { comebacks, get } from "./api";
import { ago, clock, count, plural } from "./format";
import { items, nameOf, worst } from "./list";
import { go, hrefOf, route, type Route } from "./route";
import { Strip } from "./Strip";
import { useRoving } from "./roving";
import { cut, redrawn, show } from "./text";

interface Hit { project: string; conversation: string; seq: number; id: string; role: string; at: string; tool?: string; tools?: string[]; error?: boolean; ref?: string; line: number; column?: number; before?: string; after?: string; snippet: string; matches: [number, number][]; more?: boolean; call?: string }
interface Answer { items: Hit[]; next_cursor?: string; missing: number; partial?: boolean | number }

const words = (q: string) => q.replace(/\S+:\S+/g, " ").replace(/[/"*-]/g, " ").trim().split(/\s+/)[0] ?? "";

function placeOf(h: Hit, q: string): Route {
  if (h.ref) return { view: "output", id: h.conversation, ref: h.ref, line: h.line, ...(h.column ? { column: h.column } : {}), ...(words(q) ? { query: words(q) } : {}) };
  return { view: "conversation", id: h.conversation, message: h.id, from: h.seq };
}

// Offsets count bytes.
function Snippet({ hit: h }: { hit: Hit }) {
  const raw = new TextEncoder().encode(h.snippet), text = new TextDecoder();
  const out: preact.ComponentChildren[] = [];
  let at = 0;
  for (const [a, b] of h.matches) {
    if (a < at || b > raw.length) continue;
    out.push(show(text.decode(raw.slice(at, a))), <mark>{show(text.decode(raw.slice(a, b)))}</mark>);
    at = b;
  }
  out.push(show(text.decode(raw.slice(at))));
  if (!h.ref) return <span class="hit-text">{out}</span>;
  // A match in an output is shown between the lines around it, each with its number.
  let n = h.line - 1;
  return <span class="hit-lines">{[h.before, out, h.after].map((x) => { n++; return x !== undefined && <><span class="no">{count(n - 1)}</span><span class="hit-text">{typeof x === "string" ? redrawn(x) : x}</span></>; })}</span>;
}

const toolsOf = (h: Hit) => h.tools ?? (h.tool ? [h.tool] : []);
const WHERE: Record<string, string> = { user: "You", assistant: "Assistant", tool: "Result", system: "System" };
const FACETS = [["", "Everything"], ["in:output", "Outputs"], ["role:user", "What I said"], ["role:assistant", "Replies and calls"], ["is:error", "Failures"]] as const;

export function SearchView() {
  const q = route.value.query ?? "";
  const answer = useSignal<{ q: string; hits: Hit[] } | null>(null);
  const found = answer.value?.q === q ? answer.value.hits : null; // hits of other words do not count
  const cursor = useSignal("");
  const missing = useSignal(0);
  const partial = useSignal(false);
  const problem = useSignal("");
  const busy = useSignal(false);
  const buttons = useRoving<HTMLDivElement>("button");
  const stop = useRef<AbortController | null>(null);
  const counted = useRef<{ bare: string; hits: Hit[]; more: boolean }>({ bare: "", hits: [], more: false });
  const look = async (more: boolean) => {
    stop.current?.abort();
    const s = stop.current = new AbortController();
    if (!q.trim()) { answer.value = { q, hits: [] }; return; }
    busy.value = true;
    problem.value = "";
    try {
      const a = await get<Answer>(`/api/search?q=${encodeURIComponent(q)}&limit=60${more && cursor.peek() ? `&cursor=${encodeURIComponent(cursor.peek())}` : ""}`, s.signal);
      answer.value = { q, hits: more ? [...(found ?? []), ...a.items] : a.items };
      cursor.value = a.next_cursor ?? "";
      missing.value = a.missing;
      partial.value = typeof a.partial === "number" && a.partial > 0;
    } catch (e) { if (!s.signal.aborted) problem.value = (e as Error).message; } finally { if (stop.current === s) busy.value = false; }
  };
  useEffect(() => { void look(false); return () => stop.current?.abort(); }, [q, comebacks.value]);
  const groups = new Map<string, Hit[]>();
  for (const h of found ?? []) groups.set(h.conversation, [...(groups.get(h.conversation) ?? []), h]);
  const facet = q.split(/\s+/).find((w) => FACETS.some(([f]) => f === w) || w.startsWith("tool:")) ?? "";
  const bare = q.split(/\s+/).filter((w) => w && w !== facet).join(" ");
  // How many hits each button would leave, of those that were found without a button.
  if (!facet && found && !busy.value) counted.current = { bare, hits: found, more: !!cursor.value };
  const all = counted.current.bare === bare ? counted.current.hits : [];
  const tools = [...all.reduce((m, h) => (toolsOf(h).forEach((t) => m.set(t, (m.get(t) ?? 0) + 1)), m), new Map<string, number>())].sort((a, b) => b[1] - a[1]).slice(0, 4);
  const facets: [string, string][] = [...FACETS.map(([f, w]) => [f, w] as [string, string]), ...tools.map(([t]): [string, string] => [`tool:${t}`, t])];
  const left = (f: string) => { const n = all.filter((h) => !f || (f === "in:output" ? h.ref : f === "is:error" ? h.error : f.startsWith("tool:") ? toolsOf(h).includes(f.slice(5)) : h.role === f.slice(5) && !h.ref)).length; return all.length ? ` ${count(n)}${counted.current.more ? "+" : ""}` : ""; };
  return <section class="search-view" aria-label="Search" tabIndex={0}>
    <h2 aria-live="polite">{!q.trim() ? "Search everything" : found ? groups.size ? `${count(found.length)}${cursor.value ? "+" : ""} ${found.length === 1 ? "place" : "places"} in ${plural(groups.size, "conversation")}` : "Nothing was found" : problem.value ? "Not searched" : "Searching…"}</h2>
    {!q.trim() && <p class="quiet">Words, "phrases", prefixes (wor*), -words that must not occur, /expressions/, and tool: model: role: after: before: conversation: is:error in:output.</p>}
    <div class="seg facets" ref={buttons} role="group" aria-label="Where">{facets.map(([f, w]) => <button key={f} type="button" aria-pressed={facet === f} onClick={() => go({ view: "search", id: "", query: `${bare} ${f}`.trim() }, true)}>{show(cut(w, 40))}<span class="quiet">{left(f)}</span></button>)}</div>
    {found && missing.value > 0 && <p class="note">{plural(missing.value, "conversation is", "conversations are")} still being read. What stands there is not in these results yet.</p>}
    {found && partial.value && <p class="note">Only the first and last 64 MiB of a large output are searched.</p>}
    <Problem of={problem} />
    {busy.value && !found && <Bars />}
    {[...groups].map(([id, hits]) => <Group key={id} id={id} hits={hits} q={q} bare={bare} />)}
    {found && cursor.value && <button type="button" class="more" disabled={busy.value} onClick={() => void look(true)}>More</button>}
  </section>;
}

function Group({ id, hits, q, bare }: { id: string; hits: Hit[]; q: string; bare: string }) {
  const item = items.value?.find((i) => i.id === id);
  return <section class="hit-group" aria-label={nameOf(id)}>
    <h3>{item && <StateIcon status={worst(item)} word />}<a href={hrefOf({ view: "conversation", id })}><bdi>{show(cut(nameOf(id), 120))}</bdi></a> <span class="quiet">{ago(hits[0]!.at)}</span>{item && <Strip of={item} />}
      {hits.length > 3 && !q.includes("conversation:") && <button type="button" class="more" onClick={() => go({ view: "search", id: "", query: `${bare} conversation:${id}` })}>{plural(hits.length, "place")}</button>}</h3>
    <ul>{hits.slice(0, q.includes("conversation:") ? 200 : 3).map((h, i) => <li key={i}><a class="hit-link" data-hit href={hrefOf(placeOf(h, q))}>
      <span class="hit-where"><b>{h.ref ? "Output" : WHERE[h.role] ?? h.role}</b>{h.tool && <code>{show(cut(h.tool, 60))}</code>}{h.error && <span class="bad">failed</span>}<span class="quiet">{h.ref ? `line ${count(h.line)}${h.more ? ", and more" : ""}` : clock(h.at)}</span></span>
      <Snippet hit={h} /></a></li>)}</ul>
  </section>;
}

// The field at the top of every view.
export function SearchBox() {
  const typed = useSignal(route.peek().view === "search" ? route.peek().query ?? "" : "");
  // This must happen before the next key is pressed: a later effect would overwrite what was typed meanwhile.
  useLayoutEffect(() => { typed.value = route.value.view === "search" ? route.value.query ?? "" : ""; }, [route.value.view, route.value.query]);
  return <form class="everywhere" role="search" aria-label="Everything" onSubmit={(e) => { e.preventDefault(); if (typed.peek().trim()) { go({ view: "search", id: "", query: typed.peek().trim() }); (document.activeElement as HTMLElement).blur(); } }}>
    <input id="everywhere" type="search" aria-label="Search everything" placeholder="Search everything" value={typed.value} onInput={(e) => { typed.value = e.currentTarget.value; }} onKeyDown={(e) => { if (e.key === "Escape") e.currentTarget.blur(); }} />
    <kbd class="wide-only">g /</kbd>
  </form>;
}
