/*
 * token.h - JSON string tokens and the text in them.
 *
 * A token is a span of JSON text, quotes included, as it stood in a message; a text is what it
 * says. The hub (message.h) keeps tokens, because copying a token from one format to another
 * costs nothing and loses nothing. What is made here lives in the arena that was given; an empty
 * span comes back when its memory is out (arena->failed).
 */
#ifndef MODEL_TOKEN_H
#define MODEL_TOKEN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"

/* The decoded text of a string node, copied into the arena; empty for anything else. */
struct str token_text(const struct json *j, json_ref r, struct arena *arena);

/* The decoded text of a string token. Points into the token where nothing is escaped.
 * *lossy (may be NULL) is set where a lone surrogate became U+FFFD. */
struct str token_decode(struct str token, struct arena *arena, bool *lossy);

/* A token that says `text`. */
struct str token_make(struct str text, struct arena *arena);

/* Does the token say `z`? Escapes that nobody writes in such words are not looked for. */
static inline bool token_is(struct str token, const char *z)
{
  size_t n = strlen(z);
  return token.n == n + 2 && memcmp(token.p + 1, z, n) == 0;
}

static inline bool token_is_string(struct str token)
{
  return token.n >= 2 && token.p[0] == '"';
}

/* "" or nothing at all. */
static inline bool token_is_empty(struct str token)
{
  return token.n <= 2;
}

#endif
