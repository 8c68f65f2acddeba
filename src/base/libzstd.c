/* libzstd.c - see libzstd.h */
#include "base/libzstd.h"

#include <pthread.h>

#include "base/library.h"

struct libzstd libzstd;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

static int load(struct steno_error *err)
{
        static const char *const names[] = {
#define X(name) "ZSTD_" #name,
            LIBZSTD_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libzstd == sizeof names, "a function for each name");
        return library_load(
            "libzstd.so.1", names, (library_fn *)&libzstd, sizeof names / sizeof *names, err);
}

int libzstd_need(struct steno_error *err)
{
        pthread_mutex_lock(&mutex);
        int rc = ready ? 0 : load(err);
        ready = rc == 0;
        pthread_mutex_unlock(&mutex);
        return rc;
}
