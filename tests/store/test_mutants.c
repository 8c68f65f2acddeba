/*
 * Mutants: every place that syncs is left out in turn, and the crash states must notice. A place
 * whose absence nobody notices is either not needed or not tested; both are defects.
 */
#include <execinfo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/faultfs.h"
#include "support/scratch.h"
#include "support/seed.h"
#include "scenarios.h"

#define RANDOM_STATES 4

static size_t calls_of(void *ctx)
{
        return crashfs_calls(ctx);
}

static int check(void *ctx, const char *dir, size_t k, int state)
{
        char why[400];
        (void)state;
        play_tell_inodes(ctx, dir);
        return play_check(ctx, dir, k, true, why);
}

/* Runs a scenario with the plan; 1: a crash state showed the difference, 0: none did, -1: the plan
 * never fired. */
static int run(const struct scenario *sc, struct faultfs *f, const struct faultfs_plan *plan,
    uint64_t seed, bool sweep)
{
        struct scratch scratch;
        struct play *p = malloc(sizeof *p);
        int rc = -1;
        assert_int_equal(scratch_make(&scratch), 0);
        play_init(p, play_fs(), scratch.path);
        p->quiet = true;
        if (sc->before)
                assert_int_equal(sc->before(p), 0);
        for (int i = 0; i < p->batch_count; i++)
                if (p->batches[i].acked != SIZE_MAX)
                        p->batches[i].acked = 0;
        struct crashfs *c = crashfs_new(play_fs(), scratch.path);
        faultfs_over(f, crashfs_fs(c));
        faultfs_arm(f, plan);
        p->env.fs = faultfs_fs(f);
        p->calls = calls_of;
        p->calls_ctx = c;
        assert_int_equal(sc->act(p), 0);
        play_close(p);
        bool fired = faultfs_fired(f) > 0;
        faultfs_arm(f, NULL);
        if (sweep && fired)
                rc = crashfs_sweep(c, seed, RANDOM_STATES, 1, check, p, NULL);
        play_release(p);
        crashfs_free(c);
        scratch_remove(&scratch);
        free(p);
        return rc;
}

static void every_sync_is_needed(void **state)
{
        struct seed seed = seed_start();
        struct faultfs *f = faultfs_new(play_fs());
        struct faultfs_plan plan = {
            .calls = FAULT_SYNCS, .kind = FAULT_FORGET, .nth = 1, .for_good = true};
        int survived = 0;
        (void)state;
        for (int i = 0; i < SCENARIO_COUNT; i++)
                run(&SCENARIOS[i], f, NULL, 0, false);
        int sites = faultfs_sites(f, FAULT_SYNCS);
        for (plan.site = 1; plan.site <= sites; plan.site++) {
                int killed = 0, ran = 0;
                /* The later scenarios are the shorter ones. */
                for (int i = SCENARIO_COUNT - 1; killed == 0 && i >= 0; i--) {
                        int rc = run(&SCENARIOS[i], f, &plan, seed.state, true);
                        ran += rc >= 0;
                        killed = rc == 1 ? i + 1 : 0;
                }
                void *at = (void *)(uintptr_t)faultfs_site(f, FAULT_SYNCS, plan.site);
                char **name = backtrace_symbols(&at, 1);
                if (killed)
                        printf("# sync %d of %d %s: noticed by \"%s\"\n", plan.site, sites,
                            strrchr(name[0], '('), SCENARIOS[killed - 1].name);
                else
                        printf("# sync %d of %d %s: left out in %d scenarios, NOT noticed\n",
                            plan.site, sites, strrchr(name[0], '('), ran);
                free(name);
                survived += !killed;
        }
        faultfs_free(f);
        assert_true(sites >= 8);
        assert_int_equal(survived, 0);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        const struct CMUnitTest tests[] = {
            {"a store that leaves out any one sync is noticed", every_sync_is_needed, NULL, NULL,
                NULL},
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
