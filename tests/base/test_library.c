/* Libraries that are opened only when they are needed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/library.h"

static void finds_functions(void **state)
{
        (void)state;
        static const struct library_entry entries[] = {LIBRARY_ENTRY(floor) LIBRARY_ENTRY(hypot)};
        struct {
                __typeof__(floor) *floor;
                __typeof__(hypot) *hypot;
        } m;
        struct steno_error err = {0};
        assert_int_equal(library_load("libm.so.6", entries, (library_fn *)&m, 2, &err), 0);
        assert_true(m.floor(3.5) == 3);
        assert_true(m.hypot(3, 4) == 5);
}

static void says_which_library_is_missing(void **state)
{
        (void)state;
        struct steno_error err = {0};
        assert_int_equal(library_load("libnowhere.so.7", NULL, NULL, 0, &err), STENO_EIO);
        assert_non_null(strstr(err.msg, "libnowhere.so.7"));
}

static void says_which_function_is_missing(void **state)
{
        (void)state;
        static const struct library_entry entries[] = {{"floor", NULL}, {"no_such_function", NULL}};
        library_fn found[2];
        struct steno_error err = {0};
        assert_int_equal(library_load("libm.so.6", entries, found, 2, &err), STENO_EIO);
        assert_non_null(strstr(err.msg, "no_such_function"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(finds_functions),
            cmocka_unit_test(says_which_library_is_missing),
            cmocka_unit_test(says_which_function_is_missing),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
