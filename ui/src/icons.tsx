// The states of a call: shape, colour and word. Colour is never the only sign.
import { computed, type ReadonlySignal } from "@preact/signals";
import { comebacks, connection } from "./api";
import type { Status } from "./history";

export const WORDS: Record<Status, string> = {
  waiting: "Needs you", running: "Running", queued: "Queued", done: "Done", error: "Failed", denied: "Denied", interrupted: "Stopped",
  cut: "Cut off", not_dispatched: "Never started", indeterminate: "Outcome unknown", unrecorded: "No result stored",
};

const SHAPES: Record<Status, preact.JSX.Element> = {
  waiting: <><path class="fill" d="M8 .8 15.2 8 8 15.2.8 8Z" /><path class="cut" d="M6.5 5.5v5M9.5 5.5v5" /></>,
  running: <path d="M8 2a6 6 0 1 1-5.6 3.9" />,
  queued: <><circle cx="8" cy="8" r="5.5" /><path d="M8 5v3h2.500" /></>,
  done: <path d="m2.5 8.5 3.5 3.5 7.5-8" />,
  error: <><path class="fill" d="M5 .8h6L15.2 5v6L11 15.2H5L.8 11V5Z" /><path class="cut" d="m5.3 5.3 5.4 5.4m0-5.4-5.4 5.4" /></>,
  denied: <><circle cx="8" cy="8" r="6" /><path d="m3.8 3.8 8.4 8.4" /></>,
  interrupted: <rect class="fill" x="3" y="3" width="10" height="10" rx="1" />,
  cut: <path d="M1 8h5M10 8h5M8 3v3M8 10v3" />,
  not_dispatched: <circle cx="8" cy="8" r="5.5" />,
  indeterminate: <><path d="M8 1.8 15 14H1Z" /><path d="M8 6.2v3.6M8 11.6v.6" /></>,
  unrecorded: <circle cx="8" cy="8" r="5.5" stroke-dasharray="2 2.3" />,
};

export const StateIcon = ({ status, word = false }: { status: Status; word?: boolean }) =>
  <svg class={`icon i-${status}`} viewBox="0 0 16 16" width="14" height="14" fill="none" role={word ? "img" : undefined} aria-label={word ? WORDS[status] : undefined} aria-hidden={word ? undefined : true}>{SHAPES[status]}</svg>;

const GLYPHS = {
  search: <><circle cx="7" cy="7" r="4.5" /><path d="m10.5 10.5 4 4" /></>,
  home: <path d="M2 7.5 8 2l6 5.5V14H2Z" />,
  list: <path d="M2 4h12M2 8h12M2 12h8" />,
  bars: <path d="M2 3h6M4 7h7M7 11h7" />,
  usage: <path d="M3 14V9M8 14V3M13 14V6" />,
  trash: <path d="M2.5 4h11M6 4V2h4v2M4 4l.7 10h6.6L12 4" />,
  settings: <><path d="M2 5h8M13.5 5H14M2 11h1M7 11h7" /><circle cx="11.5" cy="5" r="1.8" /><circle cx="5" cy="11" r="1.8" /></>,
  plus: <path d="M8 2v12M2 8h12" />,
  more: <path d="M3 8h.01M8 8h.01M13 8h.01" stroke-width="2.6" stroke-linecap="round" />,
  model: <path d="M8 1.5 9.7 6.3 14.5 8 9.7 9.7 8 14.5 6.3 9.7 1.5 8l4.8-1.7Z" />,
  person: <><circle cx="8" cy="5" r="3" /><path d="M2.5 14.5c.5-4 10.500-4 11 0" /></>,
  close: <path d="m3 3 10 10M13 3 3 13" />,
};
export const Glyph = ({ name }: { name: keyof typeof GLYPHS }) =>
  <svg class="icon glyph" viewBox="0 0 16 16" width="15" height="15" fill="none" aria-hidden="true">{GLYPHS[name]}</svg>;

export const Bars = () => <div class="bars" role="status" aria-label="Loading"><i /><i /><i /></div>;

// What went wrong in a view, with a button to try again: everything that waits for the server is requested
// again.
export const Problem = ({ of }: { of: ReadonlySignal<string> }) => of.value ? <p class="problem" role="alert">{of} <button type="button" class="small" data-act="again" onClick={() => { comebacks.value++; }}>Try again</button></p> : null;

// Shown instead of what was not loaded yet: bars while it is loading, and the cause while it cannot be loaded.
const away = computed(() => (connection.value === "lost" ? "Not loaded: the server cannot be reached. The page tries again by itself." : ""));
export const Unloaded = () => away.value ? <Problem of={away} /> : <Bars />;
