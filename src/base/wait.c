/*
 * wait.c - see wait.h. The only file that gives a clock to a wait.
 */
#include "base/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"

void wait_init(pthread_cond_t *cond)
{
        pthread_condattr_t attr;

        /* None of these calls fails on Linux: the attributes hold two flags and no memory. */
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(cond, &attr);
        pthread_condattr_destroy(&attr);
}

static struct timespec time_of(int64_t deadline)
{
        return (struct timespec){
            .tv_sec = (time_t)(deadline / 1000),
            .tv_nsec = (long)(deadline % 1000) * 1000000L,
        };
}

bool wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline)
{
        struct timespec until = time_of(deadline);

        return pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT;
}

bool wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int ms)
{
        return wait_until(cond, mutex, time_monotonic_ms() + ms);
}

enum { BELL_SILENT, BELL_RUNG, BELL_AWAITED };

void wait_ring(struct wait_bell *bell)
{
        /* The thread may hear the ring and be gone before the system is asked to wake a thread at
         * this address. Then no thread sleeps there, or one that checks its condition again when it
         * is woken. */
        if (atomic_exchange(&bell->state, BELL_RUNG) == BELL_AWAITED)
                syscall(SYS_futex, &bell->state, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

bool wait_hear(struct wait_bell *bell, int64_t deadline)
{
        struct timespec until = time_of(deadline);
        for (;;) {
                unsigned silent = BELL_SILENT;
                if (!atomic_compare_exchange_strong(&bell->state, &silent, BELL_AWAITED) &&
                    silent == BELL_RUNG)
                        break;
                long rc = syscall(SYS_futex, &bell->state, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG,
                    BELL_AWAITED, &until, NULL, FUTEX_BITSET_MATCH_ANY);
                if (rc != 0 && errno == ETIMEDOUT)
                        return atomic_exchange(&bell->state, BELL_SILENT) == BELL_RUNG;
        }
        /* This is an exchange, because there may have been another ring since: what was written
         * before that ring must be seen as well, and a plain store would not ensure that. */
        atomic_exchange(&bell->state, BELL_SILENT);
        return true;
}

void wait_sleep(int ms)
{
        struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};

        nanosleep(&t, NULL);
}
