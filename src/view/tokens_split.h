/*
 * tokens_split.h - cuts a text into pieces. o200k_base merges bytes only within a piece.
 */
#ifndef VIEW_TOKENS_SPLIT_H
#define VIEW_TOKENS_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokens_text {
        const unsigned char *p;
        size_t n;
};

/* Returns the length in bytes of the first piece of text; at least 1 unless the text is empty.
 * *damaged becomes true if the piece may contain bytes that are not UTF-8; it is never set to
 * false. */
size_t tokens_split(struct tokens_text text, bool *damaged);

/* May this byte come second, after this lead byte? Overlong forms, surrogates and code points
 * beyond U+10FFFF are excluded here. */
static inline bool tokens_second_fits(unsigned char lead, unsigned char second)
{
        unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        return second >= low && second <= high;
}

/* Returns the length in bytes of the first character; the text must not be empty. A broken sequence
 * counts as one character, U+FFFD, up to the byte that breaks it. Then *damaged becomes true; it is
 * never set to false. */
static inline size_t tokens_decode(struct tokens_text text, uint32_t *c, bool *damaged)
{
        unsigned char lead = text.p[0];
        if (lead < 0x80) {
                *c = lead;
                return 1;
        }
        if (lead < 0xC2 || lead >= 0xF5) {
                *c = 0xFFFD;
                *damaged = true;
                return 1;
        }
        size_t need = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        size_t have = 1;
        uint32_t value = lead & (0xFFu >> (need + 1));
        if (text.n > 1 && tokens_second_fits(lead, text.p[1])) {
                do
                        value = value << 6 | (text.p[have++] & 0x3Fu);
                while (have < need && have < text.n && (text.p[have] & 0xC0) == 0x80);
        }
        if (have == need) {
                *c = value;
                return have;
        }
        *c = 0xFFFD;
        *damaged = true;
        return have;
}

#endif
