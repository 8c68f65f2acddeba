/*
 * Real processes, killed at any moment. Each writer notes in a pipe what was acknowledged (in one
 * write of less than PIPE_BUF, so never half); afterwards all of it is there, once, in order.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "support/seed.h"
#include "play.h"
#include "api/api_store.h"
#include "store/files/files.h"

#define WRITERS 8
#define ROUND_IDS 4096

static int open_both(
    const char *root, const char *id, struct steno_store **store, struct steno_conv **conv)
{
        struct steno_error err = {0};
        int rc = steno_open(root, NULL, store, &err);
        if (rc == 0)
                rc = steno_conv_open(*store, NULL, id, conv, &err);
        if (rc)
                printf("# open: %s\n", err.msg);
        return rc;
}

static void nap(unsigned us)
{
        struct timespec ts = {us / 1000000, (long)(us % 1000000) * 1000};
        nanosleep(&ts, NULL);
}

/* A child: appends batches until it is killed; "n" to the pipe for every receipt. */
static _Noreturn void write_on(const char *root, const char *conv, int me, int from, int pipe_fd)
{
        struct steno_store *store;
        struct steno_conv *c;
        char json[4000];
        if (open_both(root, conv, &store, &c))
                _exit(1);
        for (int i = from;; i++) {
                struct steno_error err = {0};
                struct steno_append_options opt = {
                    .size = sizeof opt, .durability = i % 3 ? STENO_FULL : STENO_PROCESS};
                int count = 1 + i % 3;
                size_t n = 0;
                json[n++] = '[';
                for (int k = 0; k < count; k++)
                        n += (size_t)snprintf(json + n, sizeof json - n,
                            "%s{\"id\":\"w%d.%d.%d/%d\",\"role\":\"user\",\"content\":\"%0*d\"}",
                            k ? "," : "", me, i, k, count, 10 + i % 7 * 100, i);
                json[n++] = ']';
                if (steno_append(c, json, n, &opt, NULL, &err)) {
                        printf("# writer %d: %s\n", me, err.msg);
                        fflush(stdout);
                        _exit(2);
                }
                if (write(pipe_fd, &i, sizeof i) != sizeof i)
                        _exit(0);
        }
}

struct seen {
        int next[WRITERS]; /* for each writer, the earliest batch that may come next */
        int writer;        /* whose batch is being read */
        int batch;
        int part; /* of that batch, which comes next; 0: a new batch */
        int count;
        uint64_t seq;
        char why[300];
};

static int look(void *ctx, const struct steno_record *r)
{
        struct seen *s = ctx;
        int writer, batch, part, count;
        if (steno_record_seq(r) != ++s->seq ||
            sscanf(steno_record_id(r), "w%d.%d.%d/%d", &writer, &batch, &part, &count) != 4) {
                snprintf(s->why, sizeof s->why, "seq %llu after %llu: %s",
                    (unsigned long long)steno_record_seq(r), (unsigned long long)s->seq - 1,
                    steno_record_id(r));
                return 1;
        }
        bool ok = part == s->part;
        if (s->part == 0) {
                /* A batch without a receipt may be missing, one with a receipt may not. */
                ok = ok && batch >= s->next[writer];
                s->writer = writer;
                s->batch = batch;
                s->count = count;
        }
        ok = ok && writer == s->writer && batch == s->batch && count == s->count;
        if (!ok) {
                snprintf(s->why, sizeof s->why, "seq %llu: %s does not belong here",
                    (unsigned long long)s->seq, steno_record_id(r));
                return 1;
        }
        s->part = (part + 1) % count;
        if (s->part == 0)
                s->next[writer] = batch + 1;
        return 0;
}

