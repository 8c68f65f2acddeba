/*
 * tables.h - the tables in which the gateway keeps what it derives: SQLite in the gateway's folder,
 * or the store's own where several servers share it (steno_tables.h). Statements are the same for
 * both; `$1` is the first value, and numbers of a row are asked for with CAST(x AS TEXT).
 *
 * Any thread may run statements; a transaction has one.
 */
#ifndef GATEWAY_TABLES_H
#define GATEWAY_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "steno_tables.h"

struct tables;

/* `path` is the store's folder or the server's own; `name` and `schema` are those of the SQLite
 * file. */
struct tables_options {
        struct steno_store *store;
        const char *path;
        const char *name;
        const char *schema;
};

int tables_open(const struct tables_options *opt, struct tables **out, struct steno_error *err);
/* NULL does nothing. */
void tables_close(struct tables *t);

/* Transactions with the same lock run one after the other. */
int tables_begin(struct tables *t, const char *lock, struct steno_error *err);
int tables_commit(struct tables *t, struct steno_error *err);
void tables_rollback(struct tables *t);

/* A key for finding rows. It may be longer than an index of PostgreSQL allows. */
struct steno_value tables_key(struct str key);
struct steno_value tables_text(struct str text);
struct steno_value tables_number(uint64_t n);

/* `st->sql` is a constant: its statement is kept. Values are those of the functions above. */
int tables_run(struct tables *t, struct steno_statement *st, struct steno_error *err);

#endif
