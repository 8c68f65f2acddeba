// The strict judges: what an endpoint of each provider would refuse in a history. They share no code
// and no table with Steno, and were written from the providers' type declarations, their documents
// and the refusals that people have reported; each rule names its source.
//
//   checkOpenAI(messages)  checkResponses(items)  checkAnthropic({system?, messages})  checkGemini(contents)
//
// Each answers a list of violations {rule, at, text, call?}; an empty one means accepted.
import * as anthropic from "./anthropic.mjs";
import * as gemini from "./gemini.mjs";
import { NotInstalled, schemas } from "./generate.mjs";
import * as openai from "./openai.mjs";
import * as responses from "./responses.mjs";
import { Schemas } from "./schema.mjs";

let loaded = null;
const types = () => (loaded ??= new Schemas(schemas()));

export const checkOpenAI = (messages) => openai.judge(types(), messages);
export const checkResponses = (items) => responses.judge(types(), items);
export const checkAnthropic = (request) => anthropic.judge(types(), request);
export const checkGemini = (contents) => gemini.judge(types(), contents);

export const rules = {
  openai: openai.rules,
  responses: responses.rules,
  anthropic: anthropic.rules,
  gemini: gemini.rules,
};

// One history in the shape that `steno check-history` takes: a list, or for Anthropic also
// {system, messages}.
export function check(provider, history) {
  if (provider === "anthropic")
    return checkAnthropic(Array.isArray(history) ? { messages: history } : history);
  return { openai: checkOpenAI, responses: checkResponses, gemini: checkGemini }[provider](history);
}

export const providers = Object.keys(rules);

// For test files: without the npm packages the whole file is skipped, as others are.
export function needTypes() {
  try {
    types();
  } catch (e) {
    if (!(e instanceof NotInstalled)) throw e;
    console.log(`1..0 # SKIP ${e.message}`);
    process.exit(0);
  }
}
