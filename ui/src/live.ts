// Updates that arrive by themselves: topics of the one stream that all windows share.
import { Hub, type HubEvent, type Taker, type Told } from "./hub";
import { heard, onLost } from "./api";
import { currentToken } from "./route";
import { scriptUrl } from "./trusted";
import hubUrl from "./worker?worker&url";

const listeners = new Map<string, Set<(e: HubEvent) => void>>();
let say: ((a: object) => void) | null = null;
let count = 0;

function told(said: Told) {
  if ("state" in said) { heard(said.state); return; }
  for (const f of [...(listeners.get(said.topic) ?? [])]) f(said.event);
}

async function nameOf(token: string): Promise<string> {
  const bytes = new TextEncoder().encode(`steno ${location.origin} ${token}`);
  if (!crypto.subtle) return `steno-${token.length}`;
  return `steno-${[...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].slice(0, 12).map((b) => b.toString(16).padStart(2, "0")).join("")}`;
}

// Without SharedWorker this window has a stream of its own.
function alone(token: string) {
  const hub = new Hub(token);
  const taker: Taker = told;
  hub.join(taker);
  return (a: object) => {
    const m = a as { watch?: string; at?: number; unwatch?: string; wake?: true };
    if (m.watch !== undefined) hub.watch(taker, m.watch, m.at ?? 0);
    else if (m.unwatch !== undefined) hub.unwatch(taker, m.unwatch);
    else if (m.wake) hub.wake();
  };
}

async function connect() {
  const token = currentToken();
  if (typeof SharedWorker === "undefined" || !crypto.subtle) { say = alone(token); return; }
  const worker = new SharedWorker(scriptUrl(hubUrl) as string, { type: "module", name: await nameOf(token) });
  // Its script could not be fetched: the server is away, or sent something else.
  worker.onerror = () => { say = alone(token); watchAll(); };
  worker.port.onmessage = (m: MessageEvent<Told>) => told(m.data);
  worker.port.start();
  worker.port.postMessage({ token });
  say = (a) => worker.port.postMessage(a);
  setInterval(() => say?.({ alive: true }), 30_000);
  addEventListener("pagehide", (e) => { if (!e.persisted) say?.({ leave: true }); });
}

function watchAll() {
  for (const [topic, f] of listeners) if (f.size) say!({ watch: topic, at: places.get(topic) ?? 0 });
}

// Starts again when there is another token.
let connecting: Promise<void> | null = null;
export function startLive(): Promise<void> {
  return connecting ??= connect().then(watchAll);
}
onLost(() => say?.({ wake: true }));

const places = new Map<string, number>();

// Calls `each` for every event of a topic until it is cancelled. A topic that is read from a place belongs to
// this window; "list" and "approvals" are the same for all.
export function watch(topic: string, at: number, each: (e: HubEvent) => void): () => void {
  const name = topic === "list" || topic === "approvals" ? topic : `${topic}#${(count++).toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  let all = listeners.get(name);
  if (!all) listeners.set(name, all = new Set());
  const first = !all.size;
  all.add(each);
  places.set(name, at);
  if (first || name === topic) say?.({ watch: name, at });
  return () => {
    if (!all.delete(each) || all.size) return;
    listeners.delete(name);
    places.delete(name);
    say?.({ unwatch: name });
  };
}
