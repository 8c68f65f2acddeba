/*
 * purge.h - removing the bytes of deleted and superseded messages from the disk.
 *
 * The log is rewritten (rewrite.h). A purged message becomes a tombstone: a record of kind
 * "tombstone" with its seq, id, time, place in its batch, call ids, run, ref and idempotency key,
 * and `null` for the message. Everything else keeps its bytes, damage included.
 *
 *   P1  Artifacts, parts and journals go before the log is rewritten: as long as a record names
 *       them, a purge that was interrupted can be done again.
 */
#ifndef STORE_FILES_PURGE_H
#define STORE_FILES_PURGE_H

#include "store/files/files.h"

int purge_conv(struct files_conv *conv, struct purge_result *out, struct steno_error *err);

#endif
