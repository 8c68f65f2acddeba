/*
 * test_list_boot.c - lists after a boot are answered from what was known before, and marked as
 * such, until every conversation was looked at. What a power cut may lose is simulated: the list of
 * changes is removed, and the index is put back to an older state.
 */
#include <pthread.h>
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

#include "support/scratch.h"
#include "api/api_store.h"
#include "base/env.h"
#include "base/wait.h"

#define MANY 300 /* more than a scan looks at in one transaction */
#define FEW 12

struct world {
        struct env env; /* first: its callbacks find the rest through it */
        struct scratch scratch;
        struct steno_store *store;
        const char *word;
        int folders;
};

static void boot_word(const struct env *env, char out[40])
{
        snprintf(out, 40, "%s", ((const struct world *)(const void *)env)->word);
}

#define OK(call)                                                                                   \
        do {                                                                                       \
                struct steno_error err = {0};                                                      \
                if ((call) != 0)                                                                   \
                        fail_msg("%s: %s", #call, err.msg);                                        \
        } while (0)

static void enter(struct world *w, const char *word)
{
        w->word = word;
        OK(api_store_open_in(&w->env, w->scratch.path, NULL, &w->store, &err));
}

static void leave(struct world *w)
{
        steno_close(w->store);
        w->store = NULL;
}

static void append(struct world *w, const char *id)
{
        static const char MESSAGE[] = "{\"role\":\"user\",\"content\":\"x\"}";
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        struct steno_conv *c;
        if (steno_conv_open(w->store, NULL, id, &c, NULL))
                OK(steno_conv_create(w->store, NULL, id, NULL, &c, &err));
        OK(steno_append(c, MESSAGE, sizeof MESSAGE - 1, &opt, NULL, &err));
        steno_conv_close(c);
}

/* A conversation as it lies on the disk, without a sync. */
static void put_folder(struct world *w, const char *id)
{
        char path[600];
        int n = snprintf(
            path, sizeof path, "%s/projects/default/conversations/%s", w->scratch.path, id);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path + n, sizeof path - (size_t)n, "/messages.jsonl");
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fclose(f);
}

static void path_of(struct world *w, const char *name, char out[600])
{
        snprintf(out, 600, "%s/%s", w->scratch.path, name);
}

static void lose_recent(struct world *w)
{
        char path[600];
        path_of(w, "recent", path);
        unlink(path);
        path_of(w, "recent.old", path);
        unlink(path);
}

static char *list(struct world *w, int complete)
{
        struct steno_list_options opt = {.size = sizeof opt, .limit = 1000, .complete = complete};
        char *json;
        OK(steno_list(w->store, NULL, &opt, &json, &err));
        return json;
}

static bool is_behind(const char *json)
{
        return strstr(json, "\"catching_up\":true") != NULL;
}

static int seq_in(const char *json, const char *id)
{
        char want[64];
        snprintf(want, sizeof want, "{\"id\":\"%s\"", id);
        const char *at = strstr(json, want);
        const char *seq = at ? strstr(at, "\"lastSeq\":") : NULL;
        return seq ? atoi(seq + 10) : -1;
}

/* -1: not listed. *behind: the list says that it may be out of date. */
static int listed(struct world *w, const char *id, int complete, bool *behind)
{
        char *json = list(w, complete);
        int n = seq_in(json, id);
        *behind = is_behind(json);
        steno_free(json);
        return n;
}

/* A list is right, or says that it may be wrong; after a while it is right. */
static void becomes(struct world *w, const char *id, int seq)
{
        bool behind = true;
        int n = -2;
        while (behind) {
                n = listed(w, id, 0, &behind);
                assert_true(behind || n == seq);
                wait_sleep(1);
        }
        assert_int_equal(n, seq);
}

static int world_make(void **state, int folders)
{
        struct world *w = calloc(1, sizeof *w);
        bool behind;
        if (!w || scratch_make(&w->scratch))
                return -1;
        w->env = *env_real();
        w->env.boot = boot_word;
        w->folders = folders;
        *state = w;
        enter(w, "first");
        append(w, "changed");
        append(w, "same");
        append(w, "gone");
        for (int i = 0; i < folders; i++) {
                char id[24];
                snprintf(id, sizeof id, "c%03d", i);
                put_folder(w, id);
        }
        return listed(w, "same", 0, &behind) == 1 && !behind ? 0 : -1;
}

