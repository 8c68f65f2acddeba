/* faultfs.c - counts calls and makes the n-th one go wrong; see faultfs.h. */
#include "faultfs.h"

#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A calling place is known by its return address and the slot. */
struct site {
        unsigned call;
        const void *from;
};

struct faultfs {
        struct fs fs; /* first: a slot's `self` is the faultfs */
        const struct fs *under;
        pthread_mutex_t lock;
        struct faultfs_plan plan;
        bool armed;
        long matched;
        long fired;
        struct site *sites;
        int site_count;
        char **names; /* by descriptor: the last component it was opened with */
        int name_count;
};

enum verdict { PASS, FAIL, HALF, FORGET };

static struct faultfs *of(const struct fs *self)
{
        return (struct faultfs *)(uintptr_t)self;
}

static const char *last_part(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash && slash[1] ? slash + 1 : path;
}

static void remember_name(struct faultfs *f, int fd, const char *path)
{
        pthread_mutex_lock(&f->lock);
        if (fd >= f->name_count) {
                int n = fd + 64;
                char **grown = realloc(f->names, (size_t)n * sizeof(*grown));
                if (!grown)
                        abort();
                memset(grown + f->name_count, 0, (size_t)(n - f->name_count) * sizeof(*grown));
                f->names = grown;
                f->name_count = n;
        }
        free(f->names[fd]);
        f->names[fd] = strdup(last_part(path));
        pthread_mutex_unlock(&f->lock);
}

static int site_of(struct faultfs *f, unsigned call, const void *from)
{
        int nth = 0;

        for (int i = 0; i < f->site_count; i++) {
                nth += (f->sites[i].call & f->plan.calls) != 0;
                if (f->sites[i].call == call && f->sites[i].from == from)
                        return nth;
        }
        struct site *grown = realloc(f->sites, (size_t)(f->site_count + 1) * sizeof(*grown));
        if (!grown)
                abort();
        f->sites = grown;
        f->sites[f->site_count++] = (struct site){call, from};
        return nth + ((call & f->plan.calls) != 0);
}

/* `path` is NULL for a call on a descriptor. */
static enum verdict judge(
    struct faultfs *f, unsigned call, int fd, const char *path, const void *from)
{
        enum verdict v = PASS;

        pthread_mutex_lock(&f->lock);
        const struct faultfs_plan *plan = &f->plan;
        int site = site_of(f, call, from);
        const char *name = path ? last_part(path) : "";
        if (!path && fd >= 0 && fd < f->name_count && f->names[fd])
                name = f->names[fd];
        if (!f->armed || !(plan->calls & call) || (plan->site && plan->site != site) ||
            (plan->name && fnmatch(plan->name, name, 0) != 0))
                goto out;
        f->matched++;
        if (plan->nth == 0 || f->matched < plan->nth || (f->matched > plan->nth && !plan->for_good))
                goto out;
        f->fired++;
        v = plan->kind == FAULT_FORGET                             ? FORGET
            : plan->kind == FAULT_SHORT && f->matched == plan->nth ? HALF
                                                                   : FAIL;
out:
        pthread_mutex_unlock(&f->lock);
        return v;
}

#define JUDGE(call, fd, path) judge(of(self), (call), (fd), (path), __builtin_return_address(0))

static int error_of(const struct fs *self)
{
        return -of(self)->plan.err;
}

/* What a call that moves no bytes answers instead. */
static int answer(const struct fs *self, enum verdict v)
{
        return v == FORGET ? 0 : error_of(self);
}

static int fault_open_root(const struct fs *self, const char *path, bool create)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_OPEN_ROOT, -1, path) != PASS)
                return error_of(self);
        int fd = under->open_root(under, path, create);
        if (fd >= 0)
                remember_name(of(self), fd, path);
        return fd;
}

static int fault_open(const struct fs *self, int dir, const char *path, int flags, mode_t mode)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_OPEN, -1, path) != PASS)
                return error_of(self);
        int fd = under->open(under, dir, path, flags, mode);
        if (fd >= 0)
                remember_name(of(self), fd, path);
        return fd;
}

static int fault_close(const struct fs *self, int fd)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_CLOSE, fd, NULL);
        int rc = under->close(under, fd);

        return v == PASS ? rc : answer(self, v);
}

static ssize_t fault_pread(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_PREAD, fd, NULL);

        if (v == PASS || (v == HALF && n > 1))
                return under->pread(under, fd, p, v == HALF ? n / 2 : n, at);
        return error_of(self);
}

static ssize_t fault_pwrite(const struct fs *self, int fd, const void *p, size_t n, off_t at)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_PWRITE, fd, NULL);

        if (v == PASS || (v == HALF && n > 1))
                return under->pwrite(under, fd, p, v == HALF ? n / 2 : n, at);
        return error_of(self);
}

static ssize_t fault_write(const struct fs *self, int fd, const void *p, size_t n)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_WRITE, fd, NULL);

        if (v == PASS || (v == HALF && n > 1))
                return under->write(under, fd, p, v == HALF ? n / 2 : n);
        return error_of(self);
}

static int fault_fdatasync(const struct fs *self, int fd)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_FDATASYNC, fd, NULL);

        return v == PASS ? under->fdatasync(under, fd) : answer(self, v);
}

static int fault_fsync(const struct fs *self, int fd)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_FSYNC, fd, NULL);

        return v == PASS ? under->fsync(under, fd) : answer(self, v);
}

