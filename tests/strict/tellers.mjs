// The tellers: each turns a story into the messages of one format, with what clients of that format were
// seen to add: members of Steno's own, embedded results, hosted tools, thinking that stands alone, one
// reply logged in pieces.
import {
  PDF,
  PNG,
  WAV,
  argText,
  chance,
  isMedia,
  maybe,
  mediaUrl,
  names,
  plain,
  serial,
  text,
} from "./story.mjs";
import { pick, random } from "./tap.mjs";

const own = () => ({
  ...maybe(4, { exitCode: random(3) }),
  ...maybe(6, { signal: "SIGKILL", timedOut: true }),
  ...maybe(4, { duration: random(900) }),
  ...maybe(4, { toolName: pick(names) }),
  ...maybe(6, { serverName: "fs" }),
  ...maybe(5, { steps: [{ title: "step", at: 1 }] }),
  ...maybe(6, { invokedAt: "2026-01-01T00:00:00.000Z" }),
  ...maybe(6, { isError: chance(2) }),
  ...maybe(8, { createdAt: "2026-01-01T00:00:00.000Z" }),
});
const ownMessage = () => ({
  ...maybe(8, { mode: "agent", runId: "run_1", agentId: "a" }),
  ...maybe(8, { createdAt: "2026-01-01T00:00:00.000Z" }),
  ...maybe(12, { partType: "content" }),
  ...maybe(25, { includeInContext: false }),
});

function openaiPart(p) {
  if (!isMedia(p)) return { type: "text", text: p };
  return pick([
    () => ({ type: "image_url", image_url: { url: mediaUrl(p), ...maybe(3, { detail: "low" }) } }),
    () => ({ type: "image_url", image_url: { url: mediaUrl(p) } }),
    () => ({
      type: "input_audio",
      input_audio: { data: pick([WAV, `data:audio/wav;base64,${WAV}`]), format: pick(["wav", "mp3", "ogg"]) },
    }),
    () => ({
      type: "file",
      file: pick([
        { filename: "a.pdf", file_data: `data:application/pdf;base64,${PDF}` },
        { file_data: PDF },
        { file_id: "file-1" },
      ]),
    }),
  ])();
}
const openaiContent = (parts) =>
  parts.every((p) => !isMedia(p)) && !chance(4) ? parts.join("\n") : parts.map(openaiPart);

function tellOpenAI(s, { extras = false, invocations = false } = {}) {
  const out =
    s.system === null
      ? []
      : [{ role: pick(["system", "developer"]), content: s.system, ...(extras && ownMessage()) }];
  for (const t of s.turns) {
    out.push({
      role: "user",
      content: openaiContent(t.user),
      ...(extras && ownMessage()),
      ...maybe(12, { name: pick(["alice", "Alice B"]) }),
    });
    for (const st of t.steps) {
      const thought = st.thinking && chance(2) ? { reasoning_content: st.thinking.text } : {};
      if (st.calls.length === 0) {
        out.push({
          role: "assistant",
          content: st.text,
          ...thought,
          ...(extras && ownMessage()),
          ...maybe(12, { tool_calls: [] }),
          ...maybe(15, { refusal: "No." }),
        });
        continue;
      }
      if (invocations) {
        out.push({
          role: "assistant",
          content: st.text ?? "",
          tool_calls: st.calls.map((c) => ({
            id: c.id,
            name: c.name,
            arguments: pick([argText(c), c.args]),
            ...(c.result.error
              ? { error: plain(c.result.parts) || "failed", ...maybe(2, { result: null }) }
              : chance(9)
                ? {}
                : { result: pick([plain(c.result.parts), { ok: true }, [1], null]) }),
            steps: [{ title: "s" }],
            invokedAt: "2026-01-01T00:00:00.000Z",
            ...maybe(3, { duration: 4 }),
          })),
          ...thought,
        });
        continue;
      }
      if (chance(12)) {
        const c = st.calls[0];
        out.push(
          { role: "assistant", content: null, function_call: { name: c.name, arguments: argText(c) } },
          { role: "function", name: c.name, content: plain(c.result.parts) },
        );
        continue;
      }
      const entry = (c) =>
        c.kind === "custom"
          ? { id: c.id, type: "custom", custom: { name: c.name, input: text() } }
          : {
              id: c.id,
              type: "function",
              function: { name: c.name, arguments: argText(c) },
              ...maybe(8, { index: 0 }),
              ...maybe(8, { extra_content: { google: { thought_signature: "c2ln" } } }),
            };
      // One reply that was logged in pieces: each call a message of its own, all with one id.
      const pieces = chance(10) && st.calls.length > 1;
      if (pieces)
        for (const c of st.calls)
          out.push({
            id: `msg_piece_${serial.made}`,
            role: "assistant",
            content: null,
            tool_calls: [entry(c)],
          });
      else
        out.push({
          role: "assistant",
          content: st.text,
          ...thought,
          tool_calls: st.calls.map(entry),
          ...(extras && ownMessage()),
        });
      for (const c of st.calls)
        out.push({
          role: "tool",
          tool_call_id: c.id,
          content:
            c.result.parts.length === 1 && !isMedia(c.result.parts[0])
              ? c.result.parts[0]
              : pick([() => plain(c.result.parts), () => c.result.parts.map(openaiPart)])(),
          ...(extras && own()),
          ...maybe(10, { name: c.name }),
        });
    }
    if (t.answer !== null)
      out.push({
        role: "assistant",
        content: chance(8) ? [{ type: "text", text: t.answer }] : t.answer,
        ...(extras && ownMessage()),
      });
    if (extras && chance(15))
      out.push({
        role: "assistant",
        content: pick(["", "half a sent"]),
        partType: "error",
        error: { code: "LLM_NETWORK", message: "reset", retryable: true },
      });
  }
  return out;
}

