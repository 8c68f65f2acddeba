// Histories that were written by hand, by the public rules of each provider: what a person, another
// program or a broken client may have stored. The judges must accept every view of each, and
// check-history must agree.
import { join } from "node:path";
import { check, needTypes, providers } from "./judges.mjs";
import { done, pooled, ram, report, run, shown, steno } from "./tap.mjs";

needTypes();
const u = { role: "user", content: "go" };
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const call = (id, name = "f", args = "{}") => ({ id, type: "function", function: { name, arguments: args } });
const A = (...c) => ({ role: "assistant", content: null, tool_calls: c });
const R = (id, content = "r") => ({ role: "tool", tool_call_id: id, content });
const fc = (call_id, x = {}) => ({ type: "function_call", call_id, name: "f", arguments: "{}", ...x });
const fo = (call_id, output = "r") => ({ type: "function_call_output", call_id, output });
const um = { type: "message", role: "user", content: "go" };
const histories = {
  "a last reply that ends with a no-break space": ["openai", [u, { role: "assistant", content: "text\u00a0" }]],
  "a reply of wide white space": ["openai", [u, { role: "assistant", content: "\u00a0\u2003" }, u]],
  "a reply of nothing but a byte order mark": ["openai", [u, { role: "assistant", content: "\ufeff" }, u]],
  "a user who says a no-break space": ["openai", [{ role: "user", content: "\u00a0" }]],
  "a user whose content is an empty list": ["openai", [{ role: "user", content: [] }, { role: "assistant", content: "x" }]],
  "an address in capitals": ["openai", [{ role: "user", content: [{ type: "image_url", image_url: { url: "HTTPS://example.com/a.png" } }] }]],
  "an image in a result between results": ["openai", [u, A(call("a"), call("b")), R("a", [{ type: "image_url", image_url: { url: "data:image/png;base64," + PNG } }]), R("b")]],
  "a refusal beside calls": ["openai", [u, { role: "assistant", content: [{ type: "refusal", refusal: "no" }], tool_calls: [call("a")] }, R("a")]],
  "a system message between a call and its result": ["openai", [u, A(call("a")), { role: "system", content: "note" }, R("a"), { role: "developer", content: "d" }]],
  "260 calls whose ids stand twice": ["openai", [u, A(...Array.from({ length: 260 }, (_, i) => call(`c${i % 129}`))), ...Array.from({ length: 260 }, (_, i) => R(`c${i % 129}`, `${i}`))]],
  "calls without names and ids": ["openai", [u, A(call("", ""), call("", "")), { role: "tool", content: "x" }, { role: "tool", content: "y" }]],
  "arguments that are null or empty": ["openai", [u, A(call("a", "f", "null"), call("b", "f", "")), R("a"), R("b")]],
  "speakers whose names are no names": ["openai", [{ role: "user", name: "a b c", content: "x" }, { role: "user", name: "x".repeat(80), content: "x" }]],
  "a function call without a name": ["openai", [u, { role: "assistant", content: null, function_call: { name: "", arguments: "{}" } }, { role: "function", name: "", content: "x" }]],
  "a reply that was spoken": ["openai", [u, { role: "assistant", content: null, audio: { id: "audio_1" } }, u]],
  "contents that are objects": ["openai", [u, { role: "assistant", content: { a: 1 } }, { role: "tool", tool_call_id: "z", content: { b: 2 } }]],
  "approvals that nobody asked for, or that come twice": ["responses", [um, { type: "mcp_approval_response", approval_request_id: "x", approve: true }, { type: "mcp_approval_request", id: "mcpr_1", arguments: "{}", name: "n", server_label: "s" }, { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true }, { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: false }]],
  "a request for approval that stands twice": ["responses", [um, { type: "mcp_approval_request", id: "mcpr_1", arguments: "{}", name: "n", server_label: "s" }, { type: "mcp_approval_request", id: "mcpr_1", arguments: "{}", name: "n", server_label: "s" }]],
  "lists of tools and compactions that stand twice": ["responses", [um, { type: "mcp_list_tools", id: "l", server_label: "s", tools: [] }, { type: "mcp_list_tools", id: "l", server_label: "s", tools: [] }, { type: "compaction", encrypted_content: "x", id: "c1" }, { type: "compaction", encrypted_content: "x", id: "c1" }]],
  "reasoning before a reference": ["responses", [um, { type: "reasoning", id: "rs_1", summary: [] }, { type: "item_reference", id: "msg_1" }, um]],
  "reasoning before an empty reply": ["responses", [um, { type: "reasoning", id: "rs_1", summary: [] }, { type: "message", role: "assistant", content: [] }, um]],
  "reasoning before a search that is not whole": ["responses", [um, { type: "reasoning", id: "rs_1", summary: [] }, { type: "web_search_call", id: "ws_1" }, um]],
  "reasoning before an item that nobody knows": ["responses", [um, { type: "reasoning", id: "rs_1", summary: [] }, { type: "something_new", id: "x" }, um]],
  "a screenshot without an image": ["responses", [um, { type: "computer_call", id: "cu_1", call_id: "k", pending_safety_checks: [{ id: "s" }], status: "completed", action: { type: "screenshot" } }, { type: "computer_call_output", call_id: "k", output: { type: "computer_screenshot" } }]],
  "a search for tools, and a program without output": ["responses", [um, { type: "tool_search_call", id: "t", call_id: "k", arguments: {} }, { type: "tool_search_output", call_id: "k", tools: [] }, { type: "program", id: "p", call_id: "q", code: "1", fingerprint: "f" }]],
  "texts of the other side": ["responses", [{ type: "message", role: "assistant", content: [{ type: "input_text", text: "x" }] }, { type: "message", role: "user", content: [{ type: "output_text", text: "y", annotations: [] }] }]],
  "an output of a broken image and an empty text": ["responses", [um, fc("a"), fo("a", [{ type: "input_image", image_url: "nope" }, { type: "input_text", text: "" }])]],
  "a call that stands twice": ["responses", [um, fc("a"), fc("a"), fo("a", "1"), fo("a", "2"), fc("a"), fo("a", "3")]],
  "calls of the user": ["anthropic", [{ role: "user", content: [{ type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }, { type: "tool_use", id: "a", name: "f", input: {} }] }]],
  "a result in the message of its call": ["anthropic", [u, { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }, { type: "tool_result", tool_use_id: "a", content: "x" }, { type: "text", text: "after" }] }]],
  "thinking behind a call": ["anthropic", [u, { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }, { type: "thinking", thinking: "t", signature: "s" }, { type: "text", text: "x" }] }, { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: [{ type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } }] }] }]],
  "thinking of the user": ["anthropic", [{ role: "user", content: [{ type: "thinking", thinking: "t", signature: "s" }, { type: "text", text: "x" }] }]],
  "a server's call with an id of ours": ["anthropic", [u, { role: "assistant", content: [{ type: "server_tool_use", id: "call_1", name: "web_search", input: {} }, { type: "web_search_tool_result", tool_use_id: "call_1", content: [] }, { type: "text", text: "x" }] }]],
  "a server's call whose input is a text": ["anthropic", [u, { role: "assistant", content: [{ type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: "q" }, { type: "text", text: "x" }] }]],
  "a failure that says a space": ["anthropic", [u, { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] }, { role: "user", content: [{ type: "tool_result", tool_use_id: "a", is_error: true, content: [{ type: "text", text: " " }] }] }]],
  "six cache marks of two kinds": ["anthropic", [{ role: "user", content: Array.from({ length: 6 }, (_, i) => ({ type: "text", text: `t${i}`, cache_control: { type: "ephemeral", ttl: i % 2 ? "1h" : "5m" } })) }]],
  "a system message, then a reply": ["anthropic", [{ role: "system", content: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }] }, { role: "assistant", content: "a" }]],
  "a call that begins the conversation, answered under another name": ["gemini", [{ role: "model", parts: [{ functionCall: { name: "f" } }] }, { role: "user", parts: [{ functionResponse: { name: "g", response: { a: 1 } } }, { text: "and" }] }]],
  "parts that hold two things": ["gemini", [{ role: "user", parts: [{ text: "x", inlineData: { mimeType: "image/png", data: PNG } }] }, { role: "model", parts: [{ text: "a", functionCall: { name: "f", args: {} } }] }]],
  "arguments that are a list and a response that is a text": ["gemini", [{ role: "user", parts: [] }, { role: "model", parts: [{ functionCall: { name: "f", args: [1] } }] }, { role: "user", parts: [{ functionResponse: { name: "f", response: "text" } }] }]],
  "code, its outcome, and a thought at the end": ["gemini", [{ role: "user", parts: [{ text: "x" }] }, { role: "model", parts: [{ executableCode: { code: "1", language: "PYTHON" } }, { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } }, { thought: true, text: "hm" }] }]],
  "a reply that is nothing but an image": ["gemini", [{ role: "user", parts: [{ text: "x" }] }, { role: "model", parts: [{ thought: true, text: "hm" }, { inlineData: { mimeType: "image/png", data: PNG } }] }, { role: "user", parts: [{ text: "y" }] }]],
  "a reply of an image alone, at the end": ["anthropic", [u, { role: "assistant", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: PNG } }] }]],
  "a content without a role, and empty ones": ["gemini", [{ parts: [{ text: "no role" }] }, { role: "model", parts: [{ text: "" }] }, { role: "model", parts: [{ text: " ", thoughtSignature: "not base64!" }] }]],
  "an empty text of the AI SDK before a call and a text": ["uimessage", [{ id: "u", role: "user", parts: [{ type: "text", text: "go" }] }, { id: "a", role: "assistant", parts: [{ type: "text", text: "" }, { type: "tool-grep", toolCallId: "c", state: "output-available", input: {}, output: "x" }, { type: "text", text: "so" }] }]],
};

