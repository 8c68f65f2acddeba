/* test_about.c - what is written about a message is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/about.h"

static void written(const struct about *a, const char *expected)
{
        struct buf b;
        buf_init(&b, 0);
        about_write(a, &b);
        assert_string_equal(buf_cstr(&b), expected);
        buf_release(&b);
}

static void defaults_are_left_out(void **state)
{
        (void)state;
        written(&(struct about){0}, "{}");
        written(&(struct about){.role = STR("user")}, "{\"role\":\"user\"}");
}

static void every_member_comes_back(void **state)
{
        (void)state;
        struct str calls[] = {STR("call_0"), STR("a\"b\n")};
        struct str answers[] = {STR("call_0")};
        struct about_part parts[] = {{17, 40000, STR("p1")}, {90, 1ull << 40, STR("p2")}};
        struct about a = {
            .kind = STR("supersede"),
            .target = STR("msg_1"),
            .role = STR("assistant"),
            .id = STR("msg_2"),
            .calls = calls,
            .call_count = 2,
            .answers = answers,
            .answer_count = 1,
            .mode = STR("agent"),
            .run = STR("run_1"),
            .ref = STR("ctx_1"),
            .key = STR("k\xc3\xa9y"),
            .sha = STR("00ff"),
            .parts = parts,
            .part_count = 2,
            .own_fields = true,
            .off_context = true,
            .error = true,
            .orphan = true,
            .duplicate = true,
            .keep_output = true,
        };
        struct buf first, second;
        buf_init(&first, 0);
        buf_init(&second, 0);
        about_write(&a, &first);
        struct arena arena;
        arena_init(&arena);
        struct about back;
        struct steno_error err;
        assert_int_equal(about_read(buf_str(&first), &arena, &back, &err), 0);
        assert_true(str_is(back.calls[1], "a\"b\n"));
        assert_true(back.parts[1].size == 1ull << 40);
        assert_true(back.keep_output && back.duplicate && back.orphan && back.error);
        about_write(&back, &second);
        assert_string_equal(buf_cstr(&first), buf_cstr(&second));
        arena_release(&arena);
        buf_release(&first);
        buf_release(&second);
}

static void unknown_members_are_skipped_and_wrong_ones_are_damage(void **state)
{
        (void)state;
        struct arena arena;
        arena_init(&arena);
        struct about a;
        struct steno_error err;
        assert_int_equal(
            about_read(STR("{\"new\":[1,{}],\"role\":\"user\",\"z\":null}"), &arena, &a, &err), 0);
        assert_true(str_is(a.role, "user"));
        const struct str bad[] = {STR(""), STR("[]"), STR("{\"role\":1}"), STR("{\"calls\":\"x\"}"),
            STR("{\"calls\":[1]}"), STR("{\"parts\":[[1]]}"), STR("{\"role\":\"user\"")};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                assert_int_equal(about_read(bad[i], &arena, &a, &err), STENO_ECORRUPT);
        assert_true(str_is(a.role, "user"));
        arena_release(&arena);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(defaults_are_left_out),
            cmocka_unit_test(every_member_comes_back),
            cmocka_unit_test(unknown_members_are_skipped_and_wrong_ones_are_damage),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
