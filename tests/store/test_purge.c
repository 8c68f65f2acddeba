/*
 * test_purge.c - purged bytes are gone, and nothing else is.
 */
#include "fixture.h"

#include <sys/wait.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api_store.h"
#include "base/env.h"
#include "base/fs.h"
#include "base/limits.h"

static char *purge(struct fixture *f)
{
        char *report = NULL;
        OK(steno_purge(f->store, NULL, "c", &report, &err));
        return report;
}

static void purge_says(struct fixture *f, const char *words)
{
        char *report = purge(f);
        if (!strstr(report, words))
                fail_msg("%s", report);
        steno_free(report);
}

struct seen {
        char text[32][400];
        size_t count;
};

static int see(void *ctx, const struct steno_record *r)
{
        struct seen *s = ctx;
        char *m = NULL;
        if (strcmp(steno_record_kind(r), "damaged") != 0)
                OK(steno_record_message(r, &m, NULL, &err));
        if (s->count < 32)
                snprintf(s->text[s->count], sizeof s->text[0], "%llu %s %s %s",
                    (unsigned long long)steno_record_seq(r), steno_record_id(r),
                    steno_record_kind(r), m ? m : "");
        s->count++;
        steno_free(m);
        return 0;
}

static struct seen read_all(struct steno_conv *conv)
{
        struct seen s = {.count = 0};
        OK(steno_read(conv, 0, 0, see, &s, &err));
        return s;
}

static void amend(struct fixture *f, const char *kind, const char *target, const char *json)
{
        OK(steno_amend(f->conv, kind, target, json, json ? strlen(json) : 0, NULL, NULL, &err));
}

static void three_messages(struct fixture *f)
{
        fixture_append(f, "[{\"id\":\"m1\",\"role\":\"user\",\"content\":\"first kept\"},"
                          "{\"id\":\"m2\",\"role\":\"user\",\"content\":\"second secret\"},"
                          "{\"id\":\"m3\",\"role\":\"user\",\"content\":\"third kept\"}]");
}

static void a_deleted_message_leaves_a_tombstone_and_no_byte(void **state)
{
        struct fixture *f = *state;
        three_messages(f);
        amend(f, "meta", "m2", "{\"note\":\"also secret\"}");
        purge_says(f, "\"messages\":0");
        amend(f, "delete", "m2", NULL);
        assert_true(fixture_holds(f, "second secret"));
        purge_says(f, "\"messages\":2");
        assert_false(fixture_holds(f, "second secret"));
        assert_false(fixture_holds(f, "also secret"));
        struct seen s = read_all(f->conv);
        assert_int_equal(s.count, 5);
        assert_string_equal(
            s.text[0], "1 m1 message {\"id\":\"m1\",\"role\":\"user\",\"content\":\"first kept\"}");
        assert_string_equal(s.text[1], "2 m2 tombstone null");
        assert_non_null(strstr(s.text[2], "third kept"));
        assert_non_null(strstr(s.text[3], "tombstone null"));
        assert_non_null(strstr(s.text[4], "delete"));
        purge_says(f, "\"messages\":0");
        fixture_append(f, "{\"id\":\"m4\",\"role\":\"user\",\"content\":\"goes on\"}");
        assert_int_equal(read_all(f->conv).count, 6);
}

static void of_a_replaced_message_only_the_last_stays(void **state)
{
        struct fixture *f = *state;
        three_messages(f);
        amend(f, "supersede", "m2", "{\"id\":\"s1\",\"role\":\"user\",\"content\":\"draft one\"}");
        amend(f, "supersede", "m2", "{\"id\":\"s2\",\"role\":\"user\",\"content\":\"draft two\"}");
        purge_says(f, "\"messages\":2");
        assert_false(fixture_holds(f, "second secret"));
        assert_false(fixture_holds(f, "draft one"));
        assert_true(fixture_holds(f, "draft two"));
        amend(f, "delete", "m3", NULL);
        purge_says(f, "\"messages\":1");
        assert_false(fixture_holds(f, "third kept"));
        assert_true(fixture_holds(f, "draft two"));
        /* The chain of amendments still reaches the oldest. */
        struct steno_error e;
        assert_int_equal(
            steno_amend(f->conv, "delete", "m3", NULL, 0, NULL, NULL, &e), STENO_ENOTFOUND);
}

