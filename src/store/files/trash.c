/* trash.c - see trash.h */
#include "store/files/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/conv.h"
#include "store/files/seal.h"
#include "store/files/seal_log.h"

#define NOTE_MAX (64 * KIB)
#define GONE ".gone-"
#define TREE_DEPTH_MAX 16
#define NOTE_AGE_S (24 * 3600)

static int open_trash(struct files_store *s, bool create)
{
        return fs_open_dir(s->env->fs, s->root, "trash", create);
}

/* ---- putting ---- */

void trash_note_put(struct buf *out, const struct trash_item *item)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "project", item->project);
        jsonw_field_cstr(&w, "id", item->id);
        if (*item->folder)
                jsonw_field_cstr(&w, "folder", item->folder);
        jsonw_field_cstr(&w, "deletedAt", item->deleted_at);
        jsonw_object_end(&w);
        buf_putc(out, '\n');
}

static int write_note(struct files_conv *c, int trash, const char *name)
{
        const struct env *env = c->store->env;
        char file[80];
        struct trash_item item = {.project = c->project_id, .id = c->id};
        struct buf b;
        buf_init(&b, NOTE_MAX);
        snprintf(item.folder, sizeof item.folder, "%s", c->folder);
        time_format(env->now(env), item.deleted_at);
        trash_note_put(&b, &item);
        snprintf(file, sizeof file, "%s.json", name);
        int rc = b.failed ? -ENOMEM : fs_replace(env->fs, trash, file, b.p, b.n);
        buf_release(&b);
        return rc;
}

/* Appends that were only process-durable would otherwise wait for a sync that never comes. */
static int sync_log(struct files_conv *c)
{
        const struct fs *fs = c->store->env->fs;
        int fd = fs->open(fs, c->dir, "messages.jsonl", O_RDONLY, 0);
        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        int rc = fs->fdatasync(fs, fd);
        fs->close(fs, fd);
        return rc;
}

/* The folder could not be moved (for example EXDEV on an overlay), so the note is wrong and is
 * removed. */
static void drop_note(struct files_conv *c, int trash, const char *name)
{
        const struct fs *fs = c->store->env->fs;
        char file[TRASH_NAME + sizeof ".json"];
        snprintf(file, sizeof file, "%s.json", name);
        fs->unlink(fs, trash, file, 0);
}

/* Under the lock. */
static int move_here(struct files_conv *c, int trash, char name[TRASH_NAME])
{
        const struct fs *fs = c->store->env->fs;
        id_make(c->store->env, "", name);
        int rc = sync_log(c);
        if (rc == 0)
                rc = write_note(c, trash, name); /* T2 */
        if (rc == 0) {
                rc = fs->rename_new(fs, c->project->conversations, c->folder, trash, name); /* T1 */
                if (rc)
                        drop_note(c, trash, name);
        }
        if (rc == 0)
                rc = fs->fsync(fs, trash);
        if (rc == 0)
                rc = fs->fsync(fs, c->project->conversations);
        return rc;
}

int trash_put(struct files_conv *c, char name[TRASH_NAME], struct steno_error *err)
{
        int trash = open_trash(c->store, true);
        if (trash < 0)
                return error_sys(err, trash, "opening the trash");
        int rc = files_conv_lock(c, err);
        uint64_t used = rc ? 0 : quota_leaving(c);
        if (rc == 0) {
                meta_refresh(c);
                rc = recent_note(c, err);
                int sys = rc ? 0 : move_here(c, trash, name);
                if (sys)
                        rc = error_sys(
                            err, sys, "moving conversation \"%.100s\" to the trash", c->id);
                files_conv_unlock(c);
        }
        c->store->env->fs->close(c->store->env->fs, trash);
        if (rc == 0)
                quota_left(c->store, used);
        return rc;
}

/* ---- listing ---- */

struct tree {
        const struct fs *fs;
        int dir;
        int depth;
        uint64_t bytes;
};

