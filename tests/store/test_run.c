/*
 * test_run.c - journals of runs: what survives a killed writer, a torn end and many threads, and
 * what recovery makes of it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api_store.h"
#include "base/env.h"
#include "base/fs.h"
#include "store/files/run.h"
#include "support/scratch.h"
#include "support/seed.h"
#include "steno.h"

struct world {
        struct scratch scratch;
        struct steno_store *store;
        struct steno_conv *conv;
};

#define OK(call)                                                                                   \
        do {                                                                                       \
                struct steno_error err = {0};                                                      \
                if ((call) != 0)                                                                   \
                        fail_msg("%s: %s", #call, err.msg);                                        \
        } while (0)

static void open_world(struct world *w)
{
        OK(steno_open(w->scratch.path, NULL, &w->store, &err));
        if (steno_conv_open(w->store, NULL, "c", &w->conv, NULL))
                OK(steno_conv_create(w->store, NULL, "c", NULL, &w->conv, &err));
}

static void close_world(struct world *w)
{
        steno_conv_close(w->conv);
        steno_close(w->store);
        w->conv = NULL;
        w->store = NULL;
}

static int setup(void **state)
{
        struct world *w = calloc(1, sizeof *w);
        *state = w;
        if (!w || scratch_make(&w->scratch))
                return -1;
        open_world(w);
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;
        close_world(w);
        scratch_remove(&w->scratch);
        free(w);
        return 0;
}

/* ---- what readers got ---- */

struct seen {
        uint64_t last;
        size_t count;
        size_t repeats; /* numbers that did not grow */
        char types[64][24];
        char data[64][200];
};

static int see(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct seen *s = ctx;
        assert_int_equal(strlen(at), 24);
        assert_int_equal(strlen(data), n);
        if (seq <= s->last)
                s->repeats++;
        s->last = seq;
        if (s->count < 64) {
                snprintf(s->types[s->count], sizeof s->types[0], "%s", type);
                snprintf(s->data[s->count], sizeof s->data[0], "%s", data);
        }
        s->count++;
        return 0;
}

static struct seen read_run(struct world *w, const char *run, uint64_t after)
{
        struct seen s = {0};
        OK(steno_run_read(w->store, NULL, run, after, see, &s, &err));
        return s;
}

static bool info_says(struct world *w, const char *run, const char *words)
{
        char *json = NULL;
        OK(steno_run_info(w->store, NULL, run, &json, &err));
        bool says = strstr(json, words) != NULL;
        if (!says)
                print_message("# %s\n", json);
        steno_free(json);
        return says;
}

static void append(struct world *w, const char *json)
{
        OK(steno_append(w->conv, json, strlen(json), NULL, NULL, &err));
}

static char *journal_path(struct world *w, const char *run)
{
        static char path[512];
        snprintf(path, sizeof path, "%s/projects/default/conversations/c/runs/%s.jsonl",
            w->scratch.path, run);
        return path;
}

static const char CALLS[] =
    "{\"id\":\"a1\",\"role\":\"assistant\",\"content\":null,\"runId\":\"r1\",\"tool_calls\":["
    "{\"id\":\"call_0\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}},"
    "{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}},"
    "{\"id\":\"call_2\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]"
    "}";

static const char RESULT[] = "{ \"id\" :\"t0\",\"role\":\"tool\",\"tool_call_id\":\"call_0\","
                             "\"n\":1.50e+00,\"content\":\"\\u00e9\\/\",\"n\":2}";

/* ---- tests ---- */

