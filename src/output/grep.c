/*
 * grep.c - see grep.h.
 *
 * There are four ways to search. pattern.h says which are possible. If there is a sieve, the
 * measured time decides:
 *   literals   every match contains one of a few literals: find these at the speed of memory and
 *              run the engine on their lines only (or not at all, if the literal is the match)
 *   sieve      Hyperscan finds the lines that can match (sieve.h): run the engine on these
 *   windows    no match can see a line feed: run the engine over many lines at once
 *   lines      anything else: each line alone (grep_line.c)
 * A text is read in blocks of whole lines (grep_text.c). If a block is ASCII, the engine runs on
 * bytes, which is faster and gives the same result.
 *
 * Time: the engine limits the cost of a starting point (grep_pcre2.c). A call gets few enough
 * starting points to return soon, and the clock is checked between calls.
 */
#include "output/grep.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/scan.h"
#include "base/text.h"
#include "output/grep_search.h"

#define DENSE 200 /* with a candidate in so few bytes on average, candidates do not help */
/* Loading Hyperscan and compiling take some ms. It is used only if the rest of the text would take
 * several times that without it. */
#define SIEVE_GAIN_US 16000
#define LOOK_EVERY_US 1000
#define PACE_BLOCKS 64  /* blocks in the fastest way before others are tried again */
#define PACE_HOPELESS 3 /* a way that is so many times slower is not tried again */

/* ---- time ---- */

static uint64_t elapsed_us(const struct grep_search *s)
{
        return (uint64_t)(time_thread_us() - s->began);
}

int grep_check_time(struct grep_search *s, uint64_t at, size_t work)
{
        s->unchecked += work;
        if (s->unchecked < GREP_WINDOW)
                return 0;
        s->unchecked = 0;
        /* Getting the processor time is a system call. Processor time cannot advance by more than
         * the elapsed time, so that is checked first. */
        int64_t now = time_monotonic_us();
        if (now - s->looked < LOOK_EVERY_US)
                return 0;
        s->looked = now;
        uint64_t us = elapsed_us(s);
        if (us < (uint64_t)s->deadline_ms * 1000)
                return 0;
        if (at / (us / 1000 + 1) > GREP_RATE_FLOOR / 1000)
                return 0;
        return error_set(s->err, STENO_ELIMIT,
            "pattern too costly: no answer within %u ms of processor time", s->deadline_ms);
}

/* ---- results ---- */

static int grow(struct grep_search *s)
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

/* What a match adds to an answer beside its text: numbers and names of members. */
#define MATCH_FRAME 48

static size_t shown_bytes(const struct grep_line *list, uint32_t n)
{
        size_t sum = 0;
        for (uint32_t i = 0; i < n; i++)
                sum += text_escaped_size(list[i].text);
        return sum;
}

/* Returns the size of a match with the lines around it. While it is too large, the farthest lines
 * are dropped. */
static size_t fit_match(struct grep_search *s, struct grep_match *m, struct grep_line *around)
{
        struct grep_line *after = around + s->context;
        size_t content = MATCH_FRAME + shown_bytes(&m->content, 1);
        for (;;) {
                size_t bytes = content + shown_bytes(around, m->before_count) +
                               shown_bytes(after, m->after_count);
                if (!s->opt->max_bytes || bytes <= s->opt->max_bytes ||
                    m->before_count + m->after_count == 0)
                        return bytes;
                s->out->narrowed = true;
                if (m->before_count > m->after_count)
                        memmove(around, around + 1, --m->before_count * sizeof *around);
                else
                        m->after_count--;
        }
}

/* Moves the count of lines to the last line before an offset that the index has. */
static int jump_lines(struct grep_search *s, uint64_t to)
{
        uint64_t at = 0;
        uint64_t line = 0;
        const char *before = NULL;
        /* The index may be wrong: there cannot be more line feeds than bytes between two lines. */
        if (!lines_index_before(s->text.source->index, to, &at, &line) || at <= s->counted ||
            line <= s->line || line - s->line > at - s->counted)
                return 0;
        int rc = grep_text_span(&s->text, at - 1, at, &before, s->err);
        if (rc == 0 && *before == '\n') { /* otherwise the index belongs to another file */
                s->counted = at;
                s->line = line;
        }
        return rc;
}

