/*
 * fold.h - tool parts for a page, one message at a time.
 *
 * A call is open until its result arrives and holds it from then on. The fold keeps the messages
 * so far with their peers set, by the rule of pairing.h; the `chat` format writes them. Pushing a
 * history message by message and linking it at once (fold_all) give the same peers, because both
 * are the same pushes.
 *
 * A result without a call, or a second result of a call, is STENO_EPROTO; the error names it, and
 * nothing changes. The messages' memory is the caller's and must outlive the fold.
 */
#ifndef MODEL_FOLD_H
#define MODEL_FOLD_H

#include "model/message.h"
#include "steno.h"

struct fold;

struct fold *fold_new(void); /* NULL: out of memory */
void fold_free(struct fold *f);

/* The next message. It is copied, its parts are not; its seq becomes its place, from 1. */
int fold_push(struct fold *f, const struct message *m, struct steno_error *err);

/* What was pushed, valid until the next push. */
const struct history *fold_history(const struct fold *f);

/* Sets the peers of a whole history with the same pushes. */
int fold_all(struct history *h, struct steno_error *err);

#endif
