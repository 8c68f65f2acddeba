/* lines.c - see lines.h */
#include "output/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "output/finder.h"

#define BLOCK ((size_t)64 * 1024)
#define HEADER 16
#define TOTALS UINT64_MAX

uint64_t lines_count(const char *p, size_t n)
{
        if (n >= 64 && finder_has_avx2())
                return finder_count_avx2(p, n, '\n');
        uint64_t count = 0;
        for (size_t i = 0; i < n; i++)
                count += p[i] == '\n';
        return count;
}

/* ---- from the end ---- */

/* Searches p[0, n) backwards for the line feed that has *want line feeds behind it. NULL: there are
 * too few; then *want is the number that is still to be found. */
static const char *feed_from_end(const char *p, size_t n, uint64_t *want)
{
        while (n) {
                const char *nl = memrchr(p, '\n', n);
                if (!nl)
                        return NULL;
                if (*want == 0)
                        return nl;
                (*want)--;
                n = (size_t)(nl - p);
        }
        return NULL;
}

static size_t skip_continuation(const char *p, size_t n)
{
        size_t k = 0;
        while (k < n && k < 3 && ((unsigned char)p[k] & 0xC0) == 0x80)
                k++;
        return k;
}

/* Cuts to max_bytes: at the beginning of the next line, or else inside the last line. */
static int cut_to_bytes(const struct lines_file *f, uint64_t floor, char *block, uint64_t *offset,
    bool *cut, struct steno_error *err)
{
        uint64_t size = f->size;
        bool first = true;
        for (uint64_t at = floor; at < size;) {
                size_t n = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
                int rc = f->read(f->ctx, at, block, n, err);
                if (rc < 0)
                        return rc;
                if (first)
                        *offset = floor + skip_continuation(block, n);
                first = false;
                const char *nl = memchr(block, '\n', n);
                if (nl && at + (uint64_t)(nl - block) + 1 < size) {
                        *offset = at + (uint64_t)(nl - block) + 1;
                        *cut = false;
                        return 0;
                }
                at += n;
        }
        *cut = true;
        return 0;
}

static int count_span(
    const struct lines_file *f, char *block, struct lines_span *s, struct steno_error *err)
{
        uint64_t size = f->size;
        char last = '\n';
        s->lines = 0;
        for (uint64_t at = s->offset; at < size;) {
                size_t n = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
                int rc = f->read(f->ctx, at, block, n, err);
                if (rc < 0)
                        return rc;
                s->lines += lines_count(block, n);
                last = block[n - 1];
                at += n;
        }
        s->lines += last != '\n';
        return 0;
}

int lines_tail(const struct lines_file *f, uint64_t lines, uint64_t max_bytes,
    struct lines_span *out, struct steno_error *err)
{
        uint64_t size = f->size;
        struct lines_span s = {size, 0, 0, false};
        uint64_t floor = size > max_bytes ? size - max_bytes : 0;
        uint64_t want = lines;
        int rc = 0;
        char *block = malloc(BLOCK);
        if (!block)
                return error_nomem(err);
        if (lines == 0 || max_bytes == 0)
                goto done;
        bool found = false;
        for (uint64_t end = size; end > floor && !found;) {
                size_t n = end - floor < BLOCK ? (size_t)(end - floor) : BLOCK;
                rc = f->read(f->ctx, end - n, block, n, err);
                if (rc < 0)
                        goto out;
                /* A file that does not end with LF has one line more than line feeds. */
                if (end == size && block[n - 1] != '\n')
                        want--;
                const char *nl = feed_from_end(block, n, &want);
                found = nl != NULL;
                s.offset = found ? end - n + (uint64_t)(nl - block) + 1 : end - n;
                end -= n;
        }
        if (!found && floor > 0) {
                /* The byte before the floor shows whether a line begins exactly there. */
                char before;
                rc = f->read(f->ctx, floor - 1, &before, 1, err);
                if (rc == 0 && before != '\n')
                        rc = cut_to_bytes(f, floor, block, &s.offset, &s.cut, err);
        }
        if (rc == 0)
                rc = count_span(f, block, &s, err);
        if (rc < 0)
                goto out;
done:
        s.size = size - s.offset;
        *out = s;
out:
        free(block);
        return rc;
}

/* ---- the index ---- */

static void put_u64(struct buf *b, uint64_t v)
{
        unsigned char p[8];
        for (int i = 0; i < 8; i++)
                p[i] = (unsigned char)(v >> (8 * i));
        buf_put(b, p, sizeof(p));
}

static uint64_t get_u64(const unsigned char *p)
{
        uint64_t v = 0;
        for (int i = 7; i >= 0; i--)
                v = v << 8 | p[i];
        return v;
}

void lines_writer_init(struct lines_writer *w, struct buf *out)
{
        memset(w, 0, sizeof(*w));
        w->out = out;
        buf_put(out, "STLX\1\0\0\0", 8);
        put_u64(out, LINES_EVERY);
}

