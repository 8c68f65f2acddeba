/*
 * tokens_chain.c - counting the tokens of a long piece in one pass and fixed memory.
 *
 * Merging a piece of n bytes takes n log n steps and memory for all of it. Counting can do with
 * less, by two facts about what merging leaves, t1 t2 ... tk:
 *
 * 1. Each token alone, and each two neighbours alone, are left as they are by merging. No merge
 *    crosses a border between them, so what happens on one side happens in the same order without
 *    the other.
 * 2. The converse: tokens of which each and each two neighbours are left as they are, are what
 *    merging their bytes leaves. The first merge to cross a border would be the lowest and
 *    leftmost among the two tokens beside it as well, and would join them there too.
 *
 * So the tokens of a prefix that ends at byte i are those of a shorter prefix and one token more:
 * the one token that ends at i and goes with the last one of that shorter prefix. Tokens are at
 * most TOKENS_LENGTH_MAX bytes long; what is known of older prefixes can be forgotten.
 */
#include "view/tokens_merge.h"

#include "view/tokens_data.h"

#define PREFIXES 256 /* remembered; a power of two above TOKENS_LENGTH_MAX */
#define LOOK_BACK ((size_t)(2 * TOKENS_LENGTH_MAX)) /* bytes that two neighbours can span */
#define WINDOW 2048

_Static_assert(PREFIXES > TOKENS_LENGTH_MAX && (PREFIXES & (PREFIXES - 1)) == 0, "ring size");
_Static_assert(WINDOW > 2 * LOOK_BACK, "the window must move on by more than it keeps");

struct token {
        uint32_t rank;
        uint32_t len;
};

struct prefix {
        size_t count; /* of its tokens */
        struct token last;
};

struct chain {
        struct tokens_text rest; /* of the piece, not yet in the window */
        unsigned char window[WINDOW];
        size_t have;
        struct prefix prefixes[PREFIXES]; /* by length of the prefix, modulo PREFIXES */
        uint8_t next_len[TOKENS_LENGTH_MAX + 1];
};

/*
 * Whether merging leaves the tokens that end and begin at `border` as they are. Their own merges
 * are undone, the latest first (the highest rank; of equals the right one), and at each step the
 * two parts beside the border must not be a token that would have been merged before the step
 * undone: one of lower rank, or of the same rank when the step was further to the right.
 */
static bool tokens_fit(const unsigned char *border, struct token left, struct token right)
{
        uint32_t limit = TOKENS_NONE;
        for (;;) {
                if (tokens_rank(border - left.len, left.len + right.len) < limit)
                        return false;
                if (left.len == 1 && right.len == 1)
                        return true;
                bool undo_left = right.len == 1 || (left.rank > right.rank && left.len > 1);
                if (undo_left) {
                        limit = left.rank;
                        left.len -= tokens_splits[left.rank];
                        left.rank = tokens_rank(border - left.len, left.len);
                } else {
                        limit = right.rank + 1;
                        right.len = tokens_splits[right.rank];
                        right.rank = tokens_rank(border, right.len);
                }
        }
}

/* Extends the prefix of `done` - len bytes by the token of the `len` bytes before `end`, if those
 * are a token and it fits. */
static bool chain_extend(struct chain *c, size_t done, const unsigned char *end, uint32_t len)
{
        if (len == 0 || len > done)
                return false;
        uint32_t rank = tokens_rank(end - len, len);
        if (rank == TOKENS_NONE || tokens_splits[rank] == TOKENS_UNREACHABLE)
                return false;
        struct token t = {rank, len};
        const struct prefix *before = &c->prefixes[(done - len) % PREFIXES];
        if (done > len && !tokens_fit(end - len, before->last, t))
                return false;
        c->prefixes[done % PREFIXES] = (struct prefix){before->count + 1, t};
        return true;
}

/* The length of the token that the prefix of `done` bytes, which ends at `end`, ends in. */
static uint32_t chain_search(struct chain *c, size_t done, const unsigned char *end)
{
        for (int half = 1; half >= 0; half--) {
                uint64_t lengths = tokens_lengths[end[-1]][half];
                while (lengths != 0) {
                        uint32_t bit = 63 - (uint32_t)__builtin_clzll(lengths);
                        lengths ^= (uint64_t)1 << bit;
                        uint32_t len = (uint32_t)half * 64 + bit + 1;
                        if (chain_extend(c, done, end, len))
                                return len;
                }
        }
        return 0; /* not reached: by 1. one token fits */
}

/*
 * Finds the last token of the prefix of `done` bytes. Only one fits, so that the order of trying
 * is free: first comes the length that followed the previous prefix's length the last time. Runs
 * of blanks and rules, where there is a token of almost every length, are guessed right that way.
 */
static void chain_step(struct chain *c, size_t done, const unsigned char *end)
{
        uint8_t *guess = &c->next_len[c->prefixes[(done - 1) % PREFIXES].last.len];
        if (!chain_extend(c, done, end, *guess))
                *guess = (uint8_t)chain_search(c, done, end);
}

/* Moves the window on, keeping LOOK_BACK bytes before `*at`; false at the end of the piece. */
static bool chain_fill(struct chain *c, size_t *at)
{
        if (c->rest.n == 0)
                return false;
        size_t keep = *at < LOOK_BACK ? *at : LOOK_BACK;
        memmove(c->window, c->window + *at - keep, keep);
        *at = c->have = keep;
        while (c->rest.n > 0 && WINDOW - c->have >= 4) {
                uint32_t ch;
                bool damaged = false;
                size_t len = tokens_decode(c->rest, &ch, &damaged);
                if (damaged) {
                        memcpy(c->window + c->have, "\xEF\xBF\xBD", 3);
                        c->have += 3;
                } else {
                        memcpy(c->window + c->have, c->rest.p, len);
                        c->have += len;
                }
                c->rest.p += len;
                c->rest.n -= len;
        }
        return true;
}

size_t tokens_chain(struct tokens_text piece)
{
        struct chain c;
        c.rest = piece;
        c.have = 0;
        c.prefixes[0] = (struct prefix){0, {0, 0}};
        memset(c.next_len, 0, sizeof c.next_len);
        size_t done = 0;
        size_t at = 0;
        while (chain_fill(&c, &at)) {
                while (at < c.have)
                        chain_step(&c, ++done, c.window + ++at);
        }
        return c.prefixes[done % PREFIXES].count;
}