static int fault_ftruncate(const struct fs *self, int fd, off_t n)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_FTRUNCATE, fd, NULL);

        return v == PASS ? under->ftruncate(under, fd, n) : answer(self, v);
}

static int fault_reserve(const struct fs *self, int fd, off_t n)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_RESERVE, fd, NULL);

        return v == PASS ? under->reserve(under, fd, n) : answer(self, v);
}

static int fault_fstat(const struct fs *self, int fd, struct stat *st)
{
        const struct fs *under = of(self)->under;

        return JUDGE(FAULT_FSTAT, fd, NULL) == PASS ? under->fstat(under, fd, st) : error_of(self);
}

static int fault_stat(const struct fs *self, int dir, const char *path, struct stat *st)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_STAT, -1, path) != PASS)
                return error_of(self);
        return under->stat(under, dir, path, st);
}

static int fault_mkdir(const struct fs *self, int dir, const char *path, mode_t mode)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_MKDIR, -1, path) != PASS)
                return error_of(self);
        return under->mkdir(under, dir, path, mode);
}

static int fault_rename(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_RENAME, -1, newpath) != PASS)
                return error_of(self);
        return under->rename(under, olddir, oldpath, newdir, newpath);
}

static int fault_rename_new(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_RENAME, -1, newpath) != PASS)
                return error_of(self);
        return under->rename_new(under, olddir, oldpath, newdir, newpath);
}

static int fault_link(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_RENAME, -1, newpath) != PASS)
                return error_of(self);
        return under->link(under, olddir, oldpath, newdir, newpath);
}

static int fault_clone(const struct fs *self, int from, int to)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_WRITE, to, NULL) != PASS)
                return error_of(self);
        return under->clone(under, from, to);
}

static int fault_unlink(const struct fs *self, int dir, const char *path, int flags)
{
        const struct fs *under = of(self)->under;
        enum verdict v = JUDGE(FAULT_UNLINK, -1, path);

        return v == PASS ? under->unlink(under, dir, path, flags) : answer(self, v);
}

static int fault_flock(const struct fs *self, int fd, int operation)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_FLOCK, fd, NULL) != PASS)
                return error_of(self);
        return under->flock(under, fd, operation);
}

static int fault_list(const struct fs *self, int dir,
    int (*each)(void *ctx, const char *name, unsigned char d_type), void *ctx)
{
        const struct fs *under = of(self)->under;

        if (JUDGE(FAULT_LIST, dir, NULL) != PASS)
                return error_of(self);
        return under->list(under, dir, each, ctx);
}

static long fault_magic(const struct fs *self, int fd)
{
        const struct fs *under = of(self)->under;

        return JUDGE(FAULT_MAGIC, fd, NULL) == PASS ? under->magic(under, fd) : error_of(self);
}

struct faultfs *faultfs_new(const struct fs *under)
{
        struct faultfs *f = calloc(1, sizeof(*f));

        if (!f)
                return NULL;
        f->fs = (struct fs){
            .open_root = fault_open_root,
            .open = fault_open,
            .close = fault_close,
            .pread = fault_pread,
            .pwrite = fault_pwrite,
            .write = fault_write,
            .fdatasync = fault_fdatasync,
            .fsync = fault_fsync,
            .ftruncate = fault_ftruncate,
            .reserve = fault_reserve,
            .fstat = fault_fstat,
            .stat = fault_stat,
            .mkdir = fault_mkdir,
            .rename = fault_rename,
            .rename_new = fault_rename_new,
            .link = fault_link,
            .clone = fault_clone,
            .unlink = fault_unlink,
            .flock = fault_flock,
            .list = fault_list,
            .magic = fault_magic,
        };
        f->under = under;
        pthread_mutex_init(&f->lock, NULL);
        faultfs_arm(f, NULL);
        return f;
}

void faultfs_free(struct faultfs *f)
{
        if (!f)
                return;
        for (int i = 0; i < f->name_count; i++)
                free(f->names[i]);
        free(f->names);
        free(f->sites);
        pthread_mutex_destroy(&f->lock);
        free(f);
}

const struct fs *faultfs_fs(struct faultfs *f)
{
        return &f->fs;
}

void faultfs_arm(struct faultfs *f, const struct faultfs_plan *plan)
{
        f->plan = plan ? *plan : (struct faultfs_plan){0};
        f->armed = plan != NULL;
        if (f->plan.calls == 0)
                f->plan.calls = FAULT_ANY;
        if (f->plan.err == 0)
                f->plan.err = EIO;
        f->matched = 0;
        f->fired = 0;
}

long faultfs_matched(const struct faultfs *f)
{
        return f->matched;
}

long faultfs_fired(const struct faultfs *f)
{
        return f->fired;
}

void faultfs_over(struct faultfs *f, const struct fs *under)
{
        f->under = under;
}

const void *faultfs_site(const struct faultfs *f, unsigned calls, int n)
{
        for (int i = 0; i < f->site_count; i++)
                if (f->sites[i].call & calls && --n == 0)
                        return f->sites[i].from;
        return NULL;
}

int faultfs_sites(const struct faultfs *f, unsigned calls)
{
        int n = 0;

        for (int i = 0; i < f->site_count; i++)
                n += (f->sites[i].call & calls) != 0;
        return n;
}
