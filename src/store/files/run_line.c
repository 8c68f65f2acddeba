/* run_line.c - see run_line.h */
#include "store/files/run_line.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/sealed.h"

#define BLOCK ((size_t)64 * 1024)
/* Beyond any event we write: an outcome holds one message. */
#define LINE_READ_MAX (MESSAGE_MAX * 2)

void run_line_write(struct buf *out, const struct run_event *e)
{
        size_t start = out->n;
        buf_puts(out, "{\"seq\":");
        buf_put_u64(out, e->seq);
        buf_puts(out, ",\"at\":\"");
        buf_put_str(out, e->at);
        buf_puts(out, "\",\"type\":\"");
        buf_put_str(out, e->type);
        buf_puts(out, "\",\"data\":");
        buf_put_str(out, e->data);
        sealed_finish(out, start);
}

bool run_line_read(struct str line, struct run_event *out)
{
        struct sealed s;
        struct run_event e = {0};
        if (!sealed_check(line) || !sealed_body(line, &s) || !sealed_take(&s, STR("{\"seq\":")) ||
            !sealed_take_u64(&s, &e.seq) || !sealed_take(&s, STR(",\"at\":\"")) ||
            !sealed_take_string(&s, &e.at) || !sealed_take(&s, STR(",\"type\":\"")) ||
            !sealed_take_string(&s, &e.type) || !sealed_take(&s, STR(",\"data\":")) || s.p >= s.end)
                return false;
        e.data = str_span(s.p, (size_t)(s.end - s.p));
        *out = e;
        return true;
}

/* ---- walking ---- */

void run_cursor_init(struct run_cursor *c, const struct fs *fs, int fd, uint64_t at, uint64_t end)
{
        *c = (struct run_cursor){.fs = fs, .fd = fd, .next = at, .end = end, .window_at = at};
        buf_init(&c->window, LINE_READ_MAX * 2);
}

void run_cursor_release(struct run_cursor *c)
{
        buf_release(&c->window);
}

/* Drops what was handed out and reads on; 0 bytes more: the file became shorter. */
static int refill(struct run_cursor *c, struct steno_error *err)
{
        buf_drop_front(&c->window, (size_t)(c->next - c->window_at));
        c->window_at = c->next;
        uint64_t from = c->window_at + c->window.n;
        size_t want = c->window.n < BLOCK ? BLOCK : c->window.n;
        if (want > c->end - from)
                want = (size_t)(c->end - from);
        char *to = buf_reserve(&c->window, want);
        if (!to)
                return buf_check(&c->window, err);
        ssize_t got = fs_pread_all(c->fs, c->fd, to, want, (off_t)from);
        if (got < 0)
                return error_sys(err, (int)got, "reading a run's journal");
        c->window.n += (size_t)got;
        if ((size_t)got < want)
                c->end = from + (uint64_t)got;
        return 0;
}

/* 1 and a line, 0 at the end of the whole lines. */
static int next_line(struct run_cursor *c, struct str *line, struct steno_error *err)
{
        size_t searched = 0;
        for (;;) {
                size_t off = (size_t)(c->next - c->window_at);
                size_t have = c->window.n - off;
                char *lf = have > searched
                               ? memchr(c->window.p + off + searched, '\n', have - searched)
                               : NULL;
                if (lf) {
                        *line = str_span(c->window.p + off, (size_t)(lf - c->window.p) - off);
                        c->next += line->n + 1;
                        return 1;
                }
                searched = have;
                if (c->next + have >= c->end)
                        return 0;
                int rc = refill(c, err);
                if (rc)
                        return rc;
        }
}

int run_next(struct run_cursor *c, struct run_event *out, struct steno_error *err)
{
        struct str line;
        int rc;
        while ((rc = next_line(c, &line, err)) == 1) {
                if (run_line_read(line, out))
                        return 1;
                c->damaged++; /* J3 */
        }
        return rc;
}

/* ---- searching ---- */

/* Offset behind the last line feed before `end`; 0 when there is none. */
static int feed_before(
    const struct fs *fs, int fd, uint64_t end, uint64_t *out, struct steno_error *err)
{
        char block[4096];
        while (end > 0) {
                uint64_t from = end > sizeof block ? end - sizeof block : 0;
                ssize_t got = fs_pread_all(fs, fd, block, (size_t)(end - from), (off_t)from);
                if (got < 0)
                        return error_sys(err, (int)got, "reading a run's journal");
                char *lf = memrchr(block, '\n', (size_t)got);
                if (lf) {
                        *out = from + (uint64_t)(lf - block) + 1;
                        return 0;
                }
                end = from;
        }
        *out = 0;
        return 0;
}

int run_last_line(const struct fs *fs, int fd, uint64_t size, struct buf *line,
    struct run_event *out, uint64_t *end, struct steno_error *err)
{
        uint64_t behind, start;
        int rc = feed_before(fs, fd, size, &behind, err);
        for (; rc == 0 && behind > 0; behind = start) {
                rc = feed_before(fs, fd, behind - 1, &start, err);
                if (rc)
                        break;
                if (behind - start > LINE_READ_MAX)
                        continue;
                buf_clear(line);
                char *to = buf_reserve(line, (size_t)(behind - start));
                if (!to)
                        return buf_check(line, err);
                ssize_t got = fs_pread_all(fs, fd, to, (size_t)(behind - start), (off_t)start);
                if (got < 0)
                        return error_sys(err, (int)got, "reading a run's journal");
                line->n = (size_t)got;
                if (line->n && run_line_read(str_span(line->p, line->n - 1), out)) {
                        *end = behind;
                        return 1;
                }
        }
        if (rc == 0)
                *end = 0;
        return rc;
}

int run_seek(
    const struct fs *fs, int fd, uint64_t size, uint64_t seq, uint64_t *at, struct steno_error *err)
{
        /* Every line that begins before lo has a seq <= seq. */
        uint64_t lo = 0, hi = seq ? size : 0;
        int rc = 0;
        while (rc == 0 && hi > lo && hi - lo > BLOCK) {
                uint64_t mid = lo + (hi - lo) / 2;
                uint64_t start;
                struct run_cursor c;
                struct run_event e;
                rc = feed_before(fs, fd, mid, &start, err);
                if (rc)
                        break;
                if (start < lo)
                        start = lo;
                run_cursor_init(&c, fs, fd, start, size);
                rc = run_next(&c, &e, err);
                if (rc == 1 && e.seq <= seq && c.next > lo)
                        lo = c.next;
                else if (rc >= 0)
                        hi = mid;
                if (rc > 0)
                        rc = 0;
                run_cursor_release(&c);
        }
        if (rc == 0)
                *at = lo;
        return rc;
}
