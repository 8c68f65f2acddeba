// The SharedWorker: one stream for all windows with the same token.
import { Hub, type Taker } from "./hub";

interface Scope { onconnect: ((e: MessageEvent) => void) | null }
type Asked = { token: string } | { watch: string; at: number } | { unwatch: string } | { wake: true } | { alive: true } | { leave: true };

let hub: Hub | null = null;
(globalThis as unknown as Scope).onconnect = (e) => {
  const port = e.ports[0]!;
  const taker: Taker = (said) => port.postMessage(said);
  let seen = Date.now();
  // A window that was closed sends nothing; one that is open sends a sign of life now and then.
  const timer = setInterval(() => { if (Date.now() - seen > 150_000) { hub?.leave(taker); clearInterval(timer); port.close(); } }, 30_000);
  port.onmessage = (m: MessageEvent<Asked>) => {
    const a = m.data;
    seen = Date.now();
    if ("token" in a) { hub ??= new Hub(a.token); hub.join(taker); }
    else if ("watch" in a) hub?.watch(taker, a.watch, a.at);
    else if ("unwatch" in a) hub?.unwatch(taker, a.unwatch);
    else if ("wake" in a) hub?.wake();
    else if ("leave" in a) { hub?.leave(taker); clearInterval(timer); port.close(); }
  };
};
