/* Appending, one behaviour at a time; most of these were bugs once. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/faultfs.h"
#include "support/scratch.h"
#include "play.h"
#include "store/backend.h"
#include "api/api_store.h"

#define FOLDER "projects/default/conversations/conv-0/"

struct world {
        struct scratch scratch;
        struct play play;
        struct faultfs *faults;
};

static int world_make(void **state)
{
        struct world *w = malloc(sizeof *w);
        if (scratch_make(&w->scratch))
                return -1;
        play_init(&w->play, play_fs(), w->scratch.path);
        w->faults = faultfs_new(play_fs());
        w->play.env.fs = faultfs_fs(w->faults);
        w->play.quiet = true;
        *state = w;
        return play_open(&w->play) || play_create(&w->play, 0);
}

static int world_drop(void **state)
{
        struct world *w = *state;
        play_release(&w->play);
        faultfs_free(w->faults);
        scratch_remove(&w->scratch);
        free(w);
        return 0;
}

static int append(struct world *w, const char *json)
{
        struct steno_error err = {0};
        return steno_append(w->play.open[0], json, strlen(json), NULL, NULL, &err);
}

static uint64_t last(struct world *w)
{
        uint64_t seq = 0;
        assert_int_equal(steno_conv_last_seq(w->play.open[0], &seq, NULL), 0);
        return seq;
}

#define USER(id) "{\"id\":\"" id "\",\"role\":\"user\",\"content\":\"hello\"}"
#define CALL(id)                                                                                   \
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id                   \
        "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define RESULT(id) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"done\"}"

static void unwritable_index(void **state)
{
        struct world *w = *state;
        struct faultfs_plan plan = {
            .calls = FAULT_SPACE, .err = ENOSPC, .nth = 1, .for_good = true, .name = "ids.idx*"};
        assert_int_equal(append(w, USER("a")), 0);
        faultfs_arm(w->faults, &plan);
        play_reopen(&w->play, 0);
        for (int i = 0; i < 3; i++) {
                append(w, USER("a"));
                append(w, USER("b"));
        }
        faultfs_arm(w->faults, NULL);
        append(w, USER("a"));
        append(w, USER("b"));
        assert_int_equal(last(w), 2);
}

static void no_ghosts(void **state)
{
        struct world *w = *state;
        struct faultfs_plan plan = {.calls = FAULT_STAT, .nth = 1, .name = "recent"};
        assert_int_equal(append(w, "[" CALL("one") "," RESULT("one") "]"), 0);
        faultfs_arm(w->faults, &plan);
        assert_int_equal(append(w, CALL("two")), STENO_EIO);
        faultfs_arm(w->faults, NULL);
        assert_int_equal(append(w, RESULT("two")), STENO_EPROTO);
        assert_int_equal(append(w, CALL("two")), 0);
        assert_int_equal(append(w, RESULT("two")), 0);
        assert_int_equal(last(w), 4);
}

/* Replaces the log as a purge would: other bytes, another inode, no index. */
static void replace_log(struct world *w, const char *from)
{
        char a[600], b[600], ids[600], line[400];
        snprintf(a, sizeof a, "%s/" FOLDER "messages.jsonl", w->scratch.path);
        snprintf(b, sizeof b, "%s/" FOLDER "new", w->scratch.path);
        snprintf(ids, sizeof ids, "%s/" FOLDER "ids.idx", w->scratch.path);
        FILE *in = fopen(from, "r"), *out = fopen(b, "w");
        while (fgets(line, sizeof line, in))
                fputs(line, out);
        fclose(in);
        fclose(out);
        unlink(ids);
        assert_int_equal(rename(b, a), 0);
}

static void stale_handle(void **state)
{
        struct world *w = *state;
        char other[600];
        struct play *p = &w->play;
        /* The log of another conversation with the same length and other ids takes its place. */
        assert_int_equal(play_create(p, 1), 0);
        for (int i = 0; i < 3; i++) {
                char json[100];
                snprintf(json, sizeof json, USER("a%d"), i);
                assert_int_equal(append(w, json), 0);
                snprintf(json, sizeof json, USER("b%d"), i);
                assert_int_equal(steno_append(p->open[1], json, strlen(json), NULL, NULL, NULL), 0);
        }
        snprintf(other, sizeof other, "%s/projects/default/conversations/conv-1/messages.jsonl",
            w->scratch.path);
        replace_log(w, other);
        play_close(p); /* the handle still has ids of the old log */
        assert_int_equal(play_open(p), 0);
        assert_int_equal(play_reopen(p, 0), 0);
        assert_int_equal(append(w, USER("b1")), 0);
        assert_int_equal(last(w), 3);
        assert_int_equal(append(w, USER("a1")), 0);
        assert_int_equal(last(w), 4);
}

