/*
 * test_boot.c - ids.idx after a boot, and when it is missing: how much of the log is read, and that
 * it is read without the lock.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "play.h"
#include "api/api_store.h"
#include "store/files/conv.h"

#define FOLDER "projects/default/conversations/c"
#define BATCH 100
#define BATCHES 60 /* about 7 MB of log */
#define COUNT (BATCH * BATCHES)
#define TAIL 100
#define A_STEP (1024 * 1024) /* what may be read under one lock */

struct boot {
        struct env env; /* first: its callbacks find the rest through it */
        struct fs fs;
        struct scratch scratch;
        struct steno_store *store;
        struct steno_conv *conv;
        const char *word;
};

/* What was read, and how much of it while the conversation's lock was held. */
static struct {
        int locked; /* descriptor, -1: not */
        uint64_t read;
        uint64_t under_lock;
        uint64_t most_under_lock;
        bool off;
} seen;

static ssize_t seen_pread(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        (void)self;
        ssize_t got = fs_real()->pread(fs_real(), fd, p, n, at);
        if (got > 0 && !seen.off) {
                seen.read += (uint64_t)got;
                seen.under_lock += seen.locked >= 0 ? (uint64_t)got : 0;
                if (seen.under_lock > seen.most_under_lock)
                        seen.most_under_lock = seen.under_lock;
        }
        return got;
}

static int seen_flock(const struct fs *self, int fd, int operation)
{
        struct stat st;
        (void)self;
        int rc = fs_real()->flock(fs_real(), fd, operation);
        if (!seen.off && rc == 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
                seen.locked = operation & LOCK_EX ? fd : -1;
                seen.under_lock = 0;
        }
        return rc;
}

static void boot_word(const struct env *env, char out[40])
{
        snprintf(out, 40, "%s", ((const struct boot *)(const void *)env)->word);
}