static int add_bytes(void *ctx, const char *name, unsigned char type)
{
        struct tree *t = ctx;
        struct stat st;
        (void)type;
        if (t->fs->stat(t->fs, t->dir, name, &st))
                return 0;
        if (!S_ISDIR(st.st_mode)) {
                t->bytes += (uint64_t)st.st_size;
                return 0;
        }
        if (t->depth >= TREE_DEPTH_MAX)
                return 0;
        struct tree below = {.fs = t->fs, .depth = t->depth + 1};
        below.dir = t->fs->open(t->fs, t->dir, name, O_RDONLY | O_DIRECTORY, 0);
        if (below.dir < 0)
                return 0;
        t->fs->list(t->fs, below.dir, add_bytes, &below);
        t->fs->close(t->fs, below.dir);
        t->bytes += below.bytes;
        return 0;
}

/* Bytes of all files below a folder; what vanishes meanwhile is not counted. */
static uint64_t tree_bytes(const struct fs *fs, int dir, const char *name)
{
        struct tree t = {.fs = fs, .dir = dir};
        add_bytes(&t, name, 0);
        return t.bytes;
}

struct listing {
        struct files_store *store;
        int trash;
        bool sizes;
        int sys; /* of a folder that could not be looked at */
        struct trash_list *out;
};

/* Fills project and id from a JSON file, and what only a note says; what it lacks stays. */
static int read_names(struct listing *l, const char *file, bool note, struct trash_item *item)
{
        char *text = NULL;
        size_t n = 0;
        struct json j;
        int rc = fs_slurp(l->store->env->fs, l->trash, file, META_MAX, &text, &n);
        if (rc)
                return rc == -ENOMEM ? STENO_ENOMEM : 0;
        json_init(&j);
        rc = json_parse(&j, text, n, NULL, NULL);
        if (rc == 0) {
                struct str at = json_inner(&j, json_get(&j, 0, "deletedAt"));
                struct str folder = json_inner(&j, json_get(&j, 0, "folder"));
                if (!item->project)
                        item->project = json_dup_string(&j, json_get(&j, 0, "project"));
                if (!item->id)
                        item->id = json_dup_string(&j, json_get(&j, 0, "id"));
                if (note && at.n == TIME_TEXT - 1)
                        memcpy(item->deleted_at, at.p, at.n);
                if (note && id_is_file_name(folder))
                        memcpy(item->folder, folder.p, folder.n);
        }
        json_release(&j);
        free(text);
        return rc == STENO_ENOMEM ? rc : 0;
}

static void item_release(struct trash_item *item)
{
        free(item->project);
        free(item->id);
}

static int take_folder(void *ctx, const char *name, unsigned char type)
{
        struct listing *l = ctx;
        const struct fs *fs = l->store->env->fs;
        struct trash_item item = {0};
        struct stat st;
        char file[96];
        (void)type;
        if (name[0] == '.' || strlen(name) >= sizeof item.name)
                return 0;
        l->sys = fs->stat(fs, l->trash, name, &st);
        if (l->sys && l->sys != -ENOENT)
                return STENO_EIO;
        if (l->sys || !S_ISDIR(st.st_mode))
                return 0;
        if (!grow_room(l->out->items, l->out->count, l->out->cap))
                return STENO_ENOMEM;
        snprintf(item.name, sizeof item.name, "%s", name);
        time_format((int64_t)st.st_ctim.tv_sec * 1000, item.deleted_at);
        snprintf(file, sizeof file, "%s.json", name);
        int rc = read_names(l, file, true, &item);
        if (rc == 0 && (!item.id || !item.project)) { /* T2 */
                snprintf(file, sizeof file, "%s/meta.json", name);
                rc = read_names(l, file, false, &item);
        }
        if (rc == 0 && !item.id)
                item.id = strdup(name);
        if (rc == 0 && !item.project)
                item.project = strdup("default");
        if (rc || !item.id || !item.project) {
                item_release(&item);
                return STENO_ENOMEM;
        }
        if (l->sizes)
                item.bytes = tree_bytes(fs, l->trash, name);
        l->out->items[l->out->count++] = item;
        return 0;
}

static int newest_first(const void *a, const void *b)
{
        const struct trash_item *x = a, *y = b;
        int by_time = strcmp(y->deleted_at, x->deleted_at);
        return by_time ? by_time : strcmp(y->name, x->name);
}

