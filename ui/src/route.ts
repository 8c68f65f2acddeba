// Where the reader is, kept in the fragment: #token=...&/c/<conversation>/o/<ref>/L<line>. The token is part of
// the address, because nothing else survives a reload: it is never stored. The place within the view (the row,
// how far down, the focus) is in the state of the history's entry, so that Back returns to the same place.
import { signal } from "@preact/signals";

export type View = "home" | "conversation" | "output" | "timeline" | "search" | "usage" | "trash" | "settings" | "new" | "list";
export interface Route {
  view: View;
  id: string;
  message?: string; // a message, and
  call?: string; // or a call of it
  from?: number; // the seq its page begins with
  ref?: string;
  line?: number;
  column?: number;
  query?: string;
}

const token = signal("");
export const currentToken = () => token.value;
export const route = signal<Route>({ view: "home", id: "" });

const decode = (s: string | undefined) => {
  try { return decodeURIComponent(s ?? ""); } catch { return s ?? ""; }
};

function parseOutput(id: string, p: string[]): Route {
  const r: Route = { view: "output", id, ref: decode(p[3]) };
  for (let i = 4; i < p.length; i++) {
    const line = /^L(\d{1,15})$/.exec(p[i] ?? ""), column = /^C(\d{1,15})$/.exec(p[i] ?? "");
    if (line) r.line = Number(line[1]);
    else if (column) r.column = Number(column[1]);
    else if (p[i] === "q") r.query = decode(p[++i]);
  }
  return r;
}

const PLAIN = new Set(["usage", "trash", "settings", "new", "list"]);
export function parsePath(path: string): Route {
  const p = path.split("/").slice(1);
  if (p[0] === "stats") return { view: "usage", id: "" };
  if (PLAIN.has(p[0] ?? "")) return { view: p[0] as View, id: "" };
  if (p[0] === "search") return { view: "search", id: "", query: decode(p[1]) };
  if (p[0] !== "c" || !p[1]) return { view: "home", id: "" };
  const id = decode(p[1]);
  if (p[2] === "timeline") return { view: "timeline", id };
  if ((p[2] === "m" || p[2] === "k") && p[3]) {
    const at = p[3].lastIndexOf("@");
    const what = decode(at < 0 ? p[3] : p[3].slice(0, at)), from = Number(at < 0 ? 1 : p[3].slice(at + 1)) || 1;
    return { view: "conversation", id, from, ...(p[2] === "m" ? { message: what } : { call: what }) };
  }
  if (p[2] === "o" && p[3]) return parseOutput(id, p);
  return { view: "conversation", id };
}

export function pathOf(r: Route): string {
  const e = encodeURIComponent;
  if (r.view === "home") return "/";
  if (PLAIN.has(r.view)) return `/${r.view}`;
  if (r.view === "search") return `/search/${e(r.query ?? "")}`;
  if (r.view === "timeline") return `/c/${e(r.id)}/timeline`;
  if (r.view === "output")
    return `/c/${e(r.id)}/o/${e(r.ref ?? "")}${r.line ? `/L${r.line}` : ""}${r.column ? `/C${r.column}` : ""}${r.query ? `/q/${e(r.query)}` : ""}`;
  const at = r.call !== undefined ? `/k/${e(r.call)}@${r.from ?? 1}` : r.message !== undefined ? `/m/${e(r.message)}@${r.from ?? 1}` : "";
  return `/c/${e(r.id)}${at}`;
}

const fragment = (path: string) => `#${token.peek() ? `token=${token.peek()}&` : ""}${path}`;
export const hrefOf = (r: Route) => fragment(pathOf(r));
// A link to give to others: without the token.
export const sharedLink = (r: Route) => `${location.origin}/#${pathOf(r)}`;

// ---- the place within a view ----
export interface Place { path: string; from?: number; row?: string; top?: number; focus?: string }
let saver: (() => Omit<Place, "path"> | null) | null = null;
export const keepPlace = (f: (() => Omit<Place, "path"> | null) | null) => { saver = f; };
export function savePlace() {
  const p = saver?.();
  if (p) history.replaceState({ place: { ...p, path: pathOf(route.peek()) } }, "");
}
// The place of this entry, if it was noted.
export function placeHere(): Place | null {
  const p = (history.state as { place?: Place } | null)?.place;
  return p && p.path === pathOf(route.peek()) ? p : null;
}

// The conversation from which the reader came here, if there is one.
let leftFor = "";
export const cameFromConversation = (id: string) => leftFor === id;

function read() {
  let path = "/";
  let given = "";
  for (const part of location.hash.slice(1).split("&")) {
    if (part.startsWith("token=")) given = part.slice(6);
    else if (part.startsWith("/")) path = part;
  }
  if (given) token.value = given;
  if (token.peek() && !given) history.replaceState(history.state, "", fragment(path));
  arrive(parsePath(path));
}

function arrive(next: Route) {
  const was = route.peek();
  if (pathOf(next) === pathOf(was)) return;
  if (next.view !== "output" || was.view !== "output") leftFor = next.view === "output" && was.view === "conversation" ? was.id : "";
  route.value = next;
}

export function startRouting() {
  history.scrollRestoration = "manual";
  addEventListener("hashchange", read);
  addEventListener("popstate", read);
  // A link within the page first notes the present place.
  addEventListener("click", (e) => { if ((e.target as Element | null)?.closest?.("a[href^='#']")) savePlace(); }, true);
  read();
}

export function go(r: Route, replace = false) {
  const to = hrefOf(r);
  if (to !== location.hash) {
    if (!replace) savePlace();
    history[replace ? "replaceState" : "pushState"](null, "", to);
  }
  arrive(r);
}

export function useToken(given: string) {
  token.value = given.trim().replace(/^.*token=/, "").replace(/&.*$/, "");
  history.replaceState(null, "", fragment(pathOf(route.peek())));
}
