/* Arenas: memory that is given back is used again, and memory in use is not touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../support/seed.h"
#include "base/arena.h"

static void the_end_of_the_last_allocation_is_used_again(void **state)
{
        (void)state;
        struct arena a;
        arena_init(&a);
        char *first = arena_alloc(&a, 1000);
        arena_trim(&a, first, 1000, 10);
        char *second = arena_alloc(&a, 100);
        assert_true(second >= first + 10 && second < first + 100);
        arena_trim(&a, first, 1000, 0); /* no longer the last */
        assert_ptr_not_equal(arena_alloc(&a, 1), first);
        arena_release(&a);
}

static void a_rewind_keeps_what_was_there_before(void **state)
{
        (void)state;
        struct seed s = seed_start();
        for (int i = 0; i < seed_rounds(20000); i++) {
                struct arena a;
                char *kept[16];
                size_t sizes[16], n = 0;
                arena_init(&a);
                while (n < 16) {
                        struct arena_mark mark = arena_mark(&a);
                        size_t more = seed_below(&s, 4);
                        while (more--) {
                                size_t size = seed_below(&s, 9000);
                                char *gone = arena_alloc(&a, size);
                                assert_non_null(gone);
                                memset(gone, 0xff, size);
                        }
                        arena_rewind(&a, mark);
                        sizes[n] = seed_below(&s, 6000);
                        kept[n] = arena_alloc(&a, sizes[n]);
                        assert_non_null(kept[n]);
                        memset(kept[n], (int)n, sizes[n]);
                        n++;
                }
                for (size_t k = 0; k < n; k++)
                        for (size_t b = 0; b < sizes[k]; b++)
                                if (kept[k][b] != (char)k)
                                        fail_msg("byte %zu of allocation %zu changed", b, k);
                arena_release(&a);
        }
}

static void a_rewind_gives_memory_back(void **state)
{
        (void)state;
        struct arena a;
        arena_init(&a);
        char *first = arena_alloc(&a, 64);
        struct arena_mark mark = arena_mark(&a);
        char *second = arena_alloc(&a, 64);
        arena_rewind(&a, mark);
        assert_ptr_equal(arena_alloc(&a, 64), second);
        assert_non_null(first);
        arena_release(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_end_of_the_last_allocation_is_used_again),
            cmocka_unit_test(a_rewind_keeps_what_was_there_before),
            cmocka_unit_test(a_rewind_gives_memory_back),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
