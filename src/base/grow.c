/* grow.c - see grow.h */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 16 /* elements */

bool grow_list(void *list, size_t *cap, size_t size)
{
        void *old;
        size_t more = *cap ? *cap * 2 : FIRST;
        if (*cap > SIZE_MAX / 2 / size)
                return false;
        memcpy(&old, list, sizeof old); /* a pointer to any type has one representation here */
        void *new = realloc(old, more * size);
        if (!new)
                return false;
        memcpy(list, &new, sizeof new);
        *cap = more;
        return true;
}