function responsesPart(p) {
  if (!isMedia(p)) return { type: "input_text", text: p };
  return pick([
    () => ({ type: "input_image", image_url: mediaUrl(p), ...maybe(2, { detail: "auto" }) }),
    () => ({
      type: "input_file",
      filename: "a.pdf",
      file_data: pick([PDF, `data:application/pdf;base64,${PDF}`]),
    }),
  ])();
}
function responsesCall(c) {
  const n = serial.made++;
  const screenshot = { type: "computer_screenshot", image_url: pick([PNG, `data:image/png;base64,${PNG}`]) };
  const withId = (prefix) => maybe(2, { id: pick([`${prefix}_${n}`, `${prefix}_${n}`, c.id, `item_${n}`]) });
  const output = pick([plain(c.result.parts), c.result.parts.map(responsesPart)]);
  switch (c.kind) {
    case "custom":
      return [
        [{ type: "custom_tool_call", call_id: c.id, name: c.name, input: text(), ...withId("ctc") }],
        [{ type: "custom_tool_call_output", call_id: c.id, output: plain(c.result.parts) }],
      ];
    case "mcp":
      return [
        [
          {
            type: "mcp_call",
            id: `mcp_${n}`,
            server_label: "fs",
            name: c.name,
            arguments: argText(c),
            ...(c.result.error ? { error: "failed" } : { output: plain(c.result.parts) }),
          },
        ],
        [],
      ];
    case "shell":
      return [
        [{ type: "shell_call", call_id: c.id, action: { commands: ["ls"] }, ...withId("sh") }],
        [
          {
            type: "shell_call_output",
            call_id: c.id,
            output: [{ stdout: text(), stderr: "", outcome: { type: "exit", exit_code: c.result.exit } }],
          },
        ],
      ];
    case "local_shell":
      return [
        [
          {
            type: "local_shell_call",
            id: `lsh_${n}`,
            call_id: c.id,
            status: "completed",
            action: { type: "exec", command: ["ls"], env: {} },
          },
        ],
        [
          pick([
            { type: "local_shell_call_output", id: c.id, output: text() },
            { type: "local_shell_call_output", call_id: c.id, output: text() },
          ]),
        ],
      ];
    case "computer":
      return [
        [
          {
            type: "computer_call",
            id: `cu_${n}`,
            call_id: c.id,
            status: "completed",
            pending_safety_checks: [],
            action: { type: "screenshot" },
          },
        ],
        [{ type: "computer_call_output", call_id: c.id, output: screenshot }],
      ];
    case "apply_patch":
      return [
        [
          {
            type: "apply_patch_call",
            call_id: c.id,
            status: "completed",
            operation: { type: "delete_file", path: "a" },
          },
        ],
        [{ type: "apply_patch_call_output", call_id: c.id, status: "completed", output: text() }],
      ];
    case "web_search":
      return [
        [
          {
            type: "web_search_call",
            id: `ws_${n}`,
            status: "completed",
            action: { type: "search", query: "q" },
          },
        ],
        [],
      ];
    case "file_search":
      return [
        [{ type: "file_search_call", id: `fs_${n}`, status: "completed", queries: ["q"], results: null }],
        [],
      ];
    case "code_interpreter":
      return [
        [
          {
            type: "code_interpreter_call",
            id: `ci_${n}`,
            status: "completed",
            code: "1+1",
            container_id: "c",
            outputs: [{ type: "logs", logs: text() }],
          },
        ],
        [],
      ];
    case "image_generation":
      return [[{ type: "image_generation_call", id: `ig_${n}`, status: "completed", result: PNG }], []];
    default:
      return [
        [
          {
            type: "function_call",
            call_id: c.id,
            name: c.name,
            arguments: argText(c),
            ...withId("fc"),
            ...maybe(3, { status: "completed" }),
            ...maybe(8, { providerData: {} }),
          },
        ],
        [
          {
            type: "function_call_output",
            call_id: c.id,
            output,
            ...maybe(4, { status: "completed" }),
            ...maybe(6, own()),
          },
        ],
      ];
  }
}
function tellResponses(s) {
  const say = (t) =>
    pick([
      () => ({ role: "assistant", content: t }),
      () => ({ type: "message", role: "assistant", content: [{ type: "output_text", text: t }] }),
      () => ({
        id: pick([`msg_${serial.made++}`, `item_${serial.made++}`, "msg_1"]),
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: t, annotations: [], ...maybe(3, { logprobs: [] }) }],
      }),
    ])();
  const out =
    s.system === null
      ? []
      : [
          {
            role: pick(["system", "developer"]),
            content: pick([s.system, [{ type: "input_text", text: s.system }]]),
          },
        ];
  for (const t of s.turns) {
    out.push(
      t.user.some(isMedia) || chance(2)
        ? {
            type: "message",
            role: "user",
            content: t.user.map(responsesPart),
            ...maybe(8, { id: `msg_${serial.made++}` }),
          }
        : { role: "user", content: t.user.join("\n") },
    );
    for (const st of t.steps) {
      if (st.thinking)
        out.push({
          type: "reasoning",
          id: pick([`rs_${serial.made++}`, "rs_1", `item_${serial.made++}`]),
          summary: st.thinking.text ? [{ type: "summary_text", text: st.thinking.text }] : [],
          ...maybe(2, { encrypted_content: "gAAAAenc" }),
        });
      if (st.text !== null) out.push(say(st.text));
      const pairs = st.calls.map(responsesCall);
      if (chance(2)) out.push(...pairs.flatMap((p) => p[0]), ...pairs.flatMap((p) => p[1]));
      else out.push(...pairs.flatMap((p) => [...p[0], ...p[1]]));
    }
    if (t.answer !== null) out.push(say(t.answer));
    if (chance(20)) out.push({ type: "item_reference", id: "msg_1" });
  }
  return out;
}

