/* words.c - see words.h */
#include "base/words.h"

#include <stdint.h>

#include "base/casefold.h"

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

/* A character of `n` bytes as it is compared; how many bytes that takes, at most 4. */
static size_t fold(uint32_t c, const unsigned char *p, size_t n, char *out)
{
        uint32_t folded = casefold(c);
        if (folded != c && (c < 0x80) == (n == 1))
                return encode(folded, out);
        for (size_t i = 0; i < n; i++)
                out[i] = (char)p[i];
        return n;
}

/* Long runs with digits and letters of both cases in turns are data. */
static bool is_data(const char *p, size_t n)
{
        size_t digits = 0, upper = 0, lower = 0;
        if (n < 24)
                return false;
        for (size_t i = 0; i < n; i++) {
                digits += p[i] >= '0' && p[i] <= '9';
                upper += p[i] >= 'A' && p[i] <= 'Z';
                lower += p[i] >= 'a' && p[i] <= 'z';
        }
        return n >= 40 && digits >= n / 8 && upper >= n / 8 && lower >= n / 8;
}

bool words_next(struct words *w, struct word *out)
{
        const unsigned char *p = (const unsigned char *)w->text.p;
        size_t n = w->text.n, at = w->at, step;
        enum kind kind = SPACE;
        uint32_t c = 0;
        while (at < n) {
                c = decode(p + at, n - at, &step);
                kind = kind_of(c);
                if (kind != SPACE)
                        break;
                at += step;
        }
        out->from = at;
        out->n = 0;
        bool fits = true;
        while (at < n) {
                char bytes[4];
                c = decode(p + at, n - at, &step);
                if (kind_of(c) != kind)
                        break;
                size_t k = fold(c, p + at, step, bytes);
                fits = fits && out->n + k <= WORD_MAX;
                for (size_t i = 0; fits && i < k; i++)
                        out->folded[out->n++] = bytes[i];
                at += step;
                if (kind == ALONE)
                        break;
        }
        out->end = w->at = at;
        if (!fits || is_data(w->text.p + out->from, at - out->from))
                out->n = 0;
        return out->end > out->from;
}
