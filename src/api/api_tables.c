/*
 * api_tables.c - tables that all servers of a store share (steno_tables.h), where its kind has
 * them.
 */
#include "steno_tables.h"

#include "api/api_store.h"
#include "base/error.h"

static int refuse(struct steno_error *err)
{
        return error_set(err, STENO_EUNSUPPORTED, "this kind of store has no shared tables");
}

bool steno_tables_exist(const struct steno_store *store)
{
        return store->backend->ops->tables != NULL;
}

int steno_tables_begin(
    struct steno_store *store, const char *lock, struct steno_tables **out, struct steno_error *err)
{
        const struct backend_tables *calls = store->backend->ops->tables;
        return calls ? calls->begin(store->backend, lock, out, err) : refuse(err);
}

int steno_tables_end(
    struct steno_store *store, struct steno_tables *tables, int rc, struct steno_error *err)
{
        const struct backend_tables *calls = store->backend->ops->tables;
        return calls ? calls->end(tables, rc, err) : refuse(err);
}

int steno_tables_run(struct steno_store *store, struct steno_tables *tables,
    struct steno_statement *statement, struct steno_error *err)
{
        const struct backend_tables *calls = store->backend->ops->tables;
        return calls ? calls->run(store->backend, tables, statement, err) : refuse(err);
}
