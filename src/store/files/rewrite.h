/*
 * rewrite.h - rewriting the log: the new one is written beside the old one, synced, and renamed.
 *
 * A purge replaces removed records by tombstones, and does not touch damage. A repair moves damage
 * to the quarantine and replaces every lost record by a tombstone that is marked as lost. A copy
 * for a fork or a bundle goes to a sink and changes nothing here.
 *
 *   W1  A process that has the old log open reads it to its end; others notice the new one by its
 *       inode.
 *   W2  ids.idx, which has offsets of the old log, is gone before the new one takes its name.
 *   W3  A record's `group` is, in the new log, its distance from the first record of its batch:
 *       everything was synced at once, and each batch is still found whole without ids.idx.
 */
#ifndef STORE_FILES_REWRITE_H
#define STORE_FILES_REWRITE_H

#include "store/files/conv.h"
#include "store/files/purge_plan.h"

/* With tombstones for the records of the plan. *bytes: by how much it became smaller. Under the
 * lock and fresh. */
int rewrite_purged(struct files_conv *conv, const struct purge_plan *plan, uint64_t *bytes,
    struct steno_error *err);
/* Without damage. False in *mended: there is none, or seqs jump so far that they are nonsense. */
int rewrite_mended(struct files_conv *conv, bool *mended, struct steno_error *err);

struct rewrite_copy {
        int log;                       /* open */
        uint64_t end;                  /* so many bytes of it */
        const struct purge_plan *plan; /* its records become tombstones */
        bool drop_keys;                /* idempotency keys, which are the original's alone */
        bool partial; /* damage becomes tombstones of what was lost, else it is STENO_ECORRUPT */
};

/* Needs no lock while nobody cuts the log at `end`. The same log gives the same bytes. */
int rewrite_copy(struct files_conv *conv, const struct rewrite_copy *copy, steno_sink sink,
    void *ctx, struct steno_error *err);

#endif
