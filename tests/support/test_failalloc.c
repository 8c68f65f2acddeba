/* Failing allocations: the n-th one, ours only, and base's own code stands it. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fs.h"
#include "failalloc.h"
#include "scratch.h"

static void only_the_nth_allocation_fails(void **state)
{
        void *p[4];

        (void)state;
        failalloc_start(3);
        p[0] = malloc(10);
        p[1] = calloc(1, 10);
        p[2] = strdup("third");
        p[3] = realloc(NULL, 10);
        assert_true(failalloc_stop());
        assert_int_equal(failalloc_count(), 4);
        assert_non_null(p[0]);
        assert_non_null(p[1]);
        assert_null(p[2]);
        assert_non_null(p[3]);
        for (int i = 0; i < 4; i++)
                free(p[i]);
        void *after = malloc(10);
        assert_non_null(after);
        free(after);
}

static void for_good_means_every_allocation_after(void **state)
{
        (void)state;
        failalloc_start_for_good(2);
        void *a = malloc(10);
        void *b = malloc(10);
        void *c = strndup("c", 1);
        assert_true(failalloc_stop());
        assert_non_null(a);
        assert_null(b);
        assert_null(c);
        free(a);
}

static void *allocate(void *ctx)
{
        (void)ctx;
        return malloc(10);
}

static void other_threads_are_left_alone(void **state)
{
        pthread_t t;
        void *got = NULL;

        (void)state;
        assert_int_equal(pthread_create(&t, NULL, allocate, NULL), 0);
        failalloc_start_for_good(1);
        pthread_join(t, &got);
        assert_false(failalloc_stop());
        assert_non_null(got);
        free(got);
}

static void a_buffer_keeps_the_error_to_the_end(void **state)
{
        struct steno_error err;
        long n = 0;
        bool fired;

        (void)state;
        do {
                struct buf b;
                buf_init(&b, 0);
                failalloc_start(++n);
                for (int i = 0; i < 300; i++)
                        buf_puts(&b, "0123456789");
                fired = failalloc_stop();
                assert_int_equal(buf_check(&b, &err), fired ? STENO_ENOMEM : 0);
                buf_release(&b);
        } while (fired);
        assert_true(n > 3);
}

static void slurp_reports_that_memory_is_short(void **state)
{
        const struct fs *fs = fs_real();
        struct scratch s;
        char *p = NULL;
        size_t n = 0;

        (void)state;
        assert_int_equal(scratch_make(&s), 0);
        int root = fs->open_root(fs, s.path, false);
        assert_int_equal(fs_replace(fs, root, "f", "abc", 3), 0);
        failalloc_start(1);
        int rc = fs_slurp(fs, root, "f", 100, &p, &n);
        assert_true(failalloc_stop());
        assert_int_equal(rc, -ENOMEM);
        assert_null(p);
        fs->close(fs, root);
        assert_int_equal(scratch_remove(&s), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(only_the_nth_allocation_fails),
            cmocka_unit_test(for_good_means_every_allocation_after),
            cmocka_unit_test(other_threads_are_left_alone),
            cmocka_unit_test(a_buffer_keeps_the_error_to_the_end),
            cmocka_unit_test(slurp_reports_that_memory_is_short),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
