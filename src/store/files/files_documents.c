/*
 * files_documents.c - small files in the root that belong to the store as a whole (tokens.json,
 * accepted.jsonl), and locks by name.
 *
 * Whoever changes a document holds flock on the root, so that nobody's change is lost; it is
 * replaced by a rename, so that a reader sees a whole one without a lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/wait.h"
#include "store/files/files_backend.h"

#define LOOK_AGAIN_MS 10

/* ---- locks ---- */

struct files_lock {
        struct backend_lock base;
        const struct fs *fs;
        int fd;
};

int files_lock(
    struct files_store *s, const char *name, struct files_lock **out, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char file[64];
        struct files_lock *lock = calloc(1, sizeof *lock);
        if (!lock)
                return error_nomem(err);
        snprintf(file, sizeof file, "%.50s.lock", name);
        *lock = (struct files_lock){.base.ops = &files_backend, .fs = fs};
        lock->fd = fs->open(fs, s->root, file, O_RDWR | O_CREAT, 0600);
        int sys = lock->fd < 0 ? lock->fd : fs->flock(fs, lock->fd, LOCK_EX);
        if (sys >= 0) {
                *out = lock;
                return 0;
        }
        if (lock->fd >= 0)
                fs->close(fs, lock->fd);
        free(lock);
        return error_sys(err, sys, "locking %s", file);
}

void files_unlock(struct files_lock *lock)
{
        lock->fs->close(lock->fs, lock->fd);
        free(lock);
}

/* ---- documents ---- */

static uint64_t stamp_of(const struct stat *st)
{
        const uint64_t seen[] = {(uint64_t)st->st_ino, (uint64_t)st->st_mtim.tv_sec,
            (uint64_t)st->st_mtim.tv_nsec, (uint64_t)st->st_size};
        return hash_64(seen, sizeof seen) | 1;
}

int files_document_stamp(
    struct files_store *s, const char *name, uint64_t *stamp, struct steno_error *err)
{
        struct stat st;
        int sys = s->env->fs->stat(s->env->fs, s->root, name, &st);
        if (sys && sys != -ENOENT)
                return error_sys(err, sys, "looking at %s", name);
        *stamp = sys ? 0 : stamp_of(&st);
        return 0;
}

int files_document_read(struct files_store *s, const char *name, size_t max, char **text, size_t *n,
    uint64_t *stamp, struct steno_error *err)
{
        uint64_t seen;
        /* The stamp first: what is read may be newer, and is read once more then. */
        int rc = files_document_stamp(s, name, &seen, err);
        int sys = rc ? 0 : fs_slurp(s->env->fs, s->root, name, max, text, n);
        if (sys == -ENOENT)
                return error_set(err, STENO_ENOTFOUND, "there is no %s", name);
        if (sys)
                return error_sys(err, sys, "reading %s", name);
        if (rc == 0 && stamp)
                *stamp = seen;
        return rc;
}

/* By flock on the root, among all processes. */
static int lock_root(struct files_store *s, int patience_ms, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        int64_t until = time_monotonic_ms() + patience_ms;
        int sys;
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t never;
        wait_init(&never);
        pthread_mutex_lock(&mutex);
        while ((sys = fs->flock(fs, s->root, LOCK_EX | LOCK_NB)) == -EWOULDBLOCK &&
               time_monotonic_ms() < until)
                wait_for(&never, &mutex, LOOK_AGAIN_MS);
        pthread_mutex_unlock(&mutex);
        pthread_cond_destroy(&never);
        if (sys == -EWOULDBLOCK)
                return error_set(err, STENO_ETIMEOUT, "another process keeps the store locked");
        return sys ? error_sys(err, sys, "locking the store") : 0;
}

/* A name may have a folder: those of the seals do. */
static int replace(struct files_store *s, const char *name, const struct buf *text)
{
        const struct fs *fs = s->env->fs;
        const char *slash = strchr(name, '/');
        char folder[64];
        if (!slash)
                return fs_replace(fs, s->root, name, text->p, text->n);
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - name), name);
        int sys = fs->mkdir(fs, s->root, folder, 0700);
        if (sys && sys != -EEXIST)
                return sys;
        int dir = fs->open(fs, s->root, folder, O_RDONLY | O_DIRECTORY, 0);
        if (dir < 0)
                return dir;
        sys = fs_replace(fs, dir, slash + 1, text->p, text->n);
        fs->close(fs, dir);
        return sys;
}

int files_document_change(struct files_store *s, const char *name, size_t max, int patience_ms,
    backend_change_fn change, void *ctx, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char *text = NULL;
        size_t n = 0;
        struct buf out;
        int rc = lock_root(s, patience_ms, err);
        if (rc)
                return rc;
        buf_init(&out, max);
        int sys = fs_slurp(fs, s->root, name, max, &text, &n);
        if (sys && sys != -ENOENT)
                rc = error_sys(err, sys, "reading %s", name);
        if (rc == 0)
                rc = change(ctx, sys ? STR("") : str_span(text, n), &out, err);
        if (rc == 0)
                rc = buf_check(&out, err);
        if (rc == 0 && (sys = replace(s, name, &out)) != 0)
                rc = error_sys(err, sys, "writing %s", name);
        fs->flock(fs, s->root, LOCK_UN);
        free(text);
        buf_release(&out);
        return rc;
}
