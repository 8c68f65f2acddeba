/*
 * tokens_piece.c - counting the tokens of a piece without merging it.
 *
 * Two facts about what merging leaves, t1 t2 ... tk:
 *
 * 1. If merging is applied to two neighbours alone, it leaves them unjoined. No merge crosses the
 * border between them, so each side is merged in the same order without the other side. 2. The
 * converse is true as well: take tokens of which merging leaves each two neighbours unjoined. Then
 * merging all their bytes leaves these tokens. The first merge that crosses a border would also be
 * the lowest and leftmost among the two tokens beside it, and would join them.
 *
 * So if tokens fit each other up to a place, they are the only solution up to there. At each place
 * the longest token is tried first, then shorter ones. If none fits, no border of the final result
 * is at this place: it is dead, and the token before it was too long. Each place becomes dead only
 * once, so time is linear. In most texts the search goes back by a few bytes only. If a piece needs
 * more than BACK bytes, it is counted again by spreading, which never goes back: from every place
 * that is reached, all tokens that fit mark their ends as reached.
 */
#include "view/tokens_piece.h"

#include <string.h>

#include "view/tokens_data.h"

#define BACK ((size_t)1024) /* in bytes */
#define PLACES (2 * BACK)   /* enough to remember these, and what a token can reach */
#define WINDOW (3 * BACK)   /* bytes of a damaged piece after its repair */
#define REACHED ((size_t)256)

_Static_assert(BACK % 64 == 0 && (BACK & (BACK - 1)) == 0, "places are bits of words in a ring");
_Static_assert(REACHED > TOKENS_LENGTH_MAX, "a token reaches a place of the ring");

/* ---- trying the longest first ---- */

struct trial {
        size_t count; /* tokens so far */
        size_t done;  /* their length in bytes */
        size_t most;  /* the largest `done` when a token was taken back */
        uint32_t tokens[PLACES];
        uint64_t dead[PLACES / 64]; /* a bit for each place up to `most` */
};

static void trial_init(struct trial *t)
{
        t->count = t->done = t->most = 0;
        t->dead[0] = 0;
}

static inline uint64_t *dead_word(struct trial *t, size_t place)
{
        return &t->dead[place / 64 % (PLACES / 64)];
}

static inline bool trial_extend(struct trial *t, uint32_t token, uint32_t length)
{
        size_t end = t->done + length;
        if (end <= t->most && (*dead_word(t, end) >> end % 64 & 1) != 0)
                return false;
        if (t->count > 0 && !tokens_fit(t->tokens[(t->count - 1) % PLACES], token))
                return false;
        t->tokens[t->count++ % PLACES] = token;
        t->done = end;
        return true;
}

/* Takes the last token back and marks its end as dead. TOKENS_NONE: the search would go back too
 * far. */
static uint32_t trial_retreat(struct trial *t)
{
        if (t->count == 0 || t->most > t->done + BACK - TOKENS_LENGTH_MAX)
                return TOKENS_NONE;
        while (t->most < t->done) {
                size_t word = (t->most / 64 + 1) * 64;
                t->most = t->done < word ? t->done : word;
                if (t->most == word)
                        *dead_word(t, word) = 0;
        }
        *dead_word(t, t->done) |= (uint64_t)1 << t->done % 64;
        uint32_t token = t->tokens[--t->count % PLACES];
        t->done -= tokens_tokens[token].length;
        return token;
}

/* Continues from `*p` until only `rest` bytes before `end` are left. */
static bool trial_go_on(void *state, const unsigned char **p, const unsigned char *end, size_t rest)
{
        struct trial *t = state;
        while ((size_t)(end - *p) > rest) {
                const struct tokens_cell *longest = tokens_longest(*p, (size_t)(end - *p));
                uint32_t token = longest->longest;
                uint32_t length = longest->length;
                while (!trial_extend(t, token, length)) {
                        while ((token = tokens_tokens[token].shorter) == TOKENS_NONE) {
                                token = trial_retreat(t);
                                if (token == TOKENS_NONE)
                                        return false;
                                *p -= tokens_tokens[token].length;
                        }
                        length = tokens_tokens[token].length;
                }
                *p += length;
        }
        return true;
}

