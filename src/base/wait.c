/*
 * wait.c - see wait.h. The only file that gives a clock to a wait.
 */
#include "base/wait.h"

#include <errno.h>
#include <time.h>

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

bool wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline)
{
        struct timespec until = {
            .tv_sec = (time_t)(deadline / 1000),
            .tv_nsec = (long)(deadline % 1000) * 1000000L,
        };

        return pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT;
}

bool wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int ms)
{
        return wait_until(cond, mutex, time_monotonic_ms() + ms);
}

void wait_sleep(int ms)
{
        struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};

        nanosleep(&t, NULL);
}