static void events_come_back_in_order_and_verbatim(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        uint64_t a, b;
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_event(run, "run_started", "{\"x\":1.0e0}", 11, STENO_FULL, &a, &err));
        OK(steno_run_event(
            run, "message", "{\"text\":\n\"a\\u0041\"}", 19, STENO_PROCESS, &b, &err));
        assert_true(b > a);
        OK(steno_run_dispatch(run, 1, "call_0", "t", "{}", 2, &err));
        OK(steno_run_outcome(run, 1, "call_0", RESULT, strlen(RESULT), &err));
        struct seen s = read_run(w, "r1", 0);
        assert_int_equal(s.count, 4);
        assert_int_equal(s.repeats, 0);
        assert_string_equal(s.data[0], "{\"x\":1.0e0}");
        assert_string_equal(s.data[1], "{\"text\": \"a\\u0041\"}");
        assert_string_equal(s.types[2], "dispatch");
        assert_non_null(strstr(s.data[2], "\"tool\":\"t\",\"sha256\":\"44136fa355b3678a"));
        assert_string_equal(s.types[3], "outcome");
        assert_non_null(strstr(s.data[3], RESULT));
        assert_int_equal(read_run(w, "r1", a).count, 3);
        assert_true(info_says(w, "r1", "\"state\":\"running\""));
        OK(steno_run_event(
            run, "run_finished", "{\"reason\":\"stop\"}", 17, STENO_FULL, NULL, &err));
        steno_run_close(run);
        assert_true(info_says(w, "r1", "\"state\":\"finished\""));
        assert_true(info_says(w, "r1", "\"reason\":\"stop\""));
        assert_true(info_says(w, "r1", "\"mode\":\"chat\""));
}

static void a_writer_that_ended_without_finishing_is_dead(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        OK(steno_run_begin(w->conv, "r1", "run", &run, &err));
        steno_run_close(run);
        assert_true(info_says(w, "r1", "\"state\":\"dead\""));
        assert_true(info_says(w, "r1", "\"lastSeq\":0"));
}

static void wrong_calls_are_refused(void **state)
{
        struct world *w = *state;
        struct steno_run *run, *other;
        struct steno_error e;
        char *json;
        assert_int_equal(steno_run_begin(w->conv, "r", "dance", &run, &e), STENO_EINVAL);
        assert_int_equal(steno_run_begin(w->conv, "a\nb", "chat", &run, &e), STENO_EINVAL);
        OK(steno_run_begin(w->conv, "../../etc", "chat", &run, &err));
        assert_int_equal(
            steno_run_begin(w->conv, "../../etc", "chat", &other, &e), STENO_ECONFLICT);
        assert_int_equal(
            steno_run_event(run, "message", "[1]", 3, STENO_FULL, NULL, &e), STENO_EPROTO);
        assert_int_equal(
            steno_run_event(run, "message", "{\"a\":}", 6, STENO_FULL, NULL, &e), STENO_EPROTO);
        assert_int_equal(
            steno_run_event(run, "outcome", "{}", 2, STENO_FULL, NULL, &e), STENO_EINVAL);
        assert_int_equal(steno_run_event(run, "e", "{}", 2, 7, NULL, &e), STENO_EINVAL);
        assert_int_equal(steno_run_info(w->store, NULL, "nope", &json, &e), STENO_ENOTFOUND);
        assert_int_equal(
            steno_run_info(w->store, "other", "../../etc", &json, &e), STENO_ENOTFOUND);
        assert_true(info_says(w, "../../etc", "\"id\":\"../../etc\""));
        steno_run_close(run);
}

static void a_second_run_is_refused_with_the_id_of_the_live_one(void **state)
{
        struct world *w = *state;
        struct steno_run *first, *second;
        struct steno_error e = {0};
        char *list;
        OK(steno_run_begin(w->conv, "first", "chat", &first, &err));
        assert_int_equal(steno_run_begin(w->conv, "second", "chat", &second, &e), STENO_ECONFLICT);
        assert_non_null(strstr(e.msg, "\"first\""));
        assert_int_equal(steno_run_claim(w->conv, NULL, "chat", &second, &e), STENO_ECONFLICT);
        assert_non_null(strstr(e.msg, "\"first\""));
        /* A run in another conversation does not matter here. */
        struct steno_conv *other;
        OK(steno_conv_create(w->store, NULL, "other", NULL, &other, &err));
        OK(steno_run_begin(other, "elsewhere", "chat", &second, &err));
        steno_run_close(second);
        steno_conv_close(other);
        steno_run_close(first);
        OK(steno_run_begin(w->conv, "third", "chat", &first, &err));
        steno_run_close(first);
        OK(steno_run_list(w->conv, &list, &err));
        assert_null(strstr(list, "\"second\""));
        steno_free(list);
}

