/*
 * recent.c - `recent`, the list of conversations that changed since the index last looked.
 *
 * A line is "<project folder>/<conversation folder>". Writers append to it before they commit,
 * unless their name is already in the present file; the index takes the file away (rename to
 * recent.old), reads it, and removes it. A writer knows the file by its inode, and looks again
 * after writing, so a name is never put into a file that was taken away in between. It is
 * unsynced: after a boot everything is scanned anyway.
 *
 *   R1  A commit whose name is not in `recent` is seen by a catch-up that takes the
 *       conversation's lock after it took the file away: the check and the commit happen under
 *       that same lock.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

int recent_note(struct files_conv *c, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        char name[140];
        int rc = fs->stat(fs, c->store->root, "recent", &st);
        for (int tries = 0; rc != 0 || st.st_ino != c->recent_ino; tries++) {
                if ((rc && rc != -ENOENT) || tries > 100)
                        return error_sys(err, rc ? rc : EBUSY, "noting the change in recent");
                int fd =
                    fs->open(fs, c->store->root, "recent", O_WRONLY | O_APPEND | O_CREAT, 0600);
                if (fd < 0)
                        return error_sys(err, fd, "noting the change in recent");
                int n = snprintf(name, sizeof name, "%s/%s\n", c->project->folder, c->folder);
                rc = fs_write_all(fs, fd, name, (size_t)n);
                if (rc == 0)
                        rc = fs->fstat(fs, fd, &st);
                fs->close(fs, fd);
                if (rc)
                        return error_sys(err, rc, "noting the change in recent");
                c->recent_ino = st.st_ino;
                rc = fs->stat(fs, c->store->root, "recent", &st);
        }
        return 0;
}
