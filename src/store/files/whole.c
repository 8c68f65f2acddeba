/* whole.c - see whole.h */
#include "store/files/whole.h"

#include <string.h>

#include "base/error.h"

#define BLOCK 65536

static int compare(
    const struct whole *w, const unsigned char sum[SHA256_SIZE], struct steno_error *err)
{
        char hex[SHA256_HEX];
        hash_hex(sum, SHA256_SIZE, hex);
        return w->sha256[0] && strcmp(hex, w->sha256) != 0
                   ? error_set(err, STENO_ECORRUPT, "%s has other bytes than were stored", w->what)
                   : 0;
}

static int check_size(const struct fs *fs, int fd, const struct whole *w, struct steno_error *err)
{
        struct stat st;
        int rc = fs->fstat(fs, fd, &st);
        if (rc)
                return error_sys(err, rc, "looking at %s", w->what);
        return (uint64_t)st.st_size == w->size
                   ? 0
                   : error_set(err, STENO_ECORRUPT, "%s has %lld bytes; %llu were stored", w->what,
                         (long long)st.st_size, (unsigned long long)w->size);
}

int whole_read(const struct fs *fs, int fd, const struct whole *w, steno_sink sink, void *ctx,
    struct steno_error *err)
{
        unsigned char sum[SHA256_SIZE];
        char block[BLOCK];
        struct sha256 sha;
        int rc = check_size(fs, fd, w, err);
        if (rc)
                return rc;
        if (hash_sha256_init(&sha))
                return error_nomem(err);
        for (uint64_t at = 0; rc == 0 && at < w->size;) {
                size_t want = w->size - at < BLOCK ? (size_t)(w->size - at) : BLOCK;
                ssize_t got = fs_pread_all(fs, fd, block, want, (off_t)at);
                if (got < 0)
                        rc = error_sys(err, (int)got, "reading %s", w->what);
                else if ((size_t)got < want)
                        rc = error_set(
                            err, STENO_ECORRUPT, "%s became shorter while it was read", w->what);
                else if (sink && sink(ctx, block, want))
                        rc = error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
                else
                        hash_sha256_update(&sha, block, want);
                at += want;
        }
        hash_sha256_finish(&sha, sum);
        return rc ? rc : compare(w, sum, err);
}