static void nothing_follows_the_end_of_a_run(void **state)
{
        struct world *w = *state;
        struct steno_run *run, *next;
        struct steno_error e = {0};
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_event(
            run, "run_finished", "{\"reason\":\"stop\"}", 17, STENO_FULL, NULL, &err));
        assert_int_equal(steno_run_event(run, "e", "{}", 2, STENO_FULL, NULL, &e), STENO_EINVAL);
        assert_int_equal(
            steno_run_event(run, "run_finished", "{}", 2, STENO_FULL, NULL, &e), STENO_EINVAL);
        assert_int_equal(steno_run_dispatch(run, 1, "c", "t", "{}", 2, &e), STENO_EINVAL);
        assert_int_equal(steno_run_outcome(run, 1, "c", "{}", 2, &e), STENO_EINVAL);
        /* A reader of the end may begin the next run at once. */
        OK(steno_run_begin(w->conv, "r2", "chat", &next, &err));
        steno_run_close(next);
        assert_int_equal(read_run(w, "r1", 0).count, 1);
        steno_run_close(run);
        assert_true(info_says(w, "r1", "\"reason\":\"stop\""));
}

static void a_claim_that_is_given_back_leaves_no_run(void **state)
{
        struct world *w = *state;
        struct steno_run *run, *other;
        struct steno_error e = {0};
        char *json;
        OK(steno_run_claim(w->conv, "r1", "chat", &run, &err));
        assert_int_equal(steno_run_event(run, "e", "{}", 2, STENO_FULL, NULL, &e), STENO_EINVAL);
        assert_int_equal(steno_run_begin(w->conv, "r2", "chat", &other, &e), STENO_ECONFLICT);
        assert_non_null(strstr(e.msg, "\"r1\""));
        steno_run_close(run);
        assert_int_equal(steno_run_info(w->store, NULL, "r1", &json, &e), STENO_ENOTFOUND);
        OK(steno_run_claim(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_start(run, &err));
        assert_int_equal(steno_run_start(run, &e), STENO_EINVAL);
        OK(steno_run_event(run, "e", "{}", 2, STENO_FULL, NULL, &err));
        steno_run_close(run);
}

static void *begin_one(void *arg)
{
        struct world *w = arg;
        struct steno_run *run = NULL;
        int rc = steno_run_begin(w->conv, NULL, "chat", &run, NULL);
        return rc == 0 ? run : rc == STENO_ECONFLICT ? NULL : (void *)w;
}

static void of_runs_that_threads_begin_at_once_one_is_made(void **state)
{
        struct world *w = *state;
        for (int round = 0; round < 50; round++) {
                pthread_t threads[8];
                void *got, *made = NULL;
                for (int i = 0; i < 8; i++)
                        assert_int_equal(pthread_create(&threads[i], NULL, begin_one, w), 0);
                for (int i = 0; i < 8; i++) {
                        pthread_join(threads[i], &got);
                        assert_ptr_not_equal(got, w);
                        assert_false(got && made);
                        made = got ? got : made;
                }
                assert_non_null(made);
                steno_run_close(made);
        }
}

static void a_run_is_found_without_the_index(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        char path[512];
        OK(steno_run_begin(w->conv, NULL, "agent", &run, &err));
        char id[64];
        snprintf(id, sizeof id, "%s", steno_run_id(run));
        steno_run_close(run);
        /* The index learned of nothing, because the list of changes was lost. */
        snprintf(path, sizeof path, "%s/recent", w->scratch.path);
        char *json;
        OK(steno_list(w->store, NULL, NULL, &json, &err));
        steno_free(json);
        OK(steno_run_begin(w->conv, "later", "agent", &run, &err));
        unlink(path);
        assert_true(info_says(w, "later", "\"state\":\"running\""));
        assert_true(info_says(w, id, "\"reason\":\"died\"")); /* the list has completed it */
        steno_run_close(run);
}

static void runs_are_listed_newest_first(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        char *json;
        const char *ids[] = {"z", "m", "a"};
        for (int i = 0; i < 3; i++) {
                OK(steno_run_begin(w->conv, ids[i], "chat", &run, &err));
                steno_run_close(run);
                usleep(2000);
        }
        OK(steno_run_list(w->conv, &json, &err));
        char *a = strstr(json, "\"id\":\"a\""), *m = strstr(json, "\"id\":\"m\""),
             *z = strstr(json, "\"id\":\"z\"");
        assert_true(a && m && z && a < m && m < z);
        steno_free(json);
}

/* ---- threads ---- */

struct many {
        struct steno_run *run;
        int count;
        int durability;
};

static void *write_many(void *arg)
{
        struct many *m = arg;
        uint64_t last = 0;
        for (int i = 0; i < m->count; i++) {
                uint64_t seq;
                if (steno_run_event(m->run, "step", "{\"a\":1}", 7, m->durability, &seq, NULL) ||
                    seq <= last)
                        return m;
                last = seq;
        }
        return NULL;
}

static void events_of_many_threads_have_numbers_of_their_own(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        pthread_t threads[8];
        struct many m[8];
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        for (int i = 0; i < 8; i++) {
                m[i] = (struct many){run, i % 2 ? 1000 : 60, i % 2 ? STENO_PROCESS : STENO_FULL};
                assert_int_equal(pthread_create(&threads[i], NULL, write_many, &m[i]), 0);
        }
        for (int i = 0; i < 8; i++) {
                void *failed;
                pthread_join(threads[i], &failed);
                assert_null(failed);
        }
        struct seen s = read_run(w, "r1", 0);
        assert_int_equal(s.count, 4 * 1060);
        assert_int_equal(s.repeats, 0);
        for (uint64_t after = 1; after < s.last; after += 397)
                assert_int_equal(read_run(w, "r1", after).count, s.last - after);
        steno_run_close(run);
}

static void *write_later(void *arg)
{
        usleep(50000);
        steno_run_event(arg, "step", "{}", 2, STENO_FULL, NULL, NULL);
        return NULL;
}

static void waiting_ends_with_the_next_event(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        pthread_t t;
        uint64_t seq;
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_event(run, "step", "{}", 2, STENO_FULL, &seq, &err));
        assert_int_equal(steno_run_wait(w->store, NULL, "r1", 0, 0, NULL), 1);
        assert_int_equal(steno_run_wait(w->store, NULL, "r1", seq, 20, NULL), 0);
        assert_int_equal(pthread_create(&t, NULL, write_later, run), 0);
        assert_int_equal(steno_run_wait(w->store, NULL, "r1", seq, 300000, NULL), 1);
        pthread_join(t, NULL);
        steno_run_close(run);
}

