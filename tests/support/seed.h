/*
 * seed.h - reproducible chance for tests.
 *
 *      struct seed s = seed_start();            prints "# seed 123", or takes STENO_TEST_SEED
 *      for (int i = 0; i < seed_rounds(2000); i++)
 *              ... seed_below(&s, 10) ...
 *
 * A failure is repeated with STENO_TEST_SEED=123. Tests must take all their chance from here.
 */
#ifndef SUPPORT_SEED_H
#define SUPPORT_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct seed {
        uint64_t state;
};

/* splitmix64: one word of state, and any state is a good one. */
static inline uint64_t seed_mix(uint64_t z)
{
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

static inline uint64_t seed_next(struct seed *s)
{
        return seed_mix(s->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 to n - 1. */
static inline uint64_t seed_below(struct seed *s, uint64_t n)
{
        return seed_next(s) % n;
}

static inline struct seed seed_start(void)
{
        const char *given = getenv("STENO_TEST_SEED");
        struct timespec ts;
        uint64_t n;

        clock_gettime(CLOCK_REALTIME, &ts);
        n = given && *given
                ? strtoull(given, NULL, 10)
                : seed_mix((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec) >> 32;
        printf("# seed %llu\n", (unsigned long long)n);
        fflush(stdout);
        return (struct seed){n};
}

/* How many of `full` rounds to run: all with STENO_TEST_LONG=1, otherwise a twentieth. With a
 * sanitizer a hundredth, because it makes them ten times slower and checks the same code each
 * time. */
static inline int seed_rounds(int full)
{
        const char *full_run = getenv("STENO_TEST_LONG");
        int part = getenv("STENO_TEST_SANITIZER") ? 100 : 20;

        if (full_run && strcmp(full_run, "1") == 0)
                return full;
        return full > part ? full / part : 1;
}

/* In a series of cases that run the same code, the distance to the next case to run: `n` with a
 * sanitizer, which checks the code and not the answers, otherwise 1. */
static inline int seed_every(int n)
{
        return getenv("STENO_TEST_SANITIZER") ? n : 1;
}

#endif
