/* JSON: edits do not change the text around them, and what is written can be read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "json_random.h"

struct bench {
        struct json j;
        struct json_edits e;
        struct buf out;
};

static void start(struct bench *t, const char *text)
{
        json_init(&t->j);
        json_edits_init(&t->e);
        buf_init(&t->out, 0);
        assert_int_equal(json_parse(&t->j, text, strlen(text), NULL, NULL), 0);
}

static void finish(struct bench *t)
{
        json_release(&t->j);
        json_edits_release(&t->e);
        buf_release(&t->out);
}

static void gives(struct bench *t, json_ref r, const char *want)
{
        buf_clear(&t->out);
        assert_int_equal(json_edits_apply(&t->e, &t->j, r, &t->out), 0);
        assert_string_equal(buf_cstr(&t->out), want);
}

static void removed_members_take_their_comma_along(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                const char *want;
        } cases[] = {
            {"{\"x\":1}", "{}"},
            {"{ \"x\" : 1 }", "{  }"},
            {"{\"x\":1,\"a\":2}", "{\"a\":2}"},
            {"{\"a\":2,\"x\":1}", "{\"a\":2}"},
            {"{\"a\":2 , \"x\":1 }", "{\"a\":2 }"},
            {"{\"a\":1,\"x\":2,\"b\":3}", "{\"a\":1,\"b\":3}"},
            {"{\"x\":1,\"y\":2,\"a\":3}", "{\"a\":3}"},
            {"{\"a\":3,\"x\":1,\"y\":2}", "{\"a\":3}"},
            {"{\"x\":1,\"y\":2}", "{}"},
            {"{\"x\":1,\"a\":1,\"x\":[{}],\"b\":2,\"y\":3}", "{\"a\":1,\"b\":2}"},
            {"{\"\\u0078\":1,\"a\":1}", "{\"a\":1}"},
            {"{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}"},
            {"{}", "{}"},
            {"[\"x\",1]", "[\"x\",1]"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct bench t;
                start(&t, cases[i].text);
                json_edit_remove_members(&t.e, &t.j, 0, (const char *[]){"x", "y", NULL});
                gives(&t, 0, cases[i].want);
                finish(&t);
        }
}

static void added_members_come_last(void **state)
{
        (void)state;
        struct bench t;
        start(&t, "{ \"a\" : {} , \"b\" : [ ] }");
        json_edit_add_member(&t.e, &t.j, 0, STR("\"c\":1"));
        json_edit_add_member(&t.e, &t.j, json_get(&t.j, 0, "a"), STR("\"d\":2"));
        json_edit_add_member(&t.e, &t.j, json_get(&t.j, 0, "a"), STR("\"e\":3"));
        json_edit_add_member(&t.e, &t.j, 0, STR("\"f\":4"));
        gives(&t, 0, "{ \"a\" : {\"d\":2,\"e\":3} , \"b\" : [ ],\"c\":1,\"f\":4 }");
        gives(&t, json_get(&t.j, 0, "a"), "{\"d\":2,\"e\":3}");
        finish(&t);
}

static void a_replaced_value_can_stand_before_an_added_member(void **state)
{
        (void)state;
        struct bench t;
        start(&t, "{\"a\":1,\"b\":2}");
        json_edit_add_member(&t.e, &t.j, 0, STR("\"c\":3"));
        json_edit_replace(&t.e, &t.j, json_get(&t.j, 0, "b"), STR("\"two\""));
        json_edit_replace(&t.e, &t.j, json_get(&t.j, 0, "a"), STR("[1]"));
        json_edit_replace(&t.e, &t.j, JSON_NONE, STR("nothing"));
        gives(&t, 0, "{\"a\":[1],\"b\":\"two\",\"c\":3}");
        json_edits_release(&t.e);
        gives(&t, 0, "{\"a\":1,\"b\":2}");
        finish(&t);
}

static void overlapping_edits_are_refused(void **state)
{
        (void)state;
        struct bench t;
        start(&t, "{\"a\":[1,2],\"b\":2}");
        json_edit_replace(&t.e, &t.j, json_get(&t.j, 0, "a"), STR("0"));
        json_edit_replace(&t.e, &t.j, json_at(&t.j, json_get(&t.j, 0, "a"), 1), STR("3"));
        assert_int_equal(json_edits_apply(&t.e, &t.j, 0, &t.out), STENO_EINVAL);
        assert_int_equal(json_edits_apply(&t.e, &t.j, 0, &t.out), STENO_EINVAL);
        json_edits_release(&t.e);
        assert_int_equal(json_edits_apply(&t.e, &t.j, JSON_NONE, &t.out), STENO_EINVAL);
        json_edit_replace(&t.e, &t.j, json_get(&t.j, 0, "a"), STR("0"));
        assert_int_equal(
            json_edits_apply(&t.e, &t.j, json_at(&t.j, json_get(&t.j, 0, "a"), 0), &t.out),
            STENO_EINVAL);
        finish(&t);
}

/* Replaces random leaves in a shuffled order, and compares the result with a document in which the
 * same is done from the back with plain byte moves. */
