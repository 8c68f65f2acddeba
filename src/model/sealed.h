/*
 * sealed.h - lines with a checksum: one JSON object in each line, whose last member is the CRC-32C
 * of everything before it.
 *
 *   {...,"crc":"9ae0daaf"}\n
 *
 * Records (record.h) and the events of runs are such lines. Their members stand in a fixed order
 * without white space, so they are read by position.
 */
#ifndef MODEL_SEALED_H
#define MODEL_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/scan.h"
#include "base/str.h"

/* Ends the line that begins at `start`: appends its checksum, the closing brace and the line
 * feed. */
void sealed_finish(struct buf *out, size_t start);

/* The rest of a line that is read by position: from p up to the seal. */
struct sealed {
        const char *p;
        const char *end;
};

/* Opens a line (without its line feed) for reading. False: it is too short. */
bool sealed_body(struct str line, struct sealed *s);
/* Is the checksum right? */
bool sealed_check(struct str line);
/* The number of bytes that the seal adds to a line, without the line feed. */
#define SEALED_BYTES 18

/* Each of these takes what must come next, or returns false. They are always inlined, because every
 * record that is read passes through them: comparing with a literal of known length takes a few
 * instructions, and calling memcmp takes many more. */
#define SEALED_INLINE static inline __attribute__((always_inline))

/* Compares n bytes, where n is a constant, as two words that may overlap. The compiler does this by
 * itself only for some lengths. */
SEALED_INLINE bool sealed_same(const char *p, const char *q, size_t n)
{
        if (n >= 8 && n <= 16) {
                uint64_t a, b, c, d;
                memcpy(&a, p, 8);
                memcpy(&b, q, 8);
                memcpy(&c, p + n - 8, 8);
                memcpy(&d, q + n - 8, 8);
                return ((a ^ b) | (c ^ d)) == 0;
        }
        if (n >= 4 && n < 8) {
                uint32_t a, b, c, d;
                memcpy(&a, p, 4);
                memcpy(&b, q, 4);
                memcpy(&c, p + n - 4, 4);
                memcpy(&d, q + n - 4, 4);
                return ((a ^ b) | (c ^ d)) == 0;
        }
        return memcmp(p, q, n) == 0;
}

SEALED_INLINE bool sealed_take(struct sealed *s, struct str literal)
{
        if ((size_t)(s->end - s->p) < literal.n || !sealed_same(s->p, literal.p, literal.n))
                return false;
        s->p += literal.n;
        return true;
}

SEALED_INLINE bool sealed_take_u64(struct sealed *s, uint64_t *v)
{
        const char *start = s->p;
        uint64_t n = 0;
        while (s->p < s->end && *s->p >= '0' && *s->p <= '9' && s->p - start < 19)
                n = n * 10 + (uint64_t)(*s->p++ - '0');
        *v = n;
        return s->p > start;
}

/* Takes the rest of a string whose opening quote was taken, including the closing quote. */
SEALED_INLINE bool sealed_take_string(struct sealed *s, struct str *v)
{
        const char *at = scan_plain_string(s->p, s->end);
        bool is_short = at;
        if (!at)
                at = memchr(s->p, '"', (size_t)(s->end - s->p));
        /* Few of these strings have an escape; a string that has one is read step by step. */
        if (at && !is_short && memchr(s->p, '\\', (size_t)(at - s->p))) {
                at = s->p;
                while (at < s->end && *at != '"')
                        at += *at == '\\' ? 2 : 1;
        }
        if (!at || at >= s->end)
                return false;
        *v = str_span(s->p, (size_t)(at - s->p));
        s->p = at + 1;
        return true;
}

#endif
