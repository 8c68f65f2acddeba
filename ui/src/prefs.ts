// The settings that a person has chosen in this browser. They are kept in local storage, if there is one, and
// other windows follow.
import { signal, type Signal } from "@preact/signals";

const load = (name: string) => { try { return localStorage.getItem(name); } catch { return null; } };
const store = (name: string, value: string | null) => { try { value === null ? localStorage.removeItem(name) : localStorage.setItem(name, value); } catch { /* then for this visit */ } };

// One of several words; the first one is the default.
function choice<T extends string>(name: string, all: readonly T[]): Signal<T> {
  const known = (v: string | null) => all.find((x) => x === v) ?? all[0]!;
  const s = signal(known(load(name)));
  s.subscribe((v) => { document.documentElement.dataset[name.slice(6)] = v; store(name, v === all[0] ? null : v); });
  addEventListener("storage", (e) => { if (e.key === name) s.value = known(e.newValue); });
  return s;
}

export const THEMES = ["auto", "dark", "light"] as const;
export const theme = choice("steno-theme", THEMES);
export const DENSITIES = ["roomy", "compact"] as const;
export const density = choice("steno-density", DENSITIES);
export const letters = choice("steno-letters", ["on", "off"]);
export const pane = choice("steno-pane", ["on", "off"]);
export const wrap = choice("steno-wrap", ["off", "on"]);
export const notify = choice("steno-notify", ["off", "on"]);