static void ids_and_keys_are_still_known(void **state)
{
        struct fixture *f = *state;
        const char *kept = "{\"role\":\"user\",\"content\":\"by key\"}";
        struct steno_append_options opt = {.size = sizeof opt, .idempotency_key = "k1"};
        struct steno_receipt *r;
        OK(steno_append(f->conv, kept, strlen(kept), &opt, NULL, &err));
        three_messages(f);
        amend(f, "delete", "m2", NULL);
        purge_says(f, "\"messages\":1");
        OK(steno_append(f->conv, kept, strlen(kept), &opt, &r, &err));
        assert_true(steno_receipt_replayed(r));
        steno_receipt_free(r);
        const char *m3 = "{\"id\":\"m3\",\"role\":\"user\",\"content\":\"third kept\"}";
        OK(steno_append(f->conv, m3, strlen(m3), NULL, &r, &err));
        assert_true(steno_receipt_replayed(r));
        assert_int_equal(steno_receipt_first_seq(r), 4);
        steno_receipt_free(r);
        /* What was purged does not come back by being sent again. */
        const char *m2 = "{\"id\":\"m2\",\"role\":\"user\",\"content\":\"second secret\"}";
        assert_int_equal(steno_append(f->conv, m2, strlen(m2), NULL, NULL, NULL), STENO_ECONFLICT);
}

static void a_batch_stays_whole_without_its_index(void **state)
{
        struct fixture *f = *state;
        fixture_append(f, "{\"id\":\"m0\",\"role\":\"user\",\"content\":\"x\"}");
        amend(f, "delete", "m0", NULL);
        three_messages(f);
        purge_says(f, "\"messages\":1");
        fixture_close(f);
        unlink(fixture_path(f, CONV_FOLDER "ids.idx"));
        fixture_open(f);
        assert_int_equal(read_all(f->conv).count, 5);
        fixture_append(f, "{\"id\":\"m9\",\"role\":\"user\",\"content\":\"y\"}");
        assert_int_equal(read_all(f->conv).count, 6);
}

static void damage_survives_a_purge(void **state)
{
        struct fixture *f = *state;
        static char log[8192];
        three_messages(f);
        fixture_append(f, "{\"id\":\"m4\",\"role\":\"user\",\"content\":\"fourth\"}");
        amend(f, "delete", "m1", NULL);
        fixture_close(f);
        size_t n = fixture_slurp(f, CONV_FOLDER "messages.jsonl", log, sizeof log);
        *strstr(log, "third") = 'X';
        fixture_spit(f, CONV_FOLDER "messages.jsonl", log, n);
        fixture_open(f);
        char *report = purge(f);
        assert_non_null(strstr(report, "\"messages\":1"));
        assert_non_null(strstr(report, "\"damaged\":1,"));
        steno_free(report);
        assert_true(fixture_holds(f, "Xhird kept"));
        struct seen s = read_all(f->conv);
        assert_int_equal(s.count, 5);
        assert_non_null(strstr(s.text[2], "3  damaged"));
        assert_non_null(strstr(s.text[3], "4 m4 message"));
}

static void large_outputs_and_tokens_go_too_unless_another_message_has_them(void **state)
{
        struct fixture *f = *state;
        size_t n = 100000;
        char *big = malloc(n + 400);
        static const char *const FMT[] = {
            "{\"id\":\"u%d\",\"role\":\"user\",\"content\":\"BIGTOKEN%s\"}"};
        char *body = malloc(n + 1);
        assert_non_null(big);
        assert_non_null(body);
        memset(body, 'q', n);
        body[n] = '\0';
        for (int i = 1; i <= 2; i++) {
                snprintf(big, n + 400, FMT[0], i, body);
                fixture_append(f, big);
        }
        fixture_append(f, "{\"id\":\"a\",\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{"
                          "\"id\":\"k\",\"type\":\"function\",\"function\":{\"name\":\"t\","
                          "\"arguments\":\"{}\"}}]}");
        snprintf(big, n + 400,
            "{\"id\":\"t\",\"role\":\"tool\",\"tool_call_id\":\"k\",\"content\":\"OUTPUTHEAD %s "
            "OUTPUTEND\"}",
            body);
        fixture_append(f, big);
        assert_true(fixture_holds(f, "OUTPUTEND"));
        amend(f, "delete", "u1", NULL);
        amend(f, "delete", "t", NULL);
        purge_says(f, "\"messages\":2");
        assert_true(fixture_holds(f, "BIGTOKENq"));
        assert_false(fixture_holds(f, "OUTPUTEND"));
        assert_false(fixture_holds(f, "OUTPUTHEAD"));
        assert_true(fixture_holds(f, "\"purge\""));
        amend(f, "delete", "u2", NULL);
        purge_says(f, "\"messages\":1");
        assert_false(fixture_holds(f, "BIGTOKENq"));
        free(big);
        free(body);
}

