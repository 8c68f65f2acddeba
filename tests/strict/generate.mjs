// Generates JSON schemas of what a history may hold, from the type declarations that the providers
// publish in their npm packages: openai, @anthropic-ai/sdk and @google/genai. The TypeScript
// compiler resolves the types, so a view that passes these schemas also type-checks. Members that a
// type does not have are forbidden.
//
// @google/genai declares every member as optional and tells the rest in comments. These phrases of
// its comments are taken as part of the type:
//   "Required."                              the member must be there
//   "not supported in Gemini API"            the member exists on Vertex AI only, and is left out
//   "@remarks Encoded as base64 string."     the string is base64
//
// The result is cached in the build folder under a hash of this file and of the packages' versions.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const npm = resolve(here, "../npm");

// Each root is a type of a package; the schema of its values gets this name.
const roots = `
import type { ChatCompletionMessageParam } from "openai7/resources/chat/completions";
import type { ResponseInputItem } from "openai7/resources/responses/responses";
import type { MessageParam, TextBlockParam } from "@anthropic-ai/sdk/resources/messages/messages";
import type { Content } from "@google/genai";
export type openai = ChatCompletionMessageParam;
export type responses = ResponseInputItem;
export type anthropic = MessageParam;
export type anthropicSystem = string | Array<TextBlockParam>;
export type gemini = Content;
`;

export class NotInstalled extends Error {}

// The schemas by root name, with all definitions under $defs: from the cache, or made now.
export function schemas(build = process.env.STENO_BUILD || resolve(here, "../../build")) {
  const hash = createHash("sha256").update(readFileSync(fileURLToPath(import.meta.url)));
  for (const name of ["typescript", "openai7", "@anthropic-ai/sdk", "@google/genai"])
    hash.update(versionOf(name));
  const folder = join(build, "strict");
  const file = join(folder, `schemas-${hash.digest("hex").slice(0, 16)}.json`);
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (e) {
    if (e.code !== "ENOENT") throw e;
  }
  const made = generate();
  mkdirSync(folder, { recursive: true });
  const half = `${file}.${process.pid}`;
  writeFileSync(half, JSON.stringify(made, null, 1) + "\n");
  renameSync(half, file); // Two tests may do this at the same time.
  return made;
}

function versionOf(name) {
  try {
    return `${name}@${JSON.parse(readFileSync(join(npm, "node_modules", name, "package.json"), "utf8")).version}\n`;
  } catch (e) {
    if (e.code === "ENOENT") throw new NotInstalled(`${name} is not installed in tests/npm (make deps)`);
    throw e;
  }
}

// A program of one file that exists in memory only, beside node_modules.
function compile(text) {
  const ts = createRequire(join(npm, "package.json"))("typescript");
  const options = {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
  };
  const file = join(npm, "strict-roots.mts");
  const host = ts.createCompilerHost(options);
  const [read, exists] = [host.getSourceFile.bind(host), host.fileExists.bind(host)];
  host.fileExists = (name) => name === file || exists(name);
  host.getSourceFile = (name, ...rest) =>
    name === file ? ts.createSourceFile(name, text, options.target, true) : read(name, ...rest);
  const program = ts.createProgram([file], options, host);
  const source = program.getSourceFile(file);
  const wrong = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
  return { ts, program, source, wrong };
}

export function generate() {
  const { ts, program, source, wrong } = compile(roots);
  if (wrong.length) throw new Error(ts.flattenDiagnosticMessageText(wrong[0].messageText, "\n"));
  const writer = new Writer(ts, program.getTypeChecker());
  const made = {};
  for (const s of source.statements.filter(ts.isTypeAliasDeclaration))
    made[s.name.text] = writer.schemaOf(writer.checker.getTypeAtLocation(s.name));
  return { $schema: "https://json-schema.org/draft/2020-12/schema", ...made, $defs: writer.defs };
}

// A string enumeration of a declaration is its strings on the wire.
const wire = `
type Wire<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Wire<T[K]> } : T;
`;

// The compiler itself on histories, written out as literals of their type: [{provider, index, text}] for
// each that does not type-check. samples is {provider: [history]}.
export function typeCheck(samples) {
  const places = [];
  let text = roots + wire,
    line = text.split("\n").length;
  for (const [provider, histories] of Object.entries(samples))
    histories.forEach((history, index) => {
      text += `export const ${provider}${index}: Wire<${provider}>[] = ${JSON.stringify(history)};\n`;
      places[line++] = { provider, index };
    });
  const { ts, source, wrong } = compile(text);
  return wrong.map((d) => ({
    ...places[source.getLineAndCharacterOfPosition(d.start).line + 1],
    text: ts.flattenDiagnosticMessageText(d.messageText, " ").slice(0, 500),
  }));
}

