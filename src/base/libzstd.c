/* libzstd.c - see libzstd.h */
#include "base/libzstd.h"

#include <pthread.h>

#include "base/library.h"

struct libzstd libzstd;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

static int load(struct steno_error *err)
{
        static const struct library_entry entries[] = {
#define X(name) LIBRARY_ENTRY(ZSTD_##name)
            LIBZSTD_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libzstd / sizeof(library_fn) == sizeof entries / sizeof *entries,
            "a function for each entry");
        return library_load(
            "libzstd.so.1", entries, (library_fn *)&libzstd, sizeof entries / sizeof *entries, err);
}

int libzstd_need(struct steno_error *err)
{
        pthread_mutex_lock(&mutex);
        int rc = ready ? 0 : load(err);
        ready = rc == 0;
        pthread_mutex_unlock(&mutex);
        return rc;
}
