/* backup.c - see backup.h */
#include "store/files/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/artifact.h"
#include "store/files/backup_stamp.h"
#include "store/files/conv.h"
#include "store/files/manifest.h"
#include "store/files/run.h"
#include "store/files/run_read.h"

#define TRIES 3
#define TAIL (64 * KIB)
#define NOTE_MAX (4 * KIB)
#define AGAIN 1 /* bytes were taken away while they were copied */

struct copying {
        struct files_conv *conv;
        const struct fs *fs;
        int to;
        const char *mark;
        int log; /* the conversation's, as it was at first */
        uint64_t ino;
        uint64_t end;
        uint64_t last_seq;
        uint64_t copied;
        char stamp[SHA256_HEX];    /* of the conversation, "": none that counts */
        struct artifact_info *old; /* outputs that the copy had, by id */
        size_t old_count;
        struct steno_error *err;
};

static int failed(struct copying *c, int sys, const char *name)
{
        return error_sys(c->err, sys, "copying %s", name);
}

/* ---- files ---- */

struct writing {
        struct copying *c;
        int fd;
        uint64_t at;
        int sys;
};

static int write_piece(void *ctx, const void *p, size_t n)
{
        struct writing *w = ctx;
        w->sys = fs_pwrite_all(w->c->fs, w->fd, p, n, (off_t)w->at);
        w->at += n;
        w->c->copied += n;
        return w->sys;
}

/* Appends [at, size) of an open file to another. */
static int copy_bytes(struct copying *c, int from, uint64_t at, uint64_t size, int to)
{
        struct writing w = {.c = c, .fd = to, .at = at};
        int rc = fs_copy_out(c->fs, from, at, size - at, write_piece, &w, NULL);
        if (rc == 1)
                rc = w.sys;
        if (rc == 0 && w.at != size)
                rc = -EIO;
        return rc ? rc : c->fs->fdatasync(c->fs, to);
}

/* A new file with the first `size` bytes of an open one, under a name that may be taken. */
static int copy_file(struct copying *c, int from, uint64_t size, int dir, const char *name)
{
        char aside[160];
        snprintf(aside, sizeof aside, ".%s.new", name);
        int fd = c->fs->open(c->fs, dir, aside, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0)
                return fd;
        int rc = copy_bytes(c, from, 0, size, fd);
        c->fs->close(c->fs, fd);
        if (rc == 0)
                rc = c->fs->rename(c->fs, dir, aside, dir, name);
        if (rc)
                c->fs->unlink(c->fs, dir, aside, 0);
        return rc;
}

static bool has_size(struct copying *c, int dir, const char *name, uint64_t size)
{
        struct stat st;
        return c->fs->stat(c->fs, dir, name, &st) == 0 && S_ISREG(st.st_mode) &&
               (uint64_t)st.st_size == size;
}

/* ---- the note ---- */

static int hash_tail(struct copying *c, int fd, uint64_t end, char hex[SHA256_HEX])
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

/* How much of the log is in the copy already, 0: nothing that can be used. */
static uint64_t known_end(struct copying *c)
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
                  hash_tail(c, c->log, end, hex) == 0 && json_is(&j, json_get(&j, 0, "tail"), hex);
        json_release(&j);
        free(text);
        return ok ? end : 0;
}

static int write_note(struct copying *c)
{
        char hex[SHA256_HEX] = "", copy[SHA256_HEX];
        struct buf b;
        int rc = c->log >= 0 ? hash_tail(c, c->log, c->end, hex) : 0;
        if (rc)
                return failed(c, rc, "messages.jsonl");
        buf_init(&b, NOTE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "backup", c->mark);
        jsonw_field_u64(&w, "inode", c->ino);
        jsonw_field_u64(&w, "end", c->end);
        jsonw_field_cstr(&w, "tail", hex);
        jsonw_field_u64(&w, "records", c->last_seq);
        if (*c->stamp && backup_stamp(c->fs, c->to, NULL, copy) == 0) {
                jsonw_field_cstr(&w, "source", c->stamp);
                jsonw_field_cstr(&w, "copy", copy);
        }
        jsonw_object_end(&w);
        rc = b.failed ? -ENOMEM : fs_replace(c->fs, c->to, BACKUP_NOTE, b.p, b.n);
        buf_release(&b);
        return rc ? failed(c, rc, BACKUP_NOTE) : 0;
}

