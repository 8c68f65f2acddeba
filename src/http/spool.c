/* spool.c - see spool.h */
#include "http/spool.h"

#include <errno.h>
#include <string.h>

#include "base/fs.h"
#include "base/named_file.h"
#include "http/http_limits.h"
#include "http/server_core.h"

bool spool_has_room(const struct request *r, size_t n)
{
        return r->body.n == 0 || r->body.n + n <= SERVER_SPOOL_PIECE;
}

static int open_file(struct request *r)
{
        if (r->spool_open)
                return 0;
        int fd = named_file_temp();
        if (fd < 0)
                return fd;
        r->spool = fd;
        r->spool_open = true;
        return 0;
}

void spool_write(struct request *r)
{
        int rc = r->spool_failed ? r->spool_failed : open_file(r);
        if (rc == 0)
                rc = fs_pwrite_all(fs_real(), r->spool, r->body.p, r->body.n, (off_t)r->spooled);
        if (rc == 0)
                r->spooled += r->body.n;
        r->spool_failed = rc;
        atomic_fetch_sub(&r->server->body_bytes[r->guest], r->body_counted);
        r->body_counted = 0;
        buf_clear(&r->body);
}

void spool_release(struct request *r)
{
        if (r->spool_open)
                fs_real()->close(fs_real(), r->spool);
        r->spool_open = false;
}

uint64_t spool_size(const struct request *r)
{
        return r->spooled + r->body.n;
}

long spool_read(const struct request *r, uint64_t *at, void *p, size_t n)
{
        ssize_t got = 0;
        if (*at < r->spooled) {
                if (n > r->spooled - *at)
                        n = (size_t)(r->spooled - *at);
                got = fs_pread_all(fs_real(), r->spool, p, n, (off_t)*at);
                if (got == 0)
                        return -EIO; /* it became shorter */
        } else if (*at < spool_size(r)) {
                size_t from = (size_t)(*at - r->spooled);
                got = (ssize_t)(n < r->body.n - from ? n : r->body.n - from);
                memcpy(p, r->body.p + from, (size_t)got);
        }
        *at += got > 0 ? (uint64_t)got : 0;
        return got;
}

int spool_file(struct request *r)
{
        if (r->body.n || !r->spool_open)
                spool_write(r);
        return r->spool_failed ? r->spool_failed : r->spool;
}
