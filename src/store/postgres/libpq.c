/* libpq.c - see libpq.h */
#include "store/postgres/libpq.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/library.h"

struct libpq libpq;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

static int load(struct steno_error *err)
{
        static const char *const names[] = {
#define X(name) "PQ" #name,
            LIBPQ_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libpq == sizeof names, "a function for each name");
        return library_load(
            "libpq.so.5", names, (library_fn *)&libpq, sizeof names / sizeof *names, err);
}

int libpq_need(struct steno_error *err)
{
        pthread_mutex_lock(&mutex);
        int rc = ready ? 0 : load(err);
        ready = rc == 0;
        pthread_mutex_unlock(&mutex);
        return rc;
}
