/* presence.c - see presence.h */
#include "store/files/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/backend.h"

#define WATCHERS "watchers"

struct presence {
        struct backend_watcher base;
        const struct fs *fs;
        int fd;
};

static int open_file(struct files_store *store, struct str project, bool create)
{
        const struct fs *fs = files_env(store)->fs;
        char name[PLAIN_NAME_MAX + 1];
        if (id_file_name(project, name))
                return -ENOMEM;
        int dir = fs_open_dir(fs, files_root(store), WATCHERS, create);
        if (dir < 0)
                return dir;
        int fd = fs->open(fs, dir, name, create ? O_RDWR | O_CREAT : O_RDONLY, 0600);
        fs->close(fs, dir);
        return fd;
}

int presence_hold(
    struct files_store *store, struct str project, struct presence **out, struct steno_error *err)
{
        struct presence *p = malloc(sizeof *p);
        if (!p)
                return error_nomem(err);
        *p = (struct presence){
            {&files_backend}, files_env(store)->fs, open_file(store, project, true)};
        int sys = p->fd < 0 ? p->fd : p->fs->flock(p->fs, p->fd, LOCK_SH | LOCK_NB);
        if (sys) {
                presence_release(p);
                return sys == -EWOULDBLOCK
                           ? error_set(err, STENO_ETIMEOUT, "somebody looks who is connected")
                           : error_sys(err, sys, "saying that somebody is connected");
        }
        *out = p;
        return 0;
}

void presence_release(struct presence *p)
{
        if (!p)
                return;
        if (p->fd >= 0)
                p->fs->close(p->fs, p->fd); /* lets go of the lock as well */
        free(p);
}

bool presence_any(struct files_store *store, struct str project)
{
        const struct fs *fs = files_env(store)->fs;
        int fd = open_file(store, project, false);
        if (fd < 0)
                return false;
        bool any = fs->flock(fs, fd, LOCK_EX | LOCK_NB) == -EWOULDBLOCK;
        fs->close(fs, fd);
        return any;
}