/* ---- recovery ---- */

static char *recover(struct world *w)
{
        char *report = NULL;
        OK(steno_conv_recover(w->conv, &report, &err));
        return report;
}

static uint64_t last_seq(struct world *w)
{
        uint64_t seq = 0;
        OK(steno_conv_last_seq(w->conv, &seq, &err));
        return seq;
}

static int keep_message(void *ctx, const struct steno_record *r)
{
        OK(steno_record_message(r, ctx, NULL, &err));
        return 0;
}

static void an_outcome_that_never_reached_the_log_is_appended_once(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        char *report, *message = NULL;
        append(w, CALLS);
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_dispatch(run, 1, "call_0", "t", "{}", 2, &err));
        OK(steno_run_outcome(run, 1, "call_0", RESULT, strlen(RESULT), &err));
        OK(steno_run_dispatch(run, 1, "call_1", "t", "{}", 2, &err));

        report = recover(w); /* the writer is alive: nothing is touched */
        assert_null(strstr(report, "\"ended\":[\"r1\"]"));
        assert_non_null(strstr(report, "{\"call\":\"call_1\",\"class\":\"running\""));
        assert_int_equal(last_seq(w), 1);
        steno_free(report);

        uint64_t before = read_run(w, "r1", 0).last;
        steno_run_close(run);
        report = recover(w);
        assert_non_null(strstr(report, "\"completed\":[{\"call\":\"call_0\",\"run\":\"r1\""));
        assert_non_null(strstr(report, "\"ended\":[\"r1\"]"));
        assert_non_null(strstr(report, "{\"call\":\"call_1\",\"class\":\"indeterminate\""));
        assert_non_null(strstr(report, "{\"call\":\"call_2\",\"class\":\"not_dispatched\""));
        steno_free(report);
        assert_int_equal(last_seq(w), 2);
        OK(steno_read_id(w->conv, "t0", keep_message, &message, &err));
        assert_string_equal(message, RESULT);
        steno_free(message);

        struct seen s = read_run(w, "r1", before);
        assert_int_equal(s.count, 2);
        assert_string_equal(s.types[0], "run_error");
        assert_string_equal(s.types[1], "run_finished");
        assert_true(info_says(w, "r1", "\"reason\":\"died\""));

        report = recover(w);
        assert_non_null(strstr(report, "\"completed\":[]"));
        assert_non_null(strstr(report, "\"ended\":[]"));
        assert_non_null(strstr(report, "{\"call\":\"call_1\",\"class\":\"indeterminate\""));
        steno_free(report);
        assert_int_equal(last_seq(w), 2);
        assert_int_equal(read_run(w, "r1", before).count, 2);
}

