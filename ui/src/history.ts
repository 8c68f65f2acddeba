// From the server's view of a history, with the facts beside it, to rows of a transcript.
export interface Ref { id: string; mimeType?: string; byteSize: number; createdAt?: number; hint?: string }
export interface Step { text: string; progress?: number; total?: number }
export interface Attachment { type?: string; [key: string]: unknown }
export type Status = "waiting" | "running" | "queued" | "done" | "error" | "denied" | "interrupted" | "cut" | "not_dispatched" | "indeterminate" | "unrecorded";

export interface Call {
  id: string;
  name: string;
  server?: string;
  arguments: string;
  status: Status;
  result?: unknown;
  failed: boolean; // the result is the error text of the tool
  duration?: number;
  startedAt?: number;
  invokedAt?: string;
  steps: Step[];
  ref?: Ref;
  display?: unknown;
  exitCode?: number;
  repair?: { class: string; text: string };
  approval?: string; // the hash that an answer must contain
}

export interface Message {
  kind: "message";
  key: string;
  id: string;
  seq: number;
  role: string;
  text: string;
  thinking: string;
  attachments: Attachment[];
  calls: Call[];
  at: string;
  error?: { code: string; message: string };
  amended?: string;
  left?: boolean; // a model does not see this
  live?: boolean;
  dropped?: string;
}
export interface Mark { kind: "mark"; key: string; seq: number; tone: "repaired" | "damaged"; text: string }
export type Row = Message | Mark;

interface Fact {
  seq: number; id: string; at: string; format: string; kind: string; target?: string;
  about?: { answers?: string[]; role?: string };
  fields?: Record<string, unknown>;
  displays?: { call: string; display: unknown }[];
}
interface Repair { call?: string; class: string; seq: number; text: string }
export interface View {
  messages: Record<string, unknown>[];
  next_cursor?: string;
  repairs: Repair[];
  damaged: (number | { from: number; to: number })[];
  firstSeq: number;
  lastSeq: number;
  facts?: Fact[];
}
export interface Page { first: number; last: number; rows: Row[] }

const str = (v: unknown) => (typeof v === "string" ? v : "");
const num = (v: unknown) => {
  const n = typeof v === "number" ? v : Number((v as { rawJSON?: string } | null | undefined)?.rawJSON); // see api.ts
  return Number.isFinite(n) ? n : undefined;
};
const argumentsOf = (v: unknown) => (typeof v === "string" ? v : v === undefined ? "" : JSON.stringify(v));

function stepsOf(v: unknown): Step[] {
  if (!Array.isArray(v)) return [];
  return v.map((s) => {
    if (typeof s === "string") return { text: s };
    const o = (s ?? {}) as Record<string, unknown>;
    const step: Step = { text: str(o.text) || str(o.message) || JSON.stringify(s) };
    if (num(o.progress) !== undefined) step.progress = num(o.progress)!;
    if (num(o.total) !== undefined) step.total = num(o.total)!;
    return step;
  });
}

function refOf(v: unknown): Ref | undefined {
  const o = v as Ref | null;
  return o && typeof o === "object" && typeof o.id === "string" ? { ...o, byteSize: num(o.byteSize) ?? 0 } : undefined;
}

// Results of older versions say this only in their text.
const DENIED = /^Permission denied: the call was not run\./;

export function statusOf(state: string, said: unknown): Status {
  if (state === "error") return typeof said === "string" && DENIED.test(said) ? "denied" : "error";
  if (state === "complete" || state === "done") return "done";
  if (state === "denied" || state === "interrupted" || state === "indeterminate" || state === "not_dispatched" || state === "cut" || state === "running" || state === "waiting" || state === "queued") return state;
  return "unrecorded";
}

// Repairs that say what became of a call.
const OF_CALLS = new Set(["not_dispatched", "indeterminate", "cut", "interrupted", "running", "waiting", "unrecorded", "renamed"]);

function callOf(c: Record<string, unknown>, facts: Map<string, Fact>, displays: Map<string, unknown>, repairs: Map<string, Repair>): Call {
  const id = str(c.id);
  const said = c.error ?? c.result;
  const state = str(c.state);
  const call: Call = {
    id, name: str(c.name) || "?", arguments: argumentsOf(c.arguments), failed: c.error !== undefined,
    status: statusOf(state, said), result: said, steps: stepsOf(c.steps),
  };
  const fields = facts.get(id)?.fields ?? {};
  const set = <K extends keyof Call>(k: K, v: Call[K] | undefined) => { if (v !== undefined) call[k] = v; };
  set("duration", num(c.duration) ?? num(fields.duration));
  set("invokedAt", str(c.invokedAt) || undefined);
  set("ref", refOf(c.ref));
  set("server", str(fields.serverName) || undefined);
  set("exitCode", num(fields.exitCode));
  set("display", displays.get(id) ?? (c.result as { returnDisplay?: unknown } | null | undefined)?.returnDisplay);
  const repair = repairs.get(id);
  if (repair) {
    call.repair = repair;
    if (repair.class === "renamed") { /* its state is its own */ }
    // A call that has not started waits for a person only if an approval says so.
    else if (repair.class === "running" || repair.class === "waiting") { call.status = repair.class === "running" ? "running" : "queued"; delete call.repair; }
    else call.status = statusOf(repair.class, undefined);
  }
  return call;
}

