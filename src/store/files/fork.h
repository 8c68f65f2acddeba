/*
 * fork.h - a new conversation with the history of another up to some record.
 *
 * Records keep seq, id, time and bytes. Deleted and superseded messages become tombstones, as a
 * purge would leave them, and idempotency keys stay behind. Outputs and parts are shared where the
 * file system can share them: both conversations then have names for the same bytes, which nobody
 * changes in place, so that removing one name costs the other nothing. Journals of runs stay with
 * the origin, which meta.json names: {"origin":{"project","conversation","uid","seq"}}.
 *
 * The origin is locked while it is copied.
 */
#ifndef STORE_FILES_FORK_H
#define STORE_FILES_FORK_H

#include "store/files/files.h"

/* *seq (may be NULL): the last record that was taken. STENO_ECORRUPT: the log is damaged before
 * that. */
int fork_conv(struct files_conv *origin, const struct fork_request *request,
    struct files_conv **out, uint64_t *seq, struct steno_error *err);

#endif
