// The page: a list on the left; a conversation, an output, or one of the other views on the right.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { effect, useSignal } from "@preact/signals";
import { ask, comebacks, connection, heardAt, send, startConnection } from "./api";
import { approvals, startApprovals } from "./approvals";
import { startOutbox } from "./outbox";
import { Composer } from "./Composer";
import { Conversation } from "./conversation";
import { clock, count, now, plural } from "./format";
import { HomeView } from "./Home";
import { Glyph, StateIcon } from "./icons";
import { Help, helpOpen, startKeys } from "./keys";
import { items, nameOf, startList } from "./list";
import { startLive } from "./live";
import { Missing, named } from "./Missing";
import { Output } from "./Output";
import { pane, theme, THEMES } from "./prefs";
import { useRoving } from "./roving";
import { currentToken, go, hrefOf, placeHere, route, sharedLink, startRouting, useToken } from "./route";
import { SearchBox, SearchView } from "./Search";
import { Settings } from "./Settings";
import { remove, Rename, Sidebar } from "./Sidebar";
import { cut, plain, show } from "./text";
import { Vitals, Waterfall } from "./Timeline";
import { copied, LINKED, Toast, toast } from "./toast";
import { Transcript } from "./Transcript";
import { TrashView } from "./Trash";
import { Tray, TrayButton } from "./Tray";
import { Usage } from "./Usage";
import "./style.css";

// ---- the title of the tab: how many calls wait, and what is shown ----
effect(() => {
  const n = approvals.value.length;
  document.title = `${n ? `(${n}) ` : ""}${named.value ? `${named.value} · Steno` : "Steno"}`;
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  const dot = n ? "<circle cx='12' cy='4' r='4' fill='%23c77700'/>" : "";
  if (icon) icon.href = `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect x='1' y='2' width='14' height='12' rx='3' fill='%232f50b5'/><path d='M4 6h5M4 10h8' stroke='white' stroke-width='1.6'/>${dot}</svg>`;
});

function State() {
  const c = connection.value;
  const away = c === "lost" ? Math.max(0, Math.round((now.value - heardAt.value) / 1000)) : 0;
  const words = { live: "Connected", lost: `Not connected${away >= 3 ? ` for ${away} s` : ""}. What you see is from ${clock(heardAt.value)}.`, refused: "Token not accepted" }[c];
  return <span class={`state state-${c}`} id="connection" role="status" data-state={c}><span class="dot" aria-hidden="true" /><span>{words}</span></span>;
}

function SignIn() {
  return <section class="welcome" aria-label="Token">
    <h2>{connection.value === "refused" ? "This token is not accepted" : "A token is needed"}</h2>
    <p>Open the address that <code>steno serve</code> printed, or paste it here. The token stays in this page's address and is never stored.</p>
    <form class="composer-row" onSubmit={(e) => {
      e.preventDefault();
      useToken(String(new FormData(e.currentTarget).get("token") ?? ""));
      location.reload();
    }}>
      <input id="token" name="token" type="password" autocomplete="off" aria-label="Token" placeholder="sk-ac-…" />
      <button class="primary">Open</button>
    </form>
  </section>;
}

