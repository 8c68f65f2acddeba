// An agent with the SDK of npm, which does what the prompt says. VERSION is that of the protocol.
// What it reads and writes is kept in the files AGENT_IN and AGENT_OUT, so that a test can compare.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { load } from "../http/lib.mjs";

const version = Number(process.env.VERSION || 1);
const acp = await load(version === 2 ? "@agentclientprotocol/sdk/experimental/v2" : "@agentclientprotocol/sdk");
const kept = (name, stream) => new TransformStream({ transform(chunk, out) {
  if (process.env[name]) appendFileSync(process.env[name], chunk);
  out.enqueue(chunk);
} });
const input = Readable.toWeb(process.stdin).pipeThrough(kept("AGENT_IN"));
const tee = kept("AGENT_OUT");
tee.readable.pipeTo(Writable.toWeb(process.stdout));

let count = 0;
const sessions = process.env.AGENT_SESSIONS; // a file with the messages of earlier sessions, to be sent again
const remember = (id, update) => sessions && appendFileSync(sessions, JSON.stringify([id, update]) + "\n");
const recall = (id) => (sessions && existsSync(sessions) ? readFileSync(sessions, "utf8").split("\n").filter(Boolean).map((l) => JSON.parse(l)) : [])
  .filter(([of]) => of === id).map(([, update]) => update);

const text = (t) => ({ type: "text", text: t });
function turn(client, sessionId) {
  const update = async (u, keep = true) => {
    if (keep) remember(sessionId, u);
    await client.notify("session/update", { sessionId, update: u });
  };
  const chunk = (t, kind = "agent_message_chunk", messageId) => update({ sessionUpdate: kind, content: text(t), ...(messageId ? { messageId } : {}) });
  const tool = (u) => update({ sessionUpdate: u.title && version === 1 ? "tool_call" : "tool_call_update", ...u });
  const acts = {
    async say(words) {
      await chunk("let me ", "agent_thought_chunk", "t1");
      await chunk("think", "agent_thought_chunk", "t1");
      for (const w of words.split(/(?<= )/)) await chunk(w, "agent_message_chunk", "m1");
    },
    // Shape a: the client's terminal. The agent asks for little output and gets only that.
    async terminal(args) {
      const [bytes, limit, code] = args.split(" ").map(Number);
      const toolCallId = `call_${++count}`;
      await chunk("I run it. ");
      await tool({ toolCallId, title: "print", kind: "execute", status: "pending", rawInput: { bytes } });
      const script = `i=0; while [ $((i * 60)) -lt ${bytes} ]; do echo "line $i é😀 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; i=$((i + 1)); done; exit ${code || 0}`;
      const t = await client.createTerminal({ sessionId, command: "sh", args: ["-c", script], outputByteLimit: limit });
      await tool({ toolCallId, status: "in_progress", content: [{ type: "terminal", terminalId: t.id }] });
      await t.waitForExit();
      const got = await t.currentOutput();
      await t.release();
      await tool({ toolCallId, status: code ? "failed" : "completed" });
      await chunk(`got ${Buffer.byteLength(got.output)} bytes, truncated ${got.truncated}, ends ${JSON.stringify(got.output.slice(-12))}`);
    },
    // A terminal without a tool call, which is never released.
    async forgotten() {
      const t = await client.createTerminal({ sessionId, command: "echo", args: ["nobody shows this"], outputByteLimit: 4 });
      await t.waitForExit();
      await chunk("done");
    },
    // Shape b: pieces in _meta.
    async meta(n) {
      const toolCallId = `call_${++count}`, terminal_id = `term_${count}`;
      await tool({ toolCallId, title: "ls", kind: "execute", status: "pending", rawInput: { command: "ls" },
        content: [{ type: "terminal", terminalId: terminal_id }], _meta: { terminal_info: { terminal_id }, claudeCode: { toolName: "Bash" } } });
      for (let i = 0; i < Number(n); i++)
        await tool({ toolCallId, _meta: { terminal_output: { terminal_id, data: `piece ${i} é\r\n` } } });
      await tool({ toolCallId, status: "completed", _meta: { terminal_exit: { terminal_id, exit_code: 0, signal: null } } });
    },
    // Shape c: text and rawOutput.
    async raw(n) {
      const toolCallId = `call_${++count}`;
      const out = Array.from({ length: Number(n) }, (_, i) => `out ${i}\n`).join("");
      await tool({ toolCallId, title: "make", kind: "execute", status: "in_progress", rawInput: { command: ["make"] } });
      await tool({ toolCallId, status: "completed", content: [{ type: "content", content: text("```\n" + out + "```") }],
        rawOutput: { stdout: out, stderr: "", aggregated_output: out, exit_code: 2 } });
    },
    // Shape d: version 2.
    async updates(n) {
      const toolCallId = `call_${++count}`, terminalId = `term_${count}`;
      await update({ sessionUpdate: "terminal_update", terminalId, command: "seq", cwd: "/" });
      await update({ sessionUpdate: "terminal_output_chunk", terminalId, data: Buffer.from("early\n").toString("base64") });
      await tool({ toolCallId, title: "seq", name: "shell", kind: "execute", status: "in_progress", rawInput: { n }, content: [{ type: "terminal", terminalId }] });
      for (let i = 0; i < Number(n); i++)
        await update({ sessionUpdate: "terminal_output_chunk", terminalId, data: Buffer.from([0xc3, 0xa9, 10 + (i % 3)]).toString("base64") });
      await update({ sessionUpdate: "terminal_update", terminalId, exitStatus: { exitCode: 3 } });
      await tool({ toolCallId, status: "completed" });
    },
    async permission() {
      const toolCallId = `call_${++count}`;
      await tool({ toolCallId, title: "rm", kind: "delete", status: "pending" });
      const toolCall = { toolCallId, title: "rm", rawInput: { path: "/x" } };
      const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }, { optionId: "no", name: "No", kind: "reject_once" }];
      const r = await client.request("session/request_permission", version === 1 ? { sessionId, toolCall, options }
        : { sessionId, title: "rm?", subject: { type: "tool_call", toolCall }, options });
      await tool({ toolCallId, status: "failed", content: [{ type: "content", content: text(`answer: ${r.outcome.optionId}`) }] });
    },
    async diff() {
      const toolCallId = `call_${++count}`;
      await tool({ toolCallId, title: "edit", kind: "edit", status: "pending", rawInput: { path: "/a" } });
      await tool({ toolCallId, status: "completed", content: [version === 1 ? { type: "diff", path: "/a", oldText: "x", newText: "y".repeat(5000) }
        : { type: "_note", newText: "y".repeat(5000) }] });
      if (version === 1) await update({ sessionUpdate: "plan", entries: [{ content: "one", priority: "high", status: "pending" }] });
    },
    async parallel() {
      const ids = [1, 2, 3].map(() => `call_${++count}`);
      for (const toolCallId of ids) await tool({ toolCallId, title: "read", kind: "read", status: "pending", rawInput: { of: toolCallId } });
      for (const toolCallId of ids.reverse()) await tool({ toolCallId, status: "completed", content: [{ type: "content", content: text(`read ${toolCallId}`) }] });
    },
    async figures() {
      await chunk("one ");
      await update({ sessionUpdate: "usage_update", used: 5, size: 10 });
      await chunk("message");
    },
    async image() {
      await update({ sessionUpdate: "agent_message_chunk", content: { type: "image", data: "aGVsbG8=", mimeType: "image/png" }, messageId: "m1" });
    },
    async read() {
      const r = await client.request("fs/read_text_file", { sessionId, path: "/etc/x" });
      await chunk(`read ${r.content.length}`);
    },
    async cancel() {
      const toolCallId = `call_${++count}`;
      await tool({ toolCallId, title: "wait", kind: "other", status: "in_progress", rawInput: {} });
      return "cancelled";
    },
    async hang(n) { // until it is killed
      for (let i = 0; i < Number(n); i++) await chunk(`seen ${i}. `);
      await new Promise(() => {});
    },
    async servers() { await chunk(JSON.stringify(servers[sessionId])); },
    async strange() {
      await client.notify("_vendor/strange", { sessionId, nested: { n: 1 } });
      const r = await client.request("_vendor/ask", { sessionId, q: 7 });
      await chunk(JSON.stringify(r));
    },
  };
  return async (line) => {
    const [act, ...rest] = line.split(" ");
    return acts[act] ? await acts[act](rest.join(" ")) : await acts.say(line);
  };
}

