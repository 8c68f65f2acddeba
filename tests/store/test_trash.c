/*
 * test_trash.c - removing, restoring and emptying, with others at work meanwhile.
 */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char *trash_list(struct fixture *f)
{
        char *json = NULL;
        OK(steno_trash_list(f->store, &json, &err));
        return json;
}

static size_t count_in_trash(struct fixture *f)
{
        char *json = trash_list(f);
        size_t n = 0;
        for (char *p = json; (p = strstr(p, "\"deletedAt\"")); p++)
                n++;
        steno_free(json);
        return n;
}

static size_t count_listed(struct fixture *f)
{
        char *json = NULL;
        size_t n = 0;
        OK(steno_list(f->store, NULL, NULL, &json, &err));
        for (char *p = json; (p = strstr(p, "\"lastSeq\"")); p++)
                n++;
        steno_free(json);
        return n;
}

static void a_removed_conversation_is_gone_and_comes_back_whole(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *again;
        char before[2048], after[2048];
        fixture_append(f, "{\"id\":\"m1\",\"role\":\"user\",\"content\":\"hello\"}");
        size_t n = fixture_slurp(f, CONV_FOLDER "messages.jsonl", before, sizeof before);
        assert_int_equal(count_listed(f), 1);
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        assert_int_equal(count_listed(f), 0);
        assert_int_equal(count_in_trash(f), 1);
        assert_int_equal(steno_conv_open(f->store, NULL, "c", &again, NULL), STENO_ENOTFOUND);
        assert_int_equal(steno_remove(f->store, NULL, "c", NULL, NULL), STENO_ENOTFOUND);
        OK(steno_trash_restore(f->store, NULL, "c", NULL, &err));
        assert_int_equal(count_listed(f), 1);
        assert_int_equal(count_in_trash(f), 0);
        assert_int_equal(fixture_slurp(f, CONV_FOLDER "messages.jsonl", after, sizeof after), n);
        assert_memory_equal(before, after, n);
        assert_int_equal(steno_trash_restore(f->store, NULL, "c", NULL, NULL), STENO_ENOTFOUND);
        /* The handle that was open all the time works again. */
        fixture_append(f, "{\"role\":\"user\",\"content\":\"still here\"}");
}

static void an_open_handle_finds_it_removed_and_can_still_read(void **state)
{
        struct fixture *f = *state;
        uint64_t seq;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"hello\"}");
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        const char *m = "{\"role\":\"user\",\"content\":\"late\"}";
        assert_int_equal(steno_append(f->conv, m, strlen(m), NULL, NULL, NULL), STENO_ENOTFOUND);
        OK(steno_conv_last_seq(f->conv, &seq, &err));
        assert_int_equal(seq, 1);
}

static void an_id_can_be_used_again_and_the_newest_is_restored(void **state)
{
        struct fixture *f = *state;
        for (int i = 0; i < 3; i++) {
                char m[80];
                snprintf(m, sizeof m, "{\"role\":\"user\",\"content\":\"life %d\"}", i);
                fixture_append(f, m);
                OK(steno_remove(f->store, NULL, "c", NULL, &err));
                steno_conv_close(f->conv);
                OK(steno_conv_create(f->store, NULL, "c", NULL, &f->conv, &err));
        }
        assert_int_equal(steno_trash_restore(f->store, NULL, "c", NULL, NULL), STENO_ECONFLICT);
        assert_int_equal(count_in_trash(f), 3);
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        OK(steno_trash_restore(f->store, NULL, "c", NULL, &err)); /* the empty one */
        char log[256];
        assert_int_equal(fixture_slurp(f, CONV_FOLDER "messages.jsonl", log, sizeof log), 0);
}

static void each_of_one_id_comes_back_by_its_trash_id(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *conv;
        char *first, *second, *meta;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"first\"}");
        OK(steno_remove(f->store, NULL, "c", &first, &err));
        OK(steno_conv_create(f->store, NULL, "c", NULL, &conv, &err));
        steno_conv_close(conv);
        OK(steno_remove(f->store, NULL, "c", &second, &err));
        assert_string_not_equal(first, second);
        assert_int_equal(
            steno_trash_restore(f->store, "other", first, NULL, NULL), STENO_ENOTFOUND);
        assert_int_equal(steno_trash_restore(f->store, NULL, first, "", NULL), STENO_EINVAL);
        OK(steno_trash_restore(f->store, NULL, first, NULL, &err));
        assert_int_equal(steno_trash_restore(f->store, NULL, second, NULL, NULL), STENO_ECONFLICT);
        assert_int_equal(steno_trash_restore(f->store, NULL, second, "c", NULL), STENO_ECONFLICT);
        OK(steno_trash_restore(f->store, NULL, second, "c/2", &err));
        OK(steno_conv_open(f->store, NULL, "c/2", &conv, &err));
        OK(steno_conv_meta(conv, &meta, &err));
        assert_non_null(strstr(meta, "{\"id\":\"c/2\","));
        steno_free(meta);
        steno_conv_close(conv);
        char log[400];
        assert_true(fixture_slurp(f, CONV_FOLDER "messages.jsonl", log, sizeof log) > 0);
        assert_int_equal(count_in_trash(f), 0);
        steno_free(first);
        steno_free(second);
}

