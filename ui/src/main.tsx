// The page: a list on the left, a conversation, an output or the figures on the right.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { comebacks, connection, startConnection } from "./api";
import { startOutbox } from "./outbox";
import { Composer } from "./Composer";
import { Conversation } from "./conversation";
import { count } from "./format";
import { Help, helpOpen, startKeys } from "./keys";
import { Output } from "./Output";
import { currentToken, hrefOf, route, startRouting, useToken } from "./route";
import { Sidebar, startList, titleOf } from "./Sidebar";
import { Stats } from "./Stats";
import { cut, plain, show } from "./text";
import { Toast } from "./toast";
import { Transcript } from "./Transcript";
import "./style.css";

type Theme = "auto" | "dark" | "light";
const stored = () => { try { const t = localStorage.getItem("steno-theme"); return t === "dark" || t === "light" ? t : "auto"; } catch { return "auto"; } };
const theme = signal<Theme>(stored());
theme.subscribe((t) => {
  document.documentElement.dataset.theme = t;
  try { t === "auto" ? localStorage.removeItem("steno-theme") : localStorage.setItem("steno-theme", t); } catch { /* then for this visit */ }
});
const NEXT: Record<Theme, Theme> = { auto: "dark", dark: "light", light: "auto" };

function State() {
  const words = { live: "Connected", lost: "Reconnecting…", refused: "Token not accepted" }[connection.value];
  return <span class={`state state-${connection.value}`} id="connection" role="status" data-state={connection.value}><span class="dot" aria-hidden="true" />{words}</span>;
}

function SignIn() {
  return <section class="welcome" aria-label="Token">
    <h2>{connection.value === "refused" ? "This token is not accepted" : "A token is needed"}</h2>
    <p>Open the address that <code>steno serve</code> printed, or paste it here. The token stays in this page's address and is never stored.</p>
    <form class="composer-row" onSubmit={(e) => {
      e.preventDefault();
      useToken(String(new FormData(e.currentTarget).get("token") ?? ""));
      connection.value = "live";
      comebacks.value++;
    }}>
      <input id="token" name="token" type="password" autocomplete="off" aria-label="Token" placeholder="sk-ac-…" />
      <button class="primary">Open</button>
    </form>
  </section>;
}

function Talk({ id, from }: { id: string; from: number | undefined }) {
  const [c, setC] = useState<Conversation | null>(null);
  useEffect(() => {
    const made = new Conversation(id, from);
    setC(made);
    return () => made.close();
  }, [id, from]);
  useEffect(() => { if (c) return c.session.subscribe((s) => { document.title = s ? `${plain(titleOf(s), 80)} · Steno` : "Steno"; }); }, [c]);
  if (!c || c.id !== id) return null;
  const s = c.session.value;
  return <section class="talk" aria-label="Conversation">
    <header class="bar">
      <a class="button small narrow-only" href={hrefOf({ view: "home", id: "" })}>←</a>
      <h2><bdi>{s ? show(cut(titleOf(s), 200)) : "…"}</bdi></h2>
      {s && <span class="figures">{s.project && s.project !== "default" ? <>{show(cut(s.project, 60))} · </> : null}{count(s.lastSeq)} records</span>}
    </header>
    <Transcript conversation={c} />
    <Composer conversation={c} />
  </section>;
}

function Main() {
  const r = route.value;
  if (connection.value === "refused" || !currentToken()) return <SignIn />;
  if (r.view === "conversation") return <Talk id={r.id} from={r.message ? r.from : undefined} />;
  if (r.view === "output") return <Output id={r.id} refId={r.ref!} />;
  if (r.view === "stats") return <Stats />;
  return <section class="welcome" aria-label="Start"><h2>What did it do, and where did it go wrong?</h2>
    <p>Choose a conversation, or start one. Press <kbd>?</kbd> for the keyboard.</p><Composer conversation={null} /></section>;
}

function App() {
  const v = route.value.view;
  useEffect(() => { if (v === "home" || v === "stats") document.title = v === "stats" ? "Stats · Steno" : "Steno"; }, [v]);
  return <div class={`app view-${v}`}>
    <header class="top">
      <h1><a href={hrefOf({ view: "home", id: "" })}>Steno</a></h1>
      <State />
      <span class="grow" />
      <button type="button" class="quiet-button" data-act="theme" onClick={() => { theme.value = NEXT[theme.peek()]; }} aria-label={`Theme: ${theme.value}`}>{theme.value === "dark" ? "☾" : theme.value === "light" ? "☀" : "◐"}</button>
      <button type="button" class="quiet-button" data-act="help" onClick={() => { helpOpen.value = true; }} aria-label="Keyboard help">?</button>
    </header>
    {currentToken() && connection.value !== "refused" ? <Sidebar /> : <div class="sidebar" />}
    <main>{<Main />}</main>
    <Toast />
    <Help />
  </div>;
}

startRouting();
startConnection();
startOutbox();
startKeys();
if (currentToken()) startList();
else comebacks.subscribe((() => { let begun = false; return (n: number) => { if (n && !begun) { begun = true; startList(); } }; })());
render(<App />, document.getElementById("app")!);
