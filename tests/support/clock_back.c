/*
 * clock_back.c - a library for LD_PRELOAD under which the time of day is set back all the time.
 *
 * A program that asks for the time of day gets a time one hour ahead of the kernel's. For a wait
 * that takes its deadline from the time of day this is the same as a clock that is set back by an
 * hour just after the wait began: it would last an hour. The monotonic clock stays what it is.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int clock_gettime(clockid_t clock, struct timespec *t);

EXPORT int clock_gettime(clockid_t clock, struct timespec *t)
{
        int rc = (int)syscall(SYS_clock_gettime, clock, t);

        if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
                t->tv_sec += 3600;
        return rc;
}
