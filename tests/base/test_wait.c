/* Waiting with a time limit, under a time of day that is set back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/wait.h"

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

/* The time of day that the library sees is an hour ahead of the one that the kernel waits by. */
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
            cmocka_unit_test(a_sleep_lasts_as_long_as_it_says),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
