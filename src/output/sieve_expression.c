/*
 * sieve_expression.c - rewrites a pattern for Hyperscan.
 *
 * The result matches wherever the pattern matches, and perhaps elsewhere. It has literals, classes
 * that list their characters, `.`, groups that capture nothing, alternatives, greedy repeats, `^`,
 * `$`, and `\b` if all text is ASCII. It has nothing that depends on an option or on a version of
 * Unicode:
 *   - other assertions are left out, and a back-reference becomes any text
 *   - classes that depend on Unicode's properties contain every character that may ever be in them
 *   - case is folded here; if the other case of a character is not simple, many characters replace
 *     it
 *   - nothing matches a line feed
 */
#include "output/sieve.h"

#include <string.h>

#include "base/text.h"

/* The maximum number of positions in the automaton, which decide the time and memory of compiling.
 * A class with characters beyond ASCII needs several. */
#define WEIGHT_MAX 400
#define WEIGHT_WIDE 6
#define EXPRESSION_MAX 16384

struct writer {
        const char *p;
        const char *end;
        const struct sieve_mode *mode;
        struct buf *out;
        bool refused;
};

/* A part of the pattern, as it was written. */
struct extent {
        size_t weight;
        size_t least; /* characters of the shortest match */
};

static struct extent put_alternatives(struct writer *w);

static bool next_is(const struct writer *w, const char *word)
{
        return str_starts(str_span(w->p, (size_t)(w->end - w->p)), word);
}

/* ---- classes ---- */

#define BEYOND_ASCII "\\x{80}-\\x{10ffff}"
/* Digits of all scripts that have them, and room for future ones; without the letters of Europe and
 * of East Asia. */
#define WIDE_DIGITS "\\x{660}-\\x{1fff}\\x{a620}-\\x{abff}\\x{ff10}-\\x{ff19}\\x{10000}-\\x{1ffff}"
#define WIDE_SPACES                                                                                \
        "\\x{85}\\x{a0}\\x{1680}\\x{180e}\\x{2000}-\\x{200f}\\x{2028}-\\x{202f}\\x{205f}\\x{3000}"

struct class
{
        bool negated;
        unsigned char has[256]; /* for bytes; for characters only those below 0x80 */
        bool wide;              /* the class has other characters, in `more` */
        struct buf more;
};

static void class_init(struct class *c)
{
        memset(c, 0, sizeof *c);
        buf_init(&c->more, EXPRESSION_MAX);
}

static void class_span(struct class *c, unsigned from, unsigned to)
{
        for (unsigned i = from; i <= to && i < 256; i++)
                c->has[i] = 1;
}

static void class_more(const struct writer *w, struct class *c, const char *ranges)
{
        if (!w->mode->chars)
                return;
        c->wide = true;
        buf_puts(&c->more, ranges);
}

static void class_word(struct class *c)
{
        class_span(c, '0', '9');
        class_span(c, 'A', 'Z');
        class_span(c, 'a', 'z');
        c->has['_'] = 1;
}

/* Adds everything below 256 that the class of an escape does not have. */
static void class_except(struct class *c, void (*fill)(struct class *c))
{
        struct class other = {0};
        fill(&other);
        for (unsigned i = 0; i < 256; i++)
                c->has[i] |= !other.has[i];
}

static void fill_digits(struct class *c)
{
        class_span(c, '0', '9');
}

static void fill_spaces(struct class *c)
{
        class_span(c, '\t', '\r');
        c->has[' '] = 1;
}

static void fill_blanks(struct class *c)
{
        c->has['\t'] = c->has[' '] = c->has[0xA0] = 1;
}

static void fill_breaks(struct class *c)
{
        class_span(c, '\n', '\r');
        c->has[0x85] = 1;
}

/* Reads one of \d \D \w \W \s \S \h \H \v \V. */
static bool class_escape(const struct writer *w, char letter, struct class *c)
{
        static const struct {
                char letter;
                void (*fill)(struct class *c);
                const char *wide;
        } kinds[] = {{'d', fill_digits, WIDE_DIGITS}, {'w', class_word, BEYOND_ASCII},
            {'s', fill_spaces, WIDE_SPACES}, {'h', fill_blanks, WIDE_SPACES},
            {'v', fill_breaks, WIDE_SPACES}};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
                if (kinds[i].letter == letter) {
                        kinds[i].fill(c);
                        class_more(w, c, kinds[i].wide);
                        return true;
                }
                if (kinds[i].letter == (letter | 0x20)) {
                        class_except(c, kinds[i].fill);
                        class_more(w, c, BEYOND_ASCII);
                        return true;
                }
        }
        return false;
}

