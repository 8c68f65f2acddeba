// The figures of the store.
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { comebacks, get } from "./api";
import { bytes, count } from "./format";
import type { Item } from "./Sidebar";

interface Figures {
  conversations: number; messages: number; bytes: number; artifacts: number; artifactBytes: number; quarantine: number;
  trash: { conversations: number; bytes: number };
  outputs: { materializations: number; bytesSaved: number; charsSaved: number; averageSaved: number; reads: Record<string, number> };
}

function Card({ label, value, more }: { label: string; value: string; more?: string }) {
  return <div class="card"><dt>{label}</dt><dd>{value}</dd>{more && <dd class="quiet">{more}</dd>}</div>;
}

export function Stats() {
  const figures = useSignal<Figures | null>(null);
  const items = useSignal<Item[]>([]);
  const problem = useSignal("");
  useEffect(() => {
    const look = () => Promise.all([get<Figures>("/api/stats"), get<{ items: Item[] }>("/api/chat-sessions?limit=1000")])
      .then(([f, l]) => { figures.value = f; items.value = l.items; problem.value = ""; }, (e) => { problem.value = e.message; });
    void look();
    const t = setInterval(() => { if (!document.hidden) void look(); }, 5000);
    const off = comebacks.subscribe(() => void look());
    return () => { clearInterval(t); off(); };
  }, []);
  const f = figures.value;
  return <section class="stats" id="stats" tabIndex={0} aria-label="Stats">
    <h2>Stats</h2>
    {problem.value && <p class="problem" role="alert">{problem}</p>}
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
        <Card label="Conversations" value={count(f.conversations)} more={`${count(f.messages)} messages`} />
        <Card label="Outputs" value={count(f.artifacts)} />
        <Card label="Trash" value={count(f.trash.conversations)} more={bytes(f.trash.bytes)} />
        <Card label="Quarantine" value={count(f.quarantine)} more="records that could not be read" />
      </dl>
      <Growth items={items.value} />
    </>}
  </section>;
}

// Messages by the day of a conversation's last activity, summed up.
function Growth({ items }: { items: Item[] }) {
  const DAY = 86_400_000, DAYS = 30;
  const end = Math.floor(Date.now() / DAY);
  const days = Array.from({ length: DAYS }, () => 0);
  let before = 0;
  for (const i of items) {
    const d = DAYS - 1 - (end - Math.floor(Date.parse(i.createdAt ?? i.updatedAt ?? "") / DAY));
    if (d < 0 || Number.isNaN(d)) before += i.bytes ?? 0;
    else days[Math.min(d, DAYS - 1)]! += i.bytes ?? 0;
  }
  let sum = before;
  const totals = days.map((d) => (sum += d));
  const most = Math.max(1, sum);
  return <>
    <h3>Growth, 30 days</h3>
    <figure class="growth">
      <svg viewBox="0 0 300 80" preserveAspectRatio="none" role="img" aria-label={`The logs grew from ${bytes(before)} to ${bytes(sum)} in 30 days`}>
        {totals.map((t, i) => { const h = Math.max(t ? 1 : 0, (t / most) * 74); return <rect key={i} x={i * 10 + 1} y={80 - h} width={8} height={h} />; })}
      </svg>
      <figcaption class="quiet">{bytes(before)} before, {bytes(sum)} now, by the day a conversation began</figcaption>
    </figure>
  </>;
}