static void the_journal_of_a_finished_run_forgets_what_was_said(void **state)
{
        struct fixture *f = *state;
        struct steno_run *run;
        const char *m = "{\"id\":\"a\",\"role\":\"assistant\",\"content\":\"the secret reply\","
                        "\"runId\":\"r1\"}";
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        const char *data = "{\"text\":\"the secret reply\"}";
        OK(steno_run_event(run, "message", data, strlen(data), STENO_FULL, NULL, &err));
        fixture_append(f, m);
        amend(f, "delete", "a", NULL);
        purge_says(f, "\"messages\":1");
        assert_true(fixture_holds(f, "the secret reply")); /* it still runs */
        data = "{\"reason\":\"stop\"}";
        OK(steno_run_event(run, "run_finished", data, strlen(data), STENO_FULL, NULL, &err));
        steno_run_close(run);
        purge_says(f, "\"messages\":0");
        assert_false(fixture_holds(f, "the secret reply"));
        char *info = NULL;
        OK(steno_run_info(f->store, NULL, "r1", &info, &err));
        assert_non_null(strstr(info, "\"state\":\"finished\""));
        assert_non_null(strstr(info, "\"lastSeq\":2"));
        steno_free(info);
}

static void a_purge_completes_a_dead_run_and_empties_its_journal(void **state)
{
        struct fixture *f = *state;
        struct steno_run *run;
        fixture_append(f, "{\"id\":\"a\",\"role\":\"assistant\",\"content\":null,\"runId\":\"r1\","
                          "\"tool_calls\":[{\"id\":\"k\",\"type\":\"function\",\"function\":{"
                          "\"name\":\"t\",\"arguments\":\"{}\"}}]}");
        fixture_append(
            f, "{\"id\":\"b\",\"role\":\"user\",\"content\":\"secret of b\",\"runId\":\"r1\"}");
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        const char *seen = "{\"messageId\":\"m\",\"text\":\"as you said: secret of b\"}";
        OK(steno_run_event(run, "run_error", seen, strlen(seen), STENO_FULL, NULL, &err));
        const char *m =
            "{\"id\":\"t\",\"role\":\"tool\",\"tool_call_id\":\"k\",\"content\":\"done\"}";
        OK(steno_run_outcome(run, 1, "k", m, strlen(m), &err));
        steno_run_close(run);
        amend(f, "delete", "b", NULL);
        purge_says(f, "\"messages\":1");
        /* The purge completed the run first: the outcome is in the log, and nowhere else. */
        assert_int_equal(read_all(f->conv).count, 4);
        assert_false(fixture_holds(f, "secret of b"));
        assert_true(fixture_holds(f, "done"));
}

static void an_open_handle_of_another_store_goes_on(void **state)
{
        struct fixture *f = *state;
        struct fixture other = {.scratch = f->scratch};
        fixture_open(&other);
        three_messages(f);
        fixture_append(&other, "{\"id\":\"m4\",\"role\":\"user\",\"content\":\"by the other\"}");
        amend(f, "delete", "m1", NULL);
        purge_says(f, "\"messages\":1");
        struct steno_receipt *r;
        const char *m = "{\"id\":\"m4\",\"role\":\"user\",\"content\":\"by the other\"}";
        OK(steno_append(other.conv, m, strlen(m), NULL, &r, &err));
        assert_true(steno_receipt_replayed(r));
        steno_receipt_free(r);
        fixture_append(&other, "{\"id\":\"m5\",\"role\":\"user\",\"content\":\"again\"}");
        assert_int_equal(read_all(f->conv).count, 6);
        assert_int_equal(read_all(other.conv).count, 6);
        fixture_close(&other);
}

