// The judge of Anthropic Messages: system and messages in, violations out.
import {
  Findings,
  imageType,
  isBase64,
  isBlank,
  isObject,
  isWebUrl,
  loneSurrogates,
  typeRules,
} from "./text.mjs";

export const rules = {
  ...typeRules,
  no_messages: "API reference of messages: at least one",
  system_role:
    "docs.rs/gproxy-transform claude_mid_conv_system: models before Opus 4.8 answer \"role 'system' is not " +
    'supported on this model", though the type has it',
  first_user:
    "github.com/lobehub/lobehub/issues/1601, github.com/anthropics/anthropic-sdk-typescript/issues/622 (Bedrock): " +
    '"messages: first message must use the "user" role"',
  empty_content:
    'github.com/anthropics/claude-code/issues/2196: "all messages must have non-empty content except for the ' +
    'optional final assistant message"; models without prefill refuse that one too ' +
    "(platform.claude.com/docs/en/api/errors#prefill-not-supported)",
  empty_text:
    'github.com/anthropics/claude-code/issues/59812: "messages: text content blocks must be non-empty"',
  blank_text:
    'github.com/anthropics/claude-code/issues/23440: "messages: text content blocks must contain non-whitespace text"',
  trailing_space:
    'github.com/anomalyco/opencode/issues/1295: "messages: final assistant content cannot end with trailing whitespace"',
  call_id:
    'github.com/BlockRunAI/ClawRouter/issues/17: "messages.92.content.0.tool_use.id: String should match pattern ' +
    "'^[a-zA-Z0-9_-]+$'\"",
  server_call_id:
    'github.com/ding113/claude-code-hub/issues/470: "server_tool_use.id: String should match pattern ' +
    "'^srvtoolu_[a-zA-Z0-9_]+$'\"",
  tool_name:
    "github.com/modelcontextprotocol/typescript-sdk/issues/413: \"String should match pattern '^[a-zA-Z0-9_-]{1,64}$'\"",
  duplicate_call:
    'github.com/anthropics/claude-code/issues/28515, github.com/NVIDIA-NeMo/Switchyard/issues/502: "`tool_use` ids ' +
    'must be unique", in the whole request',
  unanswered_call:
    'github.com/anthropics/claude-code/issues/1237: "`tool_use` ids were found without `tool_result` blocks ' +
    'immediately after"',
  result_without_call:
    'github.com/tghamm/Anthropic.SDK/issues/184: "unexpected `tool_use_id` found in `tool_result` blocks"; ' +
    "server tools: github.com/anthropics/claude-code/issues/65726",
  duplicate_result:
    'github.com/anthropics/claude-code/issues/14110: "each tool_use must have a single result. Found multiple `tool_result` blocks with id"',
  results_first:
    'github.com/anthropics/anthropic-sdk-typescript/issues/653: "Messages following tool_use blocks must begin ' +
    'with a matching number of tool_result blocks"',
  block_role:
    'github.com/tghamm/Anthropic.SDK/issues/128: "`tool_result` blocks can only be in `user` messages", and ' +
    "tool_use and thinking in those of the assistant",
  input_object:
    'github.com/anthropics/claude-code/issues/6696: "tool_use.input: Input should be a valid dictionary"',
  empty_error:
    'github.com/bytedance/trae-agent/issues/230: "tool_result: content cannot be empty if `is_error` is true"',
  thinking_signature:
    "github.com/anthropics/anthropic-sdk-csharp/issues/126, github.com/ENTERPILOT/GoModel/pull/964: " +
    '"Invalid `signature` in `thinking` block" for an empty one',
  thinking_last:
    'github.com/NousResearch/hermes-agent/pull/16921: "The final block in an assistant message cannot be `thinking`"',
  thinking_first:
    'github.com/lbjlaq/Antigravity-Manager/issues/139: "a final `assistant` message must start with a thinking ' +
    'block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)"',
  image_data:
    "github.com/anthropics/claude-code/issues/15746, github.com/BerriAI/litellm/issues/24900: base64 that is none, or an " +
    'image that "does not match the provided media type"',
  source_url: "github.com/AidenAI-IO/aiden-firmware/pull/504: images by URL must be reachable by HTTPS",
  document_data: "API reference of document sources: base64 of a PDF",
  cache_control_count:
    'github.com/tghamm/Anthropic.SDK/issues/50: "A maximum of 4 blocks with cache_control may be provided. Found 5."',
  cache_control_order:
    "github.com/cnighswonger/claude-code-cache-fix/issues/44: \"a ttl='1h' cache_control block must not come " +
    "after a ttl='5m' cache_control block\"",
};

