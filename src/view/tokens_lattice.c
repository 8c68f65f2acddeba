/*
 * tokens_lattice.c - counts with the tokens at all places of the text.
 *
 * Take the text up to any place, and the tokens that merging leaves of it: they have exactly one
 * last token. Of the tokens that end at this place, it is the one that fits (tokens_piece.c) the
 * last token of the text before it. So the last tokens are found place by place. To decide whether
 * two tokens fit, look at all tokens that cross the border between them. Such a token stops them if
 * its two halves exist when it is merged. This is so if two conditions hold: its rank is below the
 * rank of the token to which its left half is merged inside the left token, and its rank is not
 * above the rank of the token to which its right half is merged inside the right token.
 *
 * For tokens of up to three units these are a few comparisons of ranks. They are made for all
 * places at once (weigh), for each length that the last token may have. Then a step from one place
 * to the next reads two of these answers. Tokens of four units are compared in the same way, one at
 * a time. Longer tokens are rare in texts for which this file is used: if one of them ends at a
 * place or crosses it, the candidates are tried one after the other.
 *
 * Units are characters, and merging is followed as if it could join only whole units. The result is
 * right if each two neighbours in it also fit when merging may join all bytes. This is checked only
 * where a token that begins or ends inside a character could be in the way (tokens_torn). If two
 * neighbours do not fit, tokens_piece.c counts the piece.
 */
#include "view/tokens_lattice.h"

#include <string.h>

#include "view/tokens_data.h"
#include "view/tokens_piece.h"

#define LONGER_MAX 31 /* in units; each length is a bit of `longer` */
#define STOPPED 1u    /* this bit of `longer` and the next one are no lengths */
#define STOPPED_LONG 2u
#define WRONG (UINT64_C(1) << 40) /* added to a count for each two neighbours that do not fit */
#define NONE ((int32_t)TOKENS_NONE)

_Static_assert(
    LATTICE_PIECE <= LONGER_MAX && LATTICE_AHEAD > LONGER_MAX && LATTICE_START > 2 * LONGER_MAX,
    "tokens are seen in full");
_Static_assert((TOKENS_NONE & (TOKENS_NONE + 1)) == 0, "anything | TOKENS_NONE is TOKENS_NONE");

static void begin(struct tokens_lattice *l)
{
        l->n = l->looked = l->done = LATTICE_START;
        l->slow = 0;
        l->wide = false;
        for (size_t i = LATTICE_START - 4; i < LATTICE_START; i++)
                l->two[i] = l->two_one[i] = l->one_two[i] = NONE;
        l->last[LATTICE_START - 1] = l->last[LATTICE_START] = 1;
        l->at[LATTICE_START] = 0;
        l->counts[LATTICE_START] = 0;
        memset(l->longer, 0, sizeof l->longer);
}

void tokens_lattice_init(struct tokens_lattice *l)
{
        l->count = 0;
        l->n = 0;
}

/* ---- units ---- */

static inline void add_unit(
    struct tokens_lattice *l, const unsigned char *p, size_t len, uint32_t token)
{
        size_t at = l->at[l->n];
        for (size_t i = 0; i < len; i++)
                l->bytes[at + i] = p[i];
        l->units[l->n] = token;
        l->first[l->n] = 0;
        l->at[++l->n] = (uint16_t)(at + len);
}

/* A character that is not a token gives one unit for each of its bytes. */
static size_t add_character(struct tokens_lattice *l, struct tokens_text text)
{
        uint32_t c;
        bool damaged = false;
        size_t len = tokens_decode(text, &c, &damaged);
        l->wide = true;
        if (damaged) {
                add_unit(l, (const unsigned char *)"\xEF\xBF\xBD", 3, tokens_chars[0xFFFD]);
        } else if (c < 0x10000 && tokens_chars[c] != TOKENS_NONE) {
                add_unit(l, text.p, len, tokens_chars[c]);
        } else {
                for (size_t i = 0; i < len; i++)
                        add_unit(l, text.p + i, 1, tokens_cells[TOKENS_BYTES + text.p[i]].longest);
        }
        return len;
}

/* At the beginning of a piece, a blank and a character are one unit if merging joins the blank and
 * a part of the character first. Returns the number of bytes that were taken. */
