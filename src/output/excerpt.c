/*
 * excerpt.c - see excerpt.h. This file collects; excerpt_snippet.c writes the snippets.
 *
 * Bytes are collected into blocks of fixed size before they are searched. So the result depends on
 * offsets in the output and never on how it was cut into pieces.
 */
#include "output/excerpt.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "output/clean.h"
#include "output/cut.h"
#include "output/errors.h"
#include "output/excerpt_state.h"
#include "output/lines.h"

#define LONG_LINE ((size_t)8 * 1024) /* of a longer error line, only a window is read */
#define WINDOW 160                   /* bytes on each side of the word in such a line */
#define SATURATED 4096               /* after as many error words, only block ends are read */
#define FOLLOWING 7                  /* lines behind an error line */
#define REPORT_LINE 260              /* bytes of a line in a report */

static size_t pick(size_t given, size_t fallback, size_t max)
{
        size_t v = given ? given : fallback;
        return v > max ? max : v;
}

struct excerpt *excerpt_new(const struct excerpt_options *opt)
{
        struct excerpt *e = calloc(1, sizeof(*e));
        if (!e)
                return NULL;
        e->max_lines = pick(opt ? opt->lines : 0, EXCERPT_LINES, EXCERPT_LINES_MAX);
        e->max_bytes = pick(opt ? opt->bytes : 0, EXCERPT_BYTES, EXCERPT_BYTES_MAX);
        /* Escape sequences and overwritten progress lines may take many bytes but show little
         * text. */
        e->raw_max = e->max_bytes * 4 > 8192 ? e->max_bytes * 4 : 8192;
        e->block = malloc(EXCERPT_BLOCK);
        e->head = malloc(e->raw_max);
        e->last = malloc(e->raw_max);
        e->head_ends = calloc(e->max_lines, sizeof(*e->head_ends));
        e->starts = calloc(e->max_lines + 1, sizeof(*e->starts));
        if (!e->block || !e->head || !e->last || !e->head_ends || !e->starts) {
                excerpt_free(e);
                return NULL;
        }
        e->starts[0] = 0;
        e->start_count = 1;
        errors_filter(&e->filter);
        return e;
}

void excerpt_free(struct excerpt *e)
{
        if (!e)
                return;
        free(e->starts);
        free(e->head_ends);
        free(e->last);
        free(e->head);
        free(e->block);
        free(e);
}

/* ---- both ends ---- */

static void keep_head(struct excerpt *e, const char *p, size_t n)
{
        if (e->head_n < e->raw_max) {
                size_t take = e->raw_max - e->head_n < n ? e->raw_max - e->head_n : n;
                memcpy(e->head + e->head_n, p, take);
                e->head_n += take;
        }
        const char *at = p;
        while (e->head_end_count < e->max_lines) {
                const char *nl = memchr(at, '\n', (size_t)(p + n - at));
                if (!nl)
                        return;
                e->head_ends[e->head_end_count++] = e->done + (uint64_t)(nl - p);
                at = nl + 1;
        }
}

static void keep_last(struct excerpt *e, const char *p, size_t n)
{
        if (n >= e->raw_max) {
                memcpy(e->last, p + n - e->raw_max, e->raw_max);
                e->last_n = e->raw_max;
                return;
        }
        if (e->last_n + n > e->raw_max) {
                size_t drop = e->last_n + n - e->raw_max;
                memmove(e->last, e->last + drop, e->last_n - drop);
                e->last_n -= drop;
        }
        memcpy(e->last + e->last_n, p, n);
        e->last_n += n;
}

static void keep_starts(struct excerpt *e, const char *p, size_t n)
{
        size_t fresh = 0;
        const char *end = p + n;
        const char *at = end;
        while (fresh < e->max_lines + 1) {
                at = memrchr(p, '\n', (size_t)(at - p));
                if (!at)
                        break;
                fresh++;
        }
        size_t room = e->max_lines + 1 - fresh;
        size_t old = e->start_count < room ? e->start_count : room;
        memmove(e->starts, e->starts + e->start_count - old, old * sizeof(*e->starts));
        at = end;
        for (size_t i = fresh; i-- > 0;) {
                at = memrchr(p, '\n', (size_t)(at - p));
                e->starts[old + i] = e->done + (uint64_t)(at - p) + 1;
        }
        e->start_count = old + fresh;
}

