/*
 * excerpt_snippet.c - writes snippets of what an excerpt has collected. See excerpt.h and
 * excerpt_state.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "output/clean.h"
#include "output/cut.h"
#include "output/excerpt_state.h"

#define MARKER_ROOM 64 /* for the marker of a clamped line with its figures, and a guard */
#define LINE_SHARE 5   /* a line may fill a fifth of a snippet; a longer one is clamped */

/* ---- one line ---- */

static void put_marker(struct buf *out, uint64_t whole, bool from_end)
{
        buf_puts(out, from_end ? "[clamped: end of a line of " : " [clamped: a line of ");
        text_put_grouped(out, whole);
        buf_puts(out, from_end ? " bytes] " : " bytes]");
}

/* Cleans the largest part of `raw` whose cleaned form has at most `max` bytes. Returns the raw size
 * of this part. */
static size_t clean_part(struct buf *out, struct str raw, size_t max, bool from_end)
{
        size_t take = raw.n < max ? raw.n : max;
        for (;;) {
                struct str part = raw;
                if (from_end) {
                        size_t at = cut_after(raw.p, raw.n, raw.n - take);
                        part = str_span(raw.p + at, raw.n - at);
                } else {
                        part.n = cut_before(raw.p, raw.n, take);
                }
                buf_clear(out);
                clean_put(out, part);
                if (out->n <= max || take == 0 || out->failed)
                        return part.n;
                take = take * max / out->n;
        }
}

bool excerpt_snippet_put_line(
    struct buf *out, struct str raw, uint64_t whole, size_t max, bool from_end, size_t *used)
{
        struct buf line;
        bool fits = true;
        size_t shown = raw.n;
        buf_init(&line, 0);
        if (raw.n < 16 * max)
                clean_put(&line, raw);
        int failed = line.failed;
        bool clamped = raw.n < whole || raw.n >= 16 * max || line.n + 2 > max;
        if (clamped) {
                fits = max > 2 * MARKER_ROOM;
                shown = fits ? clean_part(&line, raw, max - MARKER_ROOM, from_end) : 0;
        }
        if (failed || line.failed)
                out->failed = STENO_ENOMEM;
        if (fits) {
                if (clamped && from_end)
                        put_marker(out, whole, true);
                else if (clean_looks_framed(buf_str(&line)))
                        buf_putc(out, '\\');
                buf_put(out, line.p, line.n);
                if (clamped && !from_end)
                        put_marker(out, whole, false);
                buf_putc(out, '\n');
        }
        if (used)
                *used = shown;
        buf_release(&line);
        return fits;
}

void excerpt_snippet_init(struct snippet *s)
{
        memset(s, 0, sizeof(*s));
        buf_init(&s->text, 0);
}

void excerpt_snippet_release(struct snippet *s)
{
        buf_release(&s->text);
}

static void snippet_clear(struct snippet *s)
{
        buf_clear(&s->text);
        s->first_line = s->last_line = s->raw_end = 0;
}

/* Returns the maximum length of one line; few lines are longer. */
static size_t line_room(const struct excerpt *e, size_t max_bytes)
{
        uint64_t share = e->lines < LINE_SHARE ? (e->lines ? e->lines : 1) : LINE_SHARE;
        size_t room = max_bytes / (size_t)share;
        if (room < 3 * MARKER_ROOM)
                room = 3 * MARKER_ROOM;
        return room < max_bytes ? room : max_bytes;
}

/* ---- head ---- */

void excerpt_head(const struct excerpt *e, size_t max_bytes, struct snippet *s)
{
        uint64_t start = 0;
        size_t limit = max_bytes < e->max_bytes ? max_bytes : e->max_bytes;
        size_t room = line_room(e, limit);
        snippet_clear(s);
        for (size_t i = 0; i < e->max_lines && start < e->head_n; i++) {
                /* A line whose end is not known continues to the end of the output. */
                uint64_t end = i < e->head_end_count ? e->head_ends[i] : e->done;
                size_t have = end < e->head_n ? (size_t)end : e->head_n;
                struct str raw = {e->head + start, have - (size_t)start};
                size_t left = limit - s->text.n;
                size_t used = 0;
                bool share = left < room;
                size_t before = s->text.n;
                if (raw.n < end - start)
                        raw.n = cut_before(raw.p, raw.n, raw.n - 1);
                if (!excerpt_snippet_put_line(
                        &s->text, raw, end - start, share ? left : room, false, &used))
                        break;
                if (share && used < end - start && before > 0) {
                        /* A line is left out if it would be clamped only because the snippet
                         * ends. */
                        s->text.n = before;
                        break;
                }
                s->first_line = 1;
                s->last_line = i + 1;
                s->raw_end = used < end - start ? start + used : end + 1;
                start = end + 1;
        }
}

/* ---- tail ---- */

/* Returns the raw bytes of one of the last lines that are still kept, from `floor` on. */
static struct str last_bytes(const struct excerpt *e, uint64_t start, uint64_t end, uint64_t floor)
{
        uint64_t base = e->done - e->last_n;
        uint64_t from = start;
        if (from < base)
                from = base;
        if (from < floor)
                from = floor;
        if (from >= end)
                return str_span(e->last, 0);
        size_t at = (size_t)(from - base);
        size_t to = (size_t)(end - base);
        if (from > start && from > base)
                at = cut_after(e->last, to, at);
        else if (from > start)
                at = cut_after(e->last, to, 1);
        return str_span(e->last + at, to - at);
}

