/*
 * backend_tables.h - tables that all servers of a store share (steno_tables.h). A kind that only
 * one machine uses has no such table of calls.
 */
#ifndef STORE_BACKEND_TABLES_H
#define STORE_BACKEND_TABLES_H

#include "steno_tables.h"

struct backend_store;

struct backend_tables {
        int (*begin)(struct backend_store *store, const char *lock, struct steno_tables **out,
            struct steno_error *err);
        int (*end)(struct steno_tables *tables, int rc, struct steno_error *err);
        int (*run)(struct backend_store *store, struct steno_tables *tables,
            struct steno_statement *statement, struct steno_error *err);
};

#endif
