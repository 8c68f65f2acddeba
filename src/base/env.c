/*
 * env.c - the real world: the system's files, clock, random source and boot id.
 */
#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static int64_t real_now(const struct env *self)
{
        struct timespec ts;

        (void)self;
        clock_gettime(CLOCK_REALTIME, &ts);
        return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* splitmix64 over the clock, the process and where the bytes go: distinct, not secret. */
static void fill_from_clock(unsigned char *p, size_t n)
{
        struct timespec ts;
        uint64_t counter = 0;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        uint64_t seed = (uint64_t)ts.tv_sec * 1000000007u ^ (uint64_t)ts.tv_nsec << 20 ^
                        (uint64_t)getpid() << 44 ^ (uint64_t)(uintptr_t)p;
        for (size_t i = 0; i < n; i++) {
                uint64_t z = seed + ++counter * 0x9e3779b97f4a7c15u;
                z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
                z = (z ^ z >> 27) * 0x94d049bb133111ebu;
                p[i] = (unsigned char)(z ^ z >> 31);
        }
}

static void real_random(const struct env *self, void *p, size_t n)
{
        unsigned char *at = p;

        (void)self;
        while (n > 0) {
                ssize_t got = getrandom(at, n, 0);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0) {
                        fill_from_clock(at, n);
                        return;
                }
                at += got;
                n -= (size_t)got;
        }
}

/* When the machine booted, to the minute. The value may change when the clock is set. Then the
 * index is scanned without need; a scan that is needed is never missed. */
static void boot_from_clock(char out[40])
{
        struct timespec now;
        struct timespec up;

        clock_gettime(CLOCK_REALTIME, &now);
        clock_gettime(CLOCK_BOOTTIME, &up);
        snprintf(out, 40, "minute-%lld", (long long)(now.tv_sec - up.tv_sec) / 60);
}

static void real_boot(const struct env *self, char out[40])
{
        char text[40] = "";

        (void)self;
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
                ssize_t n = read(fd, text, sizeof(text) - 1);
                text[n > 0 ? n : 0] = '\0';
                text[strcspn(text, "\n")] = '\0';
                close(fd);
        }
        if (*text)
                memcpy(out, text, sizeof(text));
        else
                boot_from_clock(out);
}

const struct env *env_real(void)
{
        static const struct env real = {
            .fs = &fs_real_table,
            .now = real_now,
            .random = real_random,
            .boot = real_boot,
        };
        return &real;
}

const char *env_get(const char *const *env, const char *name)
{
        size_t n = strlen(name);

        for (size_t i = 0; env && env[i]; i++)
                if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
                        return env[i] + n + 1;
        return NULL;
}
