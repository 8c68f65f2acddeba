/* library_linked.c - library_load() of a static program, which opens nothing. See library.h. */
#include "base/library.h"

int library_load(const char *soname, const struct library_entry *entries, library_fn *to,
    size_t count, struct steno_error *err)
{
        (void)soname;
        (void)err;
        for (size_t i = 0; i < count; i++)
                to[i] = entries[i].linked;
        return 0;
}
