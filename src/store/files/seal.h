/*
 * seal.h - the seal of a conversation: what lets somebody prove later what its records were.
 *
 *   seal/leaves       32 bytes a record: leaf i is of seq i + 1 (model/leaf.h)
 *   seal/checkpoints  signed notes (model/note.h), one behind the other, each about the tree of the
 *                     first leaves; the last one says which seqs were purged
 *   seal/purged       ranges of seqs that were purged and are in no note yet
 *   seal/state        derived: inode and end of the log when it was sealed last
 *
 * The origin of its notes is "steno/conversation/" and the hex of SHA-256(project, 0, id, 0, uid).
 *
 *   E1  What is sealed was synced before.
 *   E2  Leaves are synced before the note that covers them, and that before the line in the store's
 *       log (seal_log.h); `state` is written last, so a conversation whose sealing was interrupted
 *       is visited again.
 *   E3  A leaf that a note covers is never written again. If the file is lost, it is rebuilt only
 *       from records that give the root of the last note.
 *   E4  A purge is entered in the store's log and in `purged` before the log is rewritten.
 */
#ifndef STORE_FILES_SEAL_H
#define STORE_FILES_SEAL_H

#include "model/leaf.h"
#include "model/note.h"
#include "store/files/files.h"

/* Its name in logs. The caller holds the lock, because a uid may have to be made. */
int seal_name(struct files_conv *conv, char out[SEAL_CONV], struct steno_error *err);
/* The same of a folder that nobody has open, by its meta.json; "": it has no uid. 0 or a negative
 * errno. */
int seal_name_at(
    const struct fs *fs, int dir, struct str project, struct str id, char out[SEAL_CONV]);

/* Seals everything that is stored; a new note is written where something changed. STENO_ECORRUPT: a
 * record cannot be read, or the leaves are not those that were sealed before. */
int seal_conv(struct files_conv *conv, const struct note_key *key, struct seal_result *out,
    struct steno_error *err);
/* Is it unchanged since the last seal? Reads no record. */
bool seal_is_fresh(struct files_conv *conv);

/* How many records are sealed; 0: none. What the files say, unverified. */
uint64_t seal_size(struct files_conv *conv);
/* What was sealed as the leaf of a seq; false where that is not known. */
bool seal_leaf_at(struct files_conv *conv, uint64_t seq, struct merkle_hash *out);

/* E4, under the lock. `seqs` ascend. Nothing happens where nothing is sealed. */
int seal_note_purge(
    struct files_conv *conv, const uint64_t *seqs, size_t count, struct steno_error *err);

/* ---- the files, for those who verify and prove ---- */

#define SEAL_NOTES_MAX (256 * MIB)

/* All notes as they stand; *text is freed with free(). NULL and 0: there are none. */
int seal_read_notes(struct files_conv *conv, char **text, size_t *n, struct steno_error *err);
/* At most `count` leaves; *leaves is freed with free(), *have is how many there are. */
int seal_read_leaves(struct files_conv *conv, uint64_t count, struct merkle_hash **leaves,
    uint64_t *have, struct steno_error *err);

#endif