/* ---- spreading ---- */

struct spread {
        size_t at; /* the next place to look at */
        size_t counts[REACHED];
        uint32_t last[REACHED]; /* the last token before a place; TOKENS_NONE: not reached */
};

static void spread_init(struct spread *s)
{
        s->at = 0;
        s->counts[0] = 0;
        memset(s->last, 0xff, sizeof s->last);
}

static void spread_from(struct spread *s, const unsigned char *p, size_t n)
{
        size_t here = s->at % REACHED;
        for (uint32_t t = tokens_longest(p, n)->longest; t != TOKENS_NONE;
             t = tokens_tokens[t].shorter) {
                if (s->at > 0 && !tokens_fit(s->last[here], t))
                        continue;
                size_t there = (s->at + tokens_tokens[t].length) % REACHED;
                s->counts[there] = s->counts[here] + 1;
                s->last[there] = t;
        }
        s->last[here] = TOKENS_NONE;
}

static bool spread_go_on(
    void *state, const unsigned char **p, const unsigned char *end, size_t rest)
{
        struct spread *s = state;
        for (; (size_t)(end - *p) > rest; ++*p, s->at++)
                if (s->at == 0 || s->last[s->at % REACHED] != TOKENS_NONE)
                        spread_from(s, *p, (size_t)(end - *p));
        return true;
}

/* ---- text ---- */

typedef bool go_on(void *state, const unsigned char **p, const unsigned char *end, size_t rest);

/* Copies as much of the piece as there is room for, with U+FFFD for bytes that are not UTF-8. */
static unsigned char *mend(struct tokens_text *piece, unsigned char *to, const unsigned char *end)
{
        while (piece->n > 0 && end - to >= 4) {
                uint32_t c;
                bool damaged = false;
                size_t len = tokens_decode(*piece, &c, &damaged);
                if (damaged) {
                        memcpy(to, "\xEF\xBF\xBD", 3);
                        to += 3;
                } else {
                        for (size_t i = 0; i < len; i++)
                                *to++ = piece->p[i];
                }
                piece->p += len;
                piece->n -= len;
        }
        return to;
}

/* The next token is chosen only if TOKENS_LENGTH_MAX bytes behind it are in the window. The last
 * BACK bytes before it are kept. */
static bool go_through_mended(struct tokens_text piece, go_on *next, void *state)
{
        unsigned char window[WINDOW];
        const unsigned char *at = window;
        unsigned char *end = window;
        while (piece.n > 0) {
                size_t back = (size_t)(at - window) < BACK ? (size_t)(at - window) : BACK;
                size_t have = (size_t)(end - at) + back;
                memmove(window, at - back, have);
                at = window + back;
                end = mend(&piece, window + have, window + WINDOW);
                if (!next(state, &at, end, piece.n > 0 ? TOKENS_LENGTH_MAX : 0))
                        return false;
        }
        return true;
}

static bool go_through(struct tokens_text piece, bool damaged, go_on *next, void *state)
{
        const unsigned char *at = piece.p;
        return damaged ? go_through_mended(piece, next, state)
                       : next(state, &at, piece.p + piece.n, 0);
}

size_t tokens_piece_spread(struct tokens_text piece, bool damaged)
{
        struct spread s;
        spread_init(&s);
        go_through(piece, damaged, spread_go_on, &s);
        return s.counts[s.at % REACHED];
}

size_t tokens_piece(struct tokens_text piece, bool damaged)
{
        struct trial t;
        trial_init(&t);
        if (!go_through(piece, damaged, trial_go_on, &t))
                return tokens_piece_spread(piece, damaged);
        return t.count;
}
