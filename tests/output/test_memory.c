/* Memory runs out at every allocation in turn: an error, nothing leaks, nothing is left half
 * done. */
#include "output/play.h"

#include "support/failalloc.h"
#include "output/grep_play.h"
#include "output/lines.h"
#include "output/outline.h"
#include "output/stub_play.h"

static void sample(struct buf *b)
{
        for (int i = 0; i < 400; i++)
                buf_printf(b, i == 200 ? "\x1B[31ma.c:1:2: error: lost\x1B[m\n" : "line %d\n", i);
}

static void a_stub_is_whole_or_an_error(void **state)
{
        struct buf text, want, got;
        struct stub_meta m = {.ref = STR("ctx_1"), .tool = STR("a tool"), .tools = STUB_HAS_ALL};
        long n = 1;
        bool failed;
        (void)state;
        buf_init(&text, 0);
        buf_init(&want, 0);
        sample(&text);
        assert_int_equal(stub_of_text(buf_str(&text), &m, &want, NULL), 0);
        do {
                struct steno_error err = {0};
                buf_init(&got, 0);
                failalloc_start(n++);
                int rc = stub_of_text(buf_str(&text), &m, &got, &err);
                failed = failalloc_stop();
                if (rc == 0) {
                        assert_int_equal(got.n, want.n);
                        assert_memory_equal(got.p, want.p, want.n);
                } else {
                        assert_int_equal(rc, STENO_ENOMEM);
                        assert_int_equal(err.code, STENO_ENOMEM);
                }
                buf_release(&got);
        } while (failed);
        assert_true(n > 10);
        buf_release(&want);
        buf_release(&text);
}

static void grep_is_whole_or_an_error(void **state)
{
        struct buf text;
        long n = 1;
        bool failed;
        (void)state;
        buf_init(&text, 0);
        sample(&text);
        struct grep_options o = {.pattern = STR("line \\d*5$"), .utf8 = true, .context_lines = 2};
        do {
                struct grep_result r;
                failalloc_start(n++);
                int rc = play_grep(text.p, text.n, &o, &r, NULL);
                failed = failalloc_stop();
                if (rc == 0)
                        assert_int_equal(r.total_matches, 40);
                else
                        assert_int_equal(rc, STENO_ENOMEM);
                grep_release(&r);
        } while (failed);
        assert_true(n > 4);
        buf_release(&text);
}

static void an_outline_is_whole_or_absent(void **state)
{
        long n = 1;
        bool failed;
        (void)state;
        do {
                struct buf b;
                buf_init(&b, 0);
                failalloc_start(n++);
                bool ok = outline_put(&b, STR("{\"a\":[1,2,{\"b\":null}]}"), OUTLINE_BYTES);
                failed = failalloc_stop();
                if (!ok)
                        assert_int_equal(b.n, 0);
                buf_release(&b);
        } while (failed);
        assert_true(n > 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_stub_is_whole_or_an_error),
            cmocka_unit_test(grep_is_whole_or_an_error),
            cmocka_unit_test(an_outline_is_whole_or_absent),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
