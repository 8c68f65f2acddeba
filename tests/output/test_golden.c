/*
 * Golden stubs: for outputs as they come every day, what the model sees. A person agreed with the
 * files in golden/; STENO_GOLDEN_UPDATE=1 writes them anew, to be read before they are committed.
 */
#include "output/play.h"

#include "output/stub_play.h"

static void check_golden(const char *name, struct str text, const struct stub_meta *m)
{
        char path[512];
        struct buf b, want;
        buf_init(&b, 0);
        buf_init(&want, 0);
        assert_int_equal(stub_of_text(text, m, &b, NULL), 0);
        snprintf(path, sizeof(path), "%s/%s.stub", GOLDEN_DIR, name);
        const char *update = getenv("STENO_GOLDEN_UPDATE");
        FILE *f = fopen(path, update ? "wb" : "rb");
        assert_non_null(f);
        if (update) {
                fwrite(b.p, 1, b.n, f);
        } else {
                char block[4096];
                for (size_t n; (n = fread(block, 1, sizeof(block), f)) > 0;)
                        buf_put(&want, block, n);
                assert_string_equal(buf_cstr(&b), buf_cstr(&want));
        }
        fclose(f);
        buf_release(&want);
        buf_release(&b);
}

static void a_failing_build_shows_its_error_though_it_stands_in_the_middle(void **state)
{
        struct stub_meta m = {.ref = STR("ctx_01JBUILD"),
            .tool = STR("shell"),
            .call = STR("call_1"),
            .has_exit = true,
            .exit_code = 2,
            .tools = STUB_HAS_ALL};
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        for (int i = 1; i <= 400; i++) {
                buf_printf(
                    &b, "[%d/800] cc -O2 -Wall -Werror -c src/part_%d/error_%d.c\n", i, i % 7, i);
                if (i != 212)
                        continue;
                buf_puts(&b,
                    "\x1B[1msrc/net/socket.c:\x1B[m In function '\x1B[1msocket_open\x1B[m':\n"
                    "src/net/socket.c:88:17: \x1B[31merror: \x1B[m'SOCK_CLOEXEC' undeclared "
                    "(first use in this function)\n"
                    "   88 |         int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, "
                    "0);\n"
                    "      |                                                ^~~~~~~~~~~~\n"
                    "src/net/socket.c:88:17: note: each undeclared identifier is reported "
                    "only once\n"
                    "make[1]: *** [Makefile:31: build/net/socket.o] Error 1\n"
                    "make[1]: *** Waiting for unfinished jobs....\n");
        }
        buf_puts(&b, "make: *** [Makefile:9: all] Error 2\n");
        check_golden("failing_build", buf_str(&b), &m);
        buf_release(&b);
}

static void a_passing_test_run_reads_as_passed(void **state)
{
        struct stub_meta m = {.ref = STR("ctx_01JTESTS"),
            .server = STR("ci"),
            .tool = STR("run_tests"),
            .call = STR("call_2"),
            .has_exit = true,
            .tools = STUB_HAS_ALL};
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_puts(&b, "============================= test session starts ===================\n"
                     "platform linux -- Python 3.11.2, pytest-7.2.1\ncollected 300 items\n\n");
        for (int i = 1; i <= 300; i++)
                buf_printf(&b, "tests/test_errors.py::test_failure_is_reported[%d] PASSED %*d%%\n",
                    i, 12, i / 3);
        buf_puts(&b, "\n============================= 300 passed in 4.21s ===================\n");
        check_golden("passing_tests", buf_str(&b), &m);
        buf_release(&b);
}

static void five_megabytes_of_json_show_their_shape(void **state)
{
        struct stub_meta m = {.ref = STR("ctx_01JJSON"),
            .server = STR("crm"),
            .tool = STR("list_orders"),
            .call = STR("call_3"),
            .kind = STUB_JSON,
            .tools = STUB_HAS_ALL};
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_puts(&b, "{\"total\":70000,\"next\":null,\"orders\":[");
        for (int i = 0; i < 70000; i++) {
                buf_printf(&b, "%s{\"id\":%d,\"customer\":{\"name\":\"Zo\xC3\xAB %d\",\"vip\":%s},",
                    i ? "," : "", i, i % 97, i % 5 ? "false" : "true");
                buf_printf(&b, "\"lines\":[%s],\"note\":%s}",
                    i % 3 ? "{\"sku\":\"a-1\",\"qty\":2}" : "", i % 4 ? "null" : "\"gift\"");
        }
        buf_puts(&b, "]}");
        assert_true(b.n > 5000000);
        check_golden("json_array", buf_str(&b), &m);
        buf_release(&b);
}

static void a_binary_says_so(void **state)
{
        struct stub_meta m = {.ref = STR("ctx_01JPNG"),
            .tool = STR("screenshot"),
            .call = STR("call_4"),
            .tools = STUB_HAS_ALL};
        struct buf b;
        struct seed s = {7};
        (void)state;
        buf_init(&b, 0);
        buf_put(&b, "\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\4\0\0\0\3\0", 24);
        while (b.n < 90000)
                buf_putc(&b, (char)seed_next(&s));
        check_golden("binary", buf_str(&b), &m);
        buf_release(&b);
}

static void a_diff_just_over_the_limit_keeps_both_ends(void **state)
{
        struct stub_meta m = {.ref = STR("ctx_01JDIFF"),
            .tool = STR("git_diff"),
            .call = STR("call_5"),
            .has_exit = true,
            .tools = STUB_HAS_ALL};
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_puts(&b, "diff --git a/src/main.c b/src/main.c\n--- a/src/main.c\n+++ b/src/main.c\n");
        for (int i = 0; i < 297; i++) {
                if (i % 99 == 0)
                        buf_printf(&b, "@@ -%d,99 +%d,99 @@\n", i + 1, i + 1);
                else
                        buf_printf(&b, "%c  x%d = %d;\n", "-+ "[i % 3], i, i);
        }
        assert_true(b.n > 4000 && b.n < 4600);
        check_golden("diff", buf_str(&b), &m);
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_failing_build_shows_its_error_though_it_stands_in_the_middle),
            cmocka_unit_test(a_passing_test_run_reads_as_passed),
            cmocka_unit_test(five_megabytes_of_json_show_their_shape),
            cmocka_unit_test(a_binary_says_so),
            cmocka_unit_test(a_diff_just_over_the_limit_keeps_both_ends),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
