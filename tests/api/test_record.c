/* Records as readers see them: what is said about them is text that ends where it says. */
#include "api/rig.h"

static int see(void *ctx, const struct steno_record *r)
{
        struct buf *b = ctx;
        size_t n = 0;
        const char *about = steno_record_about(r, &n);
        assert_int_equal(strlen(about), n);
        buf_puts(b, about);
        buf_putc(b, '\n');
        return 0;
}

static void facts_about_a_record_end_with_a_nul(void **state)
{
        struct rig *r = *state;
        struct buf b;
        buf_init(&b, 0);
        rig_call_in(r->conv, "a");
        rig_append(r, "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}");
        OK(steno_read(r->conv, 0, 0, see, &b, &err));
        assert_non_null(strstr(buf_cstr(&b), "\"role\":\"assistant\",\"calls\":[\"a\"]"));
        assert_non_null(strstr(buf_cstr(&b), "}\n{"));
        assert_non_null(strstr(buf_cstr(&b), "\"role\":\"tool\",\"answers\":[\"a\"]"));
        assert_int_equal(b.p[b.n - 2], '}');
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                facts_about_a_record_end_with_a_nul, rig_setup, rig_teardown),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