/* Counts the lines before an offset, as long as line numbers are needed. */
static int count_lines(struct grep_search *s, uint64_t to)
{
        int rc = 0;
        if (s->full && !s->opt->spread)
                s->counted = to;
        if (s->text.source->index && to > s->counted + GREP_TEXT_SPAN)
                rc = jump_lines(s, to);
        while (rc == 0 && s->counted < to) {
                uint64_t stop = to - s->counted < GREP_TEXT_SPAN ? to : s->counted + GREP_TEXT_SPAN;
                const char *p = NULL;
                rc = grep_text_span(&s->text, s->counted, stop, &p, s->err);
                if (rc == 0)
                        s->line += lines_count(p, (size_t)(stop - s->counted));
                s->counted = stop;
        }
        return rc;
}

static int show(struct grep_search *s, const struct grep_hit *hit, struct grep_match *m,
    struct grep_line *around)
{
        struct grep_show how = {&s->text, &s->out->shown, s->opt->utf8};
        int rc = grep_show_line(&how, hit, &m->content, s->err);
        if (rc < 0 || !s->context)
                return rc;
        rc = grep_show_before(&how, hit->from, s->context, around, &m->before_count, s->err);
        if (rc == 0)
                rc = grep_show_after(
                    &how, hit->to, s->context, around + s->context, &m->after_count, s->err);
        return rc;
}

/* Is the match on the requested side of from_line, and should it be collected? */
static bool is_wanted(struct grep_search *s)
{
        const struct grep_options *opt = s->opt;
        if (opt->from_line &&
            (opt->backward ? s->line > opt->from_line : s->line < opt->from_line)) {
                s->before += !opt->backward;
                return false;
        }
        return s->within++ >= s->skip && !s->only_counts && s->out->count < s->max_results;
}

/* Notes in which parts of the text there are matches. This also counts matches that are not
 * collected. */
static int spread(struct grep_search *s, uint64_t at)
{
        struct grep_result *r = s->out;
        uint64_t part = at * s->opt->spread / s->text.source->file.size;
        if (s->only_counts || (r->spread_count && part == s->part))
                return 0;
        int rc = count_lines(s, at);
        if (rc < 0)
                return rc;
        s->part = part;
        r->spread[r->spread_count++] = s->line;
        return 0;
}

int grep_collect(struct grep_search *s, const struct grep_hit *hit)
{
        s->out->total_matches++;
        int rc = s->opt->spread ? spread(s, hit->from) : 0;
        if (rc < 0 || s->full)
                return rc;
        rc = count_lines(s, hit->from);
        if (rc < 0 || !is_wanted(s))
                return rc;
        rc = grow(s);
        if (rc < 0)
                return rc;
        struct grep_match *m = &s->out->matches[s->out->count];
        struct grep_line *around = s->out->context + s->out->count * 2 * s->context;
        *m = (struct grep_match){
            .line = s->line, .match_offset = hit->start, .match_size = hit->end - hit->start};
        rc = show(s, hit, m, around);
        if (rc < 0)
                return rc;
        m->bytes = fit_match(s, m, around);
        bool fits = !s->opt->max_bytes || s->out->count == 0 || s->opt->backward ||
                    s->bytes + m->bytes <= s->opt->max_bytes;
        if (!fits) {
                s->full = true;
                return 0;
        }
        s->bytes += m->bytes;
        s->out->count++;
        /* A search forward does not need the lines of later matches. */
        s->full = !s->opt->backward && s->out->count >= s->max_results;
        return 0;
}

/* Collects a matching line [from, to) of the block. The match is at [start, end). */
static int collect(struct grep_search *s, size_t from, size_t to, size_t start, size_t end)
{
        uint64_t at = s->text.at;
        struct grep_hit hit = {at + from, at + to, at + start, at + end};
        return grep_collect(s, &hit);
}

/* The list of context lines moves while it grows, so pointers into it are set when it is
 * complete. */
static void link_context(struct grep_search *s)
{
        for (size_t i = 0; i < s->out->count && s->context; i++) {
                struct grep_match *m = &s->out->matches[i];
                m->before = s->out->context + i * 2 * s->context;
                m->after = m->before + s->context;
        }
}

/* In a search backward, the nearest matches stay. */
static void drop_far_ones(struct grep_search *s)
{
        struct grep_result *r = s->out;
        size_t drop = 0;
        while (s->opt->max_bytes && s->bytes > s->opt->max_bytes && drop + 1 < r->count)
                s->bytes -= r->matches[drop++].bytes;
        r->count -= drop;
        if (drop)
                memmove(r->matches, r->matches + drop, r->count * sizeof *r->matches);
}

