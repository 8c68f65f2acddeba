/* Each allocation fails in turn: the call reports it, and the store is as if the call had not been
 * made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/failalloc.h"
#include "support/scratch.h"
#include "support/seed.h"
#include "scenarios.h"

struct failing {
        const struct scenario *sc;
        long nth;
        bool for_good;
        bool fired;
        long count;
};

/* The play allocates memory too; what it needs is allocated before it starts. */
static int run(struct failing *f)
{
        struct scratch scratch;
        struct play *p = malloc(sizeof *p);
        char why[400] = "";
        assert_int_equal(scratch_make(&scratch), 0);
        play_init(p, play_fs(), scratch.path);
        p->quiet = true;
        if (f->sc->before)
                assert_int_equal(f->sc->before(p), 0);
        p->alloc_nth = f->nth;
        p->alloc_for_good = f->for_good;
        p->alloc_start = f->for_good ? failalloc_start_for_good : failalloc_start;
        p->alloc_stop = failalloc_stop;
        p->alloc_count = failalloc_count;
        f->sc->act(p);
        p->alloc_start = NULL;
        f->fired = p->alloc_fired;
        f->count = p->alloc_seen;
        play_close(p);
        int rc = play_check(p, scratch.path, SIZE_MAX - 1, false, why);
        if (rc)
                printf("# %s: allocation %ld%s: %s\n", f->sc->name, f->nth,
                    f->for_good ? " and on" : "", why);
        play_release(p);
        scratch_remove(&scratch);
        free(p);
        return rc;
}

static void sweep(void **state)
{
        struct failing f = {.sc = *state};
        struct seed seed = seed_start();
        long every = seed_rounds(20) == 20 ? 1 : 7;
        assert_int_equal(run(&f), 0);
        long total = f.count;
        assert_true(total > 0);
        for (int good = 0; good < 2; good++) {
                f.for_good = good;
                for (f.nth = 1 + (long)seed_below(&seed, (uint64_t)every); f.nth <= total;
                     f.nth += every)
                        assert_int_equal(run(&f), 0);
        }
        printf("# %ld allocations\n", total);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        struct CMUnitTest *tests = calloc((size_t)SCENARIO_COUNT, sizeof *tests);
        char(*names)[120] = calloc((size_t)SCENARIO_COUNT, sizeof *names);
        size_t n = 0;
        for (int i = 0; i < SCENARIO_COUNT; i++) {
                if (strncmp(SCENARIOS[i].name, "concurrent", 10) == 0)
                        continue; /* counted in one thread only */
                snprintf(names[i], sizeof names[i], "running out of memory costs one call: %s",
                    SCENARIOS[i].name);
                tests[n++] = (struct CMUnitTest){.name = names[i],
                    .test_func = sweep,
                    .initial_state = (void *)(uintptr_t)&SCENARIOS[i]};
        }
        int rc = _cmocka_run_group_tests("oom", tests, n, NULL, NULL);
        free(tests);
        free(names);
        return rc;
}
