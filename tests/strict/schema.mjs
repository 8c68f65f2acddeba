// Checks a value against the schemas of generate.mjs. It knows the keywords that are generated there
// and no others, and it says of a union which member was meant, so that the first violation is the
// one that a person would look for.

const kindOf = (v) => (v === null ? "null" : Array.isArray(v) ? "array" : typeof v);
const stated = (s, key) =>
  s.properties?.[key] && ("const" in s.properties[key] || "enum" in s.properties[key]);

export class Schemas {
  constructor(all) {
    this.all = all;
  }

  // Violations of one root type: [{rule, path, text}].
  check(root, value, path) {
    return this.violations(this.all[root], value, path);
  }

  resolve(schema) {
    return schema.$ref ? this.all.$defs[schema.$ref.slice("#/$defs/".length)] : schema;
  }

  violations(given, value, path) {
    const s = this.resolve(given);
    if (s.anyOf) return this.ofUnion(s.anyOf, value, path);
    if ("const" in s) return value === s.const ? [] : [wrong(path, `must be ${JSON.stringify(s.const)}`)];
    if (s.enum) return s.enum.includes(value) ? [] : [wrong(path, `must be one of ${s.enum.join(", ")}`)];
    if (!s.type) return [];
    if (kindOf(value) !== s.type) return [wrong(path, `must be of type ${s.type}, not ${kindOf(value)}`)];
    if (s.contentEncoding === "base64" && !/^[A-Za-z0-9+/_-]*={0,2}$/.test(value))
      return [{ rule: "base64", path, text: `${path} must be base64` }];
    if (s.type === "array") return value.flatMap((v, i) => this.violations(s.items, v, `${path}[${i}]`));
    return s.type === "object" ? this.ofObject(s, value, path) : [];
  }

  ofObject(s, value, path) {
    const found = (s.required ?? [])
      .filter((key) => !(key in value))
      .map((key) => ({ rule: "missing_member", path, text: `${path} must have ${key}` }));
    for (const [key, v] of Object.entries(value)) {
      const known =
        s.properties && Object.hasOwn(s.properties, key) ? s.properties[key] : s.additionalProperties;
      if (known === false) found.push({ rule: "unknown_member", path, text: `${path} must not have ${key}` });
      else found.push(...this.violations(known, v, `${path}.${key}`));
    }
    return found;
  }

  ofUnion(members, value, path) {
    const meant = this.meant(
      members.map((m) => this.resolve(m)),
      value,
    );
    if (meant.length === 0) return [wrong(path, "is of no known kind")];
    let best = null;
    for (const m of meant) {
      const found = this.violations(m, value, path);
      if (found.length === 0) return [];
      if (!best || weight(found) < weight(best)) best = found;
    }
    return best;
  }

  // The members of the union that fit by their JSON type, and for objects those whose constants (type,
  // role) fit.
  meant(members, value) {
    const flat = members.flatMap((m) => (m.anyOf ? m.anyOf.map((x) => this.resolve(x)) : [m]));
    const fits = flat.filter((m) => !m.type || m.type === kindOf(value));
    if (kindOf(value) !== "object") return fits;
    const tags = ["type", "role"];
    return fits.filter((m) => tags.every((key) => !stated(m, key) || this.tagFits(m, key, value)));
  }

  tagFits(m, key, value) {
    if (!(key in value)) return !(m.required ?? []).includes(key);
    return this.violations(m.properties[key], value[key], key).length === 0;
  }
}

// A missing or additional member counts less against a member of the union than one of another type.
const weight = (found) => found.reduce((n, v) => n + (v.rule === "member_type" ? 3 : 1), 0);
const wrong = (path, text) => ({ rule: "member_type", path, text: `${path} ${text}` });