function anthropicBlock(p) {
  if (!isMedia(p))
    return {
      type: "text",
      text: p,
      ...maybe(5, { cache_control: { type: "ephemeral", ...maybe(3, { ttl: pick(["5m", "1h"]) }) } }),
    };
  if (p.url !== undefined) return { type: "image", source: { type: "url", url: p.url } };
  return pick([
    () => ({ type: "image", source: { type: "base64", media_type: p.type, data: p.data } }),
    () => ({
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: pick([PDF, "%PDF-"]) },
    }),
  ])();
}
const thoughtBlock = (th) =>
  th.redacted
    ? { type: "redacted_thinking", data: pick(["ZW5j", ""]) }
    : { type: "thinking", thinking: th.text, ...(th.signature !== null && { signature: th.signature }) };
function tellAnthropic(s) {
  const reply = (content) => ({
    ...maybe(3, {
      id: `msg_${serial.made++}`,
      type: "message",
      model: "claude",
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 2 },
    }),
    role: "assistant",
    content,
  });
  const out = [];
  if (s.system !== null && chance(2)) out.push({ role: "system", content: s.system });
  for (const t of s.turns) {
    out.push({
      role: "user",
      content: t.user.some(isMedia) || chance(2) ? t.user.map(anthropicBlock) : t.user.join("\n"),
    });
    for (const st of t.steps) {
      const uses = st.calls.map((c) =>
        c.kind === "web_search"
          ? {
              type: "server_tool_use",
              id: `srvtoolu_${serial.made++}`,
              name: "web_search",
              input: { query: "q" },
            }
          : {
              type: "tool_use",
              id: c.id,
              name: c.name,
              input: c.broken === null ? c.args : pick([{}, c.broken, null, []]),
              ...maybe(8, { displayName: "Read" }),
              ...maybe(8, { cache_control: { type: "ephemeral" } }),
            },
      );
      const withResults = uses.flatMap((b) =>
        b.type === "server_tool_use" && !chance(6)
          ? [b, { type: "web_search_tool_result", tool_use_id: b.id, content: [] }]
          : [b],
      );
      const content = [
        ...(st.thinking ? [thoughtBlock(st.thinking)] : []),
        ...(st.text !== null ? [anthropicBlock(st.text)] : []),
        ...withResults,
      ];
      if (content.length === 0) {
        if (chance(3)) out.push(reply(pick([[], ""])));
        continue;
      }
      if (chance(8) && content.length > 1) {
        const id = `msg_piece_${serial.made++}`; // Logged in pieces, as Claude Code does: one block an entry.
        for (const b of content)
          out.push({ id, type: "message", role: "assistant", model: "claude", content: [b] });
      } else out.push(reply(chance(10) ? [...content].reverse() : content));
      const results = st.calls
        .filter((c) => c.kind !== "web_search")
        .map((c) => ({
          type: "tool_result",
          tool_use_id: c.id,
          ...maybe(1, { content: pick([plain(c.result.parts), c.result.parts.map(anthropicBlock)]) }),
          ...(c.result.error && { is_error: true }),
          ...maybe(6, own()),
        }));
      if (results.length === 0) continue;
      if (chance(6)) out.push(...results.map((r) => ({ role: "user", content: [r] })));
      else
        out.push({
          role: "user",
          content: chance(6)
            ? [{ type: "text", text: text() }, ...results]
            : [...results, ...(chance(4) ? [{ type: "text", text: text() }] : [])],
        });
    }
    if (t.answer !== null) out.push(reply(pick([t.answer, [{ type: "text", text: t.answer }]])));
  }
  return out;
}

