/* libcurl.c - see libcurl.h */
#include "net/libcurl.h"

#include <pthread.h>

#include "base/library.h"

struct libcurl libcurl;

/* libcurl's one-time setup is not safe to race. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

static int load(struct steno_error *err)
{
        static const struct library_entry entries[] = {
#define X(name) LIBRARY_ENTRY(curl_##name)
            LIBCURL_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libcurl / sizeof(library_fn) == sizeof entries / sizeof *entries,
            "a function for each entry");
        int rc = library_load(
            "libcurl.so.4", entries, (library_fn *)&libcurl, sizeof entries / sizeof *entries, err);
        if (rc == 0)
                libcurl.global_init(CURL_GLOBAL_DEFAULT);
        return rc;
}

int libcurl_need(struct steno_error *err)
{
        pthread_mutex_lock(&mutex);
        int rc = ready ? 0 : load(err);
        ready = rc == 0;
        pthread_mutex_unlock(&mutex);
        return rc;
}
