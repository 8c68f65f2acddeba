/* crashfs.c - passes calls on and records those that change something; see crashfs.h. */
#include "crashfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash_log.h"

/* A test that runs out of memory proves nothing. */
static void *must(void *p)
{
        if (!p)
                abort();
        return p;
}

static struct crashfs *of(const struct fs *self)
{
        return (struct crashfs *)(uintptr_t)self;
}

/* ---- the log ---- */

static struct crash_op *log_add(
    struct crashfs *c, enum crash_op_kind kind, const char *call, size_t object)
{
        if ((c->count & (c->count - 1)) == 0)
                c->ops = must(realloc(c->ops, (c->count ? c->count * 2 : 1) * sizeof(*c->ops)));
        struct crash_op *op = &c->ops[c->count++];
        *op = (struct crash_op){.kind = kind, .call = call, .object = object};
        return op;
}

static size_t object_add(struct crashfs *c, const struct stat *st, const char *name)
{
        size_t n = c->object_count;

        if ((n & (n - 1)) == 0)
                c->objects = must(realloc(c->objects, (n ? n * 2 : 1) * sizeof(*c->objects)));
        c->objects[c->object_count++] = (struct crash_object){
            .is_dir = S_ISDIR(st->st_mode),
            .dev = st->st_dev,
            .ino = st->st_ino,
            .name = must(strdup(name)),
        };
        return n;
}

/* The newest first: the number of an inode is used again once its file is gone. */
static size_t object_of(const struct crashfs *c, const struct stat *st)
{
        for (size_t i = c->object_count; i-- > 0;) {
                if (c->objects[i].ino == st->st_ino && c->objects[i].dev == st->st_dev)
                        return i;
        }
        return NO_OBJECT;
}

static size_t object_of_fd(const struct crashfs *c, int fd)
{
        struct stat st;

        return c->under->fstat(c->under, fd, &st) < 0 ? NO_OBJECT : object_of(c, &st);
}

static size_t object_at(const struct crashfs *c, int dir, const char *path)
{
        struct stat st;

        return c->under->stat(c->under, dir, path, &st) < 0 ? NO_OBJECT : object_of(c, &st);
}

/* The directory that holds a path's last component, which is put in *name. */
static size_t parent_of(const struct crashfs *c, int dir, const char *path, const char **name)
{
        const char *slash = strrchr(path, '/');

        *name = slash ? slash + 1 : path;
        if (!slash)
                return object_of_fd(c, dir);
        char *head = must(strndup(path, (size_t)(slash - path)));
        size_t object = object_at(c, dir, head);
        free(head);
        return object;
}

static void log_link(
    struct crashfs *c, const char *call, size_t object, size_t dir, const char *name)
{
        struct crash_op *op = log_add(c, OP_LINK, call, object);

        op->dir = dir;
        op->name = must(strdup(name));
}

static void log_write(
    struct crashfs *c, const char *call, int fd, const void *p, size_t n, off_t at)
{
        size_t object = object_of_fd(c, fd);

        if (object == NO_OBJECT || n == 0)
                return;
        struct crash_op *op = log_add(c, OP_WRITE, call, object);
        op->data = must(malloc(n));
        memcpy(op->data, p, n);
        op->n = n;
        op->at = at;
}

/* ---- slots that change something ---- */

static int crash_mkdir(const struct fs *self, int dir, const char *path, mode_t mode)
{
        struct crashfs *c = of(self);
        const char *name;
        struct stat st;

        pthread_mutex_lock(&c->lock);
        int rc = c->under->mkdir(c->under, dir, path, mode);
        size_t parent = parent_of(c, dir, path, &name);
        if (rc == 0 && parent != NO_OBJECT && c->under->stat(c->under, dir, path, &st) == 0)
                log_link(c, "mkdir", object_add(c, &st, name), parent, name);
        pthread_mutex_unlock(&c->lock);
        return rc;
}

