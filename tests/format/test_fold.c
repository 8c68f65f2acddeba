/* test_fold.c - folding message by message and formatting the whole give the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "format/format.h"
#include "gen.h"
#include "steno.h"

static int sink(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

static int push(struct steno_fold *f, const char *json)
{
        struct steno_error err = {0};
        int rc = steno_fold_push(f, json, strlen(json), &err);
        if (rc)
                print_message("# %s\n", err.msg);
        return rc;
}

static void shows(struct steno_fold *f, const char *expected)
{
        char *json;
        assert_int_equal(steno_fold_json(f, &json, NULL), 0);
        assert_string_equal(json, expected);
        steno_free(json);
}

static struct steno_fold *fold(void)
{
        struct steno_fold *f;
        assert_int_equal(steno_fold_new(&f, NULL), 0);
        return f;
}

/* Pushes a history and compares each prefix with the conversion of that prefix. */
static void same_for_every_prefix(const char *format, const struct buf *in)
{
        struct json j;
        struct steno_fold *f = fold();
        struct buf prefix, batch;
        struct steno_error err = {0}, err2 = {0};
        json_init(&j);
        buf_init(&prefix, 0);
        buf_init(&batch, 0);
        assert_int_equal(json_parse(&j, in->p, in->n, NULL, &err), 0);
        buf_putc(&prefix, '[');
        for (json_ref m = json_child(&j, 0); m != JSON_NONE; m = json_next(&j, 0, m)) {
                struct str raw = json_raw(&j, m);
                size_t before = prefix.n;
                if (prefix.n > 1)
                        buf_putc(&prefix, ',');
                buf_put_str(&prefix, raw);
                buf_putc(&prefix, ']');
                buf_clear(&batch);
                int one = steno_fold_push_as(f, format, raw.p, raw.n, &err);
                int all =
                    steno_convert(format, "chat", prefix.p, prefix.n, sink, &batch, NULL, &err2);
                assert_int_equal(one, all);
                if (one) {
                        /* Both name the result; the refused message leaves no trace. */
                        assert_non_null(strstr(err2.msg, err.msg));
                        prefix.n = before;
                        continue;
                }
                shows(f, buf_cstr(&batch));
                prefix.n--;
        }
        steno_fold_free(f);
        json_release(&j);
        buf_release(&prefix);
        buf_release(&batch);
}

static uint64_t seed;

static void folding_equals_formatting_for_every_prefix(void **state)
{
        (void)state;
        struct buf in;
        const struct format *from;
        buf_init(&in, 0);
        for (size_t k = 0; (from = format_at(k)); k++) {
                assert_true(gen_knows(from->name));
                for (unsigned i = 0; i < gen_count(48); i++) {
                        struct gen g = {.state = seed + i * 7919u,
                            .out = &in,
                            .format = from->name,
                            .damage = i % 2};
                        buf_clear(&in);
                        gen_history(&g);
                        same_for_every_prefix(g.format, &in);
                }
        }
        buf_release(&in);
}

#define CALL(id)                                                                                   \
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id "\",\"type\":"    \
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define RESULT(id, text) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"" text "\"}"

static void a_call_is_unrecorded_until_its_result_arrives(void **state)
{
        (void)state;
        struct steno_fold *f = fold();
        assert_int_equal(push(f, "{\"role\":\"user\",\"content\":\"hi\",\"id\":\"u1\"}"), 0);
        assert_int_equal(push(f, CALL("call_0")), 0);
        shows(f, "[{\"id\":\"u1\",\"role\":\"user\",\"content\":\"hi\"},{\"id\":\"msg_2\",\"role\":"
                 "\"assistant\",\"content\":\"\",\"toolCalls\":[{\"id\":\"call_0\",\"name\":\"f\","
                 "\"arguments\":\"{}\",\"state\":\"unrecorded\"}]}]");
        assert_int_equal(push(f, RESULT("call_0", "done")), 0);
        shows(f, "[{\"id\":\"u1\",\"role\":\"user\",\"content\":\"hi\"},{\"id\":\"msg_2\",\"role\":"
                 "\"assistant\",\"content\":\"\",\"toolCalls\":[{\"id\":\"call_0\",\"name\":\"f\","
                 "\"arguments\":\"{}\",\"state\":\"complete\",\"result\":\"done\"}]}]");
        steno_fold_free(f);
}

