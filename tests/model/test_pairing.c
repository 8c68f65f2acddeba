/* test_pairing.c - results find their calls, by the rule and no other way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/limits.h"
#include "model/pairing.h"

static struct pairing_match matches[8];

static struct pairing_match give(
    struct pairing *p, uint64_t seq, const char *calls, const char *answers)
{
        struct str c[8], r[8];
        struct about a = {.calls = c, .answers = r};
        for (; *calls; calls++)
                c[a.call_count++] = str_span(calls, 1);
        for (; *answers; answers++)
                r[a.answer_count++] = str_span(answers, 1);
        assert_int_equal(pairing_add(p, seq, &a, matches), 0);
        return matches[0];
}

static int count_open(void *ctx, uint64_t seq, uint32_t index, struct str id)
{
        char *to = ctx;
        sprintf(to + strlen(to), "%d.%d%.*s ", (int)seq, (int)index, (int)id.n, id.p);
        return 0;
}

static const char *open_calls(const struct pairing *p)
{
        static char text[4096];
        text[0] = '\0';
        pairing_each_open(p, count_open, text);
        return text;
}

static void results_pair_in_any_order(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "abc", "");
        assert_string_equal(open_calls(p), "1.0a 1.1b 1.2c ");
        struct pairing_match m = give(p, 2, "", "c");
        assert_int_equal(m.verdict, PAIRING_OK);
        assert_int_equal(m.call_seq, 1);
        assert_int_equal(m.call_index, 2);
        give(p, 3, "", "ba");
        assert_int_equal(matches[0].call_index, 1);
        assert_int_equal(matches[1].call_index, 0);
        assert_string_equal(open_calls(p), "");
        pairing_free(p);
}

static void a_second_result_is_a_duplicate_that_names_the_first(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "a", "");
        give(p, 2, "", "a");
        struct pairing_match m = give(p, 3, "", "a");
        assert_int_equal(m.verdict, PAIRING_DUPLICATE);
        assert_int_equal(m.call_seq, 1);
        assert_int_equal(m.result_seq, 2);
        pairing_free(p);
}

static void a_result_without_a_call_is_an_orphan(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        assert_int_equal(give(p, 1, "", "a").verdict, PAIRING_ORPHAN);
        assert_int_equal(matches[0].block_seq, 0);
        give(p, 2, "b", "");
        assert_int_equal(give(p, 3, "", "a").verdict, PAIRING_ORPHAN);
        assert_int_equal(matches[0].block_seq, 2);
        pairing_free(p);
}

static void reused_ids_pair_with_the_latest_block(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        for (uint64_t seq = 1; seq < 3000; seq += 2) {
                give(p, seq, "a", "");
                assert_int_equal(give(p, seq + 1, "", "a").call_seq, seq);
        }
        give(p, 3001, "a", "");
        give(p, 3002, "", "");
        give(p, 3003, "a", "");
        assert_int_equal(give(p, 3004, "", "a").call_seq, 3003);
        assert_int_equal(give(p, 3005, "", "a").call_seq, 3001);
        assert_int_equal(give(p, 3006, "", "a").verdict, PAIRING_DUPLICATE);
        pairing_free(p);
}

static void inside_a_block_the_earliest_open_call_is_answered(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "ab", "");
        give(p, 2, "a", "");
        assert_int_equal(give(p, 3, "", "a").call_seq, 1);
        assert_int_equal(matches[0].block_seq, 1);
        assert_int_equal(give(p, 4, "", "a").call_seq, 2);
        /* A call behind results is a block of its own. */
        give(p, 5, "b", "");
        assert_int_equal(give(p, 6, "", "b").block_seq, 5);
        assert_int_equal(give(p, 7, "", "b").block_seq, 1);
        pairing_free(p);
}

static void a_late_result_is_found_behind_other_messages(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "a", "");
        give(p, 2, "", "");
        give(p, 3, "", "");
        assert_int_equal(give(p, 4, "", "a").call_seq, 1);
        pairing_free(p);
}

static void a_call_that_carries_its_result_answers_itself(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "a", "");
        assert_int_equal(give(p, 2, "a", "a").call_seq, 2);
        assert_string_equal(open_calls(p), "1.0a ");
        pairing_free(p);
}

static void calls_leave_the_window(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "ab", "");
        for (uint64_t seq = 2; seq <= PAIRING_WINDOW; seq++)
                give(p, seq, "", "");
        assert_int_equal(give(p, 1 + PAIRING_WINDOW, "", "a").verdict, PAIRING_OK);
        assert_int_equal(give(p, 2 + PAIRING_WINDOW, "", "b").verdict, PAIRING_ORPHAN);
        assert_string_equal(open_calls(p), "");
        pairing_free(p);
}

static void a_clone_does_not_touch_its_original(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "ab", "");
        struct pairing *c = pairing_clone(p);
        give(c, 2, "", "a");
        give(c, 3, "xyz", "");
        assert_string_equal(open_calls(c), "1.1b 3.0x 3.1y 3.2z ");
        assert_string_equal(open_calls(p), "1.0a 1.1b ");
        pairing_free(c);
        assert_int_equal(give(p, 2, "", "a").verdict, PAIRING_OK);
        pairing_clear(p);
        assert_int_equal(give(p, 3, "", "b").verdict, PAIRING_ORPHAN);
        pairing_free(p);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(results_pair_in_any_order),
            cmocka_unit_test(a_second_result_is_a_duplicate_that_names_the_first),
            cmocka_unit_test(a_result_without_a_call_is_an_orphan),
            cmocka_unit_test(reused_ids_pair_with_the_latest_block),
            cmocka_unit_test(inside_a_block_the_earliest_open_call_is_answered),
            cmocka_unit_test(a_late_result_is_found_behind_other_messages),
            cmocka_unit_test(a_call_that_carries_its_result_answers_itself),
            cmocka_unit_test(calls_leave_the_window),
            cmocka_unit_test(a_clone_does_not_touch_its_original),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