bool backup_is_unchanged(const struct fs *fs, int from, int to, uint64_t *records)
{
        char *text = NULL, stamp[SHA256_HEX];
        size_t n = 0;
        struct json j;
        json_init(&j);
        bool same =
            fs_slurp(fs, to, BACKUP_NOTE, NOTE_MAX, &text, &n) == 0 &&
            json_parse(&j, text, n, NULL, NULL) == 0 &&
            json_u64(&j, json_get(&j, 0, "records"), records) &&
            json_get(&j, 0, "source") != JSON_NONE && backup_stamp(fs, from, NULL, stamp) == 0 &&
            json_is(&j, json_get(&j, 0, "source"), stamp) &&
            backup_stamp(fs, to, NULL, stamp) == 0 && json_is(&j, json_get(&j, 0, "copy"), stamp);
        json_release(&j);
        free(text);
        return same;
}

/* ---- the log ---- */

/* The same in a store that we may not write to: a torn end stays where it is. Others may write
 * there, and hold the lock while they do. */
static int note_end_read_only(struct copying *c)
{
        struct files_conv *conv = c->conv;
        struct log_end end = {0};
        struct ids ids;
        struct stat st;
        c->log = c->fs->open(c->fs, conv->dir, "messages.jsonl", O_RDONLY, 0);
        int sys = c->log < 0 ? c->log : c->fs->fstat(c->fs, c->log, &st);
        if (sys)
                return failed(c, sys, "messages.jsonl");
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
static int note_end(struct copying *c)
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
                return failed(c, sys, "messages.jsonl");
        c->ino = st.st_ino;
        c->end = conv->at.end;
        c->last_seq = conv->at.last_seq;
        return 0;
}

static int copy_log(struct copying *c)
{
        uint64_t from = known_end(c);
        int sys;
        if (from) {
                int fd = c->fs->open(c->fs, c->to, "messages.jsonl", O_RDWR, 0);
                sys = fd < 0 ? fd : copy_bytes(c, c->log, from, c->end, fd);
                if (fd >= 0)
                        c->fs->close(c->fs, fd);
        } else {
                sys = copy_file(c, c->log, c->end, c->to, "messages.jsonl");
        }
        return sys ? failed(c, sys, "messages.jsonl") : 0;
}

/* ---- small files ---- */

/* Copies a file that is replaced as a whole, where the copy has other bytes. */
static int copy_small(struct copying *c, const char *name, size_t max)
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
        return sys ? failed(c, sys, name) : 0;
}

/* ---- folders whose files come and go ---- */

struct folder {
        struct copying *c;
        int from; /* -1: there is none */
        int to;
        int sys;
};

/* What the copy has of a folder that the conversation lacks is of another one, which had its id. */
static int drop_folder(struct copying *c, const char *path)
{
        int sys = fs_remove_tree(c->fs, c->to, path);
        return sys && sys != -ENOENT ? failed(c, sys, path) : 0;
}

static int open_both(struct copying *c, const char *path, struct folder *f)
{
        char name[32];
        *f = (struct folder){.c = c, .from = -1, .to = -1};
        const char *slash = strchr(path, '/');
        f->from = c->fs->open(c->fs, c->conv->dir, path, O_RDONLY | O_DIRECTORY, 0);
        if (f->from == -ENOENT)
                return drop_folder(c, path);
        snprintf(
            name, sizeof name, "%.*s", (int)(slash ? slash - path : (ptrdiff_t)strlen(path)), path);
        int top = f->from < 0 ? f->from : fs_open_dir(c->fs, c->to, name, true);
        f->to = top;
        if (top >= 0 && slash) {
                f->to = fs_open_dir(c->fs, top, slash + 1, true);
                c->fs->close(c->fs, top);
        }
        return f->to < 0 ? failed(c, f->to, path) : 0;
}

static void close_both(struct folder *f)
{
        if (f->from >= 0)
                f->c->fs->close(f->c->fs, f->from);
        if (f->to >= 0)
                f->c->fs->close(f->c->fs, f->to);
}

