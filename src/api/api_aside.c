/* api_aside.c - see api_aside.h */
#include "api/api_aside.h"

int api_aside_open(
    struct steno_conv *conv, const char *run, struct steno_conv **out, struct steno_error *err)
{
        struct backend_store *backend;
        struct backend_conv *same;
        struct steno_store *store;
        const struct env *env;
        int rc = backend_aside(conv->backend, run, &backend, &env, err);
        if (rc == 0)
                rc = api_store_around(backend, env, &store, err);
        if (rc)
                return rc;
        rc = backend_conv_open(
            backend, str_of(steno_conv_project(conv)), str_of(steno_conv_id(conv)), &same, err);
        if (rc == 0)
                rc = api_conv_wrap(store, same, out, err);
        steno_close(store); /* the conversation keeps it */
        return rc;
}
