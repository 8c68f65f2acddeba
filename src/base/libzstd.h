/*
 * libzstd.h - zstd, loaded when a bundle is written or read for the first time:
 * libzstd.createCCtx() is ZSTD_createCCtx(), and so on.
 */
#ifndef BASE_LIBZSTD_H
#define BASE_LIBZSTD_H

#include <zstd.h>

#include "steno.h"

#define LIBZSTD_CALLS(X)                                                                           \
        X(CCtx_setParameter)                                                                       \
        X(DCtx_setParameter)                                                                       \
        X(compressStream2)                                                                         \
        X(createCCtx)                                                                              \
        X(createDCtx)                                                                              \
        X(decompressStream)                                                                        \
        X(freeCCtx)                                                                                \
        X(freeDCtx)                                                                                \
        X(getErrorName)                                                                            \
        X(isError)

struct libzstd {
#define X(name) __typeof__(ZSTD_##name) *name;
        LIBZSTD_CALLS(X)
#undef X
};

extern struct libzstd libzstd;

/* Loads it, once; from any thread. Nothing above may be called before. */
int libzstd_need(struct steno_error *err);

#endif
