/* Waiting with a time limit, under a time of day that is set back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/wait.h"

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

/* The library sees a time of day that is one hour ahead of the kernel's clock for waiting. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
        int rc = __real_clock_gettime(clock, t);
        if (clock == CLOCK_REALTIME)
                t->tv_sec += 3600;
        return rc;
}

struct room {
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        bool said;
};

static struct room room_make(void)
{
        struct room r = {.said = false};
        pthread_mutex_init(&r.mutex, NULL);
        wait_init(&r.changed);
        return r;
}

static void a_wait_ends_at_its_deadline_when_the_clock_is_set_back(void **state)
{
        (void)state;
        struct room r = room_make();
        int64_t from = time_monotonic_ms();
        pthread_mutex_lock(&r.mutex);
        while (wait_for(&r.changed, &r.mutex, 30))
                ;
        pthread_mutex_unlock(&r.mutex);
        assert_true(time_monotonic_ms() - from >= 29);
}

static void a_deadline_that_has_passed_ends_a_wait_at_once(void **state)
{
        (void)state;
        struct room r = room_make();
        pthread_mutex_lock(&r.mutex);
        assert_false(wait_until(&r.changed, &r.mutex, time_monotonic_ms() - 1));
        assert_false(wait_until(&r.changed, &r.mutex, 0));
        pthread_mutex_unlock(&r.mutex);
}

static void *say(void *arg)
{
        struct room *r = arg;
        pthread_mutex_lock(&r->mutex);
        r->said = true;
        pthread_cond_signal(&r->changed);
        pthread_mutex_unlock(&r->mutex);
        return NULL;
}

static void a_signal_ends_a_wait_before_its_deadline(void **state)
{
        (void)state;
        struct room r = room_make();
        pthread_t thread;
        int64_t deadline = time_monotonic_ms() + 3600 * 1000;
        pthread_mutex_lock(&r.mutex);
        assert_int_equal(pthread_create(&thread, NULL, say, &r), 0);
        while (!r.said)
                assert_true(wait_until(&r.changed, &r.mutex, deadline));
        pthread_mutex_unlock(&r.mutex);
        pthread_join(thread, NULL);
}

static void a_bell_that_does_not_ring_is_waited_for_until_the_deadline(void **state)
{
        struct wait_bell bell = {0};
        int64_t from = time_monotonic_ms();
        (void)state;
        assert_false(wait_hear(&bell, from + 30));
        assert_true(time_monotonic_ms() - from >= 29);
        assert_false(wait_hear(&bell, 0));
}

static void rings_before_the_wait_are_heard_once(void **state)
{
        struct wait_bell bell = {0};
        (void)state;
        wait_ring(&bell);
        wait_ring(&bell);
        assert_true(wait_hear(&bell, 0));
        assert_false(wait_hear(&bell, 0));
}

#define PINGS 2000

struct bells {
        struct wait_bell there, back;
        unsigned number; /* written before each ring */
};

static void *ring_back(void *arg)
{
        struct bells *b = arg;
        for (unsigned i = 0; i < PINGS; i++) {
                wait_hear(&b->there, INT64_MAX / 2);
                b->number++;
                wait_ring(&b->back);
        }
        return NULL;
}

static void no_ring_is_lost(void **state)
{
        struct bells b = {.number = 0};
        pthread_t thread;
        int64_t deadline = time_monotonic_ms() + 3600 * 1000;
        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, ring_back, &b), 0);
        for (unsigned i = 0; i < PINGS; i++) {
                wait_ring(&b.there);
                assert_true(wait_hear(&b.back, deadline));
                assert_int_equal(b.number, i + 1);
        }
        pthread_join(thread, NULL);
}

#define RINGS 4000000

/* `rung` is relaxed and orders nothing: only the bell makes the written value visible. */
struct written {
        struct wait_bell bell;
        atomic_uint rung;
        unsigned before[RINGS + 1]; /* each ring */
};

static void *write_and_ring(void *arg)
{
        struct written *w = arg;
        for (unsigned i = 1; i <= RINGS; i++) {
                w->before[i] = i;
                wait_ring(&w->bell);
                atomic_store_explicit(&w->rung, i, memory_order_relaxed);
        }
        return NULL;
}

/* On a strictly ordered processor only ThreadSanitizer can notice if it does not. */
static void what_was_written_before_a_ring_is_seen_although_several_are_heard_as_one(void **state)
{
        static struct written w;
        pthread_t thread;
        unsigned rung = 0;
        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, write_and_ring, &w), 0);
        while (rung < RINGS) {
                rung = atomic_load_explicit(&w.rung, memory_order_relaxed);
                wait_hear(&w.bell, 0);
                assert_int_equal(w.before[rung], rung);
        }
        pthread_join(thread, NULL);
}

static void a_sleep_lasts_as_long_as_it_says(void **state)
{
        (void)state;
        int64_t from = time_monotonic_us();
        wait_sleep(20);
        assert_true(time_monotonic_us() - from >= 20000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_wait_ends_at_its_deadline_when_the_clock_is_set_back),
            cmocka_unit_test(a_deadline_that_has_passed_ends_a_wait_at_once),
            cmocka_unit_test(a_signal_ends_a_wait_before_its_deadline),
            cmocka_unit_test(a_bell_that_does_not_ring_is_waited_for_until_the_deadline),
            cmocka_unit_test(rings_before_the_wait_are_heard_once),
            cmocka_unit_test(no_ring_is_lost),
            cmocka_unit_test(
                what_was_written_before_a_ring_is_seen_although_several_are_heard_as_one),
            cmocka_unit_test(a_sleep_lasts_as_long_as_it_says),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
