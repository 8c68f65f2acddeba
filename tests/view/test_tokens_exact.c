/*
 * Exact token counts. The numbers are those of js-tiktoken; tokens.test asks it about far more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/seed.h"
#include "view/tokens.h"
#include "view/tokens_data.h"
#include "view/tokens_lattice.h"
#include "view/tokens_merge.h"
#include "view/tokens_piece.h"
#include "view/tokens_split.h"

#define COUNT(literal) tokens_count(literal, sizeof(literal) - 1)

/* The pieces of a text with a bar after each. */
static const char *pieces(const char *text)
{
        static char out[256];
        struct tokens_text rest = {(const unsigned char *)text, strlen(text)};
        size_t at = 0;
        while (rest.n > 0) {
                bool damaged = false;
                size_t len = tokens_split(rest, &damaged);
                assert_in_range(len, 1, rest.n);
                memcpy(out + at, rest.p, len);
                at += len;
                out[at++] = '|';
                rest.p += len;
                rest.n -= len;
        }
        out[at] = 0;
        return out;
}

static void known_texts_have_known_counts(void **state)
{
        (void)state;
        assert_int_equal(COUNT("a"), 1);
        assert_int_equal(COUNT("hello world"), 2);
        assert_int_equal(COUNT("I'll say it'S DON'T"), 5);
        assert_int_equal(COUNT("12345678"), 3);
        assert_int_equal(COUNT("ABCdef"), 2);
        assert_int_equal(COUNT("\0"), 1);
        assert_int_equal(
            COUNT("\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xa4\xa9\xe6\xb0\x94\xe5\xbe\x88\xe5\xa5\xbd"), 4);
        assert_int_equal(COUNT("\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9"), 5);
}

static void special_tokens_are_plain_text(void **state)
{
        (void)state;
        assert_int_equal(COUNT("<|endoftext|>"), 7);
}

static void words_numbers_signs_and_blanks_are_cut_as_the_pattern_says(void **state)
{
        (void)state;
        assert_string_equal(pieces("I'll say it'S DON'T"), "I'll| say| it'S| DON'T|");
        assert_string_equal(pieces("camelCaseHTTPServer"), "camel|Case|HTTPServer|");
        assert_string_equal(pieces("12345678"), "123|456|78|");
        assert_string_equal(pieces("a   b"), "a|  | b|");
        assert_string_equal(pieces("  \n\n  x"), "  \n\n| | x|");
        assert_string_equal(pieces("x \t "), "x| \t |");
        assert_string_equal(pieces("//\n/\n!"), "//\n/\n|!|");
        assert_string_equal(pieces("\tint\n"), "\tint|\n|");
}

static void a_mark_belongs_to_words_and_begins_them(void **state)
{
        (void)state;
        assert_string_equal(pieces("\xcc\x81"
                                   "ABC"),
            "\xcc\x81|ABC|");
        assert_string_equal(pieces("x\xcc\x81's"), "x\xcc\x81's|");
        assert_string_equal(pieces("!\xcc\x81"), "!\xcc\x81|");
        assert_string_equal(pieces("A\xcc\x81"
                                   "BC"),
            "A\xcc\x81|BC|");
}

static void bytes_that_are_not_utf8_count_as_replacement_characters(void **state)
{
        (void)state;
        assert_int_equal(COUNT("\xff"), COUNT("\xef\xbf\xbd"));
        assert_int_equal(COUNT("\xff"
                               "a\x80\xc0"),
            COUNT("\xef\xbf\xbd"
                  "a\xef\xbf\xbd\xef\xbf\xbd"));
        /* A surrogate is three, the start of an emoji one. */
        assert_int_equal(
            COUNT("x \xed\xa0\x80 y"), COUNT("x \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd y"));
        assert_int_equal(COUNT("x \xf0\x9f\x98 y"), COUNT("x \xef\xbf\xbd y"));
}

static void a_long_damaged_piece_counts_as_its_mended_form(void **state)
{
        (void)state;
        enum { N = 5000 };
        char *damaged = malloc(N);
        char *mended = malloc(3 * N);
        assert_true(damaged && mended);
        memset(damaged, 0x80, N);
        for (size_t i = 0; i < N; i++)
                memcpy(mended + 3 * i, "\xef\xbf\xbd", 3);
        assert_int_equal(tokens_count(damaged, N), tokens_count(mended, 3 * N));
        free(damaged);
        free(mended);
}

static uint32_t next_random(uint32_t *seed)
{
        *seed = *seed * 1664525u + 1013904223u;
        return *seed >> 8;
}

/* The rank of the token that is exactly these bytes, or TOKENS_NONE. */
static uint32_t rank_of(const unsigned char *p, size_t n)
{
        const struct tokens_cell *longest = tokens_longest(p, n);
        return longest->length == n ? longest->longest : TOKENS_NONE;
}