static void an_outcome_that_is_in_the_log_is_not_appended_again(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        append(w, CALLS);
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_dispatch(run, 1, "call_0", "t", "{}", 2, &err));
        OK(steno_run_outcome(run, 1, "call_0", RESULT, strlen(RESULT), &err));
        append(w, RESULT);
        steno_run_close(run);
        char *report = recover(w);
        assert_non_null(strstr(report, "\"completed\":[],\"refused\":[]"));
        steno_free(report);
        assert_int_equal(last_seq(w), 2);
}

static void an_outcome_whose_id_the_log_has_with_other_bytes_is_left_alone(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        append(w, CALLS);
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_dispatch(run, 1, "call_0", "t", "{}", 2, &err));
        OK(steno_run_outcome(run, 1, "call_0", RESULT, strlen(RESULT), &err));
        append(w, "{\"id\":\"t0\",\"role\":\"tool\",\"tool_call_id\":\"call_0\","
                  "\"content\":\"cut short for the log\"}");
        steno_run_close(run);
        char *report = recover(w);
        assert_non_null(strstr(report, "\"completed\":[],\"refused\":[],\"ended\":[\"r1\"]"));
        steno_free(report);
        assert_int_equal(last_seq(w), 2);
}

static void an_outcome_without_a_call_in_the_log_is_refused_and_reported(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_outcome(run, 1, "call_0", RESULT, strlen(RESULT), &err));
        steno_run_close(run);
        char *report = recover(w);
        assert_non_null(strstr(report, "\"refused\":[{\"call\":\"call_0\",\"why\":"));
        steno_free(report);
        assert_int_equal(last_seq(w), 0);
        assert_non_null(strstr(read_run(w, "r1", 0).data[0], RESULT));
}

static void a_reused_call_id_belongs_to_the_reply_that_made_it(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        append(w, CALLS);
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_dispatch(run, 1, "call_0", "t", "{}", 2, &err));
        append(w, "[{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"x\"},"
                  "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"x\"},"
                  "{\"role\":\"tool\",\"tool_call_id\":\"call_2\",\"content\":\"x\"}]");
        append(w, "{\"role\":\"assistant\",\"content\":null,\"runId\":\"r1\",\"tool_calls\":["
                  "{\"id\":\"call_0\",\"type\":\"function\",\"function\":{\"name\":\"t\","
                  "\"arguments\":\"{}\"}}]}");
        steno_run_close(run);
        char *report = recover(w);
        assert_non_null(strstr(report, "{\"call\":\"call_0\",\"class\":\"not_dispatched\""));
        steno_free(report);
}

