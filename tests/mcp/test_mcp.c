/* MCP servers as tools: correct servers, and servers that fail in every possible way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "mcp/mcp_name.h"
#include "mcp_rig.h"
#include "support/patience.h"

/* ---- how it opens ---- */

static void every_era_and_every_opening_is_understood(void **state)
{
        (void)state;
        static const char *const modes[] = {"legacy", "fragile", "modern", "chatty", NULL};

        for (size_t i = 0; modes[i]; i++) {
                struct rig r;
                rig_fake(&r, modes[i]);
                expect(&r, "mcp__fake__echo", "{\"a\":1}", "{\"a\": 1}");
                rig_release(&r);
        }
}

static void a_server_that_ignores_the_probe_is_opened_after_a_while(void **state)
{
        (void)state;
        struct rig r;

        if (!getenv("STENO_TEST_LONG")) {
                print_message("# only with STENO_TEST_LONG: it takes five seconds\n");
                return;
        }
        rig_fake(&r, "silent");
        expect(&r, "mcp__fake__echo", "{}", "{}");
        rig_release(&r);
}

static void old_revisions_are_accepted_and_unknown_ones_refused(void **state)
{
        (void)state;
        static const char *const good[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
        struct rig r;

        for (size_t i = 0; i < 4; i++) {
                struct mcp_client *c = NULL;
                struct steno_error err;
                rig_init(&r, "fake", "python3");
                r.args[0] = TESTS_DIR "/mcp/servers/fake.py";
                r.args[1] = "legacy";
                r.args[2] = (char *)good[i];
                assert_int_equal(mcp_client_open(&r.server, &r.opt.host, 0, NULL, &c, &err), 0);
                mcp_client_close(c);
                rig_release(&r);
        }
        rig_init(&r, "fake", "python3");
        r.args[0] = TESTS_DIR "/mcp/servers/fake.py";
        r.args[1] = "legacy";
        r.args[2] = "1999-01-01";
        rig_start(&r);
        assert_non_null(strstr(buf_cstr(&r.warnings), "speaks revision \"1999-01-01\""));
        rig_release(&r);
}

static void a_server_that_cannot_start_is_a_warning(void **state)
{
        (void)state;
        struct rig r;

        rig_init(&r, "ghost", "no-such-program-here");
        rig_start(&r);
        assert_int_equal(r.set.count, 0);
        assert_non_null(strstr(buf_cstr(&r.warnings), "ghost is not available"));
        rig_release(&r);
        rig_init(&r, "brief", "sh");
        r.args[0] = "-c";
        r.args[1] = "echo cannot find my shoes >&2; exit 4";
        rig_start(&r);
        assert_int_equal(r.set.count, 0);
        if (!strstr(buf_cstr(&r.warnings), "exited with 4: cannot find my shoes"))
                fail_msg("%s", buf_cstr(&r.warnings));
        rig_release(&r);
}

/* ---- names ---- */

static bool in_list(void *ctx, const char *name)
{
        const char *const *list = ctx;

        for (size_t i = 0; list[i]; i++)
                if (strcmp(list[i], name) == 0)
                        return true;
        return false;
}

static void offered_names_fit_providers_and_are_unique(void **state)
{
        (void)state;
        char a[MCP_NAME_MAX + 1], b[MCP_NAME_MAX + 1], c[MCP_NAME_MAX + 1];
        const char *none[] = {NULL};

        assert_true(mcp_name_offer("fs", "read.file", in_list, none, a));
        assert_string_equal(a, "mcp__fs__read_file");
        const char *one[] = {a, NULL};
        assert_true(mcp_name_offer("fs", "read file", in_list, one, b));
        assert_memory_equal(b, "mcp__fs__read_file_", 19);
        assert_string_not_equal(a, b);
        const char *two[] = {a, b, NULL};
        assert_false(mcp_name_offer("fs", "read file", in_list, two, c));

        assert_true(mcp_name_offer("a", "b__c", in_list, none, a));
        const char *first[] = {a, NULL};
        assert_true(mcp_name_offer("a__b", "c", in_list, first, b));
        assert_string_not_equal(a, b);

        char raw[129];
        memset(raw, 'n', 128);
        raw[128] = '\0';
        assert_true(mcp_name_offer("server", raw, in_list, none, a));
        raw[127] = 'm';
        assert_true(mcp_name_offer("server", raw, in_list, none, b));
        assert_int_equal(strlen(a), MCP_NAME_MAX);
        assert_string_not_equal(a, b);
        assert_true(toolset_name_ok(str_of(a)));
        assert_true(mcp_name_offer("s\xC3\xA9rv", "\xE2\x82\xAC", in_list, none, c));
        assert_true(toolset_name_ok(str_of(c)));
}

static void tools_of_all_pages_are_offered_in_order(void **state)
{
        (void)state;
        struct rig r;

        rig_fake(&r, "legacy");
        assert_int_equal(r.set.count, 19);
        assert_string_equal(r.set.list[0].name, "mcp__fake__echo");
        assert_string_equal(r.set.list[12].name, "mcp__fake__with_dot");
        assert_string_equal(r.set.list[12].raw_name, "with.dot");
        assert_string_equal(r.set.list[13].raw_name, "with dot");
        assert_string_not_equal(r.set.list[13].name, r.set.list[12].name);
        assert_string_equal(r.set.list[0].server, "fake");
        assert_string_equal(r.set.list[0].description, "does echo");
        assert_true(r.set.list[0].flags & TOOL_PARALLEL);
        assert_false(r.set.list[1].flags & TOOL_PARALLEL);
        rig_release(&r);
}

/* ---- calls ---- */

static void arguments_arrive_as_they_were_written(void **state)
{
        (void)state;
        struct rig r;

        rig_fake(&r, "legacy");
        expect(&r, "mcp__fake__echo", "{\n \"n\": 1.50,\r\n \"s\": \"\\u00e9\\n\"\n}",
            "{\"n\": 1.5, \"s\": \"\\u00e9\\n\"}");
        rig_release(&r);
}

static void progress_becomes_steps(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;

        rig_fake(&r, "legacy");
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__progress", "{}"), 0);
        assert_string_equal(fake_steps(&f), "step 1 1/3;step 2 2/3;step 3 3/3;");
        assert_string_equal(fake_text(&f), "done");
        fake_release(&f);
        rig_release(&r);
}

static void nothing_of_a_result_is_lost(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;

        rig_fake(&r, "legacy");
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__image", "{}"), 0);
        assert_non_null(strstr(fake_text(&f), "look:\n[image image/png, "));
        assert_non_null(strstr(fake_text(&f), "data:image/png;base64,iVBORw0KGgo"));
        fake_release(&f);
        expect(&r, "mcp__fake__mixed", "{}",
            "[audio audio/wav, 3 bytes]\ndata:audio/wav;base64,QUJD\n"
            "[resource text/plain file:///a]\ninside\n"
            "[resource file:///b, 3 bytes]\ndata:;base64,REVG\n"
            "[resource_link c file:///c]\n"
            "{\"type\": \"resource_link\", \"uri\": \"file:///c\", \"name\": \"c\", \"size\": 7}\n"
            "{\"type\": \"hologram\", \"x\": 1}");
        expect(&r, "mcp__fake__structured", "{}", "words\n{\"a\": [1, 2]}");
        expect(&r, "mcp__fake__structured", "{\"same\":true}", "{ \"a\": [1, 2] }");
        rig_release(&r);
}

static void a_tool_that_fails_says_so_in_its_own_words(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;

        rig_fake(&r, "legacy");
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__error", "{}"), 0);
        assert_true(f.result.is_error);
        assert_string_equal(fake_text(&f), "no such file");
        fake_release(&f);
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__refuse", "{}"), 0);
        assert_true(f.result.is_error);
        assert_string_equal(fake_text(&f), "bad colour (-32602)");
        fake_release(&f);
        rig_release(&r);
}

static void a_server_that_dies_in_a_call_gives_an_error_and_is_started_again(void **state)
{
        (void)state;
        struct rig r;

        rig_fake(&r, "legacy");
        for (int i = 0; i < 3; i++) {
                struct fake_call f;
                fake_init(&f);
                assert_int_equal(fake_run(&f, &r.set, "mcp__fake__die", "{}"), STENO_EIO);
                assert_string_equal(f.err.msg, "MCP server fake exited with 3: out of cheese");
                fake_release(&f);
                expect(&r, "mcp__fake__echo", "{}", "{}");
        }
        struct fake_call f;
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__die", "{}"), STENO_EIO);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__echo", "{}"), STENO_EIO);
        assert_non_null(strstr(f.err.msg, "not started again"));
        fake_release(&f);
        rig_release(&r);
}

