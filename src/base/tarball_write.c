/* tarball_write.c - see tarball.h */
#include "base/tarball.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/libarchive.h"
#include "base/libzstd.h"
#include "base/limits.h"

#define LEVEL 3 /* whose window is well below what readers accept */
#define BLOCK ((size_t)128 * 1024)

struct tarball_writer {
        steno_sink sink;
        void *ctx;
        struct archive *tar;
        struct archive_entry *entry;
        ZSTD_CCtx *zstd;
        char *block;
        bool stopped; /* the sink wanted no more */
};

static int compress(struct tarball_writer *w, const void *p, size_t n, ZSTD_EndDirective how)
{
        ZSTD_inBuffer in = {p, n, 0};
        size_t left;
        do {
                ZSTD_outBuffer out = {w->block, BLOCK, 0};
                left = libzstd.compressStream2(w->zstd, &out, &in, how);
                if (libzstd.isError(left))
                        return -1;
                if (out.pos && w->sink(w->ctx, w->block, out.pos)) {
                        w->stopped = true;
                        return -1;
                }
        } while (in.pos < in.size || (how == ZSTD_e_end && left > 0));
        return 0;
}

static la_ssize_t take_tar(struct archive *tar, void *ctx, const void *p, size_t n)
{
        (void)tar;
        return compress(ctx, p, n, ZSTD_e_continue) ? -1 : (la_ssize_t)n;
}

static int failed(struct tarball_writer *w, struct steno_error *err)
{
        if (w->stopped)
                return error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
        const char *why = libarchive.error_string(w->tar);
        return error_set(err, STENO_EIO, "writing a bundle: %.150s", why ? why : "zstd failed");
}

int tarball_writer_new(
    steno_sink sink, void *ctx, struct tarball_writer **out, struct steno_error *err)
{
        int rc = libarchive_need(err);
        if (rc == 0)
                rc = libzstd_need(err);
        struct tarball_writer *w = rc ? NULL : calloc(1, sizeof *w);
        if (!w)
                return rc ? rc : error_nomem(err);
        w->sink = sink;
        w->ctx = ctx;
        w->tar = libarchive.write_new();
        w->entry = libarchive.entry_new();
        w->zstd = libzstd.createCCtx();
        w->block = malloc(BLOCK);
        if (!w->tar || !w->entry || !w->zstd || !w->block) {
                tarball_writer_free(w);
                return error_nomem(err);
        }
        libzstd.CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL);
        libzstd.CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
        if (libarchive.write_set_format_pax_restricted(w->tar) != ARCHIVE_OK ||
            libarchive.write_open(w->tar, w, NULL, take_tar, NULL) != ARCHIVE_OK) {
                rc = failed(w, err);
                tarball_writer_free(w);
                return rc;
        }
        *out = w;
        return 0;
}

int tarball_add(struct tarball_writer *w, const char *name, uint64_t size, struct steno_error *err)
{
        libarchive.entry_clear(w->entry);
        libarchive.entry_set_pathname(w->entry, name);
        libarchive.entry_set_size(w->entry, (la_int64_t)size);
        libarchive.entry_set_filetype(w->entry, AE_IFREG);
        libarchive.entry_set_perm(w->entry, 0600);
        libarchive.entry_set_mtime(w->entry, 0, 0);
        return libarchive.write_header(w->tar, w->entry) == ARCHIVE_OK ? 0 : failed(w, err);
}

int tarball_write(struct tarball_writer *w, const void *p, size_t n, struct steno_error *err)
{
        return libarchive.write_data(w->tar, p, n) == (la_ssize_t)n ? 0 : failed(w, err);
}

int tarball_finish(struct tarball_writer *w, struct steno_error *err)
{
        if (libarchive.write_close(w->tar) != ARCHIVE_OK || compress(w, "", 0, ZSTD_e_end))
                return failed(w, err);
        return 0;
}

void tarball_writer_free(struct tarball_writer *w)
{
        if (!w)
                return;
        if (w->tar) {
                w->stopped =
                    true; /* freeing writes what is buffered, which is not wanted any more */
                libarchive.write_free(w->tar);
        }
        if (w->entry)
                libarchive.entry_free(w->entry);
        if (w->zstd)
                libzstd.freeCCtx(w->zstd);
        free(w->block);
        free(w);
}
