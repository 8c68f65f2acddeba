// known-failures.json: what is known to fail still, by section and rule, each with the seed of a history
// that shows it (0 where there is no chance in it). It only shrinks: a rule that its history no longer
// breaks has to be removed, and one that is not listed is an error. It ends empty.
//
// A test that is run with --prune removes what no longer fails from the list, and with --list prints all
// that fails in the form of the list. Prune with STENO_TEST_LONG=1: a small run misses what is rare.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { here, json, report, shown } from "./tap.mjs";

const known = json("known-failures.json");

// The seeds that have to be run so that sections can be told to be out of date.
export const knownSeeds = (...sections) =>
  sections.flatMap((s) => Object.values(known[s] ?? {})).filter((s) => s !== 0);

export class Failures {
  constructor() {
    this.sections = new Map();
  }

  // One failure; of each rule the smallest example is shown.
  add(section, rule, seed, text, size = text.length) {
    const rules = this.sections.get(section) ?? new Map();
    this.sections.set(section, rules);
    const entry = rules.get(rule) ?? { count: 0, seeds: new Set(), size: Infinity };
    rules.set(rule, entry);
    entry.count++;
    entry.seeds.add(seed);
    if (size < entry.size) Object.assign(entry, { size, seed, text: seed ? `seed ${seed}, ${text}` : text });
  }

  // Two tests of a section: nothing but what is known fails, and all that is known still does.
  report(section, claim) {
    const listed = known[section] ?? {},
      found = Object.fromEntries(this.sections.get(section) ?? []);
    const news = Object.entries(found).filter(([rule]) => !(rule in listed));
    const n = Object.keys(listed).length;
    report(
      news.length === 0,
      claim + (n ? `, but for ${n} known rules` : ""),
      news.map(([rule, e]) => `${rule}: ${e.count} times; ${shown(e.text, 4000)}`),
    );
    if (process.argv.includes("--prune")) this.prune(section, listed, found);
    const stale = Object.entries(listed).filter(([rule, seed]) => !found[rule]?.seeds.has(seed));
    report(
      stale.length === 0,
      `${section}: no known failure is out of date`,
      stale.map(([rule]) => `remove from known-failures.json: ${section}, ${rule}`),
    );
    if (process.argv.includes("--list"))
      console.log(
        JSON.stringify({
          [section]: Object.fromEntries(Object.entries(found).map(([rule, e]) => [rule, e.seed])),
        }),
      );
  }

  prune(section, listed, found) {
    for (const rule of Object.keys(listed)) {
      if (!found[rule]) delete listed[rule];
      else if (!found[rule].seeds.has(listed[rule])) listed[rule] = found[rule].seed;
    }
    if (Object.keys(listed).length === 0) delete known[section];
    writeFileSync(join(here, "known-failures.json"), JSON.stringify(known, null, 2) + "\n");
  }
}
