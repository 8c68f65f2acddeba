/*
 * pg_pool.c - connections to PostgreSQL.
 *
 * A statement takes a connection of the pool for as long as it runs. One that turns out to be
 * broken is connected anew until the statement's time is over: a server that fails over is away for
 * some seconds. A store that was never reached is not waited for. Where the server gives fewer
 * connections than the pool has, those that there are serve all.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"

#define PAUSE_MS 50
#define PAUSE_MAX_MS 500

/* libpq's sentences have several lines, and end with one. */
void pg_pool_reason(const char *from, char *to, size_t room)
{
        size_t n = 0;
        for (; from[n] && n + 1 < room; n++)
                to[n] = from[n] == '\n' ? ' ' : from[n];
        while (n && to[n - 1] == ' ')
                n--;
        to[n] = '\0';
}

int pg_pool_refuse(struct pg_conn *c, struct steno_error *err)
{
        char why[200] = "out of memory";
        if (c->pq)
                pg_pool_reason(libpq.errorMessage(c->pq), why, sizeof why);
        return error_set(err, STENO_EIO, "PostgreSQL: %s", why);
}

/* ---- connecting ---- */

/* What stands before the URL can be set otherwise there. A machine that is cut off does not answer
 * at all: then the kernel gives up after these times. */
static PGconn *dial(struct pg_store *s)
{
        static const char *const names[] = {"connect_timeout", "keepalives_idle",
            "keepalives_interval", "keepalives_count", "tcp_user_timeout",
            "fallback_application_name", "dbname", NULL};
        const char *const values[] = {"3", "10", "3", "3", "15000", "steno", s->url, NULL};
        return libpq.connectdbParams(names, values, 1);
}

/* The server must notice as well that this machine is cut off, and before its leases are over:
 * those who take its runs over need what its sessions have locked. Without these it would keep them
 * for hours. */
static const char *server_gives_up(PGconn *pq)
{
#define NOTICES                                                                                    \
        "SET tcp_keepalives_idle TO 2; SET tcp_keepalives_interval TO 2; SET"                      \
        " tcp_keepalives_count TO 2; SET tcp_user_timeout TO 6000"
        return libpq.serverVersion(pq) >= 140000 ? NOTICES
                   "; SET client_connection_check_interval TO 1000"
                                                 : NOTICES;
#undef NOTICES
}

PGconn *pg_pool_dial(struct pg_store *s)
{
        PGconn *pq = dial(s);
        if (pq && libpq.status(pq) == CONNECTION_OK)
                libpq.clear(libpq.exec(pq, server_gives_up(pq)));
        return pq;
}

/* A commit that its standby did not confirm is reported by a warning, and as a success. */
static void hear_notice(void *arg, const PGresult *r)
{
        struct pg_conn *c = arg;
        const char *state = libpq.resultErrorField(r, PG_DIAG_SQLSTATE);
        const char *where = libpq.resultErrorField(r, PG_DIAG_SOURCE_FUNCTION);
        if (where && strcmp(where, "SyncRepWaitForLSN") == 0)
                c->doubt = true;
        else if (state && strcmp(state, "57P01") == 0)
                c->doubt = true;
}

bool pg_pool_is_up(const struct pg_conn *c)
{
        return c->pq && libpq.status(c->pq) == CONNECTION_OK;
}

/* A database of another encoding would refuse ids, titles and words that it has no letters for. */
static int check_encoding(struct pg_conn *c, struct steno_error *err)
{
        const char *encoding = libpq.parameterStatus(c->pq, "server_encoding");
        if (!encoding || strcmp(encoding, "UTF8") == 0 || strcmp(encoding, "SQL_ASCII") == 0)
                return 0;
        return error_set(err, STENO_EUNSUPPORTED,
            "the database has the encoding %.40s, where a store needs UTF8: make one with CREATE"
            " DATABASE name ENCODING 'UTF8' TEMPLATE template0",
            encoding);
}

/* Where synchronous_commit is off for the role or the database, nothing would be durable when it is
 * acknowledged. What else they set (local, remote_apply) is theirs to choose. */
#define REMEMBER                                                                                   \
        "SELECT set_config('steno.durable', replace(current_setting('synchronous_commit'), 'off'," \
        " 'on'), false); " PG_DURABLE "; "

/* A pooler that gives a transaction at a time forgets what a session has set: then the next
 * statement would look for its tables elsewhere. */
static int set_up(struct pg_store *s, struct pg_conn *c, struct steno_error *err)
{
        char sql[800];
        int rc = check_encoding(c, err);
        if (rc)
                return rc;
        snprintf(sql, sizeof sql,
            REMEMBER "SET client_encoding TO 'UTF8'; SET timezone TO 'UTC'; SET search_path TO"
                     " \"%s\"; SET client_min_messages TO warning; %s",
            s->schema, server_gives_up(c->pq));
        libpq.setNoticeReceiver(c->pq, hear_notice, c);
        PGresult *r = libpq.exec(c->pq, sql);
        bool ok = libpq.resultStatus(r) == PGRES_COMMAND_OK;
        libpq.clear(r);
        c->relaxed = false;
        c->prepared = 0;
        return ok ? 0 : pg_pool_refuse(c, err);
}

