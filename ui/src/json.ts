// JSON for display, without any loss: numbers keep their spelling, members that occur twice are shown twice,
// and what is not JSON is not taken for it.
export type Json =
  | { t: "string"; v: string }
  | { t: "number" | "word"; v: string }
  | { t: "array"; v: Json[] }
  | { t: "object"; v: [string, Json][] };

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;
const DEEPEST = 400;

class Reader {
  at = 0;
  constructor(readonly s: string) {}
  space() { SPACE.lastIndex = this.at; SPACE.exec(this.s); this.at = SPACE.lastIndex; }
  match(r: RegExp): string | null {
    r.lastIndex = this.at;
    const m = r.exec(this.s);
    if (m) this.at = r.lastIndex;
    return m ? m[0] : null;
  }
  fail(): never { throw new SyntaxError(`not JSON at ${this.at}`); }
  string(): string { const raw = this.match(STRING); return raw === null ? this.fail() : JSON.parse(raw) as string; }
  value(depth: number): Json {
    this.space();
    const c = this.s[this.at];
    if (depth > DEEPEST) this.fail();
    if (c === '"') return { t: "string", v: this.string() };
    if (c === "{") return this.object(depth);
    if (c === "[") return this.array(depth);
    for (const w of ["true", "false", "null"]) if (this.s.startsWith(w, this.at)) { this.at += w.length; return { t: "word", v: w }; }
    const n = this.match(NUMBER);
    return n === null || n === "" ? this.fail() : { t: "number", v: n };
  }
  private object(depth: number): Json {
    const out: [string, Json][] = [];
    this.at++;
    this.space();
    if (this.s[this.at] === "}") { this.at++; return { t: "object", v: out }; }
    for (;;) {
      this.space();
      const key = this.string();
      this.space();
      if (this.s[this.at++] !== ":") this.fail();
      out.push([key, this.value(depth + 1)]);
      this.space();
      const c = this.s[this.at++];
      if (c === "}") return { t: "object", v: out };
      if (c !== ",") this.fail();
    }
  }
  private array(depth: number): Json {
    const out: Json[] = [];
    this.at++;
    this.space();
    if (this.s[this.at] === "]") { this.at++; return { t: "array", v: out }; }
    for (;;) {
      out.push(this.value(depth + 1));
      this.space();
      const c = this.s[this.at++];
      if (c === "]") return { t: "array", v: out };
      if (c !== ",") this.fail();
    }
  }
}

export function readJson(s: string): Json | null {
  try {
    const r = new Reader(s);
    const v = r.value(0);
    r.space();
    return r.at === s.length ? v : null;
  } catch { return null; }
}
