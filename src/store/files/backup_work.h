/*
 * backup_work.h - what the files of a conversation's backup share. Nobody else includes it.
 *
 * One struct backup_copying is one attempt at a copy. What fails with errno says so through
 * backup_failed(); damage that is found in the conversation stops nothing, and is told of.
 */
#ifndef STORE_FILES_BACKUP_WORK_H
#define STORE_FILES_BACKUP_WORK_H

#include "base/hash.h"
#include "store/files/backup.h"
#include "store/files/backup_files.h"

struct backup_copying {
        struct files_conv *conv;
        const struct backup_source *from; /* who has laid it out, or NULL */
        const struct backup_copy *laid;
        int unfilled; /* why bytes could not be had from there; `err` says it */
        const struct fs *fs;
        int to;
        const char *mark;
        int log; /* the conversation's, as it was at first */
        uint64_t ino;
        uint64_t end;
        uint64_t last_seq;
        struct timespec now; /* when it was noted */
        bool verify;         /* what is known of the copies does not count */
        uint64_t copied;
        uint64_t mended;           /* copies whose bytes had changed by themselves */
        char stamp[SHA256_HEX];    /* of the conversation, "": none that counts */
        struct backup_files files; /* that need not be read */
        struct buf damaged;        /* what is: seq (or 0) and a sentence, each ended by NUL */
        bool log_damaged;          /* as the note of the last backup says */
        bool grew;                 /* the log of the last backup did nothing but grow, */
        bool lost;                 /* and parts are missing all the same */
        struct buf parts;          /* that records refer to: seq and name, each ended by NUL */
        struct steno_error *err;
};

/* ---- backup.c ---- */

/* `sys` is a negative errno; where a source could not fill a file, its own error stands already. */
int backup_failed(struct backup_copying *c, int sys, const char *name);
/* Something in the conversation is not what it should be, in the words that a check has for it.
 * `seq` is the record that it is about, or 0. */
void backup_tell_of(struct backup_copying *c, uint64_t seq, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define backup_tell(c, ...) backup_tell_of(c, 0, __VA_ARGS__)

/* ---- backup_item.c: files that are compared with their copies (K5) ---- */

struct backup_item {
        const char *folder;
        const char *name;
        const char *sum; /* SHA-256 that its bytes should have; NULL: nobody knows */
        char made[SHA256_HEX];
        int fd;         /* of the conversation's, */
        struct stat st; /* which looked so before it was read */
        uint64_t size;  /* how much of it is wanted */
        int to;         /* folder of the copy */
};

/* Brings the copy of a file up to date. *whole says that it has the sum it should have. 0 or a
 * negative errno, as all calls of this part. */
int backup_bring(struct backup_copying *c, struct backup_item *it, bool *whole);
/* Appends [at, size) of an open file to another; `sha` (may be NULL) gets them too. */
int backup_copy_bytes(
    struct backup_copying *c, int from, uint64_t at, uint64_t size, int to, struct sha256 *sha);
/* A new file with the first `size` bytes of an open one, under a name that may be taken. */
int backup_copy_file(struct backup_copying *c, int from, uint64_t size, int dir, const char *name,
    struct sha256 *sha);
/* Have two open files the same first `size` bytes? */
int backup_has_bytes(struct backup_copying *c, int a, int b, uint64_t size, bool *yes);

/* ---- backup_note.c ---- */

/* How much of the log is in the copy already, 0: nothing that can be used. *differs: the last of it
 * is not what the log has in that place now. */
uint64_t backup_known_end(struct backup_copying *c, bool *differs);
int backup_write_note(struct backup_copying *c);

/* ---- backup_log.c ---- */

/* Notes the end, under the lock and synced (K1). */
int backup_find_end(struct backup_copying *c);
/* Up to that end; notes the parts that new records refer to. */
int backup_copy_log(struct backup_copying *c);
/* Tells of parts that the conversation has lost; copies of them stay. After the folder of parts. */
int backup_look_for_parts(struct backup_copying *c);

/* ---- backup_folder.c ---- */

/* One of artifacts/parts, seal, or (`runs`) of journals. What the conversation no longer has goes
 * from the copy (K3). */
int backup_copy_folder(struct backup_copying *c, const char *path, bool runs);
/* Outputs and their list. */
int backup_copy_artifacts(struct backup_copying *c);

#endif
