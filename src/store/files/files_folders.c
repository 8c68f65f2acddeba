/*
 * files_folders.c - the folders of a store's root, where something else stands in their place
 * (files.h).
 *
 * What is not a folder holds nothing of the store, so a repair moves it to the quarantine as it is.
 * A link is not moved, because a person made it on purpose and its target may still be needed.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"

enum files_place files_look_at_place(struct files_store *s, const char *name)
{
        struct stat st;
        if (s->env->fs->stat(s->env->fs, s->root, name, &st) || S_ISDIR(st.st_mode))
                return FILES_PLACE_OK;
        return S_ISLNK(st.st_mode) ? FILES_PLACE_LINK : FILES_PLACE_TAKEN;
}

int files_open_projects(struct files_store *s, struct steno_error *err)
{
        s->projects_dir = fs_open_dir(s->env->fs, s->root, "projects", true);
        return s->projects_dir < 0 ? error_sys(err, s->projects_dir, "opening projects/") : 0;
}

int files_open_conversations(struct files_store *s, const char *project_folder)
{
        const struct fs *fs = s->env->fs;
        int project = fs_open_dir(fs, s->projects_dir, project_folder, true);
        if (project < 0)
                return project;
        int conversations = fs_open_dir(fs, project, "conversations", true);
        fs->close(fs, project);
        return conversations;
}

int files_lacks_projects(const struct files_store *s, struct steno_error *err)
{
        return s->projects_dir >= 0 ? 0
                                    : error_set(err, STENO_ECORRUPT,
                                          "projects is not a folder; steno check says more");
}

/* An entry in the place of the quarantine cannot be moved into it: it is renamed first, to a name
 * that says what it is. */
static int move_aside(struct files_store *s, const char *name, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char aside[64];
        if (strcmp(name, "quarantine") != 0)
                return quarantine_file(s, name, "not a folder", err);
        id_make(s->env, "quarantine.", aside);
        int rc = fs->rename_new(fs, s->root, name, s->root, aside);
        if (rc == 0)
                rc = fs->fsync(fs, s->root);
        return rc ? error_sys(err, rc, "moving %s aside", name)
                  : quarantine_file(s, aside, "not a folder", err);
}

int files_free_place(struct files_store *s, const char *name, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        /* Two repairs at once must not move what the other has made. */
        int lock = fs->open(fs, s->root, ".", O_RDONLY | O_DIRECTORY, 0);
        int rc = lock < 0 ? lock : fs->flock(fs, lock, LOCK_EX);
        if (rc)
                rc = error_sys(err, rc, "locking the store");
        else if (files_look_at_place(s, name) == FILES_PLACE_TAKEN)
                rc = move_aside(s, name, err);
        if (lock >= 0)
                fs->close(fs, lock);
        if (rc == 0 && s->projects_dir < 0 && strcmp(name, "projects") == 0)
                rc = files_open_projects(s, err);
        return rc;
}
