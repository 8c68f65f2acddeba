/*
 * gunzip.h - a body that was sent compressed.
 */
#ifndef BASE_GUNZIP_H
#define BASE_GUNZIP_H

#include "base/buf.h"
#include "base/str.h"

/* How many bytes gunzip() would append, without keeping them, so that a caller can check its budget
 * before it allocates. The errors are the same. */
int gunzip_size(struct str packed, size_t max, size_t *size, struct steno_error *err);

/* Appends what a gzip stream holds, at most `max` bytes: STENO_ELIMIT beyond that, STENO_EINVAL
 * when it is not gzip or ends too early. */
int gunzip(struct str packed, size_t max, struct buf *out, struct steno_error *err);

#endif
