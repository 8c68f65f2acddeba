/* failalloc.c - the other end of the linker's --wrap; see failalloc.h. */
#include "failalloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state is a thread's own, so that threads of a library under test are left alone. */
static _Thread_local struct {
        bool on;
        bool for_good;
        bool fired;
        long nth;
        long count;
} sweep;

static bool must_fail(void)
{
        if (!sweep.on)
                return false;
        sweep.count++;
        if (sweep.nth == 0 || sweep.count < sweep.nth)
                return false;
        if (sweep.count > sweep.nth && !sweep.for_good)
                return false;
        sweep.fired = true;
        errno = ENOMEM;
        return true;
}

/* The linker's names. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t count, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);
char *__real_strdup(const char *z);
char *__real_strndup(const char *p, size_t n);
int __real_vasprintf(char **out, const char *fmt, va_list args);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t count, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);
char *__wrap_strdup(const char *z);
char *__wrap_strndup(const char *p, size_t n);
int __wrap_asprintf(char **out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int __wrap_vasprintf(char **out, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));

void *__wrap_malloc(size_t n)
{
        return must_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t n)
{
        return must_fail() ? NULL : __real_calloc(count, n);
}

void *__wrap_realloc(void *p, size_t n)
{
        return must_fail() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t count, size_t n)
{
        return must_fail() ? NULL : __real_reallocarray(p, count, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
        return must_fail() ? NULL : __real_aligned_alloc(align, n);
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
        return must_fail() ? ENOMEM : __real_posix_memalign(out, align, n);
}

char *__wrap_strdup(const char *z)
{
        return must_fail() ? NULL : __real_strdup(z);
}

char *__wrap_strndup(const char *p, size_t n)
{
        return must_fail() ? NULL : __real_strndup(p, n);
}

int __wrap_vasprintf(char **out, const char *fmt, va_list args)
{
        return must_fail() ? -1 : __real_vasprintf(out, fmt, args);
}

int __wrap_asprintf(char **out, const char *fmt, ...)
{
        va_list args;

        if (must_fail())
                return -1;
        va_start(args, fmt);
        int n = __real_vasprintf(out, fmt, args);
        va_end(args);
        return n;
}

static void start(long n, bool for_good)
{
        sweep.nth = n;
        sweep.for_good = for_good;
        sweep.fired = false;
        sweep.count = 0;
        sweep.on = true;
}

void failalloc_start(long n)
{
        start(n, false);
}

void failalloc_start_for_good(long n)
{
        start(n, true);
}

bool failalloc_stop(void)
{
        sweep.on = false;
        return sweep.fired;
}

bool failalloc_pause(void)
{
        bool was_on = sweep.on;
        sweep.on = false;
        return was_on;
}

void failalloc_resume(bool paused)
{
        sweep.on = paused;
}

long failalloc_count(void)
{
        return sweep.count;
}