// States of a call without a result.
const OPEN = new Set(["pending", "unrecorded", "waiting", "running", "not_dispatched", "indeterminate", "cut"]);

export const hasOpenCalls = (v: View) => v.messages.some((m) => Array.isArray(m.toolCalls) && m.toolCalls.some((c: { state?: unknown }) => OPEN.has(str(c.state))));

export function pageOf(v: View): Page {
  const facts = v.facts ?? [];
  const byId = new Map<string, Fact>();
  const byCall = new Map<string, Fact[]>();
  const displays = new Map<string, unknown>();
  for (const f of facts) {
    byId.set(f.id, f);
    if (f.kind === "message") byId.set(`msg_${f.seq}`, f); // what the view calls a message that has no id of its own
    if (f.kind === "supersede" && f.target) byId.set(f.target, f);
    const own = str(f.fields?.tool_call_id);
    for (const call of own ? [own] : f.about?.answers ?? []) byCall.set(call, [...(byCall.get(call) ?? []), f]);
    for (const d of f.displays ?? []) displays.set(d.call, d.display);
  }
  const amended = new Map(facts.filter((f) => f.target).map((f) => [f.target!, f.kind]));
  const rows: Row[] = [];
  let seq = v.firstSeq - 1;
  for (const m of v.messages) {
    const id = str(m.id);
    const fact = byId.get(id);
    const corrupt = (m.error as { code?: unknown } | undefined)?.code === "CORRUPT_RECORD";
    seq = corrupt ? Number(id.replace(/^damaged_/, "")) || seq + 1 : fact?.seq ?? seq + 1;
    const repairs = new Map(v.repairs.filter((r) => r.call && OF_CALLS.has(r.class) && (!fact || r.seq === seq)).map((r) => [r.call!, r]));
    // The results of this message's calls: the first one of each id after the message.
    const results = new Map<string, Fact>();
    const calls = Array.isArray(m.toolCalls) ? m.toolCalls as Record<string, unknown>[] : [];
    for (const c of calls) {
      const f = byCall.get(str(c.id))?.find((x) => x.seq > seq);
      if (f) results.set(str(c.id), f);
    }
    const fields = fact?.fields ?? {};
    const row: Message = {
      kind: "message", key: `${seq}:${id}`, id, seq, role: str(m.role) || "assistant",
      text: str(m.content), thinking: str(m.thinking) || str(fields.reasoning_content),
      attachments: Array.isArray(m.attachments) ? m.attachments as Attachment[] : [],
      calls: calls.map((c) => callOf(c, results, displays, repairs)),
      at: str(m.createdAt) || fact?.at || "",
    };
    const error = (m.error ?? fields.error) as { code?: unknown; message?: unknown } | undefined;
    if (error && typeof error === "object") row.error = { code: str(error.code) || "ERROR", message: str(error.message) };
    if (corrupt) row.error!.message += ` (record ${seq}; what was there is left as it is, and every other record is whole)`;
    if (fields.includeInContext === false) row.left = true;
    const amendment = amended.get(id);
    if (amendment) row.amended = amendment;
    rows.push(row);
  }
  return { first: v.firstSeq, last: v.lastSeq, rows: withMarks(rows, v) };
}

function withMarks(rows: Row[], v: View): Row[] {
  const marks: Mark[] = v.repairs.filter((r) => !OF_CALLS.has(r.class)).map((r, i) => ({
    kind: "mark", key: `repair:${r.seq}:${i}`, seq: r.seq, tone: "repaired",
    text: `Record ${r.seq} was repaired in this view (${r.class.replace(/_/g, " ")}): ${r.text}`,
  }));
  const shown = new Set(rows.filter((r) => r.kind === "message" && r.error?.code === "CORRUPT_RECORD").map((r) => r.seq));
  for (const d of v.damaged) {
    const { from, to } = typeof d === "number" ? { from: d, to: d } : d;
    if (shown.has(from)) continue;
    const which = from === to ? `Record ${from} cannot be read and is` : `Records ${from} to ${to} cannot be read and are`;
    marks.push({ kind: "mark", key: `damage:${from}`, seq: from, tone: "damaged", text: `${which} left out.` });
  }
  return [...rows, ...marks].sort((a, b) => a.seq - b.seq);
}
