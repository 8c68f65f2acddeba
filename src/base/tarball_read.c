/* tarball_read.c - see tarball.h */
#include "base/tarball.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/libarchive.h"
#include "base/libzstd.h"
#include "base/limits.h"
#include "base/unzstd.h"

#define BLOCK ((size_t)64 * 1024)

struct tarball_reader {
        steno_source source;
        void *ctx;
        bool trusted;
        struct archive *tar;
        ZSTD_DCtx *zstd;
        char *block; /* compressed, */
        char *plain; /* and not */
        ZSTD_inBuffer in;
        bool source_ended;
        bool inside_frame;
        uint64_t read; /* bytes that came, */
        uint64_t made; /* and became so many */
        struct steno_error why;
};

bool tarball_is(const void *p, size_t n)
{
        char first[1];
        if (!unzstd_is(p, n))
                return false;
        /* Some tools compress their transcripts, which are JSON. */
        return unzstd_peek(p, n, first, 1) == 0 || (first[0] != '{' && first[0] != '[');
}

static int refuse(struct tarball_reader *r, int code, const char *what)
{
        return error_set(&r->why, code, "not a bundle that can be read: %s", what);
}

static int fill(struct tarball_reader *r)
{
        ssize_t got = r->source(r->ctx, r->block, BLOCK);
        if (got < 0)
                return error_sys(&r->why, (int)got, "reading a bundle");
        r->in = (ZSTD_inBuffer){r->block, (size_t)got, 0};
        r->read += (uint64_t)got;
        r->source_ended = got == 0;
        return 0;
}

/* The next plain bytes: how many, 0 at the end, or a negative code, described in `why`. */
static ssize_t expand(struct tarball_reader *r)
{
        for (;;) {
                if (r->in.pos == r->in.size && !r->source_ended && fill(r))
                        return r->why.code;
                if (r->source_ended)
                        return r->inside_frame ? refuse(r, STENO_EPROTO, "it is cut off") : 0;
                ZSTD_outBuffer out = {r->plain, BLOCK, 0};
                size_t left = libzstd.decompressStream(r->zstd, &out, &r->in);
                if (libzstd.isError(left))
                        return refuse(r, STENO_EPROTO, libzstd.getErrorName(left));
                r->inside_frame = left != 0;
                r->made += out.pos;
                if (!r->trusted && r->made > BUNDLE_SMALL && r->made / BUNDLE_RATIO > r->read)
                        return refuse(r, STENO_ELIMIT,
                            "it expands too far (import it as trusted if you know where it is "
                            "from)");
                if (out.pos)
                        return (ssize_t)out.pos;
        }
}

static la_ssize_t give_tar(struct archive *tar, void *ctx, const void **p)
{
        struct tarball_reader *r = ctx;
        ssize_t n = expand(r);
        *p = r->plain;
        if (n < 0)
                libarchive.set_error(tar, EIO, "%s", r->why.msg);
        return n < 0 ? ARCHIVE_FATAL : n;
}

int tarball_reader_new(steno_source source, void *ctx, bool trusted, struct tarball_reader **out,
    struct steno_error *err)
{
        int rc = libarchive_need(err);
        if (rc == 0)
                rc = libzstd_need(err);
        struct tarball_reader *r = rc ? NULL : calloc(1, sizeof *r);
        if (!r)
                return rc ? rc : error_nomem(err);
        r->source = source;
        r->ctx = ctx;
        r->trusted = trusted;
        r->tar = libarchive.read_new();
        r->zstd = libzstd.createDCtx();
        r->block = malloc(BLOCK);
        r->plain = malloc(BLOCK);
        if (!r->tar || !r->zstd || !r->block || !r->plain) {
                tarball_reader_free(r);
                return error_nomem(err);
        }
        libzstd.DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, BUNDLE_WINDOW_LOG);
        libarchive.read_support_format_tar(r->tar);
        if (libarchive.read_open(r->tar, r, NULL, give_tar, NULL) != ARCHIVE_OK) {
                if (!r->why.code)
                        refuse(r, STENO_EPROTO, "it is not a tar archive");
                if (err)
                        *err = r->why;
                rc = r->why.code;
                tarball_reader_free(r);
                return rc;
        }
        *out = r;
        return 0;
}

/* What is behind the last file is padding; but the stream must end as it should. */
static int read_end(struct tarball_reader *r)
{
        ssize_t n;
        while ((n = expand(r)) > 0)
                ;
        return (int)n;
}

static int told(struct tarball_reader *r, int rc, struct steno_error *err)
{
        if (rc < 0 && err)
                *err = r->why;
        return rc;
}

static int tar_failed(struct tarball_reader *r)
{
        const char *why = libarchive.error_string(r->tar);
        return r->why.code ? r->why.code
                           : refuse(r, STENO_EPROTO, why ? why : "it is not a tar archive");
}

int tarball_next(
    struct tarball_reader *r, const char **name, uint64_t *size, struct steno_error *err)
{
        struct archive_entry *e;
        int rc = libarchive.read_next_header(r->tar, &e);
        if (rc == ARCHIVE_EOF)
                return told(r, read_end(r), err);
        if (rc != ARCHIVE_OK)
                return told(r, tar_failed(r), err);
        const char *path = libarchive.entry_pathname(e);
        if (libarchive.entry_filetype(e) != AE_IFREG || libarchive.entry_hardlink(e) ||
            libarchive.entry_symlink(e))
                return told(r, refuse(r, STENO_EPROTO, "it has entries that are not files"), err);
        if (!path || !libarchive.entry_size_is_set(e) || libarchive.entry_size(e) < 0)
                return told(r, refuse(r, STENO_EPROTO, "a file has no name or size"), err);
        if (libarchive.entry_sparse_reset(e) > 0)
                return told(r, refuse(r, STENO_EPROTO, "a file is sparse"), err);
        *name = path;
        *size = (uint64_t)libarchive.entry_size(e);
        return 1;
}

ssize_t tarball_read(struct tarball_reader *r, void *p, size_t n, struct steno_error *err)
{
        la_ssize_t got = libarchive.read_data(r->tar, p, n);
        return got < 0 ? told(r, tar_failed(r), err) : got;
}

void tarball_reader_free(struct tarball_reader *r)
{
        if (!r)
                return;
        if (r->tar)
                libarchive.read_free(r->tar);
        if (r->zstd)
                libzstd.freeDCtx(r->zstd);
        free(r->block);
        free(r->plain);
        free(r);
}