static void say_what_is_left(struct grep_search *s)
{
        struct grep_result *r = s->out;
        r->truncated =
            s->opt->backward ? r->count < s->within : r->count + s->before < r->total_matches;
        r->matches_before = s->opt->backward ? s->within - r->count : s->before;
        if (!r->truncated || r->count == 0)
                return;
        r->next_line =
            s->opt->backward ? r->matches[0].line - 1 : r->matches[r->count - 1].line + 1;
}

/* ---- blocks: [from, to) of the current block, whole lines ---- */

static size_t line_end(const struct grep_search *s, size_t at)
{
        const char *nl = memchr(s->p + at, '\n', s->n - at);
        return nl ? (size_t)(nl - s->p) : s->n;
}

static int search_line(struct grep_search *s, size_t from, size_t to)
{
        size_t start = 0;
        size_t end = 0;
        int rc = grep_line_match(s, from, to, &start, &end);
        return rc == 1 ? collect(s, from, to, start, end) : rc;
}

static int search_lines(struct grep_search *s, size_t from, size_t to)
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

/* Can a match be searched directly at a literal? This needs two things: it is known how far before
 * the literal a match begins, and many calls of the engine are cheap enough. */
static bool looks_at_places(struct grep_search *s, struct grep_code **code)
{
        const struct pattern_info *info = &s->info[s->wide];
        return info->starts_are_literals && !info->exact && !grep_sees_chars(s) &&
               grep_line_code(s, code) == 0 &&
               s->engine->points(*code, GREP_WINDOW, GREP_LIGHT) == SIZE_MAX;
}

/* Finds the line [*from, to) of a place. The place is not before *from. */
static void line_around(const struct grep_search *s, size_t at, size_t *from, size_t *to)
{
        const char *nl = at > *from ? memrchr(s->p + *from, '\n', at - *from) : NULL;
        *from = nl ? (size_t)(nl - s->p) + 1 : *from;
        *to = line_end(s, at);
}

/* Runs the engine at a place. The engine sees the line, or the whole block if no match can contain
 * a line feed: then the line need not be found. Returns what the engine returns; the match is
 * [*start, *end) of the block. */
static int try_place(struct grep_search *s, struct grep_code *code, struct grep_subject *sub,
    size_t base, size_t *start, size_t *end)
{
        sub->p = s->p + base;
        sub->n -= base;
        sub->from = sub->from > base ? sub->from - base : 0;
        sub->stop -= base;
        int rc = s->engine->next(code, sub, start, end, s->err);
        *start += base;
        *end += base;
        return rc;
}

/* Searches at the places of literals. The whole line of a place is searched only if finding a match
 * costs much, or if the line ends with a CR, which the engine must not see. */
static int search_places(struct grep_search *s, struct grep_code *code)
{
        const struct finder *f = &s->finder[s->wide];
        struct pattern_span lead = s->info[s->wide].lead;
        bool bound = s->info[s->wide].line_bound;
        size_t tried = 0; /* every match that begins before it was found */
        size_t line = 0, to = 0;
        for (size_t at = 0; (at = finder_next(f, s->p, s->n, at, NULL)) < s->n;) {
                size_t start = 0, end = 0, place = at++;
                if (place < tried + lead.least)
                        continue;
                s->candidates++;
                if (!bound)
                        line_around(s, place, &line, &to);
                struct grep_subject sub = {.n = bound ? s->n : to,
                    .from = place < tried + lead.most ? tried : place - lead.most,
                    .stop = place - lead.least + 1};
                if (sub.stop <= (bound ? 0 : line))
                        continue;
                tried = sub.stop;
                int rc = try_place(s, code, &sub, bound ? 0 : line, &start, &end);
                if (bound && rc == 1)
                        line_around(s, start, &line, &to);
                else if (bound)
                        to = line_end(s, place);
                bool cr = to > 0 && s->p[to - 1] == '\r';
                if (rc < 0 && rc != STENO_ELIMIT)
                        return rc;
                if (rc == 0 && !cr) {
                        rc = grep_check_time(s, s->text.at + at, 64);
                        if (rc < 0)
                                return rc;
                        continue;
                }
                if (rc != 1)
                        line_around(s, place, &line, &to);
                rc = rc == 1 && !cr ? collect(s, line, to, start, end) : search_line(s, line, to);
                if (rc < 0)
                        return rc;
                line = tried = at = to + 1;
        }
        return 0;
}