// Each kind of item that has an id, sent again by a recording client: at once, and in a later turn.
const PICTURE = { type: "computer_screenshot", image_url: `data:image/png;base64,${PNG}` };
const itemsWithIds = {
  "a message": [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content: [{ type: "output_text", text: "x", annotations: [] }] }],
  "a message of the user": [{ ...um, id: "msg_2", content: [{ type: "input_text", text: "x" }] }],
  "reasoning": [{ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" }, { type: "message", role: "assistant", content: "x" }],
  "a function call": [fc("a", { id: "fc_1" }), { ...fo("a"), id: "fc_2" }],
  "a custom call": [{ type: "custom_tool_call", id: "ctc_1", call_id: "a", name: "f", input: "x" }, { type: "custom_tool_call_output", id: "ctc_2", call_id: "a", output: "x" }],
  "a computer's call": [{ type: "computer_call", id: "cu_1", call_id: "a", status: "completed", pending_safety_checks: [], action: { type: "screenshot" } }, { type: "computer_call_output", call_id: "a", output: PICTURE }],
  "a computer's call with the id that another would get": [{ type: "computer_call", id: "cu_again_4_0", call_id: "a", status: "completed", pending_safety_checks: [], action: { type: "screenshot" } }, { type: "computer_call_output", call_id: "a", output: PICTURE }],
  "a call of a local shell": [{ type: "local_shell_call", id: "lsh_1", call_id: "a", status: "completed", action: { type: "exec", command: ["ls"], env: {} } }, { type: "local_shell_call_output", id: "a", output: "x" }],
  "a shell's call": [{ type: "shell_call", id: "sh_1", call_id: "a", action: { commands: ["ls"] } }, { type: "shell_call_output", call_id: "a", output: [{ stdout: "x", stderr: "", outcome: { type: "exit", exit_code: 0 } }] }],
  "a patch": [{ type: "apply_patch_call", id: "apc_1", call_id: "a", status: "completed", operation: { type: "delete_file", path: "a" } }, { type: "apply_patch_call_output", call_id: "a", status: "completed", output: "x" }],
  "a search of the web": [{ type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } }],
  "a search of files": [{ type: "file_search_call", id: "fs_1", status: "completed", queries: ["q"], results: null }],
  "code that ran": [{ type: "code_interpreter_call", id: "ci_1", status: "completed", code: "1", container_id: "c", outputs: [] }],
  "an image that was made": [{ type: "image_generation_call", id: "ig_1", status: "completed", result: PNG }],
  "a call of an MCP server": [{ type: "mcp_call", id: "mcp_1", server_label: "s", name: "f", arguments: "{}", output: "x" }],
  "a compaction": [{ type: "compaction", id: "cmp_1", encrypted_content: "x" }],
  "an item that nobody knows": [{ type: "something_new", id: "new_1", x: 1 }],
};
const again = new Set();
for (const [kind, items] of Object.entries(itemsWithIds)) {
  const name = `${kind}, with its id, at once again and in a later turn`;
  again.add(name);
  histories[name] = ["responses", [um, ...items, ...items, { type: "message", role: "assistant", content: "done" }, um, ...items, um]];
}

