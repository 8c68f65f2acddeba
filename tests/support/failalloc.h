/*
 * failalloc.h - out of memory at the n-th allocation.
 *
 * malloc, calloc, realloc, reallocarray, aligned_alloc, posix_memalign, strdup, strndup, asprintf
 * and vasprintf of what is linked statically (our own code) are counted while a sweep is on, and
 * one of them fails. Libraries' own allocations are not touched. Use failalloc_dep in meson.build,
 * which brings the linker's --wrap options.
 *
 *      long n = 1;
 *      do {
 *              failalloc_start(n++);
 *              int rc = work();
 *      } while (failalloc_stop() && check(rc));
 *
 * Only the thread that called failalloc_start is counted.
 */
#ifndef SUPPORT_FAILALLOC_H
#define SUPPORT_FAILALLOC_H

#include <stdbool.h>

/* Fails the n-th allocation from now on, counted from 1; 0 only counts. */
void failalloc_start(long n);
/* The same, and every one after it. */
void failalloc_start_for_good(long n);
/* Ends it; true when an allocation was made to fail. */
bool failalloc_stop(void);
/* Between these calls nothing is counted and nothing fails: for code that looks at a result
 * meanwhile. */
bool failalloc_pause(void);
void failalloc_resume(bool paused);
/* Allocations that were asked for since the last start. */
long failalloc_count(void);

#endif