/* ---- failures ---- */

static uint64_t hash_shape(struct str line)
{
        char shape[256];
        size_t n = 0;
        for (size_t i = 0; i < line.n && n < sizeof(shape); i++) {
                if (line.p[i] < '0' || line.p[i] > '9')
                        shape[n++] = line.p[i];
        }
        return hash_64(shape, n);
}

static bool is_known(const struct report *list, size_t n, uint64_t hash)
{
        for (size_t i = 0; i < n; i++) {
                if (list[i].line && list[i].hash == hash)
                        return true;
        }
        return false;
}

static void keep_best(struct excerpt *e, const struct report *r)
{
        struct report *worst = &e->best[0];
        for (size_t i = 0; i < EXCERPT_BEST; i++) {
                if (e->best[i].score < worst->score)
                        worst = &e->best[i];
        }
        if (r->score > worst->score)
                *worst = *r;
}

static void keep_report(struct excerpt *e, const struct report *r)
{
        if (is_known(e->first, EXCERPT_FIRST, r->hash) ||
            is_known(e->best, EXCERPT_BEST, r->hash) || is_known(e->recent, EXCERPT_LAST, r->hash))
                return;
        keep_best(e, r);
        if (r->score < ERRORS_SUMMARY)
                return;
        for (size_t i = 0; i < EXCERPT_FIRST; i++) {
                if (e->first[i].line == 0) {
                        e->first[i] = *r;
                        return;
                }
        }
        memmove(e->recent, e->recent + 1, (EXCERPT_LAST - 1) * sizeof(*e->recent));
        e->recent[EXCERPT_LAST - 1] = *r;
}

/* A line of the block: [from, to) without its LF. */
struct span {
        size_t from;
        size_t to;
};

static struct span line_around(const char *p, size_t n, size_t at)
{
        const char *before = memrchr(p, '\n', at);
        const char *after = memchr(p + at, '\n', n - at);
        return (struct span){
            before ? (size_t)(before - p) + 1 : 0, after ? (size_t)(after - p) : n};
}

/* Returns the part of a line that is scored: the whole line, or a window around the word that was
 * found. */
static struct str readable(const char *p, struct span line, size_t at)
{
        struct str s = {p + line.from, line.to - line.from};
        if (s.n <= LONG_LINE)
                return s;
        size_t hit = at - line.from;
        size_t from = cut_after(s.p, s.n, hit > WINDOW ? hit - WINDOW : 0);
        size_t to = cut_before(s.p, s.n, hit + WINDOW < s.n ? hit + WINDOW : s.n);
        return str_span(s.p + from, to > from ? to - from : 0);
}

static int score_of(struct excerpt *e, struct buf *plain, struct str raw)
{
        buf_clear(plain);
        clean_put(plain, raw);
        e->failed = e->failed || plain->failed;
        return errors_score(buf_str(plain));
}

static bool add_line(
    struct excerpt *e, struct report *r, struct buf *line, struct str raw, uint64_t whole)
{
        buf_clear(line);
        bool fits = excerpt_snippet_put_line(line, raw, whole, REPORT_LINE, false, NULL);
        e->failed = e->failed || line->failed;
        if (!fits || line->failed || r->size + line->n > sizeof(r->text))
                return false;
        memcpy(r->text + r->size, line->p, line->n);
        r->size = (uint16_t)(r->size + line->n);
        return true;
}

/* Fills a report about the line at `own`; returns the end of the last line in the report. */
static size_t make_report(struct excerpt *e, struct report *r, struct buf *scratch,
    struct str block, struct span own, struct str text, uint64_t number)
{
        const char *p = block.p;
        size_t n = block.n;
        size_t whole = own.to - own.from;
        r->line = r->first_line = r->last_line = number;
        r->hash = hash_shape(text);
        r->size = 0;
        if (own.from > 1 && r->score >= ERRORS_FAILED) {
                struct span b = line_around(p, own.from - 1, own.from - 1);
                size_t size = b.to - b.from;
                if (size > 0 && size < LONG_LINE &&
                    add_line(e, r, scratch, str_span(p + b.from, size), size))
                        r->first_line--;
        }
        r->own_at = r->size;
        add_line(e, r, scratch, text, whole);
        r->own_size = (uint16_t)(r->size - r->own_at);
        size_t end = own.to;
        for (int i = 0; i < FOLLOWING && end + 1 < n; i++) {
                struct span next = line_around(p, n, end + 1);
                size_t size = next.to - next.from;
                struct str raw = {p + next.from, size};
                if (size > LONG_LINE || !errors_continues(raw) ||
                    score_of(e, scratch, raw) >= ERRORS_FAILED ||
                    !add_line(e, r, scratch, raw, size))
                        break;
                end = next.to;
                r->last_line++;
        }
        return end;
}

