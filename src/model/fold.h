/*
 * fold.h - joins calls with their results for a page, one message at a time.
 *
 * A call is open until its result arrives; from then on it holds the result. The fold keeps the
 * messages so far and sets their peers by the rule of pairing.h; the `chat` format writes them.
 * Pushing a history message by message and linking it at once (fold_all) give the same peers,
 * because both are the same pushes.
 *
 * A result without a call, or a second result of a call, is STENO_EPROTO; the error names it, and
 * nothing changes. The caller owns the memory of the messages and must keep it as long as the fold.
 */
#ifndef MODEL_FOLD_H
#define MODEL_FOLD_H

#include "model/message.h"
#include "steno.h"

struct fold;

struct fold *fold_new(void); /* NULL: out of memory */
void fold_free(struct fold *f);

/* Adds the next message. The message is copied, but its parts are not. Its seq becomes its place,
 * counted from 1. */
int fold_push(struct fold *f, const struct message *m, struct steno_error *err);

/* The messages that were pushed, valid until the next push. */
const struct history *fold_history(const struct fold *f);

/* Sets the peers of a whole history with the same pushes. */
int fold_all(struct history *h, struct steno_error *err);

#endif
