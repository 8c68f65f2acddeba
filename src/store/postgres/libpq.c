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
        static const struct library_entry entries[] = {
#define X(name) LIBRARY_ENTRY(PQ##name)
            LIBPQ_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libpq / sizeof(library_fn) == sizeof entries / sizeof *entries,
            "a function for each entry");
        return library_load(
            "libpq.so.5", entries, (library_fn *)&libpq, sizeof entries / sizeof *entries, err);
}

int libpq_need(struct steno_error *err)
{
        pthread_mutex_lock(&mutex);
        int rc = ready ? 0 : load(err);
        ready = rc == 0;
        pthread_mutex_unlock(&mutex);
        return rc;
}
