/*
 * tokens.c - exact counting, in a build that has the vocabulary.
 *
 * A text is cut into pieces (tokens_split.c), most of which are one token; those of the others are
 * counted (tokens_piece.c). Texts repeat themselves: names in code and JSON, phrases in languages
 * without blanks. So counts of pieces are remembered while a long text is counted.
 */
#include "view/tokens.h"

#include <string.h>

#include "view/tokens_data.h"
#include "view/tokens_piece.h"
#include "view/tokens_split.h"

bool tokens_exact(void)
{
        return true;
}

#define MEMORY_PIECES 256 /* a power of two */
#define MEMORY_BYTES 30   /* of a piece; longer ones are counted each time */
#define MEMORY_TEXT 2048  /* a shorter text is counted without */

struct memory {
        struct remembered {
                uint8_t n; /* 0: nothing */
                uint8_t count;
                unsigned char p[MEMORY_BYTES];
        } pieces[MEMORY_PIECES];
};

_Static_assert((MEMORY_PIECES & (MEMORY_PIECES - 1)) == 0, "a place is some bits of a hash");

static struct remembered *memory_place(struct memory *m, struct tokens_text piece)
{
        uint32_t h = (uint32_t)piece.n;
        for (size_t i = 0; i < piece.n; i++)
                h = (h ^ piece.p[i]) * 0x01000193u;
        return &m->pieces[(h ^ h >> 15) & (MEMORY_PIECES - 1)];
}

/* `m` may be NULL. */
static size_t count_piece(struct memory *m, struct tokens_text piece, bool damaged)
{
        if (damaged)
                return tokens_piece(piece, damaged);
        if (tokens_longest(piece.p, piece.n)->length == piece.n)
                return 1;
        if (!m || piece.n > MEMORY_BYTES)
                return tokens_piece(piece, damaged);
        struct remembered *r = memory_place(m, piece);
        if (r->n == piece.n && memcmp(r->p, piece.p, piece.n) == 0)
                return r->count;
        r->n = (uint8_t)piece.n;
        r->count = (uint8_t)tokens_piece(piece, damaged);
        memcpy(r->p, piece.p, piece.n);
        return r->count;
}

size_t tokens_count(const char *text, size_t n)
{
        struct tokens_text rest = {(const unsigned char *)text, n};
        struct memory memory, *m = n >= MEMORY_TEXT ? &memory : NULL;
        size_t count = 0;
        if (m)
                memset(m, 0, sizeof *m);
        while (rest.n > 0) {
                bool damaged = false;
                size_t len = tokens_split(rest, &damaged);
                count += count_piece(m, (struct tokens_text){rest.p, len}, damaged);
                rest.p += len;
                rest.n -= len;
        }
        return count;
}
