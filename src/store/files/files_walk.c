/*
 * files_walk.c - walks over a store by the names of its folders (files.h).
 */
#include "store/files/conv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"

bool files_is_foreign(int sys)
{
        return sys == -ENOENT || sys == -ENOTDIR || sys == -ELOOP || sys == -EXDEV;
}

bool files_is_link(const struct fs *fs, int dir, const char *path)
{
        struct stat st;
        return fs->stat(fs, dir, path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Can it be the folder of a project or a conversation, or stand for one that is elsewhere?
 * Half-made ones begin with a dot. */
static bool is_folder(const char *name, unsigned char type)
{
        return (type == DT_DIR || type == DT_LNK || type == DT_UNKNOWN) &&
               id_is_file_name(str_of(name));
}

struct project_walk {
        struct files_store *store;
        files_project_fn each;
        void *ctx;
        int rc;
};

static int each_project(void *ctx, const char *name, unsigned char type)
{
        struct project_walk *w = ctx;
        const struct fs *fs = w->store->env->fs;
        struct stat st;
        char path[PLAIN_NAME_MAX + 16];
        if (!is_folder(name, type))
                return 0;
        snprintf(path, sizeof path, "%s/conversations", name);
        int dir = fs->open(fs, w->store->projects_dir, path, O_RDONLY | O_DIRECTORY, 0);
        int sys = dir < 0 ? dir : fs->fstat(fs, dir, &st);
        if (files_is_foreign(sys) && (files_is_link(fs, w->store->projects_dir, name) ||
                                         files_is_link(fs, w->store->projects_dir, path)))
                w->rc = w->each(w->ctx, name, NULL, -ELOOP);
        else if (!files_is_foreign(sys))
                w->rc = w->each(w->ctx, name, &st, sys);
        if (dir >= 0)
                fs->close(fs, dir);
        return w->rc != 0;
}

int files_each_project(
    struct files_store *s, files_project_fn each, void *ctx, struct steno_error *err)
{
        struct project_walk w = {.store = s, .each = each, .ctx = ctx};
        int rc = files_lacks_projects(s, err);
        if (rc)
                return rc;
        int sys = s->env->fs->list(s->env->fs, s->projects_dir, each_project, &w);
        return sys < 0 ? error_sys(err, sys, "listing projects/") : w.rc;
}

struct conv_walk {
        struct files_store *store;
        files_conv_fn each;
        void *ctx;
        const char *project;
        int dir; /* being listed */
        struct steno_error *err;
        struct steno_error unread; /* about the first project that could not be looked at */
        int rc;
};

static int each_folder(void *ctx, const char *name, unsigned char type)
{
        struct conv_walk *w = ctx;
        bool link = type == DT_LNK ||
                    (type == DT_UNKNOWN && files_is_link(w->store->env->fs, w->dir, name));
        if (is_folder(name, type))
                w->rc = w->each(w->ctx, w->project, name, link);
        return w->rc != 0;
}

static int walk_project(struct conv_walk *w, const char *project)
{
        const struct fs *fs = w->store->env->fs;
        char path[PLAIN_NAME_MAX + 16];
        snprintf(path, sizeof path, "%s/conversations", project);
        int dir = fs->open(fs, w->store->projects_dir, path, O_RDONLY | O_DIRECTORY, 0);
        if (files_is_foreign(dir))
                return 0;
        w->project = project;
        w->dir = dir;
        int sys = dir < 0 ? dir : fs->list(fs, dir, each_folder, w);
        if (dir >= 0)
                fs->close(fs, dir);
        return sys < 0 ? error_sys(w->err, sys, "listing project %s", project) : w->rc;
}

int files_each_in(struct files_store *s, const char *project_folder, files_conv_fn each, void *ctx,
    struct steno_error *err)
{
        struct conv_walk w = {.store = s, .each = each, .ctx = ctx, .err = err};
        return walk_project(&w, project_folder);
}

static int each_conv(void *ctx, const char *project, const struct stat *st, int sys)
{
        struct conv_walk *w = ctx;
        (void)st;
        if (sys && sys != -ELOOP && !w->unread.code)
                error_sys(&w->unread, sys, "opening project %s", project);
        return sys ? 0 : walk_project(w, project);
}

int files_each_conv(struct files_store *s, files_conv_fn each, void *ctx, struct steno_error *err)
{
        struct conv_walk w = {.store = s, .each = each, .ctx = ctx, .err = err};
        int rc = files_each_project(s, each_conv, &w, err);
        if (rc == 0 && w.unread.code) {
                rc = w.unread.code;
                if (err)
                        *err = w.unread;
        }
        return rc;
}
