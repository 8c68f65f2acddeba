/* execute_command as a tool: what a model's call becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fake_call.h"
#include "exec/exec_tool.h"
#include "support/patience.h"

extern char **environ;

static struct exec_tool_options options = {.directory = "/usr"};

static int run(struct fake_call *f, const char *args)
{
        struct steno_tools set;

        options.env = (const char *const *)environ;
        toolset_init(&set);
        assert_int_equal(exec_tool_add(&set, &options, NULL), 0);
        int rc = fake_run(f, &set, "execute_command", args);
        toolset_release(&set);
        return rc;
}

static void output_and_exit_code_come_back(void **state)
{
        (void)state;
        struct fake_call f;

        fake_init(&f);
        assert_int_equal(run(&f, "{\"shell\":\"echo out; echo err >&2; exit 3\"}"), 0);
        assert_string_equal(fake_text(&f), "out\nerr\n");
        assert_true(f.result.has_exit);
        assert_int_equal(f.result.exit_code, 3);
        assert_true(f.result.is_error);
        fake_release(&f);
        fake_init(&f);
        assert_int_equal(run(&f, "{\"argv\":[\"printf\",\"%s\",\"a b\"]}"), 0);
        assert_string_equal(fake_text(&f), "a b");
        assert_false(f.result.is_error);
        fake_release(&f);
}

static void a_death_by_signal_is_reported(void **state)
{
        (void)state;
        struct fake_call f;

        fake_init(&f);
        assert_int_equal(run(&f, "{\"shell\":\"kill -9 $$\"}"), 0);
        assert_false(f.result.has_exit);
        assert_int_equal(f.result.signal, SIGKILL);
        assert_true(f.result.is_error);
        fake_release(&f);
}

static void directories_are_relative_to_the_session(void **state)
{
        (void)state;
        struct fake_call f;

        fake_init(&f);
        assert_int_equal(run(&f, "{\"argv\":[\"pwd\"]}"), 0);
        assert_int_equal(run(&f, "{\"argv\":[\"pwd\"],\"directory\":\"lib\"}"), 0);
        assert_int_equal(run(&f, "{\"argv\":[\"pwd\"],\"directory\":\"/usr/lib\"}"), 0);
        assert_string_equal(fake_text(&f), "/usr\n/usr/lib\n/usr/lib\n");
        assert_false(f.result.is_error);
        assert_int_equal(run(&f, "{\"argv\":[\"pwd\"],\"directory\":\"/etc\"}"), 0);
        assert_true(f.result.is_error);
        assert_non_null(strstr(fake_text(&f), "session's directory"));
        fake_release(&f);
}

static void mistakes_get_explanations(void **state)
{
        (void)state;
        static const char *const bad[][2] = {
            {"{}", "either \"argv\""},
            {"{\"argv\":[\"a\"],\"shell\":\"b\"}", "either \"argv\""},
            {"{\"argv\":[]}", "must begin with a program"},
            {"{\"argv\":\"ls -l\"}", "list of strings"},
            {"{\"argv\":[\"ls\",1]}", "list of strings"},
            {"{\"argv\":[\"a\\u0000b\"]}", "list of strings"},
            {"{\"argv\":[\"a\"],\"argv\":[\"b\"]}", "twice"},
            {"{\"command\":\"ls\"}", "unknown key \"command\""},
            {"{\"argv\":[\"ls\"],\"timeout\":3}", "unknown key \"timeout\""},
            {"{\"argv\":[\"ls\"],\"timeout_seconds\":0}", "from 1 to"},
            {"{\"argv\":[\"no-such-program-here\"]}",
                "cannot run \"no-such-program-here\": no such program in PATH"},
            {"{\"argv\":[\"ls\"],\"directory\":\"nowhere\"}",
                "cannot run \"ls\" in nowhere: No such file"},
            {"{\"argv\":[\"/etc/passwd\"]}", "Permission denied"},
            {"not json", "arguments"},
        };

        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                struct fake_call f;
                fake_init(&f);
                assert_int_equal(run(&f, bad[i][0]), 0);
                assert_true(f.result.is_error);
                if (!strstr(fake_text(&f), bad[i][1]))
                        fail_msg("%s: %s", bad[i][0], fake_text(&f));
                fake_release(&f);
        }
}

static void a_time_limit_keeps_what_had_arrived(void **state)
{
        (void)state;
        struct fake_call f;
        int64_t start = time_monotonic_ms();

        /* On a busy machine the time may be over before the command has begun. */
        bool in_time = false;
        for (int limit = 2; !in_time; limit *= 2) {
                char arguments[100], after[32];
                assert_true(limit * 1000 < PATIENCE_MS);
                snprintf(arguments, sizeof(arguments),
                    "{\"shell\":\"echo early; sleep 600\",\"timeout_seconds\":%d}", limit);
                snprintf(after, sizeof(after), "after %d.0 s", limit);
                fake_init(&f);
                assert_int_equal(run(&f, arguments), STENO_ETIMEOUT);
                assert_non_null(strstr(f.err.msg, after));
                in_time = f.result.signal == SIGTERM && strcmp(fake_text(&f), "early\n") == 0;
                fake_release(&f);
        }

        fake_init(&f);
        f.call.deadline = time_monotonic_ms() + 300;
        assert_int_equal(run(&f, "{\"shell\":\"sleep 600\"}"), STENO_ETIMEOUT);
        assert_true(time_monotonic_ms() - start < 2 * PATIENCE_MS);
        fake_release(&f);
}

