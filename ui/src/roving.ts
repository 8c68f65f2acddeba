// One stop of the Tab key for a group of controls: the arrow keys move inside the group, and it remembers its
// place. `which` selects the controls, `first` the one that gets the focus before any of them had it.
import { useEffect, useRef } from "preact/hooks";

export function useRoving<T extends HTMLElement>(which: string, first: string = which) {
  const box = useRef<T>(null);
  useEffect(() => {
    const el = box.current!;
    let last: Element | null = null;
    const all = () => [...el.querySelectorAll<HTMLElement>(which)].filter((x) => x.offsetParent);
    const tidy = () => {
      const list = all();
      const stop = list.find((x) => x === last) ?? list.find((x) => x.matches(first) && x.ariaCurrent) ?? list.find((x) => x.matches(first)) ?? list[0];
      for (const x of list) x.tabIndex = x === stop ? 0 : -1;
    };
    const focused = (e: Event) => { const at = all().find((x) => x === e.target); if (at) { last = at; tidy(); } };
    const walk = (e: KeyboardEvent) => {
      const by = /^Arrow(Down|Right)$/.test(e.key) ? 1 : /^Arrow(Up|Left)$/.test(e.key) ? -1 : 0;
      const list = all(), at = list.indexOf(e.target as HTMLElement);
      const next = at < 0 || e.ctrlKey || e.metaKey || e.altKey ? undefined : by ? list[at + by] : e.key === "Home" ? list[0] : e.key === "End" ? list.at(-1) : undefined;
      if (next) { e.preventDefault(); next.focus(); }
    };
    const watch = new MutationObserver(tidy);
    watch.observe(el, { childList: true, subtree: true, attributes: true, attributeFilter: ["hidden", "class", "aria-current"] });
    addEventListener("resize", tidy);
    el.addEventListener("focusin", focused);
    el.addEventListener("keydown", walk);
    tidy();
    return () => { watch.disconnect(); removeEventListener("resize", tidy); el.removeEventListener("focusin", focused); el.removeEventListener("keydown", walk); };
  }, []);
  return box;
}