static size_t piece_of(const unsigned char *p, size_t n)
{
        return tokens_piece((struct tokens_text){p, n}, false);
}

/* Merging as it is defined, for a piece of any length; takes the square of the length. */
static size_t merge_plainly(const unsigned char *p, size_t n)
{
        size_t *start = malloc((n + 1) * sizeof *start);
        uint32_t *joined = malloc(n * sizeof *joined);
        assert_true(start && joined);
        for (size_t i = 0; i <= n; i++)
                start[i] = i;
        for (size_t i = 0; i < n; i++)
                joined[i] = i + 1 < n ? rank_of(p + i, 2) : TOKENS_NONE;
        for (;;) {
                size_t best = 0;
                for (size_t i = 1; i < n; i++)
                        best = joined[i] < joined[best] ? i : best;
                if (joined[best] == TOKENS_NONE)
                        break;
                n--;
                memmove(start + best + 1, start + best + 2, (n - best) * sizeof *start);
                memmove(joined + best + 1, joined + best + 2, (n - best - 1) * sizeof *joined);
                for (size_t i = best > 0 ? best - 1 : 0; i <= best; i++) {
                        joined[i] = i + 1 < n ? rank_of(p + start[i], start[i + 2] - start[i])
                                              : TOKENS_NONE;
                }
        }
        free(start);
        free(joined);
        return n;
}

/* Puts the bytes of a token together from its halves. Returns their number. */
static size_t token_bytes(uint32_t rank, unsigned char *out)
{
        if (rank >= 256) {
                size_t n = token_bytes(tokens_tokens[rank].left, out);
                return n + token_bytes(tokens_tokens[rank].right, out + n);
        }
        for (int b = 0; b < 256; b++) {
                *out = (unsigned char)b;
                if (rank_of(out, 1) == rank)
                        return 1;
        }
        fail_msg("no byte has rank %u", rank);
        return 0;
}

static uint32_t first_seed(void)
{
        const char *env = getenv("STENO_TEST_SEED");
        uint32_t seed = env ? (uint32_t)strtoul(env, NULL, 10) : (uint32_t)time(NULL);
        printf("# seed %u\n", seed);
        return seed;
}

/* Up to `max` bytes that may be parts of a piece. */
static size_t random_piece(uint32_t *seed, unsigned char *text, size_t max)
{
        static const char *const alphabets[] = {
            "a", "ab", "etaoin shr", " ", " \n\t", "=-", "abcdefghijklmnopqrstuvwxyz", "_./<>{}()"};
        const char *from = alphabets[next_random(seed) % 8];
        size_t kinds = strlen(from);
        size_t n = 1 + next_random(seed) % max;
        for (size_t i = 0; i < n; i++)
                text[i] = (unsigned char)from[next_random(seed) % kinds];
        return n;
}

static void short_pieces_are_counted_as_merging_would(void **state)
{
        (void)state;
        uint32_t seed = first_seed();
        int rounds = seed_rounds(100000);
        unsigned char text[160];
        for (int round = 0; round < rounds; round++) {
                size_t n = random_piece(&seed, text, sizeof text);
                size_t count = merge_plainly(text, n);
                assert_int_equal(piece_of(text, n), count);
                assert_int_equal(tokens_piece_spread((struct tokens_text){text, n}, false), count);
        }
}

static void long_pieces_are_counted_as_merging_would(void **state)
{
        (void)state;
        uint32_t seed = first_seed();
        int rounds = seed_rounds(400);
        static unsigned char text[8000];
        for (int round = 0; round < rounds; round++) {
                size_t n = random_piece(&seed, text, sizeof text);
                size_t count = merge_plainly(text, n);
                assert_int_equal(piece_of(text, n), count);
                assert_int_equal(tokens_piece_spread((struct tokens_text){text, n}, false), count);
        }
}

/* Text that may be damaged is read in windows, and tokens are taken back across the border of two
 * windows. */
static void pieces_read_in_windows_are_counted_alike(void **state)
{
        (void)state;
        uint32_t seed = first_seed();
        static unsigned char text[20000];
        for (int round = 0; round < 300; round++) {
                size_t n = random_piece(&seed, text, sizeof text);
                assert_int_equal(
                    tokens_piece((struct tokens_text){text, n}, true), piece_of(text, n));
        }
}

