/*
 * libhs.h - Hyperscan, loaded when a large output is searched for the first time:
 * libhs.compile() is hs_compile(), and so on. Only where Debian has it, which is amd64.
 */
#ifndef BASE_LIBHS_H
#define BASE_LIBHS_H

#include <hs.h>

#include "steno.h"

#define LIBHS_CALLS(X)                                                                             \
        X(alloc_scratch)                                                                           \
        X(compile)                                                                                 \
        X(database_size)                                                                           \
        X(free_compile_error)                                                                      \
        X(free_database)                                                                           \
        X(free_scratch)                                                                            \
        X(scan)                                                                                    \
        X(valid_platform)

struct libhs {
#define X(name) __typeof__(hs_##name) *name;
        LIBHS_CALLS(X)
#undef X
};

extern struct libhs libhs;

/* Loads it, once; from any thread. Nothing above may be called before. */
int libhs_need(struct steno_error *err);

#endif
