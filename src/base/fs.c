/*
 * fs.c - what is often done with files, in terms of struct fs.
 *
 * Owns the order of syncs that makes a replaced file or a new directory survive a crash. Calls
 * the system only through the table. Must not know what a store is.
 */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

/* Enough for any tree we make; each level holds a descriptor while it is removed. */
#define TREE_DEPTH_MAX 128
/* How many other writers of the file may get the lock before us until we give up. */
#define REPLACE_TRIES 100
/* Longer than one step of any clock that file systems take their times from. */
#define TICK_NS 100000000L
#define COARSE_TICK_S 3
#define COPY_BLOCK 65536

int fs_write_all(const struct fs *fs, int fd, const void *p, size_t n)
{
        const char *at = p;

        while (n > 0) {
                ssize_t put = fs->write(fs, fd, at, n);
                if (put == -EINTR)
                        continue;
                if (put < 0)
                        return (int)put;
                if (put == 0)
                        return -EIO;
                at += put;
                n -= (size_t)put;
        }
        return 0;
}

int fs_pwrite_all(const struct fs *fs, int fd, const void *p, size_t n, off_t at)
{
        const char *from = p;

        while (n > 0) {
                ssize_t put = fs->pwrite(fs, fd, from, n, at);
                if (put == -EINTR)
                        continue;
                if (put < 0)
                        return (int)put;
                if (put == 0)
                        return -EIO;
                from += put;
                at += put;
                n -= (size_t)put;
        }
        return 0;
}

ssize_t fs_pread_all(const struct fs *fs, int fd, void *p, size_t n, off_t at)
{
        char *to = p;
        size_t have = 0;

        while (have < n) {
                ssize_t got = fs->pread(fs, fd, to + have, n - have, at + (off_t)have);
                if (got == -EINTR)
                        continue;
                if (got < 0)
                        return got;
                if (got == 0)
                        break;
                have += (size_t)got;
        }
        return (ssize_t)have;
}

/*
 * The temporary file has one fixed name, so that the next writer reuses what a crash left. Writers
 * take turns by its lock: *fd is locked and still what `tmp` names, or negative.
 */