static size_t count_lines(const char *path)
{
        FILE *f = fopen(path, "r");
        size_t n = 0;
        int c;

        while (f && (c = fgetc(f)) != EOF)
                n += c == '\n';
        if (f)
                fclose(f);
        return n;
}

static void a_server_that_hangs_is_abandoned_after_its_limit_and_told(void **state)
{
        (void)state;
        bool asked = false;

        /* On a busy machine the time limit may pass before the server was asked. */
        for (int limit = 1000; !asked; limit *= 2) {
                struct rig r;
                struct fake_call f;
                char path[100];
                assert_true(limit < PATIENCE_MS);
                rig_fake(&r, "legacy");
                fake_init(&f);
                int64_t start = time_monotonic_ms();
                f.call.deadline = start + limit;
                assert_int_equal(fake_run(&f, &r.set, "mcp__fake__hang", "{}"), STENO_ETIMEOUT);
                int64_t took = time_monotonic_ms() - start;
                assert_true(took >= limit && took < PATIENCE_MS);
                fake_release(&f);
                expect(&r, "mcp__fake__echo", "{}", "{}");
                snprintf(path, sizeof(path), "%s/cancelled.asked", r.marks);
                asked = count_lines(path) == 1;
                snprintf(path, sizeof(path), "%s/cancelled", r.marks);
                assert_int_equal(count_lines(path), asked ? 1 : 0);
                rig_release(&r);
        }
}

