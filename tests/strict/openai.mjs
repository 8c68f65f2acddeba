// The judge of OpenAI chat completions: messages in, violations out.
import {
  Findings,
  dataUrl,
  imageType,
  isBase64,
  isBlank,
  isWebUrl,
  loneSurrogates,
  typeRules,
} from "./text.mjs";

// Each rule with its source. Endpoints that speak this protocol for other models count too.
export const rules = {
  ...typeRules,
  no_messages:
    "github.com/sashabaranov/go-openai/issues/605, github.com/CopilotKit/CopilotKit/issues/529: \"[] is too short - 'messages'\"",
  empty_tool_calls:
    "github.com/openai/openai-node/pull/1341: \"Invalid 'messages[1].tool_calls': empty array\"",
  too_many_calls:
    "github.com/openai/openai-dotnet/issues/317, github.com/github/copilot-cli/issues/669: " +
    "\"Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum length 128\"",
  unanswered_call:
    "github.com/BloomLabsInc/genkit-plugins/issues/225: \"An assistant message with 'tool_calls' " +
    "must be followed by tool messages responding to each 'tool_call_id'\"",
  result_without_call:
    'github.com/QwenLM/qwen-code/issues/2360: "messages with role "tool" must be a response ' +
    'to a preceeding message with "tool_calls""',
  duplicate_result:
    "github.com/agno-agi/agno/issues/5116: \"Duplicate value for 'tool_call_id' of 'call_...', " +
    'in messages[7] and messages[8]"',
  duplicate_call:
    "github.com/openclaw/openclaw/pull/47136, github.com/VicBilibily/GCMP/pull/120: one id on two " +
    "calls of a message",
  call_id:
    "github.com/vercel/ai/issues/5171: \"Invalid 'messages[2].tool_calls[0].id': string too long. Expected " +
    'a string with maximum length 40"; empty ids: github.com/ducks/claux/issues/40',
  tool_name:
    "github.com/mcp-use/mcp-use/issues/90: \"Invalid 'messages[9].tool_calls[0].function.name': string does " +
    "not match pattern '^[a-zA-Z0-9_-]+$'\"; empty: github.com/continuedev/continue/issues/9784; at most 64: " +
    "API reference of tools[].function.name",
  participant_name:
    "github.com/Goldziher/basemind.ai/issues/248, github.com/pollinations/pollinations/pull/10653: " +
    "messages[].name is ^[a-zA-Z0-9_-]{1,64}$",
  content_required:
    "github.com/langchain-ai/langchainjs/issues/4153: \"Invalid value for 'content': expected a " +
    'string, got null"; the type says it is required unless tool_calls or function_call is specified',
  empty_assistant:
    "github.com/anomalyco/opencode/issues/31259: a whitespace-only assistant message through " +
    '/chat/completions is refused with "text content blocks must contain non-whitespace text"',
  empty_content:
    "github.com/openai/openai-python/issues/1812: the published OpenAPI document asks for at least one part",
  empty_text:
    'github.com/BiFangKNT/mtga/pull/68: "text content blocks must be non-empty" through the OpenAI protocol',
  refusal_part:
    "API reference of the assistant message: one or more parts of type text, or exactly one refusal",
  image_url:
    'github.com/mkht/PSOpenAI/issues/43, github.com/anomalyco/opencode/issues/23983: "Expected a ' +
    'base64-encoded data URL with an image MIME type", "got unsupported MIME type", "got empty base64-encoded bytes"',
  audio_data: "API reference of input_audio: base64 encoded audio data",
  file_data:
    'github.com/vercel/ai/issues/7266: "Expected a base64-encoded data URL with an application/pdf MIME ' +
    'type"; without a filename: github.com/openai/openai-agents-python/pull/1513',
};

const imageTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const toolName = /^[a-zA-Z0-9_-]{1,64}$/;

export function judge(schemas, messages) {
  const f = new Findings(rules);
  if (!Array.isArray(messages) || messages.length === 0) f.add("no_messages", 0, "there is no message");
  else {
    messages.forEach((m, i) => {
      f.addAll(schemas.check("openai", m, `messages[${i}]`), i);
      for (const path of loneSurrogates(m, `messages[${i}]`))
        f.add("lone_surrogate", i, `${path} holds half of a surrogate pair`);
      if (m !== null && typeof m === "object") checkMessage(f, m, i);
    });
    checkPairs(f, messages);
  }
  return f.list;
}