static void random_replacements_equal_byte_moves(void **state)
{
        (void)state;
        struct seed s = seed_start();
        struct buf b;
        struct buf want;
        buf_init(&b, 0);
        buf_init(&want, 0);
        for (int i = 0; i < seed_rounds(60000); i++) {
                struct bench t;
                json_ref chosen[64];
                size_t n = 0;
                random_document(&s, &b, 5);
                start(&t, buf_cstr(&b));
                for (json_ref r = 0; r < t.j.count && n < 64; r++) {
                        if (!json_count(&t.j, r) && seed_below(&s, 3) == 0)
                                chosen[n++] = r;
                }
                buf_clear(&want);
                buf_put(&want, b.p, b.n);
                for (size_t k = n; k-- > 0;) {
                        const struct json_node *x = &t.j.nodes[chosen[k]];
                        size_t behind = x->off + x->len;
                        char *room = buf_reserve(&want, 4);
                        assert_non_null(room);
                        memmove(want.p + x->off + 4, want.p + behind, want.n - behind);
                        memcpy(want.p + x->off, "\"R\" ", 4);
                        want.n = want.n + 4 - x->len;
                }
                for (size_t k = n; k > 1; k--) {
                        size_t o = seed_below(&s, k);
                        json_ref swap = chosen[o];
                        chosen[o] = chosen[k - 1];
                        chosen[k - 1] = swap;
                }
                for (size_t k = 0; k < n; k++)
                        json_edit_replace(&t.e, &t.j, chosen[k], STR("\"R\" "));
                assert_int_equal(json_edits_apply(&t.e, &t.j, 0, &t.out), 0);
                size_t lead = t.j.nodes[0].off;
                size_t trail = b.n - lead - t.j.nodes[0].len;
                assert_int_equal(t.out.n + lead + trail, want.n);
                assert_memory_equal(t.out.p, want.p + lead, t.out.n);
                assert_true(json_valid(t.out.p, t.out.n, NULL));
                finish(&t);
        }
        buf_release(&b);
        buf_release(&want);
}

/* The members that stay are, byte for byte and in order, those that the removal did not name. */
static void random_removals_keep_the_rest(void **state)
{
        (void)state;
        struct seed s = seed_start();
        struct buf b;
        buf_init(&b, 0);
        for (int i = 0; i < seed_rounds(60000); i++) {
                static const char *const names[] = {"x", "y", "keep", "\\u0078"};
                size_t n = seed_below(&s, 7);
                buf_clear(&b);
                buf_putc(&b, '{');
                random_space(&s, &b);
                for (size_t k = 0; k < n; k++) {
                        if (k)
                                buf_putc(&b, ',');
                        random_space(&s, &b);
                        buf_printf(&b, "\"%s\"", names[seed_below(&s, 4)]);
                        random_space(&s, &b);
                        buf_putc(&b, ':');
                        random_value(&s, &b, 2);
                        random_space(&s, &b);
                }
                buf_putc(&b, '}');
                struct bench t;
                struct json after;
                start(&t, buf_cstr(&b));
                json_init(&after);
                json_edit_remove_members(&t.e, &t.j, 0, (const char *[]){"x", "y", NULL});
                assert_int_equal(json_edits_apply(&t.e, &t.j, 0, &t.out), 0);
                assert_int_equal(json_parse(&after, t.out.p, t.out.n, NULL, NULL), 0);
                json_ref got = json_child(&after, 0);
                for (json_ref k = json_child(&t.j, 0); k != JSON_NONE;
                     k = json_next_key(&t.j, 0, k)) {
                        if (!json_is(&t.j, k, "keep"))
                                continue;
                        assert_true(json_is(&after, got, "keep"));
                        assert_true(str_eq(json_raw(&after, json_value(&after, got)),
                            json_raw(&t.j, json_value(&t.j, k))));
                        got = json_next_key(&after, 0, got);
                }
                assert_int_equal(got, JSON_NONE);
                json_release(&after);
                finish(&t);
        }
        buf_release(&b);
}

