/*
 * receipt.h - what an append answers.
 */
#ifndef STENO_RECEIPT_H
#define STENO_RECEIPT_H

#include "steno.h"
#include "store/files/files.h"

/* Takes the ids over (of a replay), else copies those of the batch. */
int receipt_new(const char *conversation, const struct files_batch *batch,
    struct files_receipt *from, struct steno_receipt **out, struct steno_error *err);

#endif