static void *stop_soon(void *arg)
{
        usleep(200000);
        steno_stop_request(arg);
        return NULL;
}

static void a_stop_ends_the_waiting_at_once(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;
        pthread_t thread;

        rig_fake(&r, "legacy");
        fake_init(&f);
        int64_t start = time_monotonic_ms();
        pthread_create(&thread, NULL, stop_soon, f.stop);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__hang", "{}"), STENO_EINTERRUPTED);
        assert_true(time_monotonic_ms() - start < PATIENCE_MS);
        pthread_join(thread, NULL);
        fake_release(&f);
        rig_release(&r);
}

static void garbage_between_messages_is_passed_over(void **state)
{
        (void)state;
        struct rig r;

        rig_fake(&r, "chatty");
        expect(&r, "mcp__fake__lines", "{}", "after the noise");
        rig_release(&r);
}

static void an_answer_of_more_than_ten_mebibytes_is_taken_whole(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;

        rig_fake(&r, "legacy");
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__huge", "{}"), 0);
        assert_int_equal(f.text.n, 11 << 20);
        fake_release(&f);
        expect(&r, "mcp__fake__echo", "{}", "{}");
        rig_release(&r);
}

static void stderr_is_drained_and_requests_of_the_server_are_answered(void **state)
{
        (void)state;
        struct rig r;

        rig_fake(&r, "legacy");
        expect(&r, "mcp__fake__flood", "{}", "still here");
        expect(&r, "mcp__fake__ping", "{}", "[[true, false], [false, true]]");
        rig_release(&r);
}

struct many {
        const struct rig *r;
        int failures;
};

