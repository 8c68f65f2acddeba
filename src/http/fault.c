/* fault.c - see fault.h */
#include "http/fault.h"

#include <string.h>

/* ---- lines ---- */

/* The next line of a text, without the blanks around it; false: there is none. */
static bool next_line(struct str text, size_t *at, struct str *line)
{
        if (*at >= text.n)
                return false;
        const char *nl = memchr(text.p + *at, '\n', text.n - *at);
        size_t end = nl ? (size_t)(nl - text.p) : text.n;
        *line = str_trim(str_span(text.p + *at, end - *at));
        *at = end + 1;
        return true;
}

static bool has_word(struct str line)
{
        static const char *const WORDS[] = {
            "rror", "ERROR", "xception", "anic", "atal", "FAIL", "ailed", "Traceback"};
        for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
                if (line.n && memmem(line.p, line.n, WORDS[i], strlen(WORDS[i])))
                        return true;
        return false;
}

static void add_line(struct fault *f, uint64_t number)
{
        if (number && f->count < FAULT_LINES)
                f->lines[f->count++] = number;
}

/* ---- a whole output ---- */

/* The first line with a word of failure, else the last that is not blank. */
static void find_in_text(struct str text, struct fault *f)
{
        struct str line, last = STR("");
        size_t at = 0;
        uint64_t number = 0;
        /* The one line that Steno puts before a short text that is not UTF-8. */
        if (str_starts(text, "[NOT UTF-8: all "))
                next_line(text, &at, &line);
        while (next_line(text, &at, &line)) {
                number++;
                if (has_word(line)) {
                        if (!f->text.n)
                                f->text = line;
                        add_line(f, number);
                }
                if (line.n)
                        last = line;
        }
        if (!f->text.n)
                f->text = last;
}

/* ---- an excerpt ---- */

enum section { FRAME, HEAD, ERRORS, OUTLINE, TAIL };

/* Reads digits; 0: there are none. */
static uint64_t take_number(struct str s, size_t *at)
{
        uint64_t n = 0;
        while (*at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9' && n < UINT64_MAX / 100)
                n = n * 10 + (uint64_t)(s.p[(*at)++] - '0');
        return n;
}

/* Is it a heading of Steno's? Lines of the output that look like one have a backslash in front. */
static bool is_heading(struct str line, enum section *to)
{
        static const struct {
                const char *begin;
                enum section section;
        } HEADINGS[] = {{"--- head (line", HEAD}, {"--- errors (line", ERRORS},
            {"--- outline ---", OUTLINE}, {"--- first bytes ---", OUTLINE},
            {"--- tail (line", TAIL}, {"More: ", FRAME}};
        for (size_t i = 0; i < sizeof HEADINGS / sizeof *HEADINGS; i++) {
                if (str_starts(line, HEADINGS[i].begin)) {
                        *to = HEADINGS[i].section;
                        return true;
                }
        }
        return false;
}

/* Takes off what says that a long line is not shown whole. True: it was there. */
static bool unclamp(struct str *line)
{
        static const char BEFORE[] = "[clamped: end of a line of ",
                          BEHIND[] = " [clamped: a line of ";
        bool before = str_starts(*line, BEFORE);
        const char *end = before ? memmem(line->p, line->n, "] ", 2) : NULL;
        if (end)
                *line = str_span(end + 2, line->n - (size_t)(end + 2 - line->p));
        const char *mark = line->n && line->p[line->n - 1] == ']'
                               ? memmem(line->p, line->n, BEHIND, sizeof BEHIND - 1)
                               : NULL;
        if (mark)
                line->n = (size_t)(mark - line->p);
        return before || mark;
}

struct reading {
        enum section section;
        uint64_t number;   /* of the line that comes next, in the head and in the tail */
        struct fault ends; /* what the beginning and the end of the output show */
        struct fault chosen;
        struct str first; /* of the chosen lines */
        struct str last;  /* whole line of the output, */
        struct str rest;  /* and of one that is not */
};

static void take_heading(struct reading *r, struct str line)
{
        size_t at = 0;
        while (at < line.n && line.p[at] != '(')
                at++;
        while (at < line.n && (line.p[at] < '0' || line.p[at] > '9'))
                at++;
        r->number = take_number(line, &at);
        if (r->section == TAIL) /* what it shows is later than anything in the head */
                r->last = r->rest = STR("");
        if (r->section != ERRORS)
                return;
        add_line(&r->chosen, r->number);
        while (at + 2 < line.n && line.p[at] == ',') {
                at += 2;
                add_line(&r->chosen, take_number(line, &at));
        }
}

static void take_line(struct reading *r, struct str line)
{
        bool part = unclamp(&line);
        if (r->section == ERRORS) {
                if (!r->chosen.text.n && has_word(line))
                        r->chosen.text = line;
                if (!r->first.n && !str_is(line, "..."))
                        r->first = line;
        } else if (r->section == HEAD || r->section == TAIL) {
                if (has_word(line)) {
                        if (!r->ends.text.n)
                                r->ends.text = line;
                        add_line(&r->ends, r->number);
                }
                if (line.n)
                        *(part ? &r->rest : &r->last) = line;
                r->number++;
        }
}

static void find_in_excerpt(struct str text, struct fault *f)
{
        struct reading r = {.section = FRAME};
        struct str line;
        for (size_t at = 0; next_line(text, &at, &line);) {
                if (is_heading(line, &r.section))
                        take_heading(&r, line);
                else
                        take_line(&r, line);
        }
        if (!r.chosen.text.n)
                r.chosen.text = r.first;
        *f = r.chosen.text.n ? r.chosen : r.ends;
        if (!f->text.n)
                f->text = r.last.n ? r.last : r.rest;
}

void fault_find(struct str text, bool excerpt, struct fault *out)
{
        *out = (struct fault){.text = STR("")};
        if (excerpt)
                find_in_excerpt(text, out);
        else
                find_in_text(text, out);
}
