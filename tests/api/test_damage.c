/* Files of a message that were changed, cut or lost: a reader never gets bytes that were not
 * stored. */
#include "output/legacy_carrier.h"
#include "api/damage.h"

/* ---- parts ---- */

static void a_changed_part_is_never_shown(void **state)
{
        struct rig *r = *state;
        struct buf m;
        rig_append(r, "{\"id\":\"u1\",\"role\":\"user\",\"content\":\"hi\"}");
        large_message(&m, "u2");
        append(r, &m);
        sees(r, STENO_OUTPUTS_DEFAULT, 2, "[]");
        /* Also a byte that ends the string: the message would not be JSON. */
        const char wrong[] = {'X', '"'};
        for (size_t i = 0; i < sizeof wrong; i++) {
                change_byte(r, PARTS, 500, wrong[i]);
                sees(r, STENO_OUTPUTS_DEFAULT, 1, "[2]");
                assert_int_equal(read_record(r, "u2"), STENO_ECORRUPT);
        }
        change_byte(r, PARTS, 500, 'U');
        sees(r, STENO_OUTPUTS_DEFAULT, 2, "[]");
        assert_int_equal(read_record(r, "u2"), 0);
        cut(r, PARTS, 99999);
        sees(r, STENO_OUTPUTS_DEFAULT, 1, "[2]");
        assert_int_equal(read_record(r, "u2"), STENO_ECORRUPT);
        buf_release(&m);
}

static void no_append_counts_on_a_changed_part(void **state)
{
        struct rig *r = *state;
        struct buf m;
        large_message(&m, "u1");
        append(r, &m);
        buf_release(&m);
        change_byte(r, PARTS, 500, 'X');
        large_message(&m, "u2");
        append(r, &m);
        buf_release(&m);
        sees(r, STENO_OUTPUTS_DEFAULT, 2, "[]");
        assert_int_equal(set_aside(r), 1);
        rig_check(r);
}

/* ---- outputs ---- */

static void a_changed_output_is_not_shown_in_full(void **state)
{
        struct rig *r = *state;
        struct buf m, got;
        char ref[64];
        buf_init(&got, 0);
        rig_call_in(r->conv, "k");
        large_result(&m, "t1");
        append(r, &m);
        sees(r, STENO_OUTPUTS_FULL, 2, "[]");
        change_byte(r, TOOL, 500, '\xff');
        sees(r, STENO_OUTPUTS_FULL, 2, "[2]");
        rig_last_content(r, STENO_OUTPUTS_FULL, &got);
        assert_non_null(memmem(got.p, got.n, "context_tail", 12)); /* the stub stands for it */
        sees(r, STENO_OUTPUTS_STUB, 2, "[]");
        ref_of(r, ref);
        buf_clear(&got);
        assert_int_equal(
            steno_context_raw(r->conv, ref, 0, 0, rig_gather, &got, NULL), STENO_ECORRUPT);
        buf_release(&got);
        buf_release(&m);
}

static void a_kept_output_that_was_changed_is_not_given_back(void **state)
{
        struct rig *r = *state;
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_KEEP_OUTPUTS};
        struct buf m;
        rig_call_in(r->conv, "k");
        large_result(&m, "t1");
        OK(steno_append(r->conv, m.p, m.n, &opt, NULL, &err));
        assert_int_equal(read_record(r, "t1"), 0);
        change_byte(r, TOOL, 500, 'X');
        assert_int_equal(read_record(r, "t1"), STENO_ECORRUPT);
        buf_release(&m);
}

static void pages_of_a_cut_output_say_so(void **state)
{
        struct rig *r = *state;
        struct buf m, got;
        char ref[64];
        const char *const ops[] = {"read", "tail", "grep"};
        rig_call_in(r->conv, "k");
        large_result(&m, "t1");
        append(r, &m);
        ref_of(r, ref);
        for (int i = 0; i < 2; i++) { /* shorter, then longer */
                cut(r, TOOL, i ? 100000 : 4000);
                for (size_t k = 0; k < 3; k++) {
                        char *json =
                            rig_context(r, ops[k], "{\"ref\":\"%s\",\"pattern\":\"line 7 \"}", ref);
                        assert_true(rig_flag(json, "damaged"));
                        assert_non_null(strstr(json, "is damaged"));
                        steno_free(json);
                }
                buf_init(&got, 0);
                assert_int_equal(steno_context_raw(r->conv, ref, 10, 20, rig_gather, &got, NULL),
                    STENO_ECORRUPT);
                assert_int_equal(got.n, 20);
                buf_release(&got);
        }
        buf_release(&m);
}

/* ---- sending it again ---- */