static int open_temporary(const struct fs *fs, int dir, const char *tmp)
{
        for (int i = 0; i < REPLACE_TRIES; i++) {
                struct stat mine;
                struct stat named;
                int fd = fs->open(fs, dir, tmp, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
                if (fd < 0)
                        return fd;
                int rc = fs->flock(fs, fd, LOCK_EX);
                if (rc == 0)
                        rc = fs->fstat(fs, fd, &mine);
                if (rc == 0) {
                        rc = fs->stat(fs, dir, tmp, &named);
                        if (rc == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
                                return fd;
                        if (rc == -ENOENT)
                                rc = 0;
                }
                fs->close(fs, fd);
                if (rc < 0)
                        return rc;
        }
        return -EBUSY;
}

int fs_replace(const struct fs *fs, int dir, const char *name, const void *p, size_t n)
{
        char tmp[NAME_MAX + 1];

        if (strchr(name, '/'))
                return -EINVAL;
        int len = snprintf(tmp, sizeof(tmp), ".%s.tmp", name);
        if (len < 0 || (size_t)len >= sizeof(tmp))
                return -ENAMETOOLONG;
        int fd = open_temporary(fs, dir, tmp);
        if (fd < 0)
                return fd;
        int rc = fs->ftruncate(fs, fd, 0);
        if (rc == 0)
                rc = fs_pwrite_all(fs, fd, p, n, 0);
        if (rc == 0)
                rc = fs->fdatasync(fs, fd);
        if (rc == 0)
                rc = fs->rename(fs, dir, tmp, dir, name);
        if (rc < 0)
                fs->unlink(fs, dir, tmp, 0);
        else
                rc = fs->fsync(fs, dir);
        int closed = fs->close(fs, fd);
        return rc < 0 ? rc : closed;
}

static int read_to_end(const struct fs *fs, int fd, size_t hint, size_t max, char **out, size_t *n)
{
        size_t cap = hint < max ? hint : max;
        size_t have = 0;
        char *p = NULL;

        /* One byte more than expected, so that the usual file is known whole after one read. */
        cap += 1;
        for (;;) {
                char *grown = realloc(p, cap + 1);
                if (!grown) {
                        free(p);
                        return -ENOMEM;
                }
                p = grown;
                ssize_t got = fs_pread_all(fs, fd, p + have, cap - have, (off_t)have);
                if (got < 0 || have + (size_t)got > max) {
                        free(p);
                        return got < 0 ? (int)got : -EFBIG;
                }
                have += (size_t)got;
                if (have < cap)
                        break;
                cap = cap < max / 2 ? cap * 2 : max + 1;
        }
        p[have] = '\0';
        *out = p;
        *n = have;
        return 0;
}

int fs_slurp(const struct fs *fs, int dir, const char *name, size_t max, char **out, size_t *n)
{
        struct stat st;

        /* O_NONBLOCK: opening a FIFO that somebody put there must not block. */
        int fd = fs->open(fs, dir, name, O_RDONLY | O_NONBLOCK, 0);
        if (fd < 0)
                return fd;
        int rc = fs->fstat(fs, fd, &st);
        if (rc == 0 && S_ISDIR(st.st_mode))
                rc = -EISDIR;
        else if (rc == 0 && !S_ISREG(st.st_mode))
                rc = -EINVAL;
        else if (rc == 0 && (uint64_t)st.st_size > max)
                rc = -EFBIG;
        if (rc == 0)
                rc = read_to_end(fs, fd, (size_t)st.st_size, max, out, n);
        fs->close(fs, fd);
        return rc;
}

int fs_open_dir(const struct fs *fs, int dir, const char *name, bool create)
{
        if (create) {
                int rc = fs->mkdir(fs, dir, name, 0700);
                if (rc == 0) {
                        rc = fs->fsync(fs, dir);
                        /* Otherwise the next caller would find the directory and trust it, although
                         * a crash could still take it away. */
                        if (rc < 0)
                                fs->unlink(fs, dir, name, AT_REMOVEDIR);
                }
                if (rc < 0 && rc != -EEXIST)
                        return rc;
        }
        return fs->open(fs, dir, name, O_RDONLY | O_DIRECTORY, 0);
}

struct removal {
        const struct fs *fs;
        int dir;
        int depth;
        bool found; /* this pass saw a name */
};

static int remove_entry(struct removal *r, const char *name);

static int remove_each(void *ctx, const char *name, unsigned char d_type)
{
        struct removal *r = ctx;

        (void)d_type;
        r->found = true;
        int rc = remove_entry(r, name);
        return rc == -ENOENT ? 0 : rc;
}

/* Passes until one finds nothing: reading a directory while it shrinks may skip names. */
static int remove_inside(const struct fs *fs, int dir, int depth)
{
        struct removal r = {fs, dir, depth, true};

        while (r.found) {
                r.found = false;
                int rc = fs->list(fs, dir, remove_each, &r);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int remove_entry(struct removal *r, const char *name)
{
        const struct fs *fs = r->fs;

        int rc = fs->unlink(fs, r->dir, name, 0);
        if (rc != -EISDIR && rc != -EPERM)
                return rc;
        if (r->depth >= TREE_DEPTH_MAX)
                return -ENAMETOOLONG;
        int fd = fs->open(fs, r->dir, name, O_RDONLY | O_DIRECTORY, 0);
        if (fd < 0)
                return fd == -ENOTDIR ? rc : fd;
        rc = remove_inside(fs, fd, r->depth + 1);
        fs->close(fs, fd);
        if (rc < 0)
                return rc;
        return fs->unlink(fs, r->dir, name, AT_REMOVEDIR);
}

int fs_remove_tree(const struct fs *fs, int dir, const char *name)
{
        struct removal r = {fs, dir, 0, false};

        return remove_entry(&r, name);
}

/* ---- names ---- */

struct each_call {
        int (*each)(void *ctx, const char *name, unsigned char d_type);
        void *ctx;
        int rc;
};

static int call_each(void *ctx, const char *name, unsigned char d_type)
{
        struct each_call *c = ctx;
        c->rc = c->each(c->ctx, name, d_type);
        return c->rc ? 1 : 0;
}

int fs_each(const struct fs *fs, int dir,
    int (*each)(void *ctx, const char *name, unsigned char d_type), void *ctx, int *sys)
{
        struct each_call c = {.each = each, .ctx = ctx};
        int rc = fs->list(fs, dir, call_each, &c);
        *sys = rc < 0 ? rc : 0;
        return c.rc;
}

/* ---- stamps ---- */

struct fs_stamp fs_stamp_of(struct timespec dir, struct timespec later)
{
        time_t seconds = later.tv_sec - dir.tv_sec;
        bool clear = seconds > COARSE_TICK_S;
        /* Without a fraction, the file system may know whole seconds only. */
        if (!clear && seconds >= 0 && dir.tv_nsec)
                clear = seconds * 1000000000L + later.tv_nsec - dir.tv_nsec > TICK_NS;
        return clear ? (struct fs_stamp){dir} : (struct fs_stamp){{0}};
}

bool fs_stamp_is(struct fs_stamp stamp, struct timespec dir)
{
        return stamp.changed.tv_sec && stamp.changed.tv_sec == dir.tv_sec &&
               stamp.changed.tv_nsec == dir.tv_nsec;
}

int fs_copy_out(const struct fs *fs, int fd, uint64_t at, uint64_t max,
    int (*to)(void *ctx, const void *p, size_t n), void *ctx, uint64_t *n)
{
        char block[COPY_BLOCK];
        uint64_t done = 0;
        int rc = 0;
        while (rc == 0 && done < max) {
                size_t want = max - done < sizeof block ? (size_t)(max - done) : sizeof block;
                ssize_t got = fs_pread_all(fs, fd, block, want, (off_t)(at + done));
                if (got <= 0) {
                        rc = (int)got;
                        break;
                }
                rc = to(ctx, block, (size_t)got) ? 1 : 0;
                done += (uint64_t)got;
        }
        if (n)
                *n = done;
        return rc;
}

struct copying {
        const struct fs *fs;
        int fd;
        int failed;
};

static int copy_piece(void *ctx, const void *p, size_t n)
{
        struct copying *c = ctx;
        c->failed = fs_write_all(c->fs, c->fd, p, n);
        return c->failed;
}

/* A new file with all of `from`: by a clone, or else (`copy`) piece by piece. Synced. */
static int fill_new(
    const struct fs *fs, int from, int newdir, const char *newname, uint64_t size, bool copy)
{
        int to = fs->open(fs, newdir, newname, O_RDWR | O_CREAT | O_EXCL, 0600);
        struct copying c = {.fs = fs, .fd = to};
        if (to < 0)
                return to;
        int rc =
            copy ? fs_copy_out(fs, from, 0, size, copy_piece, &c, NULL) : fs->clone(fs, from, to);
        if (rc == 1)
                rc = c.failed;
        if (rc == 0)
                rc = fs->fsync(fs, to);
        fs->close(fs, to);
        if (rc)
                fs->unlink(fs, newdir, newname, 0);
        return rc;
}

int fs_copy_new(const struct fs *fs, int from, uint64_t size, int newdir, const char *newname)
{
        return fill_new(fs, from, newdir, newname, size, true);
}

int fs_share(const struct fs *fs, int olddir, const char *oldname, int newdir, const char *newname)
{
        int from = fs->open(fs, olddir, oldname, O_RDONLY, 0);
        if (from < 0)
                return from;
        bool done = fill_new(fs, from, newdir, newname, 0, false) == 0 ||
                    fs->link(fs, olddir, oldname, newdir, newname) == 0;
        int rc = done ? 0 : fill_new(fs, from, newdir, newname, UINT64_MAX, true);
        fs->close(fs, from);
        return rc;
}