static void append_for_a_while(const char *path, int writer)
{
        struct steno_store *store;
        struct steno_conv *conv;
        if (steno_open(path, NULL, &store, NULL) || steno_conv_open(store, NULL, "c", &conv, NULL))
                _exit(1);
        for (int i = 0; i < 100; i++) {
                char m[300];
                int n = snprintf(m, sizeof m,
                    "[{\"id\":\"w%d.%d.a\",\"role\":\"user\",\"content\":\"x\"},"
                    "{\"id\":\"w%d.%d.b\",\"role\":\"user\",\"content\":\"y\"}]",
                    writer, i, writer, i);
                if (steno_append(conv, m, (size_t)n, NULL, NULL, NULL))
                        _exit(2);
                char target[40];
                snprintf(target, sizeof target, "w%d.%d.a", writer, i);
                if (i % 3 == 0 && steno_amend(conv, "delete", target, NULL, 0, NULL, NULL, NULL))
                        _exit(3);
                struct seen s = read_all(conv);
                uint64_t last;
                if (steno_conv_last_seq(conv, &last, NULL) || s.count > last || s.count < 2)
                        _exit(4);
        }
        steno_conv_close(conv);
        steno_close(store);
        _exit(0);
}

static void writers_and_readers_do_not_notice_purges(void **state)
{
        struct fixture *f = *state;
        pid_t pids[2];
        fixture_close(f);
        for (int i = 0; i < 2; i++) {
                pids[i] = fork();
                if (pids[i] == 0)
                        append_for_a_while(f->scratch.path, i);
        }
        fixture_open(f);
        int status, left = 2;
        while (left) {
                steno_free(purge(f));
                for (int i = 0; i < 2; i++) {
                        if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) == 0)
                                continue;
                        pids[i] = 0;
                        left--;
                        assert_true(WIFEXITED(status));
                        assert_int_equal(WEXITSTATUS(status), 0);
                }
        }
        steno_free(purge(f));
        struct seen s = read_all(f->conv);
        assert_int_equal(s.count, 2 * (200 + 34));
        for (int i = 0; i < 2; i++) {
                for (int k = 0; k < 100; k++) {
                        char id[40];
                        struct seen one = {.count = 0};
                        snprintf(id, sizeof id, "w%d.%d.a", i, k);
                        OK(steno_read_id(f->conv, id, see, &one, &err));
                        assert_true((strstr(one.text[0], "tombstone") != NULL) == (k % 3 == 0));
                }
        }
}

static int keep(void *ctx, const void *p, size_t n)
{
        char *text = ctx;
        strncat(text, p, n);
        return 0;
}

static void view_is(struct fixture *f, const char *expected)
{
        char text[2000] = "";
        OK(steno_view(f->conv, NULL, keep, text, NULL, &err));
        assert_string_equal(text, expected);
}

#define REPLY(id, words) "{\"id\":\"" id "\",\"role\":\"assistant\",\"content\":\"" words "\"}"
#define SAID(words) "[{\"role\":\"assistant\",\"content\":\"" words "\"}]"

static void what_took_a_messages_place_is_seen_there_after_a_purge(void **state)
{
        struct fixture *f = *state;
        fixture_append(f, REPLY("a1", "one"));
        amend(f, "supersede", "a1", REPLY("a2", "two"));
        view_is(f, SAID("two"));
        purge_says(f, "\"messages\":1");
        view_is(f, SAID("two"));
        amend(f, "supersede", "a1", REPLY("a3", "three"));
        purge_says(f, "\"messages\":1");
        view_is(f, SAID("three"));
        amend(f, "delete", "a1", NULL);
        view_is(f, "[]");
        steno_free(purge(f));
        view_is(f, "[]");
}

