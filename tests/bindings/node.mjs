// The tests of the Node.js library. Prints TAP.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Worker } from 'node:worker_threads';
import { MemorySaver, uuid6 } from '@langchain/langgraph-checkpoint';
import { MemorySession } from '@openai/agents';
import { checkHistory, convert, open, version } from './steno/index.js';
import { StenoSession } from './steno/agents.js';
import { ChatStore } from './steno/ai.js';
import { StenoSaver } from './steno/langgraph.js';

const LONG = Boolean(process.env.STENO_TEST_LONG);
const SEED = Number(process.env.STENO_TEST_SEED || 20261115) || Date.now();
const tests = [];
const test = (name, run) => tests.push([name, run]);
const place = () => mkdtempSync(path.join(process.env.STENO_TEST_TMP ?? tmpdir(), 'store-')) + '/s';

function assert(ok, ...what) {
  if (!ok) throw new Error(what.map((w) => (typeof w === 'string' ? w : JSON.stringify(w))).join(' '));
}
const same = (a, b, ...what) => assert(isDeepStrictEqual(a, b), a, 'is not', b, ...what);

async function refused(promise, code) {
  try {
    await promise;
  } catch (e) {
    same(e.code, code, e.message);
    return e;
  }
  throw new Error(`nothing was refused; ${code} was expected`);
}

function random(seed) {
  let state = seed >>> 0 || 1;
  return (n) => {
    state ^= state << 13; state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5; state >>>= 0;
    return state % n;
  };
}

/* ---- the library ---- */

test('appended messages can be read at once, and refused ones are not there', async () => {
  const store = await open(place());
  const chat = await store.create('a', { title: 'A chat' });
  const receipt = await chat.append([{ role: 'user', content: 'é\u{1F600}' }, { role: 'assistant', content: 'b' }]);
  same([receipt.first_seq, receipt.last_seq, receipt.replayed], [1, 2, false]);
  await refused(chat.append([{ role: 'user', content: 'c' }, { role: 'nobody' }]), 'protocol');
  same((await chat.messages()).map((m) => m.content), ['é\u{1F600}', 'b']);
  same(await chat.lastSeq(), 2);
  same((await store.list({ complete: true })).items.map((i) => [i.id, i.title, i.messages]), [['a', 'A chat', 2]]);
});

test('numbers and keys keep their spelling in the text of a view', async () => {
  const chat = await (await open(place())).create('a');
  await chat.append('{"role":"user","content":"x","n":12345678901234567890.10,"n":1e400}', { record: true });
  const { text } = await chat.view({ format: 'stored' });
  assert(text.includes('"n":12345678901234567890.10,"n":1e400'), text);
});

test('a key makes an append happen once, and another batch under it is a conflict', async () => {
  const chat = await (await open(place())).create('a');
  const first = await chat.append({ role: 'user', content: 'x' }, { idempotencyKey: 'k' });
  const again = await chat.append({ role: 'user', content: 'x' }, { idempotencyKey: 'k' });
  same([again.replayed, again.ids], [true, first.ids]);
  await refused(chat.append({ role: 'user', content: 'y' }, { idempotencyKey: 'k' }), 'conflict');
  await refused(chat.append({ role: 'user', content: 'y' }, { expectedSeq: 7 }), 'conflict');
});

test('a large output becomes a ref that reads back byte for byte', async () => {
  const chat = await (await open(place())).create('a');
  await chat.append([{ role: 'user', content: 'x' }, { role: 'assistant', content: null, tool_calls: [
    { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }] }]);
  const bytes = Buffer.alloc(300000, 'line of a log\nERROR it broke\n');
  const out = await chat.output(bytes, { tool: 'f', callId: 'c1', isError: true });
  assert(out.ref && out.content.length < 20000, out.ref);
  assert((await chat.bytes(out.ref)).equals(bytes));
  same((await chat.bytes(out.ref, { offset: 5, length: 2 })).toString(), 'of');
  assert((await chat.context('grep', { ref: out.ref.id, pattern: 'ERROR', max_results: 1 })));
  same(await checkHistory('openai', await chat.messages()), []);
  const { messages } = await convert(await chat.messages(), { from: 'openai', to: 'anthropic' });
  same(await checkHistory('anthropic', messages), []);
});

