// The wires of the providers, for server.mjs. Each has:
//   path        which requests it takes
//   history     the history in a request, as the judges take it
//   streams     whether a request asks for a stream
//   error       an error in the provider's shape
//   request     violations of the request around the history
//   reply       a reply as {json, events, remember}: whole, as server-sent events, and with opaque
//               members (opaque(kind) makes one) what has to come back: [{key, opaque}]
//   find        a remembered reply in a later request: {opaque}, or nothing where it is not in there
const halves = (s) =>
  (s.length < 2 ? [s] : [s.slice(0, s.length >> 1), s.slice(s.length >> 1)]).filter((p) => p !== "");
const need = (body, ...keys) =>
  keys.filter((k) => !(k in body)).map((k) => ({ rule: "request", text: `${k} is missing` }));
const known = (body, keys) =>
  Object.keys(body)
    .filter((k) => !keys.includes(k))
    .map((k) => ({ rule: "request", text: `unknown member ${k}` }));
const toolNames = (names, pattern) =>
  names.flatMap((n, i) => [
    ...(typeof n === "string" && pattern.test(n) ? [] : [{ rule: "request", text: `tool name ${n}` }]),
    ...(names.indexOf(n) === i ? [] : [{ rule: "request", text: `two tools named ${n}` }]),
  ]);
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

// ---- OpenAI chat completions ----
const openai = {
  path: /^\/v1\/chat\/completions$/,
  history: (body) => body?.messages,
  streams: (body) => body.stream === true,
  error: (status, message) => ({
    error: {
      message,
      type: status >= 500 ? "server_error" : "invalid_request_error",
      param: null,
      code: null,
    },
  }),
  request: (body) => [
    ...need(body, "model", "messages"),
    ...known(body, [
      "model",
      "messages",
      "tools",
      "tool_choice",
      "parallel_tool_calls",
      "stream",
      "stream_options",
      "temperature",
      "top_p",
      "max_tokens",
      "max_completion_tokens",
      "stop",
      "seed",
      "n",
      "user",
      "metadata",
      "store",
      "response_format",
      "reasoning_effort",
      "presence_penalty",
      "frequency_penalty",
    ]),
    ...toolNames(
      (body.tools ?? []).map((t) => t?.function?.name ?? t?.custom?.name),
      /^[a-zA-Z0-9_-]{1,64}$/,
    ),
    ...("tools" in body && body.tools.length === 0 ? [{ rule: "request", text: "tools is empty" }] : []),
    ...("stream_options" in body && !body.stream
      ? [{ rule: "request", text: "stream_options without stream" }]
      : []),
  ],
  reply(r, opaque, body) {
    const tool_calls = r.calls.map((c) => ({
      id: c.id,
      type: "function",
      function: { name: c.name, arguments: typeof c.args === "string" ? c.args : JSON.stringify(c.args) },
    }));
    const extra = {};
    if (opaque) {
      extra.reasoning_content = opaque("reasoning");
      extra.vendor_state = { token: opaque("vendor") };
      for (const c of tool_calls) c.extra_content = { google: { thought_signature: opaque("thought") } };
    } else if (r.thinking) extra.reasoning_content = r.thinking;
    const message = {
      role: "assistant",
      content: r.text || null,
      ...extra,
      ...(tool_calls.length && { tool_calls }),
    };
    const finish_reason = r.finish ?? (tool_calls.length ? "tool_calls" : "stop");
    const base = { id: `chatcmpl-${r.serial}`, created: 1, model: body.model };
    const chunk = (delta, finish = null) => ({
      data: {
        ...base,
        object: "chat.completion.chunk",
        choices: [{ index: 0, delta, finish_reason: finish }],
      },
    });
    const events = [
      chunk({ role: "assistant", ...extra }),
      ...halves(r.text).map((content) => chunk({ content })),
      ...tool_calls.flatMap((c, index) => [
        chunk({ tool_calls: [{ index, ...c, function: { name: c.function.name, arguments: "" } }] }),
        ...halves(c.function.arguments).map((a) =>
          chunk({ tool_calls: [{ index, function: { arguments: a } }] }),
        ),
      ]),
      chunk({}, finish_reason),
      ...(body.stream_options?.include_usage
        ? [{ data: { ...base, object: "chat.completion.chunk", choices: [], usage } }]
        : []),
      { data: "[DONE]" },
    ];
    const remember = opaque ? [{ key: tool_calls[0]?.id ?? r.text, opaque: pickOpaque(message) }] : [];
    return {
      json: { ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage },
      events,
      remember,
    };
  },
  find(body, g) {
    const m = (body.messages ?? []).find(
      (x) => x.role === "assistant" && (x.tool_calls?.[0]?.id === g.key || x.content === g.key),
    );
    return m && { opaque: pickOpaque(m) };
  },
};
const pickOpaque = (m) => [
  m.reasoning_content,
  m.vendor_state,
  ...(m.tool_calls ?? []).map((c) => c.extra_content),
];

