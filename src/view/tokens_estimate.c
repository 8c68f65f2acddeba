/*
 * tokens_estimate.c - estimates the number of tokens without the vocabulary.
 *
 * Bytes are sorted into a few kinds. Each run of a kind costs the average of such runs in prose,
 * code, JSON and logs. Costs are in twelfths of a token, so that they are whole numbers.
 */
#include "view/tokens.h"

#include <stdint.h>

enum kind { LETTERS, DIGITS, BLANKS, SIGNS, WIDE };

static enum kind kind_of(unsigned char b)
{
        unsigned char lower = b | 0x20;
        if (b >= 0x80)
                return WIDE;
        if (lower >= 'a' && lower <= 'z')
                return LETTERS;
        if (b >= '0' && b <= '9')
                return DIGITS;
        return b <= ' ' ? BLANKS : SIGNS;
}

/* A capital after a small letter begins a new word, because most identifiers are split there. */
static bool continues(enum kind kind, unsigned char before, unsigned char b)
{
        bool camel = kind == LETTERS && (before & 0x20) && !(b & 0x20);
        return kind_of(b) == kind && !camel;
}

static uint64_t run_cost(enum kind kind, uint64_t len)
{
        switch (kind) {
        case LETTERS:
                return 12 + (len > 4 ? len - 4 : 0);
        case DIGITS:
                return (len + 2) / 3 * 12;
        case BLANKS: /* a single blank is part of the word after it */
                return len == 1 ? 0 : 12;
        case SIGNS:
                return len <= 3 ? 10 : 10 + (len - 3) * 4;
        case WIDE: /* a character has two or three bytes, and often two characters are one
                      token */
                return 4 + len * 2;
        }
        return 0;
}

size_t tokens_estimate(const char *text, size_t n)
{
        const unsigned char *p = (const unsigned char *)text;
        uint64_t cost = 0;
        size_t i = 0;
        while (i < n) {
                size_t start = i;
                enum kind kind = kind_of(p[i]);
                do
                        i++;
                while (i < n && continues(kind, p[i - 1], p[i]));
                cost += run_cost(kind, i - start);
        }
        size_t count = (size_t)((cost + 11) / 12);
        return count > 0 || n == 0 ? count : 1;
}
