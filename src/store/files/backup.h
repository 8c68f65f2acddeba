/*
 * backup.h - a copy of one conversation that is being written.
 *
 *   K1  Everything that was acknowledged before the copy began is in it: the log's end is noted
 *       under the lock, after a sync, and what records before that end refer to was synced before
 *       them (S4).
 *   K2  Every ref in the copy has its bytes. A process that removes bytes holds the lock and
 *       replaces the log. If that has happened since the end was noted, the copy begins again; the
 *       fourth time it holds the lock itself.
 *   K3  An existing copy is updated: a log that only grew is appended to, closed outputs and parts
 *       are kept, and what the conversation no longer has is removed.
 *   K4  Where neither the conversation nor its copy has been touched since the last backup, as
 *       their stamps tell (backup_stamp.h), the copy is as good as a new one: nothing is locked,
 *       read or synced. The conversation's stamp is taken under the lock, before anything is
 *       copied, so that whatever changes while it is copied makes another one.
 *
 *   K5  An output or large token is in the copy when its bytes there have the SHA-256 that the list
 *       of outputs or its name says; a journal or seal when they are those of the conversation.
 *       What was found so is not read again while neither file was touched (backup_files.h), unless
 *       the backup verifies. If copied bytes do not match their sum, this is reported. They never
 *       replace a copy that does match.
 *   K6  A conversation of another kind of store is copied by the same rules. Its source gives
 *       stamps instead of inodes and times. An output or part is identified by its sum alone, and
 *       its bytes are requested only if the copy does not have them.
 *
 * The file .backup in the copy says which log it is of, how much of it is there, which backup made
 * it, and the stamps. Derived files are not copied.
 */
#ifndef STORE_FILES_BACKUP_H
#define STORE_FILES_BACKUP_H

#include "store/files/files.h"

#define BACKUP_NOTE ".backup"
#define BACKUP_MARK 40

struct backup_result {
        uint64_t records;
        uint64_t copied; /* bytes that are what they should be */
        uint64_t mended; /* copies whose bytes had changed although no program wrote to them */
        char *damaged;   /* what is in the conversation: the seq of the record that it is about, or
                            0, a blank and a sentence, each ended by NUL; free() */
        size_t damaged_size;
};

struct backup_request {
        const struct fs *fs; /* of the backup */
        int to;              /* folder of the copy */
        const char *mark;    /* of this backup */
        bool verify;         /* read what is there already */
        /* Of a conversation that another kind of store has laid out; else NULL. */
        const struct backup_source *from;
        const struct backup_copy *laid;
};

/* STENO_ENOTFOUND: it was removed meanwhile. */
int backup_conv(struct files_conv *conv, const struct backup_request *asked,
    struct backup_result *out, struct steno_error *err);
/* Is the copy in the folder `to` one of the conversation that has this stamp (K4)? Then *records is
 * what it has. */
bool backup_is_unchanged(const struct fs *fs, const char *stamp, int to, uint64_t *records);

/* ---- what conversations and the store's own files have in common (backup_item.c) ---- */

#define BACKUP_WORDS 400

/* Is there something at `path` that is neither a file nor, with `folder`, a folder? Then `what`
 * says it. It stops nobody, and is not copied. */
bool backup_is_strange(
    const struct fs *fs, int dir, const char *path, bool folder, char what[BACKUP_WORDS]);
/* Copies a file that is replaced as a whole where the copy has other bytes; *copied says how many.
 * 0; 1: there is none; or a negative errno. */
int backup_small(
    const struct fs *fs, int from, int to, const char *name, size_t max, uint64_t *copied);

#endif