int trash_list_read(
    struct files_store *s, bool sizes, struct trash_list *out, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        struct listing l = {.store = s, .sizes = sizes, .out = out};
        *out = (struct trash_list){0};
        l.trash = open_trash(s, false);
        if (l.trash == -ENOENT)
                return 0;
        if (l.trash < 0)
                return error_sys(err, l.trash, "opening the trash");
        int sys;
        int rc = fs_each(fs, l.trash, take_folder, &l, &sys);
        fs->close(fs, l.trash);
        if (rc || sys) {
                backend_trash_list_release(out);
                sys = rc == STENO_EIO ? l.sys : sys;
                return sys ? error_sys(err, sys, "listing the trash") : error_nomem(err);
        }
        if (out->count)
                qsort(out->items, out->count, sizeof *out->items, newest_first);
        return 0;
}

/* ---- taking out ---- */

/* Locks a folder here; a descriptor that holds the lock, or negative. */
static int lock_item(const struct fs *fs, int trash, const char *name)
{
        struct stat mine, named;
        int dir = fs->open(fs, trash, name, O_RDONLY | O_DIRECTORY, 0);
        if (dir < 0)
                return dir;
        int rc = fs->flock(fs, dir, LOCK_EX);
        if (rc == 0)
                rc = fs->fstat(fs, dir, &mine);
        if (rc == 0)
                rc = fs->stat(fs, trash, name, &named);
        if (rc == 0 && (mine.st_ino != named.st_ino || mine.st_dev != named.st_dev))
                rc = -ENOENT;
        if (rc == 0)
                return dir;
        fs->close(fs, dir);
        return rc;
}

/* Where it goes: the place of the id `as`, or where it came from, whatever its id is. */
static int folder_to(const struct trash_item *item, const char *as, char out[PLAIN_NAME_MAX + 1])
{
        if (as || !item->folder[0])
                return id_file_name(str_of(as ? as : item->id), out);
        memcpy(out, item->folder, sizeof item->folder);
        return 0;
}

/* The log of seals gets an entry for each sealed conversation that is removed for good. */
static int log_removal(
    struct files_store *s, int dir, const struct trash_item *item, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char name[SEAL_CONV];
        struct stat st;
        if (fs->stat(fs, dir, "seal/checkpoints", &st))
                return 0;
        int sys = seal_name_at(fs, dir, str_of(item->project), str_of(item->id), name);
        if (sys)
                return error_sys(err, sys, "reading meta.json");
        return name[0] ? seal_log_removed(s, name, err) : 0;
}

/* `dir` is the locked folder. */
static int move_back(struct files_store *s, int trash, int dir, const struct trash_item *item,
    const char *as, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char project[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1], note[96];
        const char *id = as ? as : item->id;
        struct stat st;
        if (id_file_name(str_of(item->project), project) || folder_to(item, as, folder))
                return error_nomem(err);
        int conversations = files_open_conversations(s, project);
        int rc = conversations < 0 ? conversations : 0;
        if (rc == 0 && fs->stat(fs, conversations, folder, &st) == 0)
                rc = -EEXIST;
        if (rc == 0 && conv_folder_is_of(folder, str_of(id)))
                rc = meta_set_names(fs, dir, id, item->project);
        if (rc == 0) {
                recent_note_name(s, project, folder);
                rc = fs->rename_new(fs, trash, item->name, conversations, folder); /* T1 */
        }
        if (rc == 0)
                rc = fs->fsync(fs, conversations);
        if (rc == 0)
                rc = fs->fsync(fs, trash);
        if (conversations >= 0)
                fs->close(fs, conversations);
        if (rc == -EEXIST || rc == -ENOTEMPTY)
                return error_set(err, STENO_ECONFLICT,
                    "conversation \"%.100s\" exists%s; remove it first, or choose another id", id,
                    as ? "" : " again");
        if (rc)
                return error_sys(err, rc, "restoring conversation \"%.100s\"", item->id);
        /* Again, because a process that read the first line before the rename found nothing. */
        recent_note_name(s, project, folder);
        snprintf(note, sizeof note, "%s.json", item->name);
        fs->unlink(fs, trash, note, 0);
        if (!as || strcmp(as, item->id) == 0)
                return 0;
        /* Under another id it is another conversation, which begins a seal of its own. */
        rc = log_removal(s, dir, item, err);
        int sys = rc ? 0 : fs_remove_tree(fs, dir, "seal");
        return sys && sys != -ENOENT ? error_sys(err, sys, "removing the seal of \"%.100s\"", id)
                                     : rc;
}

