/* optstruct.c - see optstruct.h */
#include "base/optstruct.h"

#include <string.h>

#include "base/error.h"

/* No options struct is so large: the caller did not set the size, and the value is chance. */
#define OPTSTRUCT_MAX 65536

int optstruct_check(const void *opt, size_t known, struct steno_error *err)
{
        size_t size;
        if (!opt)
                return 0;
        memcpy(&size, opt, sizeof size);
        if (size < sizeof size || size > OPTSTRUCT_MAX)
                return error_set(err, STENO_EINVAL,
                    "options: size is %zu; set it to sizeof the options struct", size);
        for (size_t i = known; i < size; i++)
                if (((const unsigned char *)opt)[i])
                        return error_set(err, STENO_EINVAL,
                            "options: a member at byte %zu is set, and this version knows only %zu "
                            "bytes",
                            i, known);
        return 0;
}
