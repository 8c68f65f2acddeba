/*
 * test_death.c - after a run died: whoever reads first completes it, and what somebody had seen is
 * in the history, once, where it belongs.
 *
 * A run dies here when its handle is closed without run_finished: what it leaves on the disk is
 * what a kill leaves. tests/loop/death.test kills processes.
 */
#include "fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/api_store.h"
#include "base/env.h"
#include "base/limits.h"
#include "store/files/run.h"

#define RUNS CONV_FOLDER "runs/"

static void event(struct steno_run *run, const char *type, const char *data)
{
        OK(steno_run_event(run, type, data, strlen(data), STENO_PROCESS, NULL, &err));
}

static int to_text(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

/* A view of the conversation; freed with free(). */
static char *view_of(struct steno_conv *conv, const char *format, uint64_t after)
{
        struct steno_view_options opt = {.size = sizeof opt, .format = format, .after_seq = after};
        struct buf b;
        buf_init(&b, 0);
        OK(steno_view(conv, &opt, to_text, &b, NULL, &err));
        char *text = buf_take(&b, NULL);
        buf_release(&b);
        return text;
}

/* Are all of these words there, and in this order? */
static void in_order(const char *text, const char *const *words)
{
        const char *at = text;
        for (; *words; words++) {
                const char *next = strstr(at, *words);
                if (!next)
                        fail_msg("\"%s\" does not come where it should in %s", *words, text);
                at = next + strlen(*words);
        }
}

#define IN_ORDER(text, ...) in_order(text, (const char *const[]){__VA_ARGS__, NULL})

static unsigned count(const char *text, const char *word)
{
        unsigned n = 0;
        for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
                n++;
        return n;
}

static const char QUESTION[] = "{\"id\":\"q1\",\"role\":\"user\",\"content\":\"the question\"}";
static const char OTHER[] = "{\"id\":\"q2\",\"role\":\"user\",\"content\":\"another question\"}";

/* A run that was killed while its reply was arriving. */
static void die_in_a_reply(struct fixture *f)
{
        struct steno_run *run;
        fixture_append(f, QUESTION);
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        event(run, "run_started", "{\"runId\":\"r1\"}");
        event(run, "request", "{\"messageId\":\"m1\",\"after\":1}");
        event(run, "thinking", "{\"runId\":\"r1\",\"messageId\":\"m1\",\"text\":\"let me see\"}");
        event(run, "message", "{\"runId\":\"r1\",\"messageId\":\"m1\",\"text\":\"half \"}");
        event(run, "message", "{\"runId\":\"r1\",\"messageId\":\"m1\",\"text\":\"a reply\"}");
        steno_run_close(run);
}

/* ---- who completes it ---- */

static void by_view(struct fixture *f)
{
        free(view_of(f->conv, "openai", 0));
}

static int ignore(void *ctx, const struct steno_record *r)
{
        (void)ctx;
        (void)r;
        return 0;
}

static void by_reading(struct fixture *f)
{
        OK(steno_read(f->conv, 0, 0, ignore, NULL, &err));
}

static void by_list(struct fixture *f)
{
        char *json, words[40];
        uint64_t last;
        OK(steno_list(f->store, NULL, NULL, &json, &err));
        OK(steno_conv_last_seq(f->conv, &last, &err));
        snprintf(words, sizeof words, "\"messages\":%llu", (unsigned long long)last);
        assert_non_null(strstr(json, words)); /* what it completed is in the list */
        steno_free(json);
}

static void by_opening(struct fixture *f)
{
        struct steno_conv *conv;
        OK(steno_conv_open(f->store, NULL, "c", &conv, &err));
        steno_conv_close(conv);
}

static void by_the_next_run(struct fixture *f)
{
        struct steno_run *run;
        OK(steno_run_begin(f->conv, "r2", "chat", &run, &err));
        event(run, "run_finished", "{\"reason\":\"stop\"}");
        steno_run_close(run);
}

static void by_a_server(struct fixture *f)
{
        uint64_t n = 0;
        OK(steno_recover(f->store, &n, &err));
        assert_int_equal(n, 1);
}

static void by_a_purge(struct fixture *f)
{
        OK(steno_purge(f->store, NULL, "c", NULL, &err));
}

static void whoever_comes_first_completes_it(void **state)
{
        (void)state;
        static void (*const READERS[])(struct fixture *) = {
            by_view, by_reading, by_list, by_opening, by_the_next_run, by_a_server, by_a_purge};
        for (size_t i = 0; i < sizeof READERS / sizeof *READERS; i++) {
                void *inner = NULL;
                assert_int_equal(fixture_setup(&inner), 0);
                struct fixture *f = inner;
                die_in_a_reply(f);
                READERS[i](f);
                uint64_t last = 0;
                OK(steno_conv_last_seq(f->conv, &last, &err));
                if (last != 2)
                        fail_msg("reader %zu left %llu records", i, (unsigned long long)last);
                char *info;
                OK(steno_run_info(f->store, NULL, "r1", &info, &err));
                assert_non_null(strstr(info, "\"reason\":\"died\""));
                steno_free(info);
                fixture_teardown(&inner);
        }
}

static void the_half_reply_is_a_message_with_its_error(void **state)
{
        struct fixture *f = *state;
        die_in_a_reply(f);
        char *chat = view_of(f->conv, "chat", 0);
        IN_ORDER(chat, "the question", "\"id\":\"m1\"", "half a reply", "let me see",
            "\"partType\":\"error\"", "\"code\":\"RUN_DIED\"");
        char *again = view_of(f->conv, "chat", 0);
        assert_string_equal(chat, again);
        free(chat);
        free(again);
}

/* ---- its place ---- */

static void it_stands_where_it_was_asked_for(void **state)
{
        struct fixture *f = *state;
        static const char *const FORMATS[] = {"openai", "anthropic", "gemini", "chat", "responses"};
        die_in_a_reply(f);
        fixture_append(f, OTHER);
        for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
                char *text = view_of(f->conv, FORMATS[i], 0);
                IN_ORDER(text, "the question", "half a reply", "another question");
                assert_int_equal(count(text, "half a reply"), 1);
                free(text);
        }
        /* A page is in the order of seqs. */
        char *page = view_of(f->conv, "openai", 1);
        IN_ORDER(page, "another question", "half a reply");
        free(page);
}