/* Compares everything in a conversation with the receipts of its writers. */
static int judge(
    const char *root, const char *conv, const int *acked, bool mine_only, int me, int *next)
{
        struct steno_store *store;
        struct steno_conv *c;
        struct steno_error err = {0};
        struct seen s = {.seq = 0};
        if (open_both(root, conv, &store, &c))
                return 1;
        int rc = steno_read(c, 0, 0, look, &s, &err);
        if (rc < 0)
                snprintf(s.why, sizeof s.why, "%s", err.msg);
        if (rc == 0 && s.part)
                rc = snprintf(s.why, sizeof s.why, "half a batch at the end");
        for (int w = 0; rc == 0 && w < WRITERS; w++) {
                if ((!mine_only || w == me) && s.next[w] <= acked[w])
                        rc = snprintf(s.why, sizeof s.why, "writer %d was told %d, %d is the last",
                            w, acked[w], s.next[w] - 1);
                next[w] = s.next[w] > next[w] ? s.next[w] : next[w];
        }
        steno_conv_close(c);
        steno_close(store);
        if (rc)
                printf("# %s: %s\n", conv, s.why);
        return rc != 0;
}

static void killed(void **state)
{
        struct seed seed = seed_start();
        struct scratch scratch;
        struct steno_store *store;
        int next[WRITERS] = {0};
        int rounds = seed_rounds(200);
        char name[WRITERS][16];
        long total = 0;
        (void)state;
        assert_int_equal(scratch_make(&scratch), 0);
        assert_int_equal(steno_open(scratch.path, NULL, &store, NULL), 0);
        for (int w = 0; w < WRITERS; w++) {
                struct steno_conv *c;
                /* Half of them share one conversation, the others have their own. */
                snprintf(name[w], sizeof name[w], "c%d", w < WRITERS / 2 ? 0 : w);
                if (steno_conv_create(store, NULL, name[w], NULL, &c, NULL) == 0)
                        steno_conv_close(c);
        }
        steno_close(store);
        for (int round = 0; round < rounds; round++) {
                pid_t pid[WRITERS];
                int fd[WRITERS][2], acked[WRITERS];
                for (int w = 0; w < WRITERS; w++) {
                        acked[w] = -1;
                        assert_int_equal(pipe(fd[w]), 0);
                        fcntl(fd[w][1], F_SETPIPE_SZ, 1 << 20);
                        fflush(stdout);
                        pid[w] = fork();
                        if (pid[w] == 0)
                                write_on(scratch.path, name[w], w, next[w], fd[w][1]);
                        close(fd[w][1]);
                }
                nap(5000 + (unsigned)seed_below(&seed, 60000));
                for (int w = 0; w < WRITERS; w++) {
                        kill(pid[w], SIGKILL);
                        nap((unsigned)seed_below(&seed, 3000));
                }
                for (int w = 0; w < WRITERS; w++) {
                        int status, i;
                        waitpid(pid[w], &status, 0);
                        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
                        while (read(fd[w][0], &i, sizeof i) == sizeof i) {
                                acked[w] = i;
                                total++;
                        }
                        close(fd[w][0]);
                }
                assert_int_equal(judge(scratch.path, "c0", acked, true, 0, next), 0);
                for (int w = 1; w < WRITERS; w++)
                        assert_int_equal(judge(scratch.path, name[w], acked, true, w, next), 0);
        }
        printf("# %d rounds, %ld receipts\n", rounds, total);
        assert_true(total > rounds);
        scratch_remove(&scratch);
}

/* ---- many at once ---- */

#define CROWD 32