/* ---- writing ---- */

static void written_strings_read_back(void **state)
{
        (void)state;
        struct seed s = seed_start();
        struct buf b;
        struct buf back;
        buf_init(&b, 0);
        buf_init(&back, 0);
        for (int i = 0; i < seed_rounds(60000); i++) {
                char bytes[120];
                size_t n = seed_below(&s, sizeof bytes);
                for (size_t k = 0; k < n; k++)
                        bytes[k] = (char)seed_below(&s, seed_below(&s, 2) ? 128 : 48);
                buf_clear(&b);
                buf_clear(&back);
                json_put_string(&b, str_span(bytes, n));
                struct json j;
                json_init(&j);
                assert_int_equal(json_parse(&j, b.p, b.n, NULL, NULL), 0);
                assert_true(json_string(&j, 0, &back, NULL));
                assert_true(str_eq(buf_str(&back), str_span(bytes, n)));
                json_release(&j);
        }
        buf_release(&b);
        buf_release(&back);
}

static void written_strings_are_always_utf8(void **state)
{
        (void)state;
        struct buf b;
        buf_init(&b, 0);
        json_put_string(&b, STR("a\xff\xc3\xa9\xe2\x82z\x01\x1f\"\\\b\f\n\r\t\x7f/"));
        assert_string_equal(buf_cstr(&b), "\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbdz\\u0001"
                                          "\\u001f\\\"\\\\\\b\\f\\n\\r\\t\x7f/\"");
        for (int at = 0; at < 80; at++) {
                for (int c = 0; c < 256; c++) {
                        char text[80];
                        memset(text, 'a', sizeof text);
                        text[at] = (char)c;
                        buf_clear(&b);
                        json_put_string(&b, str_span(text, sizeof text));
                        assert_true(json_valid(b.p, b.n, NULL));
                }
        }
        buf_release(&b);
}

static void the_writer_puts_the_commas(void **state)
{
        (void)state;
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "a");
        jsonw_array(&w);
        jsonw_u64(&w, UINT64_MAX);
        jsonw_i64(&w, INT64_MIN);
        jsonw_i64(&w, -1);
        jsonw_object(&w);
        jsonw_object_end(&w);
        jsonw_array(&w);
        jsonw_array_end(&w);
        jsonw_bool(&w, true);
        jsonw_bool(&w, false);
        jsonw_null(&w);
        jsonw_array_end(&w);
        jsonw_key_str(&w, STR("q\"k"));
        jsonw_cstr(&w, "v");
        jsonw_key(&w, "n");
        jsonw_cstr(&w, NULL);
        jsonw_key(&w, "r");
        jsonw_raw(&w, STR("{ }"));
        jsonw_object_end(&w);
        assert_string_equal(buf_cstr(&b),
            "{\"a\":[18446744073709551615,-9223372036854775808,-1,{},[],true,false,null],"
            "\"q\\\"k\":\"v\",\"n\":null,\"r\":{ }}");
        buf_release(&b);
}

static void a_document_becomes_one_line_of_the_same_length(void **state)
{
        (void)state;
        char text[] = "{\r\n\t\"a\":\n1}\n";
        json_single_line(text, sizeof text - 1);
        assert_string_equal(text, "{  \t\"a\": 1} ");
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(removed_members_take_their_comma_along),
            cmocka_unit_test(added_members_come_last),
            cmocka_unit_test(a_replaced_value_can_stand_before_an_added_member),
            cmocka_unit_test(overlapping_edits_are_refused),
            cmocka_unit_test(random_replacements_equal_byte_moves),
            cmocka_unit_test(random_removals_keep_the_rest),
            cmocka_unit_test(written_strings_read_back),
            cmocka_unit_test(written_strings_are_always_utf8),
            cmocka_unit_test(the_writer_puts_the_commas),
            cmocka_unit_test(a_document_becomes_one_line_of_the_same_length),
        };
        return cmocka_run_group_tests_name("json_edit", tests, NULL, NULL);
}
