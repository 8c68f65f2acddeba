/*
 * fs_aside.c - see fs_aside.h
 *
 * What was changed is a node: a name in a folder, which is known by device and inode, or by the
 * node of a folder that exists only here. A descriptor of a node is one of its memory file; the
 * list of handles says which node it is of. All other descriptors are those of the table below.
 */
#include "base/fs_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COPY_PIECE 65536

enum kind { GONE, PLAIN, FOLDER }; /* GONE: the file below with that name is hidden */

struct node {
        struct node *next;
        dev_t dev; /* the folder it is in */
        ino_t ino;
        char *name;
        enum kind kind;
        int memory; /* its bytes from `base` on, at their own offsets */
        int under;  /* the file below, or -1 */
        off_t base; /* so much of that counts */
        off_t size;
        struct stat st; /* inode, mode and times that it shows */
        unsigned refs;  /* the tree's and those of handles */
};

struct handle {
        struct handle *next;
        int fd;
        struct node *node;
        bool append;
        off_t at;
};

struct fs_aside {
        struct fs table;
        const struct fs *under;
        pthread_mutex_t mutex;
        struct node *nodes;
        struct handle *handles;
        ino_t made; /* inodes that were given out */
};

static struct fs_aside *self_of(const struct fs *fs)
{
        return (struct fs_aside *)fs;
}

/* ---- nodes and handles; all under the mutex ---- */

static void node_unref(struct fs_aside *a, struct node *n)
{
        if (--n->refs)
                return;
        if (n->memory >= 0)
                close(n->memory);
        if (n->under >= 0)
                a->under->close(a->under, n->under);
        free(n->name);
        free(n);
}

static struct handle *handle_of(struct fs_aside *a, int fd)
{
        struct handle *h = a->handles;
        while (h && h->fd != fd)
                h = h->next;
        return h;
}

/* A name in a folder. */
struct place {
        dev_t dev;
        ino_t ino;
        char *name;
        int dir;    /* a descriptor of the folder below; -1: it is only here */
        bool close; /* that descriptor */
};

static struct node *node_at(struct fs_aside *a, const struct place *p)
{
        for (struct node *n = a->nodes; n; n = n->next)
                if (n->ino == p->ino && n->dev == p->dev && strcmp(n->name, p->name) == 0)
                        return n;
        return NULL;
}

static void place_release(struct fs_aside *a, struct place *p)
{
        if (p->close)
                a->under->close(a->under, p->dir);
        free(p->name);
}

/* The folder of a descriptor. */
static int place_of_dir(struct fs_aside *a, int dir, struct place *p)
{
        struct handle *h = handle_of(a, dir);
        struct stat st;
        if (h) {
                *p =
                    (struct place){.dev = h->node->st.st_dev, .ino = h->node->st.st_ino, .dir = -1};
                return h->node->kind == FOLDER ? 0 : -ENOTDIR;
        }
        int rc = a->under->fstat(a->under, dir, &st);
        if (rc == 0)
                *p = (struct place){.dev = st.st_dev, .ino = st.st_ino, .dir = dir};
        return rc;
}

/* One step down, into a folder. */
static int place_enter(struct fs_aside *a, struct place *p, const char *name)
{
        struct place here = *p;
        struct stat st;
        here.name = (char *)name;
        struct node *n = node_at(a, &here);
        if (n && n->kind != FOLDER)
                return n->kind == GONE ? -ENOENT : -ENOTDIR;
        if (!n && p->dir < 0)
                return -ENOENT;
        int fd = n ? -1 : a->under->open(a->under, p->dir, name, O_RDONLY | O_DIRECTORY, 0);
        int rc = n ? 0 : fd < 0 ? fd : a->under->fstat(a->under, fd, &st);
        if (rc) {
                if (fd >= 0)
                        a->under->close(a->under, fd);
                return rc;
        }
        if (p->close)
                a->under->close(a->under, p->dir);
        p->dev = n ? n->st.st_dev : st.st_dev;
        p->ino = n ? n->st.st_ino : st.st_ino;
        p->dir = fd;
        p->close = fd >= 0;
        return 0;
}

static int place_find(struct fs_aside *a, int dir, const char *path, struct place *out)
{
        int rc = place_of_dir(a, dir, out);
        const char *slash;
        out->name = NULL;
        while (rc == 0 && (slash = strchr(path, '/'))) {
                char *step = strndup(path, (size_t)(slash - path));
                rc = step ? place_enter(a, out, step) : -ENOMEM;
                free(step);
                path = slash + 1;
        }
        if (rc == 0 && !(out->name = strdup(path)))
                rc = -ENOMEM;
        if (rc)
                place_release(a, out);
        return rc;
}

