/* token.c - see token.h */
#include "model/token.h"

#include <string.h>

#include "steno.h"

static struct str decode(struct str inner, struct arena *arena, bool *lossy)
{
  struct buf b;
  buf_init(&b, 0);
  json_unescape(inner, &b, lossy);
  struct str text = {0};
  if (b.failed)
    arena->failed = STENO_ENOMEM;
  else
    text = arena_dup(arena, buf_str(&b));
  buf_release(&b);
  return text;
}

struct str token_text(const struct json *j, json_ref r, struct arena *arena)
{
  if (json_type(j, r) != JSON_STRING)
    return (struct str){0};
  if (json_is_escaped(j, r))
    return decode(json_inner(j, r), arena, NULL);
  return arena_dup(arena, json_inner(j, r));
}

struct str token_decode(struct str token, struct arena *arena, bool *lossy)
{
  if (!token_is_string(token))
    return (struct str){0};
  struct str inner = {token.p + 1, token.n - 2};
  if (!memchr(inner.p, '\\', inner.n))
    return inner;
  return decode(inner, arena, lossy);
}

struct str token_make(struct str text, struct arena *arena)
{
  struct buf b;
  buf_init(&b, 0);
  json_put_string(&b, text);
  struct str token = {0};
  if (b.failed)
    arena->failed = STENO_ENOMEM;
  else
    token = arena_dup(arena, buf_str(&b));
  buf_release(&b);
  return token;
}