static void *call_many(void *arg)
{
        struct many *m = arg;

        for (int i = 0; i < 50; i++) {
                struct fake_call f;
                char args[40], text[40];
                fake_init(&f);
                snprintf(args, sizeof(args), "{\"i\":%d}", i + 1000 * (int)((uintptr_t)m % 97));
                snprintf(text, sizeof(text), "{\"i\": %d}", i + 1000 * (int)((uintptr_t)m % 97));
                if (fake_run(&f, &m->r->set, "mcp__fake__echo", args) != 0 ||
                    strcmp(fake_text(&f), text) != 0)
                        m->failures++;
                fake_release(&f);
        }
        return NULL;
}

static void calls_from_many_threads_get_their_own_answers(void **state)
{
        (void)state;
        struct rig r;
        pthread_t threads[8];
        struct many many[8];

        rig_fake(&r, "legacy");
        for (int i = 0; i < 8; i++) {
                many[i] = (struct many){&r, 0};
                pthread_create(&threads[i], NULL, call_many, &many[i]);
        }
        for (int i = 0; i < 8; i++) {
                pthread_join(threads[i], NULL);
                assert_int_equal(many[i].failures, 0);
        }
        rig_release(&r);
}

/* ---- hygiene ---- */

static void a_server_sees_no_canary(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;
        int fd = open("/etc/hostname", O_RDONLY);

        setenv("STENO_CANARY", "canary-1", 1);
        rig_init(&r, "fake", "python3");
        r.args[0] = TESTS_DIR "/mcp/servers/fake.py";
        r.env[1] = "GIVEN=yes";
        rig_start(&r);
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__environment", "{}"), 0);
        assert_null(strstr(fake_text(&f), "canary-1"));
        assert_non_null(strstr(fake_text(&f), "\"GIVEN\": \"yes\""));
        assert_non_null(strstr(fake_text(&f), "\"fds\": [\"0\", \"1\", \"2\", \"3\"]"));
        fake_release(&f);
        rig_release(&r);
        close(fd);
}

static void a_server_and_its_children_are_gone_after_the_end(void **state)
{
        (void)state;
        static const char *const modes[] = {"legacy", "stubborn"};

        for (int i = 0; i < 2; i++) {
                struct rig r;
                char mark[64], args[100];
                snprintf(mark, sizeof(mark), "mcpfamily-%d-%d", (int)getpid(), i);
                snprintf(args, sizeof(args), "{\"mark\":\"%s\"}", mark);
                rig_fake(&r, modes[i]);
                expect(&r, "mcp__fake__family", args, "born");
                for (int k = 0; k < PATIENCE_MS / 10 && !alive(mark); k++)
                        usleep(10000);
                assert_true(alive(mark));
                int64_t start = time_monotonic_ms();
                toolset_release(&r.set);
                assert_true(time_monotonic_ms() - start < PATIENCE_MS);
                assert_false(alive(mark));
                rig_release(&r);
        }
}

/* ---- over HTTP ---- */

static void rig_web(struct rig *r, struct web *w, const char *mode)
{
        web_start(w, mode);
        rig_init(r, "web", NULL);
        r->server.url = w->url;
        r->headers[0] = "Authorization: Bearer t";
        r->server.headers = r->headers;
        rig_start(r);
        if (r->warnings.n)
                fail_msg("%s", buf_cstr(&r->warnings));
}

static void http_servers_of_both_eras_are_spoken_to(void **state)
{
        (void)state;
        static const char *const modes[] = {"legacy", "modern"};

        for (int i = 0; i < 2; i++) {
                struct rig r;
                struct web w;
                struct fake_call f;
                rig_web(&r, &w, modes[i]);
                assert_int_equal(r.set.count, 10);
                expect(&r, "mcp__web__echo", "{\"a\":\n1}", "{\"a\": 1}");
                expect(&r, "mcp__web__headers", "{}", "Bearer t");
                expect(&r, r.set.list[6].name, "{}", "{}");
                fake_init(&f);
                assert_int_equal(fake_run(&f, &r.set, "mcp__web__stream", "{}"), 0);
                assert_string_equal(fake_text(&f), "streamed");
                assert_string_equal(fake_steps(&f), "- 250/1000;- 500/1000;- 750/1000;");
                fake_release(&f);
                rig_release(&r);
                web_end(&w);
        }
}

