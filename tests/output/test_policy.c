/* When an output leaves the conversation. */
#include "output/play.h"

#include "output/policy.h"
#include "output/stub_play.h"

static struct str repeated(struct buf *b, const char *piece, size_t times)
{
        buf_clear(b);
        for (size_t i = 0; i < times; i++)
                buf_puts(b, piece);
        return buf_str(b);
}

static void limits_are_characters_or_bytes_whichever_is_passed_first(void **state)
{
        struct policy p;
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        policy_init(&p, POLICY_DEFAULT, 0, 0);
        assert_false(policy_is_large(&p, repeated(&b, "x", 4000)));
        assert_true(policy_is_large(&p, repeated(&b, "x", 4001)));
        assert_false(policy_is_large(&p, repeated(&b, "\xE2\x82\xAC", 4000)));
        assert_true(policy_is_large(&p, repeated(&b, "\xE2\x82\xAC", 4001)));
        policy_init(&p, POLICY_DEFAULT, 100000, 0);
        assert_false(policy_is_large(&p, repeated(&b, "x", 16384)));
        assert_true(policy_is_large(&p, repeated(&b, "x", 16385)));
        buf_release(&b);
}

static void the_runtime_store_counts_bytes_only(void **state)
{
        struct policy p;
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        policy_init(&p, POLICY_RUNTIME_STORE, 0, 0);
        assert_false(policy_is_large(&p, repeated(&b, "x", 51200)));
        assert_true(policy_is_large(&p, repeated(&b, "x", 51201)));
        buf_release(&b);
}

static void limits_below_the_floor_are_raised(void **state)
{
        struct policy p;
        (void)state;
        policy_init(&p, POLICY_DEFAULT, 1, 2047);
        assert_int_equal(p.max_chars, 2048);
        assert_int_equal(p.max_bytes, 2048);
        policy_init(&p, POLICY_DEFAULT, 2049, 5000);
        assert_int_equal(p.max_chars, 2049);
        assert_int_equal(p.max_bytes, 5000);
}

static void profiles_have_names(void **state)
{
        enum policy_profile p = POLICY_DEFAULT;
        (void)state;
        assert_true(policy_profile_parse(STR("runtime-store"), &p));
        assert_int_equal(p, POLICY_RUNTIME_STORE);
        assert_true(policy_profile_parse(STR(""), &p));
        assert_int_equal(p, POLICY_DEFAULT);
        assert_false(policy_profile_parse(STR("Default"), &p));
        assert_string_equal(policy_profile_name(POLICY_RUNTIME_STORE), "runtime-store");
}

static void counting_does_not_depend_on_the_cuts(void **state)
{
        struct seed s = seed_start();
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        for (int i = 0; i < seed_rounds(20000); i++) {
                struct policy_count c = {0};
                size_t n = (size_t)seed_below(&s, 40);
                buf_clear(&b);
                /* Bytes of sequences, whole and broken. */
                for (size_t k = 0; k < n; k++)
                        buf_putc(&b, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF\xED\xA0"[seed_below(
                                         &s, 13)]);
                for (size_t at = 0; at < b.n;) {
                        size_t step = 1 + (size_t)seed_below(&s, b.n - at);
                        policy_count_feed(&c, b.p + at, step);
                        at += step;
                        assert_int_equal(policy_count_chars(&c), text_count(b.p, at));
                }
                assert_int_equal(c.bytes, b.n);
        }
        buf_release(&b);
}

static void passing_is_noticed_at_the_byte_and_stays(void **state)
{
        struct policy p;
        struct policy_count c = {0};
        (void)state;
        policy_init(&p, POLICY_DEFAULT, 2048, 100000);
        for (int i = 0; i < 2048; i++)
                policy_count_feed(&c, "\xC3\xA9", 2);
        assert_false(policy_passed(&p, &c));
        policy_count_feed(&c, "\xC3", 1);
        assert_true(policy_passed(&p, &c));
        policy_count_feed(&c, "\xA9", 1);
        assert_true(policy_passed(&p, &c));
}

static void a_stub_is_recognised_and_an_imitation_is_not(void **state)
{
        struct policy p;
        struct buf b, big;
        struct stub_meta m = {.ref = STR("ctx_01"), .tool = STR("t"), .tools = STUB_HAS_ALL};
        (void)state;
        policy_init(&p, POLICY_DEFAULT, 0, 0);
        buf_init(&b, 0);
        buf_init(&big, 0);
        repeated(&big, "a line of text that is long enough to fill a snippet\n", 4000);
        assert_int_equal(stub_of_text(buf_str(&big), &m, &b, NULL), 0);
        assert_true(text_count(b.p, b.n) > 4000);
        assert_true(policy_is_stub(buf_str(&b)));
        assert_false(policy_is_large(&p, buf_str(&b)));
        /* The frame around a large content does not make it a stub. */
        buf_clear(&b);
        buf_puts(&b, "[INCOMPLETE: 1 B of 2 B shown; the rest is in ctx_1]\n");
        buf_put_str(&b, buf_str(&big));
        buf_puts(&b, "More: x");
        assert_false(policy_is_stub(buf_str(&b)));
        assert_true(policy_is_large(&p, buf_str(&b)));
        assert_false(policy_is_stub(STR("[INCOMPLETE: something else]\nMore: x")));
        assert_false(policy_is_stub(STR("plain")));
        assert_false(policy_is_stub(STR("")));
        assert_true(
            policy_is_stub(STR("abc\n\n[Full output: @state/logs/tool-results/c1/m1.json]")));
        buf_release(&big);
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(limits_are_characters_or_bytes_whichever_is_passed_first),
            cmocka_unit_test(the_runtime_store_counts_bytes_only),
            cmocka_unit_test(limits_below_the_floor_are_raised),
            cmocka_unit_test(profiles_have_names),
            cmocka_unit_test(counting_does_not_depend_on_the_cuts),
            cmocka_unit_test(passing_is_noticed_at_the_byte_and_stays),
            cmocka_unit_test(a_stub_is_recognised_and_an_imitation_is_not),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
