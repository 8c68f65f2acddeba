/*
 * syncer.c - what is done in the background: the sync of appends with `process` durability, and
 * keeping ids.idx level and synced. One thread a store, made when there is first something to do.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <signal.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"

#define SYNC_EVERY_MS 200

int syncer_sync(struct files_conv *c, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        int rc = files_conv_lock(c, err);
        if (rc)
                return rc;
        rc = conv_refresh(c, err);
        if (rc == 0 && c->ids.mark.size != c->at.end) {
                int sys = fs->fdatasync(fs, c->log);
                if (sys) {
                        c->poisoned = true;
                        rc = error_sys(err, sys, "syncing messages.jsonl");
                } else {
                        /* Written at once: readers start at the mark, and nobody waits for this
                         * thread. */
                        ids_set_mark(&c->ids, (struct log_mark){c->at.end, c->at.last_seq});
                        ids_flush(&c->ids);
                }
        }
        __atomic_store_n(&c->dirty, false, __ATOMIC_RELAXED);
        files_conv_unlock(c);
        return rc;
}

/* Takes references to all that `wants` something; a list by `syncing`. */
static struct files_conv *take_all(struct files_store *s, bool (*wants)(const struct files_conv *c))
{
        struct files_conv *list = NULL;
        pthread_mutex_lock(&s->mutex);
        for (size_t row = 0; row < CONV_ROWS; row++) {
                for (struct files_conv *c = s->table[row]; c; c = c->next) {
                        if (!wants(c))
                                continue;
                        files_conv_hold(c);
                        c->syncing = list;
                        list = c;
                }
        }
        pthread_mutex_unlock(&s->mutex);
        return list;
}

static bool is_dirty(const struct files_conv *c)
{
        return __atomic_load_n(&c->dirty, __ATOMIC_RELAXED);
}

void files_sync(struct files_store *s)
{
        if (!files_is_ours(s))
                return;
        pthread_mutex_lock(&s->sync_mutex);
        for (struct files_conv *c = take_all(s, is_dirty), *next; c; c = next) {
                next = c->syncing;
                /* A conversation that was removed meanwhile has nothing to sync. */
                if (syncer_sync(c, NULL))
                        __atomic_store_n(&c->dirty, false, __ATOMIC_RELAXED);
                files_conv_release(c);
        }
        pthread_mutex_unlock(&s->sync_mutex);
}

/* ---- ids.idx ---- */

static bool has_ids_to_tend(const struct files_conv *c)
{
        return __atomic_load_n(&c->tend_ids, __ATOMIC_RELAXED);
}

static bool is_due(const struct files_conv *c)
{
        return has_ids_to_tend(c) &&
               (!c->ids_tended || time_monotonic_ms() - c->ids_tended >= IDS_SETTLE_PAUSE_MS);
}

/* Errors are ignored on purpose: a reader of the index reads missing records from the log. */
static void tend_ids(struct files_store *s, bool (*wants)(const struct files_conv *c), bool closing)
{
        pthread_mutex_lock(&s->sync_mutex);
        for (struct files_conv *c = take_all(s, wants), *next; c; c = next) {
                next = c->syncing;
                __atomic_store_n(&c->tend_ids, false, __ATOMIC_RELAXED);
                if (!closing) /* nobody waits for this thread, but for one that closes */
                        conv_catch_up_ids(c, NULL);
                conv_settle_ids(c, NULL);
                c->ids_tended = time_monotonic_ms();
                files_conv_release(c);
        }
        pthread_mutex_unlock(&s->sync_mutex);
}

static void *run(void *arg)
{
        struct files_store *s = arg;
        pthread_mutex_lock(&s->mutex);
        while (!s->closing) {
                wait_for(&s->wake, &s->mutex, SYNC_EVERY_MS);
                pthread_mutex_unlock(&s->mutex);
                files_sync(s);
                tend_ids(s, is_due, false);
                pthread_mutex_lock(&s->mutex);
        }
        pthread_mutex_unlock(&s->mutex);
        return NULL;
}

/* A program that handles signals in one thread blocks them in all others that it knows of. It does
 * not know of this thread, so this thread blocks them itself. */
static bool start(struct files_store *s)
{
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        bool runs = pthread_create(&s->syncer, NULL, run, s) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        return runs;
}

void syncer_want(struct files_store *s)
{
        pthread_mutex_lock(&s->mutex);
        if (!s->syncer_runs && !s->closing)
                s->syncer_runs = start(s);
        pthread_mutex_unlock(&s->mutex);
}

void syncer_stop(struct files_store *s)
{
        pthread_mutex_lock(&s->mutex);
        s->closing = true;
        bool joins = s->syncer_runs;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->mutex);
        if (joins)
                pthread_join(s->syncer, NULL);
        files_sync(s);
        tend_ids(s, has_ids_to_tend, true);
}
