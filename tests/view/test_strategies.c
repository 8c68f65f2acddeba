/* test_strategies.c - the edit strategies, case by case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "histories.h"
#include "view/strategies.h"
#include "view/tokens.h"

#define ASK(id, name, args)                                                                        \
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id                   \
        "\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"" args       \
        "\"}}]}"
#define ANSWER(id, text) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"" text "\"}"
#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define SAYS(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"

/* Applies strategies and gives the result as JSON. */
static char *edited(const char *history, const char *strategies, uint64_t pin)
{
        struct histories t;
        struct steno_error err = {0};
        struct strategy *list;
        size_t count;
        assert_int_equal(histories_open(&t, "openai", history), 0);
        t.w.pin = pin;
        if (strategies_parse(str_of(strategies), &t.arena, &list, &count, &err) != 0)
                fail_msg("%s", err.msg);
        assert_int_equal(strategies_apply(&t.w, list, count, &err), 0);
        char *json = histories_json(&t, "openai");
        assert_non_null(json);
        histories_close(&t);
        return json;
}

static void assert_edit(const char *history, const char *strategies, const char *expected)
{
        char *json = edited(history, strategies, UINT64_MAX);
        assert_string_equal(json, expected);
        free(json);
}

static uint64_t tokens_of(const char *history)
{
        struct histories t;
        assert_int_equal(histories_open(&t, "openai", history), 0);
        uint64_t n = work_tokens(&t.w);
        histories_close(&t);
        return n;
}

static const char FOUR[] = "[" USER("go") "," ASK("a", "f", "{}") "," ANSWER("a", "one") "," ASK(
    "b", "g", "{}") "," ANSWER("b", "two") "," ASK("c", "f", "{}") "," ANSWER("c",
    "three") "," ASK("d", "f", "{}") "," ANSWER("d", "four") "]";

static void keeps_the_last_three_results_by_default(void **state)
{
        (void)state;
        assert_edit(FOUR, "[{\"type\":\"remove_tool_result\"}]",
            "[" USER("go") "," ASK("a", "f", "{}") "," ANSWER("a", "Done") "," ASK(
                "b", "g", "{}") "," ANSWER("b", "two") "," ASK("c", "f", "{}") "," ANSWER("c",
                "three") "," ASK("d", "f", "{}") "," ANSWER("d", "four") "]");
}

static void replaces_by_the_placeholder_and_spares_kept_tools(void **state)
{
        (void)state;
        assert_edit(FOUR,
            "[{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":1,"
            "\"tool_result_placeholder\":\"  gone \",\"keep_tools\":[\"g\"]}}]",
            "[" USER("go") "," ASK("a", "f", "{}") "," ANSWER("a", "gone") "," ASK(
                "b", "g", "{}") "," ANSWER("b", "two") "," ASK("c", "f", "{}") "," ANSWER("c",
                "gone") "," ASK("d", "f", "{}") "," ANSWER("d", "four") "]");
}

static void an_empty_placeholder_is_done(void **state)
{
        (void)state;
        assert_edit("[" ASK("a", "f", "{}") "," ANSWER("a", "one") "]",
            "[{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":0,"
            "\"tool_result_placeholder\":\" \"}}]",
            "[" ASK("a", "f", "{}") "," ANSWER("a", "Done") "]");
}

static void keep_recent_counts_before_gt_token_looks(void **state)
{
        (void)state;
        /* The last one is short and is kept; of the two older ones only the long one is removed,
         * and an empty one never is. */
        assert_edit(
            "[" ASK("a", "f", "{}") "," ANSWER("a", "a rather long result it is") "," ASK("b", "f",
                "{}") "," ANSWER("b", "") "," ASK("c", "f", "{}") "," ANSWER("c", "x") "]",
            "[{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":1,"
            "\"gt_token\":3}}]",
            "[" ASK("a", "f", "{}") "," ANSWER("a", "Done") "," ASK("b", "f", "{}") "," ANSWER(
                "b", "") "," ASK("c", "f", "{}") "," ANSWER("c", "x") "]");
}

static void gt_token_removes_what_has_more_tokens_than_that(void **state)
{
        static const char TEXT[] = "one two three";
        char edit[200];
        (void)state;
        size_t n = (size_t)tokens_count(TEXT, strlen(TEXT));
        for (size_t limit = n - 1; limit <= n + 1; limit++) {
                snprintf(edit, sizeof edit,
                    "[{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":"
                    "0,"
                    "\"gt_token\":%zu}}]",
                    limit);
                assert_edit("[" ASK("a", "f", "{}") "," ANSWER("a", "one two three") "]", edit,
                    limit < n ? "[" ASK("a", "f", "{}") "," ANSWER("a", "Done") "]"
                              : "[" ASK("a", "f", "{}") "," ANSWER("a", "one two three") "]");
        }
}

