/* base64.c - see base64.h */
#include "base/base64.h"

#include <string.h>

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *out, const void *data, size_t n)
{
        const unsigned char *p = data;
        for (size_t i = 0; i < n; i += 3) {
                size_t left = n - i;
                unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                             (left > 2 ? p[i + 2] : 0u);
                char four[4] = {DIGITS[v >> 18], DIGITS[v >> 12 & 63],
                    left > 1 ? DIGITS[v >> 6 & 63] : '=', left > 2 ? DIGITS[v & 63] : '='};
                buf_put(out, four, sizeof four);
        }
}

static int digit(char c)
{
        const char *at = c ? strchr(DIGITS, c) : NULL;
        return at ? (int)(at - DIGITS) : -1;
}

bool base64_take(struct str text, void *out, size_t n)
{
        unsigned char *to = out;
        size_t done = 0;
        if (text.n != (n + 2) / 3 * 4)
                return false;
        for (size_t i = 0; i < text.n; i += 4) {
                size_t want = n - done < 3 ? n - done : 3; /* bytes of these four digits */
                unsigned v = 0;
                for (size_t k = 0; k < 4; k++) {
                        char c = text.p[i + k];
                        int d = k <= want ? digit(c) : c == '=' ? 0 : -1;
                        if (d < 0)
                                return false;
                        v = v << 6 | (unsigned)d;
                }
                /* Bits behind the last byte must be zero: each value has one spelling. */
                if (v & ((1u << 8 * (3 - want)) - 1))
                        return false;
                for (size_t k = 0; k < want; k++)
                        to[done++] = (unsigned char)(v >> (16 - 8 * k));
        }
        return true;
}
