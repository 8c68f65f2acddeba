// A client for the conformance suite, which starts it with the URL of a server: calls the tools that
// the scenario wants to see called, with Steno's MCP client (mcp_driver).
import { spawnSync } from "node:child_process";

const url = process.argv.at(-1), scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}");
const run = (tool, args) => spawnSync(process.env.MCP_DRIVER, [tool, JSON.stringify(args), url], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const schema = (name) => JSON.parse(run("-", {}).stdout.split("\n").find((l) => l.startsWith(`mcp__s__${name} `)).replace(/^\S+ /, ""));
const calls = {
  tools_call: () => [["add_numbers", { a: 5, b: 3 }]],
  "sse-retry": () => [["test_reconnection", {}]],
  "http-invalid-tool-headers": () => [["valid_tool", { region: "x" }]],
  "json-schema-2020-12-preservation": () => [["json_schema_echo", { schema: schema("json_schema_2020_12_tool") }]],
  "http-custom-headers": () => context.toolCalls.map((c) => [c.name, c.arguments]),
};
const list = calls[scenario]?.() ?? [["-", {}]];
process.exit(list.map(([tool, args]) => run(tool, args)).some((r) => r.status !== 0) ? 1 : 0);
