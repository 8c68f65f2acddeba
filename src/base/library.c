/* library.c - see library.h */
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

int library_load(const char *soname, const struct library_entry *entries, library_fn *to,
    size_t count, struct steno_error *err)
{
        void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
        if (!lib) {
                const char *why = dlerror();
                /* The error is only known as a text. Later there may be descriptors again. */
                if (strstr(why, strerror(EMFILE)) || strstr(why, strerror(ENFILE)))
                        return error_sys(err, -EMFILE, "loading %s", soname);
                return error_set(err, STENO_EIO, "cannot load a library: %.200s", why);
        }
        for (size_t i = 0; i < count; i++) {
                void *found = dlsym(lib, entries[i].name);
                if (!found)
                        return error_set(
                            err, STENO_EIO, "%s has no %s: it is too old", soname, entries[i].name);
                memcpy(&to[i], &found, sizeof found); /* ISO C has no cast for this */
        }
        return 0;
}
