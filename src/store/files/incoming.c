/* incoming.c - see incoming.h */
#include "store/files/incoming.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/conv.h"

/* The folders of a conversation that may be there: their names are synced with it. */
static const char *const FOLDERS[] = {
    "artifacts/tool", "artifacts/terminal", "artifacts/parts", "artifacts", "runs", "seal", "."};

int incoming_open(struct files_store *s, struct incoming *in, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        *in = (struct incoming){.store = s, .dir = -1};
        id_make(s->env, INCOMING_PREFIX, in->name);
        int rc = fs->mkdir(fs, s->root, in->name, 0700);
        if (rc == 0) {
                in->dir = fs->open(fs, s->root, in->name, O_RDONLY | O_DIRECTORY, 0);
                rc = in->dir < 0 ? in->dir : fs->flock(fs, in->dir, LOCK_EX);
        }
        if (rc)
                incoming_close(in);
        return rc ? error_sys(err, rc, "making a folder for what comes in") : 0;
}

void incoming_close(struct incoming *in)
{
        if (!in->store)
                return;
        const struct fs *fs = in->store->env->fs;
        fs_remove_tree(fs, in->store->root, in->name);
        if (in->dir >= 0)
                fs->close(fs, in->dir);
        *in = (struct incoming){.dir = -1};
}

static void folder_name(uint32_t number, char out[INCOMING_FOLDER])
{
        snprintf(out, INCOMING_FOLDER, "%lu", (unsigned long)number);
}

int incoming_add(struct incoming *in, uint32_t number, struct steno_error *err)
{
        const struct fs *fs = in->store->env->fs;
        char name[INCOMING_FOLDER];
        folder_name(number, name);
        int rc = fs->mkdir(fs, in->dir, name, 0700);
        int dir = rc ? rc : fs->open(fs, in->dir, name, O_RDONLY | O_DIRECTORY, 0);
        return dir < 0 ? error_sys(err, dir, "making a folder for what comes in") : dir;
}

int incoming_look(struct incoming *in, uint32_t number, struct str project, struct str id,
    struct files_conv **out, struct steno_error *err)
{
        char name[INCOMING_FOLDER];
        folder_name(number, name);
        return files_conv_open_aside(in->store, in->dir, name, project, id, out, err);
}

static int sync_folders(const struct fs *fs, int dir)
{
        for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
                int fd = fs->open(fs, dir, FOLDERS[i], O_RDONLY | O_DIRECTORY, 0);
                if (fd == -ENOENT)
                        continue;
                int rc = fd < 0 ? fd : fs->fsync(fs, fd);
                if (fd >= 0)
                        fs->close(fs, fd);
                if (rc)
                        return rc;
        }
        return 0;
}

int incoming_install(struct incoming *in, uint32_t number, struct str project, struct str id,
    struct steno_error *err)
{
        struct files_store *s = in->store;
        const struct fs *fs = s->env->fs;
        char name[INCOMING_FOLDER], to_project[PLAIN_NAME_MAX + 1], to[PLAIN_NAME_MAX + 1];
        folder_name(number, name);
        if (id_file_name(project, to_project) || id_file_name(id, to))
                return error_nomem(err);
        int dir = fs->open(fs, in->dir, name, O_RDONLY | O_DIRECTORY, 0);
        int rc = dir < 0 ? dir : sync_folders(fs, dir);
        int refused = rc ? 0 : quota_take_folder(s, dir, err);
        if (dir >= 0)
                fs->close(fs, dir);
        if (refused)
                return refused;
        int place = rc ? rc : files_open_conversations(s, to_project);
        if (place >= 0) {
                recent_note_name(s, to_project, to);
                rc = fs->rename_new(fs, in->dir, name, place, to);
                if (rc == 0)
                        rc = fs->fsync(fs, place);
                fs->close(fs, place);
                /* Again, because a process that read the first line before the rename found
                 * nothing. */
                recent_note_name(s, to_project, to);
        } else {
                rc = place;
        }
        if (rc)
                quota_forget(s);
        if (rc == -EEXIST || rc == -ENOTEMPTY)
                return error_set(err, STENO_ECONFLICT, "conversation \"%.*s\" exists already",
                    (int)(id.n > 100 ? 100 : id.n), id.p);
        return rc ? error_sys(err, rc, "putting conversation \"%.*s\" in its place",
                        (int)(id.n > 100 ? 100 : id.n), id.p)
                  : 0;
}

/* ---- leftovers ---- */

struct sweep {
        const struct fs *fs;
        int root;
        bool remove;
        uint64_t count;
};

static int sweep_one(void *ctx, const char *name, unsigned char type)
{
        struct sweep *s = ctx;
        (void)type;
        if (strncmp(name, INCOMING_PREFIX, sizeof INCOMING_PREFIX - 1) != 0)
                return 0;
        int dir = s->fs->open(s->fs, s->root, name, O_RDONLY | O_DIRECTORY, 0);
        if (dir < 0)
                return 0;
        int rc = 0;
        if (s->fs->flock(s->fs, dir, LOCK_EX | LOCK_NB) == 0) {
                s->count++;
                rc = s->remove ? fs_remove_tree(s->fs, s->root, name) : 0;
        }
        s->fs->close(s->fs, dir);
        return rc == -ENOENT ? 0 : rc;
}

int incoming_sweep(struct files_store *store, bool remove, uint64_t *count, struct steno_error *err)
{
        struct sweep s = {.fs = store->env->fs, .root = store->root, .remove = remove};
        int rc = s.fs->list(s.fs, s.root, sweep_one, &s);
        *count = s.count;
        return rc ? error_sys(err, rc, "removing what an import left behind") : 0;
}
