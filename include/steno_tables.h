/*
 * steno_tables.h - SQL tables that all servers of a store share, for data that they derive.
 *
 * A store in a database that several machines use has such tables (PostgreSQL: since version 4 of
 * its schema). A store of files has none, and the calls are STENO_EUNSUPPORTED: its server keeps a
 * file instead. Statements use the SQL that PostgreSQL and SQLite have in common; `$1` is the first
 * value. Texts are bytes. A row's numbers are read as text: SELECT CAST(x AS TEXT).
 */
#ifndef STENO_TABLES_H
#define STENO_TABLES_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

struct steno_value {
        const char *text; /* NULL: the value is `number` */
        size_t n;
        int64_t number;
};

/* Receives a row of an answer. The texts are NUL-terminated and valid until the function returns. A
 * non-zero return ends the statement, which returns that value. */
typedef int (*steno_row_fn)(void *ctx, const struct steno_value *columns, size_t count);

struct steno_statement {
        const char *sql;
        const struct steno_value *values;
        size_t count;
        steno_row_fn each; /* may be NULL */
        void *ctx;
        uint64_t changed; /* out: how many rows the statement changed */
};

struct steno_tables;

/* Does the store have such tables? */
STENO_API bool steno_tables_exist(const struct steno_store *store);
/* Begins a transaction, which steno_tables_end() ends. Transactions with the same lock run one
 * after the other. A handle is used by one thread at a time. */
STENO_API int steno_tables_begin(struct steno_store *store, const char *lock,
    struct steno_tables **out, struct steno_error *err);
/* Commits where `rc` is 0, else rolls back. Returns `rc`, or the error of a failed commit. */
STENO_API int steno_tables_end(
    struct steno_store *store, struct steno_tables *tables, int rc, struct steno_error *err);
/* Runs a statement in a transaction, or alone where `tables` is NULL. */
STENO_API int steno_tables_run(struct steno_store *store, struct steno_tables *tables,
    struct steno_statement *statement, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
