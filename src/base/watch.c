/* watch.c - see watch.h */
#include "base/watch.h"

#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/env.h"

#define LOOK_EVERY_MS 100
/* A bound on how long one lost event can matter. */
#define WAIT_AT_MOST_MS 60000

void watch_begin(struct watch *w, int fd, int timeout_ms)
{
        char path[64];
        w->deadline = timeout_ms < 0 ? -1 : time_monotonic_ms() + timeout_ms;
        w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (w->fd >= 0 && inotify_add_watch(w->fd, path, IN_MODIFY | IN_MOVED_TO | IN_CREATE) < 0)
                watch_end(w);
}

bool watch_wait(struct watch *w)
{
        int64_t left = w->fd < 0 ? LOOK_EVERY_MS : WAIT_AT_MOST_MS;
        if (w->deadline >= 0) {
                int64_t rest = w->deadline - time_monotonic_ms();
                if (rest <= 0)
                        return false;
                left = rest < left ? rest : left;
        }
        struct pollfd p = {.fd = w->fd, .events = POLLIN}; /* a negative one is passed over */
        poll(&p, 1, (int)left);
        char drain[4096];
        while (w->fd >= 0 && read(w->fd, drain, sizeof drain) > 0)
                ;
        return true;
}

void watch_end(struct watch *w)
{
        if (w->fd >= 0)
                close(w->fd);
        w->fd = -1;
}
