// Requests, event streams, and whether the server can be reached.
import { signal } from "@preact/signals";
import { currentToken } from "./route";

export type Connection = "live" | "lost" | "refused";
export const connection = signal<Connection>("live");
// Increases whenever the server is back: everything that shows data then reads it again.
export const comebacks = signal(0);

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) { super(message); }
}
export class Unreachable extends Error {}
export const isGone = (e: unknown) => e instanceof ApiError && e.status === 404;

export const sleep = (ms: number, stop?: AbortSignal) => new Promise<void>((done) => {
  const timer = setTimeout(done, ms);
  stop?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

let probing = false;
let wake = () => {};
const lostListeners = new Set<() => void>();
export const onLost = (f: () => void) => { lostListeners.add(f); };
// When the server last answered.
export const heardAt = signal(Date.now());

async function probe() {
  if (probing) return;
  probing = true;
  for (let wait = 300; ; wait = Math.min(wait * 1.6, 4000)) {
    await Promise.race([sleep(wait), new Promise<void>((r) => { wake = r; })]);
    try {
      if ((await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(4000) })).ok) break;
    } catch { /* not yet */ }
  }
  probing = false;
  if (connection.peek() !== "refused") connection.value = "live";
  heardAt.value = Date.now();
  comebacks.value++;
  for (const f of lostListeners) f();
}

// Resolves when the server was lost and is there again.
export const nextComeback = (stop: AbortSignal) => new Promise<void>((done) => {
  const seen = comebacks.peek();
  const off = comebacks.subscribe((n) => { if (n !== seen) { queueMicrotask(() => off()); done(); } });
  stop.addEventListener("abort", () => { off(); done(); }, { once: true });
});

export function lost() {
  if (connection.peek() === "live") heardAt.value = Date.now();
  if (connection.peek() !== "refused") connection.value = "lost";
  void probe();
}

// What the shared stream reports about the connection.
export function heard(state: Connection) {
  if (state === "refused") connection.value = "refused";
  else if (state === "lost") lost();
  else if (connection.peek() === "lost") wake();
}

export function startConnection() {
  addEventListener("offline", lost);
  addEventListener("online", () => wake());
  document.addEventListener("visibilitychange", () => wake());
}

export interface Asking {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export async function ask(path: string, how: Asking = {}): Promise<Response> {
  const headers: Record<string, string> = { Authorization: `Bearer ${currentToken()}`, ...how.headers };
  if (how.body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(path, {
      method: how.method ?? "GET", headers, cache: "no-store", credentials: "omit",
      body: how.body === undefined ? null : JSON.stringify(how.body), signal: how.signal ?? null,
    });
  } catch (e) {
    if (how.signal?.aborted) throw e;
    lost();
    throw new Unreachable("the server cannot be reached");
  }
  if (answer.ok) return answer;
  let said: { error?: { code?: string; message?: string } } = {};
  try { said = await answer.json(); } catch { /* no JSON: the status must do */ }
  if (answer.status === 401) connection.value = "refused";
  const request = answer.status >= 500 ? ` (request ${answer.headers.get("X-Request-Id") ?? "without an id"})` : "";
  throw new ApiError(answer.status, said.error?.code ?? "error", (said.error?.message ?? `status ${answer.status}`) + request);
}

// A number that JavaScript would spell differently, or round, stays as it is written.
type Raw = { rawJSON?: (source: string) => unknown };
const asWritten = (_: string, v: unknown, c?: { source: string }) => (typeof v === "number" && c && String(v) !== c.source ? (JSON as Raw).rawJSON?.(c.source) ?? v : v);

export async function get<T>(path: string, signal?: AbortSignal, exact = false): Promise<T> {
  const answer = await ask(path, signal ? { signal } : {});
  try {
    return (exact ? (JSON.parse as (s: string, f: typeof asWritten) => unknown)(await answer.text(), asWritten) : await answer.json()) as T;
  } catch (e) {
    if (signal?.aborted) throw e;
    lost();
    throw new Unreachable("the answer broke off");
  }
}

export async function send<T>(method: string, path: string, body: unknown = {}): Promise<T> {
  return await (await ask(path, { method, body })).json() as T;
}
