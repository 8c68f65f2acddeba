/* digests.c - see digests.h */
#include "http/digests.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "http/digest_reading.h"

#define KEPT_MAX 20000          /* digests in memory, */
#define KEPT_BYTES (128u << 20) /* and about so many bytes of them */
#define BUCKETS 4096

struct digests {
        pthread_mutex_t mutex;
        struct digest_entry *table[BUCKETS];
        struct digest_entry *newest, *oldest;
        size_t count;
        size_t bytes;
};

struct digests *digests_new(void)
{
        struct digests *all = calloc(1, sizeof *all);
        if (all)
                pthread_mutex_init(&all->mutex, NULL);
        return all;
}

static void entry_free(struct digest_entry *e)
{
        digest_forget(e);
        pthread_mutex_destroy(&e->mutex);
        free(e->project);
        free(e->id);
        free(e);
}

void digests_free(struct digests *all)
{
        if (!all)
                return;
        for (struct digest_entry *e = all->newest, *older; e; e = older) {
                older = e->older;
                entry_free(e);
        }
        pthread_mutex_destroy(&all->mutex);
        free(all);
}

static size_t bucket_of(const char *project, const char *id)
{
        return (hash_64(project, strlen(project)) * 31 + hash_64(id, strlen(id))) % BUCKETS;
}

static void unlink_use(struct digests *all, struct digest_entry *e)
{
        *(e->newer ? &e->newer->older : &all->newest) = e->older;
        *(e->older ? &e->older->newer : &all->oldest) = e->newer;
}

static void link_newest(struct digests *all, struct digest_entry *e)
{
        e->newer = NULL;
        e->older = all->newest;
        *(all->newest ? &all->newest->newer : &all->oldest) = e;
        all->newest = e;
}

static void entry_drop(struct digests *all, struct digest_entry *e)
{
        struct digest_entry **at = &all->table[bucket_of(e->project, e->id)];
        while (*at != e)
                at = &(*at)->next;
        *at = e->next;
        unlink_use(all, e);
        all->count--;
        all->bytes -= e->bytes;
        entry_free(e);
}

/* Drops those that nobody has asked for longest. Under the mutex. */
static void make_room(struct digests *all)
{
        for (struct digest_entry *e = all->oldest, *newer; e; e = newer) {
                newer = e->newer;
                if (all->count < KEPT_MAX && all->bytes < KEPT_BYTES)
                        return;
                if (!e->users)
                        entry_drop(all, e);
        }
}

/* Under the mutex. */
static struct digest_entry *entry_find(struct digests *all, const char *project, const char *id)
{
        struct digest_entry *e = all->table[bucket_of(project, id)];
        while (e && (strcmp(e->id, id) != 0 || strcmp(e->project, project) != 0))
                e = e->next;
        if (e) {
                unlink_use(all, e);
                link_newest(all, e);
        }
        return e;
}

/* Finds it or makes it. Under the mutex. */
static struct digest_entry *entry_get(struct digests *all, const char *project, const char *id)
{
        size_t b = bucket_of(project, id);
        struct digest_entry *found = entry_find(all, project, id);
        if (found)
                return found;
        make_room(all);
        struct digest_entry *e = calloc(1, sizeof *e);
        if (!e)
                return NULL;
        pthread_mutex_init(&e->mutex, NULL);
        e->model = DIGEST_COUNTS_MAX;
        e->project = strdup(project);
        e->id = strdup(id);
        if (!e->project || !e->id) {
                entry_free(e);
                return NULL;
        }
        e->next = all->table[b];
        all->table[b] = e;
        link_newest(all, e);
        all->count++;
        return e;
}

/* About what it takes. The caller has its mutex. */
static size_t weigh(const struct digest_entry *e)
{
        const struct digest *d = &e->d;
        return sizeof *e + d->failure_count * (sizeof *d->failures + 320) +
               (d->tool_count + d->model_count) * (sizeof *d->tools + 40) +
               d->usage_count * sizeof *d->usage + d->day_count * sizeof *d->days +
               (e->open_count * sizeof *e->open) + d->doing.count * sizeof *d->doing.calls;
}

static void leave(struct digests *all, struct digest_entry *e, size_t bytes)
{
        pthread_mutex_lock(&all->mutex);
        all->bytes += bytes - e->bytes;
        e->bytes = bytes;
        e->users--;
        pthread_mutex_unlock(&all->mutex);
}

int digests_open(struct digests *all, struct steno_store *store, struct steno_conv *conv, int ms,
    const struct digest **out, struct steno_error *err)
{
        pthread_mutex_lock(&all->mutex);
        struct digest_entry *e = entry_get(all, steno_conv_project(conv), steno_conv_id(conv));
        if (e)
                e->users++;
        pthread_mutex_unlock(&all->mutex);
        if (!e)
                return error_nomem(err);
        pthread_mutex_lock(&e->mutex);
        int rc = digest_catch_up(e, store, conv, ms, err);
        if (rc) {
                size_t bytes = weigh(e);
                pthread_mutex_unlock(&e->mutex);
                leave(all, e, bytes);
                return rc;
        }
        *out = &e->d;
        return 0;
}

const struct digest *digests_known(
    struct digests *all, const char *project, const char *id, uint64_t seq)
{
        pthread_mutex_lock(&all->mutex);
        struct digest_entry *e = entry_find(all, project, id);
        if (e && pthread_mutex_trylock(&e->mutex) != 0)
                e = NULL;
        if (e)
                e->users++;
        pthread_mutex_unlock(&all->mutex);
        if (!e || (e->d.whole && e->d.seq == seq && !e->run_open && !atomic_load(&e->at_work)))
                return e ? &e->d : NULL;
        digests_close(all, &e->d);
        return NULL;
}

void digests_at_work(struct digests *all, const char *project, const char *id)
{
        pthread_mutex_lock(&all->mutex);
        struct digest_entry *e = entry_find(all, project, id);
        if (e)
                atomic_store(&e->at_work, true);
        pthread_mutex_unlock(&all->mutex);
}

void digests_close(struct digests *all, const struct digest *d)
{
        struct digest_entry *e = (struct digest_entry *)d;
        if (!e)
                return;
        size_t bytes = weigh(e);
        pthread_mutex_unlock(&e->mutex);
        leave(all, e, bytes);
}

void digest_now(const struct digest *d, int64_t now, struct digest_now *out)
{
        struct digest copy = *d; /* its lists are not touched */
        int64_t from, to;
        char kind = doing_work(&d->doing, now, &from, &to);
        if (from < d->worked_to)
                from = d->worked_to;
        if (kind && to > from) {
                digest_tape_add(&copy, kind, (uint64_t)(to - from));
                copy.work_ms += to - from;
        }
        *out = (struct digest_now){.work_ms = copy.work_ms, .tape_count = copy.tape_count};
        memcpy(out->tape, copy.tape, sizeof out->tape);
}

bool digest_usage_of(const struct digest *d, const char *message, struct digest_tokens *out)
{
        uint64_t hash = hash_64(message, strlen(message));
        for (size_t i = d->usage_count; i > 0; i--) {
                if (d->usage[i - 1].message == hash) {
                        *out = d->usage[i - 1].tokens;
                        return true;
                }
        }
        return false;
}