static size_t add_blank(struct tokens_lattice *l, struct tokens_text text)
{
        uint32_t c;
        bool damaged = false;
        if (text.n < 2 || text.p[0] != ' ' || text.p[1] < 0x80)
                return 0;
        size_t len = 1 + tokens_decode((struct tokens_text){text.p + 1, text.n - 1}, &c, &damaged);
        const struct tokens_cell *longest = tokens_longest(text.p, len);
        if (damaged || len > 4 || longest->length != len ||
            tokens_tokens[longest->longest].left == tokens_chars[' '])
                return 0;
        l->wide = true;
        add_unit(l, text.p, len, longest->longest);
        return len;
}

/* Moves units from the piece to the lattice while there is room. */
static void take_units(struct tokens_lattice *l, struct tokens_text *piece)
{
        size_t i = 0;
        while (i < piece->n && l->n < LATTICE_UNITS) {
                unsigned char b = piece->p[i];
                if (b < 0x80) {
                        add_unit(l, &b, 1, tokens_chars[b]);
                        i++;
                } else {
                        i += add_character(l, (struct tokens_text){piece->p + i, piece->n - i});
                }
        }
        piece->p += i;
        piece->n -= i;
}

static void begin_piece(struct tokens_lattice *l, struct tokens_text *piece)
{
        size_t start = l->n;
        size_t taken = add_blank(l, *piece);
        piece->p += taken;
        piece->n -= taken;
        take_units(l, piece);
        l->first[start] = 1;
}

/* ---- tokens of all places ---- */

static void no_more(struct tokens_lattice *l)
{
        l->first[l->n] = 1;
        for (size_t i = l->n; i < l->n + 4; i++)
                l->bytes[l->at[l->n] + (i - l->n)] = 0;
}

static void note_four(struct tokens_lattice *l, size_t i, uint32_t rank, uint32_t left)
{
        l->four[i].rank = (int32_t)rank;
        l->four[i].left = left & 3;
        l->longer[i + 4] |= 1u << 4;
        if (left == 3)
                l->longer[i + 5] |= STOPPED;
}

/* Does merging make the token of units [i, end) from units? Otherwise it is made from parts of
 * characters, and never if these are units. */
static bool is_of_units(const struct tokens_lattice *l, size_t i, size_t end, uint32_t token)
{
        while (end - i > 1) {
                size_t border = l->at[i] + tokens_tokens[tokens_tokens[token].left].length;
                size_t at = i + 1;
                while (at < end - 1 && l->at[at] < border)
                        at++;
                if (l->at[at] != border || !is_of_units(l, i, at, tokens_tokens[token].left))
                        return false;
                token = tokens_tokens[token].right;
                i = at;
        }
        return token == l->units[i];
}

static void note_one(struct tokens_lattice *l, size_t i, size_t end, uint32_t token)
{
        if (l->wide && !is_of_units(l, i, end, token))
                return;
        if (end - i > 4) {
                l->longer[end] |= 1u << (end - i) | STOPPED_LONG;
                l->longer[end + 1] |= STOPPED_LONG; /* its right half may be one unit, */
                l->longer[end + 2] |= STOPPED_LONG; /* with which longer tokens begin */
                return;
        }
        size_t border = l->at[i] + tokens_tokens[tokens_tokens[token].left].length;
        uint32_t left = 1;
        while (l->at[i + left] < border)
                left++;
        note_four(l, i, token, left);
}

/* Notes the tokens of more than three units that begin at place i. False: a token is too long. */
static bool note_longer(struct tokens_lattice *l, size_t i)
{
        const unsigned char *p = l->bytes + l->at[i];
        const struct tokens_cell *cell = &tokens_cells[TOKENS_BYTES + *p++];
        for (size_t end = i + 1;; end++) {
                for (; p < l->bytes + l->at[end]; p++) {
                        const struct tokens_cell *next = &tokens_cells[cell->next + *p];
                        if (next->label != *p)
                                return true;
                        cell = next;
                }
                if (end - i > LONGER_MAX)
                        return false;
                if (end - i > 3 && cell->length == l->at[end] - l->at[i])
                        note_one(l, i, end, cell->longest);
                if (l->first[end])
                        return true;
        }
}

