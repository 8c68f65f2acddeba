// The worker that reads Markdown. It is killed when a text takes too long. It reports which part it is reading,
// so that the text can be read without that part.
import { Lexer } from "marked";

onmessage = (m: MessageEvent<{ id: number; text: string; skip: number[] }>) => {
  const { id, text, skip } = m.data;
  let tokens: unknown = null;
  try {
    const l = new Lexer({ gfm: true });
    l.blockTokens(text.replace(/\r\n?/g, "\n"), l.tokens);
    for (let at = 0; at < l.inlineQueue.length; at++) {
      const part = l.inlineQueue[at]!;
      if (part.src.length > 200) postMessage({ id, at });
      if (skip.includes(at)) part.tokens.push({ type: "text", raw: part.src, text: part.src, escaped: false });
      else l.inlineTokens(part.src, part.tokens);
    }
    tokens = JSON.parse(JSON.stringify(l.tokens));
  } catch { /* then it stays plain */ }
  postMessage({ id, tokens });
};