static void several_of_one_place_keep_their_order(void **state)
{
        struct fixture *f = *state;
        struct steno_run *run;
        die_in_a_reply(f);
        fixture_append(f, OTHER);
        by_opening(f);
        OK(steno_run_begin(f->conv, "r2", "chat", &run, &err));
        event(run, "request", "{\"messageId\":\"m2\",\"after\":1}");
        event(run, "message", "{\"messageId\":\"m2\",\"text\":\"later half\"}");
        steno_run_close(run);
        char *text = view_of(f->conv, "openai", 0);
        IN_ORDER(text, "the question", "half a reply", "later half", "another question");
        free(text);
}

static void it_can_be_deleted_and_replaced_where_it_stands(void **state)
{
        struct fixture *f = *state;
        static const char NEW[] = "{\"role\":\"assistant\",\"content\":\"the whole reply\"}";
        die_in_a_reply(f);
        fixture_append(f, OTHER);
        by_opening(f);
        OK(steno_amend(f->conv, "supersede", "m1", NEW, strlen(NEW), NULL, NULL, &err));
        char *text = view_of(f->conv, "openai", 0);
        IN_ORDER(text, "the question", "the whole reply", "another question");
        assert_null(strstr(text, "half a reply"));
        free(text);
        OK(steno_amend(f->conv, "delete", "m1", NULL, 0, NULL, NULL, &err));
        text = view_of(f->conv, "openai", 0);
        assert_null(strstr(text, "reply"));
        free(text);
}

static void it_stands_behind_a_block_not_in_it(void **state)
{
        struct fixture *f = *state;
        struct steno_run *run;
        fixture_append(f, "{\"id\":\"a\",\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
                          "{\"id\":\"k\",\"type\":\"function\",\"function\":{\"name\":\"t\","
                          "\"arguments\":\"{}\"}}]}");
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        event(run, "request", "{\"messageId\":\"m1\",\"after\":1}");
        event(run, "message", "{\"messageId\":\"m1\",\"text\":\"half a reply\"}");
        fixture_append(f, "{\"role\":\"tool\",\"tool_call_id\":\"k\",\"content\":\"its result\"}");
        fixture_append(f, OTHER);
        steno_run_close(run);
        static const char *const FORMATS[] = {"openai", "anthropic", "gemini", "responses"};
        for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
                char *text = view_of(f->conv, FORMATS[i], 0);
                IN_ORDER(text, "its result", "half a reply", "another question");
                free(text);
        }
}

