/*
 * boot.h - opens stores as if the machine had been started again, for benchmarks. What a store
 * knows only until the next boot (what has been synced, which index is complete) has to be found
 * again, because the value that identifies the boot is another one.
 */
#ifndef BENCH_BOOT_H
#define BENCH_BOOT_H

#include <stdio.h>

#include "base/env.h"

static int boots; /* so far */

static inline void boot_word(const struct env *env, char out[40])
{
        (void)env;
        snprintf(out, 40, "boot %d", boots);
}

/* The environment of a program that runs after `boots` boots. */
static inline struct env booted_env(void)
{
        struct env env = *env_real();
        env.boot = boot_word;
        return env;
}

#endif