/* A new node; what is below is opened for a PLAIN one. */
static struct node *node_new(struct fs_aside *a, const struct place *p, enum kind kind)
{
        struct node *n = calloc(1, sizeof *n);
        if (!n)
                return NULL;
        *n = (struct node){.dev = p->dev,
            .ino = p->ino,
            .name = strdup(p->name),
            .kind = kind,
            .under = -1,
            .memory = kind == GONE ? -1 : memfd_create("steno-aside", MFD_CLOEXEC),
            .refs = 1};
        if (!n->name || (kind != GONE && n->memory < 0)) {
                node_unref(a, n);
                return NULL;
        }
        n->st.st_dev = (dev_t)-1; /* of no disk */
        n->st.st_ino = ++a->made;
        n->st.st_mode = kind == FOLDER ? S_IFDIR | 0700 : S_IFREG | 0600;
        n->st.st_nlink = 1;
        n->next = a->nodes;
        a->nodes = n;
        return n;
}

static void node_drop(struct fs_aside *a, struct node *gone)
{
        for (struct node **at = &a->nodes; *at; at = &(*at)->next) {
                if (*at == gone) {
                        *at = gone->next;
                        break;
                }
        }
        node_unref(a, gone);
}

/* What is below under that name: 0 with its stat, or a negative errno. */
static int look_below(struct fs_aside *a, const struct place *p, struct stat *st)
{
        return p->dir < 0 ? -ENOENT : a->under->stat(a->under, p->dir, p->name, st);
}

/* The file at a place as a node, with its bytes. */
static int node_take(struct fs_aside *a, const struct place *p, struct node **out)
{
        struct node *n = node_at(a, p);
        if (n && n->kind != GONE) {
                *out = n;
                return n->kind == PLAIN ? 0 : -EISDIR;
        }
        if (n || p->dir < 0)
                return -ENOENT;
        int fd = a->under->open(a->under, p->dir, p->name, O_RDONLY, 0);
        if (fd < 0)
                return fd;
        n = node_new(a, p, PLAIN);
        struct stat own = n ? n->st : (struct stat){0};
        int rc = n ? a->under->fstat(a->under, fd, &n->st) : -ENOMEM;
        if (rc) {
                a->under->close(a->under, fd);
                if (n)
                        node_drop(a, n);
                return rc;
        }
        /* From now on this is another file. A reader that has the one below open does not see the
         * changes, and notices that the name leads to another file. */
        n->st.st_dev = own.st_dev;
        n->st.st_ino = own.st_ino;
        n->under = fd;
        n->base = n->size = n->st.st_size;
        *out = n;
        return 0;
}

static int node_make(struct fs_aside *a, const struct place *p, enum kind kind, struct node **out)
{
        struct node *gone = node_at(a, p);
        if (gone)
                node_drop(a, gone);
        *out = node_new(a, p, kind);
        return *out ? 0 : -ENOMEM;
}

/* Takes the name away. */
static int node_remove(struct fs_aside *a, const struct place *p)
{
        struct node *n = node_at(a, p);
        struct stat st;
        if ((n && n->kind == GONE) || (!n && look_below(a, p, &st)))
                return -ENOENT;
        if (n)
                node_drop(a, n);
        if (look_below(a, p, &st) == 0 && !node_new(a, p, GONE))
                return -ENOMEM;
        return 0;
}

/* ---- bytes; under the mutex ---- */

static ssize_t node_read(struct fs_aside *a, struct node *n, void *p, size_t want, off_t at)
{
        if (at >= n->size)
                return 0;
        if ((off_t)want > n->size - at)
                want = (size_t)(n->size - at);
        if (at < n->base) {
                if ((off_t)want > n->base - at)
                        want = (size_t)(n->base - at);
                return a->under->pread(a->under, n->under, p, want, at);
        }
        ssize_t got = pread(n->memory, p, want, at);
        return got < 0 ? -errno : got;
}

/* From here on all of its bytes are in memory. */
static int node_copy(struct fs_aside *a, struct node *n)
{
        char *piece = n->base ? malloc(COPY_PIECE) : NULL;
        off_t at = 0;
        int rc = n->base && !piece ? -ENOMEM : 0;
        while (rc == 0 && at < n->base) {
                ssize_t got = node_read(a, n, piece, COPY_PIECE, at);
                if (got <= 0)
                        rc = got < 0 ? (int)got : -EIO;
                else
                        rc = fs_pwrite_all(fs_real(), n->memory, piece, (size_t)got, at);
                at += got > 0 ? got : 0;
        }
        free(piece);
        if (rc == 0)
                n->base = 0;
        return rc;
}

