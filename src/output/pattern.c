/* pattern.c - see pattern.h */
#include "output/pattern.h"

#include <stdint.h>
#include <string.h>

#include "base/scan.h"
#include "base/text.h"

#define NESTING 32

/* What is known of a part of a pattern. */
struct part {
        bool exact;    /* it matches the strings of `set` and nothing else */
        bool required; /* every match contains one of `set` */
        bool zero_width;
        struct pattern_span width; /* the length of what it matches */
        struct pattern_set set;
};

#define FAR 4096       /* a longer span is not kept exactly */
#define LEAD_MOST 1024 /* the most bytes that a match may begin before a literal */

struct reader {
        const char *p;
        const char *end;
        bool utf8;
        bool fold;
        bool wide_fold;
        bool opaque; /* something in the pattern was not understood */
        bool line_bound;
        bool ascii;
        bool zero_width; /* there is an assertion, so finding a literal alone is not a match */
        bool has_starts;
        struct pattern_set starts;
        struct pattern_span lead;
};

static void span_add(struct pattern_span *s, struct pattern_span more)
{
        s->least += more.least;
        s->most += more.most;
        s->least = s->least < FAR ? s->least : FAR;
        s->most = s->most < FAR ? s->most : FAR;
}

/* ---- sets ---- */

static bool set_add(struct pattern_set *s, const char *p, size_t n)
{
        for (unsigned i = 0; i < s->count; i++) {
                if (s->item[i].size == n && memcmp(s->item[i].text, p, n) == 0)
                        return true;
        }
        if (s->count == PATTERN_LITERALS || n > PATTERN_LITERAL)
                return false;
        s->item[s->count].size = (unsigned char)n;
        memcpy(s->item[s->count].text, p, n);
        s->count++;
        return true;
}

static bool set_union(struct pattern_set *s, const struct pattern_set *other)
{
        for (unsigned i = 0; i < other->count; i++) {
                if (!set_add(s, other->item[i].text, other->item[i].size))
                        return false;
        }
        return true;
}

static bool set_same(const struct pattern_set *a, const struct pattern_set *b)
{
        bool same = a->count == b->count;
        for (unsigned i = 0; same && i < a->count; i++)
                same = a->item[i].size == b->item[i].size &&
                       memcmp(a->item[i].text, b->item[i].text, a->item[i].size) == 0;
        return same;
}

/* Builds every string of `a` followed by every string of `b`. */
static bool set_cross(struct pattern_set *a, const struct pattern_set *b)
{
        struct pattern_set r = {0};
        for (unsigned i = 0; i < a->count; i++) {
                for (unsigned k = 0; k < b->count; k++) {
                        char text[2 * PATTERN_LITERAL];
                        size_t n = a->item[i].size;
                        memcpy(text, a->item[i].text, n);
                        memcpy(text + n, b->item[k].text, b->item[k].size);
                        if (!set_add(&r, text, n + b->item[k].size))
                                return false;
                }
        }
        *a = r;
        return true;
}

static uint64_t set_cost(const struct pattern_set *s, bool fold)
{
        uint64_t cost = 0;
        for (unsigned i = 0; i < s->count; i++) {
                if (s->item[i].size == 0)
                        return UINT64_MAX;
                cost += finder_cost(str_span(s->item[i].text, s->item[i].size), fold);
        }
        return s->count ? cost : UINT64_MAX;
}

/* ---- atoms ---- */

/* Forgets everything except the width. */
static void part_forget(struct part *t)
{
        t->exact = t->required = t->zero_width = false;
        t->set.count = 0;
}

static void part_unknown(struct part *t)
{
        part_forget(t);
        t->width = (struct pattern_span){1, 4}; /* any character */
}

static void part_zero(struct reader *r, struct part *t)
{
        part_unknown(t);
        t->zero_width = true;
        t->width = (struct pattern_span){0, 0};
        r->zero_width = true;
}

