/*
 * wait.h - every wait that has an end, on the monotonic clock.
 *
 * The time of day can be set back, by a person or by a time server. A wait that is measured with it
 * would then last for hours. Condition variables are therefore made by wait_init() and waited on
 * with a time limit by wait_until() or wait_for(), all of which use the monotonic clock.
 * pthread_cond_wait(), which has no time limit, is used directly.
 *
 * Deadlines are values of time_monotonic_ms() (base/env.h).
 */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Use it instead of pthread_cond_init(), together with pthread_cond_destroy(). */
void wait_init(pthread_cond_t *cond);

/*
 * Waits with `mutex` held, as pthread_cond_wait() does, until the condition is signalled or
 * time_monotonic_ms() reaches `deadline`. False when the deadline was reached. May also return
 * early without a reason: callers look at what they wait for.
 */
bool wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline);
/* The same with the deadline `ms` milliseconds from now. */
bool wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int ms);

/*
 * The same for a single waiting thread, with half of the system calls: a thread that wakes from a
 * condition variable takes its mutex in a way that makes the unlock another system call. A ring is
 * remembered until it is heard; several rings count as one. A bell that is all zero has not rung.
 */
struct wait_bell {
        atomic_uint state;
};

/* The thread that hears the bell sees everything that was written before. */
void wait_ring(struct wait_bell *bell);
/* Waits without a mutex. False: it did not ring before time_monotonic_ms() reached `deadline`. */
bool wait_hear(struct wait_bell *bell, int64_t deadline);

/* Sleeps for `ms` milliseconds; a signal ends it early. */
void wait_sleep(int ms);

#endif
