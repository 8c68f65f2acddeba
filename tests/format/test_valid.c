/* test_valid.c - whatever was damaged, each provider accepts what it gets (F1, F2, F3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"
#include "gen.h"
#include "model/repair.h"
#include "format/accept.h"

static uint64_t seed;

/* What a view does: read, repair, write. */
static void view(
    const struct format *from, const struct format *to, const struct buf *in, struct buf *out)
{
        struct json j;
        struct arena arena;
        struct history h, repaired;
        struct steno_error err = {0};
        json_init(&j);
        arena_init(&arena);
        buf_clear(out);
        struct repair_options opt = {.synthesize = true};
        struct writer w = {
            .out = out, .arena = &arena, .valid = true, .strip_own = true, .strict = true};
        assert_int_equal(json_parse(&j, in->p, in->n, NULL, &err), 0);
        assert_int_equal(format_read_history(from, &j, 0, &arena, &h, &err), 0);
        assert_int_equal(repair_history(&h, &opt, &arena, &repaired), 0);
        assert_int_equal(format_write_history(to, &w, &repaired, &err), 0);
        arena_release(&arena);
        json_release(&j);
}

static bool is_accepted(const char *provider, const struct buf *history, struct buf *why)
{
        struct json j;
        struct steno_error err = {0};
        json_init(&j);
        buf_clear(why);
        assert_int_equal(json_parse(&j, history->p, history->n, NULL, &err), 0);
        assert_int_equal(accept_history(provider, &j, why, &err), 0);
        bool empty = json_count(&j, 0) == 0;
        json_release(&j);
        /* A history with nothing left in it is not sent. */
        return empty || str_is(buf_str(why), "[]");
}

static void accepted(const char *provider)
{
        const struct format *to = format_find(provider), *from;
        struct buf in, out, why;
        buf_init(&in, 0);
        buf_init(&out, 0);
        buf_init(&why, 0);
        for (size_t k = 0; (from = format_at(k)) && gen_knows(from->name); k++) {
                for (unsigned i = 0; i < gen_count(30); i++) {
                        struct gen g = {.state = seed + i * 7919u,
                            .out = &in,
                            .format = from->name,
                            .damage = i % 5 != 0,
                            .known = true};
                        buf_clear(&in);
                        gen_history(&g);
                        view(from, to, &in, &out);
                        if (!is_accepted(provider, &out, &why)) {
                                fprintf(stderr, "# %.4000s\n# %.4000s\n", buf_cstr(&in),
                                    buf_cstr(&out));
                                fail_msg("%s number %u: %.600s", from->name, i, buf_cstr(&why));
                        }
                }
        }
        buf_release(&in);
        buf_release(&out);
        buf_release(&why);
}

static void openai_accepts_every_view_of_every_damaged_history(void **state)
{
        (void)state;
        accepted("openai");
}

static void anthropic_accepts_every_view_of_every_damaged_history(void **state)
{
        (void)state;
        accepted("anthropic");
}

static void gemini_accepts_every_view_of_every_damaged_history(void **state)
{
        (void)state;
        accepted("gemini");
}

static void responses_accepts_every_view_of_every_damaged_history(void **state)
{
        (void)state;
        accepted("responses");
}

/* Counted by hand as well: every call is followed by one output, and there are no other outputs. */
static void responses_views_have_one_output_for_each_call(void **state)
{
        (void)state;
        const struct format *from, *to = &format_responses;
        struct buf in, out;
        buf_init(&in, 0);
        buf_init(&out, 0);
        for (size_t k = 0; (from = format_at(k)) && gen_knows(from->name); k++) {
                for (unsigned i = 0; i < gen_count(36); i++) {
                        struct gen g = {.state = seed + i * 7919u,
                            .out = &in,
                            .format = from->name,
                            .damage = true,
                            .known = true};
                        struct json j;
                        struct steno_error err = {0};
                        struct buf open;
                        json_init(&j);
                        buf_init(&open, 0);
                        buf_clear(&in);
                        gen_history(&g);
                        view(from, to, &in, &out);
                        assert_int_equal(json_parse(&j, out.p, out.n, NULL, &err), 0);
                        long balance = 0;
                        for (json_ref e = json_child(&j, 0); e != JSON_NONE;
                             e = json_next(&j, 0, e)) {
                                json_ref type = json_get(&j, e, "type");
                                if (json_is(&j, type, "function_call"))
                                        balance++;
                                if (json_is(&j, type, "function_call_output"))
                                        balance--;
                                assert_true(balance >= 0);
                                if (json_is(&j, json_get(&j, e, "role"), "user"))
                                        assert_int_equal(balance, 0);
                        }
                        assert_int_equal(balance, 0);
                        buf_release(&open);
                        json_release(&j);
                }
        }
        buf_release(&in);
        buf_release(&out);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        seed = gen_seed();
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(openai_accepts_every_view_of_every_damaged_history),
            cmocka_unit_test(anthropic_accepts_every_view_of_every_damaged_history),
            cmocka_unit_test(gemini_accepts_every_view_of_every_damaged_history),
            cmocka_unit_test(responses_accepts_every_view_of_every_damaged_history),
            cmocka_unit_test(responses_views_have_one_output_for_each_call),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
