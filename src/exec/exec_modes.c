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

#define FOLDERS_MAX 256 /* below those; a store has about ten, and three for each project */
#define DEPTH 3         /* projects, each of them, and its conversations */

struct file {
        char *name;
        mode_t mode;
};

struct folder {
        char *path;
        mode_t mode;
        bool whole;         /* its files as well */
        struct file *files; /* by name, once all are noted */
        size_t count, room;
        struct folder *next;
};

struct exec_modes {
        struct folder *folders;
        unsigned count;
};

typedef bool (*file_fn)(void *ctx, int dir, const char *name, mode_t mode);

/* Regular files, or folders, until `each` says no. */
static bool walk(DIR *dir, mode_t kind, file_fn each, void *ctx)
{
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

static bool walk_at(const char *path, mode_t kind, file_fn each, void *ctx)
{
        return walk(opendir(path), kind, each, ctx);
}

static bool note_file(void *ctx, int dir, const char *name, mode_t mode)
{
        struct folder *f = ctx;

        (void)dir;
        if (f->count == f->room) {
                size_t room = f->room ? 2 * f->room : 16;
                struct file *list = realloc(f->files, room * sizeof(*list));
                if (!list)
                        return false;
                f->files = list;
                f->room = room;
        }
        f->files[f->count] = (struct file){strdup(name), mode};
        return f->files[f->count++].name != NULL;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

/* All of them, however many: one that is missing here would be taken for a new one. Where the
 * folder cannot be read now, its files are left alone. */
static bool note_files(struct folder *f)
{
        DIR *dir = opendir(f->path);

        f->whole = dir != NULL;
        if (!walk(dir, S_IFREG, note_file, f))
                return false;
        if (f->count)
                qsort(f->files, f->count, sizeof(*f->files), by_name);
        return true;
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
        /* The trash and the like may have very many. */
        bool frame = n->depth == 1 ? strcmp(name, "projects") == 0 : n->depth < DEPTH;
        return (n->depth > 0 || note_files(f)) &&
               (!frame || walk_at(f->path, S_IFDIR, note_folder, &below));
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
        const struct file key = {.name = (char *)name}, *noted = NULL;

        if (r->folder->count)
                noted = bsearch(&key, r->folder->files, r->folder->count, sizeof(key), by_name);
        /* Steno makes files for their owner only. */
        mode_t right = right_mode(noted ? noted->mode : 0600, mode);
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
                        walk_at(f->path, S_IFREG, restore_file, &r);
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
