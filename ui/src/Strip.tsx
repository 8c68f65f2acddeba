// The tape of a conversation, small: when the model and the tools worked, in order, with failures in red.
import type { Item } from "./list";

const COLOURS: Record<string, string> = { m: "--bar-model", t: "--bar-tool", e: "--bar-err" };

export function Strip({ of: i }: { of: Item }) {
  const pieces = [...(i.tape ?? "").matchAll(/([mte])(\d+)/g)].map((m) => [COLOURS[m[1]!]!, Number(m[2])] as const);
  if (i.state === "running") pieces.push(["--run", 12]); else if (i.state === "waiting") pieces.push(["--wait", 12]);
  const all = pieces.reduce((n, [, w]) => n + w, 0);
  if (!all || !i.calls) return null;
  let at = 0;
  const stops = pieces.map(([c, w]) => `var(${c}) ${(at / all) * 100}% ${((at += w) / all) * 100}%`);
  return <i class="strip" aria-hidden="true" style={{ backgroundImage: `linear-gradient(90deg, ${stops.join()})` }} />;
}
