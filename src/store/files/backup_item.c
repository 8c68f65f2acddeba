/* backup_item.c - the files of a copy, one by one; see backup_work.h */
#include "store/files/backup_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* ---- bytes ---- */

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
int backup_copy_bytes(
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
int backup_copy_file(struct backup_copying *c, int from, uint64_t size, int dir, const char *name,
    struct sha256 *sha)
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
int backup_has_bytes(struct backup_copying *c, int a, int b, uint64_t size, bool *yes)
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
int backup_bring(struct backup_copying *c, struct backup_item *it, bool *whole)
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

/* ---- what is copied without being an item ---- */

bool backup_is_strange(
    const struct fs *fs, int dir, const char *path, bool folder, char what[BACKUP_WORDS])
{
        struct stat st;
        if (fs->stat(fs, dir, path, &st) || (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
                return false;
        if (S_ISLNK(st.st_mode))
                snprintf(what, BACKUP_WORDS, "%s is a symbolic link, which is not followed", path);
        else
                snprintf(what, BACKUP_WORDS, "%s is not a %s", path, folder ? "folder" : "file");
        return true;
}

int backup_small(
    const struct fs *fs, int from, int to, const char *name, size_t max, uint64_t *copied)
{
        char *text = NULL, *there = NULL;
        size_t n = 0, there_n = 0;
        *copied = 0;
        int sys = fs_slurp(fs, from, name, max, &text, &n);
        if (sys == -ENOENT)
                return 1;
        bool same = sys == 0 && fs_slurp(fs, to, name, max, &there, &there_n) == 0 &&
                    n == there_n && memcmp(text, there, n) == 0;
        if (sys == 0 && !same) {
                sys = fs_replace(fs, to, name, text, n);
                *copied = n;
        }
        free(text);
        free(there);
        return sys;
}
