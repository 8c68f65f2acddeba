/* words.c - see words.h */
#include "base/words.h"

#include <stdint.h>

#include "base/casefold.h"
#include "base/composed.h"

enum kind { SPACE, LETTER, ALONE };

/* The character at `p`; *n is its length. Bytes that are not UTF-8 are characters of their own. */
static uint32_t decode(const unsigned char *p, size_t left, size_t *n)
{
        uint32_t c = p[0];
        size_t more = c >= 0xF0 && c < 0xF5 ? 3 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xC2 && c < 0xE0;
        *n = 1;
        if (c < 0x80 || !more || more >= left)
                return c < 0x80 ? c : 0xFFFD;
        c &= 0x3Fu >> more;
        for (size_t i = 1; i <= more; i++) {
                if ((p[i] & 0xC0) != 0x80)
                        return 0xFFFD;
                c = c << 6 | (p[i] & 0x3F);
        }
        *n = more + 1;
        return c;
}

static enum kind kind_of(uint32_t c)
{
        if (c < 0x80)
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                               c == '_'
                           ? LETTER
                           : SPACE;
        if (c < 0xC0 || c == 0xD7 || c == 0xF7)
                return c == 0xAA || c == 0xB5 || c == 0xBA ? LETTER : SPACE;
        if ((c >= 0x2000 && c < 0x2C00) || (c >= 0x3000 && c < 0x3005) ||
            (c >= 0x3008 && c < 0x3021) || (c >= 0xFF00 && c < 0xFF10))
                return SPACE; /* punctuation, arrows, boxes */
        if ((c >= 0x3005 && c < 0xA000) || (c >= 0xAC00 && c < 0xD7B0) ||
            (c >= 0xF900 && c < 0xFB00) || (c >= 0x20000 && c < 0x32000))
                return ALONE;
        return LETTER;
}

static size_t encode(uint32_t c, char *out)
{
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (n == 1) {
                out[0] = (char)c;
                return 1;
        }
        for (size_t i = n - 1; i > 0; i--, c >>= 6)
                out[i] = (char)(0x80 | (c & 0x3F));
        out[0] = (char)((0xF0 << (4 - n)) | c);
        return n;
}

/* A character with those that join it, as it is compared. */
struct cluster {
        size_t bytes; /* in the text */
        enum kind kind;
        size_t n;
        char folded[4 * COMPOSED_ROOM];
};

/* A character that stands alone, of `n` bytes. */
static void take_one(struct cluster *k, uint32_t c, const unsigned char *p, size_t n)
{
        uint32_t folded = casefold(c);
        k->bytes = n;
        k->kind = kind_of(c);
        if (folded != c && (c < 0x80) == (n == 1)) {
                k->n = encode(folded, k->folded);
                return;
        }
        k->n = n;
        for (size_t i = 0; i < n; i++)
                k->folded[i] = (char)p[i];
}

/* Is the next character one that joins the one before it? None below U+0300 does. */
static bool is_joined(const unsigned char *p, size_t left)
{
        size_t step;
        return left && p[0] >= 0xCC && composed_joins(decode(p, left, &step));
}

/* The same for a character that others join, in the normal form of all that look the same. */
static void take_joined(struct cluster *k, const unsigned char *p, size_t left)
{
        uint32_t c[COMPOSED_ROOM];
        size_t n = 0, step;
        k->bytes = k->n = 0;
        do {
                c[n++] = decode(p + k->bytes, left - k->bytes, &step);
                k->bytes += step;
        } while (n < COMPOSED_MAX && is_joined(p + k->bytes, left - k->bytes));
        n = composed(c, n);
        k->kind = composed_is_mark(c[0]) ? SPACE : kind_of(c[0]);
        for (size_t i = 0; i < n; i++)
                k->n += encode(casefold(c[i]), k->folded + k->n);
}

/* A mark behind ASCII that is in no word, or behind what is not UTF-8, joins nothing: a text may be
 * split there. */
static void take(struct cluster *k, const unsigned char *p, size_t left)
{
        size_t step;
        uint32_t c = decode(p, left, &step);
        bool alone = (c < 0x300 || !composed_is_care(c)) && !is_joined(p + step, left - step);
        if (alone || (c < 0x80 && kind_of(c) == SPACE) || c == 0xFFFD)
                take_one(k, c, p, step);
        else
                take_joined(k, p, left);
}

/* Long runs that alternate between digits and letters of both cases are data. `size` is the length
 * of the normal form; other spellings give the same length, and as many ASCII letters. */
static bool is_data(const unsigned char *p, size_t n, size_t size)
{
        size_t digits = 0, upper = 0, lower = 0;
        if (size < 40)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (is_joined(p + i + 1, n - i - 1))
                        continue;
                digits += p[i] >= '0' && p[i] <= '9';
                upper += p[i] >= 'A' && p[i] <= 'Z';
                lower += p[i] >= 'a' && p[i] <= 'z';
        }
        return digits >= size / 8 && upper >= size / 8 && lower >= size / 8;
}

bool words_next(struct words *w, struct word *out)
{
        const unsigned char *p = (const unsigned char *)w->text.p;
        size_t n = w->text.n, at = w->at;
        struct cluster k = {.kind = SPACE};
        for (; at < n; at += k.bytes) {
                take(&k, p + at, n - at);
                if (k.kind != SPACE)
                        break;
        }
        enum kind kind = k.kind;
        out->from = at;
        out->n = 0;
        size_t size = 0;
        while (at < n && k.kind == kind) {
                size += k.n;
                for (size_t i = 0; size <= WORD_MAX && i < k.n; i++)
                        out->folded[out->n++] = k.folded[i];
                at += k.bytes;
                if (kind == ALONE || at == n)
                        break;
                take(&k, p + at, n - at);
        }
        out->end = w->at = at;
        if (size > WORD_MAX || is_data(p + out->from, at - out->from, size))
                out->n = 0;
        return out->end > out->from;
}
