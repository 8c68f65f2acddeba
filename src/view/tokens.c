/*
 * tokens.c - exact counting, in a build that has the vocabulary.
 *
 * A text is cut into pieces (tokens_split.c); most pieces are one token; the others are merged
 * (tokens_merge.c) or, when long, chained (tokens_chain.c).
 */
#include "view/tokens.h"

#include "view/tokens_data.h"
#include "view/tokens_merge.h"
#include "view/tokens_split.h"

bool tokens_exact(void)
{
        return true;
}

static size_t count_piece(const unsigned char *p, size_t n)
{
        if (tokens_rank(p, n) != TOKENS_NONE)
                return 1;
        if (n <= TOKENS_MERGE_MAX)
                return tokens_merge(p, n);
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

static size_t count_damaged(struct tokens_text piece)
{
        unsigned char mended[TOKENS_MERGE_MAX];
        size_t n = mend(piece, mended, sizeof mended);
        return n > 0 ? count_piece(mended, n) : tokens_chain(piece);
}

size_t tokens_count(const char *text, size_t n)
{
        struct tokens_text rest = {(const unsigned char *)text, n};
        size_t count = 0;
        while (rest.n > 0) {
                bool damaged = false;
                size_t len = tokens_split(rest, &damaged);
                if (damaged)
                        count += count_damaged((struct tokens_text){rest.p, len});
                else
                        count += count_piece(rest.p, len);
                rest.p += len;
                rest.n -= len;
        }
        return count;
}
