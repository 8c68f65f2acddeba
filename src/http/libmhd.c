/* libmhd.c - see libmhd.h */
#include "http/libmhd.h"

#include "base/library.h"

struct libmhd libmhd;

int libmhd_load(struct steno_error *err)
{
        static const char *const names[] = {
#define X(name) "MHD_" #name,
            LIBMHD_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libmhd == sizeof names, "a function for each name");
        return library_load(
            "libmicrohttpd.so.12", names, (library_fn *)&libmhd, sizeof names / sizeof *names, err);
}