static void a_resent_message_brings_its_part_back(void **state)
{
        struct rig *r = *state;
        struct buf m;
        large_message(&m, "u1");
        append(r, &m);
        lose(r, PARTS);
        append(r, &m);
        sees(r, STENO_OUTPUTS_DEFAULT, 1, "[]");
        assert_int_equal(set_aside(r), 0);
        change_byte(r, PARTS, 500, 'X');
        append(r, &m);
        sees(r, STENO_OUTPUTS_DEFAULT, 1, "[]");
        assert_int_equal(set_aside(r), 1);
        rig_check(r);
        buf_release(&m);
}

static void a_resent_result_brings_its_output_back(void **state)
{
        struct rig *r = *state;
        struct buf m, want, got;
        buf_init(&want, 0);
        buf_init(&got, 0);
        rig_call_in(r->conv, "k");
        large_result(&m, "t1");
        append(r, &m);
        rig_view(r, STENO_OUTPUTS_FULL, &want);
        for (int i = 0; i < 4; i++) {
                char command[700], path[600];
                put_path(r, "artifacts", path);
                snprintf(command, sizeof command, "rm -r '%s'", path);
                if (i == 0)
                        lose(r, TOOL);
                else if (i == 1)
                        change_byte(r, TOOL, 500, 'X');
                else if (i == 2)
                        cut(r, TOOL, 4000);
                else
                        assert_int_equal(system(command), 0);
                append(r, &m);
                rig_view(r, STENO_OUTPUTS_FULL, &got);
                assert_same(buf_str(&want), buf_str(&got));
                sees(r, STENO_OUTPUTS_FULL, 2, "[]");
                rig_check(r);
        }
        assert_int_equal(set_aside(r), 2);
        buf_release(&want);
        buf_release(&got);
        buf_release(&m);
}

/* A message without an id is known by its key, and its files are made before that can be
 * checked. */
static void a_key_brings_it_back_as_well(void **state)
{
        struct rig *r = *state;
        struct steno_append_options opt = {.size = sizeof opt, .idempotency_key = "once"};
        struct buf m, got;
        buf_init(&got, 0);
        buf_init(&m, 0);
        rig_call_in(r->conv, "k");
        buf_puts(&m, "{\"role\":\"tool\",\"tool_call_id\":\"k\",\"content\":\"");
        for (int i = 0; i < 9000; i++)
                buf_puts(&m, "0123456");
        buf_puts(&m, "\"}");
        OK(steno_append(r->conv, m.p, m.n, &opt, NULL, &err));
        lose(r, TOOL);
        OK(steno_append(r->conv, m.p, m.n, &opt, NULL, &err));
        sees(r, STENO_OUTPUTS_FULL, 2, "[]");
        rig_last_content(r, STENO_OUTPUTS_FULL, &got);
        assert_int_equal(got.n, 63000);
        rig_check(r);
        buf_release(&got);
        buf_release(&m);
}

static void responses_in_the_text_come_back(void **state)
{
        struct rig *r = *state;
        struct buf m, call;
        buf_init(&m, 0);
        buf_init(&call, 0);
        buf_puts(&call, "{\"id\":\"c1\",\"name\":\"t\",\"arguments\":{},\"response\":\"");
        for (int i = 0; i < 9000; i++)
                buf_puts(&call, "0123456");
        buf_puts(&call, "\"}");
        struct buf text;
        buf_init(&text, 0);
        assert_true(legacy_put_call(&text, buf_str(&call)));
        buf_puts(&m, "{\"id\":\"a1\",\"role\":\"assistant\",\"content\":");
        json_put_string(&m, buf_str(&text));
        buf_puts(&m, "}");
        append(r, &m);
        lose(r, TOOL);
        sees(r, STENO_OUTPUTS_FULL, 1, "[1]");
        append(r, &m);
        sees(r, STENO_OUTPUTS_FULL, 1, "[]");
        rig_check(r);
        buf_release(&text);
        buf_release(&call);
        buf_release(&m);
}

static void a_name_that_another_output_took_stays_its(void **state)
{
        struct rig *r = *state;
        struct buf m, other;
        rig_call_in(r->conv, "k");
        large_result(&m, "t1");
        append(r, &m);
        lose(r, TOOL);
        rig_call_in(r->conv, "k");
        large_result(&other, "t2");
        other.p[other.n / 2] = '#';
        append(r, &other);
        append(r, &m);
        sees(r, STENO_OUTPUTS_FULL, 4, "[]");
        append(r, &other);
        assert_int_equal(set_aside(r), 0);
        rig_check(r);
        buf_release(&other);
        buf_release(&m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
        const struct CMUnitTest tests[] = {
            TEST(a_changed_part_is_never_shown),
            TEST(no_append_counts_on_a_changed_part),
            TEST(a_changed_output_is_not_shown_in_full),
            TEST(a_kept_output_that_was_changed_is_not_given_back),
            TEST(pages_of_a_cut_output_say_so),
            TEST(a_resent_message_brings_its_part_back),
            TEST(a_resent_result_brings_its_output_back),
            TEST(a_key_brings_it_back_as_well),
            TEST(responses_in_the_text_come_back),
            TEST(a_name_that_another_output_took_stays_its),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
