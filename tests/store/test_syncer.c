/* The background sync of appends with process durability: a thread that the caller did not ask
 * for. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

#include "support/patience.h"

#define KEPT "{\"id\":\"kept\",\"role\":\"user\",\"content\":\"hello\"}"

/* Seconds that the wall clock is ahead of the clock for waiting. */
static time_t ahead;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
        int rc = (int)syscall(SYS_clock_gettime, clock, ts);
        if (clock == CLOCK_REALTIME)
                ts->tv_sec += ahead;
        return rc;
}

/* The durability that this message has reached. */
static int append_kept(struct fixture *f)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        struct steno_receipt *receipt = NULL;
        OK(steno_append(f->conv, KEPT, strlen(KEPT), &opt, &receipt, &err));
        int durability = steno_receipt_durability(receipt);
        steno_receipt_free(receipt);
        return durability;
}

static void synced_in_the_end(struct fixture *f)
{
        const struct timespec pause = {.tv_nsec = 20000000};
        assert_int_equal(append_kept(f), STENO_PROCESS);
        for (int i = 0; i < PATIENCE_MS / 20; i++) {
                nanosleep(&pause, NULL);
                if (append_kept(f) == STENO_FULL)
                        return;
        }
        fail_msg("never synced");
}

static void soon(void **state)
{
        synced_in_the_end(*state);
}

static void whatever_the_clock(void **state)
{
        ahead = 3600;
        synced_in_the_end(*state);
        ahead = 0;
}

/* A program that waits for its signals blocks them in its own threads. */
static int waits_for_a_signal(struct fixture *f)
{
        sigset_t set;
        const struct timespec limit = {.tv_sec = 5};
        synced_in_the_end(f); /* the thread is there */
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        kill(getpid(), SIGUSR1);
        return sigtimedwait(&set, NULL, &limit) == SIGUSR1 ? 0 : 1;
}

static void no_signals(void **state)
{
        struct fixture *f = *state;
        int status = 0;
        fixture_close(f);
        pid_t pid = fork();
        if (pid == 0) {
                fixture_open(f);
                _exit(waits_for_a_signal(f));
        }
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        fixture_open(f);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define CASE(name, fn)                                                                             \
        {                                                                                          \
                name, fn, fixture_setup, fixture_teardown, NULL                                    \
        }

int main(void)
{
        const struct CMUnitTest tests[] = {
            CASE("what is process-durable is soon on the disk", soon),
            CASE("also when the wall clock is set back meanwhile", whatever_the_clock),
            CASE("the thread takes no signals from the program", no_signals),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
