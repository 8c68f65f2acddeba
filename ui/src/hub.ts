// One stream for all windows: the topics that they want, and where each of them is.
//
// It lives in a SharedWorker (worker.ts), or in the page where a browser has none. A stream that
// breaks is opened again with every topic at the place that was reached, so nothing is lost and
// nothing comes twice.
export interface HubEvent { type?: string; seq?: number; next_offset?: number; [key: string]: unknown }
export type Told = { state: "live" | "lost" | "refused" } | { topic: string; event: HubEvent };

interface Topic { at: number; last?: HubEvent; takers: Set<Taker> }
export type Taker = (said: Told) => void;

// An event of these topics is the whole state, so a new subscriber gets the last event.
const STATE = /^(list|approvals)$/;

const sleep = (ms: number, stop: AbortSignal) => new Promise<void>((done) => {
  const timer = setTimeout(done, ms);
  stop.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

export class Hub {
  private topics = new Map<string, Topic>();
  private takers = new Set<Taker>();
  private id = "";
  private state: "" | "live" | "lost" | "refused" = ""; // nothing is known before the first answer
  private running = false;
  private stop = new AbortController();
  private pause = new AbortController();
  private changes: { add: Record<string, number>; remove: string[] } = { add: {}, remove: [] };
  private sent = new Set<string>();
  private due = 0;

  constructor(private token: string) {}

  join(taker: Taker) { this.takers.add(taker); if (this.state) taker({ state: this.state }); }
  leave(taker: Taker) {
    this.takers.delete(taker);
    for (const name of [...this.topics.keys()]) this.unwatch(taker, name);
  }

  watch(taker: Taker, name: string, at: number) {
    let t = this.topics.get(name);
    if (!t) {
      t = { at, takers: new Set() };
      this.topics.set(name, t);
      this.change((c) => { c.add[name] = at; });
    } else if (t.last) taker({ topic: name, event: t.last });
    t.takers.add(taker);
    if (!this.running) void this.run();
  }

  unwatch(taker: Taker, name: string) {
    const t = this.topics.get(name);
    if (!t?.takers.delete(taker) || t.takers.size) return;
    this.topics.delete(name);
    this.change((c) => { if (name in c.add) delete c.add[name]; else c.remove.push(name); });
  }

  // The browser says that the network is back: do not wait any longer.
  wake() { this.pause.abort(); }

  // Several changes at the same moment become one request.
  private change(f: (c: Hub["changes"]) => void) {
    if (!this.id) return; // the next stream begins with all topics
    f(this.changes);
    if (!this.due) this.due = setTimeout(() => { this.due = 0; void this.flush(); }, 5) as unknown as number;
  }

  private async flush() {
    const { add, remove } = this.changes;
    this.changes = { add: {}, remove: [] };
    if (!this.id || (!remove.length && !Object.keys(add).length)) return;
    try {
      const answer = await fetch(`/api/watch/${this.id}`, { method: "PATCH", headers: this.headers(), body: JSON.stringify({ add, remove }) });
      if (!answer.ok) this.stop.abort();
    } catch { this.stop.abort(); }
  }

  private headers() { return { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" }; }
  private say(state: "live" | "lost" | "refused") {
    if (this.state === state) return;
    this.state = state;
    for (const t of this.takers) t({ state });
  }

  private async run() {
    this.running = true;
    for (let wait = 200; ; wait = Math.min(wait * 1.6, 4000)) {
      this.stop = new AbortController();
      this.id = "";
      this.changes = { add: {}, remove: [] };
      const topics = Object.fromEntries([...this.topics].map(([name, t]) => [name, t.at]));
      this.sent = new Set(this.topics.keys());
      try {
        const answer = await fetch("/api/watch", { method: "POST", headers: this.headers(), body: JSON.stringify({ topics }), cache: "no-store", signal: this.stop.signal });
        if (answer.status === 401) { this.say("refused"); break; }
        if (answer.ok) {
          wait = 200;
          await this.read(answer);
        }
      } catch { /* it broke off: the next one goes on */ }
      this.id = "";
      if (!this.takers.size && !this.topics.size) break;
      this.say("lost");
      this.pause = new AbortController();
      await sleep(wait, this.pause.signal);
    }
    this.running = false;
  }

  private async read(answer: Response) {
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", name = "", data = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("data:")) data += line.slice(5).trimStart();
        else if (line.startsWith("event:")) name = line.slice(6).trim();
        else if (line === "") {
          if (data) this.take(name, JSON.parse(data) as HubEvent);
          name = data = "";
        }
      }
    }
  }

  private take(name: string, event: HubEvent) {
    if (name === "watch") {
      this.id = String(event.id);
      this.say("live");
      void this.sync();
      return;
    }
    const t = this.topics.get(name);
    if (!t) return;
    if (typeof event.seq === "number") t.at = event.seq;
    else if (typeof event.next_offset === "number") t.at = event.next_offset;
    if (STATE.test(name)) t.last = event;
    for (const taker of t.takers) taker({ topic: name, event });
  }

  // Topics that were requested, and given up again, while the stream was being opened.
  private sync() {
    for (const [name, t] of this.topics) if (!this.sent.has(name)) this.changes.add[name] = t.at;
    for (const name of this.sent) if (!this.topics.has(name)) this.changes.remove.push(name);
    return this.flush();
  }
}
