/*
 * pg_pool.c - connections to PostgreSQL and statements on them.
 *
 * A statement takes a connection of the pool for as long as it runs. One that turns out to be
 * broken is connected anew, for up to RECONNECT_MS: a server that fails over is away for some
 * seconds.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"

#define RECONNECT_MS 10000
#define PAUSE_MS 50
#define TRIES 8 /* of a statement that lost against another one */

/* ---- the pool ---- */

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

/* libpq's sentences have several lines, and end with one. */
static void put_reason(char *to, size_t room, const char *from)
{
        size_t n = 0;
        for (; from[n] && n + 1 < room; n++)
                to[n] = from[n] == '\n' ? ' ' : from[n];
        while (n && to[n - 1] == ' ')
                n--;
        to[n] = '\0';
}

static int refuse_connection(struct pg_conn *c, struct steno_error *err)
{
        char why[200] = "out of memory";
        if (c->pq)
                put_reason(why, sizeof why, libpq.errorMessage(c->pq));
        return error_set(err, STENO_EIO, "PostgreSQL: %s", why);
}

static void pause_ms(struct pg_store *s, int ms)
{
        pthread_mutex_lock(&s->mutex);
        int64_t until = time_monotonic_ms() + ms;
        while (time_monotonic_ms() < until)
                wait_until(&s->given, &s->mutex, until);
        pthread_mutex_unlock(&s->mutex);
}

static bool is_up(const struct pg_conn *c)
{
        return c->pq && libpq.status(c->pq) == CONNECTION_OK;
}

static int set_up(struct pg_store *s, struct pg_conn *c, struct steno_error *err)
{
        char sql[240];
        snprintf(sql, sizeof sql,
            "SET client_encoding TO 'UTF8'; SET timezone TO 'UTC'; SET search_path TO %s; SET"
            " client_min_messages TO warning",
            s->schema);
        libpq.setNoticeReceiver(c->pq, hear_notice, c);
        PGresult *r = libpq.exec(c->pq, sql);
        bool ok = libpq.resultStatus(r) == PGRES_COMMAND_OK;
        libpq.clear(r);
        c->relaxed = false;
        return ok ? 0 : refuse_connection(c, err);
}

/* Waits for a server that is away, but not for one that was never there. */
static int connect_conn(struct pg_store *s, struct pg_conn *c, struct steno_error *err)
{
        bool again = c->pq;
        int64_t until = time_monotonic_ms() + RECONNECT_MS;
        for (int wait = PAUSE_MS;; wait = wait < 1000 ? wait * 2 : wait) {
                if (c->pq)
                        libpq.reset(c->pq);
                else
                        c->pq = libpq.connectdb(s->url);
                if (is_up(c))
                        return set_up(s, c, err);
                if (!c->pq || !again || time_monotonic_ms() > until)
                        break;
                pause_ms(s, wait);
        }
        int rc = refuse_connection(c, err);
        libpq.finish(c->pq);
        c->pq = NULL;
        return rc;
}

static struct pg_conn *take(struct pg_store *s)
{
        struct pg_conn *c = NULL;
        pthread_mutex_lock(&s->mutex);
        while (!c) {
                for (int i = 0; i < PG_POOL && !c; i++) /* one that is up first */
                        if (!s->pool[i].busy && s->pool[i].pq)
                                c = &s->pool[i];
                for (int i = 0; i < PG_POOL && !c; i++)
                        if (!s->pool[i].busy)
                                c = &s->pool[i];
                if (!c)
                        pthread_cond_wait(&s->given, &s->mutex);
        }
        c->busy = true;
        pthread_mutex_unlock(&s->mutex);
        return c;
}

static void give(struct pg_store *s, struct pg_conn *c)
{
        pthread_mutex_lock(&s->mutex);
        c->busy = false;
        pthread_cond_broadcast(&s->given);
        pthread_mutex_unlock(&s->mutex);
}

