/*
 * api_watch.c - a process with a client that may answer a run's questions notes this in the store,
 * so that the process that holds the run knows how long to wait.
 */
#include <stdlib.h>

#include "api/api_store.h"
#include "base/error.h"

struct steno_watcher {
        struct steno_store *store;
        struct backend_watcher *watcher;
};

int steno_watch_begin(struct steno_store *store, const char *project, struct steno_watcher **out,
    struct steno_error *err)
{
        struct str p;
        int rc = api_store_project(project, &p, err);
        if (rc)
                return rc;
        struct steno_watcher *w = malloc(sizeof *w);
        if (!w)
                return error_nomem(err);
        rc = backend_watch(store->backend, p, &w->watcher, err);
        if (rc) {
                free(w);
                return rc;
        }
        w->store = store;
        api_store_hold(store);
        *out = w;
        return 0;
}

void steno_watch_end(struct steno_watcher *w)
{
        if (!w)
                return;
        backend_watch_end(w->watcher);
        api_store_release(w->store);
        free(w);
}

bool steno_watched(struct steno_store *store, const char *project)
{
        struct str p;
        return api_store_project(project, &p, NULL) == 0 && backend_watched(store->backend, p);
}
