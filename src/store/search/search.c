/*
 * search.c - the handle of search.h, and the lock of whoever changes a shard.
 */
#include "store/search/search_shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

#include "base/error.h"

int search_open(struct files_store *store, struct search **out, struct steno_error *err)
{
        struct search *s = calloc(1, sizeof *s);
        if (!s || asprintf(&s->path, "%s/search", files_path(store)) < 0) {
                free(s);
                return error_nomem(err);
        }
        s->store = store;
        s->lock = -1;
        pthread_mutex_init(&s->mutex, NULL);
        *out = s;
        return 0;
}

void search_close(struct search *s)
{
        if (!s)
                return;
        search_rollback(s);
        search_shards_close(s);
        pthread_mutex_destroy(&s->mutex);
        free(s->shards);
        free(s->path);
        free(s);
}

/* ---- the lock ---- */

int search_lock(struct search *s, bool wait, struct steno_error *err)
{
        const struct fs *fs = files_env(s->store)->fs;
        pthread_mutex_lock(&s->mutex);
        int dir = fs_open_dir(fs, files_root(s->store), "search", true);
        int fd = dir < 0 ? dir : fs->open(fs, dir, "lock", O_RDWR | O_CREAT, 0600);
        if (dir >= 0)
                fs->close(fs, dir);
        int rc = fd < 0 ? fd : fs->flock(fs, fd, LOCK_EX | (wait ? 0 : LOCK_NB));
        if (rc < 0) {
                if (fd >= 0)
                        fs->close(fs, fd);
                pthread_mutex_unlock(&s->mutex);
                return rc == -EWOULDBLOCK ? error_set(err, STENO_ETIMEOUT,
                                                "another process is building the index of words")
                                          : error_sys(err, rc, "locking the index of words");
        }
        s->lock = fd;
        __atomic_store_n(&s->owner, (unsigned long)pthread_self(), __ATOMIC_RELEASE);
        rc = search_shards_refresh(s, err);
        if (rc)
                search_unlock(s);
        return rc;
}

void search_unlock(struct search *s)
{
        const struct fs *fs = files_env(s->store)->fs;
        search_rollback(s);
        if (s->lock >= 0)
                fs->close(fs, s->lock);
        s->lock = -1;
        __atomic_store_n(&s->owner, 0, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&s->mutex);
}
