// What the judges share and no type expresses: surrogates, base64, URLs, the first bytes of images.

// A path to each string of a JSON value that holds half of a surrogate pair, member names included.
export function loneSurrogates(value, path) {
  if (typeof value === "string") return lone(value) ? [path] : [];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, v]) => [
    ...(lone(key) ? [path] : []),
    ...loneSurrogates(v, `${path}.${key}`),
  ]);
}
const lone = (s) => /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(s);

export const isBase64 = (s) => s.length > 0 && s.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(s);

export function dataUrl(url) {
  const m = /^data:([^;,]*)((?:;[^;,]*)*),(.*)$/s.exec(url);
  return m && { mediaType: m[1], base64: /;base64$/.test(m[2]), data: m[3] };
}

export function isWebUrl(url, schemes = ["http:", "https:"]) {
  try {
    const u = new URL(url);
    return schemes.includes(u.protocol) && u.hostname !== "";
  } catch {
    return false;
  }
}

// What an image is by its first bytes, or undefined.
export function imageType(base64) {
  const b = Buffer.from(base64.slice(0, 24), "base64");
  const has = (at, ...bytes) => bytes.every((x, i) => b[at + i] === x);
  if (has(0, 0x89, 0x50, 0x4e, 0x47)) return "image/png";
  if (has(0, 0xff, 0xd8, 0xff)) return "image/jpeg";
  if (has(0, 0x47, 0x49, 0x46, 0x38)) return "image/gif";
  if (has(0, 0x52, 0x49, 0x46, 0x46) && has(8, 0x57, 0x45, 0x42, 0x50)) return "image/webp";
  return undefined;
}

export const isObject = (v) => v !== null && typeof v === "object" && !Array.isArray(v);
export const isBlank = (s) => typeof s === "string" && s.trim() === "";

// A list that collects violations. Only rules of the table may be named, so each has a source.
export class Findings {
  constructor(rules) {
    Object.assign(this, { rules, list: [] });
  }

  add(rule, at, text, call) {
    if (!(rule in this.rules)) throw new Error(`no such rule: ${rule}`);
    this.list.push({ rule, at, text, ...(call !== undefined && { call }) });
  }

  addAll(violations, at) {
    for (const v of violations) this.add(v.rule, at, v.text);
  }
}

// The rules that follow from the types; every judge has them.
export const typeRules = {
  unknown_member: "type declarations: a member that the type does not have",
  missing_member: "type declarations: a member that must be there",
  member_type: "type declarations: a value of another type, or of no known kind",
  lone_surrogate:
    "github.com/anthropics/claude-code/issues/68325, github.com/anomalyco/opencode/pull/17758: " +
    '"The request body is not valid JSON: no low surrogate in string", at every strict JSON parser',
};
