/*
 * Token counts that hold in every build, with the vocabulary or without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "view/tokens.h"

static const char history[] =
    "{\"role\":\"user\",\"content\":\"Why does the build of the parser fail on Tuesdays?\"}\n"
    "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\",\"function\":"
    "{\"name\":\"run\",\"arguments\":\"{\\\"command\\\":\\\"make test\\\"}\"}}]}\n"
    "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"src/parser.c:118: error: "
    "expected "
    "expression before ')' token\\n  118 |         return next(parser, );\\n\"}\n";
static const size_t history_tokens = 97;

static void an_empty_text_has_no_tokens(void **state)
{
        (void)state;
        assert_int_equal(tokens_count("", 0), 0);
        assert_int_equal(tokens_count(NULL, 0), 0);
        assert_int_equal(tokens_estimate("", 0), 0);
}

static void every_text_has_between_one_token_and_three_a_byte(void **state)
{
        (void)state;
        char text[4];
        for (int b = 0; b < 256; b++) {
                for (size_t n = 1; n <= sizeof text; n++) {
                        memset(text, b, n);
                        assert_in_range(tokens_count(text, n), 1, 3 * n);
                        assert_in_range(tokens_estimate(text, n), 1, 3 * n);
                }
        }
}

static void an_estimate_of_a_history_is_within_a_fifth(void **state)
{
        (void)state;
        size_t guess = tokens_estimate(history, sizeof history - 1);
        assert_in_range(guess, history_tokens * 4 / 5, history_tokens * 6 / 5);
}

static void a_build_says_whether_its_counts_are_exact(void **state)
{
        (void)state;
        size_t count = tokens_count(history, sizeof history - 1);
        size_t truth =
            tokens_exact() ? history_tokens : tokens_estimate(history, sizeof history - 1);
        assert_int_equal(count, truth);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_empty_text_has_no_tokens),
            cmocka_unit_test(every_text_has_between_one_token_and_three_a_byte),
            cmocka_unit_test(an_estimate_of_a_history_is_within_a_fifth),
            cmocka_unit_test(a_build_says_whether_its_counts_are_exact),
        };
        return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