static bool class_posix(struct writer *w, struct class *c)
{
        static const struct {
                const char *name;
                const char *ranges; /* pairs */
        } kinds[] = {{"alpha:]", "AZaz"}, {"digit:]", "09"}, {"alnum:]", "09AZaz"},
            {"upper:]", "AZ"}, {"lower:]", "az"}, {"xdigit:]", "09AFaf"}, {"punct:]", "!/:@[`{~"},
            {"word:]", "09AZaz__"}};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
                if (!next_is(w, kinds[i].name))
                        continue;
                w->p += strlen(kinds[i].name);
                /* Versions of PCRE2 differ in whether these match both cases if case does not
                 * matter. */
                if (c->negated && w->mode->fold && (*kinds[i].name == 'u' || *kinds[i].name == 'l'))
                        w->refused = true;
                for (const char *r = kinds[i].ranges; *r; r += 2)
                        class_span(c, (unsigned char)r[0], (unsigned char)r[1]);
                class_more(w, c, BEYOND_ASCII);
                return true;
        }
        return false;
}

static void put_code(struct buf *b, uint32_t c)
{
        buf_printf(b, "\\x{%x}", c);
}

/* Returns the other case of a letter of Latin-1 or of the Cyrillic alphabet; 0 for any other
 * character. */
static uint32_t other_case(uint32_t cp)
{
        if (cp >= 0xC0 && cp <= 0xFE)
                return cp ^ 0x20;
        if (cp >= 0x400 && cp <= 0x45F)
                return cp < 0x410 ? cp + 80 : cp < 0x430 ? cp + 32 : cp < 0x450 ? cp - 32 : cp - 80;
        return 0;
}

/*
 * Adds the characters that may be equal to a character beyond ASCII if case is folded. For simple
 * letters, these are the other case and a few characters of other blocks. East Asian characters
 * have no case. For any other character, all characters of scripts with cases are added.
 */
static void class_folds(struct class *c, uint32_t cp)
{
        c->wide = true;
        put_code(&c->more, cp);
        if ((cp >= 0x3000 && cp < 0xA640) || (cp >= 0xAC00 && cp < 0xFB00) || cp >= 0x20000)
                return;
        uint32_t other = other_case(cp);
        if (other) {
                put_code(&c->more, other);
                buf_puts(
                    &c->more, cp < 0x100 ? "\\x{178}\\x{1e9e}\\x{212b}" : "\\x{1c80}-\\x{1c8f}");
                return;
        }
        c->has['k'] = c->has['s'] = 1;
        buf_puts(&c->more, "\\x{80}-\\x{2fff}\\x{a640}-\\x{abff}\\x{fb00}-\\x{1ffff}");
}

/* Takes a character of the pattern, or a byte if the pattern consists of bytes. */
static uint32_t take_code(struct writer *w)
{
        uint32_t cp = (unsigned char)*w->p;
        size_t n = 1;
        if (cp >= 0x80 && w->mode->utf8)
                n = text_decode(w->p, (size_t)(w->end - w->p), &cp);
        w->p += n ? n : 1;
        return cp;
}

static void class_code(struct writer *w, struct class *c, uint32_t cp)
{
        if (!w->mode->chars || cp < 0x80) {
                c->has[cp & 0xFF] = 1;
        } else if (!c->negated && w->mode->fold) {
                class_folds(c, cp);
        } else if (!c->negated) {
                c->wide = true;
                put_code(&c->more, cp);
        }
}

static void class_range(struct writer *w, struct class *c, uint32_t from, uint32_t to)
{
        if (!w->mode->chars || to < 0x80) {
                class_span(c, from, to);
                return;
        }
        if (from < 0x80)
                class_span(c, from, 0x7F);
        if (c->negated)
                return;
        if (w->mode->fold) {
                c->has['k'] = c->has['s'] = 1;
                class_more(w, c, BEYOND_ASCII);
                return;
        }
        c->wide = true;
        put_code(&c->more, from < 0x80 ? 0x80 : from);
        buf_putc(&c->more, '-');
        put_code(&c->more, to);
}

static void class_fold(const struct writer *w, struct class *c)
{
        if (!w->mode->fold)
                return;
        for (unsigned i = 'a'; i <= 'z'; i++)
                c->has[i] = c->has[i & 0xDF] = c->has[i] | c->has[i & 0xDF];
        if (w->mode->chars && c->has['k'])
                class_more(w, c, "\\x{212a}");
        if (w->mode->chars && c->has['s'])
                class_more(w, c, "\\x{17f}");
}

static void put_bytes(struct buf *b, const unsigned char *has, unsigned most)
{
        for (unsigned i = 0; i < most; i++) {
                unsigned from = i;
                if (!has[i])
                        continue;
                while (i + 1 < most && has[i + 1])
                        i++;
                buf_printf(b, "\\x%02x", from);
                if (i > from)
                        buf_printf(b, "-\\x%02x", i);
        }
}

