/*
 * grep.c - see grep.h.
 *
 * Three ways to search, from what pattern.h knows:
 *   literals   every match contains one of a few literals: find those at the speed of memory and
 *              run the engine on their lines only (or not at all, where the literal is the match)
 *   windows    no match can see a line feed: run the engine over many lines at once
 *   lines      anything else: each line alone
 * A text is taken in blocks of whole lines. Where a block is ASCII the engine runs on bytes, which
 * is faster and means the same.
 *
 * Time: the engine bounds what a starting point may cost (grep_pcre2.c); a call is given few
 * enough of them to return soon, and the clock is looked at between calls.
 */
#include "output/grep.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "output/grep_engine.h"
#include "output/grep_show.h"
#include "output/lines.h"
#include "output/pattern.h"

#define BLOCK ((size_t)256 * 1024)
#define WINDOW ((size_t)16 * 1024) /* starting points of one light call */
#define SLICE ((size_t)1024)       /* the same in a long line, where each can cost more */
#define HARD_SLICE 8
#define LOOKBEHIND 256 /* bytes before a slice that assertions can see */
#define DENSE 200      /* a candidate in so few bytes on average is no filter */

struct search {
        const char *text;
        size_t n;
        const struct grep_options *opt;
        const struct grep_engine *engine;
        struct grep_code *code[2];   /* bytes, characters; compiled when first needed */
        struct pattern_info info[2]; /* text that is ASCII, text that may not be */
        struct finder finder[2];
        bool has_finder[2];
        bool dense;
        int wide; /* index of the above for the block at hand */
        size_t candidates;
        /* time */
        int64_t began; /* time_monotonic_us() */
        size_t unchecked;
        uint32_t deadline_ms;
        /* what was found */
        struct grep_result *out;
        size_t cap;
        uint32_t max_results;
        uint32_t context;
        size_t bytes;
        bool full;      /* no more are collected */
        size_t counted; /* line feeds before this place are in `line` */
        uint64_t line;
        struct steno_error *err;
};

/* ---- time ---- */

static uint64_t elapsed_us(const struct search *s)
{
        return (uint64_t)(time_monotonic_us() - s->began);
}

/* Called with the place that was reached, after `work` bytes of engine time. */
static int check_time(struct search *s, size_t at, size_t work)
{
        s->unchecked += work;
        if (s->unchecked < WINDOW)
                return 0;
        s->unchecked = 0;
        uint64_t us = elapsed_us(s);
        if (us < (uint64_t)s->deadline_ms * 1000)
                return 0;
        if (at / (us / 1000 + 1) > GREP_RATE_FLOOR / 1000)
                return 0;
        return error_set(
            s->err, STENO_ELIMIT, "pattern too costly: no answer within %u ms", s->deadline_ms);
}

/* ---- results ---- */

static int grow(struct search *s)
{
        if (s->out->count < s->cap)
                return 0;
        size_t cap = s->cap ? s->cap * 2 : 16;
        struct grep_match *m = realloc(s->out->matches, cap * sizeof(*m));
        if (!m)
                return error_nomem(s->err);
        s->out->matches = m;
        size_t lines = cap * 2 * s->context;
        if (lines) {
                struct grep_line *c = realloc(s->out->context, lines * sizeof(*c));
                if (!c)
                        return error_nomem(s->err);
                s->out->context = c;
        }
        s->cap = cap;
        return 0;
}

static size_t context_bytes(const struct grep_line *list, uint32_t n)
{
        size_t sum = 0;
        for (uint32_t i = 0; i < n; i++)
                sum += list[i].text.n;
        return sum;
}

/* A matching line [from, to), the match at [start, end). */
static int collect(struct search *s, size_t from, size_t to, size_t start, size_t end)
{
        s->out->total_matches++;
        if (s->full)
                return 0;
        int rc = grow(s);
        if (rc < 0)
                return rc;
        struct grep_match *m = &s->out->matches[s->out->count];
        struct grep_line *around = s->out->context + s->out->count * 2 * s->context;
        memset(m, 0, sizeof(*m));
        s->line += lines_count(s->text + s->counted, from - s->counted);
        s->counted = from;
        m->line = s->line;
        m->match_offset = start;
        m->match_size = end - start;
        grep_show_line(s->text, from, to, start, end, s->opt->utf8, &m->content);
        size_t bytes = m->content.text.n;
        if (s->context) {
                m->before_count = grep_show_before(s->text, from, s->context, s->opt->utf8, around);
                m->after_count = grep_show_after(
                    s->text, s->n, to, s->context, s->opt->utf8, around + s->context);
                bytes += context_bytes(around, m->before_count) +
                         context_bytes(around + s->context, m->after_count);
        }
        if (s->opt->max_bytes && s->out->count > 0 && s->bytes + bytes > s->opt->max_bytes) {
                s->full = true;
                return 0;
        }
        s->bytes += bytes;
        s->out->count++;
        s->full = s->out->count >= s->max_results;
        return 0;
}

