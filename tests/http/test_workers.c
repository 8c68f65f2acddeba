/*
 * Workers wake each other: requests that come at once all begin at once while there are threads,
 * also if each of them waits for the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "base/env.h"
#include "base/wait.h"
#include "http/replies.h"
#include "http/server_core.h"
#include "http/workers.h"

#define REQUESTS 32
#define ROUNDS 50
#define PATIENCE_MS 20000

/* ---- the server that workers.c uses ---- */

int64_t http_now_us(void)
{
        return time_monotonic_us();
}

void http_finish(struct request *r)
{
        (void)r;
}

void http_spool(struct request *r)
{
        (void)r;
}

void http_request_free(struct request *r)
{
        (void)r;
}

bool request_query_keeps(struct request *r)
{
        (void)r;
        return true;
}

bool replies_give(struct replies *all, struct request *r)
{
        (void)all, (void)r;
        return false;
}

void replies_keep(struct replies *all, const struct request *r)
{
        (void)all, (void)r;
}

/* ---- requests that wait until all of a round have begun ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_there;
static unsigned begun;

static void meet(struct request *r)
{
        (void)r;
        int64_t until = time_monotonic_ms() + PATIENCE_MS;
        pthread_mutex_lock(&mutex);
        unsigned round_end = (begun++ / REQUESTS + 1) * REQUESTS;
        if (begun == round_end)
                pthread_cond_broadcast(&all_there);
        while (begun < round_end && wait_until(&all_there, &mutex, until))
                ;
        pthread_mutex_unlock(&mutex);
}

static bool have_met(unsigned count)
{
        int64_t until = time_monotonic_ms() + PATIENCE_MS;
        pthread_mutex_lock(&mutex);
        while (begun < count && wait_until(&all_there, &mutex, until))
                ;
        bool met = begun >= count;
        pthread_mutex_unlock(&mutex);
        return met;
}

static void all_begin_at_once(void **state)
{
        static const struct route route = {.flags = ROUTE_LATER, .handle = meet};
        static struct request requests[ROUNDS][REQUESTS];
        (void)state;
        wait_init(&all_there);
        struct workers *w = workers_new(REQUESTS, REQUESTS);
        assert_non_null(w);
        for (unsigned k = 0; k < ROUNDS; k++) {
                for (unsigned i = 0; i < REQUESTS; i++) {
                        requests[k][i].route = &route;
                        assert_true(workers_run(w, &requests[k][i]));
                }
                assert_true(have_met((k + 1) * REQUESTS));
        }
        workers_free(w);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"requests that come at once are all begun at once, round after round",
                all_begin_at_once, 0, 0, 0},
        };
        return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