/* Names of the copy that the conversation no longer has. */
static int drop_stale(void *ctx, const char *name, unsigned char type)
{
        struct folder *f = ctx;
        struct stat st;
        (void)type;
        if (f->c->fs->stat(f->c->fs, f->from, name, &st) == -ENOENT)
                f->sys = f->c->fs->unlink(f->c->fs, f->to, name, 0);
        return f->sys;
}

static int copy_part(void *ctx, const char *name, unsigned char type)
{
        struct folder *f = ctx;
        struct copying *c = f->c;
        struct stat st;
        (void)type;
        if (name[0] == '.')
                return 0;
        int fd = c->fs->open(c->fs, f->from, name, O_RDONLY | O_NONBLOCK, 0);
        f->sys = fd < 0 ? fd : c->fs->fstat(c->fs, fd, &st);
        if (f->sys == 0 && S_ISREG(st.st_mode) && !has_size(c, f->to, name, (uint64_t)st.st_size))
                f->sys = copy_file(c, fd, (uint64_t)st.st_size, f->to, name);
        if (fd >= 0)
                c->fs->close(c->fs, fd);
        f->sys = f->sys == -ENOENT ? 0 : f->sys; /* purged: the log tells (K2) */
        return f->sys;
}

static int copy_run(void *ctx, const char *run)
{
        struct folder *f = ctx;
        struct copying *c = f->c;
        char name[96];
        struct stat st;
        struct buf line;
        struct run_event e;
        uint64_t end = 0;
        snprintf(name, sizeof name, "%s.jsonl", run);
        int fd = c->fs->open(c->fs, f->from, name, O_RDONLY | O_NONBLOCK, 0);
        if (fd < 0)
                return fd == -ENOENT ? 0 : failed(c, fd, name);
        buf_init(&line, 0);
        int sys = c->fs->fstat(c->fs, fd, &st);
        int rc = sys ? failed(c, sys, name)
                     : run_last_line(c->fs, fd, (uint64_t)st.st_size, &line, &e, &end, c->err);
        /* Journals only grow, until a purge replaces them by smaller ones. */
        if (rc >= 0 && !has_size(c, f->to, name, end)) {
                sys = copy_file(c, fd, end, f->to, name);
                rc = sys ? failed(c, sys, name) : 0;
        }
        buf_release(&line);
        c->fs->close(c->fs, fd);
        return rc < 0 ? rc : 0;
}

static int copy_folder(struct copying *c, const char *path, bool runs)
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
                        rc = failed(c, sys, path);
        }
        close_both(&f);
        return rc;
}

/* ---- outputs ---- */

static int by_id(const void *a, const void *b)
{
        return strcmp(((const struct artifact_info *)a)->id, ((const struct artifact_info *)b)->id);
}

/* Is an output in the copy already, with these bytes? Names come again after a purge. */
static bool is_there(struct copying *c, const struct artifact_info *info, int folder)
{
        const struct artifact_info *old =
            c->old_count ? bsearch(info, c->old, c->old_count, sizeof *info, by_id) : NULL;
        return info->state == ARTIFACT_CLOSED && old && old->state == ARTIFACT_CLOSED &&
               strcmp(old->sha256, info->sha256) == 0 && strcmp(old->name, info->name) == 0 &&
               has_size(c, folder, info->name, info->size);
}

static int copy_output(struct copying *c, const struct artifact_info *info, int folder)
{
        uint64_t size = 0;
        int fd = -1;
        if (info->state == ARTIFACT_DELETED || is_there(c, info, folder))
                return 0;
        int rc = artifact_open(c->conv, info, &fd, &size, c->err);
        if (rc == STENO_ECORRUPT || (rc && files_is_foreign(-c->err->sys)))
                return 0; /* lost, or purged a moment ago: then the log tells (K2) */
        if (rc)
                return rc;
        if (info->state == ARTIFACT_CLOSED && size > info->size)
                size = info->size;
        int sys = copy_file(c, fd, size, folder, info->name);
        c->fs->close(c->fs, fd);
        return sys ? failed(c, sys, info->name) : 0;
}