static int count_amendment(void *ctx, const struct backend_record *r)
{
        uint64_t *seqs = ctx;
        seqs[++seqs[0]] = r->rec.seq;
        return seqs[0] > 6;
}

static void amendments_once(void **state)
{
        struct world *w = *state;
        uint64_t seqs[10] = {0};
        assert_int_equal(append(w, USER("a")), 0);
        for (int i = 0; i < 3; i++)
                assert_int_equal(
                    steno_amend(w->play.open[0], "meta", "a", "{\"n\":1}", 7, NULL, NULL, NULL), 0);
        assert_int_equal(
            backend_read_amendments(w->play.open[0]->backend, count_amendment, seqs, NULL), 0);
        assert_int_equal(seqs[0], 3);
        for (uint64_t i = 1; i <= 3; i++)
                assert_int_equal(seqs[i], 5 - i);
}

static void poisoned(void **state)
{
        struct world *w = *state;
        struct faultfs_plan plan = {
            .calls = FAULT_SYNCS, .nth = 1, .name = "messages.jsonl", .err = EIO};
        assert_int_equal(append(w, USER("a")), 0);
        faultfs_arm(w->faults, &plan);
        assert_int_equal(append(w, USER("b")), STENO_EIO);
        assert_int_equal(append(w, USER("b")), STENO_EPOISONED);
        assert_int_equal(last(w), 1);
        assert_int_equal(play_reopen(&w->play, 0), 0);
        assert_int_equal(append(w, USER("b")), 0);
        assert_int_equal(last(w), 2);
}

static void full_disk(void **state)
{
        struct world *w = *state;
        struct faultfs_plan plan = {.calls = FAULT_WRITES,
            .kind = FAULT_SHORT,
            .nth = 1,
            .for_good = true,
            .name = "messages.jsonl",
            .err = ENOSPC};
        struct stat before, after;
        char path[600];
        snprintf(path, sizeof path, "%s/" FOLDER "messages.jsonl", w->scratch.path);
        assert_int_equal(append(w, USER("a")), 0);
        stat(path, &before);
        faultfs_arm(w->faults, &plan);
        assert_int_equal(append(w, USER("b")), STENO_EFULL);
        stat(path, &after);
        assert_int_equal(before.st_size, after.st_size);
        assert_int_equal(last(w), 1);
        faultfs_arm(w->faults, NULL);
        assert_int_equal(append(w, USER("b")), 0);
        assert_int_equal(last(w), 2);
}

/* ---- many threads ---- */

struct thread {
        struct world *w;
        int n;
        int failures;
        int refused;
};

static void *append_batches(void *arg)
{
        struct thread *t = arg;
        char json[400];
        for (int i = 0; i < 20; i++) {
                snprintf(json, sizeof json,
                    "[" USER("t%d.%d.0") "," USER("t%d.%d.1") "," USER("t%d.%d.2") "]", t->n, i,
                    t->n, i, t->n, i);
                t->failures += append(t->w, json) != 0;
                t->refused += append(t->w, RESULT("nobody")) == STENO_EPROTO;
        }
        return NULL;
}

static int contiguous(void *ctx, const struct steno_record *r)
{
        struct {
                char head[40];
                int part;
        } *prev = ctx;
        const char *id = steno_record_id(r);
        size_t n = strlen(id);
        int part = id[n - 1] - '0';
        if (part != prev->part || (part && strncmp(prev->head, id, n - 1) != 0))
                return 1;
        snprintf(prev->head, sizeof prev->head, "%s", id);
        prev->part = (part + 1) % 3;
        return 0;
}

static void many_threads(void **state)
{
        struct world *w = *state;
        struct thread t[16];
        pthread_t id[16];
        struct {
                char head[40];
                int part;
        } prev = {"", 0};
        for (int i = 0; i < 16; i++) {
                t[i] = (struct thread){w, i, 0, 0};
                pthread_create(&id[i], NULL, append_batches, &t[i]);
        }
        for (int i = 0; i < 16; i++) {
                pthread_join(id[i], NULL);
                assert_int_equal(t[i].failures, 0);
                assert_int_equal(t[i].refused, 20);
        }
        assert_int_equal(last(w), 16 * 20 * 3);
        assert_int_equal(steno_read(w->play.open[0], 0, 0, contiguous, &prev, NULL), 0);
}

/* ---- ids ---- */

static void same_id(void **state)
{
        struct world *w = *state;
        assert_int_equal(append(w, USER("a")), 0);
        assert_int_equal(append(w, USER("a")), 0);
        assert_int_equal(
            append(w, "{\"id\":\"a\",\"role\":\"user\",\"content\":\"other\"}"), STENO_ECONFLICT);
        assert_int_equal(append(w, "[" USER("b") "," USER("b") "]"), STENO_ECONFLICT);
        assert_int_equal(append(w, "[" USER("b") "," USER("a") "]"), STENO_ECONFLICT);
        assert_int_equal(last(w), 1);
}

