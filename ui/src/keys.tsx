// The keyboard, all of it.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { trayOpen } from "./approvals";
import { letters, wrap } from "./prefs";
import { go, route, sharedLink } from "./route";
import { copied, LINKED } from "./toast";

export const helpOpen = signal(false);

const KEYS: [string, string][] = [
  ["j  k", "next, previous message or tool call; in an output: a line down, up"],
  ["h  l", "fold, unfold the block"], ["Enter", "open or close the block"], ["o", "open the block's output"],
  ["e  E", "next, previous failure, also where it is not loaded yet; in an output: error line"], ["n  N", "next, previous match; in a transcript: next, previous tool call"],
  ["/", "search in this conversation or output"], ["g /", "search everything (Ctrl K too)"], [":", "go to a line"], ["w", "wrap long lines of an output"], ["f", "follow an output that grows"],
  ["g g  G", "to the start, to the end"], ["[  ]", "previous, next conversation"],
  ["g h", "home"], ["g l", "the list"], ["g t", "timeline"], ["g u", "usage"], ["g d", "trash"], ["g ,", "settings"], ["g a", "what waits for you"],
  ["c", "write a message"], [".", "stop the run"], ["y  Y", "copy a link, copy the content"], ["a  d", "allow, deny: only in a card that has the focus and was seen to its end"], ["Esc", "one level out"], ["?", "this help"],
];

export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!helpOpen.value) { box.current?.close(); return; }
    box.current?.showModal();
    // A reader whose focus is at the end of it reads from the top.
    if (box.current) box.current.scrollTop = 0;
  }, [helpOpen.value]);
  return <dialog ref={box} class="help" aria-label="Keyboard" onClose={() => { helpOpen.value = false; }}>
    <h2>Keyboard</h2>
    <dl>{KEYS.map(([k, w]) => <div key={k}><dt>{k.split("  ").map((x) => <kbd key={x}>{x}</kbd>)}</dt><dd>{w}</dd></div>)}</dl>
    <label class="check"><input type="checkbox" checked={letters.value === "on"} onChange={(e) => { letters.value = e.currentTarget.checked ? "on" : "off"; }} />Letters are commands</label>
    <form method="dialog"><button class="primary">Close</button></form>
  </dialog>;
}

const typing = (t: EventTarget | null) => t instanceof HTMLElement && (t.matches("input:not([type=checkbox]), textarea, select") || t.isContentEditable);
const focusOn = (id: string) => { const el = document.getElementById(id); el?.focus(); if (el instanceof HTMLInputElement) el.select(); return !!el; };

function rows(which: string): HTMLElement[] { return [...document.querySelectorAll<HTMLElement>(`#transcript ${which}`)]; }

function move(by: 1 | -1, which = "[data-row]") {
  const all = rows(which);
  if (!all.length) return;
  const now = document.activeElement?.closest<HTMLElement>("[data-row]") ?? null;
  let next: HTMLElement | undefined;
  if (now && now.isConnected && document.getElementById("transcript")!.contains(now)) {
    const order = by > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
    const beyond = all.filter((x) => x !== now && now.compareDocumentPosition(x) & order && !(by < 0 && which !== "[data-row]" && x.contains(now)));
    next = by > 0 ? beyond[0] : beyond.at(-1);
  } else {
    const box = document.getElementById("transcript")!.getBoundingClientRect();
    const seen = all.filter((x) => { const r = x.getBoundingClientRect(); return r.bottom > box.top && r.top < box.bottom; });
    next = which === "[data-row]" ? (by > 0 ? seen[0] : seen.at(-1)) ?? all[0] : by > 0 ? all.find((x) => x.getBoundingClientRect().top >= box.top) ?? all[0] : all.findLast((x) => x.getBoundingClientRect().top < box.bottom) ?? all.at(-1);
  }
  if (!next) return;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: next.offsetHeight > 400 ? "start" : "nearest" });
}

// The rows of the list while the focus is in it, otherwise those of the view: hits, runs, the trash.
const listed = () => document.activeElement?.closest(".sidebar");
function step(by: 1 | -1) {
  const all = [...(listed() ?? document.querySelector("main")!).querySelectorAll<HTMLElement>("li > a, .needs button")].filter((x) => x.offsetParent);
  const at = all.indexOf(document.activeElement as HTMLElement);
  all[at < 0 ? 0 : at + by]?.focus();
  return true;
}

function neighbour(by: 1 | -1) {
  const all = [...document.querySelectorAll<HTMLAnchorElement>(".sidebar li > a")];
  const i = all.findIndex((a) => a.getAttribute("aria-current") === "page");
  const next = all[i < 0 ? (by > 0 ? 0 : all.length - 1) : i + by];
  next?.click();
}

const act = (what: string) => document.getElementById("lines")?.dispatchEvent(new CustomEvent("steno-act", { detail: what }));
const tell = (event: Event) => { document.getElementById("transcript")?.dispatchEvent(event); return true; };
const inBlock = (selector: string) => (document.activeElement?.closest("[data-row]")?.querySelector<HTMLElement>(selector) ?? null);
const copy = (text: string, words?: string) => { copied(text, words); return true; };