// ---- a conversation ----
function Menu({ conversation: c, rename }: { conversation: Conversation; rename: () => void }) {
  const open = useSignal(false);
  const path = `/api/chat-sessions/${encodeURIComponent(c.id)}`;
  const fork = async () => {
    try { const made = await send<{ id: string }>("POST", `${path}/fork`, {}); toast("This is the fork; the other conversation stays as it is."); go({ view: "conversation", id: made.id }); }
    catch (e) { toast(`Not forked: ${(e as Error).message}`); }
  };
  const take = async (format: string, name: string) => {
    try {
      const blob = await (await ask(`${path}/export?format=${format}`)).blob();
      const url = URL.createObjectURL(blob);
      const a = document.createElement("a");
      a.href = url;
      a.download = `${c.id.replace(/[^\w-]/g, "_")}.${name}`;
      a.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (e) { toast(`Not exported: ${(e as Error).message}`); }
  };
  const does = (f: () => void) => () => { open.value = false; f(); };
  return <div class="menu-wrap" onKeyDown={(e) => { if (e.key === "Escape" && open.peek()) { e.stopPropagation(); open.value = false; } }} onFocusOut={(e) => { if (!(e.currentTarget as HTMLElement).contains(e.relatedTarget as Node | null)) open.value = false; }}>
    <button type="button" class="small" data-act="menu" aria-label="More" aria-haspopup="true" aria-expanded={open.value} onClick={() => { open.value = !open.peek(); }}><Glyph name="more" /></button>
    {open.value && <div class="menu" role="group" aria-label="This conversation">
      <button type="button" data-act="menu-rename" onClick={does(rename)}>Rename</button>
      <button type="button" data-act="fork" onClick={does(() => void fork())}>Fork</button>
      <button type="button" data-act="menu-link" onClick={does(() => copied(sharedLink({ view: "conversation", id: c.id }), LINKED))}>Copy link</button>
      {([["bundle", "tar.zst", "as a bundle"], ["html", "html", "as HTML"], ["md", "md", "as Markdown"], ["json", "json", "as JSON"]] as const).map(([f, ext, w]) => <button key={f} type="button" data-export={f} onClick={does(() => void take(f, ext))}>Export {w}</button>)}
      <button type="button" class="danger" data-act="menu-trash" onClick={does(() => void remove({ id: c.id, ...(c.session.peek()?.title ? { title: c.session.peek()!.title! } : {}) }))}>To the trash</button>
    </div>}
  </div>;
}

function Failed({ conversation: c }: { conversation: Conversation }) {
  const n = c.failures.total.value;
  if (!n) return null;
  const at = c.failure_at.value;
  const walk = (by: 1 | -1) => document.getElementById("transcript")?.dispatchEvent(new CustomEvent("steno-failure", { detail: by }));
  return <span class="failed-walk"><button type="button" class="failed-count" data-act="failures" onClick={() => walk(1)} title="Go to the next failure (e)"><StateIcon status="error" />{at ? `${count(at)} of ${count(n)}` : plural(n, "failed", "failed")} <kbd>e</kbd></button>
    {at > 0 && <><button type="button" class="small" aria-label="Previous failure" onClick={() => walk(-1)}>↑</button><button type="button" class="small" aria-label="Next failure" onClick={() => walk(1)}>↓</button></>}</span>;
}

function Header({ conversation: c, title }: { conversation: Conversation; title: string }) {
  const bar = useRoving<HTMLElement>(".bar a, .bar button");
  const renaming = useSignal(false);
  const { id } = c;
  const s = c.session.value;
  return <header class="bar" ref={bar} role="group" aria-label="This conversation's header">
    <a class="button small narrow-only" href={hrefOf({ view: "list", id: "" })} aria-label="Back to the list">←</a>
    {renaming.value && s ? <Rename item={{ id, ...(s.title ? { title: s.title } : {}) }} done={(t) => { renaming.value = false; if (t !== undefined) c.session.value = { ...s, title: t }; }} />
      : <h2><bdi>{show(cut(title, 200))}</bdi></h2>}
    {s && <span class="figures">{s.project && s.project !== "default" ? <>{show(cut(s.project, 60))} · </> : null}{plural(s.lastSeq, "record")}</span>}
    <Failed conversation={c} />
    {route.value.view === "timeline" ? <a class="button small" data-act="transcript" href={hrefOf({ view: "conversation", id })}>Transcript</a>
      : <><a class="button small" data-act="timeline" href={hrefOf({ view: "timeline", id })}><Glyph name="bars" />Timeline</a>
        <button type="button" class="small pane-button" aria-pressed={pane.value === "on"} title="Show the timeline beside the transcript" aria-label="Timeline beside the transcript" onClick={() => { pane.value = pane.peek() === "on" ? "off" : "on"; }}>◨</button></>}
    <Menu conversation={c} rename={() => { renaming.value = true; }} />
  </header>;
}

function Talk({ id }: { id: string }) {
  const [c, setC] = useState<Conversation | null>(null);
  const r = route.value;
  useEffect(() => {
    const place = placeHere();
    const at = route.peek();
    const made = new Conversation(id, place?.from ?? (at.message !== undefined || at.call !== undefined ? at.from : undefined));
    setC(made);
    return () => made.close();
  }, [id]);
  // Another place in the same conversation.
  useEffect(() => { if (c && c.id === id && r.from && c.pages.peek().length) void c.show(r.from); }, [r.message, r.call, r.from]);
  const s = c?.session.value;
  // The list may know its name before it is loaded.
  const title = s?.title?.trim() ? s.title : s || items.value?.some((x) => x.id === id) ? nameOf(id) : "";
  useEffect(() => { named.value = plain(title, 80); }, [title]);
  if (!c || c.id !== id) return null;
  if (c.missing.value) return <Missing what="conversation"><a class="button" href={hrefOf({ view: "trash", id: "" })}>Look in the trash</a></Missing>;
  const wide = r.view === "timeline";
  return <section class="talk" aria-label="Conversation" data-id={id}>
    <Header conversation={c} title={title || (connection.value === "lost" ? "Not loaded" : "…")} />
    <Vitals conversation={c} />
    {wide ? <Waterfall conversation={c} wide /> : <div class="talk-body"><div class="talk-main"><Transcript key={id} conversation={c} /><Composer conversation={c} /></div>{pane.value === "on" && <Waterfall conversation={c} wide={false} />}</div>}
  </section>;
}

function Main() {
  const r = route.value;
  if (connection.value === "refused" || !currentToken()) return <SignIn />;
  if (r.view === "conversation" || r.view === "timeline") return <Talk id={r.id} />;
  if (r.view === "output") return <Output key={`${r.id}/${r.ref}`} id={r.id} refId={r.ref!} />;
  if (r.view === "usage") return <Usage />;
  if (r.view === "trash") return <TrashView />;
  if (r.view === "settings") return <Settings />;
  if (r.view === "search") return <SearchView />;
  if (r.view === "new") return <section class="welcome" aria-label="Start"><h2>What do you want to do?</h2><p>Press <kbd>?</kbd> for the keyboard.</p><Composer conversation={null} /></section>;
  return <HomeView />;
}

const NAMES: Record<string, string> = { home: "", usage: "Usage", trash: "Trash", settings: "Settings", search: "Search", new: "New conversation", list: "Conversations" };

function App() {
  const v = route.value.view;
  useEffect(() => { if (v in NAMES) named.value = NAMES[v]!; }, [v]);
  const waits = approvals.value.length;
  const inside = currentToken() && connection.value !== "refused";
  const top = useRoving<HTMLElement>(".top a, .top > button:not(.tray-button)");
  return <div class={`app view-${v}`}>
    <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); for (const to of ["#transcript", "#lines", "main section[tabindex]", "main"]) { const el = document.querySelector<HTMLElement>(to); if (el) { el.focus(); break; } } }}>Skip to the content</a>
    <header class="top" ref={top}>
      <h1><a href={hrefOf({ view: "home", id: "" })}>Steno</a></h1>
      {inside ? <SearchBox /> : null}
      <span class="grow" />
      {inside ? <TrayButton /> : null}
      <State />
      <button type="button" class="quiet-button" data-act="theme" onClick={() => { theme.value = THEMES[(THEMES.indexOf(theme.peek()) + 1) % 3]!; }} aria-label={`Theme: ${theme.value}`}>{theme.value === "dark" ? "☾" : theme.value === "light" ? "☀" : "◐"}</button>
      <button type="button" class="quiet-button" data-act="help" onClick={() => { helpOpen.value = true; }} aria-label="Keyboard help">?</button>
    </header>
    {inside ? <Sidebar /> : <div class="sidebar" />}
    <main id="main" tabIndex={-1}>{<Main />}</main>
    {inside ? <Tray /> : null}
    {inside ? <nav class="phone-bar" aria-label="Views">
      {(["home", "list", "search", "timeline", "usage"] as const).map((to) => to === "timeline" && v !== "conversation" && v !== to ? null
        : <a key={to} href={hrefOf({ view: to, id: route.value.id })} aria-current={v === to ? "page" : undefined}><Glyph name={to === "timeline" ? "bars" : to} />{to === "list" && waits > 0 && <b class="badge">{waits}</b>}{to[0]!.toUpperCase() + to.slice(1)}</a>)}
    </nav> : null}
    <Toast />
    <Help />
  </div>;
}

startRouting();
startConnection();
startOutbox();
startKeys();
function begin() {
  void startLive();
  startList();
  startApprovals();
}
if (currentToken()) begin();
else comebacks.subscribe((() => { let begun = false; return (n: number) => { if (n && !begun && currentToken()) { begun = true; begin(); } }; })());
render(<App />, document.getElementById("app")!);
