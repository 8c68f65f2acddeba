/*
 * fs_real.c - the operating system's files behind struct fs.
 *
 * Owns the rule that a path never leaves the directory it is relative to and never passes a
 * symbolic link (a link planted inside a store must not lead a write out of it). Holds no
 * state but the question when to stop waiting. Must not know what a store is.
 */
#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/limits.h"

/* openat2 asks for a retry when a rename raced with it. */
#define RESOLVE_TRIES 64
/* With less free space than this, blocks are not reserved: other files need them. */
#define RESERVE_WHILE_FREE (256 * MIB)

static bool is_one_name(const char *path)
{
        return *path && !strchr(path, '/') && strcmp(path, "..") != 0;
}

/* Kernels before 5.6 lack openat2, and some sandboxes answer EPERM to what they do not know. */
static bool is_unsupported(int err)
{
        return err == ENOSYS || err == EPERM;
}

/* One component at a time, none of which may be a link or "..". */
static int open_by_steps(int dir, const char *path, int flags, mode_t mode)
{
        char name[NAME_MAX + 1];
        int at = dir;
        int fd;

        if (*path == '/')
                return -EXDEV;
        for (;;) {
                const char *slash = strchrnul(path, '/');
                size_t n = (size_t)(slash - path);
                if (n > NAME_MAX)
                        fd = -ENAMETOOLONG;
                else if (n == 2 && memcmp(path, "..", 2) == 0)
                        fd = -EXDEV;
                else {
                        memcpy(name, n ? path : ".", n ? n : 1);
                        name[n ? n : 1] = '\0';
                        fd = openat(at, name,
                            *slash ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
                                   : flags | O_NOFOLLOW | O_CLOEXEC,
                            *slash ? 0 : mode);
                        if (fd < 0)
                                fd = -errno;
                }
                if (at != dir)
                        close(at);
                if (fd < 0 || !*slash)
                        return fd;
                at = fd;
                path = slash + 1;
        }
}

static int open_beneath(int dir, const char *path, int flags, mode_t mode)
{
        struct open_how how = {
            .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
            .mode = flags & (O_CREAT | __O_TMPFILE) ? mode & 07777 : 0,
            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
        };

        if (!*path)
                return -ENOENT;
        for (int i = 0; i < RESOLVE_TRIES; i++) {
                long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
                if (fd >= 0)
                        return (int)fd;
                if (errno != EAGAIN)
                        break;
        }
        if (!is_unsupported(errno))
                return -errno;
        return open_by_steps(dir, path, flags, mode);
}

/*
 * Where a call without an openat2 of its own works: the directory that holds the last component,
 * and that component. `parent->fd` is `dir` itself for a plain name.
 */
struct parent {
        int fd;
        int owned; /* -1, or what to close */
        const char *name;
};

static int parent_open(int dir, const char *path, struct parent *out)
{
        const char *slash = strrchr(path, '/');
        char head[PATH_MAX];

        if (!slash) {
                if (!is_one_name(path))
                        return *path ? -EXDEV : -ENOENT;
                *out = (struct parent){dir, -1, path};
                return 0;
        }
        size_t n = (size_t)(slash - path);
        if (n == 0)
                return -EXDEV;
        if (n >= sizeof(head))
                return -ENAMETOOLONG;
        if (!is_one_name(slash + 1))
                return slash[1] ? -EXDEV : -EINVAL;
        memcpy(head, path, n);
        head[n] = '\0';
        int fd = open_beneath(dir, head, O_PATH | O_DIRECTORY, 0);
        if (fd < 0)
                return fd;
        *out = (struct parent){fd, fd, slash + 1};
        return 0;
}

/* Turns a system call's result into ours; to be called before anything else touches errno. */
static int parent_close(struct parent *p, int rc)
{
        int err = rc < 0 ? errno : 0;

        if (p->owned >= 0)
                close(p->owned);
        return rc < 0 ? -err : rc;
}

/* The name of a new directory lasts only once the directory that holds it is synced. */
static int sync_parent(char *path)
{
        char *slash = strrchr(path, '/');
        const char *parent = !slash ? "." : slash == path ? "/" : path;

        if (slash && slash != path)
                *slash = '\0';
        int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
        if (fd >= 0)
                close(fd);
        if (slash)
                *slash = '/';
        return rc;
}