size_t pattern_cases(uint32_t cp, uint32_t cases[PATTERN_CASES])
{
        static const uint32_t more[][2] = {{0xE5, 0x212B}, {0x432, 0x1C80}, {0x434, 0x1C81},
            {0x43E, 0x1C82}, {0x441, 0x1C83}, {0x442, 0x1C84}, {0x442, 0x1C85}, {0x44A, 0x1C86}};
        bool latin = cp >= 0xC0 && cp <= 0xFE && (cp & 0x1F) != 0x17 && (cp & 0x1F) != 0x1F;
        bool cyrillic = cp >= 0x400 && cp <= 0x45F;
        if (!latin && !cyrillic)
                return 0;
        uint32_t small = latin ? cp | 0x20 : cp < 0x410 ? cp + 80 : cp < 0x430 ? cp + 32 : cp;
        size_t n = 2;
        cases[0] = small;
        cases[1] = latin || small < 0x450 ? small - 32 : small - 80;
        for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
                if (more[i][0] == small)
                        cases[n++] = more[i][1];
        }
        return n;
}

/* Reads a character beyond ASCII if case does not matter. */
static void part_cases(struct reader *r, const char *p, size_t n, struct part *t)
{
        uint32_t cp = 0;
        uint32_t cases[PATTERN_CASES];
        size_t count = r->utf8 && text_decode(p, n, &cp) ? pattern_cases(cp, cases) : 0;
        for (size_t i = 0; i < count; i++) {
                char text[4];
                set_add(&t->set, text, text_encode_to(cases[i], text));
        }
        t->exact = count > 0;
        /* Only the engine can decide whether one of them is a match. */
        r->zero_width = r->zero_width || count > 0;
}

static void part_literal(struct reader *r, const char *p, size_t n, struct part *t)
{
        char c = p[0];
        part_unknown(t);
        if ((unsigned char)c >= 0x80)
                r->ascii = false;
        if (r->fold && (unsigned char)c >= 0x80) {
                part_cases(r, p, n, t);
                return;
        }
        if (r->fold && c >= 'A' && c <= 'Z')
                c |= 0x20;
        if (r->wide_fold && (c == 'k' || c == 's'))
                return;
        /* A CR may belong to the end of the line, which the engine does not see. */
        r->zero_width = r->zero_width || c == '\r';
        t->exact = true;
        t->width = (struct pattern_span){(unsigned)n, (unsigned)n};
        if (n == 1)
                set_add(&t->set, &c, 1);
        else
                set_add(&t->set, p, n);
}

