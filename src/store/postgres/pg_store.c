/*
 * pg_store.c - a store in PostgreSQL as a whole: opening it, its settings and documents, its
 * figures.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"

#define SETTINGS "store.json"
#define LEASE_MS 6000

static struct pg_store *of(const struct backend_store *store)
{
        return (struct pg_store *)store;
}

/* ---- opening ---- */

static int write_first_settings(struct pg_store *s, struct steno_error *err)
{
        static const char DEFAULTS[] = "{\"version\":1,\"profile\":\"default\"}\n";
        struct pg_query q;
        pg_query_init(&q, "INSERT INTO document VALUES ($1, $2, 1) ON CONFLICT DO NOTHING");
        pg_cstr(&q, SETTINGS);
        pg_bytes(&q, STR(DEFAULTS));
        long n = pg_change(s, &q, err);
        return n < 0 ? (int)n : 0;
}

/* Tests set times, so that nobody waits for seconds. */
static int time_of_tests(const char *text, int otherwise)
{
        long ms = text ? strtol(text, NULL, 10) : 0;
        return ms >= 100 && ms <= 600000 ? (int)ms : otherwise;
}

/* Takes NAME=VALUE out of the URL's query: libpq would refuse what it does not know. False: it is
 * not there, or longer than it may be. */
static bool take_parameter(char *url, const char *name, char *value, size_t room, bool *there)
{
        char *at = strchr(url, '?');
        size_t n = strlen(name);
        *there = false;
        while (at && !(strncmp(at + 1, name, n) == 0 && at[1 + n] == '='))
                at = strchr(at + 1, '&');
        if (!at)
                return false;
        char *begin = at + n + 2, *end = begin + strcspn(begin, "&");
        *there = true;
        if ((size_t)(end - begin) >= room)
                return false;
        memcpy(value, begin, (size_t)(end - begin));
        value[end - begin] = '\0';
        if (*end)
                memmove(at + 1, end + 1, strlen(end + 1) + 1);
        else
                *at = '\0';
        return true;
}

static int read_url(struct pg_store *s, const char *url, struct steno_error *err)
{
        static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
        char text[8] = "";
        char *end = text;
        bool there;
        long size = PG_POOL;
        s->url = strdup(url);
        s->name = strdup(url);
        snprintf(s->schema, sizeof s->schema, "steno");
        if (!s->url || !s->name)
                return error_nomem(err);
        take_parameter(s->url, "schema", s->schema, sizeof s->schema, &there);
        size_t n = strlen(s->schema);
        if (n == 0 || strspn(s->schema, LETTERS) != n ||
            (s->schema[0] >= '0' && s->schema[0] <= '9') || (there && strstr(s->url, "schema=")))
                return error_set(err, STENO_EINVAL,
                    "schema= names a schema in lower case letters, digits and _");
        if (take_parameter(s->url, "pool", text, sizeof text, &there))
                size = strtol(text, &end, 10);
        if ((there && (!text[0] || *end)) || size < 1 || size > PG_POOL_MAX)
                return error_set(
                    err, STENO_EINVAL, "pool= is a number of connections, 1 to %d", PG_POOL_MAX);
        /* A transaction of the gateway stays open while others' statements run (pg_tables.c). */
        return pg_pool_open(s, size < 2 ? 2 : (int)size, err);
}

/* A handle that is connected to nothing yet; pg_close releases it. */
static int new_store(
    const struct env *env, const char *url, struct pg_store **out, struct steno_error *err)
{
        int rc = libpq_need(err);
        struct pg_store *s = rc ? NULL : calloc(1, sizeof *s);
        if (!s)
                return rc ? rc : error_nomem(err);
        s->base.ops = &postgres_backend;
        s->env = env;
        s->owner = (int)getpid();
        s->lease_ms = time_of_tests(getenv("STENO_PG_LEASE_MS"), LEASE_MS);
        s->commit_ms = time_of_tests(getenv("STENO_PG_COMMIT_MS"), PG_COMMIT_MS);
        pthread_mutex_init(&s->mutex, NULL);
        pthread_mutex_init(&s->search, NULL);
        pthread_mutex_init(&s->locking, NULL);
        wait_init(&s->given);
        rc = read_url(s, url, err);
        if (rc)
                pg_close(&s->base);
        else
                *out = s;
        return rc;
}

