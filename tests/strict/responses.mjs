// The judge of OpenAI Responses: input items in, violations out. The endpoint is stateless
// (store: false), as agents use it.
import { isImageUrl } from "./openai.mjs";
import { Findings, dataUrl, isBase64, isBlank, isWebUrl, loneSurrogates, typeRules } from "./text.mjs";

export const rules = {
  ...typeRules,
  no_items: "API reference of input: an empty list is no input, as in chat completions",
  unanswered_call:
    'github.com/router-for-me/CLIProxyAPI/issues/2368: "No tool output found for function call ' +
    'call_..."; custom tools: github.com/diegosouzapw/OmniRoute/issues/8946',
  result_without_call:
    'github.com/continuedev/continue/issues/10092: "No tool call found for function call output ' +
    'with call_id call_..."',
  duplicate_result: "github.com/vercel/ai/issues/13307: one call in several parts is sent as duplicate items",
  duplicate_call: "github.com/vercel/ai/issues/13307: the same call_id on two open calls",
  duplicate_id:
    'github.com/vercel/ai/issues/7883, github.com/earendil-works/pi/issues/5165: "Duplicate item found with ' +
    'id msg_1. Remove duplicate items from your input and try again."',
  reasoning_follower:
    "github.com/openai/openai-node/issues/1567, github.com/openai/openai-agents-js/issues/326: " +
    "\"Item 'rs_...' of type 'reasoning' was provided without its required following item\"",
  id_prefix:
    "github.com/nodetool-ai/nodetool/pull/4252 (fc), github.com/openai/codex/issues/33176 (msg), " +
    "github.com/jlcodes99/cockpit-tools/issues/2090 (rs), github.com/BigPizzaV3/CodexPlusPlus/issues/1796 (ctc): " +
    "\"Invalid 'input[2].id': 'call_...'. Expected an ID that begins with 'fc'.\"",
  item_id:
    'github.com/ranxianglei/billion-context/issues/1052: "Expected an ID that contains letters, numbers, ' +
    'underscores, or dashes"; at most 64: github.com/bastani-inc/atomic/issues/2204',
  call_id:
    "github.com/AnswerDotAI/fastllm/issues/45: \"Invalid 'input[95].call_id': string too long. Expected a string " +
    'with maximum length 64"',
  tool_name:
    "github.com/coinbase/agentkit/pull/217: \"string does not match pattern '^[a-zA-Z0-9_-]+$'\"; at most 64 as " +
    "in chat completions",
  content_kind:
    "github.com/jeremychone/rust-genai/pull/119: \"Invalid value: 'input_text'. Supported values are: " +
    "'output_text' and 'refusal'.\"",
  empty_content:
    "github.com/vllm-project/vllm/pull/49130: an assistant message without content parts breaks servers",
  empty_text: "as for chat completions: github.com/BiFangKNT/mtga/pull/68",
  empty_assistant: "as for chat completions: github.com/anomalyco/opencode/issues/31259",
  image_url:
    "github.com/anomalyco/opencode/issues/23983: \"Invalid 'input[101].content[1].image_url'. Expected a " +
    'base64-encoded data URL with an image MIME type"',
  file_data:
    "github.com/vercel/ai/issues/7776: \"Invalid file data: 'input[0].content[0].file_data'. Expected a " +
    "base64-encoded data URL\"; in a tool's output: github.com/strands-agents/harness-sdk/pull/3576",
  item_reference:
    "github.com/smixs/iva-agent/pull/19: \"Item with id 'msg_...' not found. Items are not persisted when " +
    'store is set to false."',
};

// Which type answers which, and by which member.
const pairs = {
  function_call: { answer: "function_call_output", id: "call_id", by: "call_id" },
  custom_tool_call: { answer: "custom_tool_call_output", id: "call_id", by: "call_id" },
  computer_call: { answer: "computer_call_output", id: "call_id", by: "call_id" },
  shell_call: { answer: "shell_call_output", id: "call_id", by: "call_id" },
  apply_patch_call: { answer: "apply_patch_call_output", id: "call_id", by: "call_id" },
  local_shell_call: { answer: "local_shell_call_output", id: "call_id", by: "id" },
  mcp_approval_request: {
    answer: "mcp_approval_response",
    id: "id",
    by: "approval_request_id",
    mayWait: true,
  },
};
const answers = Object.fromEntries(Object.entries(pairs).map(([call, p]) => [p.answer, { call, by: p.by }]));

// What a model produces, and what may therefore follow its reasoning.
const spoken = new Set([
  ...Object.keys(pairs),
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "mcp_call",
  "mcp_list_tools",
  "tool_search_call",
  "program",
  "reasoning",
]);
const prefixes = {
  message: "msg",
  function_call: "fc",
  function_call_output: "fc",
  reasoning: "rs",
  custom_tool_call: "ctc",
};
const toolName = /^[a-zA-Z0-9_-]{1,64}$/;
const kindOf = (item) => item?.type ?? (item && "role" in item ? "message" : "item_reference");

