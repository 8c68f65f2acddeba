/*
 * recent.c - `recent`, the list of conversations that changed since the index last looked.
 *
 * A line is "<project folder>/<conversation folder>". Writers append to it before they commit,
 * unless their name is already in the present file; the index renames the file to recent.old, reads
 * it, and removes it. A writer knows the file by its inode, which nobody else can get while the
 * store holds it open, and looks again after writing, so a name is never put into a file that was
 * taken away in between. It is unsynced: after a boot everything is scanned anyway.
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

/* Opens `recent` again where the store's descriptor is of an older file of that name. */
static int open_current(struct files_store *s)
{
        const struct fs *fs = s->env->fs;
        struct stat st;
        int fd = fs->open(fs, s->root, "recent", O_WRONLY | O_APPEND | O_CREAT, 0600);
        int rc = fd < 0 ? fd : fs->fstat(fs, fd, &st);
        if (rc == 0 && s->recent >= 0 && st.st_ino == s->recent_ino) {
                fs->close(fs, fd);
                return 0;
        }
        if (rc) {
                if (fd >= 0)
                        fs->close(fs, fd);
                return rc;
        }
        if (s->recent >= 0)
                fs->close(fs, s->recent);
        s->recent = fd;
        s->recent_ino = st.st_ino;
        s->recent_number++;
        return 0;
}

/* Is our name in the file that is called `recent` now? 1, 0 or negative. */
static int is_noted(struct files_conv *c)
{
        struct files_store *s = c->store;
        const struct fs *fs = s->env->fs;
        struct stat root, st;
        int rc = fs->fstat(fs, s->root, &root);
        if (rc == 0 && fs_stamp_is(c->root_seen, root.st_ctim))
                return 1;
        if (rc == 0)
                rc = fs->stat(fs, s->root, "recent", &st);
        if (rc)
                return rc == -ENOENT ? 0 : rc;
        pthread_mutex_lock(&s->recent_mutex);
        rc = s->recent >= 0 && st.st_ino == s->recent_ino && c->recent == s->recent_number;
        pthread_mutex_unlock(&s->recent_mutex);
        c->root_seen = rc ? fs_stamp_of(root.st_ctim, c->log_changed) : (struct fs_stamp){{0}};
        return rc;
}

static int note(struct files_conv *c)
{
        struct files_store *s = c->store;
        char name[140];
        int n = snprintf(name, sizeof name, "%s/%s\n", c->project->folder, c->folder);
        pthread_mutex_lock(&s->recent_mutex);
        int rc = open_current(s);
        if (rc == 0)
                rc = fs_write_all(s->env->fs, s->recent, name, (size_t)n);
        if (rc == 0)
                c->recent = s->recent_number;
        pthread_mutex_unlock(&s->recent_mutex);
        return rc;
}

int recent_note(struct files_conv *c, struct steno_error *err)
{
        int noted, rc = 0;
        for (int tries = 0; rc == 0 && (noted = is_noted(c)) != 1; tries++)
                rc = noted ? noted : tries > 100 ? -EBUSY : note(c);
        return rc ? error_sys(err, rc, "noting the change in recent") : 0;
}

void recent_note_name(struct files_store *s, const char *project_folder, const char *folder)
{
        const struct fs *fs = s->env->fs;
        char line[160];
        int fd = fs->open(fs, s->root, "recent", O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (fd < 0)
                return;
        int n = snprintf(line, sizeof line, "%s/%s\n", project_folder, folder);
        fs_write_all(fs, fd, line, (size_t)n);
        fs->close(fs, fd);
}
