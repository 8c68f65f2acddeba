/* grep_show.c - see grep_show.h */
#include "output/grep_show.h"

#include <string.h>

#include "base/limits.h"
#include "base/text.h"

static bool is_inside(const char *p, size_t at, size_t end)
{
        return at < end && ((unsigned char)p[at] & 0xC0) == 0x80;
}

/* `chars` characters back from `at`, not before `floor`; *done is how many it were. */
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

void grep_show_line(const char *text, size_t from, size_t to, size_t start, size_t end, bool utf8,
    struct grep_line *out)
{
        size_t first = from;
        size_t last = to;
        if (to > from && text[to - 1] == '\r')
                last = --to;
        start = start > to ? to : start;
        end = end > to ? to : end;
        if (!is_short(text + from, to - from, utf8)) {
                size_t used = 0;
                size_t before = 0;
                size_t after = 0;
                size_t match_end = step_on(text, start, end, CONTEXT_LONG_LINE, utf8, &used);
                size_t spare = CONTEXT_LONG_LINE - used;
                step_back(text, from, start, spare / 2, utf8, &before);
                last = step_on(text, match_end, to, spare - before, utf8, &after);
                first = step_back(text, from, start, spare - after, utf8, &before);
        }
        out->text = str_span(text + first, last - first);
        out->byte_offset = first;
        out->cut_before = first > from;
        out->cut_after = last < to;
}

uint32_t grep_show_before(
    const char *text, size_t from, uint32_t count, bool utf8, struct grep_line *out)
{
        size_t starts = 0;
        size_t at = from;
        while (starts < count && at > 0) {
                const char *nl = memrchr(text, '\n', at - 1);
                at = nl ? (size_t)(nl - text) + 1 : 0;
                starts++;
        }
        for (size_t i = 0; i < starts; i++) {
                size_t end = (size_t)((const char *)memchr(text + at, '\n', from - at) - text);
                grep_show_line(text, at, end, at, at, utf8, &out[i]);
                at = end + 1;
        }
        return (uint32_t)starts;
}

uint32_t grep_show_after(
    const char *text, size_t n, size_t to, uint32_t count, bool utf8, struct grep_line *out)
{
        uint32_t k = 0;
        size_t at = to + 1;
        for (; k < count && at < n; k++) {
                const char *nl = memchr(text + at, '\n', n - at);
                size_t end = nl ? (size_t)(nl - text) : n;
                grep_show_line(text, at, end, at, at, utf8, &out[k]);
                at = end + 1;
        }
        return k;
}
