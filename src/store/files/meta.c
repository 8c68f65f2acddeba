/*
 * meta.c - meta.json: what is known of a conversation beside its messages. Replaced as a whole,
 * under the conversation's lock.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

int files_conv_meta(struct files_conv *c, char **json, size_t *n, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        int rc = fs_slurp(fs, c->dir, "meta.json", META_MAX, json, n);
        if (rc == -ENOENT) {
                *json = strdup("{}");
                *n = 2;
                return *json ? 0 : error_nomem(err);
        }
        return rc ? error_sys(err, rc, "reading meta.json") : 0;
}

int files_conv_change_meta(struct files_conv *c,
    int (*change)(void *ctx, struct str old, struct buf *out, struct steno_error *err), void *ctx,
    struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct buf out;
        char *old = NULL;
        size_t n = 0;
        int rc = files_conv_lock(c, err);
        if (rc)
                return rc;
        buf_init(&out, META_MAX);
        rc = files_conv_meta(c, &old, &n, err);
        if (rc == 0)
                rc = change(ctx, str_span(old, n), &out, err);
        if (rc == 0)
                rc = buf_check(&out, err);
        if (rc == 0)
                rc = recent_note(c, err);
        if (rc == 0) {
                int sys = fs_replace(fs, c->dir, "meta.json", out.p, out.n);
                if (sys)
                        rc = error_sys(err, sys, "writing meta.json");
        }
        files_conv_unlock(c);
        buf_release(&out);
        free(old);
        return rc;
}