class Writer {
  constructor(ts, checker) {
    Object.assign(this, { ts, checker, defs: {}, names: new Map() });
  }

  schemaOf(type) {
    const { TypeFlags } = this.ts;
    if (type.flags & (TypeFlags.Any | TypeFlags.Unknown)) return {};
    if (type.flags & TypeFlags.StringLiteral) return { const: type.value };
    if (type.flags & TypeFlags.NumberLiteral) return { const: type.value };
    if (type.flags & TypeFlags.BooleanLiteral) return { const: type.intrinsicName === "true" };
    if (type.flags & TypeFlags.StringLike) return { type: "string" };
    if (type.flags & TypeFlags.NumberLike) return { type: "number" };
    if (type.flags & TypeFlags.BooleanLike) return { type: "boolean" };
    if (type.flags & TypeFlags.Null) return { type: "null" };
    if (type.isUnion()) return this.unionOf(type.types);
    // `string & {}` is how open enumerations are written.
    if (type.isIntersection() && type.types.some((t) => t.flags & TypeFlags.String))
      return { type: "string" };
    if (this.checker.isArrayType(type))
      return { type: "array", items: this.schemaOf(this.checker.getTypeArguments(type)[0]) };
    if (type.flags & (TypeFlags.Object | TypeFlags.Intersection)) return this.objectOf(type);
    throw new Error(`no schema for ${this.checker.typeToString(type)}`);
  }

  unionOf(types) {
    const { TypeFlags } = this.ts;
    const members = types.filter((t) => !(t.flags & TypeFlags.Undefined)).map((t) => this.schemaOf(t));
    if (members.some((m) => Object.keys(m).length === 0)) return {};
    const constants = members.filter((m) => "const" in m).map((m) => m.const);
    const rest = members.filter((m) => !("const" in m));
    const both = constants.includes(true) && constants.includes(false);
    const others = constants.filter((c) => !(both && typeof c === "boolean"));
    const all = [
      ...rest,
      ...(both ? [{ type: "boolean" }] : []),
      ...(others.length > 1 ? [{ enum: others }] : others.length ? [{ const: others[0] }] : []),
    ];
    return all.length === 1 ? all[0] : { anyOf: all };
  }

  objectOf(type) {
    const known = this.names.get(type);
    if (known) return { $ref: `#/$defs/${known}` };
    const symbol = type.aliasSymbol ?? type.symbol;
    const plain = symbol ? this.checker.getFullyQualifiedName(symbol).replace(/^"[^"]*"\./, "") : "Object";
    let name = plain.replace(/[^A-Za-z0-9.]/g, "_");
    for (let i = 2; name in this.defs; i++) name = `${plain.replace(/[^A-Za-z0-9.]/g, "_")}.${i}`;
    this.names.set(type, name);
    this.defs[name] = {}; // Takes its place before its members are looked at: types may be recursive.
    const properties = {},
      required = [];
    for (const p of type.getProperties()) {
      const t = this.checker.getTypeOfSymbol(p);
      if (t.getCallSignatures().length) continue;
      const remarks =
        this.ts.displayPartsToString(p.getDocumentationComment(this.checker)) +
        " " +
        p
          .getJsDocTags(this.checker)
          .map((tag) => this.ts.displayPartsToString(tag.text))
          .join(" ");
      if (/not supported in Gemini API/.test(remarks)) continue;
      properties[p.name] = this.schemaOf(t);
      if (/Encoded as base64 string/.test(remarks)) properties[p.name].contentEncoding = "base64";
      const google = p.declarations?.[0]?.getSourceFile().fileName.includes("@google/genai");
      if (!(p.flags & this.ts.SymbolFlags.Optional) || (google && /^\s*Required\./.test(remarks)))
        required.push(p.name);
    }
    const open = this.checker.getIndexTypeOfType(type, this.ts.IndexKind.String);
    Object.assign(this.defs[name], {
      type: "object",
      properties,
      ...(required.length && { required }),
      additionalProperties: open ? this.schemaOf(open) : false,
    });
    return { $ref: `#/$defs/${name}` };
  }
}
