/* Power cuts at every call of every scenario, in every state the disk may be left in. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
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

/* The header of ids.idx (docs/format.md). */
#define HEADER 96
#define HEADER_LOG 64
#define HEADER_CRC 92

static void path_of(char out[600], const char *root, int conv, const char *file)
{
        snprintf(out, 600, "%s/projects/default/conversations/conv-%d/%s", root, conv, file);
}

/*
 * After a real power cut the log still has its inode. Here it is a copy, beside which ids.idx would
 * be worth nothing: so the index is told the inode of the copy, if it knew the one of the original.
 */
static void tell_inode(const struct play *p, const char *dir, int conv)
{
        char path[600];
        unsigned char h[HEADER];
        struct stat was, is;
        uint32_t crc;
        path_of(path, p->root, conv, "messages.jsonl");
        if (stat(path, &was))
                return;
        path_of(path, dir, conv, "messages.jsonl");
        if (stat(path, &is))
                return;
        path_of(path, dir, conv, "ids.idx");
        int fd = open(path, O_RDWR);
        if (fd < 0)
                return;
        uint64_t from = was.st_ino, to = is.st_ino;
        if (pread(fd, h, HEADER, 0) == HEADER && memcmp(h + HEADER_LOG, &from, sizeof from) == 0 &&
            (crc = hash_crc32c(0, h, HEADER_CRC), memcmp(h + HEADER_CRC, &crc, sizeof crc) == 0)) {
                memcpy(h + HEADER_LOG, &to, sizeof to);
                crc = hash_crc32c(0, h, HEADER_CRC);
                memcpy(h + HEADER_CRC, &crc, sizeof crc);
                assert_int_equal(pwrite(fd, h, HEADER, 0), HEADER);
        }
        close(fd);
}

static int check(void *ctx, const char *dir, size_t k, int state)
{
        struct sweep *s = ctx;
        char why[400];
        (void)state;
        for (int i = 0; i < s->p->conv_count; i++)
                tell_inode(s->p, dir, i);
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
        int rc = crashfs_sweep(c, seed.state, seed_rounds(80), check, &s, &made);
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
