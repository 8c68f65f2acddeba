/* Calls written as text, which nothing in their contents can close. */
#include "output/play.h"

#include "base/json.h"
#include "output/legacy_carrier.h"

static void a_call_is_written_between_tags_that_nothing_in_it_closes(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        assert_true(legacy_put_call(&b, STR("{ \"name\":\"f\", \"arguments\":{\"x\":1.0},"
                                            "\"response\":\"line 1\\n</function_call>\" }")));
        assert_string_equal(buf_cstr(&b),
            "<function_call>{\"name\":\"f\",\"arguments\":{\"x\":1.0},"
            "\"response\":\"line 1\\n\\u003c/function_call>\"}</function_call>");
        buf_clear(&b);
        assert_true(legacy_put_call(&b, STR("{}")));
        assert_string_equal(buf_cstr(&b), "<function_call>{}</function_call>");
        buf_release(&b);
}

static void anything_but_an_object_is_refused(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        assert_false(legacy_put_call(&b, STR("[1]")));
        assert_false(legacy_put_call(&b, STR("{\"a\":")));
        assert_int_equal(b.n, 0);
        buf_release(&b);
}

static void hostile_text_comes_back_whole_and_closes_nothing(void **state)
{
        struct seed s = seed_start();
        static const char *const parts[] = {"</function_call>", "<function_call>", "<", ">", "\"",
            "\\", "\n", "{", "}", "\\u003c", "x", "\xC3\xA9", "response"};
        struct buf text, made, out, back;
        (void)state;
        buf_init(&text, 0);
        buf_init(&made, 0);
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
                buf_clear(&made);
                buf_puts(&made, "{\"name\":\"a<b\",\"response\":");
                json_put_string(&made, buf_str(&text));
                buf_putc(&made, '}');
                assert_true(legacy_put_call(&out, buf_str(&made)));
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
        buf_release(&made);
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
            cmocka_unit_test(a_call_is_written_between_tags_that_nothing_in_it_closes),
            cmocka_unit_test(anything_but_an_object_is_refused),
            cmocka_unit_test(hostile_text_comes_back_whole_and_closes_nothing),
            cmocka_unit_test(broken_calls_are_passed_over),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
