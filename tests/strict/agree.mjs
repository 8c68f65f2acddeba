// The corpus, the strict judges and `steno check-history` agree about each hand-written history.
//
// corpus/PROVIDER.jsonl holds {name, verdict: "ok" | "refused", rule?, history} a line, in the
// provider's own shape. disagreements.json names those histories about which check-history is known
// to be wrong still, by provider. It only shrinks: an entry about which check-history is right by now
// is an error here, and so is an entry that the corpus does not have. It ends empty. A run with --prune
// removes what is out of date.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { check, needTypes, providers, rules } from "./judges.mjs";
import { done, here, json, pooled, report, run, steno } from "./tap.mjs";

needTypes();
const corpus = Object.fromEntries(
  providers.map((p) => [
    p,
    readFileSync(join(here, "corpus", `${p}.jsonl`), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ]),
);
const known = json("disagreements.json");

for (const p of providers) {
  const found = corpus[p].map((e) => check(p, e.history));
  const wrong = corpus[p].flatMap((e, i) => {
    const right = e.verdict === "ok" ? found[i].length === 0 : found[i].some((v) => v.rule === e.rule);
    return right
      ? []
      : [`${e.name}: the corpus says ${e.rule ?? "ok"}, the endpoint ${JSON.stringify(found[i])}`];
  });
  report(
    wrong.length === 0,
    `${p}: the endpoint judges ${corpus[p].length} histories as the corpus says`,
    wrong,
  );
  const idle = Object.keys(rules[p]).filter((r) => !corpus[p].some((e) => e.rule === r));
  report(
    idle.length === 0,
    `${p}: each of ${Object.keys(rules[p]).length} rules refuses a history of the corpus`,
    idle,
  );
  report(
    new Set(corpus[p].map((e) => e.name)).size === corpus[p].length,
    `${p}: each history has a name of its own`,
  );
}
const all = providers.flatMap((p) => corpus[p]).length;
report(all >= 250, `the corpus has at least 250 histories: ${all}`);

for (const p of providers) {
  const answers = await pooled(corpus[p], (e) =>
    run(steno, ["check-history", "--for", p], JSON.stringify(e.history)),
  );
  const off = corpus[p].filter((e, i) => answers[i].status !== (e.verdict === "ok" ? 0 : 3));
  const listed = new Set(known[p] ?? []);
  const news = off.filter((e) => !listed.has(e.name));
  report(
    news.length === 0,
    `${p}: check-history agrees about ${corpus[p].length - off.length} of ${corpus[p].length}` +
      ` histories, and the other ${off.length} are known`,
    news.map(
      (e) =>
        `${e.name} (${e.rule ?? "ok"}): ${said(answers[corpus[p].indexOf(e)])}\n  ${JSON.stringify(e.history).slice(0, 300)}`,
    ),
  );
  const stale = [...listed].filter((name) => !off.some((e) => e.name === name));
  if (process.argv.includes("--prune"))
    known[p] = stale.splice(0) && [...listed].filter((name) => off.some((e) => e.name === name));
  report(
    stale.length === 0,
    `${p}: no known disagreement is out of date`,
    stale.map((s) => `remove from disagreements.json: ${s}`),
  );
}
if (process.argv.includes("--prune"))
  writeFileSync(join(here, "disagreements.json"), JSON.stringify(known, null, 2) + "\n");
done();

function said({ status, stdout, stderr }) {
  return `exit ${status}: ${(stdout + stderr).trim().split("\n").slice(0, 3).join(" / ")}`;
}
