/*
 * pg_signal.c - wakes those who wait for a conversation when a process on any machine has written
 * to it, and tells every machine which clients are connected.
 *
 * A notification is only a hint: the receiver reads the conversation. It is sent after the commit
 * by a thread of its own, for all conversations that changed within a moment together, because
 * PostgreSQL puts transactions that notify behind each other. A listener has a connection of its
 * own. If notifications are lost with it, regular polling finds the changes.
 */
#include "store/postgres/pg.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"

#define MERGE_MS 5
#define PAYLOAD_MAX 7000 /* PostgreSQL takes 8000 bytes */
#define AGAIN_MS 500     /* until a broken connection is tried again */
#define POLL_MS 20       /* looks without notifications */
#define POLL_MAX_MS 200
#define LISTENING_MS 1000 /* and with them */

struct pg_watcher {
        struct backend_watcher base;
        struct pg_store *store;
        struct pg_watcher *next;
        char *project;
        char id[48];
};

struct pg_signal {
        struct pg_store *store;
        pthread_mutex_t mutex;
        pthread_cond_t woken;  /* a conversation has changed */
        pthread_cond_t to_say; /* something has to be sent */
        struct buf changed;    /* uids, with spaces */
        struct pg_watcher *watchers;
        pthread_t speaker;
        pthread_t listener;
        bool speaks;
        bool listens;
        bool heard; /* notifications arrive */
        bool ending;
        int socket; /* of the listener, or -1 */
};

static void channel_of(const struct pg_store *s, char out[PG_SCHEMA + 8])
{
        snprintf(out, PG_SCHEMA + 8, "steno_%s", s->schema);
}

int pg_signal_open(struct pg_store *s, struct steno_error *err)
{
        struct pg_signal *g = calloc(1, sizeof *g);
        if (!g)
                return error_nomem(err);
        g->store = s;
        g->socket = -1;
        pthread_mutex_init(&g->mutex, NULL);
        wait_init(&g->woken);
        wait_init(&g->to_say);
        buf_init(&g->changed, 0);
        s->signal = g;
        return 0;
}

/* ---- saying ---- */

static void notify(struct pg_signal *g, const char *uids)
{
        char channel[PG_SCHEMA + 8];
        struct pg_query q;
        channel_of(g->store, channel);
        pg_query_init(&q, "SELECT pg_notify($1, $2)");
        q.relaxed = true;
        pg_cstr(&q, channel);
        pg_cstr(&q, uids);
        pg_run(g->store, &q, NULL, NULL); /* only a hint: others poll as well */
}

/* Sends what waits; the mutex is held, and let go of meanwhile. */
static void say_all(struct pg_signal *g)
{
        struct buf now = g->changed;
        buf_init(&g->changed, 0);
        pthread_mutex_unlock(&g->mutex);
        for (size_t at = 0; !now.failed && at < now.n;) {
                size_t n = now.n - at < PAYLOAD_MAX ? now.n - at : PAYLOAD_MAX / PG_UID * PG_UID;
                char payload[PAYLOAD_MAX + 1];
                snprintf(payload, sizeof payload, "%.*s", (int)n, now.p + at);
                notify(g, payload);
                at += n;
        }
        buf_release(&now);
        pthread_mutex_lock(&g->mutex);
}

static void renew_watchers(struct pg_signal *g)
{
        struct buf ids;
        struct pg_query q;
        buf_init(&ids, 0);
        for (struct pg_watcher *w = g->watchers; w; w = w->next)
                buf_printf(&ids, "%s%s", ids.n ? "," : "", w->id);
        const char *list = buf_cstr(&ids);
        pthread_mutex_unlock(&g->mutex);
        pg_query_init(&q, "UPDATE watcher SET lease = clock_timestamp() + $1::bigint * interval '1"
                          " ms' WHERE id = ANY (string_to_array($2, ','))");
        q.relaxed = true;
        pg_u64(&q, (uint64_t)g->store->lease_ms);
        pg_cstr(&q, list ? list : "");
        pg_change(g->store, &q, NULL);
        buf_release(&ids);
        pthread_mutex_lock(&g->mutex);
}