// ---- OpenAI Responses ----
const responses = {
  path: /^\/v1\/responses$/,
  history: (body) =>
    typeof body?.input === "string" ? [{ role: "user", content: body.input }] : body?.input,
  streams: (body) => body.stream === true,
  error: openai.error,
  request: (body) => [
    ...need(body, "model", "input"),
    ...known(body, [
      "model",
      "input",
      "instructions",
      "tools",
      "tool_choice",
      "parallel_tool_calls",
      "stream",
      "stream_options",
      "temperature",
      "top_p",
      "max_output_tokens",
      "reasoning",
      "text",
      "include",
      "store",
      "metadata",
      "user",
      "truncation",
    ]),
    ...toolNames(
      (body.tools ?? []).filter((t) => t?.type === "function" || t?.type === "custom").map((t) => t.name),
      /^[a-zA-Z0-9_-]{1,64}$/,
    ),
  ],
  reply(r, opaque, body) {
    const output = [];
    if (opaque || r.thinking)
      output.push({
        type: "reasoning",
        id: `rs_${r.serial}`,
        summary: r.thinking ? [{ type: "summary_text", text: r.thinking }] : [],
        ...(opaque && { encrypted_content: opaque("reasoning") }),
      });
    if (r.text)
      output.push({
        type: "message",
        id: `msg_${r.serial}`,
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: r.text, annotations: [] }],
      });
    r.calls.forEach((c, i) =>
      output.push({
        type: "function_call",
        id: `fc_${r.serial}_${i}`,
        call_id: c.id,
        name: c.name,
        status: "completed",
        arguments: typeof c.args === "string" ? c.args : JSON.stringify(c.args),
      }),
    );
    const incomplete = r.finish === "length";
    const whole = {
      id: `resp_${r.serial}`,
      object: "response",
      created_at: 1,
      status: incomplete ? "incomplete" : "completed",
      model: body.model,
      output,
      error: null,
      incomplete_details: incomplete ? { reason: "max_output_tokens" } : null,
      instructions: null,
      metadata: {},
      parallel_tool_calls: true,
      temperature: 1,
      top_p: 1,
      tool_choice: "auto",
      tools: [],
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 15,
      },
    };
    let sequence_number = 0;
    const event = (type, more) => ({
      event: type,
      data: { type, sequence_number: sequence_number++, ...more },
    });
    const started = { ...whole, status: "in_progress", output: [], usage: null, incomplete_details: null };
    const events = [
      event("response.created", { response: started }),
      event("response.in_progress", { response: started }),
    ];
    output.forEach((item, output_index) => {
      const empty =
        item.type === "message"
          ? { ...item, status: "in_progress", content: [] }
          : item.type === "function_call"
            ? { ...item, status: "in_progress", arguments: "" }
            : item;
      events.push(event("response.output_item.added", { output_index, item: empty }));
      const at = { output_index, item_id: item.id };
      if (item.type === "message") {
        const part = item.content[0];
        events.push(
          event("response.content_part.added", { ...at, content_index: 0, part: { ...part, text: "" } }),
          ...halves(part.text).map((delta) =>
            event("response.output_text.delta", { ...at, content_index: 0, delta, logprobs: [] }),
          ),
          event("response.output_text.done", { ...at, content_index: 0, text: part.text, logprobs: [] }),
          event("response.content_part.done", { ...at, content_index: 0, part }),
        );
      } else if (item.type === "function_call") {
        events.push(
          ...halves(item.arguments).map((delta) =>
            event("response.function_call_arguments.delta", { ...at, delta }),
          ),
          event("response.function_call_arguments.done", {
            ...at,
            name: item.name,
            arguments: item.arguments,
          }),
        );
      }
      events.push(event("response.output_item.done", { output_index, item }));
    });
    events.push(event(incomplete ? "response.incomplete" : "response.completed", { response: whole }));
    const thought = output.find((i) => i.type === "reasoning");
    return {
      json: whole,
      events,
      remember: opaque ? [{ key: r.calls[0]?.id ?? r.text, opaque: thought }] : [],
    };
  },
  find(body, g) {
    const items = Array.isArray(body.input) ? body.input : [];
    const said = items.findIndex(
      (i) =>
        (i.call_id === g.key && i.type === "function_call") ||
        (i.role === "assistant" && (i.content === g.key || i.content?.[0]?.text === g.key)),
    );
    return said < 0 ? null : { opaque: items.slice(0, said).findLast((i) => i.type === "reasoning") };
  },
};

