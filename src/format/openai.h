/*
 * openai.h - what the reader and the writer of chat completions share: Steno's own members of a
 * message (model.md). Used inside format/ only.
 */
#ifndef FORMAT_OPENAI_H
#define FORMAT_OPENAI_H

#include "format/format.h"

/* Is this key one of Steno's own? It is given as a node or as a raw token. */
bool openai_is_own(const struct json *j, json_ref key);
bool openai_is_own_token(struct str token);

/* The writer; see `write` in format.h. */
int openai_write(struct writer *w, const struct history *h);

/* See `ready` in format.h. */
bool openai_ready(struct str m);

#endif