static void what_took_a_messages_place_is_amended_by_its_own_id(void **state)
{
        struct fixture *f = *state;
        struct steno_error err = {0};
        fixture_append(f, REPLY("a1", "one"));
        amend(f, "supersede", "a1", REPLY("a2", "two"));
        amend(f, "supersede", "a2", REPLY("a3", "three"));
        amend(f, "supersede", "a2", REPLY("a3", "three")); /* sent again */
        view_is(f, SAID("three"));
        assert_int_equal(
            steno_amend(f->conv, "delete", "a2", NULL, 0, NULL, NULL, &err), STENO_ENOTFOUND);
        assert_string_equal(err.msg, "no message \"a2\" to delete");
        steno_free(purge(f));
        amend(f, "meta", "a3", "{\"includeInContext\":false}");
        view_is(f, "[]");
        amend(f, "meta", "a3", "{\"includeInContext\":true}");
        view_is(f, SAID("three"));
        amend(f, "delete", "a3", NULL);
        view_is(f, "[]");
        assert_int_equal(
            steno_amend(f->conv, "delete", "a1", NULL, 0, NULL, NULL, NULL), STENO_ENOTFOUND);
}

static void a_conversation_in_the_trash_is_purged_altogether(void **state)
{
        struct fixture *f = *state;
        three_messages(f);
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        steno_free(purge(f));
        assert_false(fixture_holds(f, "first kept"));
        char *report;
        assert_int_equal(steno_purge(f->store, NULL, "c", &report, NULL), STENO_ENOTFOUND);
        assert_int_equal(steno_trash_restore(f->store, NULL, "c", NULL, NULL), STENO_ENOTFOUND);
}

/* A purge comes between storing a part and taking the lock. */
static char parts_folder[600];

static int lock_after_a_purge(const struct fs *self, int fd, int operation)
{
        struct stat st;
        (void)self;
        if (parts_folder[0] && (operation & LOCK_EX) && fstat(fd, &st) == 0 &&
            S_ISDIR(st.st_mode)) {
                char command[700];
                snprintf(command, sizeof command, "rm -f %s/*", parts_folder);
                assert_int_equal(system(command), 0);
        }
        return fs_real()->flock(fs_real(), fd, operation);
}

static void a_part_that_a_purge_took_is_noticed_before_it_is_named(void **state)
{
        struct fixture *f = *state;
        struct fs fs = *fs_real();
        struct env env = *env_real();
        struct steno_store *store;
        struct steno_conv *conv;
        struct steno_error refused = {0};
        uint64_t last = 9;
        size_t n = 3 * MIB;
        char *json = malloc(n + 100);
        int head = sprintf(json, "{\"role\":\"user\",\"content\":\"");
        memset(json + head, 'x', n);
        strcpy(json + head + n, "\"}");
        fs.flock = lock_after_a_purge;
        env.fs = &fs;
        OK(api_store_open_in(&env, f->scratch.path, NULL, &store, &err));
        OK(steno_conv_open(store, NULL, "c", &conv, &err));
        snprintf(parts_folder, sizeof parts_folder, "%s",
            fixture_path(f, CONV_FOLDER "artifacts/parts"));
        assert_int_equal(steno_append(conv, json, strlen(json), NULL, NULL, &refused), STENO_EIO);
        assert_non_null(strstr(refused.msg, "purged meanwhile"));
        parts_folder[0] = '\0';
        OK(steno_conv_last_seq(conv, &last, &err));
        assert_int_equal(last, 0);
        OK(steno_append(conv, json, strlen(json), NULL, NULL, &err));
        steno_conv_close(conv);
        steno_close(store);
        free(json);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
            T(a_deleted_message_leaves_a_tombstone_and_no_byte),
            T(of_a_replaced_message_only_the_last_stays),
            T(ids_and_keys_are_still_known),
            T(a_batch_stays_whole_without_its_index),
            T(damage_survives_a_purge),
            T(a_part_that_a_purge_took_is_noticed_before_it_is_named),
            T(large_outputs_and_tokens_go_too_unless_another_message_has_them),
            T(the_journal_of_a_finished_run_forgets_what_was_said),
            T(a_purge_completes_a_dead_run_and_empties_its_journal),
            T(an_open_handle_of_another_store_goes_on),
            T(writers_and_readers_do_not_notice_purges),
            T(what_took_a_messages_place_is_seen_there_after_a_purge),
            T(what_took_a_messages_place_is_amended_by_its_own_id),
            T(a_conversation_in_the_trash_is_purged_altogether),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