static bool look_up_ascii(struct tokens_lattice *l, size_t from)
{
        const unsigned char *p = l->bytes + l->at[from];
        for (size_t i = from; i < l->n; i++, p++) {
                const struct tokens_pair *pair = &tokens_pairs[p[0] << 7 | p[1]];
                struct tokens_trio trio = tokens_trios[pair->next + p[2]];
                int32_t no_two = -(int32_t)l->first[i + 1];
                int32_t no_three = no_two | -(int32_t)l->first[i + 2];
                bool hit = trio.label == p[2];
                l->two[i] = ((int32_t)pair->rank | no_two) & NONE;
                int32_t rank = hit ? ((int32_t)trio.rank | no_three) & NONE : NONE;
                l->two_one[i] = rank | (-(int32_t)trio.right & NONE);
                l->one_two[i] = rank | ((-(int32_t)trio.right ^ -1) & NONE);
                if (hit && (trio.fourths >> (p[3] & 15) & 1) != 0 && !no_three &&
                    !l->first[i + 3]) {
                        struct tokens_quad quad = tokens_quads[trio.next + p[3]];
                        if (quad.label != p[3])
                                continue;
                        if (quad.rank != TOKENS_NONE)
                                note_four(l, i, quad.rank, quad.left);
                        if ((quad.fifths >> (p[4] & 31) & 1) != 0 && !l->first[i + 4] &&
                            !note_longer(l, i))
                                return false;
                }
        }
        return true;
}

static inline int32_t pair_of(const struct tokens_lattice *l, size_t i)
{
        if (l->first[i + 1])
                return NONE;
        if (l->at[i + 2] - l->at[i] == 2) {
                const unsigned char *p = l->bytes + l->at[i];
                if ((p[0] | p[1]) < 0x80)
                        return (int32_t)tokens_pairs[p[0] << 7 | p[1]].rank;
        }
        return (int32_t)tokens_joined(l->units[i], l->units[i + 1]);
}

static inline bool is_torn(const struct tokens_lattice *l, size_t i)
{
        const unsigned char *p = l->bytes + l->at[i];
        unsigned pair = (unsigned)p[-1] << 8 | p[0];
        return !l->first[i] && (tokens_torn[pair >> 3] >> (pair & 7) & 1) != 0;
}

/*
 * Goes from right to left. A longer token can begin at i in two cases only: a token of two or three
 * units begins at i, from which the longer token is made; or a token of more than two units begins
 * at i + 1, which was noted before.
 */
static bool look_up_wide(struct tokens_lattice *l, size_t from)
{
        uint32_t three = 0; /* bit k: a token of more than two units begins at i + k */
        int32_t next = NONE, after = NONE; /* two[i + 1], two[i + 2] */
        for (size_t i = l->n; i-- > from; three <<= 1) {
                l->torn[i] = is_torn(l, i);
                int32_t two = pair_of(l, i);
                int32_t two_one = NONE, one_two = NONE;
                if (two != NONE && !l->first[i + 2])
                        two_one = (int32_t)tokens_joined((uint32_t)two, l->units[i + 2]);
                if (next != NONE && !l->first[i + 1])
                        one_two = (int32_t)tokens_joined(l->units[i], (uint32_t)next);
                l->two[i] = two;
                l->two_one[i] = two_one;
                l->one_two[i] = one_two;
                bool short_three = two_one != NONE || one_two != NONE;
                bool longer = short_three || (three & 2) != 0;
                if (!longer && two != NONE)
                        longer = (three & 4) != 0 ||
                                 (after != NONE && tokens_may_join((uint32_t)two,
                                                       (uint32_t)after) != TOKENS_NONE);
                if (longer) {
                        three |= 1;
                        if (!note_longer(l, i))
                                return false;
                }
                after = next;
                next = two;
        }
        return true;
}

/* ---- what merging leaves ---- */

/* Returns the token of units [start, end), which must exist. */
static uint32_t token_of(const struct tokens_lattice *l, size_t start, size_t end)
{
        switch (end - start) {
        case 1:
                return l->units[start];
        case 2:
                return (uint32_t)l->two[start];
        case 3:
                return (uint32_t)(l->two_one[start] & l->one_two[start]);
        case 4:
                return (uint32_t)l->four[start].rank;
        default:
                return tokens_longest(l->bytes + l->at[start], (size_t)(l->at[end] - l->at[start]))
                    ->longest;
        }
}