export function judge(schemas, items) {
  const f = new Findings(rules);
  if (!Array.isArray(items) || items.length === 0) {
    f.add("no_items", 0, "there is no item");
    return f.list;
  }
  items.forEach((item, i) => {
    f.addAll(schemas.check("responses", item, `input[${i}]`), i);
    for (const path of loneSurrogates(item, `input[${i}]`))
      f.add("lone_surrogate", i, `${path} holds half of a surrogate pair`);
    if (item !== null && typeof item === "object") checkItem(f, item, i);
  });
  checkPairs(f, items);
  checkReasoning(f, items);
  return f.list;
}

function checkItem(f, item, i) {
  const kind = kindOf(item);
  checkId(f, item, kind, i);
  if (kind === "item_reference") f.add("item_reference", i, "nothing is stored here");
  if (kind === "message") checkMessage(f, item, i);
  if (kind === "function_call" || kind === "custom_tool_call") {
    if (typeof item.name === "string" && !toolName.test(item.name))
      f.add("tool_name", i, `name ${item.name}`, item.call_id);
  }
  if (
    "call_id" in item &&
    typeof item.call_id === "string" &&
    (item.call_id === "" || item.call_id.length > 64)
  )
    f.add("call_id", i, `call_id of ${item.call_id.length} characters`, item.call_id);
  if (Array.isArray(item.output) && answers[kind] && kind !== "shell_call_output")
    checkParts(f, item.output, i);
  if (kind === "computer_call_output" && item.output?.image_url && !isImageUrl(item.output.image_url))
    f.add("image_url", i, "not an image");
}

function checkId(f, item, kind, i) {
  if (typeof item.id !== "string" || kind === "item_reference" || kind === "local_shell_call_output") return;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(item.id)) f.add("item_id", i, `id ${JSON.stringify(item.id)}`);
  else if (prefixes[kind] && !item.id.startsWith(prefixes[kind]))
    f.add("id_prefix", i, `id ${item.id} must begin with ${prefixes[kind]}`);
}

function checkMessage(f, item, i) {
  const own =
    item.role === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"];
  if (typeof item.content === "string") {
    if (item.role === "assistant" && isBlank(item.content)) f.add("empty_assistant", i, "content is blank");
    return;
  }
  if (!Array.isArray(item.content)) return;
  for (const p of item.content)
    if (typeof p?.type === "string" && !own.includes(p.type))
      f.add("content_kind", i, `${p.type} in a message of role ${item.role}`);
  checkParts(f, item.content, i);
}

function checkParts(f, parts, i) {
  if (parts.length === 0) f.add("empty_content", i, "there are no parts");
  for (const p of parts) {
    if (["input_text", "output_text"].includes(p?.type) && p.text === "")
      f.add("empty_text", i, "a text part is empty");
    if (p?.type === "input_image" && !(p.file_id || isImageUrl(p.image_url)))
      f.add("image_url", i, "neither a web address nor an image as a data URL");
    if (p?.type === "input_file" && !isFile(p))
      f.add("file_data", i, "no file id, no address, and no named file as a data URL");
  }
}

function isFile(p) {
  if (p.file_id || (p.file_url && isWebUrl(p.file_url))) return true;
  const data = typeof p.file_data === "string" && dataUrl(p.file_data);
  return Boolean(data && data.base64 && data.mediaType && isBase64(data.data) && p.filename);
}

function checkPairs(f, items) {
  const open = new Map(),
    done = new Set(),
    ids = new Set();
  items.forEach((item, i) => {
    const kind = kindOf(item);
    if (typeof item?.id === "string" && kind !== "local_shell_call_output") {
      if (ids.has(item.id)) f.add("duplicate_id", i, `id ${item.id} again`);
      ids.add(item.id);
    }
    if (pairs[kind]) {
      const key = `${kind} ${item[pairs[kind].id]}`;
      if (open.has(key))
        f.add("duplicate_call", i, "this id waits for its output already", item[pairs[kind].id]);
      open.set(key, i);
      done.delete(key);
    } else if (answers[kind]) {
      const key = `${answers[kind].call} ${item[answers[kind].by]}`;
      if (open.delete(key)) done.add(key);
      else if (done.has(key)) f.add("duplicate_result", i, "a second output", item[answers[kind].by]);
      else f.add("result_without_call", i, "answers no call", item[answers[kind].by]);
    }
  });
  for (const [key, at] of open)
    if (!pairs[key.split(" ")[0]].mayWait)
      f.add("unanswered_call", at, "no output answers this call", key.split(" ")[1]);
}

function checkReasoning(f, items) {
  items.forEach((item, i) => {
    if (item?.type !== "reasoning") return;
    let next = i + 1;
    while (items[next]?.type === "reasoning") next++;
    const after = items[next];
    const good =
      after && (kindOf(after) === "message" ? after.role === "assistant" : spoken.has(kindOf(after)));
    if (!good) f.add("reasoning_follower", i, "nothing that the model said follows this reasoning");
  });
}
