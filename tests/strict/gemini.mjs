// The judge of Gemini generateContent: contents in, violations out.
import { Findings, isObject, isWebUrl, loneSurrogates, typeRules } from "./text.mjs";

export const rules = {
  ...typeRules,
  no_contents: 'github.com/NousResearch/hermes-agent/pull/57942: "contents is not specified"',
  role: 'github.com/songquanpeng/one-api/issues/1385: "Please use a valid role: user, model."',
  first_user:
    "github.com/NousResearch/hermes-agent/issues/55427: a history that begins with a model turn is refused",
  empty_parts:
    'github.com/vercel/ai/issues/3775: "GenerateContentRequest.contents[...].parts: contents.parts must not be empty"',
  empty_text:
    "github.com/router-for-me/CLIProxyAPI/issues/1293, github.com/zuisong/gemini-openai-proxy/pull/86: empty text",
  part_data:
    "github.com/genkit-ai/genkit/issues/3816: \"parts[0].data: required oneof field 'data' must have one initialized " +
    'field"; a oneof holds one member only (protobuf, JSON mapping)',
  part_role: "ai.google.dev/gemini-api/docs/function-calling: calls are the model's, responses the user's",
  call_turn:
    'github.com/google-gemini/gemini-cli/issues/11814: "Please ensure that function call turn comes immediately after a ' +
    'user turn or after a function response turn."',
  result_without_call:
    'github.com/BerriAI/litellm/issues/26755: "Please ensure that function response turn comes immediately ' +
    'after a function call turn"',
  response_count:
    'github.com/google-gemini/gemini-cli/issues/16415, github.com/microsoft/vscode/issues/299295: "Please ensure that ' +
    'the number of function response parts is equal to the number of function call parts of the function call turn."',
  response_name:
    "ai.google.dev/api/caching#FunctionResponse: name matches FunctionCall.name, id matches FunctionCall.id; " +
    "github.com/router-for-me/CLIProxyAPI/issues/5692",
  tool_name:
    'github.com/kaitranntt/ccs/issues/25: "Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain ' +
    'underscores (_), dots (.), colons (:), or dashes (-)"; up to 128 in the newer wording of ai.google.dev/api/caching#FunctionDeclaration; ' +
    "empty: github.com/langflow-ai/langflow/issues/9437",
  response_object:
    "github.com/AstrBotDevs/AstrBot/pull/7216, github.com/vercel/ai/pull/3589: args and response are google.protobuf.Struct",
  base64:
    "github.com/crmne/ruby_llm/issues/521: \"Invalid value at 'contents[2].parts[0].thought_signature' (TYPE_BYTES), Base64 " +
    'decoding failed"; all members of type bytes',
  media_type:
    "github.com/microsoft/vscode/issues/286628, github.com/EvanZhouDev/gemini-ai/issues/3, " +
    'firebase.google.com/docs/ai-logic/input-file-requirements: "Unsupported MIME type"',
  file_uri: "ai.google.dev/api/caching#FileData: a URI of the Files API, of Cloud Storage or of the web",
};

const mediaTypes = new Set([
  "image/png",
  "image/jpeg",
  "image/webp",
  "image/heic",
  "image/heif",
  "audio/wav",
  "audio/mp3",
  "audio/mpeg",
  "audio/aiff",
  "audio/aac",
  "audio/ogg",
  "audio/flac",
  "video/mp4",
  "video/mpeg",
  "video/mov",
  "video/quicktime",
  "video/avi",
  "video/x-flv",
  "video/mpg",
  "video/webm",
  "video/wmv",
  "video/3gpp",
  "application/pdf",
  "text/plain",
  "text/html",
  "text/css",
  "text/csv",
  "text/xml",
  "text/md",
]);
const data = [
  "text",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
  "toolCall",
  "toolResponse",
];
const toolName = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;
const partsOf = (c) => (Array.isArray(c?.parts) ? c.parts.filter(isObject) : []);
const callsOf = (c) =>
  partsOf(c)
    .filter((p) => p.functionCall)
    .map((p) => p.functionCall);
