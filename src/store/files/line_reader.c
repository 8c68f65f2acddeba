/* line_reader.c - see line_reader.h */
#include "store/files/line_reader.h"

#include <string.h>

#include "base/error.h"

#define BLOCK ((size_t)64 * 1024)

static int read_failed(struct steno_error *err, ssize_t got)
{
        return error_sys(err, (int)got, "reading a log");
}

/* ---- the walk ---- */

void line_reader_init(
    struct lines *l, const struct fs *fs, int fd, size_t block, uint64_t at, uint64_t end)
{
        *l = (struct lines){
            .fs = fs, .fd = fd, .block = block, .next = at, .end = end, .window_at = at};
        buf_init(&l->window, LINE_READ_MAX * 2);
}

void line_reader_release(struct lines *l)
{
        buf_release(&l->window);
}

struct str line_reader_at_hand(const struct lines *l)
{
        size_t off = (size_t)(l->next - l->window_at);
        if (off >= l->window.n)
                return (struct str){0};
        return str_span(l->window.p + off, l->window.n - off);
}

/* Drops what was handed out and reads at least one more byte into the window. */
static int refill(struct lines *l, struct steno_error *err)
{
        buf_drop_front(&l->window, (size_t)(l->next - l->window_at));
        l->window_at = l->next;
        uint64_t from = l->window_at + l->window.n;
        size_t want = l->window.n < l->block ? l->block : l->window.n;
        if (want > l->end - from)
                want = (size_t)(l->end - from);
        char *to = buf_reserve(&l->window, want);
        if (!to)
                return buf_check(&l->window, err);
        ssize_t got = fs_pread_all(l->fs, l->fd, to, want, (off_t)from);
        if (got < 0)
                return read_failed(err, got);
        l->window.n += (size_t)got;
        if ((size_t)got < want)
                l->end = from + (uint64_t)got; /* the file became shorter under us */
        return 0;
}

int line_reader_next(struct lines *l, struct str *line, uint64_t *at, struct steno_error *err)
{
        size_t searched = 0;
        for (;;) {
                struct str have = line_reader_at_hand(l);
                char *lf =
                    have.n > searched ? memchr(have.p + searched, '\n', have.n - searched) : NULL;
                *at = l->next;
                if (lf) {
                        *line = str_span(have.p, (size_t)(lf - have.p));
                        l->next += line->n + 1;
                        return 1;
                }
                searched = have.n;
                if (l->next + searched >= l->end)
                        return 0;
                if (searched > LINE_READ_MAX) {
                        int rc =
                            line_reader_feed_after(l->fs, l->fd, l->next, l->end, &l->next, err);
                        l->window_at = l->next;
                        buf_clear(&l->window);
                        return rc ? rc : 2;
                }
                int rc = refill(l, err);
                if (rc)
                        return rc;
        }
}

/* ---- searches ---- */

int line_reader_feed_after(const struct fs *fs, int fd, uint64_t from, uint64_t end, uint64_t *out,
    struct steno_error *err)
{
        char block[4096];
        while (from < end) {
                size_t want = end - from < sizeof block ? (size_t)(end - from) : sizeof block;
                ssize_t got = fs_pread_all(fs, fd, block, want, (off_t)from);
                if (got < 0)
                        return read_failed(err, got);
                if (got == 0)
                        break;
                char *lf = memchr(block, '\n', (size_t)got);
                if (lf) {
                        *out = from + (uint64_t)(lf - block) + 1;
                        return 0;
                }
                from += (uint64_t)got;
        }
        *out = end;
        return 0;
}

int line_reader_feed_before(const struct fs *fs, int fd, uint64_t end, uint64_t count,
    uint64_t *out, struct steno_error *err)
{
        char small[4096];
        char *block = small;
        uint64_t at = end;
        struct buf big;
        buf_init(&big, BLOCK);
        int rc = 0;
        while (at > 0) {
                /* Most logs answer from the last page; only then larger blocks pay. */
                size_t size = block == small ? sizeof small : BLOCK;
                uint64_t from = at > size ? at - size : 0;
                ssize_t got = fs_pread_all(fs, fd, block, (size_t)(at - from), (off_t)from);
                if (got < 0) {
                        rc = read_failed(err, got);
                        goto out;
                }
                size_t n = (size_t)got;
                char *lf;
                while ((lf = memrchr(block, '\n', n))) {
                        if (--count == 0) {
                                *out = from + (uint64_t)(lf - block) + 1;
                                goto out;
                        }
                        n = (size_t)(lf - block);
                }
                at = from;
                if (block == small) {
                        block = buf_reserve(&big, BLOCK);
                        if (!block) {
                                rc = buf_check(&big, err);
                                goto out;
                        }
                }
        }
        *out = 0;
out:
        buf_release(&big);
        return rc;
}
