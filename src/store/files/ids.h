/*
 * ids.h - ids.idx: from the hash of an id or idempotency key to the record that has it.
 *
 * It is derived from the log: it can be deleted, and is rebuilt if it is missing or contradicts the
 * log. It also carries the synced mark of the log (log.h, L5), which is written only after a sync
 * and is therefore a lower bound whatever a crash did to this file.
 *
 *   bytes 0..95   the header below, little endian, with a CRC-32C of itself
 *   from 256      `buckets` of 256 bytes: up to 15 entries of {u64 hash, u64 offset + 1} and then
 *                 the seal {u64 sum, u64 all ones} over them and the bucket's number. What does
 *                 not fit stands in the next bucket.
 *
 *   I1  Entries are written before the header that covers them, so whoever trusts `covered` finds
 *       every record before it.
 *   I2  Entries are synced now and then, and only after that the header says up to where they
 *       `last`. After a boot, entries behind that do not count: the disk may have an older state of
 *       a bucket whose seal fits. Entries before it are safe, because a bucket only gains entries,
 *       and lies within one sector. The mark still counts after a boot.
 *   I3  A hit is only a candidate: the record itself is read and compared.
 *   I4  It names the inode of its log. Beside another log (rewritten, copied) it does not count,
 *       except for the seq of its mark if there is no log, or nothing in it can be read.
 *   I5  A bucket whose seal does not fit has lost entries. Then the whole file does not count,
 *       because "not found" could be wrong.
 *
 *   I6  Only synced bytes of the log count as lasting, and only those are indexed outside of the
 *       lock: unsynced bytes may be taken back, and other records written in their place.
 *
 * Writers hold the conversation's lock. Readers need none: they look, then walk the log from
 * `covered` on. A whole new index can be made without the lock, as `ids.idx.new`. The process that
 * makes it holds a lock on that file, so that it is made only once.
 */
#ifndef STORE_FILES_IDS_H
#define STORE_FILES_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/str.h"
#include "store/files/log.h"

/* Entries that wait in memory before they are written. Look-ups find them there; after a kill they
 * must be read from the log again. */
#define IDS_PENDING 1024
/* So many may wait while records come in large groups, as in an import: what is written together
 * costs less. In a log of a million records, one window of the table (16 KiB) then gets 16 entries
 * at a time. More would hold the lock for longer than others should notice (30 ms). */
#define IDS_PENDING_MAX 65536
#define IDS_LARGE_GROUP 256

struct ids_entry {
        uint64_t hash;
        uint64_t at; /* offset + 1 */
};

struct ids {
        const struct env *env;
        int dir; /* the conversation's folder, borrowed */
        int fd;  /* -1: there is none (yet) */
        uint64_t boot;
        uint64_t log; /* inode of the log that it is about */
        uint64_t buckets;
        uint64_t count;
        uint64_t covered; /* bytes of the log that the entries cover */
        uint64_t lasting; /* bytes of the log that they cover after a power cut, too (I2) */
        uint64_t lasting_amend;
        struct log_mark mark;
        uint64_t mark_written;     /* its size as the file has it */
        uint64_t last_amend;       /* seq of the last amendment in the covered part, 0: none */
        struct ids_entry *pending; /* behind what the file has, or NULL */
        unsigned pending_count;
        unsigned pending_cap;
        bool large_groups; /* IDS_PENDING_MAX may wait, else IDS_PENDING */
        uint64_t pending_covered;
};

/* Opens what is there about the log with this inode (0: the mark, of any log). Never fails:
 * without a usable file it is empty and covers nothing. `boot` is ids_boot's. */
void ids_open(struct ids *ids, const struct env *env, uint64_t boot, int dir, uint64_t log);
void ids_close(struct ids *ids);

/* The word for this boot; it costs a few system calls, so whoever opens many asks once. */
uint64_t ids_boot(const struct env *env);

/* The hash of a message id, and of an idempotency key: they do not meet. */
uint64_t ids_hash_id(struct str id);
uint64_t ids_hash_key(struct str key);

/* How much of the log can be found here. */
uint64_t ids_covered(const struct ids *ids);

/* Calls `each` with the offset of every candidate; stops at its first non-zero return, which is
 * returned. Negative: the file cannot be read or is damaged (I5); it covers nothing from then on.
 */
int ids_lookup(struct ids *ids, uint64_t hash, int (*each)(void *ctx, uint64_t at), void *ctx);

/* Adds an entry for a record at `at`. False: the index could not be kept and has forgotten
 * everything; it is rebuilt later. */
bool ids_add(struct ids *ids, uint64_t hash, uint64_t at);
/* Says that all of [from, to) is in. False, and nothing changes, when what lies before `from` is
 * not: it was forgotten meanwhile. */
bool ids_cover(struct ids *ids, uint64_t from, uint64_t to);
void ids_set_amend(struct ids *ids, uint64_t seq);
/* Everything up to this mark is synced. The file is updated now and then, and when it is flushed:
 * an older mark is still valid. */
void ids_set_mark(struct ids *ids, struct log_mark mark);
/* Writes what is pending, the mark too. Under the conversation's lock. */
void ids_flush(struct ids *ids);
bool ids_is_flushed(const struct ids *ids);

/* ---- entries that last ---- */

struct ids_settling {
        int fd;
        uint64_t covered;
        uint64_t amend;
};

/* How many bytes of the log would have to be read again after a power cut now. */
uint64_t ids_unsettled(const struct ids *ids);
/* Three steps: under the lock, without it, and under it again. False: there is nothing to do yet.
 */
bool ids_settle_begin(struct ids *ids, struct ids_settling *out);
int ids_settle_sync(const struct env *env, const struct ids_settling *s);
void ids_settle_end(struct ids *ids, struct ids_settling *s, bool synced);

/* ---- a whole new index, made without the lock ---- */

struct ids_list {
        struct ids_entry *p;
        size_t n;
        size_t cap;
        uint64_t last_amend;
};

int ids_list_add(struct ids_list *list, uint64_t hash, uint64_t at);
void ids_list_release(struct ids_list *list);

/* Waits until nobody else makes one. 0: it is our turn; 1: somebody has just made one; or a
 * negative errno. */
int ids_build_begin(struct ids *build, const struct env *env, uint64_t boot, int dir, uint64_t log);
/* Writes and syncs it: these entries cover the log up to `covered`. 0 or a negative errno. */
int ids_build_write(struct ids *build, const struct ids_list *list, uint64_t covered);
/* Under the conversation's lock: it takes the place of what `ids` had. 0 or a negative errno. */
int ids_build_adopt(struct ids *ids, struct ids *build);
/* Gives the turn back, and removes what was not adopted. */
void ids_build_end(struct ids *build);

/* Replaces the file, in one step, by one that has nothing but this mark. */
int ids_restart(struct ids *ids, struct log_mark mark);
/* Forgets all entries, and the mark too when the log was rewritten. */
void ids_reset(struct ids *ids, bool keep_mark);

#endif