const responsesOf = (c) =>
  partsOf(c)
    .filter((p) => p.functionResponse)
    .map((p) => p.functionResponse);

export function judge(schemas, contents) {
  const f = new Findings(rules);
  if (!Array.isArray(contents) || contents.length === 0) {
    f.add("no_contents", 0, "there is no content");
    return f.list;
  }
  contents.forEach((c, i) => {
    f.addAll(schemas.check("gemini", c, `contents[${i}]`), i);
    for (const path of loneSurrogates(c, `contents[${i}]`))
      f.add("lone_surrogate", i, `${path} holds half of a surrogate pair`);
    if (isObject(c)) checkContent(f, c, i);
  });
  if (contents[0]?.role === "model") f.add("first_user", 0, "the first turn is the model's");
  checkTurns(f, contents);
  return f.list;
}

function checkContent(f, c, i) {
  if (c.role !== "user" && c.role !== "model") f.add("role", i, `role ${c.role}`);
  if (!Array.isArray(c.parts) || c.parts.length === 0) f.add("empty_parts", i, "there are no parts");
  for (const p of partsOf(c)) {
    const held = data.filter((key) => key in p);
    if (held.length !== 1)
      f.add("part_data", i, held.length ? `a part with ${held.join(" and ")}` : "a part without data");
    if (p.text === "") f.add("empty_text", i, "an empty text");
    if (p.functionCall) checkNamed(f, p.functionCall, "args", c.role !== "model", i);
    if (p.functionResponse) checkNamed(f, p.functionResponse, "response", c.role !== "user", i);
    checkMedia(f, p, i);
    for (const inner of Array.isArray(p.functionResponse?.parts) ? p.functionResponse.parts : [])
      checkMedia(f, inner, i);
  }
}

function checkNamed(f, call, member, misplaced, i) {
  if (misplaced) f.add("part_role", i, "a call of the user, or a response of the model", call.id);
  if (!toolName.test(call.name ?? "")) f.add("tool_name", i, `name ${call.name}`, call.id);
  if (member in call && !isObject(call[member]))
    f.add("response_object", i, `${member} is no object`, call.id);
}

function checkMedia(f, p, i) {
  for (const m of [p.inlineData, p.fileData])
    if (isObject(m) && typeof m.mimeType === "string" && !mediaTypes.has(m.mimeType))
      f.add("media_type", i, `media type ${m.mimeType}`);
  const bytes = p.inlineData?.data;
  if (typeof bytes === "string" && (bytes === "" || bytes.replace(/=+$/, "").length % 4 === 1))
    f.add("base64", i, "no bytes");
  const uri = p.fileData?.fileUri;
  if (typeof uri === "string" && !isWebUrl(uri, ["https:", "gs:"]))
    f.add("file_uri", i, "not the address of a file");
}

function checkTurns(f, contents) {
  contents.forEach((c, i) => {
    const calls = callsOf(c),
      answers = responsesOf(c),
      before = contents[i - 1];
    if (calls.length) {
      if (before?.role !== "user") f.add("call_turn", i, "a call that follows no turn of the user");
      const next = responsesOf(contents[i + 1]);
      if (next.length !== calls.length)
        f.add("response_count", i, `${calls.length} calls, ${next.length} responses`);
    }
    if (!answers.length) return;
    const open = callsOf(before);
    if (!open.length) f.add("result_without_call", i, "a response that follows no call turn");
    else if (open.length === answers.length) checkMatch(f, open, answers, i);
  });
}

// Each response answers the call with its name and id; a response without an id answers a remaining call
// of its name.
function checkMatch(f, open, answers, i) {
  const take = (r, fits) => {
    const at = open.findIndex((o) => o.name === r.name && fits(o));
    if (at >= 0) open.splice(at, 1);
    return at >= 0;
  };
  const rest = answers.filter((r) => !take(r, (o) => o.id === r.id));
  for (const r of rest)
    if (!take(r, (o) => o.id === undefined || r.id === undefined))
      f.add("response_name", i, `no call of this name and id is open: ${r.name}`, r.id);
}
