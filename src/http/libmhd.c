/* libmhd.c - see libmhd.h */
#include "http/libmhd.h"

#include "base/library.h"

struct libmhd libmhd;

int libmhd_load(struct steno_error *err)
{
        static const struct library_entry entries[] = {
#define X(name) LIBRARY_ENTRY(MHD_##name)
            LIBMHD_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libmhd / sizeof(library_fn) == sizeof entries / sizeof *entries,
            "a function for each entry");
        return library_load("libmicrohttpd.so.12", entries, (library_fn *)&libmhd,
            sizeof entries / sizeof *entries, err);
}