static void many_ids(void **state)
{
        struct world *w = *state;
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        char json[100];
        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 3000; i++) {
                        snprintf(json, sizeof json, USER("id-%d"), i);
                        assert_int_equal(
                            steno_append(w->play.open[0], json, strlen(json), &opt, NULL, NULL), 0);
                }
                assert_int_equal(last(w), 3000);
                play_close(&w->play);
                assert_int_equal(play_open(&w->play), 0);
                assert_int_equal(play_reopen(&w->play, 0), 0);
        }
}

/* ---- more conversations than descriptors ---- */

static int open_descriptors(void)
{
        int count = 0;
        for (int fd = 0; fd < 1024; fd++)
                count += fcntl(fd, F_GETFD) >= 0;
        return count;
}

static int append_to(struct steno_conv *c, const char *json, int durability)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = durability};
        return steno_append(c, json, strlen(json), &opt, NULL, NULL);
}

static void many_conversations(void **state)
{
        struct world *w = *state;
        struct play *p = &w->play;
        struct rlimit was, small = {256, 0};
        getrlimit(RLIMIT_NOFILE, &was);
        small.rlim_max = was.rlim_max;
        play_close(p);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
        assert_int_equal(play_open(p), 0);
        for (int i = 0; i < 600; i++) {
                struct steno_conv *c;
                uint64_t seq;
                char id[20];
                int durability = i % 2 ? STENO_FULL : STENO_PROCESS;
                snprintf(id, sizeof id, "many-%d", i % 200);
                assert_int_equal(i < 200 ? steno_conv_create(p->store, NULL, id, NULL, &c, NULL)
                                         : steno_conv_open(p->store, NULL, id, &c, NULL),
                    0);
                assert_int_equal(append_to(c, USER("a"), durability), 0);
                assert_int_equal(append_to(c, CALL("x"), durability), 0);
                assert_int_equal(steno_conv_last_seq(c, &seq, NULL), 0);
                assert_int_equal(seq, 2 + i / 200);
                steno_conv_close(c);
                assert_true(open_descriptors() < 250);
        }
        setrlimit(RLIMIT_NOFILE, &was);
}

static void cannot_be_meant(void **state)
{
        struct world *w = *state;
        struct steno_error err = {0};
        struct steno_append_options opt = {.size = sizeof opt, .flags = 1U << 31};
        const char *two = "[{\"role\":\"user\"},{\"role\":\"user\"}]";
        struct steno_conv *c = w->play.open[0];
        assert_int_equal(
            steno_append(c, USER("a"), strlen(USER("a")), &opt, NULL, &err), STENO_EINVAL);
        assert_int_equal(steno_amend(c, "delete", "a", NULL, 0, &opt, NULL, &err), STENO_EINVAL);
        struct steno_open_options open = {.size = sizeof open, .flags = 1U << 31};
        struct steno_output_options output = {
            .size = sizeof output, .tool = "f", .call_id = "x", .flags = 1U << 31};
        struct steno_store *store = NULL;
        struct steno_output *o = NULL;
        assert_int_equal(
            api_store_open_in(&w->play.env, w->scratch.path, &open, &store, &err), STENO_EINVAL);
        assert_int_equal(steno_output_begin(c, &output, &o, &err), STENO_EINVAL);
        opt.flags = 0;
        opt.message_id = "x";
        assert_int_equal(steno_append(c, two, strlen(two), &opt, NULL, &err), STENO_EINVAL);
        assert_non_null(strstr(err.msg, "one message"));
        opt.message_id = "a\nb";
        assert_int_equal(
            steno_append(c, "{\"role\":\"user\"}", 15, &opt, NULL, &err), STENO_EINVAL);
        assert_non_null(strstr(err.msg, "control characters"));
        assert_int_equal(last(w), 0);
}

#define TEST(name, f)                                                                              \
        {                                                                                          \
                name, f, world_make, world_drop, NULL                                              \
        }

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        const struct CMUnitTest tests[] = {
            TEST("an index that cannot be written lets no id in twice", unwritable_index),
            TEST("a message that was refused leaves no call behind", no_ghosts),
            TEST("a handle that goes away leaves no index of a log that is gone", stale_handle),
            TEST("every amendment is handed out once, newest first", amendments_once),
            TEST("a failed sync poisons the handle until it is opened again", poisoned),
            TEST("a full disk takes the append back and reading goes on", full_disk),
            TEST("batches of many threads are contiguous, refusals cost the others nothing",
                many_threads),
            TEST("an id is stored once, and refused with other bytes", same_id),
            TEST("more conversations than descriptors take turns", many_conversations),
            TEST("a flag of a later version and an id that is not allowed are refused",
                cannot_be_meant),
            TEST("thousands of ids are known again after every opening", many_ids),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
