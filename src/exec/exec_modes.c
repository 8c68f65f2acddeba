/* exec_modes.c - see exec_modes.h */
#include "exec/exec_modes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "tool/tool.h"

#define FILES_MAX 256 /* of one directory; Steno has a dozen there */

struct file {
        char *name;
        mode_t mode;
};

struct folder {
        char *path;
        mode_t mode;
        struct file *files;
        size_t count;
        struct folder *next;
};

struct exec_modes {
        struct folder *folders;
};

typedef bool (*file_fn)(void *ctx, int dir, const char *name, mode_t mode);

/* Regular files, until `each` says no. */
static bool walk(const char *path, file_fn each, void *ctx)
{
        DIR *dir = opendir(path);
        struct dirent *entry;
        struct stat st;
        bool on = true;

        while (dir && on && (entry = readdir(dir)))
                if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISREG(st.st_mode))
                        on = each(ctx, dirfd(dir), entry->d_name, st.st_mode & 07777);
        if (dir)
                closedir(dir);
        return on;
}

static bool note_file(void *ctx, int dir, const char *name, mode_t mode)
{
        struct folder *f = ctx;

        (void)dir;
        if (f->count == FILES_MAX)
                return true;
        struct file *list = realloc(f->files, (f->count + 1) * sizeof(*list));
        if (!list)
                return false;
        f->files = list;
        list[f->count] = (struct file){strdup(name), mode};
        return list[f->count++].name != NULL;
}

static int note_folder(struct exec_modes *m, const char *path, struct steno_error *err)
{
        struct stat st;

        if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                return 0;
        struct folder *f = calloc(1, sizeof(*f));
        if (!f)
                return error_nomem(err);
        f->next = m->folders;
        m->folders = f;
        f->mode = st.st_mode & 07777;
        f->path = strdup(path);
        return f->path && walk(path, note_file, f) ? 0 : error_nomem(err);
}

int exec_modes_note(const char *const *hidden, struct exec_modes **out, struct steno_error *err)
{
        struct exec_modes *m = calloc(1, sizeof(*m));
        int rc = m ? 0 : error_nomem(err);

        for (size_t i = 0; rc == 0 && hidden && hidden[i]; i++)
                rc = note_folder(m, hidden[i], err);
        if (rc < 0)
                exec_modes_free(m);
        else
                *out = m;
        return rc;
}

/* What it should be: for the owner no less than before or now, for others no more. */
static mode_t right_mode(mode_t was, mode_t now)
{
        return ((was | now) & 0700) | (was & now & 07077);
}

struct restoring {
        const struct folder *folder;
        unsigned changed;
};

static bool restore_file(void *ctx, int dir, const char *name, mode_t mode)
{
        struct restoring *r = ctx;
        mode_t was = 0600; /* Steno makes files for their owner only */

        for (size_t i = 0; i < r->folder->count; i++)
                if (strcmp(r->folder->files[i].name, name) == 0)
                        was = r->folder->files[i].mode;
        mode_t right = right_mode(was, mode);
        if (right != mode && fchmodat(dir, name, right, 0) == 0)
                r->changed++;
        return true;
}

unsigned exec_modes_restore(const struct exec_modes *m)
{
        struct restoring r = {0};
        struct stat st;

        for (const struct folder *f = m ? m->folders : NULL; f; f = f->next) {
                if (lstat(f->path, &st) < 0 || !S_ISDIR(st.st_mode))
                        continue;
                mode_t now = st.st_mode & 07777, right = right_mode(f->mode, now);
                if (right != now && fchmodat(AT_FDCWD, f->path, right, 0) == 0)
                        r.changed++;
                r.folder = f;
                walk(f->path, restore_file, &r);
        }
        return r.changed;
}

void exec_modes_tell(struct steno_tool_call *call, unsigned changed)
{
        char text[160];

        if (!changed)
                return;
        snprintf(text, sizeof(text),
            "it had changed the modes of %u files of the store or the configuration, which were "
            "put back",
            changed);
        tool_call_step(call, text, 0, 0, NULL);
}

void exec_modes_free(struct exec_modes *m)
{
        for (struct folder *f = m ? m->folders : NULL, *next; f; f = next) {
                next = f->next;
                for (size_t i = 0; i < f->count; i++)
                        free(f->files[i].name);
                free(f->files);
                free(f->path);
                free(f);
        }
        free(m);
}