/* Searches for failures in whole lines (or a piece of a long one). `number` is the number of the
 * first line. */
static void find_errors(struct excerpt *e, const char *p, size_t n, uint64_t number)
{
        struct report r;
        struct buf scratch;
        size_t at = 0;
        size_t counted = 0;
        if (e->hits > SATURATED && n > LONG_LINE) {
                const char *nl = memchr(p + n - LONG_LINE, '\n', LONG_LINE);
                at = nl ? (size_t)(nl + 1 - p) : n - LONG_LINE;
        }
        buf_init(&scratch, 0);
        while ((at = finder_next(&e->filter, p, n, at, NULL)) < n) {
                struct span own = line_around(p, n, at);
                struct str text = readable(p, own, at);
                r.score = score_of(e, &scratch, text);
                e->hits++;
                if (r.score == ERRORS_NONE) {
                        /* In a long line, another window may have an error. */
                        at = own.to - own.from > LONG_LINE ? at + WINDOW : own.to;
                        continue;
                }
                number += lines_count(p + counted, own.from - counted);
                counted = own.from;
                at = make_report(e, &r, &scratch, str_span(p, n), own, text, number);
                keep_report(e, &r);
        }
        buf_release(&scratch);
}

/* ---- feeding ---- */

/* Takes the first n bytes of the block. */
static void take(struct excerpt *e, size_t n)
{
        const char *p = e->block;
        keep_head(e, p, n);
        keep_last(e, p, n);
        keep_starts(e, p, n);
        find_errors(e, p, n, e->lines + 1);
        e->nul = e->nul || memchr(p, 0, n) != NULL;
        e->lines += lines_count(p, n);
        e->done += n;
        e->have -= n;
        memmove(e->block, e->block + n, e->have);
}

void excerpt_feed(struct excerpt *e, const void *bytes, size_t n)
{
        const char *p = bytes;
        if (n == 0)
                return;
        text_utf8_feed(&e->utf8, p, n);
        if (!e->utf8.bad)
                e->chars += text_count_leads(p, n);
        while (n) {
                size_t room = EXCERPT_BLOCK - e->have;
                size_t part = n < room ? n : room;
                memcpy(e->block + e->have, p, part);
                e->have += part;
                p += part;
                n -= part;
                if (e->have < EXCERPT_BLOCK)
                        return;
                const char *nl = memrchr(e->block, '\n', e->have);
                /* Takes whole lines, unless a single line fills the block. */
                take(e, nl ? (size_t)(nl + 1 - e->block) : e->have);
        }
}

void excerpt_finish(struct excerpt *e)
{
        if (e->have)
                take(e, e->have);
        uint64_t bytes = e->done;
        bool open = e->last_n > 0 && e->last[e->last_n - 1] != '\n';
        if (open)
                e->lines++;
        else if (e->start_count > 0)
                e->start_count--; /* behind the last LF there is no line */
        if (e->start_count > e->max_lines)
                memmove(e->starts, e->starts + 1, e->max_lines * sizeof(*e->starts));
        if (e->start_count > e->max_lines)
                e->start_count = e->max_lines;
        if (open && e->head_end_count < e->max_lines)
                e->head_ends[e->head_end_count++] = bytes;
}

void excerpt_figures(const struct excerpt *e, struct excerpt_figures *out)
{
        out->bytes = e->done;
        out->lines = e->lines;
        out->utf8 = text_utf8_finish(&e->utf8);
        out->chars = out->utf8 ? e->chars : e->done;
        out->binary = !out->utf8 && (e->nul || text_looks_binary(e->head, e->head_n) ||
                                        text_looks_binary(e->last, e->last_n));
}

bool excerpt_failed(const struct excerpt *e)
{
        return e->failed;
}

struct str excerpt_first_bytes(const struct excerpt *e)
{
        return str_span(e->head, e->head_n);
}