function fold(open: boolean) {
  const b = inBlock("[aria-expanded]");
  if (b && (b.getAttribute("aria-expanded") === "true") !== open) b.click();
  return true;
}

// From an output back to the place in the conversation.
const out = () => { const b = document.querySelector<HTMLElement>("[data-act=back]"); if (b) b.click(); else go({ view: "conversation", id: route.peek().id }); return true; };

function inOutput(key: string): boolean {
  const acts: Record<string, string> = { j: "down", k: "up", gg: "start", G: "end", n: "next", N: "previous", e: "error", E: "error-back", f: "follow" };
  if (acts[key]) { act(acts[key]); return true; }
  if (key === "w") { wrap.value = wrap.peek() === "on" ? "off" : "on"; return true; }
  if (key === "/") return focusOn("find");
  if (key === ":") return focusOn("line");
  if (key === "y") return copy(sharedLink(route.peek()), LINKED);
  if (key === "Y") { document.querySelector<HTMLElement>("[data-act=copy]")?.click(); return true; }
  if (key === "Escape") return out();
  return false;
}

function inTranscript(key: string): boolean {
  const id = route.peek().id;
  switch (key) {
    case "j": move(1); return true;
    case "k": move(-1); return true;
    case "h": return fold(false);
    case "l": return fold(true);
    case "n": move(1, "[data-status]"); return true;
    case "N": move(-1, "[data-status]"); return true;
    case "e": return tell(new CustomEvent("steno-failure", { detail: 1 }));
    case "E": return tell(new CustomEvent("steno-failure", { detail: -1 }));
    case "gg": return tell(new Event("steno-start"));
    case "G": return tell(new Event("steno-end"));
    case "o": case "go": inBlock("[data-wrong], [data-full], [data-follow]")?.click(); return true;
    case "c": return focusOn("composer");
    case ".": document.querySelector<HTMLElement>("[data-act=stop]")?.click(); return true;
    case "/": go({ view: "search", id: "", query: `conversation:${id} ` }); document.getElementById("everywhere")?.focus(); return true;
    case "y": {
      const row = document.activeElement?.closest<HTMLElement>("#transcript [data-seq]");
      const from = Number(row?.dataset.seq ?? 1);
      return copy(sharedLink({ view: "conversation", id, ...(row?.dataset.call ? { call: row.dataset.call, from } : row?.dataset.id ? { message: row.dataset.id, from } : {}) }), LINKED);
    }
    case "Y": return copy((document.activeElement?.closest<HTMLElement>("#transcript [data-row]")?.innerText ?? "").trim());
    case "Enter": {
      const row = document.activeElement as HTMLElement | null;
      if (!row?.matches("[data-row]")) return false;
      row.querySelector<HTMLElement>("[aria-expanded]")?.click();
      return true;
    }
    case "Escape": go({ view: "home", id: "" }); return true;
  }
  return false;
}

function anywhere(key: string): boolean {
  const id = route.peek().id;
  switch (key) {
    case "?": helpOpen.value = true; return true;
    case "[": case "]": neighbour(key === "]" ? 1 : -1); return true;
    case "g/": return focusOn("everywhere");
    case "gh": go({ view: "home", id: "" }); return true;
    case "gl": { const a = document.querySelector<HTMLElement>(".sidebar li > a[aria-current]") ?? document.querySelector<HTMLElement>(".sidebar li > a"); a?.focus(); return a ? true : focusOn("filter"); }
    case "j": return step(1);
    case "k": return step(-1);
    case "gt": if (id) go({ view: "timeline", id }); return true;
    case "gu": case "s": go({ view: "usage", id: "" }); return true;
    case "gd": go({ view: "trash", id: "" }); return true;
    case "g,": go({ view: "settings", id: "" }); return true;
    case "ga": trayOpen.value = true; return true;
    case "/": return focusOn("filter");
    case "c": return focusOn("composer");
    case "Escape": if (route.peek().view === "timeline") go({ view: "conversation", id }); else go({ view: "home", id: "" }); return true;
  }
  return false;
}

// g waits for a second letter.
let pending = 0;

function pressed(e: KeyboardEvent) {
  if ((e.ctrlKey || e.metaKey) && e.key === "k") { e.preventDefault(); focusOn("everywhere"); return; }
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || typing(e.target) || document.querySelector("dialog[open]")) return;
  if (letters.peek() === "off" && e.key.length === 1) return;
  if ((e.target as Element).closest?.(".tray") && e.key === "Escape") { trayOpen.value = false; return; }
  const key = e.key;
  if (key === "g" && !pending) { pending = window.setTimeout(() => { pending = 0; }, 900); e.preventDefault(); return; }
  const view = route.peek().view;
  const does = (k: string) => (/^[jk]$/.test(k) && listed() ? anywhere(k) : false) || (view === "output" && inOutput(k)) || (view === "conversation" && inTranscript(k)) || anywhere(k);
  const behind = !!pending && key.length === 1;
  clearTimeout(pending);
  pending = 0;
  // A key that means nothing after g has its usual meaning.
  if ((behind && does(`g${key}`)) || does(key)) e.preventDefault();
}

export const startKeys = () => addEventListener("keydown", pressed);
