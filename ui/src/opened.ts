// Which blocks are open: remembered until the page is closed, so that a row that leaves the window and comes
// back is as it was left.
import { signal, type Signal } from "@preact/signals";

const all = new Map<string, Signal<boolean | undefined>>();

export function opened(key: string): Signal<boolean | undefined> {
  let s = all.get(key);
  if (!s) {
    if (all.size > 5000) all.clear();
    s = signal<boolean | undefined>(undefined);
    all.set(key, s);
  }
  return s;
}
