// A live run, built from its events; it is shown over the stored history until that has everything.
import { signal } from "@preact/signals";
import { send } from "./api";
import type { EventName } from "./events";
import type { HubEvent } from "./hub";
import { WORDS } from "./icons";
import { watch } from "./live";
import { statusOf, type Call, type Message, type Ref, type Step } from "./history";

export class Run {
  private made: Message[] = [];
  readonly changed = signal(0);
  readonly over = signal("");
  readonly begun = signal(""); // the calls that run, one on each line
  error: { code: string; message: string } | undefined;
  model = "";
  private off: () => void;
  private due = 0;

  constructor(readonly id: string, private told: (type: string) => void) {
    this.off = watch(`r/${encodeURIComponent(id)}`, 0, (e) => this.take(e));
  }

  // New objects each time something has changed: the views compare by identity.
  get messages(): Message[] {
    const now = this.changed.value;
    if (this.copied !== now) {
      this.copied = now;
      this.copies = this.made.map((m) => ({ ...m, calls: m.calls.map((c) => ({ ...c, steps: [...c.steps] })) }));
    }
    return this.copies;
  }
  private copied = -1;
  private copies: Message[] = [];

  // For screen readers: how the last call ended, at most once a second.
  readonly said = signal("");
  private words = "";
  private saying = 0;
  private tell(words: string) {
    this.words = words;
    this.saying ||= window.setTimeout(() => { this.saying = 0; this.said.value = this.words; }, this.said.peek() ? 1000 : 0);
  }

  leave() { this.off(); clearTimeout(this.due); clearTimeout(this.saying); }

  // Many deltas are drawn at once. With a timer and not an animation frame, so that a window in the background
  // continues as well.
  private touch() {
    if (!this.due) this.due = window.setTimeout(() => { this.due = 0; this.changed.value++; }, 30);
  }

  private message(id: string): Message {
    let m = this.made.find((x) => x.id === id);
    if (!m) {
      m = { kind: "message", key: `live:${id}`, id, seq: Infinity, role: "assistant", text: "", thinking: "",
        attachments: [], calls: [], at: new Date().toISOString(), live: true };
      this.made.push(m);
    }
    return m;
  }

  private call(d: Record<string, unknown>): Call {
    const m = this.message(String(d.messageId ?? ""));
    const id = String(d.toolCallId ?? "");
    let c = m.calls.find((x) => x.id === id);
    if (!c) {
      c = { id, name: "", arguments: "", status: "queued", failed: false, steps: [] };
      m.calls.push(c);
    }
    if (typeof d.toolName === "string") c.name = d.toolName;
    if (typeof d.serverName === "string") c.server = d.serverName;
    if (typeof d.arguments === "string") c.arguments = d.arguments;
    return c;
  }

  private take(e: HubEvent) {
    if (e.type === "gone") { this.over.value = "gone"; this.off(); this.told("run_finished"); return; }
    this.apply(e.type as EventName, (e.data ?? {}) as Record<string, unknown>);
    this.begun.value = this.made.flatMap((m) => m.calls).filter((c) => c.status === "running").map((c) => c.id).join("\n");
    this.touch();
    if (e.type === "run_finished") this.off();
    if (e.type === "run_started" || e.type === "run_finished" || e.type === "tool_call_approval") this.told(e.type);
  }

  private apply(type: EventName, d: Record<string, unknown>) {
    const text = typeof d.text === "string" ? d.text : "";
    switch (type) {
      case "run_started": this.model = String(d.model ?? ""); break;
      case "message": this.message(String(d.messageId)).text += text; break;
      case "thinking": this.message(String(d.messageId)).thinking += text; break;
      case "message_dropped": this.message(String(d.messageId)).dropped = String(d.reason ?? "not kept"); break;
      case "tool_call_start": this.call(d); break;
      case "tool_call_step": this.call(d).steps.push(stepOf(d, text)); break;
      case "tool_call_approval": {
        const c = this.call(d);
        if (d.state === "pending") { c.status = "waiting"; c.approval = String(d.approval ?? ""); }
        else { c.status = d.state === "denied" ? "denied" : "queued"; delete c.approval; }
        break;
      }
      case "tool_call_running": { const c = this.call(d); c.status = "running"; c.startedAt = Date.parse(String(d.invokedAt)); break; }
      case "tool_call_complete": this.end(this.call(d), d, false); break;
      case "tool_call_error": this.end(this.call(d), d, true); break;
      case "final_message": if (text) this.message(String(d.messageId)).text = text; break;
      case "run_error": {
        const e = (d.error && typeof d.error === "object" ? d.error : d) as Record<string, unknown>; // journals of version 0.1 have it inside
        this.error = { code: String(e.code ?? "ERROR"), message: String(e.message ?? "") };
        break;
      }
      case "run_finished": this.over.value = String(d.reason ?? "stop"); break;
    }
  }

  private end(c: Call, d: Record<string, unknown>, failed: boolean) {
    const said = d.content ?? (failed ? d.error : undefined);
    c.failed = failed;
    c.result = said;
    if (!failed) c.status = "done";
    else c.status = typeof d.state === "string" ? statusOf(d.state, said) : c.status === "denied" ? "denied" : "error";
    if (typeof d.duration === "number") c.duration = d.duration;
    if (typeof d.exitCode === "number") c.exitCode = d.exitCode;
    if (d.ref && typeof d.ref === "object") c.ref = d.ref as Ref;
    delete c.approval;
    this.tell(`${c.name} ${WORDS[c.status].toLowerCase()}${c.exitCode ? `, exit ${c.exitCode}` : ""}`);
  }
}

function stepOf(d: Record<string, unknown>, text: string): Step {
  const step: Step = { text };
  if (typeof d.progress === "number") step.progress = d.progress;
  if (typeof d.total === "number") step.total = d.total;
  return step;
}

export const stopRun = (id: string) => send("POST", `/api/runs/${encodeURIComponent(id)}/stop`);