static ssize_t node_write(struct fs_aside *a, struct node *n, const void *p, size_t len, off_t at)
{
        int rc = at < n->base ? node_copy(a, n) : 0;
        if (rc)
                return rc;
        ssize_t got = pwrite(n->memory, p, len, at);
        if (got < 0)
                return -errno;
        if (at + got > n->size)
                n->size = at + got;
        return got;
}

static int node_truncate(struct node *n, off_t size)
{
        if (size < n->base)
                n->base = size;
        if (ftruncate(n->memory, size))
                return -errno;
        n->size = size;
        return 0;
}

/* ---- the table ---- */

static int aside_open_root(const struct fs *self, const char *path, bool create)
{
        const struct fs *under = self_of(self)->under;
        (void)create;
        return under->open_root(under, path, false);
}

static int give_handle(struct fs_aside *a, struct node *n, int flags)
{
        struct handle *h = calloc(1, sizeof *h);
        int fd = h ? fcntl(n->memory, F_DUPFD_CLOEXEC, 0) : -1;
        if (fd < 0) {
                int sys = h ? errno : ENOMEM;
                free(h);
                return -sys;
        }
        *h = (struct handle){a->handles, fd, n, flags & O_APPEND, 0};
        n->refs++;
        a->handles = h;
        return fd;
}

static int open_at(struct fs_aside *a, const struct place *p, int flags, mode_t mode)
{
        struct node *n = node_at(a, p);
        bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
        struct stat st;
        if (!n && !writes)
                return p->dir < 0 ? -ENOENT
                                  : a->under->open(a->under, p->dir, p->name, flags, mode);
        bool there = n ? n->kind != GONE : look_below(a, p, &st) == 0;
        if (!there && !(flags & O_CREAT))
                return -ENOENT;
        if (there && (flags & O_CREAT) && (flags & O_EXCL))
                return -EEXIST;
        if (n && n->kind == FOLDER)
                return writes ? -EISDIR : give_handle(a, n, flags);
        if (there && (flags & O_DIRECTORY))
                return -ENOTDIR;
        int rc = there ? node_take(a, p, &n) : node_make(a, p, PLAIN, &n);
        if (rc == 0 && (flags & O_TRUNC))
                rc = node_truncate(n, 0);
        return rc ? rc : give_handle(a, n, flags);
}

static int aside_open(const struct fs *self, int dir, const char *path, int flags, mode_t mode)
{
        struct fs_aside *a = self_of(self);
        struct place p;
        pthread_mutex_lock(&a->mutex);
        int rc = place_find(a, dir, path, &p);
        if (rc == 0) {
                rc = open_at(a, &p, flags, mode);
                place_release(a, &p);
        }
        pthread_mutex_unlock(&a->mutex);
        return rc;
}

static int aside_close(const struct fs *self, int fd)
{
        struct fs_aside *a = self_of(self);
        pthread_mutex_lock(&a->mutex);
        struct handle **at = &a->handles;
        while (*at && (*at)->fd != fd)
                at = &(*at)->next;
        struct handle *h = *at;
        if (h) {
                *at = h->next;
                node_unref(a, h->node);
        }
        pthread_mutex_unlock(&a->mutex);
        if (!h)
                return a->under->close(a->under, fd);
        free(h);
        return close(fd) ? -errno : 0;
}

static ssize_t aside_pread(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        struct fs_aside *a = self_of(self);
        pthread_mutex_lock(&a->mutex);
        struct handle *h = handle_of(a, fd);
        ssize_t got = h ? node_read(a, h->node, p, n, at) : 0;
        pthread_mutex_unlock(&a->mutex);
        return h ? got : a->under->pread(a->under, fd, p, n, at);
}

/* Nothing is written below, whatever the descriptor. */
static ssize_t aside_pwrite(const struct fs *self, int fd, const void *p, size_t n, off_t at)
{
        struct fs_aside *a = self_of(self);
        pthread_mutex_lock(&a->mutex);
        struct handle *h = handle_of(a, fd);
        ssize_t got = h ? node_write(a, h->node, p, n, at) : -EROFS;
        pthread_mutex_unlock(&a->mutex);
        return got;
}

