/* unzstd.c - see unzstd.h */
#include "base/unzstd.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fs.h"
#include "base/libzstd.h"
#include "base/limits.h"

#define BLOCK ((size_t)128 * 1024)

bool unzstd_is(const void *p, size_t n)
{
        return n >= 4 && memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0;
}

size_t unzstd_peek(const void *p, size_t n, char *out, size_t cap)
{
        if (!unzstd_is(p, n) || libzstd_need(NULL))
                return 0;
        ZSTD_DCtx *zstd = libzstd.createDCtx();
        if (!zstd)
                return 0;
        libzstd.DCtx_setParameter(zstd, ZSTD_d_windowLogMax, BUNDLE_WINDOW_LOG);
        ZSTD_inBuffer in = {p, n, 0};
        ZSTD_outBuffer to = {out, cap, 0};
        size_t left = libzstd.decompressStream(zstd, &to, &in);
        libzstd.freeDCtx(zstd);
        return libzstd.isError(left) ? 0 : to.pos;
}

struct expanding {
        ZSTD_DCtx *zstd;
        char *block; /* compressed, */
        char *plain; /* and not */
        int from;
        int to;
        uint64_t read;
        uint64_t made;
        bool inside; /* a frame */
};

static int refuse(struct steno_error *err, const char *why)
{
        return error_set(err, STENO_EPROTO, "it cannot be expanded: %s", why);
}

/* All that one block gives. */
static int expand(struct expanding *x, size_t n, struct steno_error *err)
{
        ZSTD_inBuffer in = {x->block, n, 0};
        bool full = true;
        while (in.pos < in.size || full) {
                ZSTD_outBuffer out = {x->plain, BLOCK, 0};
                size_t left = libzstd.decompressStream(x->zstd, &out, &in);
                if (libzstd.isError(left))
                        return refuse(err, libzstd.getErrorName(left));
                x->inside = left != 0;
                full = out.pos == out.size;
                int sys = fs_pwrite_all(fs_real(), x->to, x->plain, out.pos, (off_t)x->made);
                if (sys)
                        return error_sys(err, sys, "writing a temporary file");
                x->made += out.pos;
                if (x->made > BUNDLE_SMALL && x->made / BUNDLE_RATIO > x->read)
                        return error_set(err, STENO_ELIMIT, "it expands too far");
        }
        return 0;
}

static int expand_all(struct expanding *x, struct steno_error *err)
{
        for (;;) {
                ssize_t got = fs_pread_all(fs_real(), x->from, x->block, BLOCK, (off_t)x->read);
                if (got < 0)
                        return error_sys(err, (int)got, "reading it");
                if (got == 0)
                        return x->inside ? refuse(err, "it is cut off") : 0;
                x->read += (uint64_t)got;
                int rc = expand(x, (size_t)got, err);
                if (rc)
                        return rc;
        }
}

int unzstd_file(int from, int to, uint64_t *size, struct steno_error *err)
{
        struct expanding x = {.from = from, .to = to};
        int rc = libzstd_need(err);
        if (rc)
                return rc;
        x.zstd = libzstd.createDCtx();
        x.block = malloc(BLOCK);
        x.plain = malloc(BLOCK);
        if (x.zstd && x.block && x.plain) {
                libzstd.DCtx_setParameter(x.zstd, ZSTD_d_windowLogMax, BUNDLE_WINDOW_LOG);
                rc = expand_all(&x, err);
        } else {
                rc = error_nomem(err);
        }
        if (x.zstd)
                libzstd.freeDCtx(x.zstd);
        free(x.block);
        free(x.plain);
        *size = x.made;
        return rc;
}
