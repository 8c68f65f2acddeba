// What changed between two texts, line by line, as hunks of a unified diff (Myers' algorithm).
const MOST = 500; // edits; a text with more changes counts as replaced
const CONTEXT = 3;

// How far each diagonal has got; the middle one is at MOST + 1.
type Far = Int32Array;
const isDown = (far: Far, k: number, d: number) => k === -d || (k !== d && far[k + MOST]! < far[k + MOST + 2]!);
const before = (far: Far, k: number, down: boolean) => far[k + MOST + (down ? 2 : 0)]!;

// What was reached with 0, 1, 2... edits before the end was. Null: it needs too many edits.
function reached(a: string[], b: string[]): Far[] | null {
  const all: Far[] = [];
  for (let far: Far = new Int32Array(2 * MOST + 3), d = 0; d <= MOST; d++) {
    const next = far.slice();
    for (let k = -d; k <= d; k += 2) {
      const down = isDown(far, k, d);
      let x = before(far, k, down) + (down ? 0 : 1);
      while (x < a.length && a[x] === b[x - k] && x - k < b.length) x++;
      next[k + MOST + 1] = x;
      if (x >= a.length && x - k >= b.length) return all;
    }
    all.push(far = next);
  }
  return null;
}

// Every line of both texts, in order, after its sign.
function edits(a: string[], b: string[]): string[] {
  const all = reached(a, b), out: string[] = [];
  if (!all) return [...a.map((l) => `-${l}`), ...b.map((l) => `+${l}`)];
  let x = a.length, y = b.length;
  for (let d = all.length; d > 0; d--) {
    const far = all[d - 1]!, k = x - y, down = isDown(far, k, d);
    const from = before(far, k, down);
    while (x > from && y > from - k + (down ? -1 : 1)) { out.push(` ${a[--x]}`); y--; }
    out.push(down ? `+${b[--y]}` : `-${a[--x]}`);
  }
  while (x) out.push(` ${a[--x]}`);
  return out.reverse();
}

export function patchOf(old: string, fresh: string): string {
  const a = old.split("\n"), b = fresh.split("\n");
  if (!a.at(-1) && !b.at(-1)) { a.pop(); b.pop(); }
  const lines = edits(a, b), out: string[] = [];
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some((l) => l[0] !== " "));
  let left = 1, right = 1; // the numbers of the next line
  for (let i = 0; i < lines.length; i++) {
    if (near[i] && !near[i - 1]) {
      let end = i;
      while (near[end]) end++;
      const hunk = lines.slice(i, end), size = (sign: string) => hunk.filter((l) => l[0] !== sign).length;
      out.push(`@@ -${left},${size("+")} +${right},${size("-")} @@`, ...hunk);
    }
    if (lines[i]![0] !== "+") left++;
    if (lines[i]![0] !== "-") right++;
  }
  return out.join("\n");
}
