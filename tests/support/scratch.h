/*
 * scratch.h - a fresh directory for a test, removed with all in it afterwards.
 */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

struct scratch {
        char path[256];
};

/* Below STENO_TEST_TMP, else /tmp. 0 or -1. */
static inline int scratch_make(struct scratch *s)
{
        const char *base = getenv("STENO_TEST_TMP");

        snprintf(s->path, sizeof(s->path), "%s/ground-XXXXXX", base && *base ? base : "/tmp");
        return mkdtemp(s->path) ? 0 : -1;
}

/*
 * The store of a test: its directory, or a schema of its own in the database that STENO_TEST_STORE
 * names. Tests of behaviour open this, and do not ask which it is.
 */
static inline const char *scratch_store(struct scratch *s, char url[512])
{
        const char *base = getenv("STENO_TEST_STORE");
        if (!base || !*base)
                return s->path;
        snprintf(url, 512, "%s?schema=t_%.6s", base, strrchr(s->path, '-') + 1);
        for (char *p = strrchr(url, '='); *p; p++)
                if (*p >= 'A' && *p <= 'Z')
                        *p = (char)(*p - 'A' + 'a');
        return url;
}

static inline int scratch_remove(struct scratch *s)
{
        const struct fs *fs = fs_real();
        char *slash = strrchr(s->path, '/');

        *slash = '\0';
        int dir = fs->open_root(fs, s->path, false);
        int rc = dir < 0 ? dir : fs_remove_tree(fs, dir, slash + 1);
        *slash = '/';
        if (dir >= 0)
                fs->close(fs, dir);
        return rc;
}

#endif