static int not_there(const struct trash_item *item, struct steno_error *err)
{
        return error_set(
            err, STENO_ENOTFOUND, "conversation \"%.100s\" is not in the trash", item->id);
}

int trash_put_back(
    struct files_store *s, const struct trash_item *item, const char *as, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        int trash = open_trash(s, false);
        int dir = trash < 0 ? trash : lock_item(fs, trash, item->name);
        int rc;
        if (dir == -ENOENT)
                rc = not_there(item, err);
        else if (dir < 0)
                rc = error_sys(err, dir, "opening the trash");
        else
                rc = move_back(s, trash, dir, item, as, err);
        quota_forget(s);
        if (dir >= 0)
                fs->close(fs, dir);
        if (trash >= 0)
                fs->close(fs, trash);
        return rc;
}

/* Another may be sweeping the same. */
static int remove_gone(const struct fs *fs, int trash, const char *name)
{
        int rc = fs_remove_tree(fs, trash, name);
        return rc == -ENOENT ? 0 : rc;
}

int trash_destroy(struct files_store *s, const struct trash_item *item, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char gone[96], note[96];
        struct stat st;
        int trash = open_trash(s, false);
        int dir = trash < 0 ? trash : lock_item(fs, trash, item->name);
        int logged = dir < 0 ? 0 : log_removal(s, dir, item, err);
        if (logged) {
                fs->close(fs, dir);
                fs->close(fs, trash);
                return logged;
        }
        snprintf(gone, sizeof gone, GONE "%s", item->name);
        snprintf(note, sizeof note, "%s.json", item->name);
        int rc = dir < 0 ? dir : fs->rename_new(fs, trash, item->name, trash, gone); /* T3 */
        if (rc == 0)
                rc = fs->fsync(fs, trash);
        if (rc == 0)
                rc = remove_gone(fs, trash, gone);
        if (rc == 0) {
                if (fs->fstat(fs, dir, &st) == 0)
                        files_conv_is_gone(s, &st);
                fs->unlink(fs, trash, note, 0); /* means nothing without its folder (T2) */
                rc = fs->fsync(fs, trash);
        }
        if (dir >= 0)
                fs->close(fs, dir);
        if (trash >= 0)
                fs->close(fs, trash);
        if (rc == -ENOENT)
                return not_there(item, err);
        return rc ? error_sys(err, rc, "removing conversation \"%.100s\" for good", item->id) : 0;
}

/* ---- leftovers ---- */

struct sweep {
        const struct env *env;
        int trash;
};

static int sweep_one(void *ctx, const char *name, unsigned char type)
{
        struct sweep *s = ctx;
        const struct fs *fs = s->env->fs;
        struct stat st;
        char other[128];
        size_t n = strlen(name);
        (void)type;
        if (strncmp(name, GONE, sizeof GONE - 1) == 0)
                return remove_gone(fs, s->trash, name);
        /* A note without a folder: the conversation was restored, or its removal never finished.
         * The note of a removal that is under way is younger than this. */
        if (n <= 5 || n >= sizeof other || strcmp(name + n - 5, ".json") != 0)
                return 0;
        snprintf(other, sizeof other, "%.*s", (int)n - 5, name);
        if (fs->stat(fs, s->trash, other, &st) != -ENOENT)
                return 0;
        if (fs->stat(fs, s->trash, name, &st) ||
            s->env->now(s->env) / 1000 - st.st_mtim.tv_sec < NOTE_AGE_S)
                return 0;
        fs->unlink(fs, s->trash, name, 0);
        return 0;
}

int trash_sweep(struct files_store *store, struct steno_error *err)
{
        const struct fs *fs = store->env->fs;
        struct sweep s = {.env = store->env, .trash = open_trash(store, false)};
        if (s.trash < 0)
                return s.trash == -ENOENT ? 0 : error_sys(err, s.trash, "opening the trash");
        int rc = fs->list(fs, s.trash, sweep_one, &s);
        fs->close(fs, s.trash);
        return rc ? error_sys(err, rc, "sweeping the trash") : 0;
}