static void a_call_of_an_unknown_run_is_unrecorded_and_a_deleted_one_is_not_listed(void **state)
{
        struct world *w = *state;
        append(w, CALLS);
        char *report = recover(w);
        assert_non_null(strstr(report, "{\"call\":\"call_0\",\"class\":\"unrecorded\""));
        steno_free(report);
        OK(steno_amend(w->conv, "delete", "a1", NULL, 0, NULL, NULL, &err));
        report = recover(w);
        assert_non_null(strstr(report, "\"open\":[]"));
        steno_free(report);
}

/* ---- crashes ---- */

/* A child that writes events for ever, and after each one writes its number to a pipe. */
static void write_for_ever(const char *path, int to)
{
        struct steno_store *store;
        struct steno_conv *conv;
        struct steno_run *run;
        if (steno_open(path, NULL, &store, NULL) ||
            steno_conv_open(store, NULL, "c", &conv, NULL) ||
            steno_run_begin(conv, "r1", "chat", &run, NULL))
                _exit(1);
        for (uint64_t i = 0;; i++) {
                uint64_t seq;
                if (steno_run_event(run, "message", "{\"text\":\"some words to be written\"}", 35,
                        i % 7 ? STENO_PROCESS : STENO_FULL, &seq, NULL))
                        _exit(1);
                if (write(to, &seq, sizeof seq) != sizeof seq)
                        _exit(1);
        }
}

static void a_killed_writer_loses_nothing_that_it_reported(void **state)
{
        struct world *w = *state;
        struct seed seed = seed_start();
        int rounds = seed_rounds(200);
        for (int i = 0; i < rounds; i++) {
                int pipes[2];
                uint64_t told = 0, seq;
                assert_int_equal(pipe(pipes), 0);
                close_world(w);
                pid_t pid = fork();
                if (pid == 0) {
                        close(pipes[0]);
                        write_for_ever(w->scratch.path, pipes[1]);
                }
                close(pipes[1]);
                open_world(w);
                uint64_t kill_at = 1 + seed_below(&seed, 400);
                while (read(pipes[0], &seq, sizeof seq) == sizeof seq) {
                        told = seq;
                        if (seq >= kill_at)
                                kill(pid, SIGKILL);
                }
                close(pipes[0]);
                waitpid(pid, NULL, 0);
                assert_true(info_says(w, "r1", "\"state\":\"dead\""));
                struct seen s = read_run(w, "r1", 0);
                assert_true(s.last >= told);
                assert_int_equal(s.count, s.last);
                char *report = recover(w);
                assert_non_null(strstr(report, "\"ended\":[\"r1\"]"));
                steno_free(report);
                struct seen after = read_run(w, "r1", s.last);
                assert_int_equal(after.count, 2);
                assert_int_equal(after.repeats, 0);
                unlink(journal_path(w, "r1"));
        }
}

static size_t slurp(const char *path, char *to, size_t cap)
{
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        size_t n = fread(to, 1, cap, f);
        fclose(f);
        return n;
}

static void spit(const char *path, const char *p, size_t n, const char *more, size_t m)
{
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(p, 1, n, f), n);
        assert_int_equal(fwrite(more, 1, m, f), m);
        fclose(f);
}

static size_t lines_in(const char *p, size_t n)
{
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
                count += p[i] == '\n';
        return count;
}