const store = join(ram, "strict-hand");
await run(steno, ["--store", store, "init"]);
const conversations = Object.entries(histories);
const wrong = await pooled(conversations, async ([name, [format, messages]], i) => {
  const id = `h${i}`;
  await run(steno, ["--store", store, "new", "--id", id]);
  // Sent line by line, the same item would only get its first receipt again.
  const lines = again.has(name) ? JSON.stringify(messages) : messages.map((m) => JSON.stringify(m) + "\n").join("");
  const taken = await run(steno, ["--store", store, "append", "--record", "--format", format, id], lines);
  if (taken.status !== 0) return [taken.stderr];
  const found = [];
  for (const p of providers) {
    const view = await run(steno, ["--store", store, "messages", id, "--format", p, "--strict"]);
    const list = JSON.parse(view.stdout);
    if (list.length === 0) continue;
    for (const v of check(p, list)) found.push(`${p}: ${v.rule}: ${v.text} ${shown(list[v.at] ?? list)}`);
    const own = await run(steno, ["check-history", "--for", p], view.stdout);
    if (own.status !== 0) found.push(`${p}: check-history says ${own.stdout}`);
  }
  if (again.has(name)) {
    const view = await run(steno, ["--store", store, "messages", id, "--format", "responses"]);
    const ids = JSON.parse(view.stdout).filter((item) => item.type !== "local_shell_call_output").map((item) => item.id).filter(Boolean);
    if (new Set(ids).size !== ids.length) found.push(`responses, not strict: an id stands twice in ${ids}`);
  }
  return found;
});
conversations.forEach(([name], i) =>
  report(wrong[i].length === 0, `${name}: every provider takes the view`, wrong[i]),
);
done();
