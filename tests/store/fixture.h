/*
 * fixture.h - a store with one conversation, "c", in a directory of its own, for the tests of
 * maintenance.
 */
#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "steno.h"

struct fixture {
        struct scratch scratch;
        struct steno_store *store;
        struct steno_conv *conv;
};

#define OK(call)                                                                                   \
        do {                                                                                       \
                struct steno_error err = {0};                                                      \
                if ((call) != 0)                                                                   \
                        fail_msg("%s: %s", #call, err.msg);                                        \
        } while (0)

static inline void fixture_open(struct fixture *f)
{
        char url[512];
        OK(steno_open(scratch_store(&f->scratch, url), NULL, &f->store, &err));
        if (steno_conv_open(f->store, NULL, "c", &f->conv, NULL))
                OK(steno_conv_create(f->store, NULL, "c", NULL, &f->conv, &err));
}

static inline void fixture_close(struct fixture *f)
{
        steno_conv_close(f->conv);
        steno_close(f->store);
        f->conv = NULL;
        f->store = NULL;
}

static inline int fixture_setup(void **state)
{
        struct fixture *f = calloc(1, sizeof *f);
        *state = f;
        if (!f || scratch_make(&f->scratch))
                return -1;
        fixture_open(f);
        return 0;
}

static inline int fixture_teardown(void **state)
{
        struct fixture *f = *state;
        fixture_close(f);
        scratch_remove(&f->scratch);
        free(f);
        return 0;
}

static inline void fixture_append(struct fixture *f, const char *json)
{
        OK(steno_append(f->conv, json, strlen(json), NULL, NULL, &err));
}

/* "<root>/<below>", in a buffer of its own for four calls. */
static inline char *fixture_path(struct fixture *f, const char *below)
{
        static char paths[4][600];
        static int next;
        char *path = paths[next++ % 4];
        snprintf(path, sizeof paths[0], "%s/%s", f->scratch.path, below);
        return path;
}

#define CONV_FOLDER "projects/default/conversations/c/"

static inline size_t fixture_slurp(struct fixture *f, const char *below, char *to, size_t cap)
{
        FILE *in = fopen(fixture_path(f, below), "r");
        assert_non_null(in);
        size_t n = fread(to, 1, cap - 1, in);
        to[n] = '\0';
        fclose(in);
        return n;
}

static inline void fixture_spit(struct fixture *f, const char *below, const char *p, size_t n)
{
        FILE *out = fopen(fixture_path(f, below), "w");
        assert_non_null(out);
        assert_int_equal(fwrite(p, 1, n, out), n);
        fclose(out);
}

/* Does any file of the store contain these bytes? Uses grep, so that none of the tested code is
 * trusted. */
static inline bool fixture_holds(struct fixture *f, const char *words)
{
        char command[800];
        snprintf(command, sizeof command, "grep -rqF -- '%s' '%s'", words, f->scratch.path);
        return system(command) == 0;
}

#endif
