/*
 * token.h - JSON strings and the text in them.
 *
 * The hub (message.h) keeps a string as the inside of its JSON token with its escapes unchanged,
 * because copying that from one format to another costs nothing and loses nothing. The functions
 * here read the text of such strings, and make new ones. New strings live in the caller's arena; an
 * absent string is returned if the arena is out of memory (arena->failed).
 */
#ifndef MODEL_TOKEN_H
#define MODEL_TOKEN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

/* Returns the decoded text of a string node, copied into the arena; absent for anything else. */
struct str token_text(const struct json *j, json_ref r, struct arena *arena);

/* Returns the decoded text of a string. It points into the string if nothing is escaped. *lossy
 * (may be NULL) is set if a lone surrogate became U+FFFD. */
struct str token_decode(struct str string, struct arena *arena, bool *lossy);

/* Returns a string with the content `text`. */
struct str token_make(struct str text, struct arena *arena);

/* Returns the two strings joined. */
struct str token_join(struct str a, struct str b, struct arena *arena);

/*
 * Joins many strings: add each, then ask for the result at the end. Calling token_join() for each
 * would keep every intermediate result: a message of 8 MB in 250 parts took 1 GB.
 */
struct token_sum {
        struct str first; /* the only string so far that is not empty */
        struct buf all;
};

void token_sum_begin(struct token_sum *s);
/* Adds a string. An absent one changes nothing. */
void token_sum_add(struct token_sum *s, struct str string);
/* Returns the result; absent if nothing was added. */
struct str token_sum_end(struct token_sum *s, struct arena *arena);

#endif
