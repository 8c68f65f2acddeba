// The calls that wait for permission, in all conversations, and answering one.
import { signal } from "@preact/signals";
import { send } from "./api";
import { clock } from "./format";
import { watch } from "./live";
import { notify } from "./prefs";
import { plain } from "./text";
import { toast } from "./toast";

export interface Approval {
  run: string; call: string; approval: string; conversation: string; tool: string; server?: string;
  arguments: string; directory?: string; environment?: string[]; limits?: { seconds?: number; outputBytes?: number; memoryBytes?: number; cpuSeconds?: number }; since: string;
  elsewhere?: boolean; // another server, or a terminal, has asked
}

export const approvals = signal<Approval[]>([]);
// What became of a call that was in the list: answered in this window, or not.
export const answered = signal<Map<string, { of: Approval; word: string; at: number; mine: boolean }>>(new Map());
export const trayOpen = signal(false);

const mine = new Set<string>(); // answered here, or being sent
function note(of: Approval, word: string) {
  const next = new Map(answered.peek());
  next.set(of.approval, { of, word, at: Date.now(), mine: mine.has(of.approval) });
  while (next.size > 50) next.delete(next.keys().next().value!);
  answered.value = next;
}

// A call that disappeared without an answer from this window: its run knows why.
function learn(a: Approval) {
  note(a, "No longer asked");
  let here = false;
  const say = (word: string) => { off(); note(a, word); toast(`${plain(a.tool, 60)}: ${word}, ${clock(Date.now())}.`); };
  const off = watch(`r/${encodeURIComponent(a.run)}`, 0, (e) => {
    const d = (e.data ?? {}) as Record<string, unknown>;
    if (d.approval === a.approval) here = true;
    const its = here && d.toolCallId === a.call;
    if (its && d.state === "allowed") say("Allowed in another window");
    else if (its && e.type === "tool_call_error") say(/nobody was there/.test(String(d.content)) ? "Denied, because nobody answered in time" : d.state === "denied" ? "Denied in another window" : "The run was stopped");
    else if (e.type === "run_finished" || e.type === "gone") say("Its run has ended");
  });
}

// The notification is also seen while the page is in the background. Windows share the tag, so that only one of
// them notifies.
function call(a: Approval, n: number) {
  try {
    const said = new Notification(n === 1 ? "A call waits for you" : `${n} calls wait for you`, { body: plain(`${a.tool} ${a.arguments}`, 120), tag: a.approval });
    said.onclick = () => { focus(); trayOpen.value = true; said.close(); };
  } catch { /* not here */ }
}

function take(items: Approval[]) {
  const now = new Set(items.map((a) => a.approval));
  const known = new Set(approvals.peek().map((a) => a.approval));
  const fresh = items.find((a) => !known.has(a.approval));
  if (fresh && document.hidden && notify.peek() === "on") call(fresh, items.length);
  for (const a of approvals.peek()) if (!now.has(a.approval)) if (!mine.has(a.approval)) learn(a);
  if (JSON.stringify(items) !== JSON.stringify(approvals.peek())) approvals.value = items;
}

export const startApprovals = () => watch("approvals", 0, (e) => { if (Array.isArray(e.items)) take(e.items as Approval[]); });

export async function answer(a: Approval, yes: boolean) {
  mine.add(a.approval);
  try {
    await send("POST", `/api/runs/${encodeURIComponent(a.run)}/approvals/${encodeURIComponent(a.call)}`, { approved: yes, approval: a.approval });
    note(a, yes ? "Allowed" : "Denied");
  } catch (e) {
    mine.delete(a.approval);
    if (!approvals.peek().some((x) => x.approval === a.approval)) learn(a); // somebody else was faster
    throw e;
  }
}