static void the_result_says_how_a_call_ended(void **state)
{
        static const struct {
                const char *members;
                const char *state;
        } rows[] = {
            {"\"isError\":true", "error"},
            {"\"isError\":true,\"denied\":true", "denied"},
            {"\"isError\":true,\"interrupted\":true", "interrupted"},
            {"\"isError\":true,\"cut\":true", "cut"},
            {"\"isError\":true,\"interrupted\":true,\"denied\":true", "denied"},
            {"\"isError\":true,\"denied\":false,\"cut\":null,\"interrupted\":\"yes\"", "error"},
            {"\"interrupted\":true", "interrupted"},
            {"\"denied\":false", "complete"},
        };
        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char message[300], want[64];
                struct steno_fold *f = fold();
                snprintf(message, sizeof(message),
                    "{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"r\",%s}",
                    rows[i].members);
                snprintf(want, sizeof(want), "\"state\":\"%s\"", rows[i].state);
                assert_int_equal(push(f, CALL("call_0")), 0);
                assert_int_equal(push(f, message), 0);
                char *shown;
                assert_int_equal(steno_fold_json(f, &shown, NULL), 0);
                if (!strstr(shown, want))
                        fail_msg("%s: %s", rows[i].members, shown);
                steno_free(shown);
                steno_fold_free(f);
        }
}

static void a_result_without_a_call_is_named_and_changes_nothing(void **state)
{
        (void)state;
        struct steno_fold *f = fold();
        struct steno_error err = {0};
        const char *early = RESULT("call_9", "x");
        assert_int_equal(steno_fold_push(f, early, strlen(early), &err), STENO_EPROTO);
        assert_non_null(strstr(err.msg, "\"call_9\" has no call"));
        shows(f, "[]");
        assert_int_equal(push(f, CALL("call_9")), 0);
        assert_int_equal(push(f, early), 0);
        assert_int_equal(steno_fold_push(f, early, strlen(early), &err), STENO_EPROTO);
        assert_non_null(strstr(err.msg, "answered by message 2"));
        steno_fold_free(f);
}

static void several_results_in_one_message_find_their_calls(void **state)
{
        (void)state;
        struct steno_fold *f = fold();
        assert_int_equal(
            push(f,
                "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":"
                "\"f\",\"input\":{}},{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"g\",\"input\":{"
                "}}]}"),
            0);
        assert_int_equal(
            push(f,
                "{\"role\":\"tool\",\"content\":[{\"type\":\"tool-result\",\"toolCallId\":\"b\","
                "\"toolName\":\"g\",\"result\":{\"llmContent\":\"B\",\"isError\":true}},{\"type\":"
                "\"tool-result\",\"toolCallId\":\"a\",\"toolName\":\"f\",\"result\":{"
                "\"llmContent\":"
                "\"A\"}}]}"),
            0);
        shows(f, "[{\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[{"
                 "\"id\":\"a\","
                 "\"name\":\"f\",\"arguments\":\"{}\",\"state\":\"complete\",\"result\":\"A\"},{"
                 "\"id\":\"b\","
                 "\"name\":\"g\",\"arguments\":\"{}\",\"state\":\"error\",\"error\":\"B\"}]}]");
        steno_fold_free(f);
}

static void the_older_form_of_results_folds_as_well(void **state)
{
        (void)state;
        struct steno_fold *f = fold();
        assert_int_equal(push(f, CALL("a")), 0);
        assert_int_equal(push(f, "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"id\":"
                                 "\"a\",\"name\":\"f\","
                                 "\"input\":{},\"result\":{\"llmContent\":\"A\"}}]}"),
            0);
        shows(f, "[{\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[{"
                 "\"id\":\"a\","
                 "\"name\":\"f\",\"arguments\":\"{}\",\"state\":\"complete\",\"result\":\"A\"}]}]");
        steno_fold_free(f);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        seed = gen_seed();
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(folding_equals_formatting_for_every_prefix),
            cmocka_unit_test(a_call_is_unrecorded_until_its_result_arrives),
            cmocka_unit_test(the_result_says_how_a_call_ended),
            cmocka_unit_test(a_result_without_a_call_is_named_and_changes_nothing),
            cmocka_unit_test(several_results_in_one_message_find_their_calls),
            cmocka_unit_test(the_older_form_of_results_folds_as_well),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