/* Context moved while it grew; it is linked once it stands still. */
static void link_context(struct search *s)
{
        for (size_t i = 0; i < s->out->count && s->context; i++) {
                struct grep_match *m = &s->out->matches[i];
                m->before = s->out->context + i * 2 * s->context;
                m->after = m->before + s->context;
        }
        s->out->truncated = s->out->count < s->out->total_matches;
}

/* ---- one line ---- */

static int code_for(struct search *s, struct grep_code **code)
{
        bool chars = s->opt->utf8 && (s->wide || !s->info[0].ascii);
        struct grep_mode mode = {chars, s->opt->case_sensitive};
        if (!s->code[chars]) {
                int rc = s->engine->compile(s->opt->pattern, &mode, &s->code[chars], s->err);
                if (rc < 0)
                        return rc;
        }
        *code = s->code[chars];
        return 0;
}

/* Slices begin with whole characters; that they overlap by some bytes does no harm. */
static size_t char_floor(const char *p, size_t n, size_t at)
{
        for (int i = 0; i < 3 && at > 0 && at < n && ((unsigned char)p[at] & 0xC0) == 0x80; i++)
                at--;
        return at;
}

/* A match that reaches the end of a window may owe it to that end (\z): it is tried once more in
 * sight of the whole line. Where that costs too much it is believed. */
static bool holds_in_line(struct search *s, struct grep_code *code, const char *line, size_t n,
    size_t *start, size_t *end)
{
        struct steno_error unused;
        struct grep_subject sub = {
            .p = line, .n = n, .from = *start, .stop = *start + 1, .effort = GREP_HARD};
        size_t from = 0;
        size_t to = 0;
        int rc = s->engine->next(code, &sub, &from, &to, &unused);
        if (rc != 1)
                return rc != 0;
        *start = from;
        *end = to;
        return true;
}

