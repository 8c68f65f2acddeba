// What fails in a test of this folder: by section and rule, each with the smallest history that shows
// it.
import { report, shown } from "./tap.mjs";

// Histories that a view or the loop once got wrong; every run tries them again.
export const onceWrong = [
  449811154, 66921930, 568364382, 605857342, 825538533, 13513529, 3789912051, 985081073, 2131140020, 651839753,
  28534706, 44872430, 173475122, 3814565648, 3838833508, 3905126965, 776397367,
];

export class Failures {
  constructor() {
    this.sections = new Map();
  }

  // One failure; of each rule the smallest example is shown.
  add(section, rule, seed, text, size = text.length) {
    const rules = this.sections.get(section) ?? new Map();
    this.sections.set(section, rules);
    const entry = rules.get(rule) ?? { count: 0, size: Infinity };
    rules.set(rule, entry);
    entry.count++;
    if (size < entry.size) Object.assign(entry, { size, text: seed ? `seed ${seed}, ${text}` : text });
  }

  // A test of a section: nothing failed.
  report(section, claim) {
    const found = [...(this.sections.get(section) ?? [])];
    report(
      found.length === 0,
      claim,
      found.map(([rule, e]) => `${rule}: ${e.count} times; ${shown(e.text, 4000)}`),
    );
  }
}
