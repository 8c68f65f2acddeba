// The settings of this browser, and what the server was configured with: theme, density, keys, notifications,
// token, prices.
import { useEffect } from "preact/hooks";
import { useSignal, type Signal } from "@preact/signals";
import { get } from "./api";
import { dollars, type Prices } from "./format";
import { DENSITIES, density, letters, notify, pane, theme, THEMES, wrap } from "./prefs";
import { currentToken } from "./route";
import { cut, show } from "./text";
import { copied } from "./toast";

function Choice<T extends string>({ name, of, all }: { name: string; of: Signal<T>; all: readonly T[] }) {
  return <fieldset class="choice"><legend>{name}</legend>{all.map((v) => <label key={v}><input type="radio" name={name} checked={of.value === v} onChange={() => { of.value = v; }} />{v}</label>)}</fieldset>;
}
const Switch = ({ of, words, onChange }: { of: Signal<"on" | "off">; words: string; onChange?: (on: boolean) => void }) =>
  <label class="switch-row"><input type="checkbox" checked={of.value === "on"} onChange={(e) => { of.value = e.currentTarget.checked ? "on" : "off"; onChange?.(e.currentTarget.checked); }} />{words}</label>;

export function Settings() {
  const prices = useSignal<Prices | null>(null);
  const refused = useSignal("");
  useEffect(() => { get<{ prices?: Prices }>("/api/home?days=1").then((h) => { prices.value = h.prices ?? {}; }, () => {}); }, []);
  const ask = (on: boolean) => {
    refused.value = "";
    if (!on) return;
    const no = () => { notify.value = "off"; refused.value = "The browser does not let this page show notifications."; };
    if (typeof Notification === "undefined") no(); else void Notification.requestPermission().then((p) => { if (p !== "granted") no(); });
  };
  const all = Object.entries(prices.value ?? {});
  return <section class="stats settings" id="settings" tabIndex={0} aria-label="Settings">
    <h2>Settings</h2>
    <p class="quiet">They apply to this browser only.</p>
    <h3>Looks</h3>
    <Choice name="Theme" of={theme} all={THEMES} />
    <Choice name="Rows" of={density} all={DENSITIES} />
    <Switch of={pane} words="Show the timeline beside a transcript, where there is room" />
    <Switch of={wrap} words="Wrap the long lines of outputs" />
    <h3>Keys and notifications</h3>
    <Switch of={letters} words="Letters are commands (? lists them)" />
    <Switch of={notify} words="Notify me when a call waits and this page is in the background" onChange={ask} />
    {refused.value && <p class="problem" role="alert">{refused}</p>}
    <h3>Token</h3>
    <p>It is in this page's address and is not stored anywhere. <code>{show(cut(currentToken(), 8))}…</code></p>
    <p class="buttons"><button type="button" data-act="copy-address" onClick={() => copied(location.href.replace(/&\/.*$/, "&/"), "Copied, with the token.")}>Copy the address with the token</button>
      <button type="button" data-act="leave" onClick={() => { history.replaceState(null, "", "#/"); location.reload(); }}>Leave: forget the token here</button></p>
    <h3>Prices</h3>
    <p>Dollars for a million tokens. They are <code>prices</code> in <code>~/.config/steno/config.json</code> of the server (or <code>$XDG_CONFIG_HOME/steno</code>), which is read when it starts.</p>
    {prices.value && (all.length ? <div class="table-wrap" tabIndex={0} role="region" aria-label="Prices"><table class="used"><thead><tr>{["Model", "Input", "Output", "Cached"].map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
      <tbody>{all.map(([m, p]) => <tr key={m}><th scope="row">{show(cut(m, 80))}</th>{[p.input, p.output, p.cached ?? p.input].map((n, i) => <td key={i}>{n === undefined ? "—" : dollars(n)}</td>)}</tr>)}</tbody></table></div>
      : <p class="edge">No model has a price yet, so no costs are shown.</p>)}
  </section>;
}