static ssize_t aside_write(const struct fs *self, int fd, const void *p, size_t n)
{
        struct fs_aside *a = self_of(self);
        pthread_mutex_lock(&a->mutex);
        struct handle *h = handle_of(a, fd);
        ssize_t got = -EROFS;
        if (h) {
                off_t at = h->append ? h->node->size : h->at;
                got = node_write(a, h->node, p, n, at);
                h->at = got > 0 ? at + got : h->at;
        }
        pthread_mutex_unlock(&a->mutex);
        return got;
}

static int aside_sync(const struct fs *self, int fd)
{
        (void)self, (void)fd;
        return 0;
}

static int aside_ftruncate(const struct fs *self, int fd, off_t n)
{
        struct fs_aside *a = self_of(self);
        pthread_mutex_lock(&a->mutex);
        struct handle *h = handle_of(a, fd);
        int rc = h ? node_truncate(h->node, n) : -EROFS;
        pthread_mutex_unlock(&a->mutex);
        return rc;
}

static int aside_reserve(const struct fs *self, int fd, off_t n)
{
        (void)self, (void)fd, (void)n;
        return 0;
}

static void show_stat(const struct node *n, struct stat *st)
{
        *st = n->st;
        st->st_size = n->size;
}

static int aside_fstat(const struct fs *self, int fd, struct stat *st)
{
        struct fs_aside *a = self_of(self);
        pthread_mutex_lock(&a->mutex);
        struct handle *h = handle_of(a, fd);
        if (h)
                show_stat(h->node, st);
        pthread_mutex_unlock(&a->mutex);
        return h ? 0 : a->under->fstat(a->under, fd, st);
}

static int aside_stat(const struct fs *self, int dir, const char *path, struct stat *st)
{
        struct fs_aside *a = self_of(self);
        struct place p;
        pthread_mutex_lock(&a->mutex);
        int rc = place_find(a, dir, path, &p);
        if (rc == 0) {
                struct node *n = node_at(a, &p);
                if (n && n->kind != GONE)
                        show_stat(n, st);
                else
                        rc = n ? -ENOENT : look_below(a, &p, st);
                place_release(a, &p);
        }
        pthread_mutex_unlock(&a->mutex);
        return rc;
}

static int aside_mkdir(const struct fs *self, int dir, const char *path, mode_t mode)
{
        struct fs_aside *a = self_of(self);
        struct place p;
        struct stat st;
        (void)mode;
        pthread_mutex_lock(&a->mutex);
        int rc = place_find(a, dir, path, &p);
        if (rc == 0) {
                struct node *n = node_at(a, &p);
                bool there = n ? n->kind != GONE : look_below(a, &p, &st) == 0;
                rc = there ? -EEXIST : node_make(a, &p, FOLDER, &n);
                place_release(a, &p);
        }
        pthread_mutex_unlock(&a->mutex);
        return rc;
}

/* Files only: nobody has to move a folder here. */
static int move(struct fs_aside *a, const struct place *from, const struct place *to, bool new)
{
        struct node *old, *n = node_at(a, to);
        struct stat st;
        bool there = n ? n->kind != GONE : look_below(a, to, &st) == 0;
        if (there && new)
                return -EEXIST;
        char *name = strdup(to->name);
        int rc = name ? node_take(a, from, &old) : -ENOMEM;
        if (rc) {
                free(name);
                return rc;
        }
        if (n)
                node_drop(a, n);
        free(old->name);
        old->name = name;
        old->dev = to->dev;
        old->ino = to->ino;
        return look_below(a, from, &st) == 0 && !node_new(a, from, GONE) ? -ENOMEM : 0;
}

static int rename_between(const struct fs *self, int olddir, const char *oldpath, int newdir,
    const char *newpath, bool new)
{
        struct fs_aside *a = self_of(self);
        struct place from, to;
        pthread_mutex_lock(&a->mutex);
        int rc = place_find(a, olddir, oldpath, &from);
        if (rc == 0) {
                rc = place_find(a, newdir, newpath, &to);
                if (rc == 0) {
                        rc = move(a, &from, &to, new);
                        place_release(a, &to);
                }
                place_release(a, &from);
        }
        pthread_mutex_unlock(&a->mutex);
        return rc;
}

static int aside_rename(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        return rename_between(self, olddir, oldpath, newdir, newpath, false);
}

static int aside_rename_new(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        return rename_between(self, olddir, oldpath, newdir, newpath, true);
}

static int aside_link(
    const struct fs *self, int olddir, const char *oldpath, int newdir, const char *newpath)
{
        (void)self, (void)olddir, (void)oldpath, (void)newdir, (void)newpath;
        return -EXDEV;
}