static void *speak(void *arg)
{
        struct pg_signal *g = arg;
        int every = g->store->lease_ms / 3;
        int64_t renew = time_monotonic_ms() + every;
        pthread_mutex_lock(&g->mutex);
        while (!g->ending) {
                int64_t now = time_monotonic_ms();
                if (g->watchers && now >= renew) {
                        renew_watchers(g);
                        renew = now + every;
                }
                if (g->changed.n) {
                        say_all(g);
                        if (!g->ending) /* what comes now goes together */
                                wait_for(&g->to_say, &g->mutex, MERGE_MS);
                } else if (!g->ending) {
                        wait_for(&g->to_say, &g->mutex, every);
                }
        }
        say_all(g);
        pthread_mutex_unlock(&g->mutex);
        return NULL;
}

/* Under the mutex. */
static void start_speaking(struct pg_signal *g)
{
        if (!g->speaks)
                g->speaks = pthread_create(&g->speaker, NULL, speak, g) == 0;
}

void pg_signal_say(struct pg_conv *c)
{
        struct pg_signal *g = c->store->signal;
        __atomic_add_fetch(&c->signals, 1, __ATOMIC_RELEASE);
        pthread_mutex_lock(&g->mutex);
        pthread_cond_broadcast(&g->woken);
        start_speaking(g);
        if (!g->changed.n || !memmem(g->changed.p, g->changed.n, c->uid, strlen(c->uid))) {
                buf_printf(&g->changed, "%s ", c->uid);
                pthread_cond_signal(&g->to_say);
        }
        pthread_mutex_unlock(&g->mutex);
}

/* ---- hearing ---- */

/* Somebody wrote to these; all where we may have missed something. */
static void wake(struct pg_signal *g, const char *uids)
{
        struct pg_store *s = g->store;
        pthread_mutex_lock(&s->mutex);
        for (struct pg_conv *c = s->convs; c; c = c->next)
                if (!uids || strstr(uids, c->uid))
                        __atomic_add_fetch(&c->signals, 1, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&s->mutex);
        pthread_mutex_lock(&g->mutex);
        pthread_cond_broadcast(&g->woken);
        pthread_mutex_unlock(&g->mutex);
}

static bool begin_listening(struct pg_signal *g, PGconn *pq)
{
        char channel[PG_SCHEMA + 8], sql[PG_SCHEMA + 24];
        channel_of(g->store, channel);
        snprintf(sql, sizeof sql, "LISTEN %s", channel);
        PGresult *r = libpq.status(pq) == CONNECTION_OK ? libpq.exec(pq, sql) : NULL;
        bool ok = r && libpq.resultStatus(r) == PGRES_COMMAND_OK;
        libpq.clear(r);
        pthread_mutex_lock(&g->mutex);
        ok = ok && !g->ending;
        g->heard = ok;
        g->socket = ok ? libpq.socket(pq) : -1;
        pthread_mutex_unlock(&g->mutex);
        return ok;
}

static void hear(struct pg_signal *g, PGconn *pq)
{
        struct pollfd p = {.fd = libpq.socket(pq), .events = POLLIN};
        wake(g, NULL);
        while (libpq.consumeInput(pq)) {
                PGnotify *n;
                while ((n = libpq.notifies(pq))) {
                        wake(g, n->extra);
                        libpq.freemem(n);
                }
                pthread_mutex_lock(&g->mutex);
                bool ending = g->ending;
                pthread_mutex_unlock(&g->mutex);
                if (ending || (poll(&p, 1, -1) < 0))
                        break;
        }
}

static void *listen_on(void *arg)
{
        struct pg_signal *g = arg;
        for (bool ending = false; !ending;) {
                PGconn *pq = pg_pool_dial(g->store);
                if (begin_listening(g, pq))
                        hear(g, pq);
                pthread_mutex_lock(&g->mutex);
                g->heard = false;
                g->socket = -1;
                if (!g->ending)
                        wait_for(&g->woken, &g->mutex, AGAIN_MS);
                ending = g->ending;
                pthread_mutex_unlock(&g->mutex);
                libpq.finish(pq);
        }
        return NULL;
}

/* Under the mutex. */
static void start_listening(struct pg_signal *g)
{
        if (!g->listens)
                g->listens = pthread_create(&g->listener, NULL, listen_on, g) == 0;
}

