/*
 * Every call of every scenario fails once, and then from that call on for good: with EIO, ENOSPC,
 * EINTR, EDQUOT and short reads and writes. What was acknowledged stays, what was refused is not
 * there, and the store opens and works.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/faultfs.h"
#include "support/scratch.h"
#include "support/seed.h"
#include "scenarios.h"

static const struct {
        const char *name;
        enum faultfs_kind kind;
        int err;
        unsigned calls;
} FAULTS[] = {
    {"EIO", FAULT_FAIL, EIO, FAULT_ANY},
    {"ENOSPC", FAULT_FAIL, ENOSPC, FAULT_SPACE},
    {"EDQUOT", FAULT_FAIL, EDQUOT, FAULT_SPACE},
    {"EINTR", FAULT_FAIL, EINTR, FAULT_WRITES | FAULT_PREAD},
    {"a short transfer", FAULT_SHORT, ENOSPC, FAULT_WRITES | FAULT_PREAD},
};

/* 0, or 1 with the reason printed. *matched gets how many calls the plan could have hit. */
static int run(const struct scenario *sc, const struct faultfs_plan *plan, long *matched)
{
        struct scratch scratch;
        struct play *p = malloc(sizeof *p);
        char why[400];
        assert_int_equal(scratch_make(&scratch), 0);
        play_init(p, play_fs(), scratch.path);
        p->quiet = true;
        if (sc->before)
                assert_int_equal(sc->before(p), 0);
        struct faultfs *f = faultfs_new(play_fs());
        p->env.fs = faultfs_fs(f);
        faultfs_arm(f, plan);
        int rc = sc->act(p);
        *matched = faultfs_matched(f);
        bool fired = faultfs_fired(f) > 0;
        play_close(p);
        faultfs_arm(f, NULL);
        if (!fired && rc) {
                printf("# without a fault the scenario fails: %d\n", rc);
        } else {
                /* A fault for good may also prevent a record from being taken back. */
                p->strict = !plan->for_good;
                rc = play_check(p, scratch.path, SIZE_MAX - 1, false, why);
                if (rc)
                        printf("# %s\n", why);
        }
        play_release(p);
        faultfs_free(f);
        scratch_remove(&scratch);
        free(p);
        return rc;
}

static void sweep(void **state)
{
        const struct scenario *sc = *state;
        struct seed seed = seed_start();
        long runs = 0;
        alarm(600);
        int every = seed_rounds(20) == 20 ? 1 : 20;
        for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
                for (int good = 0; good < 2; good++) {
                        struct faultfs_plan plan = {.kind = FAULTS[i].kind,
                            .err = FAULTS[i].err,
                            /* A disk cannot cause locks that are never released. */
                            .calls = FAULTS[i].calls & ~(good ? (unsigned)FAULT_FLOCK : 0),
                            .for_good = good};
                        long n = 0;
                        if (FAULTS[i].err == EINTR && good)
                                continue; /* would never end, and never happens */
                        assert_int_equal(run(sc, &plan, &n), 0);
                        for (plan.nth = 1 + (long)seed_below(&seed, (uint64_t)every); plan.nth <= n;
                             plan.nth += every) {
                                long ignored;
                                if (run(sc, &plan, &ignored)) {
                                        printf("# %s at call %ld%s\n", FAULTS[i].name, plan.nth,
                                            good ? " and on" : "");
                                        fail();
                                }
                                runs++;
                        }
                }
        }
        printf("# %ld runs\n", runs);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        struct CMUnitTest *tests = calloc((size_t)SCENARIO_COUNT, sizeof *tests);
        char(*names)[120] = calloc((size_t)SCENARIO_COUNT, sizeof *names);
        for (int i = 0; i < SCENARIO_COUNT; i++) {
                snprintf(names[i], sizeof names[i], "a failing call costs its caller only: %s",
                    SCENARIOS[i].name);
                tests[i] = (struct CMUnitTest){.name = names[i],
                    .test_func = sweep,
                    .initial_state = (void *)(uintptr_t)&SCENARIOS[i]};
        }
        int rc = _cmocka_run_group_tests("faults", tests, (size_t)SCENARIO_COUNT, NULL, NULL);
        free(tests);
        free(names);
        return rc;
}
