/* run_line.c - see run_line.h */
#include "store/files/run_line.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/sealed.h"

#define BLOCK (64 * KIB)

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

/* Reads a line without its line feed and verifies its checksum. */
static bool read_line(struct str line, struct run_event *out)
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
        *c = (struct run_cursor){.damaged = 0};
        line_reader_init(&c->in, fs, fd, BLOCK, at, end);
}

void run_cursor_release(struct run_cursor *c)
{
        line_reader_release(&c->in);
}

int run_next(struct run_cursor *c, struct run_event *out, struct steno_error *err)
{
        struct str line;
        uint64_t at;
        int rc;
        while ((rc = line_reader_next(&c->in, &line, &at, err)) > 0) {
                if (rc == 1 && read_line(line, out))
                        return 1;
                c->damaged++; /* J3 */
        }
        return rc;
}

/* ---- searching ---- */

int run_last_line(const struct fs *fs, int fd, uint64_t size, struct buf *line,
    struct run_event *out, uint64_t *end, struct steno_error *err)
{
        uint64_t behind, start;
        int rc = line_reader_feed_before(fs, fd, size, 1, &behind, err);
        for (; rc == 0 && behind > 0; behind = start) {
                rc = line_reader_feed_before(fs, fd, behind - 1, 1, &start, err);
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
                if (line->n && read_line(str_span(line->p, line->n - 1), out)) {
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
                rc = line_reader_feed_before(fs, fd, mid, 1, &start, err);
                if (rc)
                        break;
                if (start < lo)
                        start = lo;
                run_cursor_init(&c, fs, fd, start, size);
                rc = run_next(&c, &e, err);
                if (rc == 1 && e.seq <= seq && c.in.next > lo)
                        lo = c.in.next;
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