static int crash_open(const struct fs *self, int dir, const char *path, int flags, mode_t mode)
{
        struct crashfs *c = of(self);
        const struct fs *under = c->under;
        const char *name;
        struct stat st;

        if ((flags & O_TMPFILE) == O_TMPFILE)
                return -EOPNOTSUPP;
        if (!(flags & (O_CREAT | O_TRUNC)))
                return under->open(under, dir, path, flags, mode);
        pthread_mutex_lock(&c->lock);
        bool fresh = under->stat(under, dir, path, &st) == -ENOENT;
        int fd = under->open(under, dir, path, flags, mode);
        if (fd >= 0 && fresh) {
                size_t parent = parent_of(c, dir, path, &name);
                if (parent != NO_OBJECT && under->fstat(under, fd, &st) == 0)
                        log_link(c, "create", object_add(c, &st, name), parent, name);
        } else if (fd >= 0 && (flags & O_TRUNC) && st.st_size > 0) {
                size_t object = object_of_fd(c, fd);
                if (object != NO_OBJECT)
                        log_add(c, OP_TRUNCATE, "open with O_TRUNC", object);
        }
        pthread_mutex_unlock(&c->lock);
        return fd;
}

static ssize_t crash_pwrite(const struct fs *self, int fd, const void *p, size_t n, off_t at)
{
        struct crashfs *c = of(self);

        pthread_mutex_lock(&c->lock);
        ssize_t put = c->under->pwrite(c->under, fd, p, n, at);
        if (put > 0)
                log_write(c, "pwrite", fd, p, (size_t)put, at);
        pthread_mutex_unlock(&c->lock);
        return put;
}

static ssize_t crash_write(const struct fs *self, int fd, const void *p, size_t n)
{
        struct crashfs *c = of(self);

        pthread_mutex_lock(&c->lock);
        ssize_t put = c->under->write(c->under, fd, p, n);
        /* The position is after what was written, also with O_APPEND. */
        if (put > 0)
                log_write(c, "write", fd, p, (size_t)put, lseek(fd, 0, SEEK_CUR) - put);
        pthread_mutex_unlock(&c->lock);
        return put;
}

/* The lock is held, so that no write of another thread comes between the sync and its place in
 * the log. */
static int sync_logged(
    struct crashfs *c, int fd, const char *call, int (*sync)(const struct fs *self, int fd))
{
        pthread_mutex_lock(&c->lock);
        size_t object = object_of_fd(c, fd);
        int rc = sync(c->under, fd);
        if (rc == 0 && object != NO_OBJECT)
                log_add(c, OP_SYNC, call, object);
        pthread_mutex_unlock(&c->lock);
        return rc;
}

static int crash_fdatasync(const struct fs *self, int fd)
{
        return sync_logged(of(self), fd, "fdatasync", of(self)->under->fdatasync);
}

static int crash_fsync(const struct fs *self, int fd)
{
        return sync_logged(of(self), fd, "fsync", of(self)->under->fsync);
}

/* Changes nothing that a crash could lose. */
static int crash_reserve(const struct fs *self, int fd, off_t n)
{
        struct crashfs *c = of(self);
        return c->under->reserve(c->under, fd, n);
}

static int crash_ftruncate(const struct fs *self, int fd, off_t n)
{
        struct crashfs *c = of(self);
        struct stat st = {0};

        pthread_mutex_lock(&c->lock);
        c->under->fstat(c->under, fd, &st);
        int rc = c->under->ftruncate(c->under, fd, n);
        size_t object = object_of_fd(c, fd);
        if (rc == 0 && object != NO_OBJECT && st.st_size != n)
                log_add(c, OP_TRUNCATE, "ftruncate", object)->at = n;
        pthread_mutex_unlock(&c->lock);
        return rc;
}

static int rename_logged(
    struct crashfs *c, int olddir, const char *oldpath, int newdir, const char *newpath, bool fresh)
{
        const struct fs *under = c->under;
        const char *name;
        const char *to_name;