function geminiPart(p) {
  if (!isMedia(p)) return { text: p };
  return p.url !== undefined
    ? { fileData: { fileUri: p.url, mimeType: "image/png" } }
    : { inlineData: { mimeType: p.type, data: p.data } };
}
function tellGemini(s) {
  const out = [];
  const model = (parts) => ({ role: "model", parts });
  for (const t of s.turns) {
    out.push({ role: "user", parts: t.user.map(geminiPart) });
    for (const st of t.steps) {
      const ids = chance(2);
      const parts = [
        ...(st.thinking
          ? [
              {
                text: st.thinking.text,
                thought: true,
                ...maybe(2, { thoughtSignature: pick(["c2ln", "claude#x"]) }),
              },
            ]
          : []),
        ...(st.text !== null ? [{ text: st.text }] : []),
        ...st.calls.map((c) =>
          c.kind === "code_interpreter"
            ? { executableCode: { language: "PYTHON", code: "1" } }
            : {
                functionCall: { name: c.name, args: c.args, ...(ids && { id: c.id }) },
                ...maybe(3, { thoughtSignature: "c2ln" }),
              },
        ),
      ];
      if (parts.length === 0) {
        if (chance(4)) out.push(model([]));
        continue;
      }
      out.push(model(parts));
      const answers = st.calls
        .filter((c) => c.kind !== "code_interpreter")
        .map((c) => ({
          functionResponse: {
            name: c.name,
            response: pick([{ output: plain(c.result.parts) }, {}, { error: "failed" }]),
            ...(ids && { id: c.id }),
            ...maybe(10, own()),
          },
        }));
      if (answers.length) out.push({ role: pick(["user", "user", "user", "function"]), parts: answers });
    }
    if (t.answer !== null) out.push(model([{ text: t.answer }]));
  }
  return out;
}