test('mistakes are errors with a code, and never end the process', async () => {
  const store = await open(place());
  await refused(store.conversation('nobody'), 'not found');
  await refused(open('/proc/none/here'), 'i/o');
  const chat = await store.create('a');
  await refused(chat.view({ format: 'nothing' }), 'invalid');
  for (const bad of [() => chat.append(Symbol('x')), () => store.create(5), () => chat.view({ limit: -1 }), () => chat.view({ limit: NaN })]) {
    let threw = false;
    await (async () => bad())().catch(() => { threw = true; });
    assert(threw, bad.toString());
  }
  chat.close();
  chat.close();
  await refused(chat.lastSeq(), 'invalid');
  assert((await version()).match(/^\d+\.\d+\.\d+$/));
});

test('closing while calls are at work waits for them, in any order', async () => {
  const url = place();
  for (let i = 0; i < 20; i++) {
    const store = await open(url);
    const chat = await store.conversation('a', { create: true });
    const calls = Array.from({ length: 8 }, (_, n) => chat.append({ role: 'user', content: `${i} ${n}` }));
    if (i % 2) store.close();
    chat.close();
    await Promise.all(calls);
    store.close();
  }
  const chat = await (await open(url)).conversation('a');
  same((await chat.messages()).length, 160);
});

test('the garbage collector closes handles that nobody holds, and none that is in use', async () => {
  const url = place();
  const fds = () => require('node:fs').readdirSync('/proc/self/fd').length;
  const require = createRequire(import.meta.url);
  const store = await open(url);
  for (let i = 0; i < 400; i++) {
    const chat = await store.conversation(`c${i % 7}`, { create: true });
    const wait = chat.append({ role: 'user', content: String(i) });
    if (i % 50 === 0) globalThis.gc();
    await wait;
  }
  for (let i = 0; i < 5; i++) {
    globalThis.gc();
    await new Promise((r) => { setTimeout(r, 10); });
  }
  assert(fds() < 300, 'descriptors', fds());
  let sum = 0;
  for (let i = 0; i < 7; i++) sum += (await (await store.conversation(`c${i}`)).messages()).length;
  same(sum, 400);
});

