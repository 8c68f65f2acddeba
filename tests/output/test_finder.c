/* Every implementation finds literals at their places. */
#include "output/play.h"

#include "output/finder.h"

static bool same(char a, char b, bool fold)
{
        if (fold && a >= 'A' && a <= 'Z')
                a |= 0x20;
        if (fold && b >= 'A' && b <= 'Z')
                b |= 0x20;
        return a == b;
}

static bool stands(const char *p, size_t n, struct str lit, bool fold)
{
        if (lit.n > n)
                return false;
        for (size_t i = 0; i < lit.n; i++) {
                if (!same(p[i], lit.p[i], fold))
                        return false;
        }
        return true;
}

static size_t naive(
    const struct str *lits, size_t count, bool fold, const char *p, size_t n, size_t from)
{
        for (; from < n; from++) {
                for (size_t i = 0; i < count; i++) {
                        if (stands(p + from, n - from, lits[i], fold))
                                return from;
                }
        }
        return n;
}

static void every_place_is_found(void **state)
{
        struct seed s = seed_start();
        static const char alphabet[] = "abAB@`[{k\xC3 \n";
        (void)state;
        for (int i = 0; i < seed_rounds(40000); i++) {
                char text[400], words[FINDER_LITERALS][8];
                struct str lits[FINDER_LITERALS];
                size_t n = (size_t)seed_below(&s, sizeof(text));
                size_t count = 1 + (size_t)seed_below(&s, seed_below(&s, 2) ? 3 : FINDER_LITERALS);
                bool fold = seed_below(&s, 2);
                struct finder f;
                for (size_t k = 0; k < n; k++)
                        text[k] = alphabet[seed_below(&s, sizeof(alphabet) - 1)];
                for (size_t k = 0; k < count; k++) {
                        lits[k] = str_span(words[k], 1 + (size_t)seed_below(&s, 7));
                        for (size_t c = 0; c < lits[k].n; c++)
                                words[k][c] = alphabet[seed_below(&s, sizeof(alphabet) - 1)];
                }
                assert_true(finder_init(&f, lits, count, fold));
                unsigned form = (unsigned)seed_below(&s, 3);
                f.wide = f.wide && form > 0;
                f.wider = f.wider && form > 1;
                /* On the heap, so that a read past the end is seen. */
                char *p = malloc(n ? n : 1);
                memcpy(p, text, n);
                for (size_t at = 0; at <= n;) {
                        size_t which = 0;
                        size_t stop = (size_t)seed_below(&s, n + 1);
                        size_t found = finder_next(&f, p, n, at, &which);
                        size_t want = naive(lits, count, fold, p, n, at);
                        assert_int_equal(found, want);
                        assert_int_equal(
                            finder_next_before(&f, p, n, at, stop, NULL), want < stop ? want : n);
                        if (found < n)
                                assert_true(stands(p + found, n - found, lits[which], fold));
                        at = found + 1;
                }
                free(p);
        }
}

/* A text in which most of a literal occurs again and again, so that learning has a choice. */
static void what_a_finder_learns_changes_no_answer(void **state)
{
        struct seed s = seed_start();
        static const char alphabet[] = "2026-03tT\xD0\n";
        char text[64 * 200];
        int chose = 0;
        (void)state;
        for (int i = 0; i < seed_rounds(2000); i++) {
                char word[FINDER_LITERAL_MAX];
                struct str literal = {word, 1 + (size_t)seed_below(&s, sizeof word)};
                bool fold = seed_below(&s, 2);
                struct finder f, plain;
                for (size_t k = 0; k < literal.n; k++)
                        word[k] = alphabet[seed_below(&s, sizeof alphabet - 1)];
                for (size_t at = 0; at < sizeof text;) {
                        size_t n = 1 + (size_t)seed_below(&s, literal.n);
                        for (size_t k = 0; k < n && at < sizeof text; k++)
                                text[at++] = word[k];
                }
                size_t n = sizeof text - (size_t)seed_below(&s, 64 * 100);
                assert_true(finder_init(&f, &literal, 1, fold));
                plain = f;
                plain.wide = plain.wider = false;
                f.wider = f.wider && seed_below(&s, 2);
                char *p = malloc(n); /* so that a read past the end is seen */
                memcpy(p, text, n);
                finder_learn(&f, p, n);
                chose += f.at[0] != plain.at[0] || f.at[1] != plain.at[1];
                for (size_t at = 0; at <= n;) {
                        size_t found = finder_next(&f, p, n, at, NULL);
                        assert_int_equal(found, finder_next(&plain, p, n, at, NULL));
                        at = found + 1;
                }
                free(p);
        }
        assert_true(!finder_has_avx2() || chose > 0);
}

static void nothing_to_look_for_is_refused(void **state)
{
        struct finder f;
        struct str empty = {"", 0};
        (void)state;
        assert_false(finder_init(&f, &empty, 1, false));
        assert_false(finder_init(&f, &empty, 0, false));
}

static void rare_and_long_literals_cost_less(void **state)
{
        (void)state;
        assert_true(finder_cost(STR("zq"), false) < finder_cost(STR("e "), false));
        assert_true(finder_cost(STR("timeout exceeded"), true) < finder_cost(STR("t"), true));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_place_is_found),
            cmocka_unit_test(what_a_finder_learns_changes_no_answer),
            cmocka_unit_test(nothing_to_look_for_is_refused),
            cmocka_unit_test(rare_and_long_literals_cost_less),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