/* Nobody waits until the server has read that a call was cancelled. So the server may know it only
 * after the next question, and on a busy machine only at the next call that is abandoned. */
static void leave_until_told(const struct rig *r)
{
        int64_t start = time_monotonic_ms();
        int left = 0, told = 0;

        while (told == 0) {
                struct fake_call f;
                assert_true(time_monotonic_ms() - start < PATIENCE_MS);
                fake_init(&f);
                f.call.deadline = time_monotonic_ms() + 1000;
                assert_int_equal(fake_run(&f, &r->set, "mcp__web__slow", "{}"), STENO_ETIMEOUT);
                fake_release(&f);
                left++;
                fake_init(&f);
                assert_int_equal(fake_run(&f, &r->set, "mcp__web__state", "{}"), 0);
                assert_int_equal(sscanf(fake_text(&f), "{\"cancelled\": %d}", &told), 1);
                fake_release(&f);
        }
        assert_in_range(told, 1, left);
}

static void http_trouble_gives_error_results(void **state)
{
        (void)state;
        struct rig r;
        struct web w;
        struct fake_call f;

        rig_web(&r, &w, "legacy");
        expect(&r, "mcp__web__lose", "{}", "found again in session-2");

        leave_until_told(&r);

        fake_init(&f);
        pthread_t thread;
        int64_t start = time_monotonic_ms();
        pthread_create(&thread, NULL, stop_soon, f.stop);
        assert_int_equal(fake_run(&f, &r.set, "mcp__web__slow", "{}"), STENO_EINTERRUPTED);
        assert_true(time_monotonic_ms() - start < PATIENCE_MS);
        pthread_join(thread, NULL);
        fake_release(&f);

        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__web__cut", "{}"), STENO_EIO);
        assert_non_null(strstr(f.err.msg, "ended before the answer"));
        fake_release(&f);

        expect(&r, "mcp__web__resume", "{}", "resumed");

        web_end(&w);
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__web__echo", "{}"), STENO_EIO);
        fake_release(&f);
        rig_release(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_era_and_every_opening_is_understood),
            cmocka_unit_test(a_server_that_ignores_the_probe_is_opened_after_a_while),
            cmocka_unit_test(old_revisions_are_accepted_and_unknown_ones_refused),
            cmocka_unit_test(a_server_that_cannot_start_is_a_warning),
            cmocka_unit_test(offered_names_fit_providers_and_are_unique),
            cmocka_unit_test(tools_of_all_pages_are_offered_in_order),
            cmocka_unit_test(arguments_arrive_as_they_were_written),
            cmocka_unit_test(progress_becomes_steps),
            cmocka_unit_test(nothing_of_a_result_is_lost),
            cmocka_unit_test(a_tool_that_fails_says_so_in_its_own_words),
            cmocka_unit_test(a_server_that_dies_in_a_call_gives_an_error_and_is_started_again),
            cmocka_unit_test(a_server_that_hangs_is_abandoned_after_its_limit_and_told),
            cmocka_unit_test(a_stop_ends_the_waiting_at_once),
            cmocka_unit_test(garbage_between_messages_is_passed_over),
            cmocka_unit_test(an_answer_of_more_than_ten_mebibytes_is_taken_whole),
            cmocka_unit_test(stderr_is_drained_and_requests_of_the_server_are_answered),
            cmocka_unit_test(calls_from_many_threads_get_their_own_answers),
            cmocka_unit_test(a_server_sees_no_canary),
            cmocka_unit_test(a_server_and_its_children_are_gone_after_the_end),
            cmocka_unit_test(http_servers_of_both_eras_are_spoken_to),
            cmocka_unit_test(http_trouble_gives_error_results),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
