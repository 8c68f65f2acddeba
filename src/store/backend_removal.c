/*
 * backend_removal.c - the calls of backend_removal.h, each through the table of its handle: trash,
 * purge and forks.
 */
#include "store/backend_call.h"

int backend_trash_put(struct backend_conv *conv, char name[TRASH_NAME], struct steno_error *err)
{
        return BACKEND_CALL(conv, trash_put, name, err);
}

int backend_trash_list(
    struct backend_store *store, bool sizes, struct trash_list *out, struct steno_error *err)
{
        return BACKEND_CALL(store, trash_list, sizes, out, err);
}

int backend_trash_open(struct backend_store *store, const struct trash_item *item,
    struct backend_conv **out, struct steno_error *err)
{
        return BACKEND_CALL(store, trash_open, item, out, err);
}

int backend_trash_put_back(struct backend_store *store, const struct trash_item *item,
    const char *as, struct steno_error *err)
{
        return BACKEND_CALL(store, trash_put_back, item, as, err);
}

int backend_trash_destroy(
    struct backend_store *store, const struct trash_item *item, struct steno_error *err)
{
        return BACKEND_CALL(store, trash_destroy, item, err);
}

int backend_trash_sweep(struct backend_store *store, struct steno_error *err)
{
        return BACKEND_CALL(store, trash_sweep, err);
}

int backend_purge(struct backend_conv *conv, struct purge_result *out, struct steno_error *err)
{
        return BACKEND_CALL(conv, purge, out, err);
}

int backend_fork(struct backend_conv *origin, const struct fork_request *request,
    struct backend_conv **out, uint64_t *seq, struct steno_error *err)
{
        return BACKEND_CALL(origin, fork, request, out, seq, err);
}
