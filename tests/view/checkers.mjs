// Judges of what a provider accepts, for tests: written from the providers' published rules, and
// on purpose not from src/view/check*.c, which they are held against.
//
// Each takes the messages of a request and returns a list of complaints, empty when it would be
// accepted.

const str = (v) => typeof v === 'string';
const obj = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
const groupBy = (list, key) => {
  const runs = [];
  for (const item of list) {
    const k = key(item);
    if (runs.length && runs.at(-1).key === k) runs.at(-1).items.push(item);
    else runs.push({ key: k, items: [item] });
  }
  return runs;
};
// What one bag has and the other has not, with multiplicity.
const minus = (a, b) => {
  const rest = [...b];
  return a.filter((x) => {
    const i = rest.indexOf(x);
    if (i >= 0) rest.splice(i, 1);
    return i < 0;
  });
};
const repeated = (ids) => ids.filter((id, i) => ids.indexOf(id) !== i);

export function openai(messages) {
  const bad = [];
  const say = (i, what) => bad.push(`messages[${i}]: ${what}`);
  if (!Array.isArray(messages) || messages.length === 0) return ['messages must be a non-empty array'];

  const accepts = {
    system: ['text'], developer: ['text'], tool: ['text'],
    user: ['text', 'image_url', 'input_audio', 'file'], assistant: ['text', 'refusal'],
  };
  messages.forEach((m, i) => {
    if (!obj(m)) return say(i, 'not an object');
    if (m.role === 'function') return;
    if (!str(m.role) || !Object.hasOwn(accepts, m.role)) return say(i, `invalid role ${JSON.stringify(m.role)}`);
    const calls = m.role === 'assistant' ? m.tool_calls : undefined;
    if (calls !== undefined) {
      if (!Array.isArray(calls)) say(i, 'tool_calls is not an array');
      else {
        if (calls.length === 0) say(i, 'tool_calls is too short');
        for (const c of calls) {
          if (!obj(c) || !str(c.id) || c.id === '') { say(i, 'a call without an id'); continue; }
          const f = c.type === 'function' ? c.function : c.type === 'custom' ? c.custom : null;
          if (!obj(f)) say(i, `call ${c.id} is neither a function nor custom`);
          else {
            if (!str(f.name) || f.name === '') say(i, `call ${c.id} has no name`);
            if (!str(c.type === 'custom' ? f.input : f.arguments)) say(i, `call ${c.id}: arguments is not a string`);
          }
        }
        for (const id of repeated(calls.map((c) => c?.id))) say(i, `two calls ${id}`);
      }
    }
    if (m.content === null || m.content === undefined) {
      const instead = m.role === 'assistant' &&
        (Array.isArray(calls) || obj(m.function_call) || str(m.refusal) || obj(m.audio));
      if (!instead) say(i, `${m.role} without content`);
    } else if (Array.isArray(m.content)) {
      if (m.content.length === 0) say(i, 'content is an empty array');
      for (const p of m.content) {
        if (!obj(p) || !accepts[m.role].includes(p.type)) say(i, `content part ${JSON.stringify(p?.type)}`);
        else if (!Object.hasOwn(p, p.type) || (p.type === 'text' && !str(p.text))) say(i, `malformed ${p.type} part`);
      }
    } else if (!str(m.content)) say(i, 'content is neither string nor array');
    if (m.role === 'tool' && !str(m.tool_call_id)) say(i, 'tool message without tool_call_id');
  });

  // The roles as segments: [opener, its tool messages].
  let opener = null;
  let answered = [];
  let from = -1;
  const finish = () => {
    const asked = opener?.role === 'assistant' && Array.isArray(opener.tool_calls)
      ? opener.tool_calls.map((c) => c?.id).filter((id) => str(id) && id) : [];
    for (const id of minus([...new Set(asked)], answered)) say(from, `tool_call_ids did not have response messages: ${id}`);
    for (const id of minus(answered, [...new Set(asked)])) say(from, `tool message ${id} has no preceding tool_calls, or is a second one`);
  };
  messages.forEach((m, i) => {
    if (m?.role === 'tool') { if (str(m.tool_call_id)) answered.push(m.tool_call_id); return; }
    finish();
    [opener, answered, from] = [m, [], i];
  });
  finish();
  return bad;
}

