// Short messages at the edge, with one thing that can be undone.
import { signal } from "@preact/signals";
import { show, cut } from "./text";

const current = signal<{ text: string; undo?: () => void } | null>(null);
let timer = 0;

export function toast(text: string, undo?: () => void) {
  current.value = undo ? { text, undo } : { text };
  clearTimeout(timer);
  timer = window.setTimeout(() => { current.value = null; }, undo ? 12_000 : 4000);
}

// Copies to the clipboard, and says so.
export const copied = (text: string, words = "Copied.") => { void navigator.clipboard?.writeText(text).then(() => toast(words), () => toast("The clipboard is not available.")); };
export const LINKED = "Link copied, without the token.";

export function Toast() {
  const t = current.value;
  return <div class="toast-place" role="status">{t && <div class="toast">
    <span>{show(cut(t.text, 300))}</span>
    {t.undo && <button type="button" data-act="undo" onClick={() => { current.value = null; t.undo!(); }}>Undo</button>}
  </div>}</div>;
}