int pg_migrate(
    const struct env *env, const char *url, uint64_t *from, uint64_t *to, struct steno_error *err)
{
        struct pg_store *s;
        int rc = new_store(env, url, &s, err);
        if (rc)
                return rc;
        rc = pg_schema_migrate(s, from, to, err);
        pg_close(&s->base);
        return rc;
}

int pg_open(const struct env *env, const char *url, uint32_t flags, struct backend_store **out,
    struct steno_error *err)
{
        struct pg_store *s;
        int rc = new_store(env, url, &s, err);
        if (rc)
                return rc;
        rc = pg_schema_prepare(s, !(flags & STENO_OPEN_EXISTING), err);
        if (rc == 0)
                rc = write_first_settings(s, err);
        if (rc == 0)
                rc = pg_signal_open(s, err);
        if (rc == 0)
                rc = pg_blob_open(s, err);
        if (rc) {
                pg_close(&s->base);
                return rc;
        }
        *out = &s->base;
        return 0;
}

void pg_close(struct backend_store *store)
{
        struct pg_store *s = of(store);
        bool ours = pg_is_ours(store);
        if (ours)
                pg_signal_close(s);
        pg_pool_close(s, ours);
        if (!ours)
                return; /* the memory may be in any state, and goes with the process */
        blobs_close(s->blobs);
        pthread_mutex_destroy(&s->mutex);
        pthread_mutex_destroy(&s->search);
        pthread_mutex_destroy(&s->locking);
        pthread_cond_destroy(&s->given);
        free(s->url);
        free(s->name);
        free(s);
}

bool pg_is_ours(const struct backend_store *store)
{
        return of(store)->owner == (int)getpid();
}

/* What was relaxed is durable once a later commit was. */
void pg_sync(struct backend_store *store)
{
        struct pg_query q;
        if (!__atomic_exchange_n(&of(store)->unsynced, false, __ATOMIC_ACQ_REL))
                return;
        pg_query_init(&q,
            "INSERT INTO figure VALUES ('sync', 1) ON CONFLICT (name) DO UPDATE SET n ="
            " figure.n + 1");
        pg_change(of(store), &q, NULL);
}

uint64_t pg_quarantined(const struct backend_store *store)
{
        (void)store;
        return 0;
}

/* ---- documents ---- */

int pg_document_read(struct backend_store *store, const char *name, size_t max, char **text,
    size_t *n, uint64_t *stamp, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT text, version FROM document WHERE name = $1");
        pg_cstr(&q, name);
        int rc = pg_run(of(store), &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r) == 0)
                rc = error_set(err, STENO_ENOTFOUND, "there is no %s", name);
        else if (pg_get(r, 0, 0).n > max)
                rc = error_set(err, STENO_ELIMIT, "%s is larger than it may be", name);
        char *copy = rc ? NULL : pg_get_dup(r, 0, 0);
        if (rc == 0 && !copy)
                rc = error_nomem(err);
        if (rc == 0) {
                *text = copy;
                *n = pg_get(r, 0, 0).n;
                if (stamp)
                        *stamp = pg_get_u64(r, 0, 1);
        }
        libpq.clear(r);
        return rc;
}

int pg_document_stamp(
    struct backend_store *store, const char *name, uint64_t *stamp, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT version FROM document WHERE name = $1");
        pg_cstr(&q, name);
        int rc = pg_run(of(store), &q, &r, err);
        if (rc)
                return rc;
        *stamp = libpq.ntuples(r) ? pg_get_u64(r, 0, 0) : 0;
        libpq.clear(r);
        return 0;
}

/* Compare and swap: 1 when somebody was quicker. */
static int swap_document(
    struct pg_store *s, const char *name, uint64_t seen, struct str text, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q, seen ? "UPDATE document SET text = $2, version = version + 1"
                                 " WHERE name = $1 AND version = $3"
                               : "INSERT INTO document VALUES ($1, $2, 1) ON CONFLICT DO NOTHING");
        pg_cstr(&q, name);
        pg_bytes(&q, text);
        if (seen)
                pg_u64(&q, seen);
        long n = pg_change(s, &q, err);
        return n < 0 ? (int)n : n == 0;
}