// ---- Anthropic Messages ----
const anthropic = {
  path: /^\/v1\/messages$/,
  history: (body) => ({ ...(body && "system" in body && { system: body.system }), messages: body?.messages }),
  streams: (body) => body.stream === true,
  error: (status, message) => ({
    type: "error",
    error: {
      type:
        status === 529
          ? "overloaded_error"
          : status >= 500
            ? "api_error"
            : status === 429
              ? "rate_limit_error"
              : "invalid_request_error",
      message,
    },
    request_id: "req_1",
  }),
  request: (body) => [
    ...need(body, "model", "messages", "max_tokens"),
    ...known(body, [
      "model",
      "messages",
      "cache_control",
      "max_tokens",
      "system",
      "tools",
      "tool_choice",
      "stream",
      "temperature",
      "top_p",
      "top_k",
      "stop_sequences",
      "metadata",
      "thinking",
      "service_tier",
      "output_config",
    ]),
    ...toolNames(
      (body.tools ?? []).map((t) => t?.name),
      /^[a-zA-Z0-9_-]{1,64}$/,
    ),
    // platform.claude.com/docs/en/api/errors#prefill-not-supported
    ...(body.messages?.at(-1)?.role === "assistant"
      ? [{ rule: "request", text: "the conversation must end with a user message" }]
      : []),
  ],
  reply(r, opaque, body) {
    const content = [];
    if (opaque || r.thinking)
      content.push({
        type: "thinking",
        thinking: r.thinking ?? "Let me see.",
        signature: opaque ? opaque("signature") : "c2lnbmF0dXJl",
      });
    if (r.text) content.push({ type: "text", text: r.text, citations: null });
    for (const c of r.calls)
      content.push({
        type: "tool_use",
        id: c.id,
        name: c.name,
        input: typeof c.args === "string" ? {} : c.args,
      });
    const stop_reason = r.finish === "length" ? "max_tokens" : r.calls.length ? "tool_use" : "end_turn";
    const whole = {
      id: `msg_${r.serial}`,
      type: "message",
      role: "assistant",
      model: body.model,
      content,
      stop_reason,
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 5 },
    };
    const event = (type, more = {}) => ({ event: type, data: { type, ...more } });
    const events = [
      event("message_start", { message: { ...whole, content: [], stop_reason: null } }),
      event("ping"),
    ];
    content.forEach((b, index) => {
      const delta = (d) => event("content_block_delta", { index, delta: d });
      const empty =
        b.type === "text"
          ? { ...b, text: "" }
          : b.type === "thinking"
            ? { ...b, thinking: "", signature: "" }
            : { ...b, input: {} };
      events.push(event("content_block_start", { index, content_block: empty }));
      if (b.type === "text")
        events.push(...halves(b.text).map((text) => delta({ type: "text_delta", text })));
      if (b.type === "thinking")
        events.push(
          ...halves(b.thinking).map((thinking) => delta({ type: "thinking_delta", thinking })),
          delta({ type: "signature_delta", signature: b.signature }),
        );
      if (b.type === "tool_use")
        events.push(
          ...halves(JSON.stringify(b.input)).map((partial_json) =>
            delta({ type: "input_json_delta", partial_json }),
          ),
        );
      events.push(event("content_block_stop", { index }));
    });
    events.push(
      event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } }),
      event("message_stop"),
    );
    return {
      json: whole,
      events,
      remember: opaque ? [{ key: r.calls[0]?.id ?? r.text, opaque: content[0] }] : [],
    };
  },
  find(body, g) {
    const m = (body.messages ?? []).find(
      (x) =>
        x.role === "assistant" &&
        Array.isArray(x.content) &&
        x.content.some((b) => b.id === g.key || b.text === g.key),
    );
    return m && { opaque: m.content.find((b) => b.type === "thinking") };
  },
};