static void a_call_cannot_ask_for_more_time_than_is_given(void **state)
{
        (void)state;
        struct fake_call f;
        struct steno_tools set;
        struct exec_tool_options given = {
            .directory = "/usr", .env = (const char *const *)environ, .timeout_ms = 200};

        toolset_init(&set);
        assert_int_equal(exec_tool_add(&set, &given, NULL), 0);
        fake_init(&f);
        int rc = fake_run(
            &f, &set, "execute_command", "{\"argv\":[\"sleep\",\"5\"],\"timeout_seconds\":60}");
        assert_int_equal(rc, STENO_ETIMEOUT);
        assert_non_null(strstr(f.err.msg, "after 0.2 s"));
        fake_release(&f);
        toolset_release(&set);
}

static void *stop_after_output(void *arg)
{
        struct fake_call *f = arg;
        while (!f->wrote)
                usleep(1000);
        steno_stop_request(f->stop);
        return NULL;
}

static void a_stop_ends_it_at_once(void **state)
{
        (void)state;
        struct fake_call f;
        pthread_t thread;
        int64_t start = time_monotonic_ms();

        fake_init(&f);
        pthread_create(&thread, NULL, stop_after_output, &f);
        assert_int_equal(run(&f, "{\"shell\":\"echo a; sleep 600\"}"), STENO_EINTERRUPTED);
        assert_true(time_monotonic_ms() - start < PATIENCE_MS);
        assert_string_equal(fake_text(&f), "a\n");
        pthread_join(thread, NULL);
        fake_release(&f);
}

static void leftovers_are_reported_as_a_step(void **state)
{
        (void)state;
        struct fake_call f;

        fake_init(&f);
        assert_int_equal(run(&f, "{\"shell\":\"sleep 60 & echo started\"}"), 0);
        assert_string_equal(fake_text(&f), "started\n");
        assert_non_null(strstr(fake_steps(&f), "left behind were ended"));
        fake_release(&f);
}

static void the_store_is_out_of_reach(void **state)
{
        (void)state;
        struct fake_call f;
        char dir[] = "/tmp/steno-tool-XXXXXX", store[64], path[96], args[200], command[64];

        assert_non_null(mkdtemp(dir));
        snprintf(store, sizeof(store), "%s/store", dir);
        mkdir(store, 0700);
        snprintf(path, sizeof(path), "%s/messages.jsonl", store);
        FILE *file = fopen(path, "w");
        fputs("canary-99\n", file);
        fclose(file);
        const char *hidden[] = {store, NULL};
        options.hidden = hidden;
        snprintf(
            args, sizeof(args), "{\"shell\":\"grep -r canary %s; cat %s; echo over\"}", dir, path);
        fake_init(&f);
        assert_int_equal(run(&f, args), 0);
        options.hidden = NULL;
        assert_null(strstr(fake_text(&f), "canary-99"));
        assert_non_null(strstr(fake_text(&f), "over\n"));
        fake_release(&f);
        snprintf(command, sizeof(command), "rm -r %s", dir);
        assert_int_equal(system(command), 0);
}

static void the_schema_is_what_the_parser_takes(void **state)
{
        (void)state;
        struct steno_tools set;

        toolset_init(&set);
        assert_int_equal(exec_tool_add(&set, &options, NULL), 0);
        struct str schema = set.list[0].schema;
        assert_non_null(memmem(schema.p, schema.n, "\"timeout_seconds\"", 17));
        assert_true(set.list[0].flags & TOOL_TERMINAL);
        assert_false(set.list[0].flags & TOOL_PUBLIC);
        toolset_release(&set);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(output_and_exit_code_come_back),
            cmocka_unit_test(a_death_by_signal_is_reported),
            cmocka_unit_test(directories_are_relative_to_the_session),
            cmocka_unit_test(mistakes_get_explanations),
            cmocka_unit_test(a_time_limit_keeps_what_had_arrived),
            cmocka_unit_test(a_call_cannot_ask_for_more_time_than_is_given),
            cmocka_unit_test(a_stop_ends_it_at_once),
            cmocka_unit_test(leftovers_are_reported_as_a_step),
            cmocka_unit_test(the_store_is_out_of_reach),
            cmocka_unit_test(the_schema_is_what_the_parser_takes),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