static void crowd(void **state)
{
        struct scratch scratch;
        struct steno_store *store;
        struct steno_conv *c;
        pid_t pid[CROWD];
        int each = seed_rounds(400);
        (void)state;
        assert_int_equal(scratch_make(&scratch), 0);
        assert_int_equal(steno_open(scratch.path, NULL, &store, NULL), 0);
        assert_int_equal(steno_conv_create(store, NULL, "crowd", NULL, &c, NULL), 0);
        fflush(stdout);
        for (int w = 0; w < CROWD; w++) {
                pid[w] = fork();
                if (pid[w])
                        continue;
                struct steno_store *s;
                struct steno_conv *mine;
                if (open_both(scratch.path, "crowd", &s, &mine))
                        _exit(1);
                for (int i = 0; i < each; i++) {
                        char json[300];
                        int n = snprintf(json, sizeof json,
                            "[{\"id\":\"p%d.%d.0\",\"role\":\"user\",\"content\":\"a\"},"
                            "{\"id\":\"p%d.%d.1\",\"role\":\"user\",\"content\":\"b\"}]",
                            w, i, w, i);
                        if (steno_append(mine, json, (size_t)n, NULL, NULL, NULL))
                                _exit(2);
                }
                _exit(0);
        }
        for (int w = 0; w < CROWD; w++) {
                int status;
                waitpid(pid[w], &status, 0);
                assert_int_equal(status, 0);
        }
        uint64_t last;
        assert_int_equal(steno_conv_last_seq(c, &last, NULL), 0);
        assert_int_equal(last, (uint64_t)CROWD * (uint64_t)each * 2);
        steno_conv_close(c);
        steno_close(store);
        scratch_remove(&scratch);
}

/* ---- an append races with rm ---- */

static void removed(void **state)
{
        struct seed seed = seed_start();
        struct scratch scratch;
        int rounds = seed_rounds(100);
        (void)state;
        assert_int_equal(scratch_make(&scratch), 0);
        for (int round = 0; round < rounds; round++) {
                struct steno_store *store;
                struct steno_conv *c;
                struct steno_error err = {0};
                int fd[2], i = -1, last = -1, status;
                assert_int_equal(steno_open(scratch.path, NULL, &store, NULL), 0);
                assert_int_equal(steno_conv_create(store, NULL, "gone", NULL, &c, NULL), 0);
                assert_int_equal(pipe(fd), 0);
                fflush(stdout);
                pid_t pid = fork();
                if (pid == 0) {
                        struct steno_store *s;
                        struct steno_conv *mine;
                        /* It may be gone before the writer has begun. */
                        if (steno_open(scratch.path, NULL, &s, &err) ||
                            steno_conv_open(s, NULL, "gone", &mine, &err))
                                _exit(err.code == STENO_ENOTFOUND ? 0 : 1);
                        for (int n = 0;; n++) {
                                char json[100];
                                int len = snprintf(
                                    json, sizeof json, "{\"role\":\"user\",\"content\":\"%d\"}", n);
                                int rc = steno_append(mine, json, (size_t)len, NULL, NULL, &err);
                                if (rc)
                                        _exit(rc == STENO_ENOTFOUND ? 0 : 2);
                                if (write(fd[1], &n, sizeof n) != sizeof n)
                                        _exit(3);
                        }
                }
                close(fd[1]);
                nap((unsigned)seed_below(&seed, 20000));
                /* As rm and trash do: under the lock, in one rename. */
                assert_int_equal(files_conv_lock((struct files_conv *)c->backend, &err), 0);
                char from[400], to[400];
                snprintf(from, sizeof from, "%s/projects/default/conversations/gone", scratch.path);
                snprintf(to, sizeof to, "%s/removed-%d", scratch.path, round);
                assert_int_equal(rename(from, to), 0);
                files_conv_unlock((struct files_conv *)c->backend);
                waitpid(pid, &status, 0);
                assert_int_equal(status, 0);
                while (read(fd[0], &i, sizeof i) == sizeof i)
                        last = i;
                close(fd[0]);
                steno_conv_close(c);
                /* Restored to its place, it has everything that was acknowledged. */
                uint64_t seq;
                assert_int_equal(rename(to, from), 0);
                assert_int_equal(steno_conv_open(store, NULL, "gone", &c, &err), 0);
                assert_int_equal(steno_conv_last_seq(c, &seq, &err), 0);
                assert_int_equal(seq, last + 1);
                steno_conv_close(c);
                steno_close(store);
                assert_int_equal(rename(from, to), 0);
        }
        scratch_remove(&scratch);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"eight writers killed again and again lose nothing that was acknowledged", killed,
                NULL, NULL, NULL},
            {"32 processes append to one conversation at once, and nobody is turned away", crowd,
                NULL, NULL, NULL},
            {"an append that races with rm is stored before it, or refused", removed, NULL, NULL,
                NULL},
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
