/*
 * pg_scratch.c - an embedded store in a temporary folder, for as long as a conversation of
 * PostgreSQL is worked on as files. Nothing in it is synced: it is a copy, and goes with its
 * handle.
 *
 * A process that is killed leaves its folder behind. Each process holds a lock on its folder, so
 * that the next process can find folders without an owner, and remove them.
 */
#include "store/postgres/pg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fs.h"

#define PREFIX "steno-"
#define ULID 26
#define SETTLED_MS 60000 /* a folder that is younger may not have its lock yet */

static struct pg_scratch *of(const struct env *env)
{
        return (struct pg_scratch *)env;
}

static int64_t real_now(const struct env *self)
{
        const struct env *real = of(self)->real;
        return real->now(real);
}

static void real_random(const struct env *self, void *p, size_t n)
{
        const struct env *real = of(self)->real;
        real->random(real, p, n);
}

static void real_boot(const struct env *self, char out[40])
{
        const struct env *real = of(self)->real;
        real->boot(real, out);
}

static int no_sync(const struct fs *self, int fd)
{
        (void)self, (void)fd;
        return 0;
}

/* Makes the folder, readable for us alone. */
static int make_folder(struct pg_scratch *x, struct steno_error *err)
{
        const char *const places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
        int sys = -ENOENT;
        id_make(x->real, PREFIX, x->name);
        for (size_t i = 0; i < 3; i++) {
                if (!places[i] || !*places[i])
                        continue;
                x->folder = x->fs.open_root(&x->fs, places[i], false);
                sys = x->folder < 0 ? x->folder : x->fs.mkdir(&x->fs, x->folder, x->name, 0700);
                if (sys == 0)
                        return asprintf(&x->path, "%s/%s", places[i], x->name) < 0
                                   ? (x->path = NULL, error_nomem(err))
                                   : 0;
                if (x->folder >= 0)
                        x->fs.close(&x->fs, x->folder);
                x->folder = -1;
        }
        return error_sys(err, sys, "making a temporary folder (TMPDIR)");
}

/* Ours, of this kind, and older than a moment: whether somebody has its lock decides. */
static bool is_left(struct pg_scratch *x, const char *name)
{
        size_t n = strlen(PREFIX);
        struct stat st;
        if (strncmp(name, PREFIX, n) != 0 || strlen(name) != n + ULID || strcmp(name, x->name) == 0)
                return false;
        int64_t made = id_time(str_of(name + n));
        if (!made || x->real->now(x->real) - made < SETTLED_MS)
                return false;
        int fd = x->fs.open(&x->fs, x->folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (fd < 0)
                return false;
        bool left = x->fs.fstat(&x->fs, fd, &st) == 0 && st.st_uid == geteuid() &&
                    x->fs.flock(&x->fs, fd, LOCK_EX | LOCK_NB) == 0;
        x->fs.close(&x->fs, fd);
        return left;
}

static int sweep(void *ctx, const char *name, unsigned char type)
{
        struct pg_scratch *x = ctx;
        (void)type;
        if (is_left(x, name))
                fs_remove_tree(&x->fs, x->folder, name);
        return 0;
}

static int lock_folder(struct pg_scratch *x, struct steno_error *err)
{
        x->lock = x->fs.open(&x->fs, x->folder, x->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        int sys = x->lock < 0 ? x->lock : x->fs.flock(&x->fs, x->lock, LOCK_EX | LOCK_NB);
        return sys ? error_sys(err, sys, "locking a temporary folder (TMPDIR)") : 0;
}

int pg_scratch_open(struct pg_store *s, struct pg_scratch **out, struct steno_error *err)
{
        struct pg_scratch *x = calloc(1, sizeof *x);
        if (!x)
                return error_nomem(err);
        x->real = s->env;
        x->folder = x->lock = -1;
        x->fs = fs_real_table;
        x->fs.fsync = x->fs.fdatasync = no_sync;
        x->env =
            (struct env){.now = real_now, .random = real_random, .boot = real_boot, .fs = &x->fs};
        int rc = make_folder(x, err);
        if (rc == 0)
                rc = lock_folder(x, err);
        if (rc == 0)
                x->fs.list(&x->fs, x->folder, sweep, x); /* what cannot be removed is left */
        if (rc == 0)
                rc = files_backend.open(&x->env, x->path, 0, &x->store, err);
        if (rc) {
                pg_scratch_close(x);
                return rc;
        }
        *out = x;
        return 0;
}

void pg_scratch_close(struct pg_scratch *x)
{
        if (!x)
                return;
        if (x->store)
                files_backend.close(x->store);
        if (x->folder >= 0) {
                fs_remove_tree(&x->fs, x->folder, x->name);
                if (x->lock >= 0)
                        x->fs.close(&x->fs, x->lock);
                x->fs.close(&x->fs, x->folder);
        }
        free(x->path);
        free(x);
}