/* Runs the engine over a line in slices of starting points, each seeing a part of it only. */
static int match_sliced(struct search *s, struct grep_code *code, size_t from, size_t to,
    enum grep_effort effort, size_t *start, size_t *end)
{
        const char *line = s->text + from;
        size_t n = to - from;
        size_t step = effort == GREP_HARD ? HARD_SLICE : SLICE;
        for (size_t next = 0; next <= n;) {
                size_t at = char_floor(line, n, next);
                size_t base = at < LOOKBEHIND ? 0 : char_floor(line, n, at - LOOKBEHIND);
                bool cut = n - at > step + GREP_LONG_SUBJECT;
                size_t last = cut ? at + step + GREP_LONG_SUBJECT : n;
                struct grep_subject sub = {.p = line + base,
                    .n = last - base,
                    .from = at - base,
                    .stop = next - base + step,
                    .cut_before = base > 0,
                    .cut_after = cut,
                    .effort = effort};
                int rc = s->engine->next(code, &sub, start, end, s->err);
                if (rc == STENO_ELIMIT && effort == GREP_LIGHT) {
                        effort = GREP_HARD;
                        step = HARD_SLICE;
                        continue;
                }
                if (rc < 0)
                        return rc;
                *start += base;
                *end += base;
                next += step;
                if (rc == 1 &&
                    (!cut || *end < last || holds_in_line(s, code, line, n, start, end))) {
                        *start += from;
                        *end += from;
                        return 1;
                }
                if (rc == 1)
                        next = *start + 1;
                rc = check_time(s, from + at, WINDOW);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* Is there a match in the line [from, to)? */
static int match_line(struct search *s, size_t from, size_t to, size_t *start, size_t *end)
{
        struct grep_code *code = NULL;
        int rc = code_for(s, &code);
        if (rc < 0)
                return rc;
        if (to > from && s->text[to - 1] == '\r')
                to--;
        if (to - from > WINDOW)
                return match_sliced(s, code, from, to, GREP_LIGHT, start, end);
        struct grep_subject sub = {.p = s->text + from, .n = to - from, .stop = to - from + 1};
        rc = s->engine->next(code, &sub, start, end, s->err);
        if (rc == STENO_ELIMIT)
                return match_sliced(s, code, from, to, GREP_HARD, start, end);
        *start += from;
        *end += from;
        int late = check_time(s, to, to - from + 64);
        return late < 0 ? late : rc;
}

static size_t line_end(const struct search *s, size_t at)
{
        const char *nl = memchr(s->text + at, '\n', s->n - at);
        return nl ? (size_t)(nl - s->text) : s->n;
}

static int search_line(struct search *s, size_t from, size_t to)
{
        size_t start = 0;
        size_t end = 0;
        int rc = match_line(s, from, to, &start, &end);
        return rc == 1 ? collect(s, from, to, start, end) : rc;
}

/* ---- blocks: [from, to), whole lines, `to` behind an LF or at the text's end ---- */

static int search_lines(struct search *s, size_t from, size_t to)
{
        for (size_t at = from; at < to;) {
                size_t end = line_end(s, at);
                int rc = search_line(s, at, end);
                if (rc < 0)
                        return rc;
                at = end + 1;
        }
        return 0;
}

static int search_literals(struct search *s, size_t from, size_t to)
{
        const struct finder *f = &s->finder[s->wide];
        bool exact = s->info[s->wide].exact;
        const char *p = s->text;
        size_t which = 0;
        for (size_t at = from; (at = finder_next(f, p, to, at, &which)) < to;) {
                const char *nl = at > from ? memrchr(p + from, '\n', at - from) : NULL;
                size_t start = nl ? (size_t)(nl - p) + 1 : from;
                size_t end = line_end(s, at);
                int rc = exact ? collect(s, start, end, at, at + f->size[which])
                               : search_line(s, start, end);
                if (rc < 0)
                        return rc;
                s->candidates++;
                at = end + 1;
                from = at;
        }
        return 0;
}

/* Whole lines of a window at once. STENO_ELIMIT of the engine: the lines one by one. */
static int search_window(struct search *s, struct grep_code *code, size_t from, size_t to)
{
        size_t n = to > from && s->text[to - 1] == '\n' ? to - 1 - from : to - from;
        struct grep_subject sub = {.p = s->text + from, .n = n, .stop = n + 1};
        while (sub.from <= n) {
                size_t start = 0;
                size_t end = 0;
                int rc = s->engine->next(code, &sub, &start, &end, s->err);
                if (rc == STENO_ELIMIT)
                        return search_lines(s, from + sub.from, to);
                if (rc <= 0)
                        return rc;
                const char *nl = start ? memrchr(sub.p, '\n', start) : NULL;
                size_t line = nl ? (size_t)(nl - sub.p) + 1 : 0;
                size_t stop = line_end(s, from + start);
                rc = collect(s, from + line, stop, from + start, from + end);
                if (rc < 0)
                        return rc;
                sub.from = stop - from + 1;
        }
        return 0;
}

static int search_windows(struct search *s, size_t from, size_t to)
{
        struct grep_code *code = NULL;
        int rc = code_for(s, &code);
        for (size_t at = from; at < to && rc >= 0;) {
                size_t end = to;
                if (to - at > WINDOW) {
                        const char *nl = memrchr(s->text + at, '\n', WINDOW);
                        end = nl ? (size_t)(nl - s->text) + 1 : line_end(s, at) + 1;
                        end = end > to ? to : end;
                }
                rc = end - at > WINDOW ? search_lines(s, at, end) : search_window(s, code, at, end);
                if (rc >= 0)
                        rc = check_time(s, end, end - at);
                at = end;
        }
        return rc;
}

static bool is_ascii(const char *p, size_t n)
{
        const uint64_t bits = 0x8080808080808080u;
        size_t i = 0;
        for (; i + 64 <= n; i += 64) {
                uint64_t w[8];
                memcpy(w, p + i, sizeof(w));
                if ((w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]) & bits)
                        return false;
        }
        for (; i < n; i++) {
                if ((unsigned char)p[i] & 0x80)
                        return false;
        }
        return true;
}

static int search_block(struct search *s, size_t from, size_t to)
{
        /* Only where it makes a difference is the block looked at. */
        bool same = s->has_finder[0] && s->info[0].exact && s->has_finder[1] && s->info[1].exact;
        s->wide = s->opt->utf8 && (same || !is_ascii(s->text + from, to - from));
        if (s->has_finder[s->wide] && !s->dense) {
                size_t before = s->candidates;
                int rc = search_literals(s, from, to);
                if (!s->info[s->wide].exact && (s->candidates - before) * DENSE > to - from)
                        s->dense = true;
                return rc;
        }
        /* A CR before the LF belongs to the line's end, which many lines at once do not show. */
        if (s->info[s->wide].line_bound && !memchr(s->text + from, '\r', to - from))
                return search_windows(s, from, to);
        return search_lines(s, from, to);
}

static int search_text(struct search *s)
{
        for (size_t at = 0; at < s->n;) {
                size_t end = s->n;
                if (s->n - at > BLOCK) {
                        const char *nl = memrchr(s->text + at, '\n', BLOCK);
                        end = nl ? (size_t)(nl - s->text) + 1 : line_end(s, at) + 1;
                        end = end > s->n ? s->n : end;
                }
                int rc = search_block(s, at, end);
                if (rc < 0)
                        return rc;
                rc = check_time(s, end, WINDOW);
                if (rc < 0)
                        return rc;
                at = end;
        }
        return 0;
}

/* ---- the calls ---- */

static int check_pattern(const struct grep_options *opt, struct steno_error *err)
{
        if (opt->pattern.n > GREP_PATTERN_MAX)
                return error_set(err, STENO_ELIMIT, "pattern too long: %zu bytes, at most %d",
                    opt->pattern.n, GREP_PATTERN_MAX);
        /* (*CRLF), (*NO_JIT) and the like would change what a line is, or the limits. */
        if (str_starts(opt->pattern, "(*"))
                return error_set(
                    err, STENO_EPROTO, "bad pattern at byte 0: (*...) is not allowed at the start");
        return 0;
}

static void prepare(struct search *s)
{
        bool fold = !s->opt->case_sensitive;
        for (int wide = 0; wide < 2; wide++) {
                pattern_read(s->opt->pattern, s->opt->utf8, fold, fold && wide, &s->info[wide]);
                s->has_finder[wide] = pattern_finder(&s->info[wide], fold, &s->finder[wide]);
        }
        s->line = 1;
        s->max_results = s->opt->max_results ? s->opt->max_results : CONTEXT_GREP_RESULTS_DEFAULT;
        if (s->max_results > CONTEXT_GREP_RESULTS_MAX)
                s->max_results = CONTEXT_GREP_RESULTS_MAX;
        s->context = s->opt->context_lines < CONTEXT_GREP_CONTEXT_MAX ? s->opt->context_lines
                                                                      : CONTEXT_GREP_CONTEXT_MAX;
        s->deadline_ms = s->opt->deadline_ms ? s->opt->deadline_ms : CONTEXT_GREP_DEADLINE_MS;
        s->began = time_monotonic_us();
}

int grep_run(const char *text, size_t n, const struct grep_options *opt, struct grep_result *out,
    struct steno_error *err)
{
        memset(out, 0, sizeof(*out));
        int rc = check_pattern(opt, err);
        if (rc < 0)
                return rc;
        struct search *s = calloc(1, sizeof(*s));
        if (!s)
                return error_nomem(err);
        s->text = text;
        s->n = n;
        s->opt = opt;
        s->out = out;
        s->err = err;
        s->engine = grep_pcre2();
        prepare(s);
        /* Compiled before anything else, so that a bad pattern is told whatever the text. */
        struct grep_mode mode = {opt->utf8, opt->case_sensitive};
        rc = s->engine->compile(opt->pattern, &mode, &s->code[opt->utf8], err);
        if (rc == 0)
                rc = search_text(s);
        if (rc == 0)
                link_context(s);
        s->engine->free(s->code[0]);
        s->engine->free(s->code[1]);
        free(s);
        if (rc < 0)
                grep_release(out);
        return rc;
}

void grep_release(struct grep_result *r)
{
        free(r->matches);
        free(r->context);
        memset(r, 0, sizeof(*r));
}

int grep_check(const struct grep_options *opt, struct steno_error *err)
{
        struct grep_code *code = NULL;
        struct grep_mode mode = {opt->utf8, opt->case_sensitive};
        int rc = check_pattern(opt, err);
        if (rc == 0)
                rc = grep_pcre2()->compile(opt->pattern, &mode, &code, err);
        grep_pcre2()->free(code);
        return rc;
}