// ---- Gemini generateContent ----
const gemini = {
  path: /^\/v1(beta)?\/models\/[^/:]+:(generateContent|streamGenerateContent)$/,
  history: (body) => body?.contents,
  streams: (body, url) => url.includes(":streamGenerateContent"),
  error: (status, message) => ({
    error: {
      code: status,
      message,
      status: status === 400 ? "INVALID_ARGUMENT" : status === 429 ? "RESOURCE_EXHAUSTED" : "UNAVAILABLE",
    },
  }),
  request: (body, path) => [
    ...need(body, "contents"),
    ...known(body, [
      "contents",
      "systemInstruction",
      "tools",
      "toolConfig",
      "generationConfig",
      "safetySettings",
      "cachedContent",
    ]),
    ...toolNames(
      (body.tools ?? []).flatMap((t) => t?.functionDeclarations ?? []).map((d) => d?.name),
      /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/,
    ),
    // github.com/crewAIInc/crewAI/pull/6973
    ...(body.contents?.at(-1)?.role === "model"
      ? [{ rule: "request", text: "the request must end with a user turn or a function response" }]
      : []),
    ...(/gemini-3/.test(path) ? unsigned(body.contents ?? []) : []),
  ],
  reply(r, opaque) {
    const parts = [];
    if (r.thinking) parts.push({ text: r.thinking, thought: true });
    if (r.text)
      parts.push({ text: r.text, ...(opaque && !r.calls.length && { thoughtSignature: opaque("thought") }) });
    // Gemini signs the first of parallel calls.
    r.calls.forEach((c, i) =>
      parts.push({
        functionCall: { name: c.name, args: typeof c.args === "string" ? {} : c.args, id: c.id },
        ...(opaque && i === 0 && { thoughtSignature: opaque("thought") }),
      }),
    );
    const answer = (some, finish) => ({
      candidates: [
        { content: { role: "model", parts: some }, index: 0, ...(finish && { finishReason: finish }) },
      ],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
      modelVersion: "gemini",
      responseId: `r${r.serial}`,
    });
    const finish = r.finish === "length" ? "MAX_TOKENS" : "STOP";
    const signed = parts.find((p) => p.thoughtSignature);
    return {
      json: answer(parts, finish),
      events: [...parts.map((p) => ({ data: answer([p]) })), { data: answer([{ text: "" }], finish) }],
      remember: opaque && signed ? [{ key: r.calls[0]?.id ?? r.text, opaque: signed.thoughtSignature }] : [],
    };
  },
  find(body, g) {
    const p = (body.contents ?? [])
      .flatMap((c) => c.parts ?? [])
      .find((x) => x.functionCall?.id === g.key || x.text === g.key);
    return p && { opaque: p.thoughtSignature };
  },
};

// ai.google.dev/gemini-api/docs/thought-signatures: in the current turn (after the last text of the
// user) the first call of each step is signed.
function unsigned(contents) {
  const from = contents.findLastIndex(
    (c) => c?.role === "user" && (c.parts ?? []).some((p) => p.text !== undefined),
  );
  return contents.slice(from + 1).flatMap((c) => {
    const first = (c?.parts ?? []).find((p) => p.functionCall);
    return first && !first.thoughtSignature
      ? [{ rule: "request", text: `function call ${first.functionCall.name} is missing a thought_signature` }]
      : [];
  });
}

export const wires = { openai, responses, anthropic, gemini };
