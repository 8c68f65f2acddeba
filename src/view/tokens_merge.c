/*
 * tokens_merge.c - merges as tokens_piece.h defines it, but begins with characters instead of
 * bytes.
 *
 * Merging makes most characters from their bytes before any of these could join something else
 * (tokens_kept), so these characters are units from the beginning. Of other characters, the bytes
 * are units. In a word of two-byte letters, few neighbours are a token, and most of these are in a
 * small table (tokens_duos). So few look-ups have to wait for another.
 */
#include "view/tokens_merge.h"

#include <string.h>

#include "view/tokens_data.h"

#define UNITS 64 /* a power of two */
#define PLACE_BITS 6
#define NONE INT32_MAX

_Static_assert(UNITS == 1 << PLACE_BITS && TOKENS_RANK_BITS + PLACE_BITS < 31, "see joins");

struct merge {
        size_t n;
        uint32_t tokens[UNITS];
        uint16_t chars[UNITS]; /* the unit's character if it is below U+0800, else OTHER */
        /* The token that joins a token and the next one: its rank above its place, so that the
         * lowest value is merged first. NONE: there is no such token, or no token is at this place
         * any more. */
        int32_t joins[UNITS + 4];
        uint8_t next[UNITS]; /* the place of the next token; n behind the last one */
        uint8_t before[UNITS + 1];
};

#define OTHER (1 << TOKENS_DUO_BITS)

/* ---- units ---- */

static inline bool bit(const uint8_t *bits, unsigned i)
{
        return (bits[i >> 3] >> (i & 7) & 1) != 0;
}

static inline void add(struct merge *m, uint32_t token, unsigned character)
{
        m->tokens[m->n] = token;
        m->chars[m->n++] = (uint16_t)(character < OTHER ? character : OTHER);
}

static inline size_t decode(struct tokens_text text, uint32_t *c, bool *damaged)
{
        if (text.p[0] >= 0xC2 && text.p[0] < 0xE0 && text.n > 1 && (text.p[1] & 0xC0) == 0x80) {
                *c = (text.p[0] & 0x1Fu) << 6 | (text.p[1] & 0x3Fu);
                return 2;
        }
        return tokens_decode(text, c, damaged);
}

/* Makes the units of a piece. False: there are too many. */
static bool add_units(struct merge *m, struct tokens_text piece)
{
        unsigned before = 0; /* the last byte; none comes before the first character */
        for (size_t i = 0; i < piece.n;) {
                const unsigned char *p = piece.p + i;
                if (m->n + 4 > UNITS)
                        return false;
                if (p[0] < 0x80) {
                        before = p[0];
                        add(m, tokens_chars[before], before);
                        i++;
                        continue;
                }
                uint32_t c;
                bool damaged = false;
                size_t len = decode((struct tokens_text){p, piece.n - i}, &c, &damaged);
                i += len;
                if (damaged) {
                        p = (const unsigned char *)"\xEF\xBF\xBD";
                        len = 3;
                }
                if (c < 0x10000 && bit(tokens_kept, c) &&
                    (m->n == 0 || !bit(tokens_begun, before << 8 | p[0]))) {
                        add(m, tokens_chars[c], c);
                } else {
                        for (size_t k = 0; k < len; k++)
                                add(m, tokens_cells[TOKENS_BYTES + p[k]].longest, OTHER);
                }
                before = p[len - 1];
        }
        return true;
}

/* ---- merging ---- */

static inline int32_t join_at(uint32_t rank, size_t place)
{
        return rank == TOKENS_NONE ? NONE : (int32_t)(rank << PLACE_BITS | place);
}

static inline int32_t join(const struct merge *m, size_t place, size_t next)
{
        return join_at(tokens_joined(m->tokens[place], m->tokens[next]), place);
}

static inline int32_t join_units(const struct merge *m, size_t place)
{
        unsigned c = m->chars[place], d = m->chars[place + 1];
        if ((c | d) < 0x80)
                return join_at(tokens_pairs[c << 7 | d].rank, place);
        if (c < 0x80 || d < 0x80 || c == OTHER || d == OTHER)
                return join(m, place, place + 1);
        uint32_t duo = tokens_duos[tokens_duo_rows[c] + d];
        return (duo & (OTHER - 1)) == c ? join_at(duo >> TOKENS_DUO_BITS, place) : NONE;
}

typedef int32_t joins __attribute__((vector_size(16)));

static inline joins load(const int32_t *p)
{
        joins v;
        memcpy(&v, p, sizeof v);
        return v;
}

static inline int32_t lowest(const struct merge *m)
{
        joins low = load(m->joins);
        for (size_t i = 4; i < m->n; i += 4) {
                joins v = load(m->joins + i), less = v < low;
                low = (less & v) | (~less & low);
        }
        int32_t a = low[0] < low[1] ? low[0] : low[1];
        int32_t b = low[2] < low[3] ? low[2] : low[3];
        return a < b ? a : b;
}

static void begin(struct merge *m)
{
        for (size_t i = 0; i + 1 < m->n; i++)
                m->joins[i] = join_units(m, i);
        for (size_t i = 0; i < m->n; i++) {
                m->next[i] = (uint8_t)(i + 1);
                m->before[i + 1] = (uint8_t)i;
        }
        for (size_t i = m->n - 1; i < m->n + 3; i++)
                m->joins[i] = NONE;
}

/* Joins the token at a place and the next one to `token`. */
static inline void merge_at(struct merge *m, size_t place, uint32_t token)
{
        size_t gone = m->next[place], next = m->next[gone];
        m->tokens[place] = token;
        m->next[place] = (uint8_t)next;
        m->before[next] = (uint8_t)place;
        m->joins[gone] = NONE;
        m->joins[place] = next < m->n ? join(m, place, next) : NONE;
        if (place > 0)
                m->joins[m->before[place]] = join(m, m->before[place], place);
}

size_t tokens_merge(struct tokens_text piece, size_t *units)
{
        struct merge m;
        m.n = 0;
        if (!add_units(&m, piece))
                return 0;
        begin(&m);
        size_t count = *units = m.n;
        for (int32_t low; (low = lowest(&m)) != NONE; count--)
                merge_at(&m, (size_t)low % UNITS, (uint32_t)low >> PLACE_BITS);
        return count;
}
