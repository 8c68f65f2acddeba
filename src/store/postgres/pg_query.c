/*
 * pg_query.c - statements on connections of the pool, each with a time limit.
 *
 * A statement is sent and its answer waited for until the statement's time is over; then the server
 * is asked to cancel it. What comes back says what happened:
 *
 *   - it was cancelled before its commit: nothing happened (STENO_ETIMEOUT);
 *   - it was committed and waited for its standby: in doubt (G3);
 *   - no answer at all: the connection is given up, and it is in doubt.
 *
 * A connection that turns out to be broken before anything was sent on it is no doubt.
 */
#include "store/postgres/pg.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/wait.h"

#define TRIES 8        /* of a statement that lost against another one */
#define CANCEL_MS 2000 /* for the server to say what became of it */
#define ENDING_MS 300  /* for it to end when a signal comes */

static const struct {
        const char *state; /* its beginning */
        int code;
} CODES[] = {
    {"23505", PG_UNIQUE},
    {"53100", STENO_EFULL},
    {"53200", STENO_ENOMEM},
    {"55P03", STENO_ETIMEOUT}, /* the server's limit for waiting for a lock */
    {"25006", STENO_EDENIED},  /* a standby, or a primary that was set to read only */
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

/* ---- asking with a time limit ---- */

/* Until the next result can be had, or there will be none. False: it is too late, or the process is
 * to end (*until is sooner then). */
static bool await_result(struct pg_conn *c, int64_t *until)
{
        for (;;) {
                int unsent = libpq.flush(c->pq);
                if (unsent < 0 || !libpq.consumeInput(c->pq) || !libpq.isBusy(c->pq))
                        return true;
                int64_t left = *until - time_monotonic_ms();
                if (left <= 0)
                        return false;
                struct pollfd p = {.fd = libpq.socket(c->pq),
                    .events = (short)(unsent ? POLLIN | POLLOUT : POLLIN)};
                if (poll(&p, 1, (int)left) < 0 && errno == EINTR && left > ENDING_MS &&
                    fs_waits_end())
                        *until = time_monotonic_ms() + ENDING_MS;
        }
}

static bool is_fine(const PGresult *r)
{
        ExecStatusType status = libpq.resultStatus(r);
        return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* The answer of what was sent, the commit's included: an error where there is one. False: it is too
 * late. */
static bool collect(struct pg_conn *c, int64_t until, PGresult **out)
{
        PGresult *found = NULL;
        for (;;) {
                if (!await_result(c, &until)) {
                        libpq.clear(found);
                        return false;
                }
                PGresult *r = libpq.getResult(c->pq);
                if (!r)
                        break;
                if (found && !is_fine(found)) {
                        libpq.clear(r);
                } else {
                        libpq.clear(found);
                        found = r;
                }
        }
        *out = found;
        return true;
}

/* The same; a statement whose time is over is cancelled. NULL: its outcome is unknown, and the
 * connection is gone. */
static PGresult *hear(struct pg_conn *c, int64_t until)
{
        PGresult *r = NULL;
        if (collect(c, until, &r))
                return r;
        pg_pool_cancel(c);
        if (collect(c, time_monotonic_ms() + CANCEL_MS, &r))
                return r;
        pg_pool_drop(c);
        return NULL;
}

/* A statement without values, whose answer matters only as far as it succeeds. */
static int say(struct pg_conn *c, const char *sql, int64_t until, struct steno_error *err)
{
        c->doubt = false;
        PGresult *r = libpq.sendQuery(c->pq, sql) ? hear(c, until) : NULL;
        bool ok = r && is_fine(r);
        libpq.clear(r);
        return ok      ? 0
               : c->pq ? pg_pool_refuse(c, err)
                       : error_set(err, STENO_EIO, "PostgreSQL does not answer");
}

static int relax(struct pg_conn *c, bool relaxed, int64_t until, struct steno_error *err)
{
        if (c->relaxed == relaxed)
                return 0;
        int rc = say(c, relaxed ? "SET synchronous_commit TO off" : PG_DURABLE, until, err);
        if (rc == 0)
                c->relaxed = relaxed;
        return rc;
}

/* A connection on which a statement can be sent: one that the server has closed meanwhile is
 * noticed here, before anybody has to ask what became of a statement. */
static int make_ready(
    struct pg_store *s, struct pg_conn **at, bool relaxed, int64_t until, struct steno_error *err)
{
        for (;;) {
                struct pg_conn *c = *at;
                if (pg_pool_is_up(c) && !c->cancelled && libpq.consumeInput(c->pq) &&
                    pg_pool_is_up(c) && relax(c, relaxed, until, NULL) == 0)
                        return 0;
                if (c->snapshot)
                        return error_set(err, STENO_EIO,
                            "the connection to PostgreSQL broke while a copy was made");
                int rc = pg_pool_connect(s, at, until, err);
                if (rc || *at == c)
                        return rc ? rc : relax(c, relaxed, until, err);
        }
}

/* ---- statements ---- */

enum outcome { DONE, AGAIN, BROKEN };

static int doubt(struct steno_error *err, const char *why)
{
        return error_set(err, STENO_EINDOUBT,
            "in doubt: %.120s; it may be stored or not, so send it again with the same ids or key",
            why);
}

/* What an answer that is not a success comes to. */
static enum outcome explain(
    struct pg_conn *c, struct pg_query *q, PGresult *r, int *rc, struct steno_error *err)
{
        const char *state = r ? libpq.resultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
        char why[200] = "PostgreSQL does not answer";
        if (c->pq)
                pg_pool_reason(libpq.errorMessage(c->pq), why, sizeof why);
        if (!pg_pool_is_up(c)) {
                *rc = doubt(err, why);
                if (err)
                        err->sys = ECONNRESET; /* a second try may succeed */
                return BROKEN;
        }
        if (state && strcmp(state, "57014") == 0) {
                if (fs_waits_end())
                        *rc = error_set(
                            err, STENO_EINTERRUPTED, "interrupted; this attempt stored nothing");
                else if (c->cancelled)
                        *rc = error_set(err, STENO_ETIMEOUT,
                            "PostgreSQL took longer than %d ms; this attempt stored nothing",
                            q->patience_ms);
                else /* a limit of the server's, or somebody there */
                        *rc = error_set(err, STENO_ETIMEOUT,
                            "PostgreSQL: %.150s; this attempt stored nothing", why);
                return DONE;
        }
        *rc = code_of(state);
        if (*rc < 0)
                error_set(err, *rc, "PostgreSQL: %s", why);
        if (!state || (strcmp(state, "40001") != 0 && strcmp(state, "40P01") != 0))
                return DONE;
        if (err)
                err->sys = EAGAIN;
        return AGAIN;
}

/* The server learns it once for each session. False: it did not answer well, and the statement is
 * sent as it is. */
static bool is_prepared(struct pg_conn *c, struct pg_query *q, const char *name, int64_t until)
{
        unsigned bit = 1u << q->prepared;
        if (q->prepared == PG_UNPREPARED || c->prepared & bit)
                return q->prepared != PG_UNPREPARED;
        PGresult *r =
            libpq.sendPrepare(c->pq, name, q->sql, q->count, q->types) ? hear(c, until) : NULL;
        bool ok = r && is_fine(r);
        libpq.clear(r);
        if (ok)
                c->prepared |= bit;
        return ok;
}

static bool send_query(struct pg_conn *c, struct pg_query *q, int64_t until)
{
        char name[16];
        snprintf(name, sizeof name, "steno%d", (int)q->prepared);
        if (is_prepared(c, q, name, until))
                return libpq.sendQueryPrepared(
                    c->pq, name, q->count, q->values, q->lengths, q->formats, 1);
        return pg_pool_is_up(c) && libpq.sendQueryParams(c->pq, q->sql, q->count, q->types,
                                       q->values, q->lengths, q->formats, 1);
}

/* One try on one connection that is ready. *rc is what it came to. */
static enum outcome try_once(struct pg_conn *c, struct pg_query *q, int64_t until, PGresult **out,
    int *rc, struct steno_error *err)
{
        c->doubt = false;
        PGresult *r = NULL;
        if (send_query(c, q, until))
                r = hear(c, until);
        enum outcome how = DONE;
        if (r && is_fine(r) && !c->doubt) {
                *rc = 0;
                *out = r;
                return DONE;
        }
        if (r && is_fine(r))
                *rc = doubt(err, "it is stored, but no standby has confirmed it");
        else
                how = explain(c, q, r, rc, err);
        libpq.clear(r);
        return how;
}

/* Asking twice is the same as asking once. */
static bool is_repeatable(const struct pg_query *q)
{
        return q->repeatable || strncmp(q->sql, "SELECT", 6) == 0;
}

static int run(struct pg_store *s, struct pg_query *q, PGresult **out, struct steno_error *err)
{
        int64_t until = time_monotonic_ms() + q->patience_ms;
        struct pg_conn *c;
        int rc = q->failed ? error_set(err, STENO_ELIMIT, "a statement with too many values")
                           : pg_pool_take(s, until, &c, err);
        if (rc)
                return rc;
        for (int tries = 0; tries < TRIES; tries++) {
                rc = make_ready(s, &c, q->relaxed, until, err);
                if (rc)
                        break;
                enum outcome how = try_once(c, q, until, out, &rc, err);
                if (how == DONE || time_monotonic_ms() >= until)
                        break;
                if (how == BROKEN && !is_repeatable(q))
                        break;
                if (how == AGAIN)
                        wait_sleep(1 << tries);
        }
        if (c)
                pg_pool_give(s, c);
        return rc;
}

int pg_run(struct pg_store *s, struct pg_query *q, PGresult **out, struct steno_error *err)
{
        PGresult *r = NULL;
        q->patience_ms = q->patience_ms ? q->patience_ms : PG_READ_MS;
        int rc = run(s, q, &r, err);
        if (rc == 0 && out)
                *out = r;
        else
                libpq.clear(r);
        return rc;
}

static long count_rows(PGresult *r)
{
        long n = strtol(libpq.cmdTuples(r), NULL, 10);
        libpq.clear(r);
        return n;
}

long pg_change(struct pg_store *s, struct pg_query *q, struct steno_error *err)
{
        PGresult *r = NULL;
        q->patience_ms = q->patience_ms ? q->patience_ms : s->commit_ms;
        int rc = run(s, q, &r, err);
        return rc ? rc : count_rows(r);
}

/* ---- transactions of several statements ---- */

static int begin(struct pg_store *s, const char *how, struct pg_tx *tx, struct steno_error *err)
{
        int64_t until = time_monotonic_ms() + PG_READ_MS;
        *tx = (struct pg_tx){.store = s};
        int rc = pg_pool_take(s, until, &tx->conn, err);
        if (rc)
                return rc;
        rc = make_ready(s, &tx->conn, false, until, err);
        if (rc == 0)
                rc = say(tx->conn, how, until, err);
        if (rc && tx->conn)
                pg_pool_give(s, tx->conn);
        return rc;
}

int pg_tx_begin(struct pg_store *s, struct pg_tx *tx, struct steno_error *err)
{
        return begin(s, "BEGIN", tx, err);
}

int pg_tx_run(struct pg_tx *tx, struct pg_query *q, PGresult **out, struct steno_error *err)
{
        PGresult *r = NULL;
        int rc = 0;
        if (q->failed)
                return error_set(err, STENO_ELIMIT, "a statement with too many values");
        if (!pg_pool_is_up(tx->conn))
                return error_set(
                    err, STENO_EIO, "the connection to PostgreSQL broke; nothing was stored");
        q->patience_ms = q->patience_ms ? q->patience_ms : PG_READ_MS;
        int64_t until = time_monotonic_ms() + q->patience_ms;
        enum outcome how = try_once(tx->conn, q, until, &r, &rc, err);
        if (how == BROKEN) /* there was no commit */
                rc = error_set(
                    err, STENO_EIO, "the connection to PostgreSQL broke; nothing was stored");
        if (rc == 0 && out)
                *out = r;
        else
                libpq.clear(r);
        return rc;
}

long pg_tx_change(struct pg_tx *tx, struct pg_query *q, struct steno_error *err)
{
        PGresult *r = NULL;
        int rc = pg_tx_run(tx, q, &r, err);
        return rc ? rc : count_rows(r);
}

/* Without a time limit: it is how tables are made and changed. */
int pg_tx_script(struct pg_tx *tx, const char *sql, struct steno_error *err)
{
        char why[240];
        PGresult *r = libpq.exec(tx->conn->pq, sql);
        int rc = 0;
        if (!is_fine(r)) {
                pg_pool_reason(libpq.errorMessage(tx->conn->pq), why, sizeof why);
                int code = code_of(r ? libpq.resultErrorField(r, PG_DIAG_SQLSTATE) : NULL);
                rc = error_set(
                    err, code == PG_UNIQUE ? STENO_ECONFLICT : code, "PostgreSQL: %s", why);
        }
        libpq.clear(r);
        return rc;
}

static int commit(struct pg_tx *tx, struct steno_error *err)
{
        struct pg_conn *c = tx->conn;
        if (!pg_pool_is_up(c))
                return error_set(
                    err, STENO_EIO, "the connection to PostgreSQL broke; nothing was stored");
        int rc = say(c, "COMMIT", time_monotonic_ms() + tx->store->commit_ms, err);
        if (rc == 0 && c->doubt)
                rc = doubt(err, "it is stored, but no standby has confirmed it");
        else if (rc && !pg_pool_is_up(c))
                rc = doubt(err, "the connection to PostgreSQL broke during the commit");
        return rc;
}

int pg_tx_end(struct pg_tx *tx, int rc, struct steno_error *err)
{
        struct pg_conn *c = tx->conn;
        if (rc == 0)
                rc = commit(tx, err);
        else if (pg_pool_is_up(c) && !c->cancelled)
                say(c, "ROLLBACK", time_monotonic_ms() + PG_READ_MS, NULL);
        if (c->cancelled)
                pg_pool_drop(c);
        pg_pool_give(tx->store, c);
        return rc;
}

/* ---- a conversation at one moment ---- */

/* Between two statements an output may be written to a disk, or come from a bucket. */
#define BEGIN_SNAPSHOT                                                                             \
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL"                               \
        " idle_in_transaction_session_timeout TO 0"

/* A store whose pool is the one connection of the transaction, for as long as that lasts. */
int pg_snapshot_open(struct pg_conv *c, struct pg_snapshot *out, struct steno_error *err)
{
        struct pg_store *s = c->store;
        struct pg_tx tx;
        int rc = begin(s, BEGIN_SNAPSHOT, &tx, err);
        if (rc)
                return rc;
        *out = (struct pg_snapshot){
            .conv = {.base = c->base, .project = c->project, .id = c->id, .trashed = c->trashed},
            .store = {.base = s->base,
                .env = s->env,
                .url = s->url,
                .name = s->name,
                .owner = s->owner,
                .pool_size = 1,
                .reached = true,
                .lease_ms = s->lease_ms,
                .commit_ms = s->commit_ms,
                .blobs = s->blobs},
            .conn = *tx.conn,
            .tx = tx};
        memcpy(out->store.schema, s->schema, sizeof s->schema);
        memcpy(out->conv.uid, c->uid, sizeof c->uid);
        out->conv.store = &out->store;
        out->store.pool = &out->conn;
        out->conn.busy = false;
        out->conn.snapshot = true;
        pthread_mutex_init(&out->store.mutex, NULL);
        wait_init(&out->store.given);
        return 0;
}

void pg_snapshot_close(struct pg_snapshot *s)
{
        if (!s->tx.store)
                return;
        *s->tx.conn = s->conn;
        s->tx.conn->busy = true;
        s->tx.conn->snapshot = false;
        pg_tx_end(&s->tx, STENO_EINTERRUPTED, NULL); /* nothing was changed */
        pthread_cond_destroy(&s->store.given);
        pthread_mutex_destroy(&s->store.mutex);
        s->tx.store = NULL;
}
