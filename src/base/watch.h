/*
 * watch.h - waiting until an open file or folder changes. Call watch_begin() first, then look at
 * the file, then call watch_wait(): so no change is missed.
 */
#ifndef BASE_WATCH_H
#define BASE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch {
        int fd;           /* negative: the system has no more watches to give */
        int64_t deadline; /* ms; negative: none */
};

/*
 * Watches through the descriptor, so that a rename of the folder above does not matter. The system
 * has a limited number of watches. Without one, watch_wait() returns every tenth of a second.
 */
void watch_begin(struct watch *w, int fd, int timeout_ms);
/* Until something may have changed. False: the time is over. */
bool watch_wait(struct watch *w);
void watch_end(struct watch *w);

#endif
