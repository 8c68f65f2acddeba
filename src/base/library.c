/* library.c - see library.h */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

int library_load(const char *soname, const struct library_entry *entries, library_fn *to,
    size_t count, struct steno_error *err)
{
        void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
        if (!lib)
                return error_set(err, STENO_EIO, "cannot load a library: %.200s", dlerror());
        for (size_t i = 0; i < count; i++) {
                void *found = dlsym(lib, entries[i].name);
                if (!found)
                        return error_set(
                            err, STENO_EIO, "%s has no %s: it is too old", soname, entries[i].name);
                memcpy(&to[i], &found, sizeof found); /* ISO C has no cast for this */
        }
        return 0;
}