int pg_document_change(struct backend_store *store, const char *name, size_t max, int patience_ms,
    backend_change_fn change, void *ctx, struct steno_error *err)
{
        int64_t until = time_monotonic_ms() + patience_ms;
        for (;;) {
                char *text = NULL;
                size_t n = 0;
                uint64_t seen = 0;
                struct buf out;
                int rc = pg_document_read(store, name, max, &text, &n, &seen, err);
                if (rc && rc != STENO_ENOTFOUND)
                        return rc;
                buf_init(&out, max);
                rc = change(ctx, str_span(text ? text : "", n), &out, err);
                if (rc == 0)
                        rc = buf_check(&out, err);
                if (rc == 0)
                        rc = swap_document(of(store), name, seen, buf_str(&out), err);
                buf_release(&out);
                free(text);
                if (rc != 1)
                        return rc;
                if (time_monotonic_ms() > until)
                        return error_set(err, STENO_ETIMEOUT,
                            "other processes change %s all the time; try again", name);
        }
}

/* ---- settings ---- */

int pg_settings(struct backend_store *store, char **json, struct steno_error *err)
{
        size_t n;
        return pg_document_read(store, SETTINGS, MIB, json, &n, NULL, err);
}

static int replace_text(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        (void)old, (void)err;
        buf_put_str(out, *(const struct str *)ctx);
        return 0;
}

int pg_set_settings(
    struct backend_store *store, const char *json, size_t n, struct steno_error *err)
{
        struct str text = str_span(json, n);
        return pg_document_change(store, SETTINGS, MIB, 10000, replace_text, &text, err);
}

/* ---- locks by name ---- */

/* A lock of a session, so that it goes with its holder. */
struct pg_lock {
        struct backend_lock base;
        PGconn *pq;
};

int pg_lock(struct backend_store *store, const char *name, struct backend_lock **out,
    struct steno_error *err)
{
        struct pg_lock *lock = calloc(1, sizeof *lock);
        if (!lock)
                return error_nomem(err);
        lock->base.ops = &postgres_backend;
        lock->pq = pg_pool_dial(of(store));
        const char *const values[] = {of(store)->schema, name};
        PGresult *r = libpq.execParams(lock->pq,
            "SELECT pg_advisory_lock(hashtextextended('steno.' || $1 || '.' || $2, 0))", 2, NULL,
            values, NULL, NULL, 1);
        bool ok = libpq.resultStatus(r) == PGRES_TUPLES_OK;
        libpq.clear(r);
        if (!ok) {
                pg_unlock(&lock->base);
                return error_set(err, STENO_EIO, "PostgreSQL: cannot get the lock %.40s", name);
        }
        *out = &lock->base;
        return 0;
}

void pg_unlock(struct backend_lock *lock)
{
        libpq.finish(((struct pg_lock *)lock)->pq);
        free(lock);
}

/* ---- figures ---- */

static const char *const NAMES[] = {"materializations", "bytes", "chars", "shownBytes",
    "shownChars", "list", "read", "tail", "grep"};
#define FIGURES (sizeof NAMES / sizeof *NAMES)
_Static_assert(sizeof(struct figures) == FIGURES * sizeof(uint64_t), "a name for each figure");

void pg_figures_add(struct backend_store *store, const struct figures *more)
{
        const uint64_t *n = (const uint64_t *)more;
        for (size_t i = 0; i < FIGURES; i++) {
                struct pg_query q;
                if (!n[i])
                        continue;
                pg_query_init(&q, "INSERT INTO figure VALUES ($1, $2) ON CONFLICT (name) DO UPDATE"
                                  " SET n = figure.n + $2");
                q.relaxed = true;
                pg_cstr(&q, NAMES[i]);
                pg_u64(&q, n[i]);
                pg_change(of(store), &q, NULL);
        }
}

void pg_figures_get(struct backend_store *store, struct figures *out)
{
        struct pg_query q;
        PGresult *r;
        *out = (struct figures){0};
        pg_query_init(&q, "SELECT name, n FROM figure");
        if (pg_run(of(store), &q, &r, NULL))
                return;
        for (int row = 0; row < libpq.ntuples(r); row++)
                for (size_t i = 0; i < FIGURES; i++)
                        if (str_is(pg_get(r, row, 0), NAMES[i]))
                                ((uint64_t *)out)[i] = pg_get_u64(r, row, 1);
        libpq.clear(r);
}