static void odd_ids_and_projects_come_back_to_their_place(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *conv;
        OK(steno_conv_create(f->store, "../p", "a/../b", NULL, &conv, &err));
        steno_conv_close(conv);
        OK(steno_remove(f->store, "../p", "a/../b", NULL, &err));
        char *json = trash_list(f);
        assert_non_null(strstr(json, "{\"project\":\"../p\",\"id\":\"a/../b\""));
        steno_free(json);
        assert_int_equal(
            steno_trash_restore(f->store, NULL, "a/../b", NULL, NULL), STENO_ENOTFOUND);
        OK(steno_trash_restore(f->store, "../p", "a/../b", NULL, &err));
        OK(steno_conv_open(f->store, "../p", "a/../b", &conv, &err));
        assert_string_equal(steno_conv_id(conv), "a/../b");
        steno_conv_close(conv);
}

static void a_folder_without_its_note_is_still_restored(void **state)
{
        struct fixture *f = *state;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"x\"}");
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        char command[600];
        snprintf(command, sizeof command, "rm '%s'/trash/*.json", f->scratch.path);
        assert_int_equal(system(command), 0);
        assert_int_equal(count_in_trash(f), 1);
        OK(steno_trash_restore(f->store, NULL, "c", NULL, &err));
        assert_int_equal(count_listed(f), 1);
}

static void emptying_spares_what_is_young_and_leaves_no_byte_of_the_rest(void **state)
{
        struct fixture *f = *state;
        uint64_t count = 7;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"the secret words\"}");
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        OK(steno_trash_empty(f->store, 30, &count, &err));
        assert_int_equal(count, 0);
        assert_int_equal(count_in_trash(f), 1);
        assert_true(fixture_holds(f, "the secret words"));
        /* A note from long ago. */
        char command[700];
        snprintf(command, sizeof command,
            "sed -i 's/\"deletedAt\":\"2[0-9]*/\"deletedAt\":\"2001/' '%s'/trash/*.json",
            f->scratch.path);
        assert_int_equal(system(command), 0);
        OK(steno_trash_empty(f->store, 30, &count, &err));
        assert_int_equal(count, 1);
        assert_int_equal(count_in_trash(f), 0);
        assert_false(fixture_holds(f, "the secret words"));
        snprintf(command, sizeof command, "test -z \"$(ls -A '%s'/trash)\"", f->scratch.path);
        assert_int_equal(system(command), 0);
}

/* Files of the store that have no name any more, and that this process keeps open. */
static int open_without_name(struct fixture *f)
{
        char link[64], path[600];
        int count = 0;
        for (int fd = 0; fd < 256; fd++) {
                snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
                ssize_t n = readlink(link, path, sizeof path - 1);
                if (n < 0)
                        continue;
                path[n] = '\0';
                count += strstr(path, f->scratch.path) && strstr(path, " (deleted)");
        }
        return count;
}

/* On a full disk, a conversation that was removed for good must free its room, whoever has read
 * it. */
static void emptying_keeps_no_file_open(void **state)
{
        struct fixture *f = *state;
        for (int held = 0; held < 2; held++) {
                uint64_t seq;
                if (!f->conv)
                        OK(steno_conv_create(f->store, NULL, "c", NULL, &f->conv, &err));
                fixture_append(f, "{\"role\":\"user\",\"content\":\"x\"}");
                OK(steno_conv_last_seq(f->conv, &seq, &err));
                OK(steno_remove(f->store, NULL, "c", NULL, &err));
                if (!held)
                        steno_conv_close(f->conv);
                OK(steno_trash_empty(f->store, 0, NULL, &err));
                if (held)
                        steno_conv_close(f->conv);
                f->conv = NULL;
                assert_int_equal(open_without_name(f), 0);
        }
}