static int hex_value(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads \xhh below 0x80; other forms are not understood. */
static bool read_hex(struct reader *r, char *out)
{
        if (r->end - r->p < 2)
                return false;
        int high = hex_value(r->p[0]);
        int low = hex_value(r->p[1]);
        if (high < 0 || low < 0 || high > 7)
                return false;
        *out = (char)(high * 16 + low);
        r->p += 2;
        return *out != '\n';
}

/* Reads escapes that stand for one character. */
static bool escaped_char(struct reader *r, char c, char *out)
{
        static const char names[] = "trfea";
        static const char values[] = "\t\r\f\x1b\a";
        const char *at = c ? strchr(names, c) : NULL;
        if (c == 'x')
                return read_hex(r, out);
        if (at) {
                *out = values[at - names];
                return true;
        }
        bool word = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        *out = c;
        return !word && (unsigned char)c < 0x80 && c != '\n' && c != 0;
}

static void read_escape(struct reader *r, struct part *t)
{
        part_unknown(t);
        if (r->p >= r->end) {
                r->opaque = true;
                return;
        }
        char c = *r->p++;
        char value;
        if (c == 'b' || c == 'B') {
                part_zero(r, t);
        } else if (c && strchr("AzZGK", c)) {
                part_zero(r, t);
                r->line_bound = false;
        } else if (c && strchr("dwSVhN", c)) {
                if (c == 'N' && r->p < r->end && *r->p == '{')
                        r->opaque = true;
        } else if (c && strchr("DWsHv", c)) {
                r->line_bound = false;
        } else if (c >= '1' && c <= '9') {
                /* With several digits it may be an octal character instead, even a line feed. */
                r->opaque |= r->p < r->end && *r->p >= '0' && *r->p <= '9';
                t->width = (struct pattern_span){0, FAR};
        } else if (escaped_char(r, c, &value)) {
                part_literal(r, &value, 1, t);
        } else {
                r->opaque = true;
        }
}

/* Reads [:alpha:] inside a class, behind its "[:". */
static bool read_posix(struct reader *r)
{
        static const char *const harmless[] = {"alpha:]", "digit:]", "alnum:]", "upper:]",
            "lower:]", "xdigit:]", "punct:]", "word:]", NULL};
        struct str rest = {r->p, (size_t)(r->end - r->p)};
        for (const char *const *z = harmless; *z; z++) {
                if (str_starts(rest, *z)) {
                        r->p += strlen(*z);
                        /* With folding, PCRE2 matches both cases of these in bytes, but not in
                         * characters. */
                        if (r->fold && (**z == 'u' || **z == 'l'))
                                r->ascii = false;
                        return true;
                }
        }
        return false;
}

enum member { MEMBER_UNKNOWN, MEMBER_SET, MEMBER_CHARACTER };

/* Reads one member of a class; a character is written to *out. */
static enum member class_member(struct reader *r, char *out)
{
        char c = *r->p++;
        if (c == '[' && r->p < r->end && *r->p == ':') {
                r->p++;
                return read_posix(r) ? MEMBER_SET : MEMBER_UNKNOWN;
        }
        if (c == '[' && r->p < r->end && (*r->p == '.' || *r->p == '='))
                return MEMBER_UNKNOWN;
        *out = c;
        if ((unsigned char)c >= 0x80) {
                r->ascii = false;
                return MEMBER_SET;
        }
        if (c == '\n')
                return MEMBER_UNKNOWN;
        if (c != '\\')
                return MEMBER_CHARACTER;
        if (r->p >= r->end)
                return MEMBER_UNKNOWN;
        c = *r->p++;
        if (c && strchr("dwSVh", c))
                return MEMBER_SET;
        if (c && strchr("DWsHv", c)) {
                r->line_bound = false;
                return MEMBER_SET;
        }
        return escaped_char(r, c, out) ? MEMBER_CHARACTER : MEMBER_UNKNOWN;
}

static bool class_range(struct reader *r, char from)
{
        char to = 0;
        r->p++;
        if (from <= '\n')
                r->line_bound = false;
        return class_member(r, &to) != MEMBER_UNKNOWN;
}

static void read_class(struct reader *r, struct part *t)
{
        bool small = true;
        bool first = true;
        part_unknown(t);
        if (r->p < r->end && *r->p == '^') {
                r->p++;
                r->line_bound = false;
                small = false;
        }
        for (; r->p < r->end && (first || *r->p != ']'); first = false) {
                char c = 0;
                enum member kind = class_member(r, &c);
                struct part one;
                if (kind == MEMBER_UNKNOWN) {
                        r->opaque = true;
                        return;
                }
                if (kind == MEMBER_CHARACTER && r->end - r->p >= 2 && r->p[0] == '-' &&
                    r->p[1] != ']') {
                        small = false;
                        if (!class_range(r, c))
                                r->opaque = true;
                        continue;
                }
                if (kind != MEMBER_CHARACTER) {
                        small = false;
                        continue;
                }
                part_literal(r, &c, 1, &one);
                small = small && one.exact && set_union(&t->set, &one.set) && t->set.count <= 4;
        }
        if (r->p >= r->end) {
                r->opaque = true;
                return;
        }
        r->p++;
        t->exact = small && t->set.count > 0;
        if (!t->exact)
                t->set.count = 0;
}

/* ---- groups, sequences, alternatives ---- */

static void read_alternatives(struct reader *r, unsigned depth, struct part *out);

enum group { GROUP_UNKNOWN, GROUP_PLAIN, GROUP_ASSERTION };

/* Returns which kind of group begins behind "(?". */
static enum group group_kind(struct reader *r)
{
        struct str rest = {r->p, (size_t)(r->end - r->p)};
        if (str_starts(rest, ":") || str_starts(rest, ">")) {
                r->p++;
                return GROUP_PLAIN;
        }
        if (str_starts(rest, "=") || str_starts(rest, "!")) {
                r->p++;
                return GROUP_ASSERTION;
        }
        if (str_starts(rest, "<=") || str_starts(rest, "<!")) {
                r->p += 2;
                return GROUP_ASSERTION;
        }
        if (str_starts(rest, "<") || str_starts(rest, "P<")) {
                const char *close = memchr(r->p, '>', rest.n);
                r->p = close ? close + 1 : r->end;
                return close ? GROUP_PLAIN : GROUP_UNKNOWN;
        }
        return GROUP_UNKNOWN;
}

static void read_group(struct reader *r, unsigned depth, struct part *t)
{
        enum group kind = GROUP_PLAIN;
        part_unknown(t);
        if (r->p < r->end && *r->p == '?') {
                r->p++;
                kind = group_kind(r);
        } else if (r->p < r->end && *r->p == '*') {
                kind = GROUP_UNKNOWN;
        }
        if (kind == GROUP_UNKNOWN || depth >= NESTING) {
                r->opaque = true;
                return;
        }
        read_alternatives(r, depth + 1, t);
        if (r->p >= r->end || *r->p != ')') {
                r->opaque = true;
                return;
        }
        r->p++;
        if (kind == GROUP_ASSERTION)
                part_zero(r, t);
}

static void read_atom(struct reader *r, unsigned depth, struct part *t)
{
        char c = *r->p;
        part_unknown(t);
        if ((unsigned char)c >= 0x80) {
                size_t n = r->utf8
                               ? scan_sequence((const unsigned char *)r->p, (size_t)(r->end - r->p))
                               : 1;
                n = n ? n : 1;
                part_literal(r, r->p, n, t);
                r->p += n;
                return;
        }
        r->p++;
        switch (c) {
        case '(':
                read_group(r, depth, t);
                return;
        case '[':
                read_class(r, t);
                return;
        case '\\':
                read_escape(r, t);
                return;
        case '.':
                return;
        case '$':
        case '^':
                part_zero(r, t);
                return;
        case '*':
        case '+':
        case '?':
        case '{':
        case '\n':
        case 0:
                r->opaque = true;
                return;
        default:
                part_literal(r, &c, 1, t);
        }
}

struct range {
        unsigned least;
        unsigned most;
        bool once; /* there is no quantifier */
};

static const char *read_number(const char *p, const char *end, unsigned *out)
{
        *out = 0;
        for (; p < end && *p >= '0' && *p <= '9'; p++)
                *out = *out < 10000 ? *out * 10 + (unsigned)(*p - '0') : *out;
        return p;
}

/* Reads {n}, {n,} or {n,m}. A brace that is not a quantifier is a literal, but versions of PCRE2
 * differ in this, so such a brace is not understood. */
static void read_braces(struct reader *r, struct range *q)
{
        const char *p = read_number(r->p + 1, r->end, &q->least);
        bool digits = p > r->p + 1;
        q->most = q->least;
        if (p < r->end && *p == ',') {
                const char *from = ++p;
                p = read_number(p, r->end, &q->most);
                if (p == from)
                        q->most = UINT32_MAX;
        }
        if (!digits || p >= r->end || *p != '}') {
                r->opaque = true;
                return;
        }
        r->p = p + 1;
}

static struct range read_quantifier(struct reader *r)
{
        struct range q = {1, 1, false};
        char c = r->p < r->end ? *r->p : 0;
        if (c == '*' || c == '?' || c == '+') {
                q.least = c == '+';
                q.most = c == '?' ? 1 : UINT32_MAX;
                r->p++;
        } else if (c == '{') {
                read_braces(r, &q);
        } else {
                q.once = true;
                return q;
        }
        if (r->p < r->end && (*r->p == '?' || *r->p == '+'))
                r->p++;
        return q;
}

static unsigned times(unsigned n, unsigned width)
{
        return n < FAR && n * width < FAR ? n * width : width ? FAR : 0;
}

static void quantify(struct part *t, struct range q)
{
        t->width.least = times(q.least, t->width.least);
        t->width.most = times(q.most, t->width.most);
        if (q.least == 0) {
                if (q.most == 1 && t->exact && set_add(&t->set, "", 0))
                        return;
                part_forget(t);
                return;
        }
        if (t->exact) {
                struct pattern_set once = t->set;
                unsigned n = 1;
                while (n < q.least && set_cross(&t->set, &once))
                        n++;
                t->exact = n == q.most;
                t->required = !t->exact;
        }
}

/* Keeps the better of the best set so far and another set. */
static void consider(const struct reader *r, struct part *best, const struct pattern_set *s)
{
        uint64_t cost = set_cost(s, r->fold);
        if (cost == UINT64_MAX || (best->required && cost >= set_cost(&best->set, r->fold)))
                return;
        best->required = true;
        best->set = *s;
}

/* Considers a set that is at a distance of `lead` behind the beginning of every match. */
static void consider_start(struct reader *r, const struct pattern_set *s, struct pattern_span lead)
{
        uint64_t cost = set_cost(s, r->fold);
        if (lead.most > LEAD_MOST || cost == UINT64_MAX ||
            (r->has_starts && cost >= set_cost(&r->starts, r->fold)))
                return;
        r->has_starts = true;
        r->starts = *s;
        r->lead = lead;
}

static void read_sequence(struct reader *r, unsigned depth, struct part *out)
{
        struct pattern_set run = {.count = 1};
        struct part best = {0};
        struct pattern_span lead = {0, 0}; /* the distance of `run` from the beginning */
        bool whole = true;
        while (r->p < r->end && *r->p != '|' && *r->p != ')' && !r->opaque) {
                struct part t;
                read_atom(r, depth, &t);
                struct range q = read_quantifier(r);
                if (t.zero_width)
                        continue;
                if (!q.once)
                        quantify(&t, q);
                struct pattern_span before = best.width;
                span_add(&best.width, t.width);
                if (t.exact && set_cross(&run, &t.set))
                        continue;
                consider(r, &best, &run);
                if (depth == 0)
                        consider_start(r, &run, lead);
                whole = false;
                run = (struct pattern_set){.count = 1};
                lead = t.exact ? before : best.width;
                if (t.exact)
                        run = t.set;
                else if (t.required)
                        consider(r, &best, &t.set);
        }
        if (depth == 0)
                consider_start(r, &run, lead);
        *out = best;
        if (whole) {
                out->exact = true;
                out->required = false;
                out->set = run;
        } else {
                consider(r, out, &run);
        }
}

static void read_alternatives(struct reader *r, unsigned depth, struct part *out)
{
        read_sequence(r, depth, out);
        while (r->p < r->end && *r->p == '|' && !r->opaque) {
                struct part other;
                r->p++;
                read_sequence(r, depth, &other);
                if (other.width.least < out->width.least)
                        out->width.least = other.width.least;
                if (other.width.most > out->width.most)
                        out->width.most = other.width.most;
                if (depth == 0)
                        r->has_starts = false;
                bool known = (out->exact || out->required) && (other.exact || other.required);
                if (!known || !set_union(&out->set, &other.set)) {
                        part_forget(out);
                        continue;
                }
                out->required = !(out->exact && other.exact);
                out->exact = out->exact && other.exact;
        }
}

void pattern_read(
    struct str pattern, bool utf8, bool fold, bool wide_fold, struct pattern_info *out)
{
        struct reader r = {.p = pattern.p,
            .end = pattern.p + pattern.n,
            .utf8 = utf8,
            .fold = fold,
            .wide_fold = wide_fold,
            .line_bound = true,
            .ascii = true};
        struct part all;
        memset(out, 0, sizeof(*out));
        read_alternatives(&r, 0, &all);
        if (r.opaque || r.p != r.end)
                return;
        out->understood = true;
        out->line_bound = r.line_bound;
        out->ascii = r.ascii;
        out->literals = all.set;
        out->has_literals = (all.exact || all.required) && set_cost(&all.set, fold) != UINT64_MAX;
        out->exact = out->has_literals && all.exact && !r.zero_width;
        /* The beginnings of all alternatives are known only if all of them are literals. */
        if (all.exact && out->has_literals) {
                r.has_starts = true;
                r.starts = all.set;
                r.lead = (struct pattern_span){0, 0};
        }
        out->has_starts = r.has_starts;
        out->starts = r.starts;
        out->lead = r.lead;
        out->starts_are_literals =
            out->has_starts && out->has_literals && set_same(&out->starts, &out->literals);
}

bool pattern_finder(const struct pattern_set *literals, bool fold, struct finder *f)
{
        struct str list[PATTERN_LITERALS];
        for (unsigned i = 0; i < literals->count; i++)
                list[i] = str_span(literals->item[i].text, literals->item[i].size);
        return finder_init(f, list, literals->count, fold);
}
