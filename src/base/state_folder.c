/* state_folder.c - see state_folder.h */
#include "base/state_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_url.h"
#include "base/fs.h"
#include "base/hash.h"

/* $XDG_STATE_HOME/steno/NAME, else below ~/.local/state. */
static int put_path(const char *name, char **path, struct steno_error *err)
{
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        bool given = state && state[0] == '/';
        if (!given && !(home && *home))
                return error_set(err, STENO_EINVAL, "neither XDG_STATE_HOME nor HOME is set");
        if (asprintf(path, "%s%s/steno/%.16s", given ? state : home, given ? "" : "/.local/state",
                name) < 0) {
                *path = NULL;
                return error_nomem(err);
        }
        return 0;
}

int state_folder(const char *store_url, char **path, struct steno_error *err)
{
        char hex[SHA256_HEX];
        if (file_url_is(store_url) || !strstr(store_url, "://"))
                return file_url_path(store_url, path, err);
        int rc = hash_sha256_hex(store_url, strlen(store_url), hex) ? error_nomem(err)
                                                                    : put_path(hex, path, err);
        if (rc)
                return rc;
        const struct fs *fs = fs_real();
        int fd = fs->open_root(fs, *path, true);
        if (fd >= 0)
                fs->close(fs, fd);
        return fd < 0 ? error_sys(err, fd, "making %.150s", *path) : 0;
}