void lines_writer_feed(struct lines_writer *w, const void *bytes, size_t n)
{
        const char *p = bytes;
        size_t done = 0;
        if (n == 0)
                return;
        while (done < n) {
                /* Most blocks are so small that they can be counted without searching the place in
                 * them. */
                size_t step = n - done < 4096 ? n - done : 4096;
                uint64_t here = lines_count(p + done, step);
                uint64_t until = LINES_EVERY - w->feeds % LINES_EVERY;
                const char *at = p + done;
                while (here >= until) {
                        for (uint64_t i = 0; i < until; i++)
                                at = (const char *)memchr(at, '\n', (size_t)(p + n - at)) + 1;
                        put_u64(w->out, w->offset + (uint64_t)(at - p));
                        here -= until;
                        w->feeds += until;
                        until = LINES_EVERY;
                }
                w->feeds += here;
                done += step;
        }
        w->offset += n;
        w->partial = p[n - 1] != '\n';
}

void lines_writer_finish(struct lines_writer *w)
{
        put_u64(w->out, TOTALS);
        put_u64(w->out, w->feeds + w->partial);
        put_u64(w->out, w->offset);
}

bool lines_index_open(struct lines_index *x, const void *bytes, size_t n, uint64_t size)
{
        const unsigned char *p = bytes;
        uint64_t previous = 0;
        memset(x, 0, sizeof(*x));
        if (n < HEADER || memcmp(p, "STLX\1\0\0\0", 8) != 0 || get_u64(p + 8) != LINES_EVERY)
                return false;
        x->p = p + HEADER;
        size_t words = (n - HEADER) / 8;
        for (size_t i = 0; i < words; i++) {
                uint64_t v = get_u64(x->p + i * 8);
                if (v == TOTALS) {
                        if (i + 3 > words)
                                break;
                        x->total_lines = get_u64(x->p + (i + 1) * 8);
                        x->total_bytes = get_u64(x->p + (i + 2) * 8);
                        x->has_totals = x->total_bytes == size;
                        break;
                }
                if (v > size || v < previous + LINES_EVERY)
                        return false;
                previous = v;
                x->count++;
        }
        return !x->has_totals || x->total_lines >= x->count * (uint64_t)LINES_EVERY;
}

/* Finds the best known place at or before a line: *at is the offset of line *at_line. Without an
 * index, this is the beginning of the file. */
static void index_find(const struct lines_index *x, uint64_t line, uint64_t *at_line, uint64_t *at)
{
        uint64_t k = line > 0 ? (line - 1) / LINES_EVERY : 0;
        if (!x || k == 0 || x->count == 0) {
                *at_line = 1;
                *at = 0;
                return;
        }
        if (k > x->count)
                k = x->count;
        *at_line = k * LINES_EVERY + 1;
        *at = get_u64(x->p + (k - 1) * 8);
}

int lines_seek(const struct lines_file *f, const struct lines_index *x, uint64_t line,
    uint64_t *offset, bool *found, struct steno_error *err)
{
        uint64_t size = f->size;
        uint64_t at_line = 1;
        uint64_t at = 0;
        int rc = 0;
        char *block = malloc(BLOCK);
        if (!block)
                return error_nomem(err);
        index_find(x, line, &at_line, &at);
        if (at > 0) {
                rc = f->read(f->ctx, at - 1, block, 1, err);
                if (rc < 0)
                        goto out;
                /* If an entry is a place inside a line, the index belongs to another file. */
                if (block[0] != '\n')
                        index_find(NULL, line, &at_line, &at);
        }
        while (at < size && at_line < line) {
                size_t n = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
                rc = f->read(f->ctx, at, block, n, err);
                if (rc < 0)
                        goto out;
                uint64_t here = lines_count(block, n);
                if (at_line + here < line) {
                        at_line += here;
                        at += n;
                        continue;
                }
                const char *p = block;
                for (; at_line < line; at_line++)
                        p = (const char *)memchr(p, '\n', n - (size_t)(p - block)) + 1;
                at += (uint64_t)(p - block);
        }
        *found = at < size && at_line >= line;
        *offset = *found ? at : size;
out:
        free(block);
        return rc;
}

bool lines_index_before(const struct lines_index *x, uint64_t offset, uint64_t *at, uint64_t *line)
{
        size_t low = 0, high = x ? x->count : 0;
        while (low < high) { /* find the last entry that is not behind the place */
                size_t mid = low + (high - low) / 2;
                if (get_u64(x->p + mid * 8) <= offset)
                        low = mid + 1;
                else
                        high = mid;
        }
        *at = low ? get_u64(x->p + (low - 1) * 8) : 0;
        *line = low * (uint64_t)LINES_EVERY + 1;
        return low > 0;
}

int lines_at(const struct lines_file *f, const struct lines_index *x, uint64_t offset,
    uint64_t *line, struct steno_error *err)
{
        uint64_t at = 0, at_line = 1;
        int rc = 0;
        char *block = malloc(BLOCK);
        if (!block)
                return error_nomem(err);
        if (lines_index_before(x, offset, &at, &at_line)) {
                rc = f->read(f->ctx, at - 1, block, 1, err);
                if (rc == 0 && block[0] != '\n') { /* the index belongs to another file */
                        at = 0;
                        at_line = 1;
                }
        }
        while (rc == 0 && at < offset) {
                size_t n = offset - at < BLOCK ? (size_t)(offset - at) : BLOCK;
                rc = f->read(f->ctx, at, block, n, err);
                if (rc == 0)
                        at_line += lines_count(block, n);
                at += n;
        }
        free(block);
        *line = at_line;
        return rc < 0 ? rc : 0;
}
