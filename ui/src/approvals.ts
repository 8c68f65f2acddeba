// The calls that wait for permission, in all conversations, and answering one.
import { signal } from "@preact/signals";
import { send } from "./api";
import { watch } from "./live";

export interface Approval {
  run: string; call: string; approval: string; conversation: string; tool: string; server?: string;
  arguments: string; directory?: string; since: string;
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

function take(items: Approval[]) {
  const now = new Set(items.map((a) => a.approval));
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