void excerpt_tail(
    const struct excerpt *e, size_t max_bytes, const struct snippet *head, struct snippet *s)
{
        size_t limit = max_bytes < e->max_bytes ? max_bytes : e->max_bytes;
        size_t room = line_room(e, limit);
        uint64_t floor = head ? head->raw_end : 0;
        uint64_t end = e->done;
        int failed = 0;
        struct buf line, all;
        snippet_clear(s);
        buf_init(&line, 0);
        buf_init(&all, 0);
        if (e->last_n && e->last[e->last_n - 1] == '\n')
                end--;
        for (size_t i = e->start_count; i-- > 0;) {
                uint64_t start = e->starts[i];
                size_t left = limit - s->text.n;
                size_t used = 0;
                bool share = left < room;
                struct str raw = last_bytes(e, start, end, floor);
                if (end < floor || (raw.n == 0 && end > start))
                        break;
                buf_clear(&line);
                if (!excerpt_snippet_put_line(
                        &line, raw, end - start, share ? left : room, true, &used))
                        break;
                if (share && used < end - start && s->text.n > 0)
                        break;
                /* Lines come in reverse order: each is put before the lines so far. */
                buf_clear(&all);
                buf_put_str(&all, buf_str(&line));
                buf_put_str(&all, buf_str(&s->text));
                failed = failed ? failed : all.failed ? all.failed : line.failed;
                buf_clear(&s->text);
                buf_put_str(&s->text, buf_str(&all));
                s->first_line = e->lines - (e->start_count - 1 - i);
                s->last_line = e->lines;
                if (start == 0)
                        break;
                end = start - 1;
        }
        if (failed)
                s->text.failed = failed;
        buf_release(&all);
        buf_release(&line);
}

/* ---- errors ---- */

void excerpt_error_snippet_init(struct error_snippet *s)
{
        memset(s, 0, sizeof(*s));
        buf_init(&s->text, 0);
}

void excerpt_error_snippet_release(struct error_snippet *s)
{
        buf_release(&s->text);
}

struct choice {
        const struct report *report;
        int weight;
        bool taken;
        bool brief; /* there is room only for the error line itself */
};

#define CHOICES (EXCERPT_FIRST + EXCERPT_LAST + EXCERPT_BEST)

static bool is_shown(const struct snippet *s, const struct report *r)
{
        return s && s->last_line && r->line >= s->first_line && r->line <= s->last_line;
}

static size_t add_choices(struct choice *list, size_t n, const struct report *from, size_t count,
    int bonus, const struct snippet *head, const struct snippet *tail)
{
        for (size_t i = 0; i < count; i++) {
                size_t k = 0;
                if (from[i].line == 0 || is_shown(head, &from[i]) || is_shown(tail, &from[i]))
                        continue;
                while (k < n && list[k].report->line != from[i].line)
                        k++;
                if (k < n)
                        continue;
                list[n++] = (struct choice){&from[i], from[i].score + bonus, false, false};
        }
        return n;
}

static int by_weight(const void *a, const void *b)
{
        const struct choice *x = a, *y = b;
        if (x->weight != y->weight)
                return x->weight < y->weight ? 1 : -1;
        return x->report->line < y->report->line ? -1 : x->report->line > y->report->line;
}

static int by_line(const void *a, const void *b)
{
        const struct choice *x = a, *y = b;
        return x->report->line < y->report->line ? -1 : x->report->line > y->report->line;
}

static void take_choices(struct choice *list, size_t n, size_t max_bytes)
{
        static const size_t gap = 4; /* "...\n" */
        size_t used = 0;
        int best = n ? list[0].report->score : 0;
        size_t taken = 0;
        for (size_t i = 0; i < n && taken < EXCERPT_ERROR_LINES; i++) {
                const struct report *r = list[i].report;
                /* If a line names the cause, lines that only mention an error are left out. */
                if (r->score < ERRORS_LIKELY && best > ERRORS_LIKELY)
                        continue;
                list[i].brief = used + r->size + gap > max_bytes;
                size_t size = list[i].brief ? r->own_size : r->size;
                if (size == 0 || used + size + gap > max_bytes)
                        continue;
                list[i].taken = true;
                taken++;
                used += size + gap;
        }
}

void excerpt_errors(const struct excerpt *e, size_t max_bytes, const struct snippet *head,
    const struct snippet *tail, struct error_snippet *s)
{
        struct choice list[CHOICES];
        size_t n = 0;
        uint64_t previous = 0;
        size_t limit = max_bytes < EXCERPT_ERROR_BYTES ? max_bytes : EXCERPT_ERROR_BYTES;
        buf_clear(&s->text);
        s->count = 0;
        n = add_choices(list, n, e->first, 1, 15, head, tail);
        n = add_choices(list, n, e->recent + EXCERPT_LAST - 1, 1, 10, head, tail);
        n = add_choices(list, n, e->best, EXCERPT_BEST, 0, head, tail);
        n = add_choices(list, n, e->first, EXCERPT_FIRST, 0, head, tail);
        n = add_choices(list, n, e->recent, EXCERPT_LAST, 0, head, tail);
        qsort(list, n, sizeof(*list), by_weight);
        take_choices(list, n, limit);
        qsort(list, n, sizeof(*list), by_line);
        for (size_t i = 0; i < n; i++) {
                const struct report *r = list[i].report;
                if (!list[i].taken)
                        continue;
                if (previous && r->first_line > previous + 1)
                        buf_puts(&s->text, "...\n");
                previous = list[i].brief ? r->line : r->last_line;
                if (list[i].brief)
                        buf_put(&s->text, r->text + r->own_at, r->own_size);
                else
                        buf_put(&s->text, r->text, r->size);
                s->lines[s->count++] = r->line;
        }
}
