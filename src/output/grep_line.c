/*
 * grep_line.c - decides whether a line has a match, whatever its length.
 *
 * The engine gets a short line as a whole. A longer line is searched in slices: a slice has a few
 * starting points, and the engine sees GREP_LONG_SUBJECT bytes behind them. A line that is longer
 * than the window is searched in windows that overlap by the same number of bytes.
 */
#include "output/grep_search.h"

#include <string.h>

#include "base/error.h"

#define SLICE ((size_t)1024) /* starting points of a light call in a long line */
#define HARD_SLICE 8         /* the same if each may cost much */
#define LOOKBEHIND 256       /* bytes before a slice that assertions can see */

/* A line, or the part of a line that the window has. */
struct piece {
        const char *p;
        size_t n;
        uint64_t offset; /* the offset of p in the text */
        bool cut_before; /* the line begins before p */
        bool cut_after;  /* the line continues behind p + n */
        size_t next;     /* the next starting point */
        size_t limit;    /* the last starting point */
        enum grep_effort effort;
};

int grep_line_code(struct grep_search *s, struct grep_code **code)
{
        bool chars = grep_sees_chars(s);
        struct grep_mode mode = {chars, s->opt->case_sensitive};
        if (!s->code[chars]) {
                int rc = s->engine->compile(s->opt->pattern, &mode, &s->code[chars], s->err);
                if (rc < 0)
                        return rc;
        }
        *code = s->code[chars];
        return 0;
}

/* Moves `at` to the beginning of a character. Slices may then overlap by some bytes, which does no
 * harm. */
static size_t char_floor(const char *p, size_t n, size_t at)
{
        for (int i = 0; i < 3 && at > 0 && at < n && ((unsigned char)p[at] & 0xC0) == 0x80; i++)
                at--;
        return at;
}

/* Is it a match in the whole piece too? A match that reaches the end of a slice may exist only
 * because of that end (\z). It is tried again with the whole piece visible. If that costs too much,
 * the match is accepted. */
static bool holds_in_piece(struct grep_search *s, struct grep_code *code, const struct piece *line,
    size_t *start, size_t *end)
{
        struct steno_error unused;
        struct grep_subject sub = {.p = line->p,
            .n = line->n,
            .from = *start,
            .stop = *start + 1,
            .cut_before = line->cut_before,
            .cut_after = line->cut_after,
            .effort = GREP_HARD};
        size_t from = 0;
        size_t to = 0;
        int rc = s->engine->next(code, &sub, &from, &to, &unused);
        if (rc != 1)
                return rc != 0;
        *start = from;
        *end = to;
        return true;
}

static size_t slice(
    const struct grep_search *s, const struct grep_code *code, size_t n, enum grep_effort effort)
{
        size_t seen = n < GREP_LONG_SUBJECT ? n : GREP_LONG_SUBJECT;
        size_t most = s->engine->points(code, seen, effort);
        size_t step = effort == GREP_HARD ? HARD_SLICE : SLICE;
        return most < step ? most : step;
}

