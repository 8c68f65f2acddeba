// Where one types. What is not sent yet survives a reload.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { connection } from "./api";
import { create, newId, type Conversation } from "./conversation";
import { go } from "./route";
import { stopRun } from "./run";
import { cut, show } from "./text";

const slot = (id: string) => `steno-draft:${id}`;
const load = (id: string) => { try { return sessionStorage.getItem(slot(id)) ?? ""; } catch { return ""; } };
const save = (id: string, text: string) => { try { text ? sessionStorage.setItem(slot(id), text) : sessionStorage.removeItem(slot(id)); } catch { /* no storage: then not */ } };

export const firstWords = new Map<string, string>();

export function Composer({ conversation: c }: { conversation: Conversation | null }) {
  const id = c?.id ?? "new";
  const text = useSignal(load(id));
  const problem = useSignal("");
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => { text.value = load(id); }, [id]);
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    el.style.height = "auto";
    el.style.height = `${Math.min(el.scrollHeight + 2, 260)}px`;
  }, [text.value]);

  // A message that began this conversation is sent as soon as there is a conversation.
  useEffect(() => {
    const first = c && firstWords.get(c.id);
    if (c && first) { firstWords.delete(c.id); void c.say(first); }
  }, [c]);

  const run = c?.run.value ?? null;
  const live = !!run && !run.over.value;
  const sending = c?.sending.value ?? "";
  const last = c?.rows().findLast((r) => r.kind === "message");
  const canGoOn = !!c && !live && !sending && c.atEnd.value && last?.kind === "message" &&
    (last.role === "user" || !!last.error || last.calls.length > 0 || !!last.live);

  const submit = async () => {
    const words = text.value;
    if (!words.trim() || live || sending) return;
    text.value = "";
    save(id, "");
    problem.value = "";
    if (c) { void c.say(words); return; }
    const fresh = newId();
    try {
      await create(fresh, words.trim().split("\n")[0]!.slice(0, 80));
      firstWords.set(fresh, words);
      go({ view: "conversation", id: fresh });
    } catch (e) { problem.value = (e as Error).message; text.value = words; }
  };

  const failure = problem.value || c?.failure.value || "";
  return <form class="composer" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
    {failure && <p class="problem" role="alert">{show(cut(failure, 400))}</p>}
    <div class="composer-row">
      <textarea id="composer" ref={box} rows={1} aria-label="Message" placeholder={c ? "Say something…" : "Start a conversation…"} value={text.value}
        onInput={(e) => { text.value = e.currentTarget.value; save(id, text.value); }}
        onKeyDown={(e) => {
          if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); void submit(); }
          if (e.key === "Escape") e.currentTarget.blur();
        }} />
      {live ? <button type="button" class="danger" data-act="stop" onClick={() => void stopRun(run!.id)}>Stop</button>
        : canGoOn && !text.value.trim() ? <button type="button" class="primary" data-act="continue" onClick={() => void c!.goOn()}>Continue</button>
          : <button type="submit" class="primary" data-act="send" disabled={!text.value.trim() || !!sending}>Send</button>}
    </div>
    {connection.value === "lost" && sending && <p class="quiet">It is sent as soon as the server is back.</p>}
  </form>;
}