const servers = {};
let made = 0;
const begin = (params, id = `sess-${process.pid}-${++made}`) => {
  if (params.cwd === "/refused") throw new Error("this folder is refused");
  servers[id] = params.mcpServers ?? null;
  return id;
};
const app = acp.agent({ name: "test-agent" })
  .onRequest("initialize", ({ params }) => (version === 2
    ? { protocolVersion: 2, info: { name: "test-agent", version: "1" }, capabilities: { session: { mcp: { stdio: {} }, fork: {} } } }
    : { protocolVersion: params.protocolVersion, agentInfo: { name: "test-agent", version: "1" }, agentCapabilities: { loadSession: true } }))
  .onRequest("session/new", ({ params }) => ({ sessionId: begin(params) }))
  .onNotification("session/cancel", () => {})
  .onRequest("session/prompt", async ({ params, client }) => {
    const { sessionId, prompt } = params;
    for (const p of prompt) remember(sessionId, { sessionUpdate: "user_message_chunk", content: p, messageId: `u${++count}` });
    const run = async () => {
      let stopReason = "end_turn";
      for (const p of prompt) if (p.type === "text") for (const line of p.text.split("\n")) stopReason = (await turn(client, sessionId)(line)) || stopReason;
      return stopReason;
    };
    if (version === 1) return { stopReason: await run() };
    const messageId = `user-${++count}`;
    setTimeout(async () => {
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "state_update", state: "running" } });
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "user_message", messageId, content: prompt } });
      const stopReason = await run();
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "state_update", state: "idle", stopReason } });
    });
    return { messageId };
  });
const tellAgain = async (client, sessionId) => {
  for (const update of recall(sessionId)) await client.notify("session/update", { sessionId, update });
};
if (version === 1)
  app.onRequest("session/load", async ({ params, client }) => {
    begin(params, params.sessionId);
    await tellAgain(client, params.sessionId);
    return {};
  });
else
  app.onRequest("session/resume", async ({ params, client }) => {
    begin(params, params.sessionId);
    if (params.replayFrom) await tellAgain(client, params.sessionId);
    return {};
  });
const connection = app.connect(acp.ndJsonStream(tee.writable, input));
await connection.closed;
process.exit(0);