/* Tokens that belong together: the bytes of any token, cut off anywhere, after another one. */
static void pieces_of_tokens_are_counted_as_merging_would(void **state)
{
        (void)state;
        uint32_t seed = first_seed();
        int rounds = seed_rounds(200000);
        unsigned char text[8 * TOKENS_LENGTH_MAX];
        for (int round = 0; round < rounds; round++) {
                size_t n = 0;
                for (uint32_t i = 2 + next_random(&seed) % 6; i > 0; i--) {
                        size_t len = token_bytes(next_random(&seed) % TOKENS_COUNT, text + n);
                        n += i > 1 ? 1 + next_random(&seed) % len : len;
                }
                size_t count = merge_plainly(text, n);
                assert_int_equal(piece_of(text, n), count);
                assert_int_equal(tokens_piece_spread((struct tokens_text){text, n}, false), count);
        }
}

/* The text as it is counted: with U+FFFD where it is not UTF-8. */
static size_t mend_plainly(const unsigned char *text, size_t n, unsigned char *out)
{
        size_t have = 0;
        for (size_t at = 0; at < n;) {
                uint32_t c;
                bool damaged = false;
                size_t len = tokens_decode((struct tokens_text){text + at, n - at}, &c, &damaged);
                memcpy(out + have, damaged ? (const void *)"\xef\xbf\xbd" : text + at,
                    damaged ? 3 : len);
                have += damaged ? 3 : len;
                at += len;
        }
        return have;
}

/* A few bytes, then the same bytes again and again, cut off anywhere. */
static size_t random_run(uint32_t *seed, unsigned char *text, size_t max)
{
        static const char *const atoms[] = {" ", "a", "e", "-", "=", "\t", "\n", "\xff", "\xe4\xbb",
            "\xe4\xbb\x8a", "\xc3\xa9", "\xf0\x9f\x98\x80", "_", "x"};
        unsigned char unit[80];
        size_t unit_len = 0;
        size_t n = random_piece(seed, text, 40);
        for (uint32_t i = 1 + next_random(seed) % 6; i > 0; i--) {
                const char *atom = atoms[next_random(seed) % 14];
                memcpy(unit + unit_len, atom, strlen(atom));
                unit_len += strlen(atom);
        }
        size_t len = 1000 + next_random(seed) % (max - 1000 - n);
        for (size_t i = 0; i < len; i++)
                text[n + i] = unit[i % unit_len];
        return n + len;
}

static void runs_are_counted_as_merging_would(void **state)
{
        (void)state;
        uint32_t seed = first_seed();
        int rounds = seed_rounds(2000);
        static unsigned char text[9000], mended[27000];
        for (int round = 0; round < rounds; round++) {
                size_t n = random_run(&seed, text, 2500);
                if (round % 3 == 0)
                        n += random_run(&seed, text + n, 1500);
                n += random_piece(&seed, text + n, 40);
                size_t count = merge_plainly(mended, mend_plainly(text, n, mended));
                assert_int_equal(tokens_piece((struct tokens_text){text, n}, true), count);
                assert_int_equal(tokens_piece_spread((struct tokens_text){text, n}, true), count);
        }
}

/* Up to `max` bytes: a few characters that are neighbours in an alphabet, or bytes by chance. */
static size_t random_characters(uint32_t *seed, unsigned char *text, size_t max)
{
        static const uint32_t alphabets[][2] = {{'a', 26}, {'a', 4}, {'A', 58}, {' ', 95},
            {0xE0, 32}, {0x430, 32}, {0x5D0, 27}, {0xE01, 91}, {0x3041, 86}, {0x4E00, 600},
            {0x1F600, 64}};
        const uint32_t *from = alphabets[next_random(seed) % 11];
        size_t want = 1 + next_random(seed) % (max - 4);
        size_t n = 0;
        while (n < want) {
                uint32_t c = from[0] + next_random(seed) % from[1];
                if (c < 0x80) {
                        text[n++] = (unsigned char)c;
                        continue;
                }
                if (c < 0x800) {
                        text[n++] = (unsigned char)(0xC0 | c >> 6);
                } else {
                        if (c >= 0x10000) {
                                text[n++] = (unsigned char)(0xF0 | c >> 18);
                                text[n++] = (unsigned char)(0x80 | (c >> 12 & 0x3F));
                        } else {
                                text[n++] = (unsigned char)(0xE0 | c >> 12);
                        }
                        text[n++] = (unsigned char)(0x80 | (c >> 6 & 0x3F));
                }
                text[n++] = (unsigned char)(0x80 | (c & 0x3F));
        }
        return n;
}

/* Short pieces share one lattice, long pieces go through it in windows. */
static void a_lattice_counts_pieces_as_merging_would(void **state)
{
        (void)state;
        uint32_t seed = first_seed();
        int rounds = seed_rounds(20000);
        static unsigned char text[2400], mended[7200];
        size_t taken = 0;
        for (int round = 0; round < rounds; round++) {
                struct tokens_lattice l;
                size_t count = 0;
                tokens_lattice_init(&l);
                for (uint32_t pieces = 1 + next_random(&seed) % 60; pieces > 0; pieces--) {
                        bool large = next_random(&seed) % 100 == 0;
                        size_t n = random_characters(&seed, text, large ? sizeof text : 40);
                        if (next_random(&seed) % 8 == 0)
                                n -= next_random(&seed) % n;
                        if (!tokens_lattice_add(&l, (struct tokens_text){text, n}))
                                continue;
                        taken++;
                        count += merge_plainly(mended, mend_plainly(text, n, mended));
                }
                assert_int_equal(tokens_lattice_end(&l), count);
        }
        assert_true(taken > 20 * (size_t)rounds);
}

