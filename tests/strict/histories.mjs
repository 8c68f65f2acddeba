// Random histories in every format that Steno reads, valid and damaged: a story is told in a format, and
// then its messages may be damaged.
import { onceWrong } from "./failures.mjs";
import { chance, serial, story } from "./story.mjs";
import { pick, random, reseed } from "./tap.mjs";
import { laterTellers, tellers } from "./tellers.mjs";

const at = (l) => random(Math.max(1, l.length));
const damages = [
  function one_is_missing(l) {
    l.splice(at(l), 1);
  },
  function cut(l) {
    l.length = Math.min(l.length, 1 + random(l.length + 1));
  },
  function starts_late(l) {
    l.splice(0, random(l.length));
  },
  function twice(l) {
    if (l.length) l.splice(at(l), 0, structuredClone(l[at(l)]));
  },
  function swapped(l) {
    if (l.length > 1) {
      const i = random(l.length - 1);
      [l[i], l[i + 1]] = [l[i + 1], l[i]];
    }
  },
  function moved(l) {
    if (l.length) {
      const [m] = l.splice(at(l), 1);
      l.splice(random(l.length + 1), 0, m);
    }
  },
  function from_another_history(l, other) {
    if (other.length) l.splice(random(l.length + 1), 0, pick(other));
  },
  function all_turned(l) {
    if (chance(4)) l.reverse();
  },
];

// {kind, format, messages}: what is appended, and in which format. The same seed gives the same history.
export function history(seed) {
  reseed(seed);
  serial.made = 10;
  const later = seed % 5 === 3 && !onceWrong.includes(seed);
  const known = later ? laterTellers : tellers;
  const kind = pick(Object.keys(known));
  const [tell, format = kind] = known[kind];
  const messages = tell(story());
  for (let d = chance(3) ? 0 : 1 + random(3); d > 0; d--) pick(damages)(messages, tell(story()));
  return { kind, format, messages };
}
export const kindsOfHistories = [...Object.keys(tellers), ...Object.keys(laterTellers)];
