/*
 * stop.c - the flag that ends a run: an atomic word for those who ask often, and an eventfd for
 * those who wait. Both only ever go from unset to set. One below another is waited for through an
 * epoll descriptor that has both.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "steno_loop.h"

struct steno_stop {
        atomic_int set;
        int fd;
        const struct steno_stop *parent;
        int both; /* -1 without a parent */
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
        stop->both = -1;
        *out = stop;
        return 0;
}

int steno_stop_new_below(
    const struct steno_stop *parent, struct steno_stop **out, struct steno_error *err)
{
        struct steno_stop *stop;
        int rc = steno_stop_new(&stop, err);
        if (rc || !parent) {
                if (rc == 0)
                        *out = stop;
                return rc;
        }
        struct epoll_event readable = {.events = EPOLLIN};
        stop->parent = parent;
        stop->both = epoll_create1(EPOLL_CLOEXEC);
        if (stop->both < 0 || epoll_ctl(stop->both, EPOLL_CTL_ADD, stop->fd, &readable) ||
            epoll_ctl(stop->both, EPOLL_CTL_ADD, steno_stop_fd(parent), &readable)) {
                int sys = errno;
                steno_stop_free(stop);
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
        return stop && (atomic_load(&stop->set) || steno_stop_requested(stop->parent));
}

int steno_stop_fd(const struct steno_stop *stop)
{
        if (!stop)
                return -1;
        return stop->both >= 0 ? stop->both : stop->fd;
}

void steno_stop_free(struct steno_stop *stop)
{
        if (!stop)
                return;
        if (stop->both >= 0)
                close(stop->both);
        close(stop->fd);
        free(stop);
}
