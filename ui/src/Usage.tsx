// What was used: by model, tool and day, with costs from the prices of the configuration, and the
// figures of the store.
import { Problem } from "./icons";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { comebacks, get } from "./api";
import { bytes, cost, count, dollars, duration, plural, short, type Prices, type Tokens } from "./format";
import { filter, only, refreshList, type Item } from "./list";
import { watch } from "./live";
import type { Approval } from "./approvals";
import { go, hrefOf } from "./route";
import { useRoving } from "./roving";
import { cut, show } from "./text";

interface Figures {
  conversations: number; messages: number; bytes: number; artifacts: number; artifactBytes: number; quarantine: number;
  trash: { conversations: number; bytes: number };
  outputs: { materializations: number; bytesSaved: number; charsSaved: number; averageSaved: number; reads: Record<string, number> };
}
export interface Used { name: string; calls: number; failed: number; ms: number; kept: number; tokens: Tokens }
export interface Home {
  waiting: { items: Approval[] }; running: Item[]; failed: Item[]; failedCount: number; conversations: number;
  days: { day: string; turns: number; failed: number }[]; models: Used[]; tools: Used[]; prices?: Prices; left: boolean;
}

// Loads the figures, and again when something has changed; what took too long to sum up is requested again.
export function useHome(days: number) {
  const home = useSignal<Home | null>(null);
  const problem = useSignal("");
  useEffect(() => {
    let gone = false, due = 0;
    const look = () => get<Home>(`/api/home?days=${days}`).then((h) => { if (gone) return; home.value = h; problem.value = ""; if (h.left) soon(1500); }, (e) => { problem.value = e.message; });
    const soon = (ms: number) => { if (!due && !gone) due = window.setTimeout(() => { due = 0; if (document.hidden) soon(2000); else void look(); }, ms); };
    void look();
    const offs = [watch("list", 0, () => soon(400)), watch("approvals", 0, () => soon(150)), comebacks.subscribe(() => soon(10))];
    return () => { gone = true; clearTimeout(due); offs.forEach((f) => f()); };
  }, [days]);
  return { home, problem };
}

// Narrows the list to the conversations that a number counts.
export const narrow = (words: string, state: "" | "error" | "running" | "waiting" = "") => { filter.value = words; only.value = state; void refreshList(); const box = document.getElementById("filter"); if (!box?.offsetParent) go({ view: "list", id: "" }); requestAnimationFrame(() => box?.focus()); };
export const Number_ = ({ n, words, state = "", label }: { n: string; words: string; state?: "" | "error"; label: string }) =>
  <button type="button" class="number" aria-label={`${n}: ${label}`} title={label} onClick={() => narrow(words, state)}>{n}</button>;

export function UsedTable({ list, kind, prices, most }: { list: Used[]; kind: "model" | "tool"; prices: Prices | undefined; most: number }) {
  const all = [...list].sort((a, b) => b.calls - a.calls).slice(0, most);
  const model = kind === "model";
  const box = useRoving<HTMLDivElement>("button, a");
  return <div class="table-wrap" ref={box} tabIndex={0} role="region" aria-label={model ? "By model" : "By tool"}>{!all.length ? <p class="edge">None yet.</p> : <table class="used">
    <thead><tr><th scope="col">{model ? "Model" : "Tool"}</th><th scope="col">{model ? "Replies" : "Calls"}</th><th scope="col">Failed</th><th scope="col">Time</th>{model && <><th scope="col">Tokens</th><th scope="col">Cost</th></>}<th scope="col">Kept out</th></tr></thead>
    <tbody>{all.map((u) => {
      const c = cost(prices, u.name, u.tokens), any = u.tokens[0] + u.tokens[1] > 0;
      return <tr key={u.name}><th scope="row">{show(cut(u.name, 80))}</th>
        <td><Number_ n={count(u.calls)} words={`${kind}:${u.name}`} label={`Conversations with ${u.name}`} /></td>
        <td>{u.failed ? <Number_ n={count(u.failed)} words={`${kind}:${u.name}`} state="error" label={`Failed conversations with ${u.name}`} /> : "0"}</td>
        <td title={plural(u.ms, "millisecond")}>{duration(u.ms)}</td>
        {model && <><td title={`${count(u.tokens[0])} in, ${count(u.tokens[1])} out, ${count(u.tokens[2])} cached`}>{any ? <Number_ n={short(u.tokens[0] + u.tokens[1])} words={`${kind}:${u.name}`} label={`Tokens of ${u.name}`} /> : "—"}</td>
          <td>{c !== undefined && any ? <Number_ n={dollars(c)} words={`${kind}:${u.name}`} label={`Cost of ${u.name}`} /> : any ? <a href={hrefOf({ view: "settings", id: "" })}>set a price</a> : "—"}</td></>}
        <td title={`${plural(u.kept, "byte")} that were in outputs and not in contexts`}>{u.kept ? bytes(u.kept) : "—"}</td></tr>;
    })}</tbody></table>}</div>;
}