/* Does a token fit the last token before it? See tokens_fit(). */
static bool fits_in_bytes(const struct tokens_lattice *l, size_t start, size_t end)
{
        return l->first[start] ||
               tokens_fit(token_of(l, start - l->last[start], start), token_of(l, start, end));
}

/* The same if only units can be merged, so that units themselves are not undone. */
static bool fits(const struct tokens_lattice *l, size_t start, size_t end)
{
        if (l->first[start])
                return true;
        uint32_t left = token_of(l, start - l->last[start], start);
        uint32_t right = token_of(l, start, end);
        uint32_t limit = TOKENS_NONE;
        while (!tokens_join(left, right, limit)) {
                bool left_done = left == l->units[start - 1];
                bool right_done = right == l->units[start];
                if (left_done && right_done)
                        return true;
                if (right_done || (!left_done && left > right)) {
                        limit = left;
                        left = tokens_tokens[left].right;
                } else {
                        limit = right + 1;
                        right = tokens_tokens[right].left;
                }
        }
        return false;
}

/* Returns the length of the last token at a place where tokens of more than four units matter. */
static unsigned try_all(const struct tokens_lattice *l, size_t end)
{
        if (fits(l, end - 1, end))
                return 1;
        for (uint32_t lengths = l->longer[end] >> 4 << 4; lengths != 0; lengths &= lengths - 1) {
                unsigned len = (unsigned)__builtin_ctz(lengths);
                if (fits(l, end - len, end))
                        return len;
        }
        if (l->two[end - 2] != NONE && fits(l, end - 2, end))
                return 2;
        return 3;
}

/* The ranks of the tokens to which the last one, two and three units of a last token are merged.
 * NONE: they are the whole token. 0: they are not a token by themselves. */
struct limits {
        int32_t one, two, three;
};

static inline struct limits limits_of_three(const struct tokens_lattice *l, size_t start)
{
        if (l->two_one[start] != NONE)
                return (struct limits){l->two_one[start], 0, NONE};
        return (struct limits){l->two[start + 1], l->one_two[start], NONE};
}

static inline struct limits limits_at(const struct tokens_lattice *l, size_t place)
{
        struct limits limits;
        switch (l->last[place]) {
        case 1:
                return (struct limits){NONE, 0, 0};
        case 2:
                return (struct limits){l->two[place - 2], NONE, 0};
        case 3:
                return limits_of_three(l, place - 3);
        default:;
                struct lattice_four token = l->four[place - 4];
                if (token.left == 3)
                        return (struct limits){token.rank, 0, 0};
                if (token.left == 2)
                        return (struct limits){l->two[place - 2], token.rank, 0};
                limits = limits_of_three(l, place - 3);
                limits.three = token.rank;
                return limits;
        }
}

/* Returns the token of four units that ends at a place and whose left half has `left` units, or
 * NONE. */
static inline int32_t four_before(const struct tokens_lattice *l, size_t end, uint32_t left)
{
        return (l->longer[end] & 1u << 4) != 0 && l->four[end - 4].left == left
                   ? l->four[end - 4].rank
                   : NONE;
}

/* Returns the length of the last token at a place where tokens of four units matter, but no longer
 * ones. */
static unsigned try_four(const struct tokens_lattice *l, size_t end)
{
        size_t at = end - 1;
        struct limits limits = limits_at(l, at);
        if (l->two[at - 1] >= limits.one && l->two_one[at - 2] >= limits.two &&
            four_before(l, end, 3) >= limits.three)
                return 1;

        at = end - 2;
        int32_t token = l->two[at];
        limits = limits_at(l, at);
        int32_t four = four_before(l, end - 1, 3);
        if (token != NONE && (l->two[at - 1] >= limits.one || l->two[at - 1] > token) &&
            (l->two_one[at - 2] >= limits.two || l->two_one[at - 2] > token) &&
            l->one_two[at - 1] >= limits.one && four_before(l, end, 2) >= limits.two &&
            (four >= limits.three || four > token))
                return 2;

        if ((l->longer[end] & 1u << 4) == 0)
                return 3;
        if ((l->two_one[end - 3] & l->one_two[end - 3]) == NONE)
                return 4;

        at = end - 3;
        limits = limits_at(l, at);
        four = four_before(l, end - 2, 3);
        int32_t three = l->two_one[at];
        token = three == NONE ? l->one_two[at] : l->two[at];
        if ((l->two[at - 1] < limits.one && l->two[at - 1] <= token) ||
            (l->two_one[at - 2] < limits.two && l->two_one[at - 2] <= token) ||
            (four < limits.three && four <= token) || four_before(l, end, 1) < limits.one)
                return 4;
        if (three == NONE)
                return 3;
        four = four_before(l, end - 1, 2);
        return (l->one_two[at - 1] < limits.one && l->one_two[at - 1] <= three) ||
                       (four < limits.two && four <= three)
                   ? 4
                   : 3;
}

