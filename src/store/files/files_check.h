/*
 * files_check.h - holds a conversation's files to what docs/format.md says.
 *
 * Looks at every byte: checksums, seqs, batches and pairs of the log, what records refer to, the
 * journals of runs, meta.json, and whether ids.idx agrees. What is in order is not mentioned.
 * Calls without a result are not damage: processes die (F1). Repairing moves torn ends and damaged
 * records to the quarantine, leaves tombstones where records were, and makes derived files anew; it
 * never deletes and never guesses (F6).
 */
#ifndef STORE_FILES_FILES_CHECK_H
#define STORE_FILES_FILES_CHECK_H

#include "store/files/files.h"

/* STENO_EDENIED and STENO_EFULL: all was looked at, but what was told of last could not be
 * repaired. `each` gets findings without names. */
int files_check_conv(
    struct files_conv *conv, bool repair, check_fn each, void *ctx, struct steno_error *err);

#endif
