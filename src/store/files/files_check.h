/*
 * files_check.h - holds a conversation's files to what docs/format.md says.
 *
 * Looks at every byte: checksums, seqs, batches and pairs of the log, what records refer to, the
 * journals of runs, meta.json, and whether ids.idx agrees. What is in order is not mentioned.
 * Calls without a result are no damage: processes die (F1). Repairing moves torn ends and damaged
 * records to the quarantine, leaves tombstones where records were, and makes derived files anew; it
 * never deletes and never guesses (F6).
 */
#ifndef STORE_FILES_FILES_CHECK_H
#define STORE_FILES_FILES_CHECK_H

#include "store/files/files.h"

struct check_finding {
        uint64_t seq;     /* of the record it is about, 0: none */
        const char *what; /* a sentence */
        bool repaired;
        bool repairable; /* by a check that repairs */
        bool note;       /* worth knowing, and no damage */
        bool copied;     /* it is missing, and this is a copy of the conversation: it may have come
                            while that was made, and a repair only notes that it is lost */
};

/* STENO_EDENIED and STENO_EFULL: all was looked at, but what was told of last could not be
 * repaired. A non-zero return of `each` stops the check, which returns it. */
typedef int (*check_fn)(void *ctx, const struct check_finding *f);

int files_check_conv(
    struct files_conv *conv, bool repair, check_fn each, void *ctx, struct steno_error *err);

#endif