        pthread_mutex_lock(&c->lock);
        size_t object = object_at(c, olddir, oldpath);
        size_t dir = parent_of(c, olddir, oldpath, &name);
        size_t to_dir = parent_of(c, newdir, newpath, &to_name);
        int rc = fresh ? under->rename_new(under, olddir, oldpath, newdir, newpath)
                       : under->rename(under, olddir, oldpath, newdir, newpath);
        if (rc == 0 && object != NO_OBJECT && dir != NO_OBJECT && to_dir != NO_OBJECT) {
                struct crash_op *op = log_add(c, OP_RENAME, "rename", object);
                op->dir = dir;
                op->to_dir = to_dir;
                op->name = must(strdup(name));
                op->to_name = must(strdup(to_name));
                free(c->objects[object].name);
                c->objects[object].name = must(strdup(to_name));
        }
        pthread_mutex_unlock(&c->lock);
        return rc;
}

static int crash_rename(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        return rename_logged(of(self), olddir, oldpath, newdir, newpath, false);
}

static int crash_rename_new(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        return rename_logged(of(self), olddir, oldpath, newdir, newpath, true);
}

/* As on a file system that cannot share: what a crash leaves of a second name is not modelled. */
static int crash_link(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        (void)self, (void)olddir, (void)oldpath, (void)newdir, (void)newpath;
        return -EOPNOTSUPP;
}

static int crash_clone(const struct fs *self, int from, int to)
{
        (void)self, (void)from, (void)to;
        return -EOPNOTSUPP;
}

static int crash_unlink(const struct fs *self, int dir, const char *path, int flags)
{
        struct crashfs *c = of(self);
        const char *name;

        pthread_mutex_lock(&c->lock);
        size_t object = object_at(c, dir, path);
        size_t parent = parent_of(c, dir, path, &name);
        int rc = c->under->unlink(c->under, dir, path, flags);
        if (rc == 0 && object != NO_OBJECT && parent != NO_OBJECT) {
                struct crash_op *op = log_add(c, OP_UNLINK, "unlink", object);
                op->dir = parent;
                op->name = must(strdup(name));
        }
        pthread_mutex_unlock(&c->lock);
        return rc;
}

/* Each new directory above and at the root of a store counts as synced with its making, as
 * struct fs's own open_root promises. */
static int crash_open_root(const struct fs *self, const char *path, bool create)
{
        struct crashfs *c = of(self);
        size_t n = strlen(c->root);

        if (strncmp(path, c->root, n) != 0 || (path[n] && path[n] != '/'))
                return -EXDEV;
        const char *rest = path + n;
        int fd = self->open(self, c->root_fd, ".", O_RDONLY | O_DIRECTORY, 0);
        while (fd >= 0 && *(rest += strspn(rest, "/"))) {
                size_t len = strcspn(rest, "/");
                char *name = must(strndup(rest, len));
                int rc = create ? self->mkdir(self, fd, name, 0700) : -EEXIST;
                if (rc == 0)
                        rc = self->fsync(self, fd);
                int next = rc == 0 || rc == -EEXIST
                               ? self->open(self, fd, name, O_RDONLY | O_DIRECTORY, 0)
                               : rc;
                self->close(self, fd);
                free(name);
                fd = next;
                rest += len;
        }
        return fd;
}

/* ---- slots that only look ---- */

static int crash_close(const struct fs *self, int fd)
{
        return of(self)->under->close(of(self)->under, fd);
}

static ssize_t crash_pread(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        return of(self)->under->pread(of(self)->under, fd, p, n, at);
}

static int crash_fstat(const struct fs *self, int fd, struct stat *st)
{
        return of(self)->under->fstat(of(self)->under, fd, st);
}

static int crash_stat(const struct fs *self, int dir, const char *path, struct stat *st)
{
        return of(self)->under->stat(of(self)->under, dir, path, st);
}

static int crash_flock(const struct fs *self, int fd, int operation)
{
        return of(self)->under->flock(of(self)->under, fd, operation);
}

static int crash_list(const struct fs *self, int dir,
    int (*each)(void *ctx, const char *name, unsigned char d_type), void *ctx)
{
        return of(self)->under->list(of(self)->under, dir, each, ctx);
}

