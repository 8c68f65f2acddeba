/* gunzip.c - see gunzip.h */
#include "base/gunzip.h"

#include "base/error.h"
#include "base/libarchive.h"
#include "base/limits.h"

/* Without `out` the bytes are only counted. */
static int unpack(struct archive *a, struct str packed, size_t max, size_t *size, struct buf *out,
    struct steno_error *err)
{
        struct archive_entry *entry;
        char block[16 * KIB];
        size_t total = 0;
        ssize_t got = 0;
        if (packed.n < 18 || (unsigned char)packed.p[0] != 0x1f ||
            (unsigned char)packed.p[1] != 0x8b ||
            libarchive.read_support_filter_gzip(a) != ARCHIVE_OK ||
            libarchive.read_support_format_raw(a) != ARCHIVE_OK ||
            libarchive.read_open_memory(a, packed.p, packed.n) != ARCHIVE_OK ||
            libarchive.read_next_header(a, &entry) != ARCHIVE_OK)
                return error_set(err, STENO_EINVAL, "the body is not gzip");
        while ((got = libarchive.read_data(a, block, sizeof block)) > 0) {
                total += (size_t)got;
                if (total > max)
                        return error_set(
                            err, STENO_ELIMIT, "the body unpacks to more than %zu bytes", max);
                if (out)
                        buf_put(out, block, (size_t)got);
        }
        if (got < 0)
                return error_set(err, STENO_EINVAL, "the gzip body is damaged");
        *size = total;
        return out ? buf_check(out, err) : 0;
}

static int read_all(
    struct str packed, size_t max, size_t *size, struct buf *out, struct steno_error *err)
{
        int rc = libarchive_need(err);
        struct archive *a = rc ? NULL : libarchive.read_new();
        if (rc == 0)
                rc = a ? unpack(a, packed, max, size, out, err) : error_nomem(err);
        if (a)
                libarchive.read_free(a);
        return rc;
}

int gunzip_size(struct str packed, size_t max, size_t *size, struct steno_error *err)
{
        return read_all(packed, max, size, NULL, err);
}

int gunzip(struct str packed, size_t max, struct buf *out, struct steno_error *err)
{
        size_t size;
        return read_all(packed, max, &size, out, err);
}