test('worker threads write to one conversation, and nothing is lost or out of order', async () => {
  const url = place();
  await (await open(url)).create('a');
  const body = `import { workerData } from 'node:worker_threads';
    const { open } = await import(workerData.lib);
    const chat = await (await open(workerData.url)).conversation('a');
    for (let i = 0; i < 25; i++) await chat.append({ role: 'user', content: workerData.n + ' ' + i });`;
  const lib = new URL('./steno/index.js', import.meta.url).href;
  await Promise.all(Array.from({ length: 4 }, (_, n) => new Promise((done, failed) => {
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(body)}`), { workerData: { url, n, lib } });
    worker.on('error', failed).on('exit', (code) => (code ? failed(new Error(`exit ${code}`)) : done()));
  })));
  const texts = (await (await (await open(url)).conversation('a')).messages()).map((m) => m.content);
  same(texts.length, 100);
  for (let n = 0; n < 4; n++)
    same(texts.filter((t) => t.startsWith(`${n} `)), Array.from({ length: 25 }, (_, i) => `${n} ${i}`));
});

/* ---- sessions of @openai/agents ---- */

function randomItems(r, calls) {
  const items = [];
  for (let n = 1 + r(4); n > 0; n--) {
    const id = `c${calls.next++}`;
    switch (r(7)) {
      case 0: items.push({ role: 'user', content: `text ${r(1000)}` }); break;
      case 1: items.push({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'é' },
        { type: 'input_image', image: 'data:image/png;base64,iVBORw0KGgo=' }] }); break;
      case 2: items.push({ type: 'message', role: 'assistant', status: 'completed', id: `m${r(5)}`,
        content: [{ type: 'output_text', text: `answer ${r(1000)}`, providerData: { annotations: [] } }] }); break;
      case 3: items.push({ type: 'reasoning', id: `r${r(3)}`, content: [{ type: 'input_text', text: 'so' }],
        ...(r(2) && { rawContent: [{ type: 'reasoning_text', text: 'raw' }], providerData: { encryptedContent: 'x' } }) }); break;
      case 4: items.push({ type: 'hosted_tool_call', name: 'web_search_call', id: `w${r(9)}`, status: 'completed',
        providerData: { type: 'web_search_call', action: { query: 'q' } } }); break;
      default:
        items.push({ type: 'function_call', callId: id, name: 'f', arguments: `{"n":${r(10)}}`, status: 'completed',
          ...(r(2) && { id: `fc${r(4)}`, providerData: { a: r(9) } }) });
        items.push({ type: 'function_call_result', callId: id, name: 'f', status: 'completed',
          output: r(3) ? { type: 'text', text: 'x'.repeat(r(4) ? 20 : 40000) }
            : [{ type: 'input_text', text: 'part' }] });
    }
  }
  return items;
}

/* One change of a session, the same for the same number: [what, arguments...]. */
function randomChange(r, calls, items) {
  const tail = () => items.slice(items.length - r(Math.min(items.length, 4) + 1));
  switch (r(10)) {
    case 0: return ['popItem'];
    case 1: return r(4) ? ['addItems', randomItems(r, calls)] : ['clearSession'];
    case 2: {
      const call = items.filter((i) => i.type === 'function_call').at(-1);
      return call ? ['applyHistoryMutations', { mutations: [{ type: 'replace_function_call', callId: call.callId,
        replacement: { ...call, arguments: '{"changed":true}' } }] }] : ['popItem'];
    }
    case 3: case 4: return ['applyHistoryTransaction', { operationId: `op${calls.next++}`,
      transaction: { type: 'replace_suffix', expectedSuffix: tail(), replacement: randomItems(r, calls) } }];
    case 5: return ['applyHistoryTransaction', { operationId: `op${calls.next++}`,
      transaction: { type: 'append_items', items: randomItems(r, calls) } }];
    case 6: return ['applyHistoryTransaction', { operationId: `op${calls.next++}`, transaction: { type: 'replace_suffix',
      expectedSuffix: [{ role: 'user', content: 'never said' }], replacement: [] } }];
    default: return ['addItems', randomItems(r, calls)];
  }
}

const outcome = async (session, [name, ...args]) => {
  try {
    return { value: (await session[name](...structuredClone(args))) ?? null };
  } catch (e) {
    return { refused: true };
  }
};

test('a session does what the MemorySession of the SDK does, change for change', async () => {
  for (let round = 0; round < (LONG ? 200 : 6); round++) {
    const r = random(SEED + round);
    const calls = { next: 0 };
    const memory = new MemorySession();
    const url = place();
    let session = await StenoSession.open(url, 's');
    for (let step = 0; step < 12; step++) {
      const items = await memory.getItems();
      const change = randomChange(r, calls, items);
      const expected = await outcome(memory, change);
      same(await outcome(session, change), expected, 'round', round, 'step', step, change[0]);
      if (change[0] === 'applyHistoryTransaction') // again, as after a lost answer
        same(await outcome(session, change), await outcome(memory, change), 'again');
      if (r(3) === 0) {
        session.close();
        session = await StenoSession.open(url, 's');
      }
      same(await session.getItems(), await memory.getItems(), 'round', round, 'step', step, change);
      same(await session.getItems(2), await memory.getItems(2));
    }
    // Some formats have nothing for reasoning or searches alone, and an empty history is never valid.
    const spoken = (await memory.getItems()).some((i) => !['reasoning', 'hosted_tool_call'].includes(i.type));
    for (const format of ['openai', 'responses', 'anthropic', 'gemini']) {
      const history = await session.conversation.messages({ format, strict: true });
      if (spoken || history.length) same(await checkHistory(format, history), [], format);
    }
    session.close();
  }
});

test('after a kill a session has all changes that were acknowledged, and at most one more', async () => {
  for (let round = 0; round < (LONG ? 200 : 3); round++) {
    const url = place();
    const child = spawn(process.execPath, ['node.mjs', 'child', url, String(SEED + round)], { stdio: ['ignore', 'pipe', 'inherit'] });
    let acknowledged = 0;
    const stopAt = 1 + random(SEED + round + 99)(12);
    const end = new Promise((done) => { child.on('close', done); });
    child.stdout.on('data', (chunk) => {
      for (const c of chunk.toString()) acknowledged += c === '\n' ? 1 : 0;
      if (acknowledged >= stopAt) child.kill('SIGKILL');
    });
    await end;
    const r = random(SEED + round);
    const calls = { next: 0 };
    const memory = new MemorySession();
    const states = [[]];
    for (let step = 0; step <= acknowledged; step++) {
      await outcome(memory, randomChange(r, calls, await memory.getItems()));
      states.push(await memory.getItems());
    }
    const session = await StenoSession.open(url, 's');
    const got = await session.getItems();
    assert(isDeepStrictEqual(got, states[acknowledged]) || isDeepStrictEqual(got, states[acknowledged + 1]),
      'round', String(round), 'after', String(acknowledged), got);
    session.close();
  }
});

test('a change that is killed while it deletes the old end is complete for the next reader, wherever it was killed', async () => {
  const text = (n) => ({ role: 'user', content: `text ${n}` });
  const before = [1, 2, 3, 4, 5].map(text);
  const call = { type: 'function_call', callId: 'c', name: 'f', arguments: '{}', status: 'completed' };
  const changed = { ...call, arguments: '{"changed":true}' };
  const changes = {
    'a suffix replaced': [before, (s) => s.applyHistoryTransaction({ operationId: 'o', transaction: { type: 'replace_suffix', expectedSuffix: before.slice(2), replacement: [text(6)] } }), [text(1), text(2), text(6)]],
    'all cleared': [before, (s) => s.clearSession(), []],
    'a call replaced': [[text(1), call, ...before.slice(2)], (s) => s.applyHistoryMutations({ mutations: [{ type: 'replace_function_call', callId: 'c', replacement: changed }] }), [text(1), changed, ...before.slice(2)]],
    'a compaction': [before, (s) => s.replaceHistoryWithCompaction([text(7), text(8)]), [text(7), text(8)]],
  };
  for (const [name, [items, change, after]] of Object.entries(changes))
    for (let most = 0, cut = true; cut; most++) {
      const url = place();
      const session = await StenoSession.open(url, 's');
      await session.addItems(items);
      cut = false;
      // A store that dies at its n-th write after the change: from there on the proxy does nothing.
      let writes = 0;
      const dies = new Proxy(session.conversation, { get: (to, what) => {
        const f = to[what];
        if (typeof f !== 'function') return f;
        return (...args) => {
          if ((what === 'delete' || what === 'append') && writes++ > most) { cut = true; throw new Error('dead'); }
          return f.apply(to, args);
        };
      } });
      await change(new StenoSession(dies)).catch((e) => same(e.message, 'dead'));
      session.close();
      const next = await StenoSession.open(url, 's');
      same(await next.getItems(), after, name, 'cut behind write', String(most));
      await next.addItems([text(9)]);
      same(await next.getItems(), [...after, text(9)], name, 'and goes on');
      next.close();
    }
});

async function child(url, seed) {
  const session = await StenoSession.open(url, 's');
  const memory = new MemorySession(); // what the next change is drawn from
  const r = random(seed);
  const calls = { next: 0 };
  for (let step = 0; step < 60; step++) {
    const change = randomChange(r, calls, await memory.getItems());
    await outcome(memory, change);
    await outcome(session, change);
    process.stdout.write('.\n');
  }
}

/* ---- chats of the AI SDK ---- */

for (const ai of ['ai5', 'ai6', 'ai7']) {
  test(`chats that useChat of ${ai} saves come back the same and are valid`, async () => {
    const { validateUIMessages } = await import(ai);
    const chats = await ChatStore.open(place());
    same(await chats.load('c'), []);
    const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'hello' }] }];
    await chats.save('c', messages);
    messages.push({ id: 'a1', role: 'assistant', metadata: { model: 'm' }, parts: [{ type: 'step-start' },
      { type: 'tool-f', toolCallId: 'c1', state: 'input-available', input: { a: 1 } }] });
    await chats.save('c', messages);
    messages[1] = { ...messages[1], parts: [{ type: 'step-start' }, { type: 'tool-f', toolCallId: 'c1',
      state: 'output-available', input: { a: 1 }, output: 'x'.repeat(50000) }, { type: 'text', text: 'done' }] };
    await chats.save('c', messages);
    await chats.save('c', messages);
    same(await chats.load('c'), messages);
    await validateUIMessages({ messages: await chats.load('c') });
    await chats.save('c', messages.slice(0, 1)); // a regenerate
    same(await chats.load('c'), messages.slice(0, 1));
  });
}

/* ---- LangGraph ---- */

const plain = (tuple) => tuple && { ...tuple, config: { configurable: { ...tuple.config.configurable } } };

async function listed(saver, ...args) {
  const tuples = [];
  for await (const tuple of saver.list(...args)) tuples.push(plain(tuple));
  return tuples.sort((a, b) => (JSON.stringify(a.config) < JSON.stringify(b.config) ? 1 : -1));
}

test("a checkpointer answers what LangGraph's MemorySaver answers, also after each reopening", async () => {
  for (let round = 0; round < (LONG ? 50 : 4); round++) {
    const r = random(SEED + round);
    const memory = new MemorySaver();
    const url = place();
    let saver = await StenoSaver.open(url);
    const last = {};
    const versions = {};
    for (let step = 0; step < 25; step++) {
      const thread_id = `t${r(2)}`;
      const checkpoint_ns = r(3) ? '' : 'sub';
      const at = `${thread_id} ${checkpoint_ns}`;
      const config = { configurable: { thread_id, checkpoint_ns, ...(last[at] && { checkpoint_id: last[at] }) } };
      if (last[at] && r(3) === 0) {
        const writes = [['a', { n: step }], [r(2) ? '__error__' : 'b', `w${step}`]];
        const task = `task${r(2)}`;
        for (const each of [memory, saver]) await each.putWrites(config, writes, task);
      } else {
        const v = (versions[at] = { ...versions[at], [`ch${r(3)}`]: step + 1 });
        versions[`${at} values`] = { ...versions[`${at} values`], ...Object.fromEntries(
          Object.entries(v).filter(([, version]) => version === step + 1).map(([c]) => [c, { text: `${step} é` }])) };
        const checkpoint = { v: 4, id: uuid6(step), ts: new Date(1e12 + step).toISOString(),
          channel_values: versions[`${at} values`], channel_versions: v, versions_seen: {} };
        const changed = Object.fromEntries(Object.entries(v).filter(([, version]) => version === step + 1));
        const metadata = { source: r(2) ? 'loop' : 'input', step, parents: {} };
        for (const each of [memory, saver]) await each.put(config, checkpoint, metadata, changed);
        last[at] = checkpoint.id;
      }
      if (r(4) === 0) {
        saver.close();
        saver = await StenoSaver.open(url);
      }
      if (r(12) === 0) {
        for (const each of [memory, saver]) await each.deleteThread(thread_id);
        for (const key of Object.keys(last)) if (key.startsWith(thread_id)) delete last[key];
        for (const key of Object.keys(versions)) if (key.startsWith(thread_id)) delete versions[key];
      }
      for (const where of [config, { configurable: { thread_id, checkpoint_ns } }])
        same(plain(await saver.getTuple(where)), plain(await memory.getTuple(where)), 'round', round, 'step', step);
    }
    for (const where of [{}, { configurable: { thread_id: 't0' } }, { configurable: { thread_id: 't1', checkpoint_ns: 'sub' } }])
      for (const options of [{}, { filter: { source: 'loop' } }])
        same(await listed(saver, where, options), await listed(memory, where, options));
    saver.close();
  }
});

if (LONG) {
  test("LangGraph's own tests of checkpointers pass", async () => {
    // The runner of these tests is large and used for nothing else, so it is installed only now.
    const npm = spawnSync('npm', ['install', '--silent', '--no-save', '--prefix', 'graph', 'vitest@4.1.12',
      '@langchain/core@1.2.13', '@langchain/langgraph-checkpoint@1.1.5', '@langchain/langgraph-checkpoint-validation@1.1.1'], { encoding: 'utf8' });
    assert(npm.status === 0, npm.stderr);
    cpSync('steno', 'graph/steno', { recursive: true });
    for (const file of ['vitest.config.mjs', 'langgraph.validation.mjs']) cpSync(file, `graph/${file}`);
    const done = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--globals', '--reporter=json'],
      { encoding: 'utf8', cwd: 'graph', maxBuffer: 1 << 28 });
    assert(done.stdout.includes('{'), done.stdout.slice(-1500), done.stderr.slice(-1500));
    const report = JSON.parse(done.stdout.slice(done.stdout.indexOf('{')));
    const failed = report.testResults.flatMap((f) => f.assertionResults).filter((a) => a.status === 'failed');
    assert(done.status === 0 && report.numPassedTests > 500, failed.slice(0, 3), report.numPassedTests);
  });
}

/* ---- the README ---- */

// The code that each section of the README needs in addition to what it shows.
const AROUND = {
  'Stores and conversations': '',
  '@openai/agents': `import { Agent, run, Usage } from '@openai/agents';
    const said = { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'the build' }] };
    const agent = new Agent({ name: 'a', model: { getResponse: async () => ({ usage: new Usage(), output: [said] }) } });`,
  LangGraph: "const builder = { compile: ({ checkpointer }) => checkpointer.getTuple({ configurable: { thread_id: 't' } }) };",
  'The AI SDK': "const id = 'chat-1';",
};

test('the examples of the README run as they stand', async () => {
  const { exports } = JSON.parse(readFileSync('steno/package.json', 'utf8'));
  const sections = readFileSync('steno/README.md', 'utf8').split(/^## /m).slice(1).map((s) => [s.slice(0, s.indexOf('\n')), s]);
  same(sections.map(([name]) => name), Object.keys(AROUND), 'sections');
  const folder = path.dirname(place());
  for (const [i, [name, text]] of sections.entries()) {
    const code = text.split('\n').filter((line) => line.startsWith('    ')).map((line) => line.slice(4)).join('\n');
    const file = path.resolve(`example-${i}.mjs`);
    writeFileSync(file, `${AROUND[name]}\n${code}`.replace(/'steno(\/\w+)?'/g, (_, part) => `'./steno/${exports[`.${part ?? ''}`].default}'`));
    const done = spawnSync(process.execPath, [file], { cwd: folder, encoding: 'utf8', env: { ...process.env, OPENAI_AGENTS_DISABLE_TRACING: '1' } });
    assert(done.status === 0, name, done.stderr);
  }
  const chat = await (await open(path.join(folder, 'record'))).conversation('support-42');
  const words = JSON.stringify(await chat.messages());
  assert(words.includes('What failed?') && words.includes('the build'), words);
});

/* ---- */

if (process.argv[2] === 'child') {
  await child(process.argv[3], Number(process.argv[4]));
} else {
  console.log(`# seed ${SEED}`);
  console.log(`1..${tests.length}`);
  let failures = 0;
  for (const [i, [name, run]] of tests.entries()) {
    try {
      await run();
      console.log(`ok ${i + 1} - ${name}`);
    } catch (e) {
      failures++;
      console.log(`not ok ${i + 1} - ${name}`);
      for (const line of String(e.stack).split('\n').slice(0, 12)) console.log(`# ${line.slice(0, 600)}`);
    }
  }
  process.exitCode = failures ? 1 : 0;
}
