/* grep_show.c - see grep_show.h */
#include "output/grep_show.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

static bool is_inside(const char *p, size_t at, size_t end)
{
        return at < end && ((unsigned char)p[at] & 0xC0) == 0x80;
}

/* Goes back `chars` characters from `at`, but not before `floor`. *done is the number of
 * characters. */
static size_t step_back(
    const char *p, size_t floor, size_t at, size_t chars, bool utf8, size_t *done)
{
        size_t k = 0;
        for (; k < chars && at > floor; k++) {
                at--;
                for (int i = 0; utf8 && i < 3 && at > floor && is_inside(p, at, at + 1); i++)
                        at--;
        }
        *done = k;
        return at;
}

static size_t step_on(const char *p, size_t at, size_t end, size_t chars, bool utf8, size_t *done)
{
        size_t k = 0;
        for (; k < chars && at < end; k++) {
                at++;
                for (int i = 0; utf8 && i < 3 && is_inside(p, at, end); i++)
                        at++;
        }
        *done = k;
        return at;
}

static bool is_short(const char *p, size_t n, bool utf8)
{
        if (n <= CONTEXT_LONG_LINE)
                return true;
        return utf8 && n <= 4 * CONTEXT_LONG_LINE && text_count(p, n) <= CONTEXT_LONG_LINE;
}

/* The number of bytes around a match that contain everything that can be shown of its line. */
#define AROUND (4 * (CONTEXT_LONG_LINE + 1))

static int ends_with_cr(
    const struct grep_show *s, const struct grep_hit *hit, bool *cr, struct steno_error *err)
{
        const char *last = NULL;
        *cr = false;
        if (hit->to == hit->from)
                return 0;
        int rc = grep_text_span(s->text, hit->to - 1, hit->to, &last, err);
        if (rc == 0)
                *cr = *last == '\r';
        return rc;
}

int grep_show_line(const struct grep_show *s, const struct grep_hit *hit, struct grep_line *out,
    struct steno_error *err)
{
        bool cr = false;
        const char *text = NULL;
        int rc = ends_with_cr(s, hit, &cr, err);
        if (rc < 0)
                return rc;
        uint64_t to = hit->to - cr;
        uint64_t at = hit->start > to ? to : hit->start;
        uint64_t low = at - hit->from < AROUND ? hit->from : at - AROUND;
        uint64_t high = to - at < AROUND ? to : at + AROUND;
        rc = grep_text_span(s->text, low, high, &text, err);
        if (rc < 0)
                return rc;
        /* From here on, offsets are relative to `low`. If the line is not complete here, it is
         * longer than the part that is shown. */
        size_t n = (size_t)(high - low);
        size_t start = (size_t)(at - low);
        size_t end = hit->end > high ? n : hit->end < at ? start : (size_t)(hit->end - low);
        size_t first = 0;
        size_t last = n;
        if (to - hit->from > n || !is_short(text, n, s->utf8)) {
                size_t used = 0;
                size_t before = 0;
                size_t after = 0;
                size_t match_end = step_on(text, start, end, CONTEXT_LONG_LINE, s->utf8, &used);
                size_t spare = CONTEXT_LONG_LINE - used;
                step_back(text, 0, start, spare / 2, s->utf8, &before);
                last = step_on(text, match_end, n, spare - before, s->utf8, &after);
                first = step_back(text, 0, start, spare - after, s->utf8, &before);
        }
        out->text = arena_dup(s->arena, str_span(text + first, last - first));
        out->byte_offset = low + first;
        out->cut_before = low + first > hit->from;
        out->cut_after = low + last < to;
        return out->text.p ? 0 : error_nomem(err);
}

static int show_whole(const struct grep_show *s, uint64_t from, uint64_t to, struct grep_line *out,
    struct steno_error *err)
{
        struct grep_hit line = {.from = from, .to = to, .start = from, .end = from};
        return grep_show_line(s, &line, out, err);
}

int grep_show_before(const struct grep_show *s, uint64_t from, uint32_t count,
    struct grep_line *out, uint32_t *n, struct steno_error *err)
{
        uint64_t start[CONTEXT_GREP_CONTEXT_MAX + 1] = {from};
        uint32_t k = 0;
        for (; k < count && start[k] > 0; k++) {
                int rc = grep_text_line_start(s->text, start[k] - 1, &start[k + 1], err);
                if (rc < 0)
                        return rc;
        }
        for (uint32_t i = 0; i < k; i++) {
                int rc = show_whole(s, start[k - i], start[k - i - 1] - 1, &out[i], err);
                if (rc < 0)
                        return rc;
        }
        *n = k;
        return 0;
}

int grep_show_after(const struct grep_show *s, uint64_t to, uint32_t count, struct grep_line *out,
    uint32_t *n, struct steno_error *err)
{
        uint32_t k = 0;
        uint64_t at = to + 1;
        for (; k < count && at < s->text->source->file.size; k++) {
                uint64_t end = 0;
                int rc = grep_text_line_end(s->text, at, &end, err);
                if (rc == 0)
                        rc = show_whole(s, at, end, &out[k], err);
                if (rc < 0)
                        return rc;
                at = end + 1;
        }
        *n = k;
        return 0;
}
