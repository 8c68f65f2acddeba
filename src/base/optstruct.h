/*
 * optstruct.h - option structs of the public headers, which begin with their own size.
 */
#ifndef BASE_OPTSTRUCT_H
#define BASE_OPTSTRUCT_H

#include <stddef.h>

#include "steno.h"

/*
 * Refuses an options struct whose size is not set, because all that it says would be ignored, and
 * one that sets members this version does not know. `known` is the struct's size here; NULL is
 * legal.
 */
int optstruct_check(const void *opt, size_t known, struct steno_error *err);

#endif