static int make_many(void **state)
{
        return world_make(state, MANY);
}

static int make_few(void **state)
{
        return world_make(state, FEW);
}

static int world_drop(void **state)
{
        struct world *w = *state;
        steno_close(w->store);
        scratch_remove(&w->scratch);
        free(w);
        return 0;
}

/* Changes that the index does not learn of before the boot. */
static void change(struct world *w)
{
        append(w, "changed");
        append(w, "new");
        OK(steno_remove(w->store, NULL, "gone", NULL, &err));
        leave(w);
        lose_recent(w);
}

static void is_right(const struct world *w, const char *json)
{
        char last[24];
        snprintf(last, sizeof last, "c%03d", w->folders - 1);
        assert_false(is_behind(json));
        assert_int_equal(seq_in(json, "changed"), 2);
        assert_int_equal(seq_in(json, "same"), 1);
        assert_int_equal(seq_in(json, "new"), 1);
        assert_int_equal(seq_in(json, "gone"), -1);
        assert_int_equal(seq_in(json, "c000"), 0);
        assert_int_equal(seq_in(json, last), 0);
}

static void answers_at_once(void **state)
{
        struct world *w = *state;
        bool behind;
        change(w);
        enter(w, "second");
        int seq = listed(w, "same", 0, &behind);
        assert_true(behind); /* not everything was looked at before the first list */
        assert_int_equal(seq, 1);
        becomes(w, "changed", 2);
        char *json = list(w, 0);
        is_right(w, json);
        steno_free(json);
}

static void waits_when_asked(void **state)
{
        struct world *w = *state;
        change(w);
        enter(w, "second");
        char *json = list(w, 1);
        is_right(w, json);
        steno_free(json);
        /* And stays complete: there is no second scan. */
        leave(w);
        enter(w, "second");
        json = list(w, 0);
        is_right(w, json);
        steno_free(json);
}

static void totals_are_complete(void **state)
{
        struct world *w = *state;
        bool behind;
        char *json, want[64];
        change(w);
        enter(w, "second");
        listed(w, "same", 0, &behind);
        assert_true(behind);
        OK(steno_stats(w->store, &json, &err));
        snprintf(want, sizeof want, "\"conversations\":%d", w->folders + 3);
        if (!strstr(json, want))
                fail_msg("%s", json);
        steno_free(json);
}

static void goes_on(void **state)
{
        struct world *w = *state;
        bool behind = true;
        int opens = 0;
        change(w);
        for (; behind; opens++) {
                enter(w, "second");
                int seq = listed(w, "changed", 0, &behind);
                assert_true(behind || seq == 2);
                if (behind)
                        leave(w);
                /* Each process looks at one piece at least, and there are two. */
                assert_true(opens < 10);
        }
        char *json = list(w, 0);
        is_right(w, json);
        steno_free(json);
}

static void begins_again_after_each_boot(void **state)
{
        struct world *w = *state;
        bool behind;
        enter((leave(w), w), "second");
        listed(w, "same", 0, &behind);
        leave(w); /* possibly in the middle of it */
        enter(w, "third");
        change(w);
        enter(w, "fourth");
        listed(w, "same", 0, &behind);
        assert_true(behind);
        char *json = list(w, 1);
        is_right(w, json);
        steno_free(json);
}

static void new_work_counts(void **state)
{
        struct world *w = *state;
        bool behind;
        change(w);
        enter(w, "second");
        listed(w, "same", 0, &behind);
        for (int i = 0; i < 10; i++) {
                append(w, "same");
                append(w, "c007");
                listed(w, "same", 0, &behind);
        }
        becomes(w, "same", 11);
        becomes(w, "c007", 10);
        append(w, "same");
        becomes(w, "same", 12);
}

