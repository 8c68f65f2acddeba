/*
 * base64.h - standard base64 with padding (RFC 4648), as signed notes have it.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

void base64_put(struct buf *out, const void *p, size_t n);
/* Decodes exactly `n` bytes. False: it is not the base64 of so many. */
bool base64_take(struct str text, void *out, size_t n);

#endif