function checkMessage(f, m, i) {
  if ("name" in m && m.role !== "function" && !toolName.test(m.name))
    f.add("participant_name", i, `name ${m.name}`);
  if (m.role === "function" && !toolName.test(m.name)) f.add("tool_name", i, `name ${m.name}`);
  if (m.role === "assistant") checkAssistant(f, m, i);
  else if (m.content === null && m.role !== "function") f.add("content_required", i, "content is null");
  if (Array.isArray(m.content)) checkParts(f, m.content, i);
}

function checkAssistant(f, m, i) {
  const calls = Array.isArray(m.tool_calls) ? m.tool_calls : [];
  if (Array.isArray(m.tool_calls) && calls.length === 0) f.add("empty_tool_calls", i, "tool_calls is empty");
  if (calls.length > 128) f.add("too_many_calls", i, `${calls.length} calls`);
  const asks = calls.length > 0 || m.function_call;
  if (!asks && (m.content ?? null) === null && !m.refusal && !m.audio)
    f.add("content_required", i, "neither content nor calls");
  if (!asks && !m.refusal && isBlank(m.content)) f.add("empty_assistant", i, "content is blank");
  for (const c of calls) {
    const name = c?.function?.name ?? c?.custom?.name;
    if (typeof name === "string" && !toolName.test(name)) f.add("tool_name", i, `name ${name}`, c.id);
    if (typeof c?.id === "string" && (c.id === "" || c.id.length > 40))
      f.add("call_id", i, `id of ${c.id.length} characters`, c.id);
  }
  if (m.function_call && !toolName.test(m.function_call.name))
    f.add("tool_name", i, `name ${m.function_call.name}`);
  if (Array.isArray(m.content) && m.content.some((p) => p?.type === "refusal") && m.content.length > 1)
    f.add("refusal_part", i, "a refusal beside other parts");
}

function checkParts(f, parts, i) {
  if (parts.length === 0) f.add("empty_content", i, "content has no parts");
  for (const p of parts) {
    if (p?.type === "text" && p.text === "") f.add("empty_text", i, "a text part is empty");
    if (p?.type === "image_url" && !isImageUrl(p.image_url?.url))
      f.add("image_url", i, "neither a web address nor an image as a data URL");
    if (p?.type === "input_audio" && !isBase64(p.input_audio?.data ?? ""))
      f.add("audio_data", i, "not base64");
    if (p?.type === "file" && !isFile(p.file ?? {}))
      f.add("file_data", i, "neither a file id nor a named file as a data URL");
  }
}

export function isImageUrl(url) {
  if (typeof url !== "string") return false;
  const data = dataUrl(url);
  if (!data) return isWebUrl(url);
  if (!data.base64 || !imageTypes.includes(data.mediaType) || !isBase64(data.data)) return false;
  return (imageType(data.data) ?? data.mediaType) === data.mediaType;
}

function isFile(file) {
  if (typeof file.file_id === "string" && file.file_id) return true;
  const data = typeof file.file_data === "string" && dataUrl(file.file_data);
  return Boolean(data && data.base64 && data.mediaType && isBase64(data.data) && file.filename);
}

// Results directly follow the message with their calls, in any order, one for each call.
function checkPairs(f, messages) {
  let open = new Map(),
    answered = new Set();
  const close = () => {
    for (const [id, at] of open) f.add("unanswered_call", at, "no tool message answers this call", id);
    open = new Map();
    answered = new Set();
  };
  messages.forEach((m, i) => {
    if (m?.role === "tool") {
      const id = m.tool_call_id;
      if (typeof id === "string" && (id === "" || id.length > 40))
        f.add("call_id", i, `id of ${id.length} characters`, id);
      if (open.delete(id)) answered.add(id);
      else if (answered.has(id)) f.add("duplicate_result", i, "a second result", id);
      else f.add("result_without_call", i, "answers no call of the message before", id);
      return;
    }
    close();
    for (const c of m?.role === "assistant" && Array.isArray(m.tool_calls) ? m.tool_calls : []) {
      if (open.has(c?.id)) f.add("duplicate_call", i, "an id on two calls", c.id);
      else open.set(c?.id, i);
    }
  });
  close();
}
