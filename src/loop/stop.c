/*
 * stop.c - the flag that ends a run: an atomic word for those who ask often, and an eventfd for
 * those who wait. Both only ever go from unset to set.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "steno_loop.h"

struct steno_stop {
        atomic_int set;
        int fd;
};

int steno_stop_new(struct steno_stop **out, struct steno_error *err)
{
        struct steno_stop *stop = calloc(1, sizeof(*stop));
        if (!stop)
                return error_nomem(err);
        stop->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (stop->fd < 0) {
                int sys = errno;
                free(stop);
                return error_sys(err, sys, "stop flag");
        }
        *out = stop;
        return 0;
}

void steno_stop_request(struct steno_stop *stop)
{
        int saved = errno; /* this runs in signal handlers */
        atomic_store(&stop->set, 1);
        uint64_t one = 1;
        ssize_t wrote = write(stop->fd, &one, sizeof(one));
        (void)wrote;
        errno = saved;
}

bool steno_stop_requested(const struct steno_stop *stop)
{
        return stop && atomic_load(&stop->set);
}

int steno_stop_fd(const struct steno_stop *stop)
{
        return stop ? stop->fd : -1;
}

void steno_stop_free(struct steno_stop *stop)
{
        if (!stop)
                return;
        close(stop->fd);
        free(stop);
}