/*
 * Bit k of an answer (k = 1, 2, 3): the unit at place e fits if the last token there has k units.
 * Bit k + 3: two[e - 1] fits if the last token at e - 1 has k units.
 *
 * The tokens across place e are two[e - 1], two_one[e - 2] and one_two[e - 1]. `one` and `two` are
 * those of struct limits, for a last token of three units.
 */
typedef int32_t ranks __attribute__((vector_size(16)));
#define RANKS (sizeof(ranks) / sizeof(int32_t))

static inline ranks load(const int32_t *p)
{
        ranks v;
        memcpy(&v, p, sizeof v);
        return v;
}

static inline ranks either(ranks mask, ranks a, ranks b)
{
        return (mask & a) | (~mask & b);
}

/* Computes the answers for places from, from + 1, ... It may also write some beyond `to`. */
static void weigh(const struct tokens_lattice *l, size_t from, size_t to, int32_t *answers)
{
        const ranks none = {NONE, NONE, NONE, NONE};
        for (size_t e = from; e < to; e += RANKS) {
                ranks two1 = load(l->two + e - 1), two2 = load(l->two + e - 2),
                      two3 = load(l->two + e - 3);
                ranks two_one2 = load(l->two_one + e - 2), two_one3 = load(l->two_one + e - 3);
                ranks two_one4 = load(l->two_one + e - 4);
                ranks one_two2 = load(l->one_two + e - 2);

                ranks is = two_one3 != none;
                ranks one = either(is, two_one3, two2);
                ranks two = ~is & load(l->one_two + e - 3);
                ranks answer = (two1 == none) & 2;
                answer |= (two1 >= two2) & (two_one2 == none) & 4;
                answer |= (two1 >= one) & (two_one2 >= two) & 8;

                is = two_one4 != none;
                one = either(is, two_one4, two3);
                two = ~is & load(l->one_two + e - 4);
                ranks later = two2 > two1;
                ranks two_one_later = two_one3 > two1;
                ranks pairs = later & (one_two2 == none) & 16;
                pairs |= (later | (two2 >= two3)) & two_one_later & (one_two2 >= two3) & 32;
                pairs |= (later | (two2 >= one)) & (two_one_later | (two_one3 >= two)) &
                         (one_two2 >= one) & 64;
                answer |= pairs & (two1 != none);
                memcpy(answers + (e - from), &answer, sizeof answer);
        }
}

/* Finds the last tokens of the places after `done`, up to `to`. */
static inline void find_last(struct tokens_lattice *l, size_t to, bool wide)
{
        int32_t answers[LATTICE_UNITS + LATTICE_AHEAD];
        size_t from = l->done;
        weigh(l, from, to, answers);
        unsigned before = l->last[from - 1], last = l->last[from];
        for (size_t e = from; e < to; e++) {
                unsigned len;
                uint32_t longer = l->longer[e + 1];
                if (longer != 0) {
                        bool all = (longer & STOPPED_LONG) != 0;
                        len = all ? try_all(l, e + 1) : try_four(l, e + 1);
                        l->slow += all;
                        for (size_t i = 2; len > 3 && i < 5; i++)
                                l->longer[e + i] |= len > 4 ? STOPPED_LONG : STOPPED;
                } else {
                        unsigned answer = (unsigned)answers[e - from];
                        len = 3 - (answer >> (before + 3) & 1);
                        len = (answer >> last & 1) != 0 ? 1 : len;
                }
                l->last[e + 1] = (uint8_t)len;
                uint64_t count = l->counts[e + 1 - len] + 1;
                if (wide && l->torn[e + 1 - len] && !fits_in_bytes(l, e + 1 - len, e + 1))
                        count += WRONG;
                l->counts[e + 1] = count;
                before = last;
                last = len;
        }
        l->done = to;
}

