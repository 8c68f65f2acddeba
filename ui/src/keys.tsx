// The keyboard, all of it.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { go, route } from "./route";

export const helpOpen = signal(false);

const KEYS: [string, string][] = [
  ["j  k", "next, previous message or tool call; in an output: a line down, up"],
  ["Enter", "open or close the block"], ["o", "view the block's full output"],
  ["e  E", "next, previous error"], ["n  N", "next, previous match; in a transcript: next, previous tool call"],
  ["/", "search in the output, or filter the conversations"], [":", "go to a line"],
  ["g  G", "to the start, to the end"], ["[  ]", "previous, next conversation"],
  ["c", "write a message"], ["a  d", "allow, deny the block, where it waits for permission and was seen to its end"], ["s", "stats"], ["Esc", "back"], ["?", "this help"],
];

export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpOpen.value) box.current?.showModal(); else box.current?.close();
  }, [helpOpen.value]);
  return <dialog ref={box} class="help" aria-label="Keyboard" onClose={() => { helpOpen.value = false; }}>
    <h2>Keyboard</h2>
    <dl>{KEYS.map(([k, w]) => <div key={k}><dt>{k.split("  ").map((x) => <kbd key={x}>{x}</kbd>)}</dt><dd>{w}</dd></div>)}</dl>
    <form method="dialog"><button class="primary">Close</button></form>
  </dialog>;
}

const typing = (t: EventTarget | null) => t instanceof HTMLElement && (t.matches("input, textarea, select") || t.isContentEditable);
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

function neighbour(by: 1 | -1) {
  const all = [...document.querySelectorAll<HTMLAnchorElement>(".sidebar li > a")];
  const i = all.findIndex((a) => a.getAttribute("aria-current") === "page");
  const next = all[i < 0 ? (by > 0 ? 0 : all.length - 1) : i + by];
  next?.click();
}

const act = (what: string) => document.getElementById("lines")?.dispatchEvent(new CustomEvent("steno-act", { detail: what }));
const inBlock = (selector: string) => (document.activeElement?.closest("[data-row]")?.querySelector<HTMLElement>(selector) ?? null);
const inAsking = (selector: string) => (document.activeElement?.closest("[data-status=asking]")?.querySelector<HTMLElement>(selector) ?? null);

function inOutput(key: string): boolean {
  const acts: Record<string, string> = { j: "down", k: "up", g: "start", G: "end", n: "next", N: "previous", e: "error", E: "error-back" };
  if (acts[key]) { act(acts[key]); return true; }
  if (key === "/") return focusOn("find");
  if (key === ":") return focusOn("line");
  if (key === "Escape") { go({ view: "conversation", id: route.peek().id }); return true; }
  return false;
}

const BAD = "[data-status=error], [data-status=denied], [data-status=interrupted], article[data-error]";

function inTranscript(key: string): boolean {
  switch (key) {
    case "j": move(1); return true;
    case "k": move(-1); return true;
    case "n": move(1, "[data-status]"); return true;
    case "N": move(-1, "[data-status]"); return true;
    case "e": move(1, BAD); return true;
    case "E": move(-1, BAD); return true;
    case "g": document.getElementById("transcript")?.dispatchEvent(new Event("steno-start")); return true;
    case "G": document.getElementById("transcript")?.dispatchEvent(new Event("steno-end")); return true;
    case "o": inBlock("[data-full], [data-follow]")?.click(); return true;
    case "c": return focusOn("composer");
    // Only the call that has the focus: one that is off the screen must not be answered.
    case "a": inAsking("[data-act=approve]:not(:disabled)")?.click(); return true;
    case "d": inAsking("[data-act=deny]")?.click(); return true;
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

function pressed(e: KeyboardEvent) {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || typing(e.target) || document.querySelector("dialog[open]")) return;
  const view = route.peek().view;
  let taken = true;
  if (e.key === "?") helpOpen.value = true;
  else if (e.key === "[" || e.key === "]") neighbour(e.key === "]" ? 1 : -1);
  else if (e.key === "s" && view !== "output") go({ view: "stats", id: "" });
  else if (view === "output") taken = inOutput(e.key);
  else if (view === "conversation" && (taken = inTranscript(e.key))) { /* done */ }
  else if (e.key === "/") taken = focusOn("filter");
  else if (e.key === "c") taken = focusOn("composer");
  else if (e.key === "Escape" && view === "stats") go({ view: "home", id: "" });
  else taken = false;
  if (taken) e.preventDefault();
}

export const startKeys = () => addEventListener("keydown", pressed);
