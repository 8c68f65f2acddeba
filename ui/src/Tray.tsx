// Calls that wait for a person, in every view: a button that is always there, and a tray that covers nothing
// that has to be answered.
import { useEffect, useRef } from "preact/hooks";
import { answered, approvals, trayOpen } from "./approvals";
import { Card } from "./Approval";
import { Glyph, StateIcon } from "./icons";
import { ago, plural } from "./format";
import { hrefOf } from "./route";
import { nameOf } from "./list";
import { cut, show } from "./text";

export const waitWords = (n: number) => `${plural(n, "call")} ${n === 1 ? "waits" : "wait"} for you`;

export function TrayButton() {
  const n = approvals.value.length;
  return <button type="button" class={`tray-button${n ? " some" : ""}`} data-act="tray" aria-expanded={trayOpen.value} aria-controls="tray" hidden={!n && !trayOpen.value}
    onClick={() => { trayOpen.value = !trayOpen.peek(); }}><StateIcon status="waiting" /><b>{n}</b><span class="wide-only">{n === 1 ? "waits for you" : "wait for you"}</span></button>;
}

export function Tray() {
  const box = useRef<HTMLElement>(null);
  const items = approvals.value;
  const before = useRef(0);
  const since = useRef(0);
  if (!trayOpen.value) since.current = Infinity; else if (since.current === Infinity) since.current = Date.now();
  // A call that was answered elsewhere while the reader looked at it stays, and says so.
  const over = [...answered.value.values()].filter((x) => !x.mine && x.at >= since.current && !items.some((a) => a.approval === x.of.approval)).map((x) => x.of);
  useEffect(() => { if (trayOpen.value) box.current?.querySelector<HTMLElement>("[data-approval]")?.focus({ preventScroll: true }); }, [trayOpen.value]);
  useEffect(() => { if (!items.length && before.current && !over.length) trayOpen.value = false; before.current = items.length; }, [items.length]);
  // Announced once, for screen readers.
  return <>
    <p class="hidden" role="alert">{items.length ? waitWords(items.length) : ""}</p>
    {trayOpen.value && <aside class="tray" id="tray" ref={box} aria-label="Calls that wait for you" onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); trayOpen.value = false; document.querySelector<HTMLElement>("[data-act=tray]")?.focus(); } }}>
      <header><StateIcon status="waiting" /><h2>{items.length ? waitWords(items.length) : "Nothing waits for you"}</h2>
        <button type="button" class="quiet-button" aria-label="Close" onClick={() => { trayOpen.value = false; }}><Glyph name="close" /></button></header>
      {[...items, ...over].map((a) => <Card key={a.approval} of={a} title={<p class="quiet"><a href={hrefOf({ view: "conversation", id: a.conversation })}>{show(cut(nameOf(a.conversation), 120))}</a> · asked {ago(a.since)} ago</p>} />)}
    </aside>}
  </>;
}
