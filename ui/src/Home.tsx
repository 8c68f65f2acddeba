// Which calls wait for permission, what is running, what failed lately, and what was used.
import { trayOpen } from "./approvals";
import { Composer } from "./Composer";
import { ago, clock, count, plural } from "./format";
import { Problem, StateIcon, Unloaded } from "./icons";
import { nameOf, titleOf, type Item } from "./list";
import { hrefOf } from "./route";
import { Strip } from "./Strip";
import { cut, exact, plain, show } from "./text";
import { commandOf } from "./Tool";
import { Days, narrow, useHome, UsedTable, type Home as Figures } from "./Usage";

const NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];
const word = (n: number) => NUMBERS[n] ?? count(n);

// A run that waits for a person does nothing until it gets an answer.
const works = (i: Item) => i.state !== "waiting";

function sentence(h: Figures): [string, string] {
  const w = h.waiting.items.length, r = h.running.filter(works).length;
  const runs = r ? `${word(r)} ${r === 1 ? "run is" : "runs are"} at work.` : `Nothing ${w ? "else " : ""}is at work.`;
  const failed = h.failedCount ? ` ${word(h.failedCount)} ${h.failedCount === 1 ? "conversation" : "conversations"} of the last two weeks had failures.` : h.conversations ? " Nothing has failed lately." : "";
  if (w) return [`${word(w)} ${w === 1 ? "call waits" : "calls wait"} for you.`, runs + failed];
  if (r) return [runs, `Nothing waits for you.${failed}`];
  return ["Nothing needs you.", runs + failed];
}

function RunRow({ item: i, words, failed }: { item: Item; words?: string; failed?: boolean }) {
  const status = failed ? "error" : i.state === "waiting" ? "waiting" : i.state === "running" ? "running" : "error";
  const f = i.lastFailure;
  const to = f && status === "error" ? hrefOf({ view: "conversation", id: i.id, from: f.seq, ...(f.call ? { call: f.call } : {}) }) : hrefOf({ view: "conversation", id: i.id });
  return <li><a href={to}><StateIcon status={status} word /><span class="home-title"><bdi>{show(cut(titleOf(i), 120))}</bdi></span>
    <span class="home-what">{show(cut(plain(words ?? (f?.text || (f?.name ? `${f.name}: ${f.exit ? `exit ${f.exit}, ` : ""}it printed nothing` : "")), 160), 160))}</span>
    <Strip of={i} /><span class="home-count">{plural(i.calls ?? 0, "call")}</span><span class="home-when" title={clock(i.updatedAt ?? "")}>{ago(i.updatedAt ?? "")}</span></a></li>;
}

// The first line of the question, and how much follows; the card has the rest.
function Beginning({ text }: { text: string }) {
  const line = cut(text.split("\n", 1)[0]!, 200), rest = text.length - line.length;
  return <><code>{exact(line)}</code>{rest > 0 && <span class="odd">… {plural(rest, "more character")}</span>}</>;
}

export function HomeView() {
  const { home, problem } = useHome(14);
  const h = home.value;
  if (!h) return <section class="home" aria-label="Home">{problem.value ? <Problem of={problem} /> : <Unloaded />}</section>;
  const [first, then] = sentence(h);
  const turns = h.days.reduce((n, d) => n + d.turns, 0);
  return <section class="home" id="home" aria-label="Home" tabIndex={0}>
    <h2 class="home-head">{first}</h2>
    <p class="home-sub">{then}</p>
    {h.waiting.items.length > 0 && <><h3>Needs you</h3><ul class="needs">{h.waiting.items.map((a) => <li key={a.approval}>
      <StateIcon status="waiting" /><div><Beginning text={commandOf(a.tool, a.arguments) ?? `${a.tool} ${a.arguments}`} />
        <p class="quiet"><a href={hrefOf({ view: "conversation", id: a.conversation })}>{show(cut(nameOf(a.conversation), 100))}</a> · asked {ago(a.since)} ago</p></div>
      <button type="button" data-act="look" onClick={() => { trayOpen.value = true; }}>Look at it</button></li>)}</ul></>}
    {h.running.some(works) && <><h3>At work <span class="quiet">{count(h.running.filter(works).length)}</span></h3><ul class="home-rows">{h.running.filter(works).map((i) => <RunRow key={i.id} item={i} words={i.doing ? `${i.doing.name ?? "the model"} for ${ago(i.doing.since)}` : ""} />)}</ul></>}
    {h.failed.length > 0 && <><h3>Failed lately {h.failedCount > h.failed.length && <button type="button" class="more" onClick={() => narrow("", "error")}>All {count(h.failedCount)} of two weeks</button>}</h3><ul class="home-rows">{h.failed.map((i) => <RunRow key={i.id} item={i} failed />)}</ul></>}
    {h.conversations === 0 && <div class="welcome"><p>There is nothing here yet. Write below to start a conversation, run <code>steno chat</code>, point an agent at this server, or import existing sessions with <code>steno import</code>.</p></div>}
    {turns > 0 && <div class="home-two"><div><h3>Turns a day <span class="quiet">{count(turns)} in 14 days</span></h3><Days days={h.days} /></div>
      <div><h3>Usage <a class="quiet" href={hrefOf({ view: "usage", id: "" })}>All figures</a></h3>{h.models.length > 0 && <UsedTable list={h.models} kind="model" prices={h.prices} most={4} />}{h.tools.length > 0 && <UsedTable list={h.tools} kind="tool" prices={h.prices} most={5} />}</div></div>}
    {h.left && <p class="edge">Older conversations are still being read.</p>}
    <Composer conversation={null} />
  </section>;
}
