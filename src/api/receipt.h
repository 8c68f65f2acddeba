/*
 * receipt.h - what an append answers.
 */
#ifndef API_RECEIPT_H
#define API_RECEIPT_H

#include "steno.h"
#include "store/backend.h"

/* Before the batch is committed: everything that needs memory, so that what was stored cannot be
 * reported as refused. */
int receipt_new(const char *conversation, const struct backend_batch *batch,
    struct steno_receipt **out, struct steno_error *err);

/* The ids of the calls of message `i`, where some of them were made here. */
void receipt_note_calls(struct steno_receipt *r, size_t i, const struct about *about);
/* Forgets them: of a replay those count that were stored then. */
void receipt_forget_calls(struct steno_receipt *r);

/* After it was. Takes the ids over (of a replay). STENO_ENOMEM for a replay only. */
int receipt_fill(struct steno_receipt *r, const char *conversation, struct backend_receipt *from,
    struct steno_error *err);

#endif