/* Characters of up to three alphabets with blanks between, or tokens of which some are cut off. */
static size_t random_mixture(uint32_t *seed, unsigned char *text)
{
        size_t n = 0;
        bool of_tokens = next_random(seed) % 2 == 0;
        for (uint32_t i = 1 + next_random(seed) % 3; i > 0; i--) {
                if (next_random(seed) % 3 == 0)
                        text[n++] = ' ';
                if (!of_tokens) {
                        n += random_characters(seed, text + n, 24);
                        continue;
                }
                size_t len = token_bytes(next_random(seed) % TOKENS_COUNT, text + n);
                n += next_random(seed) % 2 ? len : 1 + next_random(seed) % len;
        }
        return n;
}

static void characters_are_merged_as_their_bytes_would_be(void **state)
{
        (void)state;
        uint32_t seed = first_seed();
        int rounds = seed_rounds(400000), taken = 0;
        unsigned char text[4 * TOKENS_LENGTH_MAX], mended[3 * sizeof text];
        for (int round = 0; round < rounds; round++) {
                size_t n = random_mixture(&seed, text), units = 0;
                size_t count = tokens_merge((struct tokens_text){text, n}, &units);
                if (count == 0)
                        continue; /* too long */
                taken++;
                assert_int_equal(count, merge_plainly(mended, mend_plainly(text, n, mended)));
                assert_in_range(units, count, 3 * n);
        }
        assert_true(taken > rounds / 2);
}

static void every_token_is_found_and_known_with_its_halves(void **state)
{
        (void)state;
        unsigned char text[TOKENS_LENGTH_MAX];
        for (uint32_t rank = 0; rank < TOKENS_COUNT; rank += (uint32_t)(20 / seed_rounds(20))) {
                const struct tokens_token *t = &tokens_tokens[rank];
                size_t n = token_bytes(rank, text);
                assert_int_equal(n, t->length);
                assert_int_equal(rank_of(text, n), rank);
                assert_int_equal(piece_of(text, n), 1);
                if (n == 1)
                        continue;
                assert_true(tokens_join(t->left, t->right, rank + 1));
                assert_false(tokens_join(t->left, t->right, rank));
                const struct tokens_cell *shorter = tokens_longest(text, n - 1);
                assert_int_equal(t->shorter, shorter->longest);
        }
}

static double seconds_for(char *text, size_t n)
{
        struct timespec a, b;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        tokens_count(text, n);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

static void time_grows_with_the_length_of_a_run_and_not_its_square(void **state)
{
        (void)state;
        size_t n = 800000;
        char *text = malloc(n);
        assert_true(text);
        memset(text, 'a', n);
        double small = seconds_for(text, n / 16);
        double large = seconds_for(text, n);
        /* 16 times the text takes 16 times the time; if the time were quadratic, 256 times. */
        assert_true(large < 100 * small + 0.01);
        assert_int_equal(tokens_count(text, n), n / 8);
        free(text);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(known_texts_have_known_counts),
            cmocka_unit_test(special_tokens_are_plain_text),
            cmocka_unit_test(words_numbers_signs_and_blanks_are_cut_as_the_pattern_says),
            cmocka_unit_test(a_mark_belongs_to_words_and_begins_them),
            cmocka_unit_test(bytes_that_are_not_utf8_count_as_replacement_characters),
            cmocka_unit_test(a_long_damaged_piece_counts_as_its_mended_form),
            cmocka_unit_test(short_pieces_are_counted_as_merging_would),
            cmocka_unit_test(long_pieces_are_counted_as_merging_would),
            cmocka_unit_test(pieces_read_in_windows_are_counted_alike),
            cmocka_unit_test(pieces_of_tokens_are_counted_as_merging_would),
            cmocka_unit_test(runs_are_counted_as_merging_would),
            cmocka_unit_test(a_lattice_counts_pieces_as_merging_would),
            cmocka_unit_test(characters_are_merged_as_their_bytes_would_be),
            cmocka_unit_test(every_token_is_found_and_known_with_its_halves),
            cmocka_unit_test(time_grows_with_the_length_of_a_run_and_not_its_square),
        };
        return cmocka_run_group_tests_name("tokens_exact", tests, NULL, NULL);
}