static int search_literals(struct grep_search *s, size_t from, size_t to)
{
        struct grep_code *code = NULL;
        if (looks_at_places(s, &code))
                return search_places(s, code);
        const struct finder *f = &s->finder[s->wide];
        bool exact = s->info[s->wide].exact;
        const char *p = s->p;
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

/* ---- the sieve ---- */

bool grep_sees_chars(const struct grep_search *s)
{
        return s->opt->utf8 && (s->wide || !s->info[0].ascii);
}

/* Would the rest of the text take long, in the best way so far? */
static bool has_much_left(const struct grep_search *s)
{
        const struct grep_pace *p = &s->pace[s->wide];
        uint64_t cost = p->cost[GREP_WAY_LINES];
        if (s->has_finder[s->wide] && !s->dense)
                cost = p->cost[GREP_WAY_LITERALS];
        return cost * ((s->text.source->file.size - s->text.at) / KIB) / 1000 > SIEVE_GAIN_US;
}

struct sieve *grep_sieve(struct grep_search *s)
{
        bool chars = grep_sees_chars(s);
        enum grep_engines engines = s->opt->engines;
        if (engines == GREP_ONLY_PCRE2 || !s->info[s->wide].understood)
                return NULL;
        if (!s->sieve[chars] && !s->no_sieve[chars]) {
                if (engines != GREP_WITH_SIEVE && !has_much_left(s))
                        return NULL;
                struct sieve_mode mode = {s->opt->utf8, chars, !s->opt->case_sensitive};
                s->sieve[chars] = sieve_new(s->opt->pattern, &mode);
                s->no_sieve[chars] = !s->sieve[chars];
        }
        return s->sieve[chars];
}

/* Runs the engine on each line that the sieve finds. Returns 1, or 0 if the sieve has no answer, so
 * that the block must be searched without it. */
static int search_sieved(struct grep_search *s)
{
        struct sieve *sieve = grep_sieve(s);
        const uint32_t *at = NULL;
        int count = sieve ? sieve_lines(sieve, s->p, s->n, &at) : -1;
        size_t next = 0; /* where the next line begins */
        if (count < 0)
                return 0;
        for (int i = 0; i < count; i++) {
                if (at[i] < next)
                        continue;
                const char *nl = memrchr(s->p + next, '\n', at[i] - next);
                size_t from = nl ? (size_t)(nl - s->p) + 1 : next;
                size_t to = line_end(s, at[i]);
                int rc = search_line(s, from, to);
                if (rc < 0)
                        return rc;
                next = to + 1;
        }
        return 1;
}

/* Searches whole lines of a window at once. If the engine returns STENO_ELIMIT, searches the lines
 * one by one. */
static int search_window(struct grep_search *s, struct grep_code *code, size_t from, size_t to)
{
        size_t n = to > from && s->p[to - 1] == '\n' ? to - 1 - from : to - from;
        struct grep_subject sub = {.p = s->p + from, .n = n, .stop = n + 1};
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

static int search_windows(struct grep_search *s, size_t from, size_t to)
{
        struct grep_code *code = NULL;
        int rc = grep_line_code(s, &code);
        if (rc >= 0 && s->engine->points(code, GREP_WINDOW, GREP_LIGHT) < GREP_WINDOW)
                return search_lines(s, from, to);
        for (size_t at = from; at < to && rc >= 0;) {
                size_t end = to;
                if (to - at > GREP_WINDOW) {
                        const char *nl = memrchr(s->p + at, '\n', GREP_WINDOW);
                        end = nl ? (size_t)(nl - s->p) + 1 : line_end(s, at) + 1;
                        end = end > to ? to : end;
                }
                rc = end - at > GREP_WINDOW ? search_lines(s, at, end)
                                            : search_window(s, code, at, end);
                if (rc >= 0)
                        rc = grep_check_time(s, s->text.at + end, end - at);
                at = end;
        }
        return rc;
}

void grep_look(struct grep_search *s, const char *text, size_t n)
{
        /* The text is checked only if its encoding makes a difference. */
        bool same = s->has_finder[0] && s->info[0].exact && s->has_finder[1] && s->info[1].exact;
        s->wide = s->opt->utf8 && (same || !scan_ascii(text, n));
}

static int search_engine(struct grep_search *s)
{
        /* A CR before the LF belongs to the line's end. A search over many lines at once would
         * treat it as text. */
        if (s->info[s->wide].line_bound && !memchr(s->p, '\r', s->n))
                return search_windows(s, 0, s->n);
        return search_lines(s, 0, s->n);
}

/* ---- which way ---- */

static bool is_open(struct grep_search *s, enum grep_way way)
{
        if (way == GREP_WAY_LITERALS)
                return s->has_finder[s->wide];
        return way == GREP_WAY_LINES || grep_sieve(s);
}

/* Chooses the way for the next block: a way that was not tried yet, or the fastest one. */
static enum grep_way choose_way(struct grep_search *s)
{
        struct grep_pace *p = &s->pace[s->wide];
        if (s->has_finder[s->wide] && (s->info[s->wide].exact || !grep_sieve(s)))
                return s->dense ? GREP_WAY_LINES : GREP_WAY_LITERALS;
        if (!grep_sieve(s))
                return GREP_WAY_LINES;
        if (s->opt->engines == GREP_WITH_SIEVE)
                return GREP_WAY_SIEVE;
        for (enum grep_way way = 0; way < GREP_WAYS; way++) {
                if (p->cost[way] == 0 && is_open(s, way))
                        return way;
        }
        enum grep_way best = GREP_WAY_LINES;
        for (enum grep_way way = 0; way < GREP_WAYS; way++) {
                if (p->cost[way] && p->cost[way] < p->cost[best])
                        best = way;
        }
        if (p->left > 0) {
                p->left--;
                return best;
        }
        p->left = PACE_BLOCKS;
        for (enum grep_way way = 0; way < GREP_WAYS; way++) {
                if (way != best && p->cost[way] < p->cost[best] * PACE_HOPELESS)
                        p->cost[way] = 0;
        }
        return best;
}

static int search_in_way(struct grep_search *s, enum grep_way way)
{
        if (way == GREP_WAY_LITERALS) {
                size_t before = s->candidates;
                int rc = search_literals(s, 0, s->n);
                s->dense = !s->info[s->wide].exact && (s->candidates - before) * DENSE > s->n;
                return rc;
        }
        int rc = way == GREP_WAY_SIEVE ? search_sieved(s) : 0;
        return rc ? (rc < 0 ? rc : 0) : search_engine(s);
}

static int search_block(struct grep_search *s)
{
        grep_look(s, s->p, s->n);
        if (s->has_finder[s->wide] && !s->learned[s->wide]) {
                finder_learn(&s->finder[s->wide], s->p, s->n);
                if (s->has_starts[s->wide])
                        finder_learn(&s->starts[s->wide], s->p, s->n);
                s->learned[s->wide] = true;
        }
        struct grep_pace *p = &s->pace[s->wide];
        enum grep_way way = choose_way(s);
        /* The time of the first block is not measured: it includes one-time preparations and the
         * matches that are shown. */
        bool is_timed = p->cost[way] == 0 && s->text.at > 0;
        int64_t began = is_timed ? time_thread_us() : 0;
        int rc = search_in_way(s, way);
        if (is_timed) {
                int64_t us = time_thread_us() - began;
                p->cost[way] = 1 + (uint64_t)us * 1000 / (s->n / KIB + 1);
        }
        return rc;
}

static int search_text(struct grep_search *s)
{
        uint64_t size = s->text.source->file.size;
        for (uint64_t at = 0; at < size;) {
                int rc = grep_text_lines(&s->text, at, &s->n, s->err);
                s->p = s->text.p;
                if (rc == 0 && s->n == 0) {
                        rc = count_lines(s, at);
                        if (rc == 0)
                                rc = grep_line_giant(s, at, &at);
                        s->line++;
                        s->counted = at;
                } else if (rc == 0) {
                        rc = search_block(s);
                        at += s->n;
                        /* Lines are counted while the window has them; with an index they can be
                         * counted later. */
                        if (rc == 0 && !s->text.source->index)
                                rc = count_lines(s, at);
                }
                if (rc == 0)
                        rc = grep_check_time(s, at, GREP_WINDOW);
                if (rc == 0 && s->opt->progress &&
                    s->opt->progress(s->opt->progress_ctx, "search", at, size))
                        rc = error_set(s->err, STENO_EINTERRUPTED, "stopped by the caller");
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* ---- the calls ---- */

static int check_pattern(const struct grep_options *opt, struct steno_error *err)
{
        if (opt->pattern.n > GREP_PATTERN_MAX)
                return error_set(err, STENO_ELIMIT, "pattern too long: %zu bytes, at most %d",
                    opt->pattern.n, GREP_PATTERN_MAX);
        /* (*CRLF), (*NO_JIT) and similar items would change the meaning of a line, or the
         * limits. */
        if (str_starts(opt->pattern, "(*"))
                return error_set(
                    err, STENO_EPROTO, "bad pattern at byte 0: (*...) is not allowed at the start");
        return 0;
}

static void prepare(struct grep_search *s)
{
        bool fold = !s->opt->case_sensitive;
        for (int wide = 0; wide < 2; wide++) {
                pattern_read(s->opt->pattern, s->opt->utf8, fold, fold && wide, &s->info[wide]);
                const struct pattern_info *info = &s->info[wide];
                s->has_finder[wide] =
                    info->has_literals && pattern_finder(&info->literals, fold, &s->finder[wide]);
                s->has_starts[wide] =
                    info->has_starts && pattern_finder(&info->starts, fold, &s->starts[wide]);
        }
        s->line = 1;
        s->max_results = s->opt->max_results ? s->opt->max_results : CONTEXT_GREP_RESULTS_DEFAULT;
        if (s->max_results > CONTEXT_GREP_RESULTS_MAX)
                s->max_results = CONTEXT_GREP_RESULTS_MAX;
        s->context = s->opt->context_lines < CONTEXT_GREP_CONTEXT_MAX ? s->opt->context_lines
                                                                      : CONTEXT_GREP_CONTEXT_MAX;
        s->deadline_ms = s->opt->deadline_ms ? s->opt->deadline_ms : CONTEXT_GREP_DEADLINE_MS;
        s->began = time_thread_us();
}

static int run(struct grep_search *s, const struct grep_source *source)
{
        /* The pattern is compiled first, so that a bad pattern is reported for every text. */
        struct grep_mode mode = {s->opt->utf8, s->opt->case_sensitive};
        int rc = s->engine->compile(s->opt->pattern, &mode, &s->code[mode.utf8], s->err);
        if (rc == 0)
                rc = grep_text_open(&s->text, source, s->err);
        if (rc == 0)
                rc = search_text(s);
        /* The last check is at the end of the text. */
        if (rc == 0)
                rc = grep_text_load(&s->text, source->file.size, 0, s->err);
        if (rc == 0) {
                link_context(s);
                drop_far_ones(s);
                say_what_is_left(s);
        }
        grep_text_close(&s->text);
        s->engine->free(s->code[0]);
        s->engine->free(s->code[1]);
        sieve_free(s->sieve[0]);
        sieve_free(s->sieve[1]);
        return rc;
}

/* Runs one pass. *within is the number of matches on the requested side of from_line; on entry, the
 * number to skip. */
static int pass(const struct grep_source *source, const struct grep_options *opt, bool only_counts,
    uint64_t *within, struct grep_result *out, struct steno_error *err)
{
        struct grep_search *s = calloc(1, sizeof(*s));
        if (!s)
                return error_nomem(err);
        s->opt = opt;
        s->out = out;
        s->err = err;
        s->engine = grep_pcre2();
        s->only_counts = only_counts;
        prepare(s);
        s->skip = opt->backward && *within > s->max_results ? *within - s->max_results : 0;
        int rc = run(s, source);
        *within = s->within;
        free(s);
        return rc;
}

int grep_run(const struct grep_source *source, const struct grep_options *opt,
    struct grep_result *out, struct steno_error *err)
{
        uint64_t within = 0;
        memset(out, 0, sizeof(*out));
        arena_init(&out->shown);
        int rc = check_pattern(opt, err);
        if (rc < 0)
                return rc;
        if (opt->backward) {
                rc = pass(source, opt, true, &within, out, err);
                out->total_matches = 0;
        }
        if (rc == 0)
                rc = pass(source, opt, false, &within, out, err);
        if (rc < 0)
                grep_release(out);
        return rc;
}

void grep_release(struct grep_result *r)
{
        free(r->matches);
        free(r->context);
        arena_release(&r->shown);
        memset(r, 0, sizeof(*r));
}