function tellAcontext(s) {
  const part = (p) =>
    isMedia(p)
      ? { type: "image", meta: p.url !== undefined ? { url: p.url } : { media_type: p.type, data: p.data } }
      : { type: "text", text: p };
  const out = [];
  for (const t of s.turns) {
    out.push({ role: "user", parts: t.user.map(part) });
    for (const st of t.steps) {
      const parts = [
        ...(st.thinking
          ? [
              {
                type: "thinking",
                text: st.thinking.text || "hm",
                ...maybe(2, { meta: { signature: st.thinking.signature } }),
              },
            ]
          : []),
        ...(st.text ? [{ type: "text", text: st.text }] : []),
        ...st.calls.map((c) => ({
          type: "tool-call",
          meta: { id: c.id, name: c.name, arguments: argText(c), type: pick(["function", "tool_use"]) },
          ...maybe(5, { text: null }),
        })),
      ];
      if (parts.length) out.push({ role: "assistant", parts });
      if (st.calls.length)
        out.push({
          role: "user",
          parts: st.calls.map((c) => ({
            type: "tool-result",
            text: plain(c.result.parts),
            meta: { tool_call_id: c.id, ...(c.result.error && { is_error: true }) },
          })),
        });
    }
    if (t.answer !== null) out.push({ role: "assistant", parts: [{ type: "text", text: t.answer }] });
  }
  return out;
}

function tellToolMessage(s, older) {
  const out = s.system === null ? [] : [{ role: "system", content: s.system }];
  const part = (p) =>
    isMedia(p)
      ? { type: "image", mimeType: p.type ?? "image/png", data: p.data ?? p.url }
      : { type: "text", text: p };
  for (const t of s.turns) {
    out.push({ role: "user", content: pick([() => t.user.map(part), () => plain(t.user)])() });
    for (const st of t.steps) {
      const content = [
        ...(st.thinking ? [{ type: "reasoning", text: st.thinking.text }] : []),
        ...(st.text !== null ? [{ type: "text", text: st.text }] : []),
        ...st.calls.map((c) => ({
          type: "tool_use",
          id: c.id,
          name: c.name,
          input: c.args,
          ...maybe(4, { displayName: "Read", description: "reads" }),
        })),
      ];
      if (content.length) out.push({ role: "assistant", content });
      const outcome = (c) => ({
        llmContent: pick([() => plain(c.result.parts), () => c.result.parts.map(part)])(),
        ...maybe(3, { returnDisplay: "shown" }),
        ...(c.result.error && { isError: true }),
      });
      if (!st.calls.length) continue;
      if (older)
        out.push(
          ...st.calls.map((c) => ({
            role: "user",
            content: [{ type: "tool_result", id: c.id, name: c.name, input: c.args, result: outcome(c) }],
          })),
        );
      else
        out.push({
          role: "tool",
          content: st.calls.map((c) => ({
            type: "tool-result",
            toolCallId: c.id,
            toolName: c.name,
            input: c.args,
            result: outcome(c),
          })),
        });
    }
    if (t.answer !== null) out.push({ role: "assistant", content: [{ type: "text", text: t.answer }] });
  }
  return out;
}

function tellLegacy(s) {
  const out = s.system === null ? [] : [{ role: "system", content: s.system }];
  for (const t of s.turns) {
    out.push({ role: "user", content: plain(t.user) });
    for (const st of t.steps)
      out.push({
        role: "assistant",
        content:
          (st.text ?? "") +
          st.calls
            .map(
              (c) =>
                `<function_call>${JSON.stringify({
                  ...maybe(2, { id: c.id }),
                  name: c.name,
                  arguments: pick([argText(c), c.args]),
                  ...(chance(8) ? {} : { response: plain(c.result.parts) }),
                  ...maybe(3, { duration: 4 }),
                })}</function_call>`,
            )
            .join(""),
      });
    if (t.answer !== null) out.push({ role: "assistant", content: t.answer });
  }
  return out;
}

// What the AI SDK has in place of a file or an image.
const sdkFile = (p) => ({ type: "file", mediaType: p.type ?? "image/png", url: mediaUrl(p) });

function uiTool(c) {
  const named = chance(2) && c.name ? { type: `tool-${c.name}` } : { type: "dynamic-tool", toolName: c.name };
  const base = { ...named, toolCallId: c.id };
  return pick([
    () => ({ ...base, state: "output-available", input: c.args, output: plain(c.result.parts) }),
    () => ({ ...base, state: "output-available", input: c.args, output: { said: plain(c.result.parts), n: 1.5 } }),
    () => ({ ...base, state: "output-error", input: c.args, errorText: text() }),
    () => ({ ...base, state: "input-available", input: c.args }),
  ])();
}

