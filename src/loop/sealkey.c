/* sealkey.c - see sealkey.h */
#include "loop/sealkey.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ed25519.h"
#include "base/env.h"
#include "base/error.h"
#include "loop/config.h"

#define PRIVATE "PRIVATE+KEY+"

static int load_file(const char *path, char **text, struct steno_error *err)
{
        struct stat st;
        size_t n = 0;
        int rc = config_slurp(path, text, &n, err);
        if (rc == 0 && stat(path, &st) == 0 && (st.st_mode & 077)) {
                sealkey_free(*text);
                *text = NULL;
                rc = error_set(err, STENO_EDENIED,
                    "%.120s can be read by others: chmod 600 it, or make a new key", path);
        }
        return rc;
}

int sealkey_load(const char *const *env, char **text, struct steno_error *err)
{
        const char *named = env_get(env, "STENO_SEAL_KEY");
        char *home = NULL, *path = NULL, *found = NULL;
        int rc;
        if (named && strncmp(named, PRIVATE, strlen(PRIVATE)) == 0) {
                found = strdup(named);
                rc = found ? 0 : error_nomem(err);
        } else if (named && *named) {
                rc = load_file(named, &found, err);
        } else {
                rc = config_home(env, &home, err);
                if (rc == 0 && asprintf(&path, "%s/seal.key", home) < 0)
                        rc = error_nomem(err);
                if (rc == 0)
                        rc = load_file(path, &found, err);
        }
        free(home);
        free(path);
        if (rc == 0)
                *text = found;
        return rc;
}

void sealkey_free(char *text)
{
        if (text)
                ed25519_wipe(text, strlen(text));
        free(text);
}

int sealkey_save(const char *const *env, const char *text, char **path, struct steno_error *err)
{
        char *home = config_home_make(env), *name = NULL;
        if (!home)
                return error_set(err, STENO_ENOTFOUND,
                    "there is no folder for the configuration: neither XDG_CONFIG_HOME nor HOME "
                    "can be "
                    "used");
        if (asprintf(&name, "%s/seal.key", home) < 0)
                name = NULL;
        free(home);
        if (!name)
                return error_nomem(err);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        int rc = 0;
        if (fd < 0)
                rc = errno == EEXIST
                         ? error_set(err, STENO_ECONFLICT,
                               "%.140s exists: move it away first, and keep it, because what it "
                               "signed can only be verified with its public key",
                               name)
                         : error_sys(err, errno, "%.140s", name);
        size_t n = strlen(text);
        if (rc == 0 && (write(fd, text, n) != (ssize_t)n || write(fd, "\n", 1) != 1 || fsync(fd)))
                rc = error_sys(err, errno, "%.140s", name);
        if (fd >= 0)
                close(fd);
        if (rc && fd >= 0)
                unlink(name);
        if (rc) {
                free(name);
                return rc;
        }
        *path = name;
        return 0;
}
