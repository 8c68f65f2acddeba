/*
 * files_reader.c - reading an output that may still be written: its file, open.
 */
#include <stdlib.h>

#include "base/error.h"
#include "store/files/files_backend.h"
#include "store/files/whole.h"

struct files_reader {
        struct backend_reader base;
        const struct fs *fs;
        int fd;
        char id[sizeof((struct artifact_info *)0)->id];
};

int files_artifact_open(struct files_conv *conv, const struct artifact_info *info,
    struct files_reader **out, uint64_t *size, struct steno_error *err)
{
        struct files_reader *r = calloc(1, sizeof *r);
        if (!r)
                return error_nomem(err);
        *r =
            (struct files_reader){.base.ops = &files_backend, .fs = conv->store->env->fs, .fd = -1};
        memcpy(r->id, info->id, sizeof r->id);
        int rc = artifact_open(conv, info, &r->fd, size, err);
        if (rc)
                free(r);
        else
                *out = r;
        return rc;
}

ssize_t files_reader_read(
    struct files_reader *r, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        ssize_t got = fs_pread_all(r->fs, r->fd, p, n, (off_t)at);
        return got < 0 ? error_sys(err, (int)got, "reading %s", r->id) : got;
}

int files_reader_whole(struct files_reader *r, const struct artifact_info *info, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        struct whole whole = {.what = info->id, .size = info->size, .sha256 = info->sha256};
        return whole_read(r->fs, r->fd, &whole, sink, ctx, err);
}

void files_reader_close(struct files_reader *r)
{
        r->fs->close(r->fs, r->fd);
        free(r);
}
