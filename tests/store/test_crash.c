/* Power cuts at every call of every scenario, in every state the disk may be left in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "support/seed.h"
#include "scenarios.h"

static size_t calls_of(void *ctx)
{
        return crashfs_calls(ctx);
}

struct sweep {
        struct play *p;
        size_t quarantined;
};

static int check(void *ctx, const char *dir, size_t k, int state)
{
        struct sweep *s = ctx;
        char why[400];
        (void)state;
        play_tell_inodes(s->p, dir);
        int rc = play_check(s->p, dir, k, true, why);
        if (rc)
                printf("# %s\n", why);
        return rc;
}

static void crash(void **state)
{
        const struct scenario *sc = *state;
        struct seed seed = seed_start();
        struct scratch scratch;
        struct play *p = malloc(sizeof *p);
        size_t made = 0;
        assert_int_equal(scratch_make(&scratch), 0);
        play_init(p, play_fs(), scratch.path);
        if (sc->before)
                assert_int_equal(sc->before(p), 0);
        for (int i = 0; i < p->batch_count; i++)
                if (p->batches[i].acked != SIZE_MAX)
                        p->batches[i].acked = 0;
        struct crashfs *c = crashfs_new(play_fs(), scratch.path);
        assert_non_null(c);
        p->env.fs = crashfs_fs(c);
        p->calls = calls_of;
        p->calls_ctx = c;
        assert_int_equal(sc->act(p), 0);
        play_close(p);
        struct sweep s = {p, 0};
        int rc = crashfs_sweep(c, seed.state, seed_rounds(80), seed_every(4), check, &s, &made);
        printf("# %zu calls, %zu states\n", crashfs_calls(c), made);
        assert_int_equal(rc, 0);
        play_release(p);
        crashfs_free(c);
        scratch_remove(&scratch);
        free(p);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        struct CMUnitTest *tests = calloc((size_t)SCENARIO_COUNT, sizeof *tests);
        char(*names)[120] = calloc((size_t)SCENARIO_COUNT, sizeof *names);
        for (int i = 0; i < SCENARIO_COUNT; i++) {
                snprintf(
                    names[i], sizeof names[i], "a power cut costs nothing: %s", SCENARIOS[i].name);
                tests[i] = (struct CMUnitTest){.name = names[i],
                    .test_func = crash,
                    .initial_state = (void *)(uintptr_t)&SCENARIOS[i]};
        }
        int rc = _cmocka_run_group_tests("crash", tests, (size_t)SCENARIO_COUNT, NULL, NULL);
        free(tests);
        free(names);
        return rc;
}
