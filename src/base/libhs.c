/* libhs.c - see libhs.h */
#include "base/libhs.h"

#include <pthread.h>

#include "base/error.h"
#include "base/library.h"

struct libhs libhs;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static enum { UNTRIED, READY, ABSENT } state;

static int load(struct steno_error *err)
{
        static const struct library_entry entries[] = {
#define X(name) LIBRARY_ENTRY(hs_##name)
            LIBHS_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libhs / sizeof(library_fn) == sizeof entries / sizeof *entries,
            "a function for each entry");
        int rc = library_load(
            "libhs.so.5", entries, (library_fn *)&libhs, sizeof entries / sizeof *entries, err);
        if (rc == 0 && libhs.valid_platform() != HS_SUCCESS)
                rc = error_set(err, STENO_EIO, "Hyperscan needs a processor with SSSE3");
        return rc;
}

/* If the machine does not have Hyperscan, this is remembered, so that later searches do not look
 * for it. If the system failed, for example because no descriptor was free, the next search tries
 * again. */
int libhs_need(struct steno_error *err)
{
        struct steno_error why = {0};
        int rc = 0;
        pthread_mutex_lock(&mutex);
        if (state == UNTRIED) {
                rc = load(&why);
                if (rc == 0)
                        state = READY;
                else if (why.sys == 0)
                        state = ABSENT;
        } else if (state == ABSENT) {
                rc = error_set(&why, STENO_EIO, "Hyperscan is not here");
        }
        pthread_mutex_unlock(&mutex);
        if (rc < 0)
                *err = why;
        return rc;
}
