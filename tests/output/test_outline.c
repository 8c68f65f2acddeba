/* The shape of JSON documents. */
#include "output/play.h"

#include "base/limits.h"
#include "output/clean.h"
#include "output/outline.h"

static void outlines_to(const char *json, const char *expected)
{
        struct buf b;
        buf_init(&b, 0);
        assert_true(outline_put(&b, str_of(json), OUTLINE_BYTES));
        assert_string_equal(buf_cstr(&b), expected);
        buf_release(&b);
}

static void keys_lengths_and_types_are_shown(void **state)
{
        (void)state;
        outlines_to("3", "number\n");
        outlines_to("[]", "array[0]\n");
        outlines_to("{}", "object, 0 keys\n");
        outlines_to(" [1, \"a\", null] ", "array[3] of string | number | null\n");
        outlines_to("{\"a\":1,\"b\":{\"c\":[true]}}",
            "object, 2 keys\n  a: number\n  b: object\n    c: array[1] of boolean\n");
        outlines_to("[[1,2],[3]]", "array[2] of array[1-2] of number\n");
}

static void elements_of_an_array_are_merged(void **state)
{
        (void)state;
        outlines_to("[{\"id\":1,\"note\":null},{\"id\":2,\"note\":\"x\",\"tags\":[]},"
                    "{\"id\":3,\"note\":null,\"tags\":[1,2]}]",
            "array[3] of object\n  id: number\n  note: string | null\n"
            "  tags?: array[0-2] of number\n");
}

static void a_type_behind_the_sample_is_still_named(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_putc(&b, '[');
        for (int i = 0; i < 1000; i++)
                buf_puts(&b, "1,");
        buf_puts(&b, "\"late\"]");
        outlines_to(buf_cstr(&b), "array[1,001] of string | number\n");
        buf_release(&b);
}

static void keys_cannot_break_out(void **state)
{
        (void)state;
        outlines_to("{\"tool\":1,\"More\":2,\"a b\":3,\"x\\n--- tail\":4}",
            "object, 4 keys\n  \"tool\": number\n  \"More\": number\n  \"a b\": number\n"
            "  \"x\\n--- tail\": number\n");
}

static void it_is_bounded_in_keys_depth_and_bytes(void **state)
{
        struct buf b, out;
        (void)state;
        buf_init(&b, 0);
        buf_init(&out, 0);
        buf_putc(&b, '{');
        for (int i = 0; i < 5000; i++)
                buf_printf(
                    &b, "%s\"key%d\":{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":1}}}}}", i ? "," : "", i);
        buf_putc(&b, '}');
        assert_true(outline_put(&out, buf_str(&b), 700));
        assert_true(out.n <= 700);
        assert_true(str_starts(buf_str(&out), "object, 5,000 keys\n  key0: object\n"));
        assert_string_equal(buf_cstr(&out) + out.n - 6, "  ...\n");
        assert_null(strstr(out.p, "e: "));
        buf_clear(&out);
        assert_true(outline_put(&out, buf_str(&b), 1 << 20));
        assert_non_null(strstr(buf_cstr(&out), "more keys\n"));
        buf_release(&out);
        buf_release(&b);
}

static void what_is_not_json_has_none(void **state)
{
        static const char *const bad[] = {"", "{", "[1", "[1,]x", "{\"a\"}", "{\"a\":}", "nothing]",
            "[1 2]", "{\"a\":1", "\"open", "[}", "1 2"};
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        for (size_t i = 0; i < ITEMS(bad); i++) {
                if (outline_put(&b, str_of(bad[i]), OUTLINE_BYTES) || b.n)
                        fail_msg("%s", bad[i]);
        }
        struct buf deep;
        buf_init(&deep, 0);
        for (int i = 0; i < 100000; i++)
                buf_putc(&deep, '[');
        assert_false(outline_put(&b, buf_str(&deep), OUTLINE_BYTES));
        buf_release(&deep);
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(keys_lengths_and_types_are_shown),
            cmocka_unit_test(elements_of_an_array_are_merged),
            cmocka_unit_test(a_type_behind_the_sample_is_still_named),
            cmocka_unit_test(keys_cannot_break_out),
            cmocka_unit_test(it_is_bounded_in_keys_depth_and_bytes),
            cmocka_unit_test(what_is_not_json_has_none),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
