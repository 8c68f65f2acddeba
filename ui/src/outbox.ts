// What was sent and has no receipt yet. It is in local storage with its idempotency key until the
// server has said that it has it, so it survives another conversation, a reload and a restart, and
// is stored once however often it had to be sent.
import { signal } from "@preact/signals";
import { ApiError, ask, comebacks, send, Unreachable } from "./api";

export interface Item {
  key: string;
  conversation: string;
  text: string;
  at: number;
  title?: string; // the conversation is to be made first
  refused?: string; // why the server refused it
}

const PREFIX = "steno-outbox:";

function load(): Item[] {
  const items: Item[] = [];
  try {
    for (let i = 0; i < localStorage.length; i++) {
      const name = localStorage.key(i)!;
      if (!name.startsWith(PREFIX)) continue;
      const v = JSON.parse(localStorage.getItem(name) ?? "null") as Partial<Item> | null;
      if (v && typeof v.key === "string" && typeof v.conversation === "string" && typeof v.text === "string") items.push({ ...v, at: Number(v.at) || 0 } as Item);
    }
  } catch { /* no storage, or somebody else wrote into it: what can be read is used */ }
  return items.sort((a, b) => a.at - b.at);
}

// Without storage it exists as long as the page.
const memory = new Map<string, Item>();
export const outbox = signal<Item[]>([]);

function keep(item: Item) {
  memory.set(item.key, item);
  try { localStorage.setItem(PREFIX + item.key, JSON.stringify(item)); } catch { /* memory has it */ }
  refresh();
}

function drop(key: string) {
  memory.delete(key);
  try { localStorage.removeItem(PREFIX + key); } catch { /* memory had it */ }
  refresh();
}

function refresh() {
  const stored = load();
  const known = new Set(stored.map((i) => i.key));
  outbox.value = [...stored, ...[...memory.values()].filter((i) => !known.has(i.key))].sort((a, b) => a.at - b.at);
}

// Another window has delivered it: it is no longer in our outbox either.
function heard(e: StorageEvent) {
  if (e.key?.startsWith(PREFIX) && e.newValue === null) memory.delete(e.key.slice(PREFIX.length));
  if (e.key === null || e.key.startsWith(PREFIX)) refresh();
}

type Delivered = (conversation: string, run: string | null) => Promise<void>;
const listeners = new Set<Delivered>();
export function onDelivered(f: Delivered): () => void { listeners.add(f); return () => { listeners.delete(f); }; }

export function post(conversation: string, text: string, title?: string) {
  keep({ key: crypto.randomUUID(), conversation, text, at: Date.now(), ...(title === undefined ? {} : { title }) });
  void deliver();
}

// A refused message goes back to the field where it was written.
export function takeRefused(conversation: string): Item | undefined {
  const item = outbox.peek().find((i) => i.conversation === conversation && i.refused);
  if (item) drop(item.key);
  return item;
}

export const waiting = (items: Item[], conversation: string) => items.find((i) => i.conversation === conversation && !i.refused);

async function deliverOne(item: Item) {
  if (item.title !== undefined) {
    try { await send("POST", "/api/chat-sessions", { id: item.conversation, title: item.title }); }
    catch (e) { if (!(e instanceof ApiError && e.status === 409)) throw e; }
    const { title: _, ...rest } = item;
    item = rest;
    keep(item);
  }
  const answer = await ask("/api/chatbot", { method: "POST", body: { sessionId: item.conversation, message: item.text }, headers: { "Idempotency-Key": item.key } });
  const run = answer.headers.get("X-Run-Id");
  void answer.body?.cancel();
  // It is shown as sent until the stored message can be shown in its place.
  await Promise.all([...listeners].map((f) => f(item.conversation, run)));
  drop(item.key);
}

// A server that is overloaded or stopping will accept it later; a server that does not know the token may know
// the next one.
const later = (e: unknown) => e instanceof Unreachable || (e instanceof ApiError && (e.status === 401 || e.status === 429 || e.status === 502 || e.status === 503));

let delivering = false;
let again = false;
async function deliver() {
  again = true;
  if (delivering) return;
  delivering = true;
  let retry = false;
  while (again) {
    again = false;
    for (const item of outbox.peek()) {
      if (item.refused) continue;
      try { await deliverOne(item); }
      catch (e) {
        if (later(e)) { retry = !(e instanceof Unreachable); break; }
        keep({ ...item, refused: (e as Error).message });
      }
    }
  }
  delivering = false;
  if (retry) setTimeout(() => void deliver(), 3000);
}

export function startOutbox() {
  refresh();
  addEventListener("storage", heard);
  let seen = comebacks.peek();
  comebacks.subscribe((n) => { if (n !== seen) { seen = n; void deliver(); } });
  void deliver();
}
