/*
 * files_aside.c - a second handle of a store whose writes stay in memory, for readers that may not
 * write or have no room to. Its clock and its random numbers are always the same, so that every
 * reader sees the same bytes.
 */
#include "store/files/files_backend.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fs_aside.h"
#include "base/limits.h"

struct files_aside {
        struct env env; /* first: what the functions below get is this */
        const struct env *real;
        struct fs_aside *fs;
        int64_t at;
        uint64_t state; /* of what stands for randomness */
};

static int64_t fixed_now(const struct env *self)
{
        return ((const struct files_aside *)self)->at;
}

/* The same numbers every time. SplitMix64; store handles share it, so the state is atomic. */
static void fixed_random(const struct env *self, void *p, size_t n)
{
        struct files_aside *a = (struct files_aside *)self;
        unsigned char *to = p;
        for (size_t i = 0; i < n; i++) {
                uint64_t z = __atomic_add_fetch(&a->state, 0x9E3779B97F4A7C15u, __ATOMIC_RELAXED);
                z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
                z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
                to[i] = (unsigned char)(z >> 56);
        }
}

static void same_boot(const struct env *self, char out[40])
{
        const struct files_aside *a = (const struct files_aside *)self;
        a->real->boot(a->real, out);
}

static int aside_new(
    struct files_conv *conv, const char *run, struct files_aside **out, struct steno_error *err)
{
        const struct env *real = conv->store->env;
        char journal[PLAIN_NAME_MAX + 16];
        struct stat st;
        snprintf(journal, sizeof journal, "runs/%s.jsonl", run);
        int sys = real->fs->stat(real->fs, conv->dir, journal, &st);
        if (sys)
                return error_sys(err, sys, "looking at %s", journal);
        struct files_aside *a = calloc(1, sizeof *a);
        if (!a)
                return error_nomem(err);
        a->real = real;
        a->at = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
        a->state = (uint64_t)a->at;
        a->fs = fs_aside_new(real->fs);
        a->env = (struct env){.now = fixed_now, .random = fixed_random, .boot = same_boot};
        if (!a->fs) {
                free(a);
                return error_nomem(err);
        }
        a->env.fs = fs_aside_table(a->fs);
        *out = a;
        return 0;
}

void files_aside_free(struct files_aside *a)
{
        if (!a)
                return;
        fs_aside_free(a->fs);
        free(a);
}

int files_aside_open(
    struct files_conv *conv, const char *run, struct files_store **out, struct steno_error *err)
{
        struct files_aside *a = NULL;
        struct files_store *store = NULL;
        int rc = aside_new(conv, run, &a, err);
        if (rc)
                return rc;
        rc = files_open(&a->env, conv->store->path, STENO_OPEN_EXISTING, &store, err);
        if (rc) {
                files_aside_free(a);
                return rc;
        }
        store->aside = a;
        *out = store;
        return 0;
}