static int aside_clone(const struct fs *self, int from, int to)
{
        (void)self, (void)from, (void)to;
        return -EOPNOTSUPP;
}

static int aside_unlink(const struct fs *self, int dir, const char *path, int flags)
{
        struct fs_aside *a = self_of(self);
        struct place p;
        (void)flags;
        pthread_mutex_lock(&a->mutex);
        int rc = place_find(a, dir, path, &p);
        if (rc == 0) {
                rc = node_remove(a, &p);
                place_release(a, &p);
        }
        pthread_mutex_unlock(&a->mutex);
        return rc;
}

static int aside_flock(const struct fs *self, int fd, int operation)
{
        struct fs_aside *a = self_of(self);
        pthread_mutex_lock(&a->mutex);
        struct handle *h = handle_of(a, fd);
        pthread_mutex_unlock(&a->mutex);
        return h ? 0 : a->under->flock(a->under, fd, operation);
}

struct listing {
        struct fs_aside *a;
        struct place in;
        int (*each)(void *ctx, const char *name, unsigned char d_type);
        void *ctx;
};

static int list_below(void *ctx, const char *name, unsigned char type)
{
        struct listing *l = ctx;
        l->in.name = (char *)name;
        pthread_mutex_lock(&l->a->mutex);
        bool ours = node_at(l->a, &l->in) != NULL;
        pthread_mutex_unlock(&l->a->mutex);
        return ours ? 0 : l->each(l->ctx, name, type);
}

/* The name of the n-th node of a folder; freed with free(). NULL: there are no more. */
static char *nth_name(struct listing *l, size_t n, unsigned char *type)
{
        char *name = NULL;
        pthread_mutex_lock(&l->a->mutex);
        for (struct node *it = l->a->nodes; it && !name; it = it->next) {
                if (it->ino != l->in.ino || it->dev != l->in.dev || it->kind == GONE || n-- > 0)
                        continue;
                name = strdup(it->name);
                *type = it->kind == FOLDER ? 4 : 8; /* DT_DIR, DT_REG */
        }
        pthread_mutex_unlock(&l->a->mutex);
        return name;
}

static int aside_list(const struct fs *self, int dir,
    int (*each)(void *ctx, const char *name, unsigned char d_type), void *ctx)
{
        struct listing l = {.a = self_of(self), .each = each, .ctx = ctx};
        unsigned char type = 0;
        char *name;
        pthread_mutex_lock(&l.a->mutex);
        int rc = place_of_dir(l.a, dir, &l.in);
        pthread_mutex_unlock(&l.a->mutex);
        if (rc == 0 && l.in.dir >= 0)
                rc = l.a->under->list(l.a->under, l.in.dir, list_below, &l);
        for (size_t n = 0; rc == 0 && (name = nth_name(&l, n, &type)); n++) {
                rc = each(ctx, name, type);
                free(name);
        }
        return rc;
}

static long aside_magic(const struct fs *self, int fd)
{
        const struct fs *under = self_of(self)->under;
        return under->magic(under, fd);
}

struct fs_aside *fs_aside_new(const struct fs *under)
{
        static const struct fs TABLE = {
            .open_root = aside_open_root,
            .open = aside_open,
            .close = aside_close,
            .pread = aside_pread,
            .pwrite = aside_pwrite,
            .write = aside_write,
            .fdatasync = aside_sync,
            .fsync = aside_sync,
            .ftruncate = aside_ftruncate,
            .reserve = aside_reserve,
            .fstat = aside_fstat,
            .stat = aside_stat,
            .mkdir = aside_mkdir,
            .rename = aside_rename,
            .rename_new = aside_rename_new,
            .link = aside_link,
            .clone = aside_clone,
            .unlink = aside_unlink,
            .flock = aside_flock,
            .list = aside_list,
            .magic = aside_magic,
        };
        struct fs_aside *a = calloc(1, sizeof *a);
        if (!a)
                return NULL;
        a->table = TABLE;
        a->under = under;
        pthread_mutex_init(&a->mutex, NULL);
        return a;
}

const struct fs *fs_aside_table(const struct fs_aside *a)
{
        return &a->table;
}

void fs_aside_free(struct fs_aside *a)
{
        if (!a)
                return;
        while (a->handles)
                aside_close(&a->table, a->handles->fd);
        while (a->nodes)
                node_drop(a, a->nodes);
        pthread_mutex_destroy(&a->mutex);
        free(a);
}