void pg_pool_close(struct pg_store *s, bool polite)
{
        for (int i = 0; i < PG_POOL; i++) {
                if (s->pool[i].pq && polite)
                        libpq.finish(s->pool[i].pq);
                s->pool[i].pq = NULL;
        }
}

/* ---- statements ---- */

static const struct {
        const char *state; /* its beginning */
        int code;
} CODES[] = {
    {"23505", PG_UNIQUE},
    {"53100", STENO_EFULL},
    {"53200", STENO_ENOMEM},
    {"25006", STENO_EDENIED}, /* a standby, or a primary that was set to read only */
    {"42501", STENO_EDENIED},
    {"42P01", STENO_ECORRUPT}, /* a table is missing */
    {"42703", STENO_ECORRUPT}, /* or a column */
    {"XX001", STENO_ECORRUPT},
    {"54", STENO_ELIMIT},
};

static int code_of(const char *state)
{
        for (size_t i = 0; state && i < sizeof CODES / sizeof *CODES; i++)
                if (strncmp(state, CODES[i].state, strlen(CODES[i].state)) == 0)
                        return CODES[i].code;
        return STENO_EIO;
}

static int relax(struct pg_conn *c, bool relaxed, struct steno_error *err)
{
        if (c->relaxed == relaxed)
                return 0;
        PGresult *r = libpq.exec(
            c->pq, relaxed ? "SET synchronous_commit TO off" : "SET synchronous_commit TO on");
        bool ok = libpq.resultStatus(r) == PGRES_COMMAND_OK;
        libpq.clear(r);
        c->relaxed = ok ? relaxed : c->relaxed;
        return ok ? 0 : refuse_connection(c, err);
}

enum outcome { DONE, AGAIN, BROKEN };

/* One try on one connection. *rc is what it came to. */
static enum outcome try_once(struct pg_store *s, struct pg_conn *c, struct pg_query *q,
    PGresult **out, int *rc, struct steno_error *err)
{
        bool fresh = !is_up(c);
        *rc = fresh ? connect_conn(s, c, err) : 0;
        if (*rc == 0)
                *rc = relax(c, q->relaxed, err);
        if (*rc)
                return fresh ? DONE : BROKEN;
        c->doubt = false;
        PGresult *r = libpq.execParams(
            c->pq, q->sql, q->count, q->types, q->values, q->lengths, q->formats, 1);
        ExecStatusType status = libpq.resultStatus(r);
        const char *state = r ? libpq.resultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
        if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
                if (c->doubt) {
                        libpq.clear(r);
                        *rc = error_set(err, STENO_EIO,
                            "in doubt: it is stored, but no standby has confirmed it; the same ids "
                            "or key find out");
                        return DONE;
                }
                *rc = 0;
                *out = r;
                return DONE;
        }
        char why[240];
        put_reason(why, sizeof why, libpq.errorMessage(c->pq));
        bool lost = !is_up(c);
        bool again = state && (strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0);
        *rc = lost ? error_set(err, STENO_EIO,
                         "in doubt: the connection to PostgreSQL broke (%s); the same ids or key "
                         "find out",
                         why)
                   : code_of(state);
        if (!lost && *rc < 0)
                error_set(err, *rc, "PostgreSQL: %s", why);
        libpq.clear(r);
        return lost ? BROKEN : again ? AGAIN : DONE;
}

int pg_run(struct pg_store *s, struct pg_query *q, PGresult **out, struct steno_error *err)
{
        PGresult *r = NULL;
        int rc = STENO_EIO;
        if (q->failed)
                return error_set(err, STENO_ELIMIT, "a statement with too many values");
        struct pg_conn *c = take(s);
        for (int tries = 0; tries < TRIES; tries++) {
                enum outcome how = try_once(s, c, q, &r, &rc, err);
                if (how == DONE)
                        break;
                if (how == BROKEN) { /* whether it happened is for who asks again to find out */
                        connect_conn(s, c, NULL);
                        break;
                }
                pause_ms(s, 1 << tries);
        }
        give(s, c);
        if (rc == 0 && out)
                *out = r;
        else if (r)
                libpq.clear(r);
        return rc;
}