function Card({ label, value, more }: { label: string; value: string; more?: string }) {
  return <div class="card"><dt>{label}</dt><dd>{value}</dd>{more && <dd class="quiet">{more}</dd>}</div>;
}

export function Usage() {
  const { home, problem } = useHome(30);
  const figures = useSignal<Figures | null>(null);
  useEffect(() => { get<Figures>("/api/stats").then((f) => { figures.value = f; }, () => {}); }, [home.value]);
  const f = figures.value, h = home.value;
  return <section class="stats" id="stats" tabIndex={0} aria-label="Usage">
    <h2>Usage</h2>
    <p class="quiet">The last 30 days{h?.left ? "; older conversations are still being read" : ""}. Costs come from <code>prices</code> in <code>config.json</code>.</p>
    <Problem of={problem} />
    {h && <><h3>By model</h3><UsedTable list={h.models} kind="model" prices={h.prices} most={100} />
      <h3>By tool</h3><UsedTable list={h.tools} kind="tool" prices={h.prices} most={100} />
      <h3>By day</h3><Days days={h.days} /></>}
    {f && <>
      <h3>Kept out of contexts</h3>
      <dl class="cards">
        <Card label="Materializations" value={count(f.outputs.materializations)} more="outputs that became files" />
        <Card label="Characters saved" value={count(f.outputs.charsSaved)} more={`${bytes(f.outputs.bytesSaved)} in all`} />
        <Card label="Average saved" value={bytes(f.outputs.averageSaved)} more="per output" />
        <Card label="Reads" value={count(Object.values(f.outputs.reads).reduce((a, b) => a + b, 0))} more={Object.entries(f.outputs.reads).map(([k, v]) => `${k} ${count(v)}`).join(" · ")} />
      </dl>
      <h3>Store</h3>
      <dl class="cards">
        <Card label="Store size" value={bytes(f.bytes + f.artifactBytes)} more={`logs ${bytes(f.bytes)} · outputs ${bytes(f.artifactBytes)}`} />
        <Card label="Conversations" value={count(f.conversations)} more={plural(f.messages, "message")} />
        <Card label="Outputs" value={count(f.artifacts)} />
        <Card label="Trash" value={count(f.trash.conversations)} more={bytes(f.trash.bytes)} />
        <Card label="Quarantine" value={count(f.quarantine)} more="records that could not be read" />
      </dl></>}
  </section>;
}

export function Days({ days }: { days: Home["days"] }) {
  const most = Math.max(1, ...days.map((d) => d.turns));
  const next = (d: string) => new Date(Date.parse(d) + 86_400_000).toISOString().slice(0, 10);
  const box = useRoving<HTMLOListElement>("button");
  return <ol ref={box} class={days.length > 14 ? "days many" : "days"} aria-label="Turns a day">{days.map((d) => <li key={d.day}>
    <button type="button" aria-label={`${d.day}: ${plural(d.turns, "turn")}, ${plural(d.failed, "failure")}`} title={`${d.day}: ${plural(d.turns, "turn")}, ${plural(d.failed, "failure")}`} onClick={() => narrow(`after:${d.day} before:${next(d.day)}`)}>
      <i class="all" style={{ height: `${(d.turns / most) * 100}%` }} /><i class="failed" style={{ height: `${(Math.min(d.failed, d.turns) / most) * 100}%` }} /></button>
    <span aria-hidden="true">{Number(d.day.slice(8))}</span></li>)}</ol>;
}
