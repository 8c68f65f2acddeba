/*
 * set_aside.c - see set_aside.h
 */
#include "store/set_aside.h"

#include <stdio.h>
#include <string.h>

static const struct recorder {
        const char *folder;
        const char *what;
} RECORDERS[] = {
    {"gateway", "a request could not be recorded in a conversation; this file has all of it"},
    {"acp", "a part of a session could not be recorded; this file has all of its messages"},
};

struct walk {
        const struct recorder *by;
        set_aside_fn each;
        void *ctx;
};

static int tell(void *ctx, const char *name, unsigned char type)
{
        const struct walk *w = ctx;
        char what[240];
        (void)type;
        if (strncmp(name, "kept_", 5) != 0)
                return 0;
        snprintf(what, sizeof what, "%s/%.100s: %s", w->by->folder, name, w->by->what);
        return w->each(w->ctx, what);
}

int set_aside_each(const struct fs *fs, int folder, set_aside_fn each, void *ctx)
{
        int rc = 0;
        for (size_t i = 0; i < sizeof RECORDERS / sizeof *RECORDERS && rc == 0; i++) {
                struct walk w = {&RECORDERS[i], each, ctx};
                int dir = fs_open_dir(fs, folder, RECORDERS[i].folder, false);
                if (dir < 0)
                        continue;
                int sys;
                rc = fs_each(fs, dir, tell, &w, &sys);
                fs->close(fs, dir);
        }
        return rc;
}