long pg_change(struct pg_store *s, struct pg_query *q, struct steno_error *err)
{
        PGresult *r = NULL;
        int rc = pg_run(s, q, &r, err);
        if (rc)
                return rc == PG_UNIQUE ? PG_UNIQUE : rc;
        long n = strtol(libpq.cmdTuples(r), NULL, 10);
        libpq.clear(r);
        return n;
}

/* ---- transactions of several statements ---- */

static int say(struct pg_conn *c, const char *sql, struct steno_error *err)
{
        PGresult *r = libpq.exec(c->pq, sql);
        bool ok = libpq.resultStatus(r) == PGRES_COMMAND_OK;
        libpq.clear(r);
        return ok ? 0 : refuse_connection(c, err);
}

int pg_tx_begin(struct pg_store *s, struct pg_tx *tx, struct steno_error *err)
{
        *tx = (struct pg_tx){s, take(s)};
        int rc = is_up(tx->conn) ? 0 : connect_conn(s, tx->conn, err);
        if (rc == 0)
                rc = relax(tx->conn, false, err);
        if (rc == 0)
                rc = say(tx->conn, "BEGIN", err);
        if (rc)
                give(s, tx->conn);
        return rc;
}

int pg_tx_run(struct pg_tx *tx, struct pg_query *q, PGresult **out, struct steno_error *err)
{
        PGresult *r = NULL;
        int rc = 0;
        if (q->failed)
                return error_set(err, STENO_ELIMIT, "a statement with too many values");
        if (!is_up(tx->conn))
                return error_set(
                    err, STENO_EIO, "the connection to PostgreSQL broke; nothing was stored");
        q->relaxed = false; /* the commit waits for all */
        if (try_once(tx->store, tx->conn, q, &r, &rc, err) != DONE && rc == 0)
                rc = STENO_EIO;
        if (rc == 0 && out)
                *out = r;
        else if (r)
                libpq.clear(r);
        return rc;
}

long pg_tx_change(struct pg_tx *tx, struct pg_query *q, struct steno_error *err)
{
        PGresult *r = NULL;
        int rc = pg_tx_run(tx, q, &r, err);
        if (rc)
                return rc;
        long n = strtol(libpq.cmdTuples(r), NULL, 10);
        libpq.clear(r);
        return n;
}

int pg_tx_script(struct pg_tx *tx, const char *sql, struct steno_error *err)
{
        char why[240];
        PGresult *r = libpq.exec(tx->conn->pq, sql);
        ExecStatusType status = libpq.resultStatus(r);
        int rc = 0;
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
                put_reason(why, sizeof why, libpq.errorMessage(tx->conn->pq));
                int code = code_of(r ? libpq.resultErrorField(r, PG_DIAG_SQLSTATE) : NULL);
                rc = error_set(
                    err, code == PG_UNIQUE ? STENO_ECONFLICT : code, "PostgreSQL: %s", why);
        }
        libpq.clear(r);
        return rc;
}

int pg_tx_end(struct pg_tx *tx, int rc, struct steno_error *err)
{
        struct pg_conn *c = tx->conn;
        c->doubt = false;
        if (rc == 0) {
                rc = is_up(c) ? say(c, "COMMIT", err)
                              : error_set(err, STENO_EIO,
                                    "the connection to PostgreSQL broke; nothing was stored");
                if (rc == 0 && c->doubt)
                        rc = error_set(err, STENO_EIO,
                            "in doubt: it is stored, but no standby has confirmed it");
        } else if (is_up(c)) {
                say(c, "ROLLBACK", NULL);
        }
        give(tx->store, c);
        return rc;
}