const thinks = (b) => b?.type === "thinking" || b?.type === "redacted_thinking";
const isServerResult = (b) => typeof b?.type === "string" && b.type.endsWith("_tool_result");
const blocksOf = (m) => (Array.isArray(m?.content) ? m.content : []);

export function judge(schemas, { system, messages }) {
  const f = new Findings(rules);
  if (system !== undefined) checkSystem(f, schemas, system);
  if (!Array.isArray(messages) || messages.length === 0) {
    f.add("no_messages", 0, "there is no message");
    return f.list;
  }
  messages.forEach((m, i) => {
    f.addAll(schemas.check("anthropic", m, `messages[${i}]`), i);
    for (const path of loneSurrogates(m, `messages[${i}]`))
      f.add("lone_surrogate", i, `${path} holds half of a surrogate pair`);
    if (isObject(m)) checkMessage(f, m, i, i === messages.length - 1);
  });
  if (messages[0]?.role === "assistant") f.add("first_user", 0, "the first message is the assistant's");
  checkPairs(f, messages);
  checkServerPairs(f, messages);
  checkCache(f, system, messages);
  return f.list;
}

function checkSystem(f, schemas, system) {
  f.addAll(schemas.check("anthropicSystem", system, "system"), -1);
  for (const path of loneSurrogates(system, "system"))
    f.add("lone_surrogate", -1, `${path} holds half of a surrogate pair`);
  for (const b of Array.isArray(system) ? system : []) checkText(f, b, -1);
}

function checkText(f, b, i) {
  if (b?.type !== "text" || typeof b.text !== "string") return;
  if (b.text === "") f.add("empty_text", i, "a text block is empty");
  else if (isBlank(b.text)) f.add("blank_text", i, "a text block holds white space only");
}

function checkMessage(f, m, i, last) {
  if (m.role === "system") f.add("system_role", i, "role system");
  if (typeof m.content === "string") {
    if (m.content === "") f.add("empty_content", i, "content is empty");
    else if (isBlank(m.content)) f.add("blank_text", i, "content is white space only");
  }
  if (Array.isArray(m.content) && m.content.length === 0) f.add("empty_content", i, "there are no blocks");
  for (const b of blocksOf(m)) if (isObject(b)) checkBlock(f, b, m.role, i);
  if (m.role === "assistant") checkAssistant(f, m, i, last);
}

function checkAssistant(f, m, i, last) {
  const blocks = blocksOf(m),
    end = blocks.at(-1);
  if (thinks(end)) f.add("thinking_last", i, "the last block is thinking");
  const firstCall = blocks.findIndex((b) => b?.type === "tool_use");
  if (firstCall >= 0 && blocks.slice(firstCall).some(thinks))
    f.add("thinking_first", i, "thinking behind a tool_use");
  const text = typeof m.content === "string" ? m.content : end?.type === "text" ? end.text : "";
  if (last && typeof text === "string" && /\s$/.test(text))
    f.add("trailing_space", i, "the last message ends with white space");
}

const only = {
  tool_use: "assistant",
  thinking: "assistant",
  redacted_thinking: "assistant",
  server_tool_use: "assistant",
  tool_result: "user",
};

function checkBlock(f, b, role, i) {
  const owner = only[b.type] ?? (isServerResult(b) ? "assistant" : undefined);
  if (owner && owner !== role)
    f.add("block_role", i, `${b.type} in a message of role ${role}`, b.id ?? b.tool_use_id);
  checkText(f, b, i);
  checkMedia(f, b, i);
  if (b.type === "tool_use") {
    if (typeof b.id === "string" && !/^[a-zA-Z0-9_-]+$/.test(b.id)) f.add("call_id", i, `id ${b.id}`, b.id);
    if (typeof b.name === "string" && !/^[a-zA-Z0-9_-]{1,64}$/.test(b.name))
      f.add("tool_name", i, `name ${b.name}`, b.id);
  }
  if ((b.type === "tool_use" || b.type === "server_tool_use") && "input" in b && !isObject(b.input))
    f.add("input_object", i, "input is no object", b.id);
  if (b.type === "server_tool_use" && typeof b.id === "string" && !/^srvtoolu_[a-zA-Z0-9_]+$/.test(b.id))
    f.add("server_call_id", i, `id ${b.id}`, b.id);
  if (b.type === "thinking" && b.signature === "") f.add("thinking_signature", i, "the signature is empty");
  if (b.type === "redacted_thinking" && b.data === "")
    f.add("thinking_signature", i, "redacted thinking without data");
  if (b.type === "tool_result") checkResult(f, b, i);
}