export function anthropic(messages) {
  const bad = [];
  if (!Array.isArray(messages) || messages.length === 0) return ['messages: at least one message is required'];
  for (const [i, m] of messages.entries())
    if (m?.role !== 'user' && m?.role !== 'assistant') bad.push(`messages.${i}.role: ${JSON.stringify(m?.role)}`);
  if (bad.length) return bad;
  if (messages[0].role !== 'user') bad.push('first message must use the user role');

  const blank = (t) => !str(t) || !/[^ \t\r\n\v\f]/.test(t);
  // The provider combines consecutive turns of one role; judge what it sees.
  const turns = groupBy(messages, (m) => m.role).map(({ key, items }) => ({
    role: key,
    blocks: items.flatMap((m) => {
      if (str(m.content)) { if (blank(m.content)) bad.push('empty content'); return [{ type: 'text', text: m.content, whole: true }]; }
      if (!Array.isArray(m.content) || m.content.length === 0) { bad.push('content must be non-empty'); return []; }
      return m.content;
    }),
  }));
  const ids = [];
  turns.forEach((turn, t) => {
    let last = null;
    let sawUse = false;
    let sawOther = false;
    for (const b of turn.blocks) {
      last = b?.type;
      if (!str(b?.type)) { bad.push(`turn ${t}: block without type`); continue; }
      if (b.type === 'text' && !b.whole && blank(b.text)) bad.push(`turn ${t}: text content blocks must be non-empty`);
      if (b.type === 'tool_use') {
        if (turn.role !== 'assistant') bad.push(`turn ${t}: tool_use from the user`);
        if (!str(b.id) || !/^[a-zA-Z0-9_-]+$/.test(b.id)) bad.push(`turn ${t}: tool_use.id ${JSON.stringify(b.id)} does not match the pattern`);
        if (!str(b.name) || b.name === '') bad.push(`turn ${t}: tool_use without name`);
        if (!obj(b.input)) bad.push(`turn ${t}: tool_use.input is not a dictionary`);
        ids.push(b.id);
        sawUse = true;
      }
      if (b.type === 'tool_result') {
        if (turn.role !== 'user') bad.push(`turn ${t}: tool_result from the assistant`);
        if (sawOther) bad.push(`turn ${t}: tool_result behind other content`);
        if (b.content !== undefined && !str(b.content) && !Array.isArray(b.content)) bad.push(`turn ${t}: tool_result.content`);
        if (Array.isArray(b.content) && b.content.some((k) => k?.type === 'text' && (!str(k.text) || k.text === '')))
          bad.push(`turn ${t}: empty text in a tool_result`);
      } else sawOther = true;
      if (/^(redacted_)?thinking$/.test(b.type)) {
        if (turn.role !== 'assistant') bad.push(`turn ${t}: thinking from the user`);
        if (sawUse) bad.push(`turn ${t}: thinking behind tool_use`);
        if (b.type === 'thinking' && (!str(b.signature) || b.signature === '')) bad.push(`turn ${t}: thinking without signature`);
      }
    }
    if (turn.role === 'assistant' && /thinking$/.test(last ?? '')) bad.push(`turn ${t}: ends in thinking`);
  });
  for (const id of repeated(ids)) bad.push(`tool_use ids must be unique: ${id}`);
  turns.forEach((turn, t) => {
    const uses = turn.blocks.filter((b) => b?.type === 'tool_use').map((b) => b.id);
    const next = turns[t + 1]?.blocks ?? [];
    const results = next.filter((b) => b?.type === 'tool_result').map((b) => b.tool_use_id);
    if (turn.role === 'assistant') {
      for (const id of minus(uses, results)) bad.push(`turn ${t}: tool_use ${id} without tool_result immediately after`);
      for (const id of minus(results, uses)) bad.push(`turn ${t + 1}: unexpected tool_use_id ${id}`);
    } else if (t === 0 && turn.blocks.some((b) => b?.type === 'tool_result')) bad.push('tool_result in the first turn');
  });
  const final = turns.at(-1);
  if (final.role === 'assistant' && final.blocks.at(-1)?.type === 'text' && /[ \t\r\n]$/.test(final.blocks.at(-1).text ?? ''))
    bad.push('final assistant content cannot end with trailing whitespace');
  return bad;
}

