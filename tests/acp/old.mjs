// A client with the SDK of 2025, and an agent if the argument is "agent". The client prints what it
// received.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { load } from "../http/lib.mjs";

const acp = await load("@zed-industries/agent-client-protocol");
const stream = (out, input) => acp.ndJsonStream(Writable.toWeb(out), Readable.toWeb(input));
if (process.argv[2] === "agent") {
  new acp.AgentSideConnection((client) => ({
    initialize: async (p) => ({ protocolVersion: p.protocolVersion, agentCapabilities: {} }),
    newSession: async () => ({ sessionId: "s" }),
    authenticate: async () => ({}),
    cancel: async () => {},
    prompt: async ({ sessionId }) => {
      await client.sessionUpdate({ sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "pong" } } });
      return { stopReason: "end_turn" };
    },
  }), stream(process.stdout, process.stdin));
} else {
  const child = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
  const heard = [];
  const agent = new acp.ClientSideConnection(() => ({ sessionUpdate: async (u) => { heard.push(u.update); } }), stream(child.stdin, child.stdout));
  heard.push(await agent.initialize({ protocolVersion: 1, clientCapabilities: {} }));
  const { sessionId } = await agent.newSession({ cwd: "/", mcpServers: [] });
  heard.push(await agent.prompt({ sessionId, prompt: [{ type: "text", text: "ping" }] }));
  child.stdin.end();
  await new Promise((done) => child.on("close", done));
  console.log(JSON.stringify(heard));
}