/* Writes a class and releases it. */
static struct extent put_class(struct writer *w, struct class *c)
{
        struct extent e = {1, 1};
        bool chars = w->mode->chars;
        size_t at = w->out->n;
        class_fold(w, c);
        bool wide = chars && (c->wide || c->negated);
        c->has['\n'] = c->negated;
        /* A negated class excludes nothing beyond ASCII, because it is not known which characters
         * it has there. */
        buf_puts(w->out, c->negated ? "[^" : "[");
        put_bytes(w->out, c->has, chars ? 128 : 256);
        if (chars && !c->negated)
                buf_put(w->out, c->more.p ? c->more.p : "", c->more.n);
        w->refused = w->refused || c->more.failed || (!c->negated && w->out->n == at + 1);
        buf_putc(w->out, ']');
        buf_release(&c->more);
        if (wide)
                e.weight = WEIGHT_WIDE;
        return e;
}

/* ---- atoms ---- */

static struct extent put_literal(struct writer *w, uint32_t cp)
{
        struct class c;
        class_init(&c);
        class_code(w, &c, cp);
        return put_class(w, &c);
}

/* Takes an escape for one character, behind the backslash, as pattern.c reads it. */
static uint32_t take_escaped(struct writer *w)
{
        static const char names[] = "trfea";
        static const char values[] = "\t\r\f\x1b\a";
        char c = *w->p++;
        const char *at = strchr(names, c);
        if (c == 'x' && w->end - w->p >= 2) {
                unsigned value = 0;
                for (int i = 0; i < 2; i++, w->p++) {
                        char h = *w->p;
                        value = value * 16 + (unsigned)(h <= '9' ? h - '0' : (h | 0x20) - 'a' + 10);
                }
                return value & 0x7F;
        }
        return at ? (unsigned char)values[at - names] : (unsigned char)c;
}

static struct extent put_escape(struct writer *w)
{
        struct class c;
        char letter = w->p < w->end ? *w->p : 0;
        if (letter == 0 || strchr("AzZGK", letter)) { /* not supported within a line */
                w->refused = true;
                w->p = w->end;
                return (struct extent){0, 0};
        }
        if (letter == 'b' || letter == 'B') {
                w->p++;
                if (!w->mode->chars)
                        buf_printf(w->out, "\\%c", letter);
                return (struct extent){1, 0};
        }
        if (letter >= '1' && letter <= '9') {
                while (w->p < w->end && *w->p >= '0' && *w->p <= '9')
                        w->p++;
                buf_puts(w->out, "(?:.*)");
                return (struct extent){WEIGHT_WIDE, 0};
        }
        if (letter == 'N') {
                w->p++;
                buf_putc(w->out, '.');
                return (struct extent){w->mode->chars ? WEIGHT_WIDE : 1, 1};
        }
        class_init(&c);
        if (class_escape(w, letter, &c))
                w->p++;
        else
                class_code(w, &c, take_escaped(w));
        return put_class(w, &c);
}

/* Takes one character of a class; false if it was a set, which was added to the class. */
static bool take_member(struct writer *w, struct class *c, uint32_t *cp)
{
        if (next_is(w, "[:")) {
                w->p += 2;
                if (!class_posix(w, c))
                        w->refused = true;
                return false;
        }
        if (*w->p != '\\') {
                *cp = take_code(w);
                return true;
        }
        w->p++;
        if (w->p < w->end && class_escape(w, *w->p, c)) {
                w->p++;
                return false;
        }
        if (w->p < w->end)
                *cp = take_escaped(w);
        return true;
}

static struct extent put_set(struct writer *w)
{
        struct class c;
        bool first = true;
        class_init(&c);
        if (next_is(w, "^")) {
                c.negated = true;
                w->p++;
        }
        for (; w->p < w->end && (first || *w->p != ']') && !w->refused; first = false) {
                uint32_t from = 0;
                uint32_t to = 0;
                if (!take_member(w, &c, &from)) {
                        /* A hyphen behind a set can be read in several ways. */
                        if (next_is(w, "-") && !next_is(w, "-]"))
                                w->refused = true;
                        continue;
                }
                if (!next_is(w, "-") || next_is(w, "-]")) {
                        class_code(w, &c, from);
                        continue;
                }
                w->p++;
                if (w->p >= w->end || !take_member(w, &c, &to) || to < from)
                        w->refused = true;
                else
                        class_range(w, &c, from, to);
        }
        w->p += w->p < w->end;
        return put_class(w, &c);
}

/* ---- groups, sequences, alternatives ---- */