/* Runs the engine over a piece in slices. 1: the match is [*start, *end) of the piece. */
static int match_slices(
    struct grep_search *s, struct grep_code *code, struct piece *line, size_t *start, size_t *end)
{
        const char *p = line->p;
        size_t n = line->n;
        while (line->next <= line->limit) {
                size_t step = slice(s, code, n, line->effort);
                size_t stop = line->limit - line->next < step ? line->limit + 1 : line->next + step;
                size_t at = char_floor(p, n, line->next);
                size_t base = at < LOOKBEHIND ? 0 : char_floor(p, n, at - LOOKBEHIND);
                bool cut = n - at > step + GREP_LONG_SUBJECT;
                size_t last = cut ? at + step + GREP_LONG_SUBJECT : n;
                struct grep_subject sub = {.p = p + base,
                    .n = last - base,
                    .from = at - base,
                    .stop = stop - base,
                    .cut_before = base > 0 || line->cut_before,
                    .cut_after = cut || line->cut_after,
                    .effort = line->effort};
                int rc = s->engine->next(code, &sub, start, end, s->err);
                if (rc == STENO_ELIMIT && line->effort == GREP_LIGHT) {
                        line->effort = GREP_HARD;
                        continue;
                }
                if (rc < 0)
                        return rc;
                *start += base;
                *end += base;
                line->next += step;
                if (rc == 1 && (!cut || *end < last || holds_in_piece(s, code, line, start, end)))
                        return 1;
                if (rc == 1)
                        line->next = *start + 1;
                rc = grep_check_time(s, line->offset + at, GREP_WINDOW);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* Searches a match that begins at one of the starting points line->next to line->limit. */
static int match_among(
    struct grep_search *s, struct grep_code *code, struct piece *line, size_t *start, size_t *end)
{
        size_t n = line->n;
        size_t count = line->limit - line->next;
        size_t points = s->engine->points(code, n, GREP_LIGHT);
        if (count > GREP_WINDOW || n > GREP_LONG_SUBJECT || count > points)
                return match_slices(s, code, line, start, end);
        struct grep_subject sub = {.p = line->p,
            .n = n,
            .from = char_floor(line->p, n, line->next),
            .stop = line->limit + 1};
        int rc = s->engine->next(code, &sub, start, end, s->err);
        if (rc == STENO_ELIMIT) {
                line->effort = GREP_HARD;
                return match_slices(s, code, line, start, end);
        }
        /* If a call may cost much, the clock is checked after each. */
        int late = grep_check_time(
            s, line->offset + line->limit, points != SIZE_MAX ? GREP_WINDOW : count + 64);
        return late < 0 ? late : rc;
}

/* Searches matches near literals: a match can only begin before a literal of `starts`, and not far
 * from it. */
static int match_starts(
    struct grep_search *s, struct grep_code *code, struct piece *line, size_t *start, size_t *end)
{
        const struct finder *f = &s->starts[s->wide];
        struct pattern_span lead = s->info[s->wide].lead;
        size_t n = line->n;
        size_t behind = s->n - (size_t)(line->p - s->p);
        size_t tried = line->next;
        for (size_t at = tried; (at = finder_next_before(f, line->p, behind, at, n, NULL)) < n;
             at++) {
                size_t first = at < lead.most ? 0 : at - lead.most;
                if (at < tried + lead.least)
                        continue;
                line->next = first < tried ? tried : first;
                line->limit = at - lead.least;
                tried = line->limit + 1;
                int rc = match_among(s, code, line, start, end);
                if (rc)
                        return rc;
        }
        return 0;
}

int grep_line_match(struct grep_search *s, size_t from, size_t to, size_t *start, size_t *end)
{
        struct grep_code *code = NULL;
        int rc = grep_line_code(s, &code);
        if (rc < 0)
                return rc;
        if (to > from && s->p[to - 1] == '\r')
                to--;
        struct piece line = {.p = s->p + from,
            .n = to - from,
            .offset = s->text.at + from,
            .limit = to - from,
            .effort = GREP_LIGHT};
        rc = s->has_starts[s->wide] ? match_starts(s, code, &line, start, end)
                                    : match_among(s, code, &line, start, end);
        *start += from;
        *end += from;
        return rc;
}

/* ---- lines that are longer than the window ---- */

/* Loads the part of the line with the starting points from `at` on. The line begins at `from`. */
static int load_piece(struct grep_search *s, uint64_t from, uint64_t at, struct piece *line)
{
        struct grep_text *t = &s->text;
        uint64_t begin = at - from < LOOKBEHIND ? from : at - LOOKBEHIND;
        int rc = grep_text_load(t, begin, t->most, s->err);
        if (rc < 0)
                return rc;
        line->p = t->p;
        line->offset = begin;
        line->next = (size_t)(at - begin);
        line->cut_before = begin > from;
        const char *nl = memchr(t->p + line->next, '\n', t->n - line->next);
        line->n = nl ? (size_t)(nl - t->p) : t->n;
        line->cut_after = !nl && begin + t->n < t->source->file.size;
        if (!line->cut_after && line->n && t->p[line->n - 1] == '\r')
                line->n--;
        /* Starting points near the end are left to the next window, where the engine sees more text
         * behind them. */
        line->limit = line->cut_after ? line->n - SLICE - GREP_LONG_SUBJECT : line->n;
        return 0;
}

static int match_piece(struct grep_search *s, struct piece *line, size_t *start, size_t *end)
{
        struct grep_code *code = NULL;
        size_t which = 0;
        grep_look(s, line->p, line->n);
        if (s->has_finder[s->wide]) {
                const struct finder *f = &s->finder[s->wide];
                size_t at = finder_next(f, line->p, line->n, line->next, &which);
                if (at >= line->n)
                        return 0;
                if (s->info[s->wide].exact) {
                        *start = at;
                        *end = at + f->size[which];
                        return 1;
                }
        }
        struct sieve *sieve = grep_sieve(s);
        if (sieve && !sieve_has(sieve, line->p, line->n))
                return 0;
        int rc = grep_line_code(s, &code);
        return rc < 0 ? rc : match_slices(s, code, line, start, end);
}

int grep_line_giant(struct grep_search *s, uint64_t from, uint64_t *next)
{
        struct grep_text *t = &s->text;
        struct grep_hit hit = {.from = from};
        struct piece line = {.effort = GREP_LIGHT};
        bool found = false;
        for (uint64_t at = from; !found; at = line.offset + line.limit + 1) {
                size_t start = 0;
                size_t end = 0;
                int rc = load_piece(s, from, at, &line);
                if (rc == 0)
                        rc = match_piece(s, &line, &start, &end);
                /* If a match reaches the end of the window, it is tried again with a window of its
                 * own. It is accepted if it reaches the end of that window as well. */
                if (rc == 1 && line.cut_after && end == line.n && start > LOOKBEHIND) {
                        rc = load_piece(s, from, line.offset + start, &line);
                        if (rc == 0)
                                rc = match_piece(s, &line, &start, &end);
                }
                if (rc == 0)
                        rc = grep_check_time(s, line.offset + line.n, GREP_WINDOW);
                if (rc < 0)
                        return rc;
                found = rc == 1;
                hit.start = line.offset + start;
                hit.end = line.offset + end;
                if (!line.cut_after)
                        break;
        }
        int rc = grep_text_line_end(t, line.offset + line.n, &hit.to, s->err);
        if (rc == 0 && found)
                rc = grep_collect(s, &hit);
        *next = hit.to + 1;
        return rc;
}
