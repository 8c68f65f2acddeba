// Requests, event streams, and whether the server can be reached.
import { signal } from "@preact/signals";
import { currentToken } from "./route";

export type Connection = "live" | "lost" | "refused";
export const connection = signal<Connection>("live");
// Grows whenever the server is there again: whoever shows something looks again.
export const comebacks = signal(0);

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) { super(message); }
}
export class Unreachable extends Error {}

export const sleep = (ms: number, stop?: AbortSignal) => new Promise<void>((done) => {
  const timer = setTimeout(done, ms);
  stop?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

let probing = false;
let wake = () => {};

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
  connection.value = "live";
  comebacks.value++;
}

export function lost() {
  if (connection.peek() !== "refused") connection.value = "lost";
  void probe();
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
  throw new ApiError(answer.status, said.error?.code ?? "error", said.error?.message ?? `status ${answer.status}`);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await ask(path, signal ? { signal } : {});
  try {
    return await answer.json() as T;
  } catch (e) {
    if (signal?.aborted) throw e;
    lost();
    throw new Unreachable("the answer broke off");
  }
}

export async function send<T>(method: string, path: string, body: unknown = {}): Promise<T> {
  return await (await ask(path, { method, body })).json() as T;
}

export interface ServerEvent { id: string; type: string; data: string }

// Reads one stream to its end. Throws when it breaks off.
async function readEvents(answer: Response, each: (e: ServerEvent) => void) {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let e: ServerEvent = { id: "", type: "message", data: "" };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (e.data) each(e);
        e = { id: "", type: "message", data: "" };
      } else if (line.startsWith("data:")) e.data += line.slice(5).trimStart();
      else if (line.startsWith("event:")) e.type = line.slice(6).trim();
      else if (line.startsWith("id:")) e.id = line.slice(3).trim();
    }
  }
}

// Follows a stream over broken connections and restarts until `each` answers true.
export async function follow(path: string, each: (e: ServerEvent) => boolean, stop: AbortSignal) {
  let last = "";
  let over = false;
  let wait = 200;
  while (!over && !stop.aborted) {
    try {
      const answer = await ask(path, { signal: stop, headers: last ? { "Last-Event-ID": last } : {} });
      await readEvents(answer, (e) => {
        wait = 200;
        if (e.id) last = e.id;
        over ||= each(e);
      });
    } catch (e) {
      if (stop.aborted) return;
      if (e instanceof ApiError && e.status < 500) throw e;
      if (!(e instanceof ApiError)) lost();
    }
    if (over || stop.aborted) return;
    await sleep(wait, stop);
    wait = Math.min(wait * 1.6, 4000);
  }
}
