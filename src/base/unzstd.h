/*
 * unzstd.h - files that were compressed with zstd, also from untrusted sources: a file that needs
 * more than 8 MiB of memory or expands too far is refused (limits.h, as for bundles).
 */
#ifndef BASE_UNZSTD_H
#define BASE_UNZSTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "steno.h"

/* Does a file that begins with these bytes look like one? */
bool unzstd_is(const void *p, size_t n);
/* Decompresses the first bytes of a file. Returns how many bytes that gave; 0: it is not possible.
 */
size_t unzstd_peek(const void *p, size_t n, char *out, size_t cap);
/* Writes what an open file holds to another; *size is how much. STENO_EPROTO: it is damaged or cut
 * off. */
int unzstd_file(int from, int to, uint64_t *size, struct steno_error *err);

#endif