static void a_journal_torn_at_any_byte_is_taken_over(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        static char whole[8192];
        append(w, CALLS);
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_event(run, "message", "{\"text\":\"a\\nb\"}", 15, STENO_FULL, NULL, &err));
        OK(steno_run_dispatch(run, 1, "call_0", "t", "{}", 2, &err));
        OK(steno_run_event(run, "message", "{\"text\":\"c\"}", 12, STENO_FULL, NULL, &err));
        steno_run_close(run);
        const char *path = journal_path(w, "r1");
        size_t n = slurp(path, whole, sizeof whole);
        static const char NULS[64];
        int every = seed_rounds(100) < 100 ? 7 : 1;
        for (size_t cut = 0; cut <= n; cut++) {
                bool nuls = cut % 2;
                spit(path, whole, cut, NULS, nuls ? sizeof NULS : 0);
                size_t lines = lines_in(whole, cut);
                size_t events = lines ? lines - 1 : 0;
                struct seen before = read_run(w, "r1", 0);
                assert_int_equal(before.count, events);
                /* Taking over syncs five files; the bytes around a line's end are tried always. */
                bool near_end = memchr(whole + (cut > 2 ? cut - 2 : 0), '\n', 4) != NULL;
                if (!near_end && cut % (size_t)every != 0)
                        continue;
                char *report = recover(w);
                assert_non_null(strstr(report, "\"ended\":[\"r1\"]"));
                steno_free(report);
                struct seen s = read_run(w, "r1", 0);
                assert_int_equal(s.count, events + 2);
                assert_int_equal(s.repeats, 0);
                assert_string_equal(s.types[events + 1], "run_finished");
                /* A number that a reader may have seen before the power went off is not used
                 * again. */
                assert_true(s.last > 1000);
        }
}

static void a_long_torn_line_leaves_nothing_behind_what_is_written_next(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        static char whole[8192], torn[20000], after[65536];
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        OK(steno_run_event(run, "message", "{\"text\":\"a\"}", 12, STENO_FULL, NULL, &err));
        steno_run_close(run);
        const char *path = journal_path(w, "r1");
        size_t n = slurp(path, whole, sizeof whole);
        memset(torn, 'x', sizeof torn);
        spit(path, whole, n, torn, sizeof torn);
        steno_free(recover(w));
        size_t m = slurp(path, after, sizeof after);
        assert_true(m > n);
        assert_int_equal(after[m - 1], '\n');
        assert_null(memmem(after, m, "xxx", 3));
        assert_int_equal(lines_in(after, m), lines_in(whole, n) + 2);
}

static void a_journal_that_its_writer_holds_is_not_taken_over(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        struct run_log *log = NULL;
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        assert_int_equal(run_take_over((struct files_conv *)w->conv->backend, "r1", &log, NULL), 1);
        assert_null(log);
        steno_run_close(run);
        OK(run_take_over((struct files_conv *)w->conv->backend, "r1", &log, &err));
        run_log_close(log);
}

static void damage_in_the_middle_costs_only_itself(void **state)
{
        struct world *w = *state;
        struct steno_run *run;
        static char whole[8192];
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        for (int i = 0; i < 5; i++)
                OK(steno_run_event(run, "step", "{\"k\":1}", 7, STENO_FULL, NULL, &err));
        steno_run_close(run);
        const char *path = journal_path(w, "r1");
        size_t n = slurp(path, whole, sizeof whole);
        char *third = strstr(whole, "{\"seq\":3");
        third[20] ^= 1;
        spit(path, whole, n, "", 0);
        struct seen s = read_run(w, "r1", 0);
        assert_int_equal(s.count, 4);
        assert_int_equal(s.last, 5);
}

/* ---- durability ---- */

static int syncs;

static int counting_sync(const struct fs *self, int fd)
{
        (void)self;
        syncs++;
        return env_real()->fs->fdatasync(env_real()->fs, fd);
}