static void a_placeholder_names_the_ref(void **state)
{
        (void)state;
        assert_edit("[" ASK("a", "f", "{}") ",{\"role\":\"tool\",\"tool_call_id\":\"a\","
                                            "\"content\":\"stub\",\"ref\":\"ctx_1\"}]",
            "[{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":0}}]",
            "[" ASK("a", "f", "{}") "," ANSWER("a", "Done [full output: ctx_1]") "]");
}

static void removes_old_parameters(void **state)
{
        (void)state;
        assert_edit("[" ASK("a", "f", "{\\\"x\\\":1}") "," ANSWER("a", "1") "," ASK(
                        "b", "k", "{\\\"x\\\":2}") "," ANSWER("b", "2") "," ASK("c", "f",
                        "{\\\"x\\\":3}") "," ANSWER("c", "3") "]",
            "[{\"type\":\"remove_tool_call_params\",\"params\":{\"keep_recent_n_tool_calls\":1,"
            "\"keep_tools\":[\"k\"]}}]",
            "[" ASK("a", "f", "{}") "," ANSWER("a", "1") "," ASK(
                "b", "k", "{\\\"x\\\":2}") "," ANSWER("b", "2") "," ASK("c", "f",
                "{\\\"x\\\":3}") "," ANSWER("c", "3") "]");
}

static void token_limit_drops_the_oldest_with_their_pairs(void **state)
{
        (void)state;
        char params[96];
        uint64_t keep = tokens_of("[" USER("last") "]");
        snprintf(params, sizeof params,
            "[{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":%llu}}]",
            (unsigned long long)keep);
        assert_edit("[" ASK("a", "f", "{}") "," ANSWER("a", "one") "," USER("last") "]", params,
            "[" USER("last") "]");
        /* Not a token more than needed. */
        uint64_t whole = tokens_of("[" USER("x") "," USER("last") "]");
        snprintf(params, sizeof params,
            "[{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":%llu}}]",
            (unsigned long long)whole);
        assert_edit("[" USER("x") "," USER("last") "]", params, "[" USER("x") "," USER("last") "]");
        assert_edit("[" USER("a long text that is over the limit of one token") "]",
            "[{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":1}}]", "[]");
}

static void middle_out_drops_from_the_middle_with_pairs(void **state)
{
        (void)state;
        char params[96];
        /* Five messages; the middle is index 2, a result, so its call goes as well. */
        const char *rest = "[" USER("first") "," USER("near") "," USER("last") "]";
        snprintf(params, sizeof params,
            "[{\"type\":\"middle_out\",\"params\":{\"token_reduce_to\":%llu}}]",
            (unsigned long long)tokens_of(rest));
        assert_edit("[" USER("first") "," ASK("a", "f", "{}") "," ANSWER("a", "one") "," USER(
                        "near") "," USER("last") "]",
            params, rest);
        /* Of two the older goes. */
        snprintf(params, sizeof params,
            "[{\"type\":\"middle_out\",\"params\":{\"token_reduce_to\":%llu}}]",
            (unsigned long long)tokens_of("[" USER("last") "]"));
        assert_edit("[" USER("first") "," USER("last") "]", params, "[" USER("last") "]");
}

static void any_order_of_strategies_gives_the_same(void **state)
{
        (void)state;
        static const char *const parts[] = {
            "{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":1}}",
            "{\"type\":\"remove_tool_call_params\",\"params\":{\"keep_recent_n_tool_calls\":0}}",
            "{\"type\":\"middle_out\",\"params\":{\"token_reduce_to\":50}}",
            "{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":40}}"};
        static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};
        char *first = NULL;
        for (size_t i = 0; i < 4; i++) {
                char all[512];
                snprintf(all, sizeof all, "[%s,%s,%s,%s]", parts[orders[i][0]], parts[orders[i][1]],
                    parts[orders[i][2]], parts[orders[i][3]]);
                char *json = edited(FOUR, all, UINT64_MAX);
                if (!first) {
                        first = json;
                        continue;
                }
                assert_string_equal(json, first);
                free(json);
        }
        free(first);
}

static void a_limit_looks_at_what_removals_left(void **state)
{
        (void)state;
        /* Once the result is a placeholder, everything fits; with the limit first, everything would
         * be dropped. */
        static const char history[] = "[" ASK("a", "f", "{}") "," ANSWER("a",
            "a result that is much longer than the word which "
            "stands for it afterwards") "," USER("last") "]";
        static const char kept[] =
            "[" ASK("a", "f", "{}") "," ANSWER("a", "Done") "," USER("last") "]";
        char strategies[256];
        snprintf(strategies, sizeof strategies,
            "[{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":%llu}},"
            "{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":0}}]",
            (unsigned long long)tokens_of(kept));
        assert_edit(history, strategies, kept);
}

static void nothing_behind_the_pin_is_seen(void **state)
{
        (void)state;
        /* Pinned at seq 5: only a and b count, so a goes and b is the recent one. */
        char *json = edited(FOUR,
            "[{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":1}}]", 5);
        assert_string_equal(
            json, "[" USER("go") "," ASK("a", "f", "{}") "," ANSWER("a", "Done") "," ASK(
                      "b", "g", "{}") "," ANSWER("b", "two") "," ASK("c", "f", "{}") "," ANSWER("c",
                      "three") "," ASK("d", "f", "{}") "," ANSWER("d", "four") "]");
        free(json);
}