static long crash_magic(const struct fs *self, int fd)
{
        return of(self)->under->magic(of(self)->under, fd);
}

/* ---- what was there at the start ---- */

struct scan {
        struct crashfs *c;
        int dir;
        size_t object;
};

static int scan_dir(struct crashfs *c, int dir, size_t object);

static int scan_entry(void *ctx, const char *name, unsigned char d_type)
{
        const struct scan *s = ctx;
        struct crashfs *c = s->c;
        const struct fs *under = c->under;
        struct stat st;

        (void)d_type;
        int rc = under->stat(under, s->dir, name, &st);
        if (rc < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
                return rc;
        size_t object = object_add(c, &st, name);
        log_link(c, "", object, s->object, name);
        int fd = under->open(under, s->dir, name, O_RDONLY, 0);
        if (fd < 0)
                return fd;
        if (S_ISDIR(st.st_mode)) {
                rc = scan_dir(c, fd, object);
        } else if (st.st_size > 0) {
                struct crash_op *op = log_add(c, OP_WRITE, "", object);
                op->data = must(malloc((size_t)st.st_size));
                ssize_t got = fs_pread_all(under, fd, op->data, (size_t)st.st_size, 0);
                op->n = got > 0 ? (size_t)got : 0;
                rc = got < 0 ? (int)got : 0;
        }
        under->close(under, fd);
        return rc;
}

static int scan_dir(struct crashfs *c, int dir, size_t object)
{
        struct scan s = {c, dir, object};

        return c->under->list(c->under, dir, scan_entry, &s);
}

struct crashfs *crashfs_new(const struct fs *under, const char *root)
{
        struct stat st;
        struct crashfs *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->fs = (struct fs){
            .open_root = crash_open_root,
            .open = crash_open,
            .close = crash_close,
            .pread = crash_pread,
            .pwrite = crash_pwrite,
            .write = crash_write,
            .fdatasync = crash_fdatasync,
            .fsync = crash_fsync,
            .ftruncate = crash_ftruncate,
            .reserve = crash_reserve,
            .fstat = crash_fstat,
            .stat = crash_stat,
            .mkdir = crash_mkdir,
            .rename = crash_rename,
            .rename_new = crash_rename_new,
            .link = crash_link,
            .clone = crash_clone,
            .unlink = crash_unlink,
            .flock = crash_flock,
            .list = crash_list,
            .magic = crash_magic,
        };
        c->under = under;
        c->root = must(strdup(root));
        for (size_t n = strlen(root); n > 1 && c->root[n - 1] == '/'; n--)
                c->root[n - 1] = '\0';
        pthread_mutex_init(&c->lock, NULL);
        c->root_fd = under->open_root(under, root, false);
        if (c->root_fd < 0 || under->fstat(under, c->root_fd, &st) < 0) {
                crashfs_free(c);
                return NULL;
        }
        object_add(c, &st, ".");
        if (scan_dir(c, c->root_fd, 0) < 0) {
                crashfs_free(c);
                return NULL;
        }
        c->base = c->count;
        return c;
}

void crashfs_free(struct crashfs *c)
{
        if (!c)
                return;
        for (size_t i = 0; i < c->count; i++) {
                free(c->ops[i].name);
                free(c->ops[i].to_name);
                free(c->ops[i].data);
        }
        for (size_t i = 0; i < c->object_count; i++)
                free(c->objects[i].name);
        free(c->ops);
        free(c->objects);
        free(c->root);
        if (c->root_fd >= 0)
                c->under->close(c->under, c->root_fd);
        pthread_mutex_destroy(&c->lock);
        free(c);
}

const struct fs *crashfs_fs(struct crashfs *c)
{
        return &c->fs;
}

size_t crashfs_calls(const struct crashfs *c)
{
        struct crashfs *mine = (struct crashfs *)(uintptr_t)c;

        pthread_mutex_lock(&mine->lock);
        size_t n = c->count - c->base;
        pthread_mutex_unlock(&mine->lock);
        return n;
}
