// Deleted conversations, and restoring them. What is removed here is gone for good, so its name has to be
// typed.
import { Problem } from "./icons";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ask, comebacks, get, send } from "./api";
import { ago, bytes, plural } from "./format";
import { refreshList } from "./list";
import { watch } from "./live";
import { go } from "./route";
import { cut, show } from "./text";
import { toast } from "./toast";

interface Gone { id: string; trashId: string; deletedAt: string; bytes: number; title?: string }

export function TrashView() {
  const items = useSignal<Gone[] | null>(null);
  const problem = useSignal("");
  const look = () => get<{ items: Gone[] }>("/api/trash").then((t) => { items.value = t.items; problem.value = ""; }, (e) => { problem.value = e.message; });
  useEffect(() => { void look(); return watch("list", 0, () => void look()); }, [comebacks.value]);
  return <section class="stats" aria-label="Trash" tabIndex={0}>
    <h2>Trash</h2>
    <p class="quiet">A conversation that was deleted stays here, with its outputs, until it is removed for good (<code>steno trash</code>).</p>
    <Problem of={problem} />
    {items.value && !items.value.length && <p class="edge">The trash is empty.</p>}
    <ul class="home-rows trash-rows">{items.value?.map((g) => <Row key={g.trashId} gone={g} look={() => void look()} />)}</ul>
  </section>;
}

function Row({ gone: g, look }: { gone: Gone; look: () => void }) {
  const asking = useSignal(false);
  const typed = useSignal("");
  const name = g.title ?? g.id;
  const restore = () => void send("POST", `/api/chat-sessions/${encodeURIComponent(g.trashId)}/restore`).then(() => { toast("It is back."); void refreshList(); go({ view: "conversation", id: g.id }); }, (e) => toast(`Not restored: ${(e as Error).message}`));
  const purge = () => void ask(`/api/trash/${encodeURIComponent(g.trashId)}`, { method: "DELETE" }).then(() => { toast("It is gone for good."); look(); }, (e) => toast(`Not removed: ${(e as Error).message}`));
  return <li data-trash={g.id}><span class="home-title"><bdi>{show(cut(name, 120))}</bdi></span><span class="quiet">deleted {ago(g.deletedAt)} · {bytes(g.bytes)}</span><span class="grow" />
    <button type="button" data-act="restore" onClick={restore}>Restore</button>
    {asking.value ? <form class="purge" onSubmit={(e) => { e.preventDefault(); if (typed.peek() === name) purge(); }}><input aria-label={`Type ${name} to remove it for good`} placeholder={`Type ${plural(name.length, "letter")}: its name`} value={typed.value} onInput={(e) => { typed.value = e.currentTarget.value; }} /><button class="danger" data-act="purge" disabled={typed.value !== name}>Remove for good</button></form>
      : <button type="button" class="danger" data-act="ask-purge" onClick={() => { asking.value = true; }}>Remove…</button>}</li>;
}
