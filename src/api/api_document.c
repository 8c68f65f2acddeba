/*
 * api_document.c - small texts that belong to a store (store/backend_moves.h), for those who serve
 * it: tokens, keys.
 */
#include "steno_document.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_store.h"
#include "base/error.h"

/* A document is not a path. */
static int check_name(const char *name, struct steno_error *err)
{
        static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
        size_t n = strlen(name);
        return n && n <= 60 && name[0] != '.' && strspn(name, LETTERS) == n
                   ? 0
                   : error_set(err, STENO_EINVAL, "\"%.60s\" is not the name of a document", name);
}

int steno_document_read(struct steno_store *store, const char *name, size_t max, char **text,
    size_t *n, uint64_t *stamp, struct steno_error *err)
{
        int rc = check_name(name, err);
        return rc ? rc : backend_document_read(store->backend, name, max, text, n, stamp, err);
}

int steno_document_stamp(
    struct steno_store *store, const char *name, uint64_t *stamp, struct steno_error *err)
{
        int rc = check_name(name, err);
        return rc ? rc : backend_document_stamp(store->backend, name, stamp, err);
}

struct changing {
        steno_document_fn change;
        void *ctx;
};

static int change_text(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        struct changing *c = ctx;
        char *text = NULL;
        size_t n = 0;
        int rc = c->change(c->ctx, old.n ? old.p : "", old.n, &text, &n, err);
        if (rc == 0)
                buf_put(out, text, n);
        free(text);
        return rc;
}

int steno_document_change(struct steno_store *store, const char *name, size_t max, int patience_ms,
    steno_document_fn change, void *ctx, struct steno_error *err)
{
        struct changing c = {change, ctx};
        int rc = check_name(name, err);
        return rc ? rc
                  : backend_document_change(
                        store->backend, name, max, patience_ms, change_text, &c, err);
}