export function gemini(contents) {
  const bad = [];
  if (!Array.isArray(contents) || contents.length === 0) return ['contents is not specified'];
  const kinds = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'executableCode', 'codeExecutionResult'];
  const turns = contents.map((c, i) => {
    if (!['user', 'model', 'function'].includes(c?.role)) bad.push(`contents[${i}]: please use a valid role`);
    const parts = Array.isArray(c?.parts) ? c.parts : [];
    if (parts.length === 0) bad.push(`contents[${i}].parts must not be empty`);
    for (const p of parts) {
      const has = kinds.filter((k) => obj(p) && Object.hasOwn(p, k));
      if (has.length !== 1) bad.push(`contents[${i}]: data must have one initialized field, not ${has.length}`);
      if (has.includes('text') && (!str(p.text) || p.text === '')) bad.push(`contents[${i}]: empty text`);
    }
    const calls = parts.filter((p) => p?.functionCall !== undefined).map((p) => p.functionCall);
    const answers = parts.filter((p) => p?.functionResponse !== undefined).map((p) => p.functionResponse);
    const model = c?.role === 'model';
    for (const f of calls) {
      if (!str(f?.name) || f.name === '') bad.push(`contents[${i}]: function_call.name cannot be empty`);
      if (f?.args !== undefined && !obj(f.args)) bad.push(`contents[${i}]: args is not a Struct`);
    }
    for (const f of answers) {
      if (!str(f?.name) || f.name === '') bad.push(`contents[${i}]: function_response.name cannot be empty`);
      if (!obj(f?.response)) bad.push(`contents[${i}]: response is not a Struct`);
    }
    for (const id of repeated(calls.map((f) => f?.id).filter((id) => str(id) && id))) bad.push(`contents[${i}]: two calls ${id}`);
    if (calls.length && !model) bad.push(`contents[${i}]: function call in a ${c?.role} turn`);
    if (answers.length && model) bad.push(`contents[${i}]: function response in a model turn`);
    return { model, calls, answers };
  });
  if (turns[0].model) bad.push('the first turn must be of the user');
  turns.forEach((turn, i) => {
    const before = turns[i - 1];
    const after = turns[i + 1];
    if (turn.model && turn.calls.length) {
      if (!before || before.model) bad.push(`contents[${i}]: function call turn must come immediately after a user turn or after a function response turn`);
      if (!after || after.model || after.answers.length !== turn.calls.length) {
        bad.push(`contents[${i}]: number of function response parts is not equal to number of function call parts`);
      } else {
        const open = [...turn.calls];
        for (const a of after.answers) {
          const at = open.findIndex((f) => f.name === a?.name && (!f.id || !a?.id || f.id === a.id));
          if (at < 0) bad.push(`contents[${i + 1}]: response ${a?.name} answers no call`);
          else open.splice(at, 1);
        }
      }
    }
    if (!turn.model && turn.answers.length && !(before?.model && before.calls.length))
      bad.push(`contents[${i}]: function response turn must come immediately after a function call turn`);
  });
  return bad;
}

export const checkers = { openai, anthropic, gemini };