static void copy_file(const char *from, const char *to)
{
        char bytes[8192];
        FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
        for (size_t n; out && (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
                assert_int_equal(fwrite(bytes, 1, n, out), n);
        if (in)
                fclose(in);
        if (out)
                fclose(out);
}

/* The power was cut before the index of the last hour was on the disk. */
static void older_index(void **state)
{
        struct world *w = *state;
        char db[600], aside[600];
        path_of(w, "index.db", db);
        path_of(w, "aside", aside);
        leave(w);
        copy_file(db, aside);
        enter(w, "first");
        append(w, "same");
        append(w, "lost");
        char *json = list(w, 0);
        assert_int_equal(seq_in(json, "lost"), 1);
        steno_free(json);
        change(w);
        copy_file(aside, db);
        unlink(aside);
        enter(w, "second");
        json = list(w, 0);
        assert_true(is_behind(json));
        steno_free(json);
        becomes(w, "lost", 1);
        becomes(w, "same", 2);
        becomes(w, "changed", 2);
        becomes(w, "gone", -1);
}

/* A page of it was never written, or belongs to another file. */
static void torn_index(void **state)
{
        struct world *w = *state;
        char db[600];
        path_of(w, "index.db", db);
        change(w);
        enter(w, "first");
        steno_free(list(w, 1));
        leave(w);
        FILE *f = fopen(db, "rb");
        fseek(f, 0, SEEK_END);
        long pages = ftell(f) / 4096;
        fclose(f);
        for (long page = 0; page < pages; page += 5) {
                char zeros[4096] = {0};
                char name[40];
                f = fopen(db, "r+b");
                fseek(f, page * 4096, SEEK_SET);
                fwrite(zeros, 1, sizeof zeros, f);
                fclose(f);
                snprintf(name, sizeof name, "boot %ld", page);
                enter(w, name);
                char *json = list(w, 0);
                if (!is_behind(json))
                        is_right(w, json);
                steno_free(json);
                json = list(w, 1);
                is_right(w, json);
                steno_free(json);
                leave(w);
        }
}

struct other {
        struct world w;
        char *json;
};

static void *scan_too(void *arg)
{
        struct other *o = arg;
        steno_free(list(&o->w, 0));
        o->json = list(&o->w, 1);
        return NULL;
}

/* As with two processes: each has an index of its own. */
static void several_at_once(void **state)
{
        struct world *w = *state;
        struct other others[3];
        pthread_t threads[3];
        change(w);
        enter(w, "second");
        for (int i = 0; i < 3; i++) {
                others[i] = (struct other){.w = *w};
                enter(&others[i].w, "second");
        }
        for (int i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, scan_too, &others[i]), 0);
        append(w, "meanwhile");
        for (int i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        for (int i = 0; i < 3; i++) {
                is_right(w, others[i].json);
                steno_free(others[i].json);
                steno_close(others[i].w.store);
        }
        becomes(w, "meanwhile", 1);
}

static void copied_in_meanwhile(void **state)
{
        struct world *w = *state;
        bool behind;
        change(w);
        enter(w, "second");
        listed(w, "same", 0, &behind);
        leave(w); /* one piece was looked at: c000 is behind it */
        put_folder(w, "c-first");
        enter(w, "second");
        char *json = list(w, 1);
        is_right(w, json);
        assert_int_equal(seq_in(json, "c-first"), 0);
        steno_free(json);
}

#define TEST(make, name, f)                                                                        \
        {                                                                                          \
                name, f, make, world_drop, NULL                                                    \
        }

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            TEST(make_many, "the first list after a boot is of before, says so, and becomes right",
                answers_at_once),
            TEST(make_few, "a list that waits is complete", waits_when_asked),
            TEST(make_few, "totals after a boot are complete", totals_are_complete),
            TEST(make_many, "a scan goes on where the last process ended", goes_on),
            TEST(make_few, "each boot begins a scan of its own", begins_again_after_each_boot),
            TEST(make_few, "what is written while the list catches up is in it", new_work_counts),
            TEST(make_few, "an index of before the last changes becomes right", older_index),
            TEST(
                make_few, "an index that lost a page is never wrong without saying so", torn_index),
            TEST(make_many, "several may catch up at once", several_at_once),
            TEST(make_many, "a folder copied in behind the place of a scan is seen",
                copied_in_meanwhile),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
