/*
 * token.h - JSON strings and the text in them.
 *
 * The hub (message.h) keeps a string as the inside of its JSON token, escapes as they stood,
 * because copying that from one format to another costs nothing and loses nothing. This is how to
 * get at the text, and how to make such strings. New strings live in the caller's arena; an absent
 * string is returned when the arena is out of memory (arena->failed).
 */
#ifndef MODEL_TOKEN_H
#define MODEL_TOKEN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

/* The decoded text of a string node, copied into the arena; absent for anything else. */
struct str token_text(const struct json *j, json_ref r, struct arena *arena);

/* The decoded text of a string. Points into it where nothing is escaped. *lossy (may be NULL) is
 * set where a lone surrogate became U+FFFD. */
struct str token_decode(struct str string, struct arena *arena, bool *lossy);

/* A string that says `text`. */
struct str token_make(struct str text, struct arena *arena);

/* The strings one behind the other. */
struct str token_join(struct str a, struct str b, struct arena *arena);

/*
 * The same for many: each is added, and what they are together comes at the end, which must be
 * asked for. One after the other with token_join() would keep every step: a message of 8 MB in 250
 * parts cost 1 GB.
 */
struct token_sum {
        struct str first; /* as long as it is the only one that says something */
        struct buf all;
};

void token_sum_begin(struct token_sum *s);
/* Absent ones change nothing. */
void token_sum_add(struct token_sum *s, struct str string);
/* Absent where nothing was added. */
struct str token_sum_end(struct token_sum *s, struct arena *arena);

#endif