static bool advance(struct tokens_lattice *l, bool end)
{
        no_more(l);
        bool ok = l->wide ? look_up_wide(l, l->looked) : look_up_ascii(l, l->looked);
        if (!ok)
                return false;
        l->looked = end ? l->n : l->n - LATTICE_AHEAD;
        if (l->wide)
                find_last(l, l->looked, true);
        else
                find_last(l, l->looked, false);
        return true;
}

/* Counts all pieces, and counts the pieces with wrong counts again. */
static size_t count_pieces(const struct tokens_lattice *l)
{
        size_t count = 0;
        for (size_t start = LATTICE_START, end = start + 1; start < l->n; start = end++) {
                while (!l->first[end])
                        end++;
                uint64_t here = l->counts[end] - l->counts[start];
                struct tokens_text piece = {
                    l->bytes + l->at[start], (size_t)(l->at[end] - l->at[start])};
                count += here < WRONG ? here : tokens_piece(piece, false);
        }
        return count;
}

static void flush(struct tokens_lattice *l)
{
        if (l->n <= LATTICE_START)
                return;
        advance(l, true);
        uint64_t count = l->counts[l->done];
        l->count += count < WRONG ? count : count_pieces(l);
        begin(l);
}

/* ---- pieces ---- */

/* Moves the data that is still needed to the beginning. */
static void shift(struct tokens_lattice *l)
{
        size_t by = l->done - LATTICE_START;
        size_t keep = l->n - by;
        uint16_t bytes_by = l->at[by];
        memmove(l->bytes, l->bytes + bytes_by, (size_t)(l->at[l->n] - bytes_by));
        for (size_t i = 0; i <= keep; i++)
                l->at[i] = (uint16_t)(l->at[by + i] - bytes_by);
        memmove(l->units, l->units + by, keep * sizeof *l->units);
        memmove(l->first, l->first + by, keep * sizeof *l->first);
        memmove(l->torn, l->torn + by, keep * sizeof *l->torn);
        memmove(l->two, l->two + by, LATTICE_START * sizeof *l->two);
        memmove(l->two_one, l->two_one + by, LATTICE_START * sizeof *l->two_one);
        memmove(l->one_two, l->one_two + by, LATTICE_START * sizeof *l->one_two);
        memmove(l->four, l->four + by, LATTICE_START * sizeof *l->four);
        memmove(l->longer, l->longer + by, (keep + LATTICE_AHEAD) * sizeof *l->longer);
        memset(l->longer + keep + LATTICE_AHEAD, 0, by * sizeof *l->longer);
        memmove(l->last, l->last + by, LATTICE_START + 1);
        memmove(l->counts, l->counts + by, (LATTICE_START + 1) * sizeof *l->counts);
        l->n -= by;
        l->looked -= by;
        l->done -= by;
}

static bool add_in_windows(struct tokens_lattice *l, struct tokens_text piece)
{
        size_t seen = 0, from = l->done;
        begin_piece(l, &piece);
        bool ok = advance(l, piece.n == 0);
        while (ok && piece.n > 0) {
                seen += l->done - from;
                ok = l->slow <= 64 + seen / 4;
                shift(l);
                from = l->done;
                take_units(l, &piece);
                ok = ok && advance(l, piece.n == 0);
        }
        uint64_t count = l->counts[l->done];
        ok = ok && count < WRONG;
        l->count += ok ? count : 0;
        begin(l);
        return ok;
}

bool tokens_lattice_add(struct tokens_lattice *l, struct tokens_text piece)
{
        bool long_piece = piece.n > LATTICE_PIECE;
        if (l->n == 0)
                begin(l);
        if (long_piece || l->n + piece.n > LATTICE_UNITS)
                flush(l);
        if (long_piece)
                return add_in_windows(l, piece);
        begin_piece(l, &piece);
        return true;
}

size_t tokens_lattice_end(struct tokens_lattice *l)
{
        flush(l);
        return l->count;
}
