// Where the reader is, kept in the fragment: #token=...&/c/<conversation>/o/<ref>/L<line>.
// The token is part of the address, because nothing else survives a reload: it is never stored.
import { signal } from "@preact/signals";

export interface Route {
  view: "home" | "conversation" | "output" | "stats";
  id: string;
  message?: string; // a message, and
  from?: number; // the seq its page begins with
  ref?: string;
  line?: number;
  query?: string;
}

const token = signal("");
export const currentToken = () => token.value;
export const route = signal<Route>({ view: "home", id: "" });

const decode = (s: string | undefined) => {
  try { return decodeURIComponent(s ?? ""); } catch { return s ?? ""; }
};

export function parsePath(path: string): Route {
  const p = path.split("/").slice(1);
  if (p[0] === "stats") return { view: "stats", id: "" };
  if (p[0] !== "c" || !p[1]) return { view: "home", id: "" };
  const id = decode(p[1]);
  if (p[2] === "m" && p[3]) {
    const [message, from] = p[3].split("@");
    return { view: "conversation", id, message: decode(message), from: Number(from) || 1 };
  }
  if (p[2] === "o" && p[3]) {
    const r: Route = { view: "output", id, ref: decode(p[3]) };
    for (let i = 4; i < p.length; i++) {
      const line = /^L(\d{1,15})$/.exec(p[i] ?? "");
      if (line) r.line = Number(line[1]);
      else if (p[i] === "q") r.query = decode(p[++i]);
    }
    return r;
  }
  return { view: "conversation", id };
}

export function pathOf(r: Route): string {
  const e = encodeURIComponent;
  if (r.view === "stats") return "/stats";
  if (r.view === "home") return "/";
  if (r.view === "output")
    return `/c/${e(r.id)}/o/${e(r.ref ?? "")}${r.line ? `/L${r.line}` : ""}${r.query ? `/q/${e(r.query)}` : ""}`;
  return `/c/${e(r.id)}${r.message ? `/m/${e(r.message)}@${r.from ?? 1}` : ""}`;
}

const fragment = (path: string) => `#${token.peek() ? `token=${token.peek()}&` : ""}${path}`;
export const hrefOf = (r: Route) => fragment(pathOf(r));
// To hand on: without the token.
export const sharedLink = (r: Route) => `${location.origin}/#${pathOf(r)}`;

function read() {
  let path = "/";
  let given = "";
  for (const part of location.hash.slice(1).split("&")) {
    if (part.startsWith("token=")) given = part.slice(6);
    else if (part.startsWith("/")) path = part;
  }
  if (given) token.value = given;
  if (token.peek() && !given) history.replaceState(null, "", fragment(path));
  const next = parsePath(path);
  if (pathOf(next) !== pathOf(route.peek())) route.value = next;
}

export function startRouting() {
  addEventListener("hashchange", read);
  addEventListener("popstate", read);
  read();
}

export function go(r: Route, replace = false) {
  const to = hrefOf(r);
  if (to !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", to);
  if (pathOf(r) !== pathOf(route.peek())) route.value = r;
}

export function useToken(given: string) {
  token.value = given.trim().replace(/^.*token=/, "").replace(/&.*$/, "");
  history.replaceState(null, "", fragment(pathOf(route.peek())));
}
