/* Handles: the order in which they are closed, and what a child of fork() may do with them. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"
#include "store/files/files.h"
#include "support/patience.h"

#define USER "{\"role\":\"user\",\"content\":\"hello\"}"
#define CALLS                                                                                      \
        "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\","        \
        "\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]}"

static void append(struct rig *r, const char *json, int durability)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = durability};
        OK(steno_append(r->conv, json, strlen(json), &opt, NULL, &err));
}

static void store_first(void **state)
{
        struct rig *r = *state;
        char *meta = NULL;
        uint64_t seq = 0;
        append(r, USER, STENO_PROCESS);
        steno_close(r->store);
        r->store = NULL;
        append(r, USER, STENO_FULL);
        append(r, USER, STENO_PROCESS);
        OK(steno_conv_meta(r->conv, &meta, &err));
        OK(steno_conv_last_seq(r->conv, &seq, &err));
        assert_int_equal(seq, 3);
        steno_free(meta);
        rig_close(r);
        rig_open(r);
        OK(steno_conv_last_seq(r->conv, &seq, &err));
        assert_int_equal(seq, 3);
}

static void a_run_last(void **state)
{
        struct rig *r = *state;
        struct steno_run *run = NULL;
        uint64_t seq = 0;
        OK(steno_run_begin(r->conv, NULL, "run", &run, &err));
        rig_close(r);
        OK(steno_run_event(run, "text", "{}", 2, STENO_FULL, &seq, &err));
        steno_run_close(run);
        rig_open(r);
}

static void an_output_last(void **state)
{
        struct rig *r = *state;
        struct steno_output *out = NULL;
        char *json = NULL;
        uint64_t seq = 0;
        struct steno_output_options opt = {.size = sizeof opt, .tool = "ls", .call_id = "call_1"};
        append(r, CALLS, STENO_FULL);
        OK(steno_output_begin(r->conv, &opt, &out, &err));
        rig_close(r);
        OK(steno_output_write(out, "README.md\n", 10, &err));
        OK(steno_output_finish(out, NULL, &json, &err));
        steno_output_free(out);
        steno_free(json);
        rig_open(r);
        OK(steno_conv_last_seq(r->conv, &seq, &err));
        assert_int_equal(seq, 2);
}

static void count(void *ctx, const char *what)
{
        (void)what;
        ++*(int *)ctx;
}

static void no_warnings_afterwards(void **state)
{
        struct rig *r = *state;
        int warnings = 0;
        struct steno_open_options opt = {
            .size = sizeof opt, .warning = count, .warning_ctx = &warnings};
        struct steno_store *store = NULL;
        struct steno_conv *conv = NULL;
        OK(api_store_open_in(&r->env, r->scratch.path, &opt, &store, &err));
        OK(steno_conv_open(store, NULL, "c", &conv, &err));
        api_store_warn(store, "something");
        assert_int_equal(warnings, 1);
        steno_close(store);
        api_store_warn(store, "something"); /* the conversation keeps it */
        assert_int_equal(warnings, 1);
        steno_conv_close(conv);
}

/* ---- fork ---- */

/* What `child` returns in a process of its own, so that a deadlock does not last for ever. */
static int in_child(struct rig *r, int (*child)(struct rig *r))
{
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
                alarm(PATIENCE_MS / 1000);
                _exit(child(r));
        }
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static int close_all(struct rig *r)
{
        rig_close(r);
        return 0;
}

static void a_child_closes(void **state)
{
        struct rig *r = *state;
        char *list = NULL;
        uint64_t seq = 0;
        append(r, USER, STENO_PROCESS); /* there is a thread that syncs, and none in the child */
        OK(steno_list(r->store, NULL, NULL, &list, &err));
        steno_free(list);
        assert_int_equal(in_child(r, close_all), 0);
        append(r, USER, STENO_FULL);
        OK(steno_conv_last_seq(r->conv, &seq, &err));
        assert_int_equal(seq, 2);
}

static int is_locked(struct rig *r)
{
        char path[600];
        snprintf(path, sizeof path, "%s/projects/default/conversations/c", r->scratch.path);
        int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(dir >= 0);
        bool locked = flock(dir, LOCK_EX | LOCK_NB) != 0;
        close(dir);
        return locked;
}

static void a_child_leaves_the_lock(void **state)
{
        struct rig *r = *state;
        append(r, USER, STENO_FULL);
        OK(files_conv_lock((struct files_conv *)r->conv->backend, &err));
        assert_int_equal(in_child(r, close_all), 0);
        assert_true(is_locked(r));
        files_conv_unlock((struct files_conv *)r->conv->backend);
        assert_false(is_locked(r));
}

static int try_append(struct rig *r)
{
        return -steno_append(r->conv, USER, strlen(USER), NULL, NULL, NULL);
}

static int open_and_append(struct rig *r)
{
        rig_close(r);
        rig_open(r);
        return try_append(r);
}

static void a_child_appends(void **state)
{
        struct rig *r = *state;
        append(r, USER, STENO_FULL);
        assert_int_equal(in_child(r, try_append), -STENO_EINVAL);
        assert_int_equal(in_child(r, open_and_append), 0);
        append(r, USER, STENO_FULL);
}

#define CASE(name, fn)                                                                             \
        {                                                                                          \
                name, fn, rig_setup, rig_teardown, NULL                                            \
        }

int main(void)
{
        const struct CMUnitTest tests[] = {
            CASE("a conversation still works when its store was closed", store_first),
            CASE("a run may be closed last", a_run_last),
            CASE("an output may be finished and freed last", an_output_last),
            CASE("nobody is warned through a store that was closed", no_warnings_afterwards),
            CASE("a child closes what it inherited, and its parent goes on", a_child_closes),
            CASE("a child that closes leaves its parent's lock alone", a_child_leaves_the_lock),
            CASE("a child appends through a store of its own only", a_child_appends),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