void pg_pool_drop(struct pg_conn *c)
{
        if (c->counted)
                __atomic_sub_fetch(c->counted, 1, __ATOMIC_ACQ_REL);
        c->counted = NULL;
        libpq.finish(c->pq);
        c->pq = NULL;
        c->cancelled = false;
}

static int connect_once(struct pg_store *s, struct pg_conn *c, struct steno_error *err)
{
        pg_pool_drop(c);
        c->pq = dial(s);
        int rc = pg_pool_is_up(c) ? set_up(s, c, err) : pg_pool_refuse(c, err);
        if (rc) {
                pg_pool_drop(c);
                return rc;
        }
        c->counted = &s->connected;
        __atomic_add_fetch(c->counted, 1, __ATOMIC_ACQ_REL);
        __atomic_store_n(&s->reached, true, __ATOMIC_RELEASE);
        return 0;
}

/* Those of the pool that are connected do what is to be done, one after the other. */
static int take_another(
    struct pg_store *s, struct pg_conn **c, int64_t until, struct steno_error *err)
{
        pthread_mutex_lock(&s->mutex);
        s->crowded_until = time_monotonic_ms() + PAUSE_MAX_MS;
        pthread_mutex_unlock(&s->mutex);
        pg_pool_give(s, *c);
        *c = NULL;
        return pg_pool_take(s, until, c, err);
}

int pg_pool_connect(struct pg_store *s, struct pg_conn **c, int64_t until, struct steno_error *err)
{
        bool again = __atomic_load_n(&s->reached, __ATOMIC_ACQUIRE);
        for (int wait = PAUSE_MS;; wait = wait < PAUSE_MAX_MS ? wait * 2 : wait) {
                int rc = connect_once(s, *c, err);
                if (rc == 0)
                        return 0;
                if (!again || rc == STENO_EUNSUPPORTED || time_monotonic_ms() + wait > until)
                        return rc;
                if (__atomic_load_n(&s->connected, __ATOMIC_ACQUIRE) > 0)
                        return take_another(s, c, until, err);
                wait_sleep(wait);
        }
}

/* ---- giving a statement up ---- */

/* Waits for the server without a time limit: hence a thread of its own, which ends by itself. */
static void *send_cancel(void *arg)
{
        char ignored[256];
        libpq.cancel(arg, ignored, sizeof ignored);
        libpq.freeCancel(arg);
        return NULL;
}

void pg_pool_cancel(struct pg_conn *c)
{
        pthread_t thread;
        PGcancel *request = libpq.getCancel(c->pq);
        if (!request)
                return;
        c->cancelled = true;
        if (pthread_create(&thread, NULL, send_cancel, request) == 0)
                pthread_detach(thread);
        else
                libpq.freeCancel(request);
}

/* ---- the pool ---- */

/* Under the mutex. */
static struct pg_conn *find_idle(struct pg_store *s, bool crowded)
{
        struct pg_conn *found = NULL;
        for (int i = 0; i < s->pool_size; i++) {
                struct pg_conn *c = &s->pool[i];
                if (!c->busy && (c->pq || !crowded) && (!found || (c->pq && !found->pq)))
                        found = c; /* one that is up first */
                if (found && found->pq)
                        break;
        }
        return found;
}

int pg_pool_take(struct pg_store *s, int64_t until, struct pg_conn **out, struct steno_error *err)
{
        struct pg_conn *c;
        bool late = false;
        pthread_mutex_lock(&s->mutex);
        for (;;) {
                int64_t now = time_monotonic_ms();
                bool crowded =
                    now < s->crowded_until && __atomic_load_n(&s->connected, __ATOMIC_ACQUIRE) > 0;
                c = find_idle(s, crowded);
                if (c || late)
                        break;
                bool first = crowded && s->crowded_until < until;
                if (!wait_until(&s->given, &s->mutex, first ? s->crowded_until : until))
                        late = !first;
        }
        if (c)
                c->busy = true;
        pthread_mutex_unlock(&s->mutex);
        if (!c)
                return error_set(err, STENO_ETIMEOUT,
                    "PostgreSQL: all %d connections are busy; nothing was stored (pool=N in the "
                    "URL sets how many there are)",
                    s->pool_size);
        *out = c;
        return 0;
}

void pg_pool_give(struct pg_store *s, struct pg_conn *c)
{
        pthread_mutex_lock(&s->mutex);
        c->busy = false;
        pthread_cond_signal(&s->given);
        pthread_mutex_unlock(&s->mutex);
}

int pg_pool_open(struct pg_store *s, int size, struct steno_error *err)
{
        s->pool = calloc((size_t)size, sizeof *s->pool);
        s->pool_size = s->pool ? size : 0;
        return s->pool ? 0 : error_nomem(err);
}

void pg_pool_close(struct pg_store *s, bool polite)
{
        for (int i = 0; i < s->pool_size; i++) {
                if (s->pool[i].pq && polite)
                        libpq.finish(s->pool[i].pq);
                s->pool[i].pq = NULL;
        }
        if (polite)
                free(s->pool);
}
