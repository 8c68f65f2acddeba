/*
 * bench.h - what the benchmarks share: the clock, medians, a temporary folder.
 */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fs.h"

static inline double now(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static inline _Noreturn void die(const char *what, const char *why)
{
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
        exit(1);
}

static inline int by_value(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

/* Sorts them. */
static inline double quantile(double *v, size_t n, double q)
{
        qsort(v, n, sizeof *v, by_value);
        return v[(size_t)((double)(n - 1) * q)];
}

static inline double median(double *v, size_t n)
{
        return quantile(v, n, 0.5);
}

/* A new folder below `given`, else below STENO_BENCH_DIR, else below the present one. */
static inline void make_folder(char *path, size_t room, const char *given)
{
        const char *base = given ? given : getenv("STENO_BENCH_DIR");
        snprintf(path, room, "%s/bench-XXXXXX", base && *base ? base : ".");
        if (!mkdtemp(path))
                die(path, "cannot make it");
}

static inline void remove_folder(const char *path)
{
        const struct fs *fs = fs_real();
        char top[300];
        snprintf(top, sizeof top, "%s", path);
        char *slash = strrchr(top, '/');
        *slash = '\0';
        int fd = fs->open_root(fs, top, false);
        if (fd >= 0) {
                fs_remove_tree(fs, fd, slash + 1);
                fs->close(fs, fd);
        }
}

#endif