static int copy_outputs(
    struct copying *c, const char *kind, const struct artifact_info *list, size_t count)
{
        char path[32];
        struct folder f;
        snprintf(path, sizeof path, "artifacts/%s", kind);
        int rc = open_both(c, path, &f);
        for (size_t i = 0; rc == 0 && f.from >= 0 && i < count; i++)
                if (strcmp(list[i].kind, kind) == 0)
                        rc = copy_output(c, &list[i], f.to);
        if (rc == 0 && f.from >= 0) {
                int sys = c->fs->list(c->fs, f.to, drop_stale, &f);
                if (sys == 0)
                        sys = c->fs->fsync(c->fs, f.to);
                rc = sys ? failed(c, sys, path) : 0;
        }
        close_both(&f);
        return rc;
}

/* The list first, then what it names, then the list into the copy: a name that is in the copy has
 * its bytes there. */
static int copy_artifacts(struct copying *c)
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
                rc = manifest_read(c->fs, f.to, &c->old, &c->old_count, c->err);
        if (c->old_count)
                qsort(c->old, c->old_count, sizeof *c->old, by_id);
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
                rc = sys && (count || sys != -ENOENT) ? failed(c, sys, MANIFEST_NAME) : 0;
        }
        buf_release(&lines);
        free(list);
        free(c->old);
        c->old = NULL;
        c->old_count = 0;
        close_both(&f);
        return rc;
}

/* ---- all of it ---- */

/* Has somebody taken bytes away since the end was noted (K2)? Whoever does holds the lock. */
static int look_again(struct copying *c)
{
        struct stat st;
        int rc = files_conv_lock(c->conv, c->err);
        if (rc)
                return rc;
        int sys = c->fs->stat(c->fs, c->conv->dir, "messages.jsonl", &st);
        files_conv_unlock(c->conv);
        return sys ? failed(c, sys, "messages.jsonl") : (uint64_t)st.st_ino == c->ino ? 0 : AGAIN;
}

static int copy_all(struct copying *c)
{
        c->fs->unlink(c->fs, c->to, "ids.idx", 0); /* of whoever looked into an earlier copy */
        int rc = copy_log(c);
        if (rc == 0)
                rc = copy_small(c, "meta.json", META_MAX);
        if (rc == 0)
                rc = copy_artifacts(c);
        if (rc == 0)
                rc = copy_folder(c, "artifacts/parts", false);
        if (rc == 0)
                rc = copy_folder(c, "runs", true);
        if (rc == 0)
                rc = copy_folder(c, "seal", false);
        return rc;
}

/* Under the lock: the log must not grow behind the end that was noted before it is looked at. */
static void take_stamp(struct copying *c, int64_t now_ms)
{
        struct timespec now = {
            .tv_sec = (time_t)(now_ms / 1000), .tv_nsec = (long)(now_ms % 1000) * 1000000};
        if (backup_stamp(c->fs, c->conv->dir, &now, c->stamp))
                *c->stamp = '\0';
}

/* `hold`: the lock is kept, so that nothing can change. AGAIN: something did. */
static int try_once(struct copying *c, bool hold)
{
        const struct env *env = c->conv->store->env;
        c->log = -1;
        int rc = files_conv_lock(c->conv, c->err);
        if (rc)
                return rc;
        int64_t now = env->now(env);
        rc = note_end(c);
        if (rc == 0)
                take_stamp(c, now);
        if (!hold || rc)
                files_conv_unlock(c->conv);
        if (rc == 0) {
                rc = copy_all(c);
                if (hold)
                        files_conv_unlock(c->conv);
                else if (rc == 0)
                        rc = look_again(c);
        }
        if (rc == 0)
                rc = write_note(c);
        if (c->log >= 0)
                c->fs->close(c->fs, c->log);
        return rc;
}

int backup_conv(struct files_conv *conv, int to, const char *mark, struct backup_result *out,
    struct steno_error *err)
{
        struct steno_error why = {0};
        struct copying c = {.conv = conv,
            .fs = conv->store->env->fs,
            .to = to,
            .mark = mark,
            .err = err ? err : &why};
        int rc = AGAIN;
        for (int i = 0; rc == AGAIN && i <= TRIES; i++)
                rc = try_once(&c, i == TRIES);
        if (rc == 0)
                *out = (struct backup_result){.records = c.last_seq, .copied = c.copied};
        return rc;
}
