/* libarchive.c - see libarchive.h */
#include "base/libarchive.h"

#include <pthread.h>

#include "base/library.h"

struct libarchive libarchive;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

static int load(struct steno_error *err)
{
        static const struct library_entry entries[] = {
#define X(name) LIBRARY_ENTRY(archive_##name)
            LIBARCHIVE_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libarchive / sizeof(library_fn) == sizeof entries / sizeof *entries,
            "a function for each entry");
        return library_load("libarchive.so.13", entries, (library_fn *)&libarchive,
            sizeof entries / sizeof *entries, err);
}

int libarchive_need(struct steno_error *err)
{
        pthread_mutex_lock(&mutex);
        int rc = ready ? 0 : load(err);
        ready = rc == 0;
        pthread_mutex_unlock(&mutex);
        return rc;
}