bool pg_signal_hears(struct pg_conv *c)
{
        struct pg_signal *g = c->store->signal;
        pthread_mutex_lock(&g->mutex);
        start_listening(g);
        bool heard = g->heard;
        pthread_mutex_unlock(&g->mutex);
        return heard;
}

uint64_t pg_signal_count(const struct pg_conv *c)
{
        return __atomic_load_n(&c->signals, __ATOMIC_ACQUIRE);
}

void pg_signal_wait(struct pg_conv *c, uint64_t seen, int *pause, int64_t until)
{
        struct pg_signal *g = c->store->signal;
        pthread_mutex_lock(&g->mutex);
        start_listening(g);
        *pause = !*pause ? POLL_MS : *pause < POLL_MAX_MS ? *pause * 2 : POLL_MAX_MS;
        int64_t end = time_monotonic_ms() + (g->heard ? LISTENING_MS : *pause);
        end = end < until ? end : until;
        while (pg_signal_count(c) == seen && time_monotonic_ms() < end)
                wait_until(&g->woken, &g->mutex, end);
        pthread_mutex_unlock(&g->mutex);
}

/* ---- who is connected ---- */

int pg_watch(struct backend_store *store, struct str project, struct backend_watcher **out,
    struct steno_error *err)
{
        struct pg_store *s = (struct pg_store *)store;
        struct pg_signal *g = s->signal;
        struct pg_query q;
        struct pg_watcher *w = calloc(1, sizeof *w);
        if (!w || !(w->project = strndup(project.p, project.n))) {
                free(w);
                return error_nomem(err);
        }
        w->base.ops = &postgres_backend;
        w->store = s;
        id_make(s->env, "w_", w->id);
        pg_query_init(&q, "INSERT INTO watcher VALUES ($1, $2, clock_timestamp() + $3::bigint *"
                          " interval '1 ms')");
        q.relaxed = true;
        pg_cstr(&q, w->project);
        pg_cstr(&q, w->id);
        pg_u64(&q, (uint64_t)s->lease_ms);
        long n = pg_change(s, &q, err);
        if (n < 0) {
                free(w->project);
                free(w);
                return (int)n;
        }
        pthread_mutex_lock(&g->mutex);
        w->next = g->watchers;
        g->watchers = w;
        start_speaking(g);
        pthread_mutex_unlock(&g->mutex);
        *out = &w->base;
        return 0;
}

void pg_watch_end(struct backend_watcher *watcher)
{
        struct pg_watcher *w = (struct pg_watcher *)watcher;
        struct pg_signal *g = w->store->signal;
        struct pg_query q;
        pthread_mutex_lock(&g->mutex);
        struct pg_watcher **at = &g->watchers;
        while (*at != w)
                at = &(*at)->next;
        *at = w->next;
        pthread_mutex_unlock(&g->mutex);
        pg_query_init(&q, "DELETE FROM watcher WHERE id = $1 OR lease < clock_timestamp() -"
                          " interval '1 day'");
        q.relaxed = true;
        pg_cstr(&q, w->id);
        pg_change(w->store, &q, NULL);
        free(w->project);
        free(w);
}

bool pg_watched(struct backend_store *store, struct str project)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT EXISTS (SELECT 1 FROM watcher WHERE project = $1 AND lease >"
                          " clock_timestamp())");
        pg_text(&q, project);
        if (pg_run((struct pg_store *)store, &q, &r, NULL))
                return false;
        bool any = pg_get_bool(r, 0, 0);
        libpq.clear(r);
        return any;
}

/* ---- the end ---- */

void pg_signal_close(struct pg_store *s)
{
        struct pg_signal *g = s->signal;
        if (!g)
                return;
        pthread_mutex_lock(&g->mutex);
        g->ending = true;
        if (g->socket >= 0)
                shutdown(g->socket, SHUT_RDWR); /* whoever polls it goes on */
        pthread_cond_broadcast(&g->to_say);
        pthread_cond_broadcast(&g->woken);
        pthread_mutex_unlock(&g->mutex);
        if (g->speaks)
                pthread_join(g->speaker, NULL);
        if (g->listens)
                pthread_join(g->listener, NULL);
        pthread_mutex_destroy(&g->mutex);
        pthread_cond_destroy(&g->woken);
        pthread_cond_destroy(&g->to_say);
        buf_release(&g->changed);
        free(g);
        s->signal = NULL;
}
