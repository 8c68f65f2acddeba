/*
 * fs.h - every system call on files, behind one table.
 *
 * The store reaches the disk only through this, so that tests can crash, tear, fill and fail it
 * at every call. Functions return what the system call does, or a negative errno: nobody reads
 * `errno`. All paths are relative to a directory descriptor; the real implementation resolves
 * them with openat2 (beneath, no symbolic links, no magic links), falling back to O_NOFOLLOW on
 * one-component names where the kernel has no openat2.
 *
 * `self` is the table itself, so that a wrapper can embed it in its own state. Every slot is set;
 * implementations are thread-safe.
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"

struct fs {
        /* Opens a store's root by path as given by the user (links allowed up to there). */
        int (*open_root)(const struct fs *self, const char *path, bool create);
        /* flags as for openat; O_CLOEXEC is added. */
        int (*open)(const struct fs *self, int dir, const char *path, int flags, mode_t mode);
        int (*close)(const struct fs *self, int fd);
        ssize_t (*pread)(const struct fs *self, int fd, void *p, size_t n, off_t at);
        ssize_t (*pwrite)(const struct fs *self, int fd, const void *p, size_t n, off_t at);
        /* At the descriptor's position, or at the end with O_APPEND. */
        ssize_t (*write)(const struct fs *self, int fd, const void *p, size_t n);
        int (*fdatasync)(const struct fs *self, int fd);
        int (*fsync)(const struct fs *self, int fd); /* directories too */
        int (*ftruncate)(const struct fs *self, int fd, off_t n);
        /* A hint: reserves blocks for the first n bytes, also behind the end of the file; the size
         * does not change. Does nothing if the disk is nearly full. */
        int (*reserve)(const struct fs *self, int fd, off_t n);
        int (*fstat)(const struct fs *self, int fd, struct stat *st);
        int (*stat)(const struct fs *self, int dir, const char *path, struct stat *st);
        int (*mkdir)(const struct fs *self, int dir, const char *path, mode_t mode);
        int (*rename)(const struct fs *self, int olddir, const char *oldpath, int newdir,
            const char *newpath);
        /* With RENAME_NOREPLACE: -EEXIST when the new name is taken. */
        int (*rename_new)(const struct fs *self, int olddir, const char *oldpath, int newdir,
            const char *newpath);
        /* A second name for a file. */
        int (*link)(const struct fs *self, int olddir, const char *oldpath, int newdir,
            const char *newpath);
        /* The empty file `to` gets the bytes of `from` without copying them. A negative errno where
         * the file system cannot do that. */
        int (*clone)(const struct fs *self, int from, int to);
        int (*unlink)(const struct fs *self, int dir, const char *path, int flags);
        /* operation as for flock; LOCK_EX without LOCK_NB waits, through EINTR. */
        int (*flock)(const struct fs *self, int fd, int operation);
        /* Calls `each` for every name but . and ..; stops at its first non-zero return, which is
         * returned. `dir` stays open and its position does not matter. */
        int (*list)(const struct fs *self, int dir,
            int (*each)(void *ctx, const char *name, unsigned char d_type), void *ctx);
        /* f_type of statfs, or negative. */
        long (*magic)(const struct fs *self, int fd);
};

/* The operating system's. */
const struct fs *fs_real(void);
/*
 * A lock may be held for any time. After this call a wait for one ends with -EINTR when a signal
 * comes and `when` returns true. Programs call it; without it the library goes on waiting, because
 * signals are not its business.
 */
void fs_end_waits(bool (*when)(void));
/* Has such a signal come? For other kinds of waits. */
bool fs_waits_end(void);
/* The same, for tables that are constant expressions. */
extern const struct fs fs_real_table;

/* ---- in terms of the table ---- */

/* Writes all of it; goes on after EINTR and short writes. 0 or negative errno. A failure may have
 * written a part. */
int fs_write_all(const struct fs *fs, int fd, const void *p, size_t n);
int fs_pwrite_all(const struct fs *fs, int fd, const void *p, size_t n, off_t at);
/* Reads until n bytes or the end; how many, or negative errno. Goes on after EINTR. */
ssize_t fs_pread_all(const struct fs *fs, int fd, void *p, size_t n, off_t at);
/* Replaces a small file: temporary, sync, rename, sync of the directory. 0 or negative errno. */
int fs_replace(const struct fs *fs, int dir, const char *name, const void *p, size_t n);
/* Reads a small file whole into *out (NUL added, freed with free()), at most `max` bytes, else
 * -EFBIG. */
int fs_slurp(const struct fs *fs, int dir, const char *name, size_t max, char **out, size_t *n);
/* Hands all bytes of an open file from `at` on to `to`, which takes pieces as steno_sink does: 0,
 * 1 when `to` wants no more, or a negative errno. At most `max` bytes; *n (may be NULL): how many.
 */
int fs_copy_out(const struct fs *fs, int fd, uint64_t at, uint64_t max,
    int (*to)(void *ctx, const void *p, size_t n), void *ctx, uint64_t *n);
/*
 * As `list`, for an `each` that returns codes which are not errnos and could be confused with them.
 * Returns what `each` stopped with, or 0; *sys is 0, or the negative errno of a folder that could
 * not be read.
 */
int fs_each(const struct fs *fs, int dir,
    int (*each)(void *ctx, const char *name, unsigned char d_type), void *ctx, int *sys);
/* A new file with the first `size` bytes of an open one, synced but for its name. */
int fs_copy_new(const struct fs *fs, int from, uint64_t size, int newdir, const char *newname);
/*
 * A new file with the bytes of another that nobody writes to any more, synced but for its name.
 * They are shared where the file system can: by a clone, or by a hard link. 0 or a negative errno.
 */
int fs_share(const struct fs *fs, int olddir, const char *oldname, int newdir, const char *newname);
/* Makes a directory if it does not exist, and syncs `dir` then. Returns an open descriptor of the
 * directory, or a negative errno. */
int fs_open_dir(const struct fs *fs, int dir, const char *name, bool create);
/*
 * The state of a directory. While its stamp is the same, no name in it was made, removed or given
 * to another file, and the directory was not moved, so its names need not be read again. A second
 * change within the same tick of the clock would not be noticed. Therefore a stamp counts only
 * after the file system has set a clearly later time somewhere.
 */
struct fs_stamp {
        struct timespec changed; /* zero: like nothing */
};
/* Both are st_ctim: `dir` is that of the directory before its names were read, `later` that of any
 * file. */
struct fs_stamp fs_stamp_of(struct timespec dir, struct timespec later);
bool fs_stamp_is(struct fs_stamp stamp, struct timespec dir);
/* Removes a directory and all in it. Does not follow links. 0 or negative errno. */
int fs_remove_tree(const struct fs *fs, int dir, const char *name);

#endif