static struct extent put_group(struct writer *w)
{
        size_t begin = w->out->n;
        bool assertion = false;
        if (next_is(w, "?")) {
                w->p++;
                assertion =
                    next_is(w, "=") || next_is(w, "!") || next_is(w, "<=") || next_is(w, "<!");
                if (assertion || next_is(w, ":") || next_is(w, ">")) {
                        w->p += 1 + (assertion && next_is(w, "<"));
                } else {
                        const char *close = memchr(w->p, '>', (size_t)(w->end - w->p));
                        w->refused = w->refused || !close;
                        w->p = close ? close + 1 : w->end;
                }
        }
        buf_puts(w->out, "(?:");
        struct extent e = put_alternatives(w);
        w->refused = w->refused || w->p >= w->end;
        w->p += w->p < w->end;
        buf_putc(w->out, ')');
        if (assertion) {
                w->out->n = begin;
                return (struct extent){0, 0};
        }
        return e;
}

static struct extent put_atom(struct writer *w)
{
        char c = *w->p;
        switch (c) {
        case '(':
                w->p++;
                return put_group(w);
        case '[':
                w->p++;
                return put_set(w);
        case '\\':
                w->p++;
                return put_escape(w);
        case '^':
        case '$':
                w->p++;
                buf_putc(w->out, c);
                return (struct extent){1, 0};
        case '.':
                w->p++;
                buf_putc(w->out, '.');
                return (struct extent){w->mode->chars ? WEIGHT_WIDE : 1, 1};
        default:
                return put_literal(w, take_code(w));
        }
}

#define ENDLESS SIZE_MAX

static size_t take_number(struct writer *w)
{
        size_t n = 0;
        for (; w->p < w->end && *w->p >= '0' && *w->p <= '9'; w->p++)
                n = n < 100000 ? n * 10 + (size_t)(*w->p - '0') : n;
        return n;
}

/* Takes a repeat; false if there is none. Lazy and possessive repeats make no difference here. */
static bool take_repeat(struct writer *w, size_t *least, size_t *most)
{
        char c = w->p < w->end ? *w->p : 0;
        if (!c || !strchr("*+?{", c))
                return false;
        w->p++;
        *least = c == '+';
        *most = c == '?' ? 1 : ENDLESS;
        if (c == '{') {
                *least = *most = take_number(w);
                if (next_is(w, ",")) {
                        w->p++;
                        *most = next_is(w, "}") ? ENDLESS : take_number(w);
                }
                w->p += w->p < w->end;
        }
        if (next_is(w, "?") || next_is(w, "+"))
                w->p++;
        return true;
}

static struct extent put_repeated(struct writer *w)
{
        size_t begin = w->out->n;
        size_t least = 1;
        size_t most = 1;
        struct extent e = put_atom(w);
        if (w->refused || !take_repeat(w, &least, &most))
                return e;
        /* An item without width may be left out. */
        if (w->out->n == begin || most == 0 || (e.least == 0 && e.weight <= 1)) {
                w->out->n = begin;
                return (struct extent){0, 0};
        }
        if (most == ENDLESS)
                buf_printf(w->out, "{%zu,}", least);
        else
                buf_printf(w->out, "{%zu,%zu}", least, most);
        size_t times = most == ENDLESS ? least + 1 : most;
        e.weight =
            e.weight < WEIGHT_MAX + 1 && times < WEIGHT_MAX + 1 ? e.weight * times : WEIGHT_MAX + 1;
        e.least = least ? e.least : 0;
        return e;
}

static struct extent put_sequence(struct writer *w)
{
        struct extent all = {0, 0};
        while (w->p < w->end && *w->p != '|' && *w->p != ')' && !w->refused) {
                struct extent e = put_repeated(w);
                all.weight += e.weight;
                all.least += e.least;
                w->refused = w->refused || all.weight > WEIGHT_MAX || w->out->n > EXPRESSION_MAX;
        }
        return all;
}

static struct extent put_alternatives(struct writer *w)
{
        struct extent all = put_sequence(w);
        while (next_is(w, "|") && !w->refused) {
                w->p++;
                buf_putc(w->out, '|');
                struct extent e = put_sequence(w);
                all.weight += e.weight;
                all.least = e.least < all.least ? e.least : all.least;
                w->refused = w->refused || all.weight > WEIGHT_MAX;
        }
        return all;
}

bool sieve_expression(struct str pattern, const struct sieve_mode *mode, struct buf *out)
{
        struct writer w = {.p = pattern.p, .end = pattern.p + pattern.n, .mode = mode, .out = out};
        struct extent all = put_alternatives(&w);
        return !w.refused && w.p == w.end && all.least > 0 && !out->failed;
}