#define OK(call)                                                                                   \
        do {                                                                                       \
                struct steno_error err = {0};                                                      \
                if ((call) != 0)                                                                   \
                        fail_msg("%s: %s", #call, err.msg);                                        \
        } while (0)

static void enter(struct boot *b, const char *word)
{
        b->word = word;
        OK(api_store_open_in(&b->env, b->scratch.path, NULL, &b->store, &err));
        if (steno_conv_open(b->store, NULL, "c", &b->conv, NULL))
                OK(steno_conv_create(b->store, NULL, "c", NULL, &b->conv, &err));
        memset(&seen, 0, sizeof seen);
        seen.locked = -1;
}

static void leave(struct boot *b)
{
        steno_conv_close(b->conv);
        steno_close(b->store);
        b->conv = NULL;
        b->store = NULL;
}

static char *messages(int from, int count, size_t *n)
{
        char *json = malloc((size_t)count * 1200 + 3), *p = json;
        for (int i = from; i < from + count; i++)
                p += sprintf(p, "%c{\"id\":\"m%d\",\"role\":\"user\",\"content\":\"%01000d\"}",
                    i == from ? '[' : ',', i, i);
        *p++ = ']';
        *n = (size_t)(p - json);
        return json;
}

static void append(struct boot *b, int from, int count, bool *replayed)
{
        struct steno_receipt *r;
        size_t n;
        char *json = messages(from, count, &n);
        OK(steno_append(b->conv, json, n, NULL, &r, &err));
        if (replayed)
                *replayed = steno_receipt_replayed(r);
        if (steno_receipt_replayed(r))
                assert_int_equal(steno_receipt_first_seq(r), from + 1);
        steno_receipt_free(r);
        free(json);
}

static void is_replayed(struct boot *b, int i)
{
        bool replayed = false;
        append(b, i, 1, &replayed);
        assert_true(replayed);
}

static int setup(void **state)
{
        struct boot *b = calloc(1, sizeof *b);
        if (!b || scratch_make(&b->scratch))
                return -1;
        b->fs = *play_fs();
        b->fs.pread = seen_pread;
        b->fs.flock = seen_flock;
        b->env = *env_real();
        b->env.fs = &b->fs;
        b->env.boot = boot_word;
        *state = b;
        enter(b, "first");
        for (int i = 0; i < COUNT; i += BATCH)
                append(b, i, BATCH, NULL);
        leave(b); /* settles */
        return 0;
}

static int teardown(void **state)
{
        struct boot *b = *state;
        leave(b);
        scratch_remove(&b->scratch);
        free(b);
        return 0;
}

static void remove_index(struct boot *b)
{
        char path[600];
        snprintf(path, sizeof path, "%s/" FOLDER "/ids.idx", b->scratch.path);
        assert_int_equal(unlink(path), 0);
}

static void nothing_left_behind(struct boot *b)
{
        char path[600];
        snprintf(path, sizeof path, "%s/" FOLDER "/ids.idx.new", b->scratch.path);
        assert_int_equal(access(path, F_OK), -1);
}

static void a_boot_costs_the_tail(void **state)
{
        struct boot *b = *state;
        enter(b, "first");
        append(b, COUNT, TAIL, NULL);
        leave(b); /* too little to be synced */
        enter(b, "second");
        is_replayed(b, 7);
        assert_in_range(seen.read, 0, A_STEP);
        is_replayed(b, COUNT + TAIL - 1);
        for (int i = 0; i < COUNT + TAIL; i += 61)
                is_replayed(b, i);
        append(b, COUNT + TAIL, 1, NULL);
        leave(b);
        enter(b, "third");
        for (int i = 0; i < COUNT + TAIL + 1; i += 61)
                is_replayed(b, i);
        is_replayed(b, COUNT + TAIL);
}

static size_t load_index(struct boot *b, char **out)
{
        char path[600];
        struct stat st;
        snprintf(path, sizeof path, "%s/" FOLDER "/ids.idx", b->scratch.path);
        int fd = open(path, O_RDONLY);
        assert_int_equal(fstat(fd, &st), 0);
        *out = malloc((size_t)st.st_size);
        assert_int_equal(read(fd, *out, (size_t)st.st_size), st.st_size);
        close(fd);
        return (size_t)st.st_size;
}

/* The buckets of the last entries have their former contents, with a valid seal, and the header
 * that covers the entries has survived (I2). */
static void entries_that_a_power_cut_took_back_are_found_in_the_log(void **state)
{
        struct boot *b = *state;
        char *before, *after, path[600];
        size_t n = load_index(b, &before);
        enter(b, "first");
        append(b, COUNT, TAIL, NULL);
        leave(b);
        assert_int_equal(load_index(b, &after), n); /* the table has not grown */
        memcpy(after + 256, before + 256, n - 256);
        snprintf(path, sizeof path, "%s/" FOLDER "/ids.idx", b->scratch.path);
        int fd = open(path, O_WRONLY);
        assert_int_equal(write(fd, after, n), n);
        close(fd);
        free(before);
        free(after);
        enter(b, "second");
        for (int i = COUNT; i < COUNT + TAIL; i++)
                is_replayed(b, i);
}

static void a_long_tail_is_read_without_the_lock(void **state)
{
        struct boot *b = *state;
        enter(b, "first");
        ((struct files_store *)b->store->backend)->settle_ids =
            UINT64_MAX; /* as if the power went off before */
        for (int i = 0; i < 20; i++)
                append(b, COUNT + i * BATCH, BATCH, NULL);
        leave(b);
        enter(b, "second");
        is_replayed(b, COUNT + 1);
        assert_in_range(seen.most_under_lock, 0, A_STEP);
        for (int i = 0; i < COUNT + 20 * BATCH; i += 61)
                is_replayed(b, i);
}

static void a_missing_index_is_made_without_the_lock(void **state)
{
        struct boot *b = *state;
        remove_index(b);
        enter(b, "first");
        is_replayed(b, COUNT / 2);
        assert_true(seen.read > (uint64_t)COUNT * 1000);
        assert_in_range(seen.most_under_lock, 0, A_STEP);
        for (int i = 0; i < COUNT; i += 61)
                is_replayed(b, i);
        nothing_left_behind(b);
        leave(b);
        enter(b, "second"); /* what was made is synced */
        is_replayed(b, 3);
        assert_in_range(seen.read, 0, A_STEP);
}

static void an_amendment_finds_its_target(void **state)
{
        struct boot *b = *state;
        remove_index(b);
        enter(b, "first");
        OK(steno_amend(b->conv, "delete", "m5", NULL, 0, NULL, NULL, &err));
        assert_in_range(seen.most_under_lock, 0, A_STEP);
        assert_int_equal(
            steno_amend(b->conv, "delete", "m5", NULL, 0, NULL, NULL, NULL), STENO_ENOTFOUND);
}

/* Writers without ids do not wait for one with ids. */
static void *write_on(void *arg)
{
        struct boot *b = arg;
        static const char one[] = "{\"role\":\"user\",\"content\":\"x\"}";
        for (int i = 0; i < 50; i++)
                if (steno_append(b->conv, one, sizeof one - 1, NULL, NULL, NULL))
                        return b;
        return NULL;
}

static void others_write_meanwhile(void **state)
{
        struct boot *b = *state;
        pthread_t t[2];
        uint64_t last = 0;
        remove_index(b);
        enter(b, "first");
        seen.off = true; /* it can count in one thread only */
        for (int i = 0; i < 2; i++)
                pthread_create(&t[i], NULL, write_on, b);
        is_replayed(b, COUNT / 3);
        append(b, COUNT, 3, NULL);
        for (int i = 0; i < 2; i++) {
                void *failed;
                pthread_join(t[i], &failed);
                assert_null(failed);
        }
        for (int i = 0; i < COUNT; i += 97)
                is_replayed(b, i);
        OK(steno_conv_last_seq(b->conv, &last, &err));
        assert_int_equal(last, COUNT + 3 + 100);
}

/* Several processes need it at the same moment. It is made once, or at least correctly. */
static void processes_at_once(void **state)
{
        struct boot *b = *state;
        pid_t pid[4];
        remove_index(b);
        for (int i = 0; i < 4; i++) {
                pid[i] = fork();
                if (pid[i] == 0) {
                        enter(b, "first");
                        seen.off = true;
                        for (int k = i; k < COUNT; k += 331)
                                is_replayed(b, k);
                        append(b, COUNT, 2, NULL); /* one of them stores it */
                        leave(b);
                        _exit(0);
                }
        }
        for (int i = 0; i < 4; i++) {
                int status;
                assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
                assert_int_equal(status, 0);
        }
        nothing_left_behind(b);
        enter(b, "first");
        uint64_t last = 0;
        OK(steno_conv_last_seq(b->conv, &last, &err));
        assert_int_equal(last, COUNT + 2);
}

/* A process was killed while it made a new index. */
static void a_half_made_index(void **state)
{
        struct boot *b = *state;
        char path[600];
        remove_index(b);
        snprintf(path, sizeof path, "%s/" FOLDER "/ids.idx.new", b->scratch.path);
        FILE *f = fopen(path, "w");
        for (int i = 0; i < 1 << 20; i++)
                fputc(i, f);
        fclose(f);
        enter(b, "first");
        for (int i = 0; i < COUNT; i += 61)
                is_replayed(b, i);
        nothing_left_behind(b);
}

#define T(f, words)                                                                                \
        {                                                                                          \
                words, f, setup, teardown, NULL                                                    \
        }

int main(void)
{
        const struct CMUnitTest tests[] = {
            T(a_boot_costs_the_tail, "after a boot only the end of the log is read for an id"),
            T(entries_that_a_power_cut_took_back_are_found_in_the_log,
                "ids whose entries a power cut took back are found in the log"),
            T(a_long_tail_is_read_without_the_lock,
                "a long end of the log is read without the lock after a boot"),
            T(a_missing_index_is_made_without_the_lock,
                "an index of ids that is missing is made without the lock"),
            T(an_amendment_finds_its_target, "a missing index does not hide what is to be deleted"),
            T(others_write_meanwhile, "others write while the index is made"),
            T(processes_at_once, "processes that need the index at once all get it"),
            T(a_half_made_index, "an index that was half made when its maker died is made anew"),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
