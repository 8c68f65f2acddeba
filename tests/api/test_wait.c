/* Following a conversation from another process. */
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/rig.h"

#define MESSAGES 20
#define NOT_HERE 77

/* Receives each message as it comes; the exit code says what went wrong. */
static _Noreturn void follow(struct rig *r)
{
        struct steno_store *store;
        struct steno_conv *conv;
        if (steno_open(r->scratch.path, NULL, &store, NULL) ||
            steno_conv_open(store, NULL, "c", &conv, NULL))
                _exit(1);
        for (uint64_t seen = 0; seen < MESSAGES;) {
                uint64_t last;
                if (steno_conv_wait(conv, seen, 20000, NULL) != 1)
                        _exit(2);
                if (steno_conv_last_seq(conv, &last, NULL) || last <= seen)
                        _exit(3);
                seen = last;
        }
        _exit(steno_conv_wait(conv, MESSAGES, 50, NULL) == 0 ? 0 : 4);
}

static int send_to(struct rig *r, pid_t follower)
{
        static const char text[] = "{\"role\":\"user\",\"content\":\"x\"}";
        int status;
        assert_true(follower > 0);
        for (int i = 0; i < MESSAGES; i++) {
                usleep(5000);
                OK(steno_append(r->conv, text, sizeof text - 1, NULL, NULL, &err));
        }
        assert_int_equal(waitpid(follower, &status, 0), follower);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void another_process_follows(void **state)
{
        struct rig *r = *state;
        pid_t pid = fork();
        if (pid == 0)
                follow(r);
        assert_int_equal(send_to(r, pid), 0);
}

/* The system gives out only a limited number of watches. */
static void follows_without_a_watch(void **state)
{
        struct rig *r = *state;
        pid_t pid = fork();
        if (pid == 0) {
                int fd = -1;
                if (unshare(CLONE_NEWUSER) == 0)
                        fd = open("/proc/sys/user/max_inotify_instances", O_WRONLY);
                if (fd < 0 || write(fd, "0", 1) != 1)
                        _exit(NOT_HERE);
                follow(r);
        }
        int code = send_to(r, pid);
        if (code == NOT_HERE) {
                print_message("a user namespace cannot be made here, so watches cannot run out\n");
                skip();
        }
        assert_int_equal(code, 0);
}

static void time_runs_out(void **state)
{
        struct rig *r = *state;
        struct steno_error err = {0};
        assert_int_equal(steno_conv_wait(r->conv, 0, 0, &err), 0);
        assert_int_equal(steno_conv_wait(r->conv, 0, 20, &err), 0);
}

#define IN_STORE(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
            IN_STORE(another_process_follows),
            IN_STORE(follows_without_a_watch),
            IN_STORE(time_runs_out),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
