/*
 * steno_tables.h - tables that all servers of a store share, for what they derive while they serve.
 *
 * A store that several machines use has them (PostgreSQL: those of version 4 of its schema). One of
 * files has none, and the calls are STENO_EUNSUPPORTED: whoever serves it keeps a file of its own.
 * Statements are of the SQL that PostgreSQL and SQLite have in common; `$1` is the first value.
 * Texts are bytes, and numbers of a row are asked for with CAST(x AS TEXT).
 */
#ifndef STENO_TABLES_H
#define STENO_TABLES_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

struct steno_value {
        const char *text; /* NULL: it is the number */
        size_t n;
        int64_t number;
};

/* A row of an answer; its texts end with a NUL and live until it returns. Non-zero ends the walk,
 * which returns it. */
typedef int (*steno_row_fn)(void *ctx, const struct steno_value *columns, size_t count);

struct steno_statement {
        const char *sql;
        const struct steno_value *values;
        size_t count;
        steno_row_fn each; /* may be NULL */
        void *ctx;
        uint64_t changed; /* out: rows that it changed */
};

struct steno_tables;

/* Does the store have such tables? */
STENO_API bool steno_tables_exist(const struct steno_store *store);
/* A transaction, one at a time of all that name the same lock. Ended by steno_tables_end(). One
 * thread at a time. */
STENO_API int steno_tables_begin(struct steno_store *store, const char *lock,
    struct steno_tables **out, struct steno_error *err);
/* Commits where `rc` is 0, else takes everything back. Returns `rc`, or why the commit failed. */
STENO_API int steno_tables_end(
    struct steno_store *store, struct steno_tables *tables, int rc, struct steno_error *err);
/* Runs a statement in a transaction, or alone where `tables` is NULL. */
STENO_API int steno_tables_run(struct steno_store *store, struct steno_tables *tables,
    struct steno_statement *statement, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
