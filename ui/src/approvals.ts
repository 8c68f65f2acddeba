// The calls that wait for permission, in all conversations, and answering one.
import { signal } from "@preact/signals";
import { send } from "./api";
import { watch } from "./live";
import { notify } from "./prefs";
import { plain } from "./text";

export interface Approval {
  run: string; call: string; approval: string; conversation: string; tool: string; server?: string;
  arguments: string; directory?: string; since: string;
  elsewhere?: boolean; // another server, or a terminal, asks
}

export const approvals = signal<Approval[]>([]);
// What became of one that was here: answered in this window, or somewhere else.
export const answered = signal<Map<string, { word: string; at: number }>>(new Map());
export const trayOpen = signal(false);

const mine = new Map<string, string>();
function note(key: string, word: string) {
  const next = new Map(answered.peek());
  next.set(key, { word, at: Date.now() });
  while (next.size > 50) next.delete(next.keys().next().value!);
  answered.value = next;
}

// Seen also where this page is not. Windows share the tag, so that one of them is heard.
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
  for (const a of approvals.peek()) if (!now.has(a.approval)) note(a.approval, mine.get(a.approval) ?? "Answered in another window");
  if (JSON.stringify(items) !== JSON.stringify(approvals.peek())) approvals.value = items;
}

export const startApprovals = () => watch("approvals", 0, (e) => { if (Array.isArray(e.items)) take(e.items as Approval[]); });

export async function answer(a: { run: string; call: string; approval: string }, yes: boolean) {
  mine.set(a.approval, yes ? "Allowed" : "Denied");
  try {
    await send("POST", `/api/runs/${encodeURIComponent(a.run)}/approvals/${encodeURIComponent(a.call)}`, { approved: yes, approval: a.approval });
    note(a.approval, yes ? "Allowed" : "Denied");
  } catch (e) { mine.delete(a.approval); throw e; }
}