function tellUiMessage(s) {
  const out = s.system === null ? [] : [{ role: "system", parts: [{ type: "text", text: s.system }] }];
  for (const t of s.turns) {
    out.push({
      role: "user",
      parts: t.user.map((p) => (isMedia(p) ? sdkFile(p) : { type: "text", text: p })),
    });
    const parts = t.steps.flatMap((st) => [
      { type: "step-start" },
      ...(st.thinking ? [{ type: "reasoning", text: st.thinking.text, ...maybe(2, { state: "done" }) }] : []),
      ...(st.text !== null ? [{ type: "text", text: st.text, ...maybe(2, { state: "done" }) }] : []),
      ...st.calls.map(uiTool),
      ...(chance(9) ? [{ type: "data-note", data: { n: 1 } }] : []),
    ]);
    if (t.answer !== null) parts.push({ type: "text", text: t.answer });
    if (parts.length) out.push({ role: "assistant", parts });
  }
  return out.map((m) => ({ id: `ui_${serial.made++}`, ...m }));
}

function tellModelMessage(s) {
  const out = s.system === null ? [] : [{ role: "system", content: s.system }];
  const part = (p) =>
    isMedia(p)
      ? { type: "image", image: p.data ?? p.url, ...(p.type && { mediaType: p.type }) }
      : { type: "text", text: p };
  const output = (c) =>
    pick([
      () => ({ type: c.result.error ? "error-text" : "text", value: plain(c.result.parts) }),
      () => ({ type: c.result.error ? "error-json" : "json", value: { said: plain(c.result.parts) } }),
      () => ({
        type: "content",
        // Media have another shape in each version of the SDK.
        value: c.result.parts.filter((p) => !isMedia(p)).map((text) => ({ type: "text", text })),
      }),
    ])();
  for (const t of s.turns) {
    out.push({ role: "user", content: pick([() => t.user.map(part), () => plain(t.user)])() });
    for (const st of t.steps) {
      const content = [
        ...(st.thinking ? [{ type: "reasoning", text: st.thinking.text }] : []),
        ...(st.text !== null ? [{ type: "text", text: st.text }] : []),
        ...st.calls.map((c) => ({ type: "tool-call", toolCallId: c.id, toolName: c.name, input: c.args })),
      ];
      if (content.length) out.push({ role: "assistant", content });
      const results = st.calls.map((c) => ({
        type: "tool-result",
        toolCallId: c.id,
        toolName: c.name,
        output: output(c),
      }));
      if (results.length && chance(3)) out.push(...results.map((r) => ({ role: "tool", content: [r] })));
      else if (results.length) out.push({ role: "tool", content: results });
    }
    if (t.answer !== null) out.push({ role: "assistant", content: t.answer });
  }
  return out;
}

function tellLangchain(s) {
  const out = s.system === null ? [] : [{ type: "system", data: { content: s.system } }];
  const content = (parts) =>
    parts.every((p) => !isMedia(p))
      ? parts.join("\n")
      : parts.map((p) =>
          isMedia(p) ? { type: "image_url", image_url: { url: mediaUrl(p) } } : { type: "text", text: p },
        );
  for (const t of s.turns) {
    out.push({ type: "human", data: { content: content(t.user), ...maybe(4, { additional_kwargs: {} }) } });
    for (const st of t.steps) {
      out.push({
        type: "ai",
        data: {
          content: st.text ?? "",
          tool_calls: st.calls.map((c) => ({ name: c.name, args: c.args, id: c.id, type: "tool_call" })),
          ...maybe(4, { response_metadata: { model: "m" }, usage_metadata: { total_tokens: 3 } }),
        },
      });
      for (const c of st.calls)
        out.push({
          type: "tool",
          data: {
            content: content(c.result.parts),
            tool_call_id: c.id,
            ...maybe(2, { name: c.name }),
            ...(c.result.error && { status: "error" }),
          },
        });
    }
    if (t.answer !== null) out.push({ type: "ai", data: { content: t.answer } });
  }
  return out;
}

// For each kind of history: its teller, and the format where that has another name.
export const tellers = {
  openai: [(s) => tellOpenAI(s)],
  own: [(s) => tellOpenAI(s, { extras: true }), "openai"],
  invocations: [(s) => tellOpenAI(s, { extras: chance(2), invocations: true }), "openai"],
  responses: [tellResponses],
  anthropic: [tellAnthropic],
  gemini: [tellGemini],
  acontext: [tellAcontext],
  toolmessage2: [(s) => tellToolMessage(s, false)],
  toolmessage: [(s) => tellToolMessage(s, true)],
  legacy: [tellLegacy],
};
// Kinds that were added later. For the kinds above, a seed still gives the same history as before.
export const laterTellers = {
  uimessage: [tellUiMessage],
  modelmessage: [tellModelMessage],
  langchain: [tellLangchain],
};
