#!/usr/bin/env node
/*
 * Verifies seals with nothing but Node's own crypto and the formats of docs/seals.md.
 *
 *   independent.mjs proof KEY <proof.json     a proof of steno prove
 *   independent.mjs store KEY FOLDER          every checkpoint of a store, from its files
 *
 * Shares no code with Steno. Prints "right", or what is wrong, and exits with 1.
 */
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync, readdirSync, existsSync } from "node:fs";
import { join } from "node:path";

const sha = (...pieces) => pieces.reduce((h, p) => h.update(p), createHash("sha256")).digest();
const leafOf = (bytes) => sha(Buffer.from([0]), bytes);
const nodeOf = (a, b) => sha(Buffer.from([1]), a, b);
const fail = (why) => { console.log(why); process.exit(1); };

function keyOf(text) {
  const [name, id, coded] = text.trim().split("+").length === 3 ? text.trim().split("+") :
    [text.trim().split("+")[0], text.trim().split("+")[1], text.trim().split("+").slice(2).join("+")];
  const bytes = Buffer.from(coded, "base64");
  if (bytes.length !== 33 || bytes[0] !== 1) fail("not an Ed25519 key");
  const raw = bytes.subarray(1);
  const want = sha(Buffer.from(name + "\n"), Buffer.from([1]), raw).subarray(0, 4);
  if (want.toString("hex") !== id) fail("the key's id is wrong");
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]);
  return { name, id: want, key: createPublicKey({ key: der, format: "der", type: "spki" }) };
}

/* Splits a file of signed notes. */
function notesOf(text) {
  const notes = [];
  const lines = text.split("\n");
  for (let i = 0; i < lines.length;) {
    if (lines[i] === "") { i++; continue; }
    const from = i;
    while (lines[i] !== "") i++;
    const body = lines.slice(from, i).join("\n") + "\n";
    i++;
    const signatures = [];
    while (i < lines.length && lines[i].startsWith("\u2014 ")) signatures.push(lines[i++].slice(2));
    const [origin, size, root, ...more] = body.split("\n");
    notes.push({ body, origin, size: Number(size), root: Buffer.from(root, "base64"), signatures, more });
  }
  return notes;
}

function checkSignature(note, key) {
  for (const line of note.signatures) {
    const [name, coded] = line.split(" ");
    const bytes = Buffer.from(coded, "base64");
    if (name === key.name && bytes.subarray(0, 4).equals(key.id))
      return verify(null, Buffer.from(note.body), key.key, bytes.subarray(4));
  }
  return false;
}

/* RFC 6962, written the slow way on purpose. */
function rootOf(leaves) {
  if (leaves.length === 0) return sha();
  if (leaves.length === 1) return leaves[0];
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return nodeOf(rootOf(leaves.slice(0, k)), rootOf(leaves.slice(k)));
}

/* RFC 9162, 2.1.3.2. */
function climb(leaf, index, size, hashes) {
  let fn = index, sn = size - 1, r = leaf;
  if (index >= size) fail("the index is behind the tree");
  for (const p of hashes) {
    if (sn === 0) fail("too many hashes");
    if (fn % 2 === 1 || fn === sn) {
      r = nodeOf(p, r);
      while (fn % 2 === 0 && fn !== 0) { fn = fn / 2; sn = Math.floor(sn / 2); }
    } else {
      r = nodeOf(r, p);
    }
    fn = Math.floor(fn / 2); sn = Math.floor(sn / 2);
  }
  if (sn !== 0) fail("too few hashes");
  return r;
}

/* The line of a record as it is sealed: without group and crc. */
function sealedLine(line) {
  const end = line.lastIndexOf(',"crc":"');
  const body = line.subarray(0, end);
  const at = body.indexOf(',"batch":[') + 10;
  const close = body.indexOf("]", at);
  const batch = body.subarray(at, close).toString().split(",").slice(0, 2).join(",");
  return Buffer.concat([body.subarray(0, at), Buffer.from(batch), body.subarray(close), Buffer.from("}")]);
}

function leafOfRecord(line) {
  const record = JSON.parse(line.toString());
  return record.x.kind === "tombstone" && record.x.leaf ? Buffer.from(record.x.leaf, "hex") :
    leafOf(sealedLine(line));
}

function linesOf(path) {
  const bytes = readFileSync(path), lines = [];
  for (let at = 0; at < bytes.length;) {
    const lf = bytes.indexOf(10, at);
    lines.push(bytes.subarray(at, lf));
    at = lf + 1;
  }
  return lines;
}

function checkTree(what, notes, leaves, key) {
  for (const note of notes) {
    if (!checkSignature(note, key)) fail(`${what}: a signature is wrong`);
    if (note.size > leaves.length) fail(`${what}: fewer leaves than a checkpoint says`);
    if (!rootOf(leaves.slice(0, note.size)).equals(note.root)) fail(`${what}: a root is wrong`);
  }
}

const [mode, keyText, folder] = process.argv.slice(2);
const key = keyOf(keyText);
if (mode === "proof") {
  const proof = JSON.parse(readFileSync(0));
  const [note] = notesOf(proof.checkpoint);
  if (!checkSignature(note, key)) fail("the signature is wrong");
  if (note.size !== proof.size) fail("the size is wrong");
  const leaf = proof.record === null ? Buffer.from(proof.leaf, "hex") : leafOf(Buffer.from(proof.record));
  if (proof.record !== null && JSON.parse(proof.record).seq !== proof.index + 1) fail("the seq is wrong");
  const root = climb(leaf, proof.index, proof.size, proof.hashes.map((h) => Buffer.from(h, "base64")));
  if (!root.equals(note.root)) fail("the root is wrong");
} else {
  const log = join(folder, "seal");
  checkTree("log", notesOf(readFileSync(join(log, "checkpoints"), "utf8")),
    linesOf(join(log, "log.jsonl")).map(leafOf), key);
  let trees = 0;
  for (const project of readdirSync(join(folder, "projects"))) {
    const conversations = join(folder, "projects", project, "conversations");
    for (const name of readdirSync(conversations)) {
      const seal = join(conversations, name, "seal");
      if (!existsSync(seal)) continue;
      const meta = JSON.parse(readFileSync(join(conversations, name, "meta.json"), "utf8"));
      const conv = sha(Buffer.from(`${meta.project}\0${meta.id}\0${meta.uid}`)).toString("hex");
      const notes = notesOf(readFileSync(join(seal, "checkpoints"), "utf8"));
      const leaves = linesOf(join(conversations, name, "messages.jsonl")).map(leafOfRecord);
      if (notes.some((n) => n.origin !== `steno/conversation/${conv}`)) fail(`${name}: the origin is wrong`);
      checkTree(name, notes, leaves, key);
      const kept = readFileSync(join(seal, "leaves"));
      if (!kept.equals(Buffer.concat(leaves.slice(0, notes.at(-1).size)))) fail(`${name}: leaves are wrong`);
      trees++;
    }
  }
  if (trees === 0) fail("nothing is sealed");
}
console.log("right");
