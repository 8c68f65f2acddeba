/* backup.c - see backup.h */
#include "store/files/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/artifact.h"
#include "store/files/backup_files.h"
#include "store/files/backup_stamp.h"
#include "store/files/conv.h"
#include "store/files/manifest.h"
#include "store/files/run.h"
#include "store/files/run_read.h"

#define TRIES 3
#define TAIL (64 * KIB)
#define NOTE_MAX (4 * KIB)
#define AGAIN 1 /* bytes were taken away while they were copied */

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

static int backup_failed(struct backup_copying *c, int sys, const char *name)
{
        return c->unfilled ? c->unfilled : error_sys(c->err, sys, "copying %s", name);
}

/* ---- files ---- */

/* Something in the conversation is not what it should be, in the words that a check has for it. */
static void backup_tell_of(struct backup_copying *c, uint64_t seq, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void backup_tell_of(struct backup_copying *c, uint64_t seq, const char *fmt, ...)
{
        char what[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(what, sizeof what, fmt, args);
        va_end(args);
        buf_printf(&c->damaged, "%llu %s", (unsigned long long)seq, what);
        buf_putc(&c->damaged, '\0');
}
#define backup_tell(c, ...) backup_tell_of(c, 0, __VA_ARGS__)

struct writing {
        struct backup_copying *c;
        int fd;
        uint64_t at;
        int sys;
        struct sha256 *sha; /* may be NULL */
};

static int write_piece(void *ctx, const void *p, size_t n)
{
        struct writing *w = ctx;
        w->sys = fs_pwrite_all(w->c->fs, w->fd, p, n, (off_t)w->at);
        w->at += n;
        w->c->copied += n;
        if (w->sha)
                hash_sha256_update(w->sha, p, n);
        return w->sys;
}

/* Appends [at, size) of an open file to another; `sha` (may be NULL) gets them too. */
static int backup_copy_bytes(
    struct backup_copying *c, int from, uint64_t at, uint64_t size, int to, struct sha256 *sha)
{
        struct writing w = {.c = c, .fd = to, .at = at, .sha = sha};
        int rc = fs_copy_out(c->fs, from, at, size - at, write_piece, &w, NULL);
        if (rc == 1)
                rc = w.sys;
        if (rc == 0 && w.at != size)
                rc = -EIO;
        return rc ? rc : c->fs->fdatasync(c->fs, to);
}

/* A new file with the first `size` bytes of an open one, under a name that may be taken. */
static int backup_copy_file(struct backup_copying *c, int from, uint64_t size, int dir,
    const char *name, struct sha256 *sha)
{
        char aside[160];
        snprintf(aside, sizeof aside, ".%s.new", name);
        int fd = c->fs->open(c->fs, dir, aside, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0)
                return fd;
        int rc = backup_copy_bytes(c, from, 0, size, fd, sha);
        c->fs->close(c->fs, fd);
        if (rc == 0)
                rc = c->fs->rename(c->fs, dir, aside, dir, name);
        if (rc)
                c->fs->unlink(c->fs, dir, aside, 0);
        return rc;
}

static bool has_size(struct backup_copying *c, int dir, const char *name, uint64_t size)
{
        struct stat st;
        return c->fs->stat(c->fs, dir, name, &st) == 0 && S_ISREG(st.st_mode) &&
               (uint64_t)st.st_size == size;
}

static int hash_piece(void *ctx, const void *p, size_t n)
{
        hash_sha256_update(ctx, p, n);
        return 0;
}

/* The SHA-256 of the first `size` bytes of an open file. */
static int sum_of(struct backup_copying *c, int fd, uint64_t size, char hex[SHA256_HEX])
{
        unsigned char raw[SHA256_SIZE];
        struct sha256 sha;
        if (hash_sha256_init(&sha))
                return -ENOMEM;
        int rc = fs_copy_out(c->fs, fd, 0, size, hash_piece, &sha, NULL);
        hash_sha256_finish(&sha, raw);
        hash_hex(raw, sizeof raw, hex);
        return rc;
}

/* Is `sum` that of an open file? */
static int has_sum(struct backup_copying *c, int fd, const char *sum, bool *yes)
{
        char hex[SHA256_HEX];
        int rc = sum_of(c, fd, UINT64_MAX, hex);
        *yes = rc == 0 && strcmp(hex, sum) == 0;
        return rc;
}

/* Have two open files the same first `size` bytes? */
static int backup_has_bytes(struct backup_copying *c, int a, int b, uint64_t size, bool *yes)
{
        char x[8192], y[sizeof x];
        *yes = true;
        for (uint64_t at = 0; *yes && at < size;) {
                size_t want = size - at < sizeof x ? (size_t)(size - at) : sizeof x;
                ssize_t n = fs_pread_all(c->fs, a, x, want, (off_t)at);
                ssize_t m = fs_pread_all(c->fs, b, y, want, (off_t)at);
                if (n < 0 || m < 0)
                        return n < 0 ? (int)n : (int)m;
                *yes = n == m && (size_t)n == want && memcmp(x, y, want) == 0;
                at += want;
        }
        return 0;
}

/* ---- files that are compared with their copies ---- */

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

static void note_item(struct backup_copying *c, const struct backup_item *it, const char *path)
{
        struct stat copy;
        bool old = fs_stamp_is(fs_stamp_of(it->st.st_ctim, c->now), it->st.st_ctim);
        if (old && c->fs->stat(c->fs, it->to, it->name, &copy) == 0)
                backup_files_note(&c->files, path, &it->st, &copy);
}

/* Has the copy the bytes already (K5)? */
static int is_there(
    struct backup_copying *c, const struct backup_item *it, const char *path, bool *yes)
{
        struct stat copy;
        *yes = false;
        if (c->fs->stat(c->fs, it->to, it->name, &copy) || !S_ISREG(copy.st_mode))
                return 0;
        if (!c->verify && backup_files_know(&c->files, path, &it->st, &copy)) {
                *yes = true;
                return 0;
        }
        int rc = 0, fd = -1;
        /* A sum counts more than a size: what is shorter now may be the damaged one of the two. */
        if (it->sum || (uint64_t)copy.st_size == it->size)
                rc = fd = c->fs->open(c->fs, it->to, it->name, O_RDONLY | O_NONBLOCK, 0);
        if (fd >= 0) {
                rc = it->sum ? has_sum(c, fd, it->sum, yes)
                             : backup_has_bytes(c, it->fd, fd, it->size, yes);
                c->fs->close(c->fs, fd);
        }
        if (rc == -EIO) { /* the disk has lost it */
                rc = 0;
                *yes = false;
        }
        c->mended += rc == 0 && !*yes && backup_files_know(&c->files, path, &it->st, NULL);
        return rc;
}

/* A file that was laid out just now says nothing by its inode and times: while its sum is the same,
 * so are its bytes (K6). *later says that these come only when they are wanted. */
static int disguise(struct backup_copying *c, struct backup_item *it, bool *later)
{
        *later = it->sum != NULL;
        if (!it->sum) {
                int rc = sum_of(c, it->fd, it->size, it->made);
                if (rc)
                        return rc;
                it->sum = it->made;
        }
        it->st = (struct stat){.st_ino = (ino_t)hash_64(it->sum, strlen(it->sum)),
            .st_size = (off_t)it->size,
            .st_ctim.tv_sec = 1};
        return 0;
}

/* Asks for the bytes. */
static int fill(struct backup_copying *c, struct backup_item *it, const char *path)
{
        struct stat st;
        c->unfilled = c->from->fill(c->from->ctx, path, c->err);
        int sys = c->unfilled ? -EIO : c->fs->fstat(c->fs, it->fd, &st);
        if (sys == 0 && (uint64_t)st.st_size < it->size)
                it->size = (uint64_t)st.st_size;
        return sys;
}

/* Brings the copy of a file up to date. *whole says that it has the sum it should have. */
static int backup_bring(struct backup_copying *c, struct backup_item *it, bool *whole)
{
        char path[320], hex[SHA256_HEX];
        unsigned char raw[SHA256_SIZE];
        struct sha256 sha;
        bool there, later = false;
        snprintf(path, sizeof path, "%s/%s", it->folder, it->name);
        *whole = true;
        int rc = c->laid ? disguise(c, it, &later) : 0;
        if (rc == 0)
                rc = is_there(c, it, path, &there);
        if (rc)
                return rc;
        if (there) {
                note_item(c, it, path);
                return 0;
        }
        rc = later ? fill(c, it, path) : 0;
        if (rc)
                return rc;
        uint64_t before = c->copied;
        if (hash_sha256_init(&sha))
                return -ENOMEM;
        rc = backup_copy_file(c, it->fd, it->size, it->to, it->name, &sha);
        hash_sha256_finish(&sha, raw);
        hash_hex(raw, sizeof raw, hex);
        *whole = !it->sum || strcmp(hex, it->sum) == 0;
        if (rc == 0 && *whole)
                note_item(c, it, path);
        else
                c->copied = before;
        return rc;
}

/* ---- the note ---- */

static int hash_tail(struct backup_copying *c, int fd, uint64_t end, char hex[SHA256_HEX])
{
        char *block = malloc(TAIL);
        uint64_t from = end > TAIL ? end - TAIL : 0;
        if (!block)
                return -ENOMEM;
        ssize_t got = fs_pread_all(c->fs, fd, block, (size_t)(end - from), (off_t)from);
        int rc = got < 0 ? (int)got : (uint64_t)got < end - from ? -EIO : 0;
        if (rc == 0 && hash_sha256_hex(block, (size_t)got, hex))
                rc = -ENOMEM;
        free(block);
        return rc;
}

/* How much of the log is in the copy already, 0: nothing that can be used. *differs: the last of it
 * is not what the log has in that place now. */
static uint64_t backup_known_end(struct backup_copying *c, bool *differs)
{
        char *text = NULL, hex[SHA256_HEX];
        size_t n = 0;
        uint64_t ino = 0, end = 0;
        struct json j;
        json_init(&j);
        bool ok = fs_slurp(c->fs, c->to, BACKUP_NOTE, NOTE_MAX, &text, &n) == 0 &&
                  json_parse(&j, text, n, NULL, NULL) == 0 &&
                  json_u64(&j, json_get(&j, 0, "inode"), &ino) && ino == c->ino &&
                  json_u64(&j, json_get(&j, 0, "end"), &end) && end <= c->end &&
                  has_size(c, c->to, "messages.jsonl", end) && end &&
                  hash_tail(c, c->log, end, hex) == 0;
        *differs = ok && !json_is(&j, json_get(&j, 0, "tail"), hex);
        c->log_damaged = ok && json_bool(&j, json_get(&j, 0, "damaged"), false);
        json_release(&j);
        free(text);
        return ok ? end : 0;
}

static int backup_write_note(struct backup_copying *c)
{
        char hex[SHA256_HEX] = "", copy[SHA256_HEX];
        struct buf b;
        int rc = c->log >= 0 ? hash_tail(c, c->log, c->end, hex) : 0;
        if (rc)
                return backup_failed(c, rc, "messages.jsonl");
        buf_init(&b, NOTE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "backup", c->mark);
        jsonw_field_u64(&w, "inode", c->ino);
        jsonw_field_u64(&w, "end", c->end);
        jsonw_field_cstr(&w, "tail", hex);
        jsonw_field_u64(&w, "records", c->last_seq);
        if (c->log_damaged)
                jsonw_field_bool(&w, "damaged", true);
        /* What is damaged is looked at again, and told of again. */
        if (*c->stamp && !c->damaged.n && backup_stamp(c->fs, c->to, NULL, copy) == 0) {
                jsonw_field_cstr(&w, "source", c->stamp);
                jsonw_field_cstr(&w, "copy", copy);
        }
        jsonw_object_end(&w);
        rc = b.failed ? -ENOMEM : fs_replace(c->fs, c->to, BACKUP_NOTE, b.p, b.n);
        buf_release(&b);
        return rc ? backup_failed(c, rc, BACKUP_NOTE) : buf_check(&c->damaged, c->err);
}

bool backup_is_unchanged(const struct fs *fs, const char *stamp, int to, uint64_t *records)
{
        char *text = NULL, copy[SHA256_HEX];
        size_t n = 0;
        struct json j;
        json_init(&j);
        bool same = fs_slurp(fs, to, BACKUP_NOTE, NOTE_MAX, &text, &n) == 0 &&
                    json_parse(&j, text, n, NULL, NULL) == 0 &&
                    json_u64(&j, json_get(&j, 0, "records"), records) &&
                    json_is(&j, json_get(&j, 0, "source"), stamp) &&
                    backup_stamp(fs, to, NULL, copy) == 0 &&
                    json_is(&j, json_get(&j, 0, "copy"), copy);
        json_release(&j);
        free(text);
        return same;
}

/* ---- the log ---- */

/* The same in a store that we may not write to: a torn end stays where it is. Others may write
 * there, and hold the lock while they do. */
static int note_end_read_only(struct backup_copying *c)
{
        struct files_conv *conv = c->conv;
        struct log_end end = {0};
        struct ids ids;
        struct stat st;
        c->log = c->fs->open(c->fs, conv->dir, "messages.jsonl", O_RDONLY, 0);
        int sys = c->log < 0 ? c->log : c->fs->fstat(c->fs, c->log, &st);
        if (sys)
                return backup_failed(c, sys, "messages.jsonl");
        int rc = conv_find_end(conv, c->log, NULL, &ids, &end, c->err);
        if (rc)
                return rc;
        rc = conv_refuse_changed(conv, c->log, &ids, &end, c->err);
        ids_close(&ids);
        c->fs->fdatasync(c->fs, c->log); /* which a disk that cannot be written to may refuse */
        c->ino = st.st_ino;
        c->end = end.end;
        c->last_seq = end.last_seq;
        return rc;
}

/* Notes the end, under the lock and synced (K1). */
static int backup_note_end(struct backup_copying *c)
{
        struct files_conv *conv = c->conv;
        struct stat st;
        int rc = conv_refresh(conv, c->err);
        if (rc == STENO_EDENIED)
                return note_end_read_only(c);
        if (rc)
                return rc;
        int sys = c->fs->fdatasync(c->fs, conv->log);
        if (sys == 0) {
                c->log = c->fs->open(c->fs, conv->dir, "messages.jsonl", O_RDONLY, 0);
                sys = c->log < 0 ? c->log : c->fs->fstat(c->fs, c->log, &st);
        }
        if (sys)
                return backup_failed(c, sys, "messages.jsonl");
        c->ino = c->laid ? c->laid->log : st.st_ino;
        c->end = conv->at.end;
        c->last_seq = conv->at.last_seq;
        return 0;
}

static int note_parts(const struct record *rec, struct arena *arena, struct buf *names)
{
        struct about about;
        if (!rec->x.n || !memmem(rec->x.p, rec->x.n, "\"part", 5))
                return 0;
        arena_reset(arena);
        int rc = about_read(rec->x, arena, &about, NULL);
        for (size_t i = 0; rc == 0 && i < about_part_slots(&about); i++) {
                struct str name = about_part_at(&about, i).name;
                if (name.n && name.n < SHA256_HEX) {
                        buf_printf(
                            names, "%llu %.*s", (unsigned long long)rec->seq, (int)name.n, name.p);
                        buf_putc(names, '\0');
                }
        }
        return rc == STENO_ENOMEM ? rc : 0;
}

/* Places of a log that cannot be read, and where the first is. `parts` (may be NULL) gets the names
 * of those that its records refer to. */
static int count_damage(struct backup_copying *c, int fd, uint64_t at, uint64_t end,
    struct buf *parts, uint64_t *count, uint64_t *first)
{
        struct log_cursor cursor;
        struct log_line line;
        struct arena arena;
        int rc, bad = 0;
        *count = 0;
        arena_init(&arena);
        log_cursor_init(&cursor, c->fs, fd, at, end);
        while ((rc = log_next(&cursor, &line, c->err)) == 1 && bad == 0) {
                *first = line.damaged && !*count ? line.at : *first;
                *count += line.damaged;
                if (parts && !line.damaged)
                        bad = note_parts(&line.rec, &arena, parts);
        }
        log_cursor_release(&cursor);
        arena_release(&arena);
        return bad ? error_nomem(c->err) : rc;
}

/* Does what the copy has of the log count? Where the two differ, one of them has rotted, and the
 * copy stays when it is that of the conversation. */
static int verify_log(struct backup_copying *c, uint64_t *known)
{
        bool same = false;
        uint64_t here = 0, there = 0, at = 0;
        int fd = c->fs->open(c->fs, c->to, "messages.jsonl", O_RDONLY, 0);
        int sys = fd < 0 ? fd : backup_has_bytes(c, c->log, fd, *known, &same);
        int rc = sys && sys != -EIO ? backup_failed(c, sys, "messages.jsonl") : 0;
        if (rc == 0 && sys == 0 && !same) {
                rc = count_damage(c, c->log, 0, *known, NULL, &here, &at);
                if (rc == 0)
                        rc = count_damage(c, fd, 0, *known, NULL, &there, &at);
                same = here && !there;
        }
        if (fd >= 0)
                c->fs->close(c->fs, fd);
        if (rc == 0 && !same)
                *known = 0;
        return rc;
}

static int backup_copy_log(struct backup_copying *c)
{
        bool differs;
        uint64_t known = backup_known_end(c, &differs), from = known, count = 0, at = 0;
        int sys, rc = from && (c->verify || differs) ? verify_log(c, &from) : 0;
        if (rc)
                return rc;
        c->grew = known && !differs;
        c->lost = false;
        c->mended += known && !from && !differs;
        if (from) {
                int fd = c->fs->open(c->fs, c->to, "messages.jsonl", O_RDWR, 0);
                sys = fd < 0 ? fd : backup_copy_bytes(c, c->log, from, c->end, fd, NULL);
                if (fd >= 0)
                        c->fs->close(c->fs, fd);
        } else {
                sys = backup_copy_file(c, c->log, c->end, c->to, "messages.jsonl", NULL);
        }
        if (sys)
                return backup_failed(c, sys, "messages.jsonl");
        bool all = c->verify || differs || c->log_damaged;
        buf_clear(&c->parts);
        rc = count_damage(c, c->log, all ? 0 : from, c->end, &c->parts, &count, &at);
        c->log_damaged = count;
        if (rc == 0 && count)
                backup_tell(c,
                    "%llu place%s of messages.jsonl cannot be read (the first at byte %llu)",
                    (unsigned long long)count, count == 1 ? "" : "s", (unsigned long long)at);
        return rc;
}

/* ---- small files ---- */

/* Copies a file that is replaced as a whole, where the copy has other bytes. */
static int copy_small(struct backup_copying *c, const char *name, size_t max)
{
        char *text = NULL, *there = NULL;
        size_t n = 0, there_n = 0;
        int sys = fs_slurp(c->fs, c->conv->dir, name, max, &text, &n);
        if (sys == -ENOENT)
                return 0;
        bool same = sys == 0 && fs_slurp(c->fs, c->to, name, max, &there, &there_n) == 0 &&
                    n == there_n && memcmp(text, there, n) == 0;
        if (sys == 0 && !same) {
                sys = fs_replace(c->fs, c->to, name, text, n);
                c->copied += n;
        }
        free(text);
        free(there);
        return sys ? backup_failed(c, sys, name) : 0;
}

/* ---- folders whose files come and go ---- */

struct folder {
        struct backup_copying *c;
        int from; /* -1: there is none */
        int to;
        const char *path;
        const struct artifact_info *listed; /* outputs that the conversation should have */
        size_t listed_count;
        int sys;
};

/* What the copy has of a folder that the conversation lacks is of another one, which had its id. */
static int drop_folder(struct backup_copying *c, const char *path)
{
        int sys = fs_remove_tree(c->fs, c->to, path);
        return sys && sys != -ENOENT ? backup_failed(c, sys, path) : 0;
}

/* Tells of what is neither a file nor a folder where one should be. It stops nobody. */
static bool is_strange(struct backup_copying *c, const char *path, bool folder)
{
        struct stat st;
        if (c->fs->stat(c->fs, c->conv->dir, path, &st) ||
            (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
                return false;
        if (S_ISLNK(st.st_mode))
                backup_tell(c, "%s is a symbolic link, which is not followed", path);
        else
                backup_tell(c, "%s is not a %s", path, folder ? "folder" : "file");
        return true;
}

static int open_both(struct backup_copying *c, const char *path, struct folder *f)
{
        char name[32];
        *f = (struct folder){.c = c, .from = -1, .to = -1, .path = path};
        const char *slash = strchr(path, '/');
        f->from = c->fs->open(c->fs, c->conv->dir, path, O_RDONLY | O_DIRECTORY, 0);
        if (f->from == -ENOENT)
                return drop_folder(c, path);
        if (f->from < 0 && is_strange(c, path, true)) {
                f->from = -1;
                return 0;
        }
        snprintf(
            name, sizeof name, "%.*s", (int)(slash ? slash - path : (ptrdiff_t)strlen(path)), path);
        int top = f->from < 0 ? f->from : fs_open_dir(c->fs, c->to, name, true);
        f->to = top;
        if (top >= 0 && slash) {
                f->to = fs_open_dir(c->fs, top, slash + 1, true);
                c->fs->close(c->fs, top);
        }
        return f->to < 0 ? backup_failed(c, f->to, path) : 0;
}

static void close_both(struct folder *f)
{
        if (f->from >= 0)
                f->c->fs->close(f->c->fs, f->from);
        if (f->to >= 0)
                f->c->fs->close(f->c->fs, f->to);
}

static bool is_part(const struct folder *f, const char *name)
{
        return strcmp(f->path, "artifacts/parts") == 0 && strlen(name) == SHA256_HEX - 1;
}

/* What was not purged, and is missing all the same: then the copy may be all there is. A purge
 * leaves another log. */
static bool is_lost(const struct folder *f, const char *name)
{
        if (f->c->grew && is_part(f, name))
                return f->c->lost = true;
        for (size_t i = 0; i < f->listed_count; i++)
                if (f->listed[i].state == ARTIFACT_CLOSED && strcmp(f->listed[i].name, name) == 0)
                        return true;
        return false;
}

/* Names of the copy that the conversation no longer has. */
static int drop_stale(void *ctx, const char *name, unsigned char type)
{
        struct folder *f = ctx;
        struct stat st;
        (void)type;
        if (f->c->fs->stat(f->c->fs, f->from, name, &st) == -ENOENT && !is_lost(f, name))
                f->sys = f->c->fs->unlink(f->c->fs, f->to, name, 0);
        return f->sys;
}

/* Tells of parts that the conversation has lost; copies of them stay. */
static int backup_look_for_parts(struct backup_copying *c)
{
        char path[sizeof "artifacts/parts/" + SHA256_HEX], *name;
        uint64_t count, at;
        int rc = 0;
        if (c->lost) {
                buf_clear(&c->parts);
                rc = count_damage(c, c->log, 0, c->end, &c->parts, &count, &at);
        }
        if (rc == 0)
                rc = buf_check(&c->parts, c->err);
        for (const char *p = c->parts.p; rc == 0 && p && p < c->parts.p + c->parts.n;
             p = name + strlen(name) + 1) {
                struct stat st;
                unsigned long long seq = strtoull(p, &name, 10);
                snprintf(path, sizeof path, "artifacts/parts/%.*s", SHA256_HEX, ++name);
                if (c->fs->stat(c->fs, c->conv->dir, path, &st) == -ENOENT) {
                        backup_tell_of(
                            c, seq, "it refers to part %.40s, which is missing or not whole", name);
                        c->log_damaged = true;
                }
        }
        return rc;
}

static int copy_part(void *ctx, const char *name, unsigned char type)
{
        struct folder *f = ctx;
        struct backup_copying *c = f->c;
        bool whole = true;
        char path[320];
        (void)type;
        if (name[0] == '.')
                return 0;
        snprintf(path, sizeof path, "%s/%s", f->path, name);
        if (is_strange(c, path, false))
                return 0;
        struct backup_item it = {.folder = f->path,
            .name = name,
            .sum = is_part(f, name) ? name : NULL,
            .fd = c->fs->open(c->fs, f->from, name, O_RDONLY | O_NONBLOCK, 0),
            .to = f->to};
        f->sys = it.fd < 0 ? it.fd : c->fs->fstat(c->fs, it.fd, &it.st);
        it.size = f->sys ? 0 : (uint64_t)it.st.st_size;
        if (f->sys == 0 && S_ISREG(it.st.st_mode))
                f->sys = backup_bring(c, &it, &whole);
        if (it.fd >= 0)
                c->fs->close(c->fs, it.fd);
        if (!whole)
                backup_tell(c, "part %.16s... has other bytes than its name says", name);
        f->sys = f->sys == -ENOENT ? 0 : f->sys; /* purged: the log tells (K2) */
        return f->sys;
}

static int copy_run(void *ctx, const char *run)
{
        struct folder *f = ctx;
        struct backup_copying *c = f->c;
        char name[96];
        struct buf line;
        struct run_event e;
        bool whole;
        snprintf(name, sizeof name, "%s.jsonl", run);
        struct backup_item it = {.folder = f->path, .name = name, .to = f->to};
        it.fd = c->fs->open(c->fs, f->from, name, O_RDONLY | O_NONBLOCK, 0);
        if (it.fd < 0)
                return it.fd == -ENOENT ? 0 : backup_failed(c, it.fd, name);
        buf_init(&line, 0);
        int sys = c->fs->fstat(c->fs, it.fd, &it.st);
        int rc =
            sys ? backup_failed(c, sys, name)
                : run_last_line(c->fs, it.fd, (uint64_t)it.st.st_size, &line, &e, &it.size, c->err);
        if (rc >= 0) {
                sys = backup_bring(c, &it, &whole);
                rc = sys ? backup_failed(c, sys, name) : 0;
        }
        buf_release(&line);
        c->fs->close(c->fs, it.fd);
        return rc < 0 ? rc : 0;
}

static int backup_copy_folder(struct backup_copying *c, const char *path, bool runs)
{
        struct folder f;
        int rc = open_both(c, path, &f);
        if (rc == 0 && f.from >= 0) {
                int sys = 0;
                if (runs)
                        rc = run_each(c->conv, copy_run, &f, c->err);
                else
                        sys = c->fs->list(c->fs, f.from, copy_part, &f);
                if (rc == 0 && sys == 0)
                        sys = c->fs->list(c->fs, f.to, drop_stale, &f);
                if (rc == 0 && sys == 0)
                        sys = c->fs->fsync(c->fs, f.to);
                if (sys)
                        rc = backup_failed(c, sys, path);
        }
        close_both(&f);
        return rc;
}

/* ---- outputs ---- */

static int copy_output(struct backup_copying *c, const struct artifact_info *info, struct folder *f)
{
        bool whole = true;
        struct backup_item it = {.folder = f->path, .name = info->name, .fd = -1, .to = f->to};
        if (info->state == ARTIFACT_DELETED)
                return 0;
        int rc = artifact_open(c->conv, info, &it.fd, &it.size, c->err);
        if (rc == STENO_ECORRUPT || (rc && files_is_foreign(-c->err->sys))) {
                /* Or it was purged a moment ago: then the log tells (K2). */
                if (rc == STENO_ECORRUPT && info->state == ARTIFACT_CLOSED)
                        backup_tell(c, "artifact %s (%s) cannot be opened: %s", info->id,
                            info->name, c->err->msg);
                return 0;
        }
        if (rc)
                return rc;
        uint64_t size = it.size;
        if (info->state == ARTIFACT_CLOSED) {
                it.sum = *info->sha256 ? info->sha256 : NULL;
                it.size = size > info->size ? info->size : size;
        }
        int sys = c->fs->fstat(c->fs, it.fd, &it.st);
        if (sys == 0)
                sys = backup_bring(c, &it, &whole);
        c->fs->close(c->fs, it.fd);
        if (!whole && size != info->size)
                backup_tell(c, "artifact %s (%s) has %llu bytes; the manifest says %llu", info->id,
                    info->name, (unsigned long long)size, (unsigned long long)info->size);
        else if (!whole)
                backup_tell(c, "artifact %s (%s) has other bytes than the manifest says", info->id,
                    info->name);
        return sys ? backup_failed(c, sys, info->name) : 0;
}

static int copy_outputs(
    struct backup_copying *c, const char *kind, const struct artifact_info *list, size_t count)
{
        char path[32];
        struct folder f;
        snprintf(path, sizeof path, "artifacts/%s", kind);
        int rc = open_both(c, path, &f);
        for (size_t i = 0; rc == 0 && f.from >= 0 && i < count; i++)
                if (strcmp(list[i].kind, kind) == 0)
                        rc = copy_output(c, &list[i], &f);
        f.listed = list;
        f.listed_count = count;
        if (rc == 0 && f.from >= 0) {
                int sys = c->fs->list(c->fs, f.to, drop_stale, &f);
                if (sys == 0)
                        sys = c->fs->fsync(c->fs, f.to);
                rc = sys ? backup_failed(c, sys, path) : 0;
        }
        close_both(&f);
        return rc;
}

/* The list first, then what it names, then the list into the copy: a name that is in the copy has
 * its bytes there. */
static int backup_copy_artifacts(struct backup_copying *c)
{
        struct artifact_info *list = NULL;
        size_t count = 0;
        struct buf lines;
        struct folder f;
        int rc = open_both(c, "artifacts", &f);
        if (rc || f.from < 0) {
                close_both(&f);
                return rc;
        }
        buf_init(&lines, 0);
        rc = manifest_read(c->fs, f.from, &list, &count, c->err);
        if (rc == 0)
                rc = copy_outputs(c, "tool", list, count);
        if (rc == 0)
                rc = copy_outputs(c, "terminal", list, count);
        for (size_t i = 0; rc == 0 && i < count; i++) {
                backend_manifest_put(&lines, &list[i]);
                buf_putc(&lines, '\n');
        }
        if (rc == 0)
                rc = buf_check(&lines, c->err);
        if (rc == 0) {
                int sys = count ? fs_replace(c->fs, f.to, MANIFEST_NAME, lines.p, lines.n)
                                : c->fs->unlink(c->fs, f.to, MANIFEST_NAME, 0);
                rc = sys && (count || sys != -ENOENT) ? backup_failed(c, sys, MANIFEST_NAME) : 0;
        }
        buf_release(&lines);
        free(list);
        close_both(&f);
        return rc;
}

/* ---- all of it ---- */

/* Has somebody taken bytes away since the end was noted (K2)? Whoever does holds the lock. */
static int look_again(struct backup_copying *c)
{
        struct stat st;
        int rc = files_conv_lock(c->conv, c->err);
        if (rc)
                return rc;
        int sys = c->fs->stat(c->fs, c->conv->dir, "messages.jsonl", &st);
        files_conv_unlock(c->conv);
        if (sys)
                return backup_failed(c, sys, "messages.jsonl");
        return c->laid || (uint64_t)st.st_ino == c->ino ? 0 : AGAIN;
}

static int copy_all(struct backup_copying *c)
{
        int sys = backup_files_read(&c->files, c->fs, c->to);
        if (sys)
                return backup_failed(c, sys, BACKUP_FILES);
        c->fs->unlink(c->fs, c->to, "ids.idx", 0); /* of whoever looked into an earlier copy */
        int rc = backup_copy_log(c);
        if (rc == 0)
                rc = copy_small(c, "meta.json", META_MAX);
        if (rc == 0)
                rc = backup_copy_artifacts(c);
        if (rc == 0)
                rc = backup_copy_folder(c, "artifacts/parts", false);
        if (rc == 0)
                rc = backup_look_for_parts(c);
        if (rc == 0)
                rc = backup_copy_folder(c, "runs", true);
        if (rc == 0)
                rc = backup_copy_folder(c, "seal", false);
        sys = rc ? 0 : backup_files_write(&c->files, c->fs, c->to);
        return sys ? backup_failed(c, sys, BACKUP_FILES) : rc;
}

/* Under the lock: the log must not grow behind the end that was noted before it is looked at. */
static void take_stamp(struct backup_copying *c, int64_t now_ms)
{
        c->now = (struct timespec){
            .tv_sec = (time_t)(now_ms / 1000), .tv_nsec = (long)(now_ms % 1000) * 1000000};
        if (c->laid)
                memcpy(c->stamp, c->laid->stamp, sizeof c->stamp);
        else if (backup_stamp(c->fs, c->conv->dir, &c->now, c->stamp))
                *c->stamp = '\0';
}

/* `hold`: the lock is kept, so that nothing can change. AGAIN: something did. */
static int try_once(struct backup_copying *c, bool hold)
{
        const struct env *env = c->conv->store->env;
        c->log = -1;
        buf_clear(&c->damaged);
        int rc = files_conv_lock(c->conv, c->err);
        if (rc)
                return rc;
        int64_t now = env->now(env);
        rc = backup_note_end(c);
        if (rc == 0)
                take_stamp(c, now);
        if (!hold || rc)
                files_conv_unlock(c->conv);
        if (rc == 0) {
                rc = copy_all(c);
                backup_files_release(&c->files);
                if (hold)
                        files_conv_unlock(c->conv);
                else if (rc == 0)
                        rc = look_again(c);
        }
        if (rc == 0)
                rc = backup_write_note(c);
        if (c->log >= 0)
                c->fs->close(c->fs, c->log);
        return rc;
}

int backup_conv(struct files_conv *conv, const struct backup_request *asked,
    struct backup_result *out, struct steno_error *err)
{
        struct steno_error why = {0};
        struct backup_copying c = {.conv = conv,
            .from = asked->from,
            .laid = asked->laid,
            .fs = asked->fs,
            .to = asked->to,
            .mark = asked->mark,
            .verify = asked->verify,
            .err = err ? err : &why};
        int rc = AGAIN;
        buf_init(&c.damaged, 0);
        buf_init(&c.parts, 0);
        for (int i = 0; rc == AGAIN && i <= TRIES; i++)
                rc = try_once(&c, i == TRIES);
        if (rc == 0) {
                *out = (struct backup_result){
                    .records = c.last_seq, .copied = c.copied, .mended = c.mended};
                out->damaged_size = c.damaged.n;
                out->damaged = c.damaged.n ? buf_take(&c.damaged, NULL) : NULL;
        }
        buf_release(&c.damaged);
        buf_release(&c.parts);
        return rc;
}
