/*
 * backend_kinds.c - which kinds of store there are, and which of them a path or URL names.
 */
#include "store/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_url.h"

/* "sqlite:x" and "s3://x" begin with the name of a kind, "./sqlite:x" and "c:x" do not. */
static size_t scheme_length(const char *url)
{
        static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        size_t n = strspn(url, LETTERS);
        while (n > 0 && url[n] && (strchr(LETTERS, url[n]) || strchr("0123456789+-.", url[n])))
                n++;
        return n >= 2 && url[n] == ':' ? n : 0;
}

static int refuse_scheme(const char *url, size_t n, struct steno_error *err)
{
        return error_set(err, STENO_EUNSUPPORTED,
            "\"%.60s\": there is no kind of store \"%.*s\"; a store is a path, a file: URL "
            "or a postgres: URL (and a path can begin with ./)",
            url, (int)(n > 40 ? 40 : n), url);
}

int backend_find(
    const char *url, const struct steno_backend **out, char **where, struct steno_error *err)
{
        char *path = NULL;
        if (!url || !*url)
                return error_set(err, STENO_EINVAL, "no store was named");
        if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0) {
                char *copy = strdup(url);
                if (!copy)
                        return error_nomem(err);
                *out = &postgres_backend;
                *where = copy;
                return 0;
        }
        if (!file_url_is(url) && scheme_length(url))
                return refuse_scheme(url, scheme_length(url), err);
        int rc = file_url_path(url, &path, err);
        if (rc == 0 && !*path)
                rc = error_set(err, STENO_EINVAL, "no store was named");
        if (rc) {
                free(path);
                return rc;
        }
        *out = &files_backend;
        *where = path;
        return 0;
}

int backend_lacks(struct steno_error *err, const struct steno_backend *ops, const char *what)
{
        return error_set(
            err, STENO_EUNSUPPORTED, "a store of the kind \"%s\" has no %s", ops->name, what);
}