static void what_a_writer_expects_is_not_stale_because_of_it(void **state)
{
        struct fixture *f = *state;
        struct steno_append_options opt = {
            .size = sizeof opt, .flags = STENO_EXPECT_SEQ, .expected_seq = 1};
        die_in_a_reply(f);
        by_view(f);
        OK(steno_append(f->conv, OTHER, strlen(OTHER), &opt, NULL, &err));
        struct steno_error e;
        static const char THIRD[] = "{\"role\":\"user\",\"content\":\"third\"}";
        assert_int_equal(
            steno_append(f->conv, THIRD, strlen(THIRD), &opt, NULL, &e), STENO_ECONFLICT);
}

/* ---- calls ---- */

static void call(struct fixture *f, const char *id, const char *run)
{
        char json[400];
        snprintf(json, sizeof json,
            "{\"id\":\"%s\",\"role\":\"assistant\",\"content\":null,\"runId\":\"%s\","
            "\"tool_calls\":[{\"id\":\"call_0\",\"type\":\"function\",\"function\":{\"name\":\"t\","
            "\"arguments\":\"{}\"}}]}",
            id, run);
        fixture_append(f, json);
}

static const char FIRST[] = "{\"id\":\"t1\",\"role\":\"tool\",\"tool_call_id\":\"call_0\","
                            "\"content\":\"of the first\"}";

/* The run's call_0 has its outcome in the journal; then others come, with a call_0 of their own. */
static void die_behind_an_outcome(struct fixture *f, unsigned others)
{
        struct steno_run *run;
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        call(f, "a1", "r1");
        steno_run_set_caller(run, 1);
        OK(steno_run_dispatch(run, 1, "call_0", "t", "{}", 2, &err));
        OK(steno_run_outcome(run, 1, "call_0", FIRST, strlen(FIRST), &err));
        for (unsigned i = 0; i < others; i++)
                fixture_append(f, "{\"role\":\"user\",\"content\":\"meanwhile\"}");
        call(f, "a2", "");
        steno_run_close(run);
}

static void an_outcome_goes_to_its_own_call(void **state)
{
        (void)state;
        static const unsigned OTHERS[] = {0, 1, 60, PAIRING_WINDOW + 100};
        static const char *const FORMATS[] = {"openai", "anthropic", "chat"};
        for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
                void *inner = NULL;
                assert_int_equal(fixture_setup(&inner), 0);
                struct fixture *f = inner;
                die_behind_an_outcome(f, OTHERS[i]);
                for (size_t k = 0; k < 3; k++) {
                        char *text = view_of(f->conv, FORMATS[k], 0);
                        if (OTHERS[i])
                                IN_ORDER(text, "call_0", "of the first", "meanwhile", "call_0");
                        else
                                IN_ORDER(text, "call_0", "of the first", "call_0");
                        assert_int_equal(count(text, "of the first"), 1);
                        free(text);
                }
                fixture_teardown(&inner);
        }
}

struct named {
        struct steno_run *run;
        char ref[64];
};

static void note_ref(void *ctx, const char *ref)
{
        struct named *n = ctx;
        char data[160];
        snprintf(n->ref, sizeof n->ref, "%s", ref);
        snprintf(data, sizeof data, "{\"call\":\"call_0\",\"ref\":\"%s\"}", ref);
        event(n->run, "output", data);
}

static void step(struct steno_run *run, const char *text)
{
        char data[160];
        snprintf(data, sizeof data,
            "{\"runId\":\"r1\",\"messageId\":\"a1\",\"toolCallId\":\"call_0\",\"text\":\"%s\"}",
            text);
        event(run, "tool_call_step", data);
}

