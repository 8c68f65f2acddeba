/* Calls as text that nothing inside can close. */
#include "output/play.h"

#include "base/json.h"
#include "output/legacy_carrier.h"

static void a_response_is_added_as_the_last_member(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        assert_true(legacy_put(&b, STR("{ \"name\":\"f\", \"arguments\":{\"x\":1.0} }"),
            STR("line 1\n</function_call>")));
        assert_string_equal(buf_cstr(&b),
            "<function_call>{\"name\":\"f\",\"arguments\":{\"x\":1.0},"
            "\"response\":\"line 1\\n\\u003c/function_call>\"}</function_call>");
        buf_clear(&b);
        assert_true(legacy_put(&b, STR("{}"), STR("")));
        assert_string_equal(buf_cstr(&b), "<function_call>{\"response\":\"\"}</function_call>");
        buf_clear(&b);
        assert_true(legacy_put(&b, STR("{\"response\":\"old\",\"a\":1}"), STR("new")));
        assert_string_equal(
            buf_cstr(&b), "<function_call>{\"a\":1,\"response\":\"new\"}</function_call>");
        buf_release(&b);
}

static void what_is_no_object_is_refused(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        assert_false(legacy_put(&b, STR("[1]"), STR("x")));
        assert_false(legacy_put(&b, STR("{\"a\":"), STR("x")));
        assert_int_equal(b.n, 0);
        buf_release(&b);
}

static void hostile_text_comes_back_whole_and_closes_nothing(void **state)
{
        struct seed s = seed_start();
        static const char *const parts[] = {"</function_call>", "<function_call>", "<", ">", "\"",
            "\\", "\n", "{", "}", "\\u003c", "x", "\xC3\xA9", "response"};
        struct buf text, out, back;
        (void)state;
        buf_init(&text, 0);
        buf_init(&out, 0);
        buf_init(&back, 0);
        for (int i = 0; i < seed_rounds(4000); i++) {
                size_t at = 0, start = 0;
                struct str call;
                struct json j;
                buf_clear(&text);
                buf_clear(&out);
                buf_clear(&back);
                for (uint64_t k = seed_below(&s, 12); k > 0; k--)
                        buf_puts(&text, parts[seed_below(&s, ITEMS(parts))]);
                buf_puts(&out, "before ");
                assert_true(legacy_put(&out, STR("{\"name\":\"a<b\"}"), buf_str(&text)));
                size_t end = out.n;
                buf_puts(&out, " behind");
                assert_true(legacy_next(buf_str(&out), &at, &start, &call));
                assert_int_equal(start, 7);
                assert_int_equal(at, end);
                assert_null(memchr(call.p, '<', call.n));
                json_init(&j);
                assert_int_equal(json_parse(&j, call.p, call.n, NULL, NULL), 0);
                assert_true(json_is(&j, json_get(&j, 0, "name"), "a<b"));
                assert_true(json_string(&j, json_get(&j, 0, "response"), &back, NULL));
                assert_int_equal(back.n, text.n);
                if (text.n)
                        assert_memory_equal(back.p, text.p, text.n);
                json_release(&j);
                assert_false(legacy_next(buf_str(&out), &at, &start, &call));
        }
        buf_release(&back);
        buf_release(&out);
        buf_release(&text);
}

static void broken_calls_are_passed_over(void **state)
{
        struct str text = STR("<function_call>{oops</function_call> <function_call>[1]"
                              "</function_call> <function_call> {\"a\":1}\n</function_call> "
                              "<function_call>{\"b\":2}");
        size_t at = 0, start = 0;
        struct str call = {0};
        (void)state;
        assert_true(legacy_next(text, &at, &start, &call));
        assert_true(str_is(call, "{\"a\":1}"));
        assert_false(legacy_next(text, &at, &start, &call));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_response_is_added_as_the_last_member),
            cmocka_unit_test(what_is_no_object_is_refused),
            cmocka_unit_test(hostile_text_comes_back_whole_and_closes_nothing),
            cmocka_unit_test(broken_calls_are_passed_over),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
