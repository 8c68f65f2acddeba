/*
 * tables.c - see tables.h
 */
#include "gateway/tables.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define KEPT 24        /* statements */
#define COLUMNS_MAX 16 /* of a row */
#define VALUES_MAX 128 /* of a statement */
#define KEY_MAX 512    /* a longer key is known by its hash, where an index has a limit */
#define BUSY_MS 10000

/* Of steno_value.number, where there is a text. */
enum { IS_TEXT, IS_KEY };

struct tables {
        struct steno_store *shared; /* NULL: the file */
        struct steno_tables *tx;    /* of `shared` */
        sqlite3 *db;
        pthread_mutex_t mutex; /* the file and its statements */
        struct {
                const char *sql;
                sqlite3_stmt *statement;
        } kept[KEPT];
        size_t count;
};

struct steno_value tables_key(struct str key)
{
        return (struct steno_value){.text = key.n ? key.p : "", .n = key.n, .number = IS_KEY};
}

struct steno_value tables_text(struct str text)
{
        return (struct steno_value){.text = text.n ? text.p : "", .n = text.n, .number = IS_TEXT};
}

struct steno_value tables_number(uint64_t n)
{
        return (struct steno_value){.number = (int64_t)n};
}

/* ---- a file ---- */

static int failed(struct tables *t, struct steno_error *err)
{
        return error_set(err, STENO_EIO, "the gateway's index: %s", sqlite3_errmsg(t->db));
}

static int execute(struct tables *t, const char *sql, struct steno_error *err)
{
        return sqlite3_exec(t->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(t, err);
}

static int open_file(struct tables *t, const struct tables_options *opt, struct steno_error *err)
{
        char *name = NULL;
        if (asprintf(&name, "%s/gateway/%s", opt->path, opt->name) < 0)
                return error_nomem(err);
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
        int rc = sqlite3_open_v2(name, &t->db, flags, NULL) == SQLITE_OK ? 0 : failed(t, err);
        free(name);
        if (rc)
                return rc;
        sqlite3_busy_timeout(t->db, BUSY_MS);
        rc = execute(t, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;", err);
        return rc ? rc : execute(t, opt->schema, err);
}

static sqlite3_stmt *prepare(struct tables *t, const char *sql)
{
        sqlite3_stmt *s = NULL;
        for (size_t i = 0; i < t->count; i++)
                if (t->kept[i].sql == sql)
                        return t->kept[i].statement;
        if (t->count == KEPT || sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) != SQLITE_OK)
                return NULL;
        t->kept[t->count].sql = sql;
        t->kept[t->count++].statement = s;
        return s;
}

static void bind(sqlite3_stmt *s, const struct steno_statement *st)
{
        char name[24];
        for (size_t i = 0; i < st->count; i++) {
                const struct steno_value *v = &st->values[i];
                snprintf(name, sizeof name, "$%zu", i + 1);
                int at = sqlite3_bind_parameter_index(s, name);
                if (at && v->text)
                        sqlite3_bind_text(s, at, v->text, (int)v->n, SQLITE_STATIC);
                else if (at)
                        sqlite3_bind_int64(s, at, v->number);
        }
}

static int tell_row(sqlite3_stmt *s, const struct steno_statement *st)
{
        struct steno_value columns[COLUMNS_MAX];
        int count = sqlite3_column_count(s);
        for (int i = 0; i < count && i < COLUMNS_MAX; i++) {
                const char *text = (const char *)sqlite3_column_text(s, i);
                columns[i] = tables_text(str_span(text, (size_t)sqlite3_column_bytes(s, i)));
        }
        return st->each ? st->each(st->ctx, columns, (size_t)count) : 0;
}

static int run_here(struct tables *t, struct steno_statement *st, struct steno_error *err)
{
        pthread_mutex_lock(&t->mutex);
        sqlite3_stmt *s = prepare(t, st->sql);
        int step = SQLITE_ERROR, rc = 0;
        if (s) {
                bind(s, st);
                while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
                        rc = tell_row(s, st);
                st->changed = (uint64_t)sqlite3_changes(t->db);
        }
        if (rc == 0 && step != SQLITE_DONE)
                rc = failed(t, err);
        if (s) {
                sqlite3_reset(s);
                sqlite3_clear_bindings(s);
        }
        pthread_mutex_unlock(&t->mutex);
        return rc;
}

/* ---- the store's ---- */

static int run_there(struct tables *t, struct steno_statement *st, struct steno_error *err)
{
        struct steno_value values[VALUES_MAX];
        char hashes[VALUES_MAX][SHA256_HEX];
        struct steno_statement sent = *st;
        if (st->count > VALUES_MAX)
                return error_set(err, STENO_ELIMIT, "a statement with too many values");
        for (size_t i = 0; i < st->count; i++) {
                values[i] = st->values[i];
                if (!values[i].text || values[i].number != IS_KEY || values[i].n <= KEY_MAX)
                        continue;
                if (hash_sha256_hex(values[i].text, values[i].n, hashes[i]))
                        return error_nomem(err);
                values[i].text = hashes[i];
                values[i].n = strlen(hashes[i]);
        }
        sent.values = values;
        int rc = steno_tables_run(t->shared, t->tx, &sent, err);
        st->changed = sent.changed;
        return rc;
}

/* ---- both ---- */

int tables_open(const struct tables_options *opt, struct tables **out, struct steno_error *err)
{
        struct tables *t = calloc(1, sizeof *t);
        if (!t)
                return error_nomem(err);
        pthread_mutex_init(&t->mutex, NULL);
        int rc = 0;
        if (steno_tables_exist(opt->store))
                t->shared = opt->store;
        else
                rc = open_file(t, opt, err);
        if (rc) {
                tables_close(t);
                return rc;
        }
        *out = t;
        return 0;
}

void tables_close(struct tables *t)
{
        if (!t)
                return;
        for (size_t i = 0; i < t->count; i++)
                sqlite3_finalize(t->kept[i].statement);
        sqlite3_close(t->db);
        pthread_mutex_destroy(&t->mutex);
        free(t);
}

int tables_begin(struct tables *t, const char *lock, struct steno_error *err)
{
        return t->shared ? steno_tables_begin(t->shared, lock, &t->tx, err)
                         : execute(t, "BEGIN IMMEDIATE", err);
}

int tables_commit(struct tables *t, struct steno_error *err)
{
        struct steno_tables *tx = t->tx;
        if (!t->shared)
                return execute(t, "COMMIT", err);
        t->tx = NULL;
        return steno_tables_end(t->shared, tx, 0, err);
}

void tables_rollback(struct tables *t)
{
        struct steno_tables *tx = t->tx;
        t->tx = NULL;
        if (!t->shared)
                execute(t, "ROLLBACK", NULL);
        else if (tx)
                steno_tables_end(t->shared, tx, STENO_EIO, NULL);
}

int tables_run(struct tables *t, struct steno_statement *st, struct steno_error *err)
{
        st->changed = 0;
        return t->shared ? run_there(t, st, err) : run_here(t, st, err);
}