static void a_durable_event_is_synced_before_it_is_reported(void **state)
{
        struct world *w = *state;
        struct fs fs = *env_real()->fs;
        struct env env = *env_real();
        struct steno_run *run;
        fs.fdatasync = counting_sync;
        env.fs = &fs;
        close_world(w);
        OK(api_store_open_in(&env, w->scratch.path, NULL, &w->store, &err));
        OK(steno_conv_open(w->store, NULL, "c", &w->conv, &err));
        OK(steno_run_begin(w->conv, "r1", "chat", &run, &err));
        syncs = 0;
        OK(steno_run_event(run, "step", "{}", 2, STENO_PROCESS, NULL, &err));
        assert_int_equal(syncs, 0);
        OK(steno_run_event(run, "step", "{}", 2, STENO_FULL, NULL, &err));
        assert_int_equal(syncs, 1);
        OK(steno_run_dispatch(run, 1, "call", "tool", "{}", 2, &err));
        assert_int_equal(syncs, 2);
        steno_run_close(run);
        close_world(w);
        open_world(w);
}

/* ---- cost ---- */

static int looks;

static int counting_stat(const struct fs *self, int dir, const char *path, struct stat *st)
{
        (void)self;
        looks++;
        return env_real()->fs->stat(env_real()->fs, dir, path, st);
}

static int looks_to_begin(struct world *w, const char *id)
{
        struct steno_run *run;
        looks = 0;
        OK(steno_run_begin(w->conv, id, "chat", &run, &err));
        int n = looks;
        OK(steno_run_event(run, "run_finished", "{}", 2, STENO_FULL, NULL, &err));
        steno_run_close(run);
        return n;
}

static void a_run_with_an_id_that_was_made_here_is_not_looked_for(void **state)
{
        struct world *w = *state;
        struct fs fs = *env_real()->fs;
        struct env env = *env_real();
        char id[48];
        fs.stat = counting_stat;
        env.fs = &fs;
        close_world(w);
        OK(api_store_open_in(&env, w->scratch.path, NULL, &w->store, &err));
        OK(steno_conv_open(w->store, NULL, "c", &w->conv, &err));
        looks_to_begin(w, NULL); /* what is done once */
        steno_run_make_id(w->store, "run_", id);
        int few = looks_to_begin(w, id);
        for (int i = 0; i < 50; i++) {
                struct steno_conv *other;
                OK(steno_conv_create(w->store, NULL, NULL, NULL, &other, &err));
                steno_conv_close(other);
        }
        steno_run_make_id(w->store, "run_", id);
        assert_in_range(looks_to_begin(w, id), 0, few + 5);
        assert_in_range(looks_to_begin(w, "chosen"), 50, 5000);
        assert_int_equal(steno_run_begin(w->conv, "chosen", "chat", NULL, NULL), STENO_ECONFLICT);
        close_world(w);
        open_world(w);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
            T(events_come_back_in_order_and_verbatim),
            T(a_writer_that_ended_without_finishing_is_dead),
            T(wrong_calls_are_refused),
            T(a_second_run_is_refused_with_the_id_of_the_live_one),
            T(nothing_follows_the_end_of_a_run),
            T(a_claim_that_is_given_back_leaves_no_run),
            T(of_runs_that_threads_begin_at_once_one_is_made),
            T(a_run_is_found_without_the_index),
            T(runs_are_listed_newest_first),
            T(events_of_many_threads_have_numbers_of_their_own),
            T(waiting_ends_with_the_next_event),
            T(an_outcome_that_never_reached_the_log_is_appended_once),
            T(an_outcome_that_is_in_the_log_is_not_appended_again),
            T(an_outcome_whose_id_the_log_has_with_other_bytes_is_left_alone),
            T(an_outcome_without_a_call_in_the_log_is_refused_and_reported),
            T(a_reused_call_id_belongs_to_the_reply_that_made_it),
            T(a_call_of_an_unknown_run_is_unrecorded_and_a_deleted_one_is_not_listed),
            T(a_killed_writer_loses_nothing_that_it_reported),
            T(a_journal_torn_at_any_byte_is_taken_over),
            T(a_long_torn_line_leaves_nothing_behind_what_is_written_next),
            T(a_journal_that_its_writer_holds_is_not_taken_over),
            T(damage_in_the_middle_costs_only_itself),
            T(a_durable_event_is_synced_before_it_is_reported),
            T(a_run_with_an_id_that_was_made_here_is_not_looked_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