static int make_path(const char *path)
{
        char *copy = strdup(path);
        int rc = 0;

        if (!copy)
                return -ENOMEM;
        for (char *s = copy + 1; *copy && rc == 0; s++) {
                if (*s != '/' && *s != '\0')
                        continue;
                char was = *s;
                *s = '\0';
                if (s[-1] != '/') {
                        if (mkdir(copy, 0700) == 0)
                                rc = sync_parent(copy);
                        else if (errno != EEXIST)
                                rc = -errno;
                }
                *s = was;
                if (!was)
                        break;
        }
        free(copy);
        return rc;
}

static int real_open_root(const struct fs *self, const char *path, bool create)
{
        (void)self;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
                return fd;
        if (errno != ENOENT || !create)
                return -errno;
        int rc = make_path(path);
        if (rc < 0)
                return rc;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* O_NONBLOCK changes nothing for files and folders, and keeps a FIFO in their place from blocking
 * the caller. */
static int real_open(const struct fs *self, int dir, const char *path, int flags, mode_t mode)
{
        (void)self;
        return open_beneath(dir, path, flags | O_NONBLOCK, mode);
}

/* Linux has closed the descriptor even when it says EINTR. */
static int real_close(const struct fs *self, int fd)
{
        (void)self;
        return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static ssize_t real_pread(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        (void)self;
        ssize_t got = pread(fd, p, n, at);
        return got < 0 ? -errno : got;
}

static ssize_t real_pwrite(const struct fs *self, int fd, const void *p, size_t n, off_t at)
{
        (void)self;
        ssize_t put = pwrite(fd, p, n, at);
        return put < 0 ? -errno : put;
}

static ssize_t real_write(const struct fs *self, int fd, const void *p, size_t n)
{
        (void)self;
        ssize_t put = write(fd, p, n);
        return put < 0 ? -errno : put;
}

static int real_fdatasync(const struct fs *self, int fd)
{
        (void)self;
        return fdatasync(fd) < 0 ? -errno : 0;
}

static int real_fsync(const struct fs *self, int fd)
{
        (void)self;
        return fsync(fd) < 0 ? -errno : 0;
}

static int real_ftruncate(const struct fs *self, int fd, off_t n)
{
        (void)self;
        return ftruncate(fd, n) < 0 ? -errno : 0;
}

static int real_reserve(const struct fs *self, int fd, off_t n)
{
        (void)self;
        struct statvfs v;
        if (fstatvfs(fd, &v) < 0)
                return -errno;
        if ((uint64_t)v.f_bavail * v.f_frsize < RESERVE_WHILE_FREE)
                return -ENOSPC;
        return fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, n) < 0 ? -errno : 0;
}

static int real_fstat(const struct fs *self, int fd, struct stat *st)
{
        (void)self;
        return fstat(fd, st) < 0 ? -errno : 0;
}

static int real_stat(const struct fs *self, int dir, const char *path, struct stat *st)
{
        struct parent p;

        (void)self;
        int rc = parent_open(dir, path, &p);
        if (rc < 0)
                return rc;
        return parent_close(&p, fstatat(p.fd, p.name, st, AT_SYMLINK_NOFOLLOW));
}

static int real_mkdir(const struct fs *self, int dir, const char *path, mode_t mode)
{
        struct parent p;

        (void)self;
        int rc = parent_open(dir, path, &p);
        if (rc < 0)
                return rc;
        return parent_close(&p, mkdirat(p.fd, p.name, mode));
}

/*
 * For file systems without RENAME_NOREPLACE. A file is claimed by its link; a directory by an
 * empty one of the new name, which rename may replace, and only while it is empty.
 */
static int rename_new_by_steps(const struct parent *from, const struct parent *to)
{
        struct stat st;

        if (fstatat(from->fd, from->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -1;
        if (S_ISDIR(st.st_mode)) {
                if (mkdirat(to->fd, to->name, 0700) < 0)
                        return -1;
                return renameat(from->fd, from->name, to->fd, to->name);
        }
        if (linkat(from->fd, from->name, to->fd, to->name, 0) < 0)
                return -1;
        return unlinkat(from->fd, from->name, 0);
}

static int rename_any(int olddir, const char *oldpath, int newdir, const char *newpath, bool fresh)
{
        struct parent from;
        struct parent to;
        int done;

        int rc = parent_open(olddir, oldpath, &from);
        if (rc < 0)
                return rc;
        rc = parent_open(newdir, newpath, &to);
        if (rc < 0) {
                parent_close(&from, 0);
                return rc;
        }
        if (!fresh) {
                done = renameat(from.fd, from.name, to.fd, to.name);
        } else {
                done = renameat2(from.fd, from.name, to.fd, to.name, RENAME_NOREPLACE);
                if (done < 0 && (errno == ENOSYS || errno == EINVAL))
                        done = rename_new_by_steps(&from, &to);
        }
        rc = parent_close(&to, done);
        parent_close(&from, 0);
        return rc;
}

static int real_rename(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        (void)self;
        return rename_any(olddir, oldpath, newdir, newpath, false);
}

static int real_rename_new(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        (void)self;
        return rename_any(olddir, oldpath, newdir, newpath, true);
}

static int real_link(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        struct parent from;
        struct parent to;

        (void)self;
        int rc = parent_open(olddir, oldpath, &from);
        if (rc < 0)
                return rc;
        rc = parent_open(newdir, newpath, &to);
        if (rc == 0)
                rc = parent_close(&to, linkat(from.fd, from.name, to.fd, to.name, 0));
        parent_close(&from, 0);
        return rc;
}

static int real_clone(const struct fs *self, int from, int to)
{
        (void)self;
        return ioctl(to, FICLONE, from) < 0 ? -errno : 0;
}

static int real_unlink(const struct fs *self, int dir, const char *path, int flags)
{
        struct parent p;

        (void)self;
        int rc = parent_open(dir, path, &p);
        if (rc < 0)
                return rc;
        return parent_close(&p, unlinkat(p.fd, p.name, flags));
}

static bool (*end_waits)(void);

void fs_end_waits(bool (*when)(void))
{
        end_waits = when;
}

bool fs_waits_end(void)
{
        return end_waits && end_waits();
}

static int real_flock(const struct fs *self, int fd, int operation)
{
        (void)self;
        while (flock(fd, operation) < 0) {
                if (errno != EINTR || (operation & LOCK_NB))
                        return -errno;
                if (operation == LOCK_EX && fs_waits_end())
                        return -EINTR;
        }
        return 0;
}

/* Some file systems do not keep what a name is in their folders. */
static unsigned char type_of(int dir, const struct dirent *e)
{
        struct stat st;
        if (e->d_type != DT_UNKNOWN || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return e->d_type;
        return IFTODT(st.st_mode);
}

/* A descriptor of its own, so that the caller's position does not matter. */
static int real_list(const struct fs *self, int dir,
    int (*each)(void *ctx, const char *name, unsigned char d_type), void *ctx)
{
        (void)self;
        int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        DIR *d = fdopendir(fd);
        if (!d) {
                int err = errno;
                close(fd);
                return -err;
        }
        int rc = 0;
        while (rc == 0) {
                errno = 0;
                const struct dirent *e = readdir(d);
                if (!e) {
                        rc = -errno;
                        break;
                }
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                rc = each(ctx, e->d_name, type_of(fd, e));
        }
        closedir(d);
        return rc;
}

static long real_magic(const struct fs *self, int fd)
{
        struct statfs st;

        (void)self;
        return fstatfs(fd, &st) < 0 ? -(long)errno : (long)st.f_type;
}

const struct fs fs_real_table = {
    .open_root = real_open_root,
    .open = real_open,
    .close = real_close,
    .pread = real_pread,
    .pwrite = real_pwrite,
    .write = real_write,
    .fdatasync = real_fdatasync,
    .fsync = real_fsync,
    .ftruncate = real_ftruncate,
    .reserve = real_reserve,
    .fstat = real_fstat,
    .stat = real_stat,
    .mkdir = real_mkdir,
    .rename = real_rename,
    .rename_new = real_rename_new,
    .link = real_link,
    .clone = real_clone,
    .unlink = real_unlink,
    .flock = real_flock,
    .list = real_list,
    .magic = real_magic,
};

const struct fs *fs_real(void)
{
        return &fs_real_table;
}
