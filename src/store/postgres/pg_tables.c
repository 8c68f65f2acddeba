/*
 * pg_tables.c - tables that all servers share, in PostgreSQL (store/backend_tables.h).
 *
 * The lock is one of the transaction, so it goes with its holder. A process that is idle in a
 * transaction, because it is stopped or cut off, loses the transaction after IDLE_MS, and its next
 * statement fails.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

#define IDLE_MS 30000 /* less than others wait for the lock (PG_READ_MS) */
#define COLUMNS_MAX 16

struct steno_tables {
        struct pg_tx tx;
};

static int take_lock(struct pg_tx *tx, const char *lock, struct steno_error *err)
{
        struct pg_query q;
        char sql[80];
        snprintf(sql, sizeof sql, "SET LOCAL idle_in_transaction_session_timeout = %d", IDLE_MS);
        int rc = pg_tx_script(tx, sql, err);
        if (rc)
                return rc;
        pg_query_init(&q, "SELECT pg_advisory_xact_lock(hashtextextended($1 || $2, 0))");
        pg_cstr(&q, tx->store->schema);
        pg_cstr(&q, lock);
        return pg_tx_run(tx, &q, NULL, err);
}

static int tables_begin(struct backend_store *store, const char *lock, struct steno_tables **out,
    struct steno_error *err)
{
        struct steno_tables *t = calloc(1, sizeof *t);
        if (!t)
                return error_nomem(err);
        int rc = pg_tx_begin((struct pg_store *)store, &t->tx, err);
        if (rc == 0) {
                rc = take_lock(&t->tx, lock, err);
                if (rc)
                        pg_tx_end(&t->tx, rc, NULL);
        }
        if (rc)
                free(t);
        else
                *out = t;
        return rc;
}

static int tables_end(struct steno_tables *t, int rc, struct steno_error *err)
{
        rc = pg_tx_end(&t->tx, rc, err);
        free(t);
        return rc;
}

static int tell_rows(const PGresult *r, const struct steno_statement *st)
{
        struct steno_value columns[COLUMNS_MAX];
        int count = libpq.nfields(r), rc = 0;
        for (int i = 0; rc == 0 && st->each && i < libpq.ntuples(r); i++) {
                for (int k = 0; k < count && k < COLUMNS_MAX; k++) {
                        struct str v = pg_get(r, i, k);
                        columns[k] = (struct steno_value){.text = v.p, .n = v.n};
                }
                rc = st->each(st->ctx, columns, (size_t)count);
        }
        return rc;
}

static int tables_run(struct backend_store *store, struct steno_tables *t,
    struct steno_statement *st, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r = NULL;
        pg_query_init(&q, st->sql);
        if (!pg_query_room(&q, (int)st->count))
                return error_nomem(err);
        for (size_t i = 0; i < st->count; i++)
                if (st->values[i].text)
                        pg_bytes(&q, str_span(st->values[i].text, st->values[i].n));
                else
                        pg_u64(&q, (uint64_t)st->values[i].number);
        q.repeatable = true; /* what is derived is the same when it is noted twice */
        int rc = t ? pg_tx_run(&t->tx, &q, &r, err) : pg_run((struct pg_store *)store, &q, &r, err);
        pg_query_release(&q);
        if (rc > 0)
                rc = error_set(err, STENO_ECONFLICT, "PostgreSQL: a row is there already");
        if (rc)
                return rc;
        st->changed = strtoull(libpq.cmdTuples(r), NULL, 10);
        rc = tell_rows(r, st);
        libpq.clear(r);
        return rc;
}

const struct backend_tables pg_tables = {
    .begin = tables_begin,
    .end = tables_end,
    .run = tables_run,
};
