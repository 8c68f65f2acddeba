/*
 * backup_store_work.h - what the files of a store's backup share. Nobody else includes it.
 */
#ifndef STORE_FILES_BACKUP_STORE_WORK_H
#define STORE_FILES_BACKUP_STORE_WORK_H

#include "store/files/backup.h"
#include "store/files/backup_store.h"
#include "store/files/conv.h"
#include "store/files/disk.h"
#include "store/files/trash.h"

#define BACKUP_KIND_FILE "backup.json"
#define BACKUP_COMPLETE_FILE "complete.json"

/* Where conversations lie, in the store and in the backup; -1 where that cannot be opened. */
struct backup_shelf {
        char path[PLAIN_NAME_MAX + 40]; /* in the backup */
        int from;
        int to;
};

struct backup_store_work {
        struct files_store *store;
        const struct fs *fs;
        int root; /* of the backup */
        int trash;
        struct backup_shelf shelf; /* of the project at work */
        void *met;                 /* tree of the paths that are in this backup */
        char mark[BACKUP_MARK];
        uint64_t conversations;
        uint64_t trashed;
        uint64_t records;
        uint64_t copied;
        uint64_t mended;
        uint64_t damaged;
        struct buf findings;         /* about the first of these, as members of an array */
        struct archive_out *archive; /* NULL: the folder is the backup */
        const struct backend_backup *asked;
        struct steno_error *err;
};

/* ---- backup_store.c ---- */

/* `sys` is a negative errno. */
int backup_store_failed(struct backup_store_work *b, int sys, const char *what);
/* Counts it, and keeps it for the report, unless it was accepted. */
void backup_store_finding(struct backup_store_work *b, const struct check_finding *f);
/* Copies a file that is replaced as a whole where the backup has other bytes; one that is gone goes
 * there too. */
int backup_store_small(struct backup_store_work *b, int from, int to, const char *name, size_t max);
/* For a walk of a folder: sets the bool at `ctx` when there is anything in it. */
int backup_note_any(void *ctx, const char *name, unsigned char type);

/* ---- backup_conversations.c ---- */

/* The conversations that are in projects now, but for those that this backup has met. */
int backup_store_projects(struct backup_store_work *b);
/* Those in the trash, and its notes. */
int backup_store_trash(struct backup_store_work *b);
/* Removes from the backup what was not met, and counts what stays. */
int backup_store_sweep(struct backup_store_work *b);
void backup_shelf_close(struct backup_store_work *b, struct backup_shelf *at);

#endif
