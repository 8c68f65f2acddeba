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
 *
 * A run of blanks, of one letter or of one byte that is not UTF-8 has tokens of almost every
 * length, which makes each step slow, and is the same all over. What comes next depends on the last
 * LOOK_BACK bytes and on the lengths of the last token of the last TOKENS_LENGTH_MAX prefixes
 * alone. So where the text goes on as before, and these lengths are what they were a period ago,
 * each further period adds as many tokens as the last one did, and is skipped (chain_skip).
 */
#include "view/tokens_merge.h"

#include "view/tokens_data.h"

#define PREFIXES 1024                               /* remembered; a power of two */
#define LOOK_BACK ((size_t)(2 * TOKENS_LENGTH_MAX)) /* bytes that two neighbours can span */
#define PERIOD_MAX ((size_t)512)                    /* of the lengths of tokens in a run */
#define KEPT (LOOK_BACK + PERIOD_MAX)               /* bytes before the window moved on */
#define WINDOW (KEPT + 512)
#define UNIT_MAX 16  /* bytes that a run repeats */
#define RUN_MIN 1024 /* bytes; a shorter run is not worth the search for its period */

_Static_assert((PREFIXES & (PREFIXES - 1)) == 0, "ring size");
_Static_assert(PREFIXES > PERIOD_MAX + TOKENS_LENGTH_MAX, "a period and what goes before it");

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
        size_t skipped; /* tokens */
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
                if (tokens_rank_if_any(border - left.len, left.len + right.len) < limit)
                        return false;
                if (left.len == 1 && right.len == 1)
                        return true;
                bool undo_left = right.len == 1 || (left.rank > right.rank && left.len > 1);
                if (undo_left) {
                        limit = left.rank;
                        left.len -= tokens_splits[left.rank];
                        left.rank = tokens_rank_if_any(border - left.len, left.len);
                } else {
                        limit = right.rank + 1;
                        right.len = tokens_splits[right.rank];
                        right.rank = tokens_rank_if_any(border, right.len);
                }
        }
}

/* Extends the prefix of `done` - len bytes by the token of the `len` bytes before `end`, if those
 * are a token and it fits. */
static bool chain_extend(struct chain *c, size_t done, const unsigned char *end, uint32_t len)
{
        if (len == 0 || len > done)
                return false;
        uint32_t rank = tokens_rank_if_any(end - len, len);
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
        for (int half = 0; half < 2; half++) {
                uint64_t lengths = tokens_lengths[end[-1]][half];
                while (lengths != 0) {
                        uint32_t bit = (uint32_t)__builtin_ctzll(lengths);
                        lengths &= lengths - 1;
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

/* Moves the window on, keeping KEPT bytes before `*at`; false at the end of the piece. */
static bool chain_fill(struct chain *c, size_t *at)
{
        if (c->rest.n == 0)
                return false;
        size_t keep = *at < KEPT ? *at : KEPT;
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

/* What a run repeats: as it stands in the piece, and as it stands in the window. */
struct unit {
        size_t raw;
        size_t len;
        size_t times;
        unsigned char text[3 * UNIT_MAX];
};

/* How many bytes of the rest are the same as those `n` bytes later. */
static size_t run_length(struct tokens_text rest, size_t n)
{
        size_t i = 0;
        while (i + n + 256 <= rest.n && memcmp(rest.p + i, rest.p + i + n, 256) == 0)
                i += 256;
        while (i + n < rest.n && rest.p[i] == rest.p[i + n])
                i++;
        return i;
}

/* Reads the unit that the rest begins with, `raw` bytes long; false where it ends within a
 * character. */
static bool unit_read(struct tokens_text rest, size_t raw, struct unit *u)
{
        *u = (struct unit){.raw = raw};
        size_t done = 0;
        while (done < raw) {
                uint32_t ch;
                bool damaged = false;
                struct tokens_text from = {rest.p + done, rest.n - done};
                size_t len = tokens_decode(from, &ch, &damaged);
                if (len > raw - done)
                        return false;
                memcpy(u->text + u->len, damaged ? (const void *)"\xEF\xBF\xBD" : from.p,
                    damaged ? 3 : len);
                u->len += damaged ? 3 : len;
                done += len;
        }
        return true;
}

/* Whether the rest begins with a run. Its last units are left alone: how their characters are read
 * may depend on what follows. */
static bool unit_find(struct tokens_text rest, struct unit *u)
{
        for (size_t raw = 1; raw <= UNIT_MAX && rest.n >= RUN_MIN + raw; raw++) {
                if (memcmp(rest.p, rest.p + raw, 64) != 0)
                        continue;
                size_t n = run_length(rest, raw);
                if (n < RUN_MIN || !unit_read(rest, raw, u))
                        return false;
                u->times = n / raw - 4;
                return true;
        }
        return false;
}

/* Whether the last `n` bytes of the window are units, up to its end. */
static bool unit_fills(const struct chain *c, const struct unit *u, size_t n)
{
        if (c->have < n || n < u->len)
                return false;
        const unsigned char *end = c->window + c->have;
        return memcmp(end - u->len, u->text, u->len) == 0 &&
               memcmp(end - n, end - n + u->len, n - u->len) == 0;
}

/* Whether the last prefixes end in tokens that are as long as those `period` bytes ago. */
static bool chain_repeats(const struct chain *c, size_t done, size_t period)
{
        for (size_t i = 0; i < TOKENS_LENGTH_MAX; i++) {
                if (c->prefixes[(done - i) % PREFIXES].last.len !=
                    c->prefixes[(done - i - period) % PREFIXES].last.len)
                        return false;
        }
        return true;
}

/* At the end of the window: skips as many whole periods as the rest begins with. The prefix of
 * `done` bytes then stands for the longer one, whose last tokens are the same. */
static void chain_skip(struct chain *c, size_t done)
{
        struct unit u;
        if (done < KEPT || !unit_find(c->rest, &u) || !unit_fills(c, &u, KEPT))
                return;
        size_t period = u.len;
        while (period <= PERIOD_MAX && !chain_repeats(c, done, period))
                period += u.len;
        if (period > PERIOD_MAX)
                return;
        size_t times = u.times / (period / u.len);
        size_t units = times * (period / u.len);
        c->skipped += times * (c->prefixes[done % PREFIXES].count -
                                  c->prefixes[(done - period) % PREFIXES].count);
        c->rest.p += units * u.raw;
        c->rest.n -= units * u.raw;
}

size_t tokens_chain(struct tokens_text piece)
{
        struct chain c;
        c.rest = piece;
        c.have = 0;
        c.skipped = 0;
        c.prefixes[0] = (struct prefix){0, {0, 0}};
        memset(c.next_len, 0, sizeof c.next_len);
        size_t done = 0;
        size_t at = 0;
        while (chain_fill(&c, &at)) {
                while (at < c.have)
                        chain_step(&c, ++done, c.window + ++at);
                chain_skip(&c, done);
        }
        return c.prefixes[done % PREFIXES].count + c.skipped;
}
