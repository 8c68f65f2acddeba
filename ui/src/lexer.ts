// The worker that reads Markdown. It is killed when a text takes too long.
import { Lexer } from "marked";

onmessage = (m: MessageEvent<{ id: number; text: string }>) => {
  const { id, text } = m.data;
  let tokens: unknown = null;
  try { tokens = JSON.parse(JSON.stringify(new Lexer({ gfm: true }).lex(text))); } catch { /* then it stays plain */ }
  postMessage({ id, tokens });
};
