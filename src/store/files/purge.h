/*
 * purge.h - taking the bytes of deleted and superseded messages off the disk.
 *
 * The log is written anew beside the old one and takes its name. Of a purged message stays a
 * tombstone: a record of kind "tombstone" with its seq, id, time, place in its batch, call ids,
 * run, ref and idempotency key, and `null` for the message. Everything else keeps its bytes, damage
 * included.
 *
 *   P1  Whoever has the old log open reads it to its end; others notice the new one by its inode.
 *   P2  ids.idx, which has offsets of the old log, is gone before the new one takes its name.
 *   P3  Artifacts, parts and journals go before the log is rewritten: as long as a record names
 *       them, a purge that was interrupted can be done again.
 *   P4  A record's `group` is, in the new log, its distance from the first record of its batch:
 *       everything was synced at once, and each batch is still found whole without ids.idx.
 */
#ifndef STORE_FILES_PURGE_H
#define STORE_FILES_PURGE_H

#include "store/files/files.h"

struct purge_result {
        uint64_t messages; /* that became tombstones */
        uint64_t bytes;    /* that left the disk */
};

int purge_conv(struct files_conv *conv, struct purge_result *out, struct steno_error *err);

#endif
