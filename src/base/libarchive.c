/* libarchive.c - see libarchive.h */
#include "base/libarchive.h"

#include <pthread.h>

#include "base/library.h"

struct libarchive libarchive;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

static int load(struct steno_error *err)
{
        static const char *const names[] = {
#define X(name) "archive_" #name,
            LIBARCHIVE_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libarchive == sizeof names, "a function for each name");
        return library_load("libarchive.so.13", names, (library_fn *)&libarchive,
            sizeof names / sizeof *names, err);
}

int libarchive_need(struct steno_error *err)
{
        pthread_mutex_lock(&mutex);
        int rc = ready ? 0 : load(err);
        ready = rc == 0;
        pthread_mutex_unlock(&mutex);
        return rc;
}