static void a_mistake_names_the_parameter(void **state)
{
        (void)state;
        static const struct {
                const char *json;
                int code;
                const char *text;
        } cases[] = {
            {"[{", STENO_EPROTO, "invalid edit_strategies JSON"},
            {"{}", STENO_EPROTO, "array"},
            {"[1]", STENO_EPROTO, "type"},
            {"[{\"type\":\"shrink\"}]", STENO_EINVAL, "shrink"},
            {"[{\"type\":\"token_limit\"}]", STENO_EINVAL, "limit_tokens is required"},
            {"[{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":0}}]", STENO_EINVAL,
                "limit_tokens must be at least 1"},
            {"[{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":1e300}}]", STENO_EINVAL,
                "limit_tokens"},
            {"[{\"type\":\"middle_out\",\"params\":{\"token_reduce_to\":1.5}}]", STENO_EINVAL,
                "token_reduce_to must be an integer"},
            {"[{\"type\":\"middle_out\",\"params\":{}}]", STENO_EINVAL, "token_reduce_to"},
            {"[{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":-1}}]",
                STENO_EINVAL, "keep_recent_n_tool_results"},
            {"[{\"type\":\"remove_tool_result\",\"params\":{\"gt_token\":0}}]", STENO_EINVAL,
                "gt_token"},
            {"[{\"type\":\"remove_tool_result\",\"params\":{\"tool_result_placeholder\":1}}]",
                STENO_EINVAL, "tool_result_placeholder"},
            {"[{\"type\":\"remove_tool_call_params\",\"params\":{\"keep_tools\":[1]}}]",
                STENO_EINVAL, "keep_tools"},
            {"[{\"type\":\"remove_tool_call_params\",\"params\":3}]", STENO_EINVAL, "params"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct arena arena;
                struct steno_error err = {0};
                struct strategy *list;
                size_t count;
                arena_init(&arena);
                int rc = strategies_parse(str_of(cases[i].json), &arena, &list, &count, &err);
                assert_int_equal(rc, cases[i].code);
                if (!strstr(err.msg, cases[i].text))
                        fail_msg("%s: %s", cases[i].json, err.msg);
                arena_release(&arena);
        }
}

static void a_call_weighs_what_go_would_write(void **state)
{
        (void)state;
        static const char text[] =
            "{\"arguments\":\"{\\\"q\\\":\\\"a\\u003cb\\u0026c\\\"}\",\"name\":\"f\"}\n";
        uint64_t n =
            tokens_of("[" ASK("a", "f", "{\\\"q\\\":\\\"a<b&c\\\"}") "," ANSWER("a", "") "]");
        assert_int_equal(n, tokens_count(text, sizeof text - 1) + tokens_count("\n", 1));
}

static void automatic(const char *history, uint64_t tokens, const char *expected)
{
        struct histories t;
        struct steno_error err;
        assert_int_equal(histories_open(&t, "openai", history), 0);
        assert_int_equal(strategies_auto(&t.w, tokens, true, &err), 0);
        strategies_report(&t.w);
        jsonw_array_end(&t.jw);
        const char *report = buf_cstr(&t.report);
        size_t at = 0;
        for (const char *p = report; (p = strstr(p, "\"type\":\"")); p++, expected++)
                at += p[8] == *expected || p[8 + 12] == *expected ? 0 : 1;
        assert_int_equal(at, 0);
        assert_string_equal(expected, "");
        assert_true(work_tokens(&t.w) <= tokens);
        histories_close(&t);
}

static void auto_picks_no_more_than_it_needs(void **state)
{
        (void)state;
        uint64_t all = tokens_of(FOUR);
        automatic(FOUR, all, "");
        automatic(FOUR, 10, "rct"); /* results, then call params, then the limit */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(keeps_the_last_three_results_by_default),
            cmocka_unit_test(replaces_by_the_placeholder_and_spares_kept_tools),
            cmocka_unit_test(an_empty_placeholder_is_done),
            cmocka_unit_test(keep_recent_counts_before_gt_token_looks),
            cmocka_unit_test(gt_token_removes_what_has_more_tokens_than_that),
            cmocka_unit_test(a_placeholder_names_the_ref),
            cmocka_unit_test(removes_old_parameters),
            cmocka_unit_test(token_limit_drops_the_oldest_with_their_pairs),
            cmocka_unit_test(middle_out_drops_from_the_middle_with_pairs),
            cmocka_unit_test(any_order_of_strategies_gives_the_same),
            cmocka_unit_test(a_limit_looks_at_what_removals_left),
            cmocka_unit_test(nothing_behind_the_pin_is_seen),
            cmocka_unit_test(a_mistake_names_the_parameter),
            cmocka_unit_test(a_call_weighs_what_go_would_write),
            cmocka_unit_test(auto_picks_no_more_than_it_needs),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests_name("strategies", tests, NULL, NULL);
}