static void a_call_keeps_its_start_its_steps_and_its_output(void **state)
{
        struct fixture *f = *state;
        struct named named = {0};
        struct steno_output *output;
        OK(steno_run_begin(f->conv, "r1", "chat", &named.run, &err));
        call(f, "a1", "r1");
        steno_run_set_caller(named.run, 1);

        char *text = view_of(f->conv, "chat", 0);
        IN_ORDER(text, "\"state\":\"waiting\"", "\"runId\":\"r1\"");
        free(text);

        OK(steno_run_dispatch(named.run, 1, "call_0", "t", "{}", 2, &err));
        struct steno_output_options opt = {.size = sizeof opt,
            .tool = "t",
            .call_id = "call_0",
            .terminal = true,
            .on_ref = note_ref,
            .on_ref_ctx = &named};
        OK(steno_output_begin(f->conv, &opt, &output, &err));
        OK(steno_output_write(output, "what had arrived\n", 17, &err));
        step(named.run, "one");
        step(named.run, "two");

        text = view_of(f->conv, "chat", 0);
        IN_ORDER(text, "\"state\":\"running\"", "\"invokedAt\":\"20",
            "\"steps\":[{\"text\":\"one\"},{\"text\":\"two\"}]", named.ref, "\"runId\":\"r1\"");
        free(text);

        steno_output_free(output);
        steno_run_close(named.run);
        text = view_of(f->conv, "chat", 0);
        IN_ORDER(text, "\"state\":\"indeterminate\"", "\"invokedAt\":\"20",
            "\"steps\":[{\"text\":\"one\"},{\"text\":\"two\"}]", named.ref, "\"byteSize\":17");
        free(text);
        static const char *const FORMATS[] = {"openai", "anthropic", "gemini", "responses"};
        for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
                text = view_of(f->conv, FORMATS[i], 0);
                IN_ORDER(text, "side effects are unknown", named.ref);
                free(text);
        }
}

/* ---- several at once ---- */

#define READERS 6

static void child_reads(struct fixture *f, int out)
{
        struct steno_store *store;
        struct steno_conv *conv;
        OK(steno_open(f->scratch.path, NULL, &store, &err));
        OK(steno_conv_open(store, NULL, "c", &conv, &err));
        char *text = view_of(conv, "chat", 0);
        ssize_t wrote = write(out, text, strlen(text) + 1);
        _exit(wrote == (ssize_t)strlen(text) + 1 ? 0 : 1);
}

static void readers_at_the_same_time_see_the_same_bytes(void **state)
{
        struct fixture *f = *state;
        int pipes[READERS][2];
        pid_t pids[READERS];
        die_in_a_reply(f);
        fixture_append(f, OTHER);
        fixture_close(f);
        for (int i = 0; i < READERS; i++) {
                assert_int_equal(pipe(pipes[i]), 0);
                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0)
                        child_reads(f, pipes[i][1]);
                close(pipes[i][1]);
        }
        char first[8192], text[8192];
        for (int i = 0; i < READERS; i++) {
                int status;
                waitpid(pids[i], &status, 0);
                assert_int_equal(status, 0);
                ssize_t n = read(pipes[i][0], i ? text : first, sizeof text);
                assert_true(n > 0);
                close(pipes[i][0]);
                if (i)
                        assert_string_equal(first, text);
        }
        fixture_open(f);
        assert_int_equal(count(first, "half a reply"), 1);
}

/* ---- a run on another machine ---- */

static const char *boot_word = "another-boot";

static void fake_boot(const struct env *self, char out[40])
{
        (void)self;
        snprintf(out, 40, "%s", boot_word);
}

/* Another machine, or this one after a boot, opens the same store. */
static struct steno_conv *open_elsewhere(struct fixture *f, struct env *env, struct steno_store **s)
{
        struct steno_conv *conv;
        *env = *env_real();
        env->boot = fake_boot;
        OK(api_store_open_in(env, f->scratch.path, NULL, s, &err));
        OK(steno_conv_open(*s, NULL, "c", &conv, &err));
        return conv;
}

/* As if the first process to look had done so this much earlier. */
static void age_what_was_seen(struct fixture *f, int64_t ms)
{
        char text[600], aged[700], boot[40], rest[500];
        long long at;
        fixture_slurp(f, RUNS ".seen", text, sizeof text);
        assert_int_equal(sscanf(text, "%39s %lld %499[^\n]", boot, &at, rest), 3);
        int n = snprintf(aged, sizeof aged, "%s %lld %s", boot, at - (long long)ms, rest);
        fixture_spit(f, RUNS ".seen", aged, (size_t)n);
}

