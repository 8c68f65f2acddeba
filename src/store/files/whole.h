/*
 * whole.h - reading a file whose size and SHA-256 are known: a part by its name, a closed artifact
 * by its line of the manifest.
 */
#ifndef STORE_FILES_WHOLE_H
#define STORE_FILES_WHOLE_H

#include "base/fs.h"
#include "base/hash.h"
#include "steno.h"

struct whole {
        const char *what; /* names the file in messages */
        uint64_t size;
        const char *sha256; /* empty: nobody knows, the size has to do */
};

/*
 * Hands all bytes of `fd` to `sink`. STENO_ECORRUPT: they are others than `w` says, which may be
 * known only after `sink` got them; who cannot take them back asks with a NULL sink before.
 */
int whole_read(const struct fs *fs, int fd, const struct whole *w, steno_sink sink, void *ctx,
    struct steno_error *err);

#endif
