/* json_random.h - random JSON documents with every kind of white space, escape and character. */
#ifndef TESTS_JSON_RANDOM_H
#define TESTS_JSON_RANDOM_H

#include "../support/seed.h"
#include "base/buf.h"
#include "base/text.h"

static inline void random_space(struct seed *s, struct buf *b)
{
        while (seed_below(s, 4) == 0)
                buf_putc(b, " \n\r\t"[seed_below(s, 4)]);
}

static inline uint32_t random_character(struct seed *s)
{
        static const uint32_t tops[] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
        for (;;) {
                uint32_t cp = (uint32_t)seed_below(s, tops[seed_below(s, 4)] + 1u);
                if (cp >= 0x20 && cp != '"' && cp != '\\' && (cp < 0xD800 || cp > 0xDFFF))
                        return cp;
        }
}

static inline void random_string(struct seed *s, struct buf *b)
{
        size_t n = seed_below(s, seed_below(s, 5) ? 12 : 90);
        buf_putc(b, '"');
        for (size_t i = 0; i < n; i++) {
                switch (seed_below(s, 8)) {
                case 0:
                        buf_putc(b, '\\');
                        buf_putc(b, "\"\\/bfnrt"[seed_below(s, 8)]);
                        break;
                case 1:
                        buf_printf(b, "\\u%04x", (unsigned)seed_below(s, 0x10000));
                        break;
                case 2:
                        text_encode(b, random_character(s));
                        break;
                default:
                        buf_putc(b, "abcxyz ,:[]{}019-"[seed_below(s, 17)]);
                }
        }
        buf_putc(b, '"');
}

static inline void random_number(struct seed *s, struct buf *b)
{
        if (seed_below(s, 2))
                buf_putc(b, '-');
        buf_put_u64(b, seed_below(s, 3) ? seed_below(s, 1000) : seed_next(s));
        if (seed_below(s, 3) == 0)
                buf_printf(b, ".%u", (unsigned)seed_below(s, 100000));
        if (seed_below(s, 3) == 0)
                buf_printf(
                    b, "%c%s%u", "eE" [seed_below(s, 2)],
                    (const char *[]) { "", "+", "-" }[seed_below(s, 3)],
                    (unsigned)seed_below(s, 400));
}

static inline void random_value(struct seed *s, struct buf *b, int depth)
{
        static const char *const words[] = {"null", "true", "false"};
        uint64_t kind = seed_below(s, depth > 0 ? 6 : 4);
        if (kind == 0)
                buf_puts(b, words[seed_below(s, 3)]);
        else if (kind == 1)
                random_number(s, b);
        else if (kind < 4)
                random_string(s, b);
        if (kind < 4)
                return;
        size_t n = seed_below(s, 5);
        buf_putc(b, kind == 4 ? '[' : '{');
        random_space(s, b);
        for (size_t i = 0; i < n; i++) {
                if (i) {
                        buf_putc(b, ',');
                        random_space(s, b);
                }
                if (kind == 5) {
                        random_string(s, b);
                        random_space(s, b);
                        buf_putc(b, ':');
                        random_space(s, b);
                }
                random_value(s, b, depth - 1);
                random_space(s, b);
        }
        buf_putc(b, kind == 4 ? ']' : '}');
}

/* A whole document, sometimes with white space around it. */
static inline void random_document(struct seed *s, struct buf *b, int depth)
{
        buf_clear(b);
        random_space(s, b);
        random_value(s, b, depth);
        random_space(s, b);
}

#endif
