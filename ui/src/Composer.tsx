// The input field. What is not sent yet survives a reload, and so does a message that the server refused.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { connection } from "./api";
import { newId, type Conversation } from "./conversation";
import { outbox, post, takeRefused } from "./outbox";
import { go } from "./route";
import { stopRun } from "./run";
import { cut, show } from "./text";

const slot = (id: string) => `steno-draft:${id}`;
const why = (id: string) => `steno-why:${id}`;
const load = (name: string) => { try { return localStorage.getItem(name) ?? ""; } catch { return ""; } };
const save = (name: string, text: string) => { try { text ? localStorage.setItem(name, text) : localStorage.removeItem(name); } catch { /* no storage: then not */ } };

export function Composer({ conversation: c }: { conversation: Conversation | null }) {
  const id = c?.id ?? "new";
  const text = useSignal(load(slot(id)));
  const problem = useSignal(load(why(id)));
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => { text.value = load(slot(id)); problem.value = load(why(id)); }, [id]);

  // A message that was refused comes back to be changed or sent again, with the reason.
  useEffect(() => {
    const item = takeRefused(id);
    if (!item) return;
    const words = text.peek().trim() ? `${item.text}\n${text.peek()}` : item.text;
    save(slot(id), words);
    save(why(id), item.refused!);
    text.value = words;
    problem.value = item.refused!;
  }, [id, outbox.value]);
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    el.style.height = "auto";
    el.style.height = `${Math.min(el.scrollHeight + 2, 260)}px`;
  }, [text.value]);

  const run = c?.run.value ?? null;
  const live = !!run && !run.over.value;
  const sending = c?.sending.value ?? "";
  const last = c?.rows().findLast((r) => r.kind === "message");
  const canGoOn = !!c && !live && !sending && c.atEnd.value && last?.kind === "message" &&
    (last.role === "user" || !!last.error || last.calls.length > 0 || !!last.live);

  const submit = () => {
    const words = text.value;
    if (!words.trim() || live || sending) return;
    text.value = "";
    save(slot(id), "");
    save(why(id), "");
    problem.value = "";
    if (c) { void c.say(words); return; }
    const fresh = newId();
    post(fresh, words, words.trim().split("\n")[0]!.slice(0, 80));
    go({ view: "conversation", id: fresh });
  };

  const failure = problem.value || c?.failure.value || "";
  return <form class="composer" onSubmit={(e) => { e.preventDefault(); submit(); }}>
    {failure && <p class="problem" role="alert">{show(cut(failure, 400))}</p>}
    <div class="composer-row">
      <textarea id="composer" ref={box} rows={1} aria-label="Message" placeholder={c ? "Say something…" : "Start a conversation…"} value={text.value}
        onInput={(e) => { text.value = e.currentTarget.value; save(slot(id), text.value); if (problem.peek()) { problem.value = ""; save(why(id), ""); } }}
        onKeyDown={(e) => {
          if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
          if (e.key === "Escape") e.currentTarget.blur();
        }} />
      {live ? <button type="button" class="danger" data-act="stop" onClick={() => void stopRun(run!.id)}>Stop</button>
        : canGoOn && !text.value.trim() ? <button type="button" class="primary" data-act="continue" onClick={() => void c!.goOn()}>Continue</button>
          : <button type="submit" class="primary" data-act="send" disabled={!text.value.trim() || !!sending}>Send</button>}
    </div>
    {connection.value === "lost" && sending && <p class="quiet">It is sent as soon as the server is back.</p>}
  </form>;
}