function checkResult(f, b, i) {
  const empty =
    b.content === undefined || b.content === "" || (Array.isArray(b.content) && b.content.length === 0);
  if (b.is_error === true && empty) f.add("empty_error", i, "an error without words", b.tool_use_id);
  for (const inner of blocksOf(b)) {
    checkText(f, inner, i);
    checkMedia(f, inner, i);
  }
}

function checkMedia(f, b, i) {
  const s = b?.source;
  if (!isObject(s)) return;
  if (s.type === "url" && !isWebUrl(String(s.url), ["https:"]))
    f.add("source_url", i, "not an https address");
  if (s.type !== "base64" || typeof s.data !== "string") return;
  if (b.type === "document" && !isBase64(s.data)) f.add("document_data", i, "not base64");
  if (b.type === "image" && (!isBase64(s.data) || (imageType(s.data) ?? s.media_type) !== s.media_type))
    f.add("image_data", i, "not an image of this type");
}

// Consecutive messages of one role are one turn; results stand first in the turn behind the calls.
function checkPairs(f, messages) {
  const used = new Set();
  let open = new Map(),
    answered = new Set(),
    talked = false,
    before = null;
  messages.forEach((m, i) => {
    if (m?.role !== before) {
      if (m?.role === "assistant") close();
      talked = false;
      before = m?.role;
    }
    for (const b of blocksOf(m)) {
      if (m.role === "assistant" && b?.type === "tool_use") {
        if (used.has(b.id)) f.add("duplicate_call", i, "this id was used before", b.id);
        used.add(b.id);
        open.set(b.id, i);
      } else if (m.role === "user" && b?.type === "tool_result") {
        if (open.delete(b.tool_use_id)) {
          if (talked) f.add("results_first", i, "a result behind other content", b.tool_use_id);
          answered.add(b.tool_use_id);
        } else if (answered.has(b.tool_use_id))
          f.add("duplicate_result", i, "a second result", b.tool_use_id);
        else f.add("result_without_call", i, "answers no call of the turn before", b.tool_use_id);
      } else if (m.role === "user") talked = true;
    }
    if (m?.role === "user" && typeof m.content === "string") talked = true;
  });
  close();
  function close() {
    for (const [id, at] of open)
      f.add("unanswered_call", at, "no tool_result in the next turn answers this tool_use", id);
    open = new Map();
    answered = new Set();
  }
}

// A server tool's result stands in the assistant's own message, behind its server_tool_use.
function checkServerPairs(f, messages) {
  messages.forEach((m, i) => {
    const asked = new Set();
    for (const b of blocksOf(m)) {
      if (b?.type === "server_tool_use") asked.add(b.id);
      else if (b?.type !== "tool_result" && isServerResult(b) && !asked.has(b.tool_use_id))
        f.add("result_without_call", i, "no server_tool_use before it", b.tool_use_id);
    }
  });
}

function checkCache(f, system, messages) {
  const marked = [];
  const walk = (blocks, i) => {
    for (const b of Array.isArray(blocks) ? blocks : []) {
      if (isObject(b?.cache_control)) marked.push([b.cache_control.ttl ?? "5m", i]);
      walk(b?.content, i);
    }
  };
  walk(system, -1);
  messages.forEach((m, i) => walk(m?.content, i));
  if (marked.length > 4)
    f.add("cache_control_count", marked[4][1], `${marked.length} blocks with cache_control`);
  const short = marked.findIndex(([ttl]) => ttl === "5m");
  const late = short < 0 ? undefined : marked.slice(short).find(([ttl]) => ttl === "1h");
  if (late) f.add("cache_control_order", late[1], "1h behind 5m");
}