static void a_run_of_another_boot_is_dead_when_its_lease_stands_still(void **state)
{
        struct fixture *f = *state;
        struct env env;
        struct steno_store *store;
        die_in_a_reply(f);
        /* Opening it in this process would complete it, so this process does not look until
         * then. */
        struct steno_conv *conv = open_elsewhere(f, &env, &store);
        uint64_t last;
        char *text = view_of(conv, "openai", 0);
        assert_null(strstr(text, "half a reply"));
        free(text);
        struct steno_run *run;
        struct steno_error e = {0};
        assert_int_equal(steno_run_begin(conv, "r2", "chat", &run, &e), STENO_ECONFLICT);
        age_what_was_seen(f, RUN_LEASE_MS - 2000);
        text = view_of(conv, "openai", 0);
        assert_null(strstr(text, "half a reply"));
        free(text);
        /* The holder increased the number: the wait begins again. */
        static const char BEAT[] = "r1\n1\n00000000000000000007\n";
        fixture_spit(f, RUNS ".claim", BEAT, sizeof BEAT - 1);
        age_what_was_seen(f, RUN_LEASE_MS);
        text = view_of(conv, "openai", 0);
        assert_null(strstr(text, "half a reply"));
        free(text);
        age_what_was_seen(f, RUN_LEASE_MS);
        text = view_of(conv, "openai", 0);
        assert_non_null(strstr(text, "half a reply"));
        free(text);
        OK(steno_conv_last_seq(conv, &last, &err));
        assert_int_equal(last, 2);
        steno_conv_close(conv);
        steno_close(store);
}

static void a_run_that_was_taken_over_writes_nothing_more(void **state)
{
        struct fixture *f = *state;
        struct steno_run *run;
        struct steno_error e = {0};
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        event(run, "step", "{}");
        OK(steno_run_check(run, &err));
        /* What a takeover writes, from a machine that cannot see this process's lock. */
        static const char NEXT[] = "r1\n99\n00000000000000000000\n";
        fixture_spit(f, RUNS ".claim", NEXT, sizeof NEXT - 1);
        assert_int_equal(steno_run_check(run, &e), STENO_ECONFLICT);
        assert_int_equal(
            steno_run_event(run, "step", "{}", 2, STENO_PROCESS, NULL, &e), STENO_ECONFLICT);
        assert_int_equal(steno_run_dispatch(run, 1, "k", "t", "{}", 2, &e), STENO_ECONFLICT);
        steno_run_close(run);
}

static void a_live_run_is_left_alone(void **state)
{
        struct fixture *f = *state;
        struct steno_run *run;
        fixture_append(f, QUESTION);
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        event(run, "message", "{\"messageId\":\"m1\",\"text\":\"half a reply\"}");
        by_view(f);
        by_opening(f);
        by_list(f);
        by_reading(f);
        uint64_t last;
        OK(steno_conv_last_seq(f->conv, &last, &err));
        assert_int_equal(last, 1);
        event(run, "run_finished", "{\"reason\":\"stop\"}");
        steno_run_close(run);
}

/* ---- what cannot be written ---- */

static void a_recovery_that_fails_does_not_fail_the_read(void **state)
{
        struct fixture *f = *state;
        char command[800];
        die_in_a_reply(f);
        fixture_close(f);
        snprintf(command, sizeof command, "chmod -R a-w '%s'", f->scratch.path);
        assert_int_equal(system(command), 0);
        fixture_open(f);
        char *text = view_of(f->conv, "openai", 0);
        assert_non_null(strstr(text, "the question"));
        free(text);
        snprintf(command, sizeof command, "chmod -R u+w '%s'", f->scratch.path);
        assert_int_equal(system(command), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(whoever_comes_first_completes_it),
            T(the_half_reply_is_a_message_with_its_error),
            T(it_stands_where_it_was_asked_for),
            T(several_of_one_place_keep_their_order),
            T(it_can_be_deleted_and_replaced_where_it_stands),
            T(it_stands_behind_a_block_not_in_it),
            T(what_a_writer_expects_is_not_stale_because_of_it),
            cmocka_unit_test(an_outcome_goes_to_its_own_call),
            T(a_call_keeps_its_start_its_steps_and_its_output),
            T(readers_at_the_same_time_see_the_same_bytes),
            T(a_run_of_another_boot_is_dead_when_its_lease_stands_still),
            T(a_run_that_was_taken_over_writes_nothing_more),
            T(a_live_run_is_left_alone),
            T(a_recovery_that_fails_does_not_fail_the_read),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
