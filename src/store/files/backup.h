/*
 * backup.h - a copy of one conversation that is being written.
 *
 *   K1  Everything that was acknowledged before the copy began is in it: the log's end is noted
 *       under the lock, after a sync, and what records before that end refer to was synced before
 *       them (S4).
 *   K2  No ref in the copy lacks its bytes. Whoever takes bytes away holds the lock and leaves
 *       another log: when that has happened since the end was noted, the copy begins again, and the
 *       fourth time it holds the lock itself.
 *   K3  A copy that is there already is brought up to date: a log that only grew is appended to,
 *       closed outputs and parts stay, and what the conversation no longer has goes.
 *
 * The file .backup in the copy says which log it is of, how much of it is there, and which backup
 * saw it last. Derived files are not copied.
 */
#ifndef STORE_FILES_BACKUP_H
#define STORE_FILES_BACKUP_H

#include "store/files/files.h"

#define BACKUP_NOTE ".backup"
#define BACKUP_MARK 40

struct backup_result {
        uint64_t records;
        uint64_t copied; /* bytes */
};

/* Into the folder `to`. `mark` names this backup. STENO_ENOTFOUND: it was removed meanwhile. */
int backup_conv(struct files_conv *conv, int to, const char *mark, struct backup_result *out,
    struct steno_error *err);
/* Was the copy in this folder made, or seen, by the backup `mark`? 1, 0, or a negative errno. */
int backup_is_of(const struct fs *fs, int dir, const char *mark);

#endif
