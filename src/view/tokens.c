/*
 * tokens.c - exact counting, in a build that has the vocabulary.
 *
 * A text is cut into pieces (tokens_split.c); most pieces are one token; the others are merged
 * (tokens_merge.c) or, when long, chained (tokens_chain.c). Texts repeat themselves: names in code
 * and JSON, phrases in languages without blanks. So what merging a piece gave is remembered while a
 * long text is counted.
 */
#include "view/tokens.h"

#include "view/tokens_data.h"
#include "view/tokens_merge.h"
#include "view/tokens_split.h"

bool tokens_exact(void)
{
        return true;
}

#define MEMORY_PIECES 256 /* a power of two */
#define MEMORY_BYTES 30   /* of a piece; longer ones are merged each time */
#define MEMORY_TEXT 2048  /* a shorter text is counted without */

struct memory {
        struct remembered {
                uint8_t n; /* 0: nothing */
                uint8_t count;
                unsigned char p[MEMORY_BYTES];
        } pieces[MEMORY_PIECES];
};

_Static_assert((MEMORY_PIECES & (MEMORY_PIECES - 1)) == 0, "a place is some bits of a hash");

/* As tokens_merge. `m` may be NULL. */
static size_t merge(struct memory *m, const unsigned char *p, size_t n)
{
        if (!m || n > MEMORY_BYTES)
                return tokens_merge(p, n);
        struct remembered *r = &m->pieces[tokens_hash(p, n) & (MEMORY_PIECES - 1)];
        if (r->n == n && memcmp(r->p, p, n) == 0)
                return r->count;
        size_t count = tokens_merge(p, n);
        r->n = (uint8_t)n;
        r->count = (uint8_t)count;
        memcpy(r->p, p, n);
        return count;
}

static size_t count_piece(struct memory *m, const unsigned char *p, size_t n)
{
        if (tokens_rank(p, n) != TOKENS_NONE)
                return 1;
        if (n <= TOKENS_MERGE_MAX)
                return merge(m, p, n);
        return tokens_chain((struct tokens_text){p, n});
}

/* Puts U+FFFD where a piece is not UTF-8. Returns its length then, or 0 when there is no room. */
static size_t mend(struct tokens_text piece, unsigned char *out, size_t room)
{
        size_t n = 0;
        while (piece.n > 0) {
                uint32_t c;
                bool damaged = false;
                size_t len = tokens_decode(piece, &c, &damaged);
                const void *from = damaged ? (const void *)"\xEF\xBF\xBD" : piece.p;
                size_t put = damaged ? 3 : len;
                if (room - n < put)
                        return 0;
                memcpy(out + n, from, put);
                n += put;
                piece.p += len;
                piece.n -= len;
        }
        return n;
}

static size_t count_damaged(struct memory *m, struct tokens_text piece)
{
        unsigned char mended[TOKENS_MERGE_MAX];
        size_t n = mend(piece, mended, sizeof mended);
        return n > 0 ? count_piece(m, mended, n) : tokens_chain(piece);
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
                if (damaged)
                        count += count_damaged(m, (struct tokens_text){rest.p, len});
                else
                        count += count_piece(m, rest.p, len);
                rest.p += len;
                rest.n -= len;
        }
        return count;
}
