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

#define FILES_MAX 256   /* of one directory; Steno has a dozen there */
#define FOLDERS_MAX 256 /* below those; a store has about ten, and three for each project */
#define DEPTH 3         /* projects, each of them, and its conversations */

struct file {
        char *name;
        mode_t mode;
};

struct folder {
        char *path;
        mode_t mode;
        bool whole; /* its files as well */
        struct file *files;
        size_t count;
        struct folder *next;
};

struct exec_modes {
        struct folder *folders;
        unsigned count;
};

typedef bool (*file_fn)(void *ctx, int dir, const char *name, mode_t mode);

/* Regular files, or folders, until `each` says no. */
static bool walk(const char *path, mode_t kind, file_fn each, void *ctx)
{
        DIR *dir = opendir(path);
        struct dirent *entry;
        struct stat st;
        bool on = true;

        while (dir && on && (entry = readdir(dir)))
                if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    (st.st_mode & S_IFMT) == kind && strcmp(entry->d_name, ".") != 0 &&
                    strcmp(entry->d_name, "..") != 0)
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

struct noting {
        struct exec_modes *modes;
        const char *path;
        unsigned depth; /* below the guarded folder */
};

/* Of a folder below, and of those in it; of files only in the guarded folder itself. */
static bool note_folder(void *ctx, int dir, const char *name, mode_t mode)
{
        const struct noting *n = ctx;
        struct exec_modes *m = n->modes;
        size_t room = strlen(n->path) + strlen(name) + 2;

        (void)dir;
        if (n->depth > 0 && m->count >= FOLDERS_MAX)
                return true;
        struct folder *f = calloc(1, sizeof(*f));
        if (!f)
                return false;
        f->path = malloc(room);
        f->mode = mode;
        /* Restored in this order: a folder before those in it, which cannot be reached otherwise.
         */
        struct folder **last = &m->folders;
        while (*last)
                last = &(*last)->next;
        *last = f;
        m->count++;
        if (!f->path)
                return false;
        snprintf(f->path, room, "%s%s%s", n->path, *name ? "/" : "", name);
        struct noting below = {m, f->path, n->depth + 1};
        f->whole = n->depth == 0;
        /* The trash and the like may have very many. */
        bool frame = n->depth == 1 ? strcmp(name, "projects") == 0 : n->depth < DEPTH;
        return (!f->whole || walk(f->path, S_IFREG, note_file, f)) &&
               (!frame || walk(f->path, S_IFDIR, note_folder, &below));
}

static int note_guarded(struct exec_modes *m, const char *path, struct steno_error *err)
{
        struct noting n = {m, path, 0};
        struct stat st;

        if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                return 0;
        return note_folder(&n, AT_FDCWD, "", st.st_mode & 07777) ? 0 : error_nomem(err);
}

int exec_modes_note(const char *const *hidden, struct exec_modes **out, struct steno_error *err)
{
        struct exec_modes *m = calloc(1, sizeof(*m));
        int rc = m ? 0 : error_nomem(err);

        for (size_t i = 0; rc == 0 && hidden && hidden[i]; i++)
                rc = note_guarded(m, hidden[i], err);
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
                if (f->whole)
                        walk(f->path, S_IFREG, restore_file, &r);
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