static void what_a_killed_emptying_left_is_not_listed_and_goes_next_time(void **state)
{
        struct fixture *f = *state;
        char command[600];
        uint64_t count;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"half gone\"}");
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        snprintf(command, sizeof command,
            "cd '%s'/trash && for d in */; do mv \"${d%%/}\" .gone-\"${d%%/}\"; done",
            f->scratch.path);
        assert_int_equal(system(command), 0);
        assert_int_equal(count_in_trash(f), 0);
        OK(steno_trash_empty(f->store, 0, &count, &err));
        assert_int_equal(count, 0);
        assert_false(fixture_holds(f, "half gone"));
}

/* A child that appends until it is refused; it says each seq on a pipe, then how it ended. */
static void append_until_refused(const char *path, int to)
{
        struct steno_store *store;
        struct steno_conv *conv;
        if (steno_open(path, NULL, &store, NULL) || steno_conv_open(store, NULL, "c", &conv, NULL))
                _exit(1);
        for (;;) {
                struct steno_receipt *r;
                const char *m = "{\"role\":\"user\",\"content\":\"one more\"}";
                int rc = steno_append(conv, m, strlen(m), NULL, &r, NULL);
                if (rc)
                        _exit(rc == STENO_ENOTFOUND ? 0 : 2);
                uint64_t seq = steno_receipt_last_seq(r);
                steno_receipt_free(r);
                if (write(to, &seq, sizeof seq) != sizeof seq)
                        _exit(3);
        }
}

static void no_append_is_lost_when_another_process_removes(void **state)
{
        struct fixture *f = *state;
        for (int round = 0; round < 10; round++) {
                int pipes[2], status;
                uint64_t told = 0, seq, at_removal = 0;
                assert_int_equal(pipe(pipes), 0);
                fixture_close(f);
                pid_t pid = fork();
                if (pid == 0) {
                        close(pipes[0]);
                        append_until_refused(f->scratch.path, pipes[1]);
                }
                close(pipes[1]);
                fixture_open(f);
                uint64_t start = 0;
                while (read(pipes[0], &seq, sizeof seq) == sizeof seq) {
                        told = seq;
                        start = start ? start : seq;
                        if (seq != start + 10 + (uint64_t)round * 3)
                                continue;
                        OK(steno_remove(f->store, NULL, "c", NULL, &err));
                        OK(steno_conv_last_seq(f->conv, &at_removal, &err));
                }
                close(pipes[0]);
                waitpid(pid, &status, 0);
                assert_true(WIFEXITED(status));
                assert_int_equal(WEXITSTATUS(status), 0);
                OK(steno_trash_restore(f->store, NULL, "c", NULL, &err));
                OK(steno_conv_last_seq(f->conv, &seq, &err));
                assert_int_equal(seq, told);
                assert_int_equal(seq, at_removal); /* nothing came after it was removed */
        }
}

static void removing_and_making_at_once_leaves_one_of_each_life(void **state)
{
        struct fixture *f = *state;
        fixture_close(f);
        pid_t pid = fork();
        if (pid == 0) {
                struct steno_store *store;
                if (steno_open(f->scratch.path, NULL, &store, NULL))
                        _exit(1);
                int made = 0;
                for (int i = 0; i < 20000 && made < 20; i++) {
                        struct steno_conv *conv;
                        int rc = steno_conv_create(store, NULL, "c", NULL, &conv, NULL);
                        if (rc == 0) {
                                made++;
                                steno_conv_close(conv);
                        } else if (rc != STENO_ECONFLICT && rc != STENO_ENOTFOUND) {
                                _exit(2);
                        } else {
                                made += rc == STENO_ENOTFOUND; /* removed before it was opened */
                        }
                }
                _exit(made == 20 ? 0 : 3);
        }
        fixture_open(f);
        int status = 0;
        size_t removed = 0;
        while (waitpid(pid, &status, WNOHANG) == 0)
                removed += steno_remove(f->store, NULL, "c", NULL, NULL) == 0;
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_true(removed >= 20);
        assert_int_equal(count_in_trash(f), removed);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
            T(a_removed_conversation_is_gone_and_comes_back_whole),
            T(an_open_handle_finds_it_removed_and_can_still_read),
            T(an_id_can_be_used_again_and_the_newest_is_restored),
            T(each_of_one_id_comes_back_by_its_trash_id),
            T(odd_ids_and_projects_come_back_to_their_place),
            T(a_folder_without_its_note_is_still_restored),
            T(emptying_spares_what_is_young_and_leaves_no_byte_of_the_rest),
            T(emptying_keeps_no_file_open),
            T(what_a_killed_emptying_left_is_not_listed_and_goes_next_time),
            T(no_append_is_lost_when_another_process_removes),
            T(removing_and_making_at_once_leaves_one_of_each_life),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
