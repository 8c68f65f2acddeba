/*
 * backup_conversations.c - the conversations of a store on their way into its backup.
 *
 * They are copied one by one (backup.h). Projects are walked, then the trash, then projects again,
 * so that what is moved meanwhile is met at least once. What was met is kept in memory, so that a
 * conversation that did not change is looked at and nothing else; what was not met is not in the
 * store any more, and goes.
 */
#include "store/files/backup_store_work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/files/archive.h"
#include "store/files/backup_stamp.h"

#define TRIES 5 /* of a conversation that is purged meanwhile */
#define AGAIN 1

/* ---- what was met ---- */

#define PATH_SIZE (PLAIN_NAME_MAX + 40 + PLAIN_NAME_MAX + 2)

static int by_path(const void *a, const void *b)
{
        return strcmp(a, b);
}

static bool is_met(const struct backup_store_work *b, const char *above, const char *folder)
{
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s/%s", above, folder);
        return tfind(path, &b->met, by_path) != NULL;
}

static int note_met(struct backup_store_work *b, const char *above, const char *folder)
{
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s/%s", above, folder);
        char *kept = strdup(path);
        if (kept && tsearch(kept, &b->met, by_path))
                return 0;
        free(kept);
        return error_nomem(b->err);
}

/* ---- one conversation ---- */

/* Counts it where it need not be copied (K4). */
static bool is_unchanged(struct backup_store_work *b, const struct backup_shelf *at,
    const char *folder, const char *stamp)
{
        uint64_t records = 0;
        if (b->asked->verify)
                return false;
        int to = b->fs->open(b->fs, at->to, folder, O_RDONLY | O_DIRECTORY, 0);
        bool same = to >= 0 && backup_is_unchanged(b->fs, stamp, to, &records);
        if (to >= 0)
                b->fs->close(b->fs, to);
        b->records += same ? records : 0;
        return same;
}

/* The same of a folder of the store. */
static bool is_folder_unchanged(
    struct backup_store_work *b, const struct backup_shelf *at, const char *folder)
{
        char stamp[SHA256_HEX];
        if (at->from < 0 || b->asked->verify)
                return false;
        int from = b->fs->open(b->fs, at->from, folder, O_RDONLY | O_DIRECTORY, 0);
        bool same = from >= 0 && backup_stamp(b->fs, from, NULL, stamp) == 0 &&
                    is_unchanged(b, at, folder, stamp);
        if (from >= 0)
                b->fs->close(b->fs, from);
        return same;
}

static void note_damage(struct backup_store_work *b, struct files_conv *conv, bool trashed,
    const struct backup_result *r)
{
        for (const char *what = r->damaged; what && what < r->damaged + r->damaged_size;
             what += strlen(what) + 1) {
                char *sentence;
                struct check_finding f = {.project = files_conv_project(conv),
                    .conversation = files_conv_id(conv),
                    .trashed = trashed,
                    .seq = strtoull(what, &sentence, 10)};
                f.what = sentence + 1;
                backup_store_finding(b, &f);
        }
}

/* `laid`: another kind of store has laid it out, else NULL. AGAIN: it is not whole any more. */
static int copy_conv(struct backup_store_work *b, struct files_conv *conv,
    const struct backup_copy *laid, const struct backup_shelf *at, const char *folder)
{
        struct backup_result r = {0};
        const struct backup_source *from = b->asked->from;
        int to = fs_open_dir(b->fs, at->to, folder, true);
        if (to < 0)
                return backup_store_failed(b, to, folder);
        struct backup_request asked = {.fs = b->fs,
            .to = to,
            .mark = b->mark,
            .verify = b->asked->verify,
            .from = from,
            .laid = laid};
        int rc = backup_conv(conv, &asked, &r, b->err);
        if (rc == 0 && r.damaged && laid && from->has_lost(from->ctx))
                rc = AGAIN;
        if (rc == 0 && b->archive)
                rc = archive_out_move(b->archive, to, at->path, folder, b->err);
        b->fs->close(b->fs, to);
        if (rc == AGAIN) {
                free(r.damaged);
                return rc;
        }
        b->records += r.records;
        b->copied += r.copied;
        b->mended += r.mended;
        note_damage(b, conv, at->to == b->trash, &r);
        free(r.damaged);
        if (rc == STENO_ENOTFOUND) { /* removed meanwhile: it is in the trash, or gone */
                fs_remove_tree(b->fs, at->to, folder);
                return 0;
        }
        return rc ? error_prefix(b->err, rc, "%s/%s", files_conv_project(conv), files_conv_id(conv))
                  : note_met(b, at->path, folder);
}

static int tell(struct backup_store_work *b)
{
        if (b->asked->progress &&
            b->asked->progress(b->asked->progress_ctx, "backup", b->conversations + b->trashed, 0))
                return error_set(b->err, STENO_EINTERRUPTED, "stopped by the caller");
        return 0;
}

/* The folder of a project's conversations in the backup. */
static int open_project(struct backup_store_work *b, const char *project)
{
        int projects = fs_open_dir(b->fs, b->root, "projects", true);
        int dir = projects < 0 ? projects : fs_open_dir(b->fs, projects, project, true);
        int conversations = dir < 0 ? dir : fs_open_dir(b->fs, dir, "conversations", true);
        if (dir >= 0)
                b->fs->close(b->fs, dir);
        if (projects >= 0)
                b->fs->close(b->fs, projects);
        return conversations;
}

void backup_shelf_close(struct backup_store_work *b, struct backup_shelf *at)
{
        if (at->from >= 0)
                b->fs->close(b->fs, at->from);
        if (at->to >= 0)
                b->fs->close(b->fs, at->to);
        *at = (struct backup_shelf){.from = -1, .to = -1};
}

static int shelf_of(struct backup_store_work *b, const char *project)
{
        char path[sizeof b->shelf.path];
        snprintf(path, sizeof path, "projects/%s/conversations", project);
        if (strcmp(b->shelf.path, path) == 0)
                return 0;
        backup_shelf_close(b, &b->shelf);
        b->shelf.to = open_project(b, project);
        if (b->shelf.to < 0)
                return backup_store_failed(b, b->shelf.to, project);
        b->shelf.from = b->fs->open(b->fs, b->store->root, path, O_RDONLY | O_DIRECTORY, 0);
        memcpy(b->shelf.path, path, sizeof path);
        return 0;
}

static int take_conv(void *ctx, const char *project, const char *folder, bool link)
{
        struct backup_store_work *b = ctx;
        struct files_conv *conv;
        if (link)
                return 0;
        int rc = shelf_of(b, project);
        /* A second look in one backup is for what the first one missed. */
        if (rc || is_met(b, b->shelf.path, folder))
                return rc;
        if (is_folder_unchanged(b, &b->shelf, folder)) {
                rc = note_met(b, b->shelf.path, folder);
        } else {
                rc = files_conv_open_folder(b->store, project, folder, &conv, b->err);
                if (rc)
                        return rc == STENO_ENOTFOUND ? 0 : rc;
                rc = copy_conv(b, conv, NULL, &b->shelf, folder);
                files_conv_release(conv);
        }
        return rc ? rc : tell(b);
}

/* ---- one that another kind of store has ---- */

static int copy_laid(struct backup_store_work *b, const char *project, const char *id,
    const struct trash_item *trashed, const struct backup_shelf *at, const char *folder)
{
        const struct backup_source *from = b->asked->from;
        int rc = AGAIN;
        for (int i = 0; rc == AGAIN && i < TRIES; i++) {
                struct backup_copy laid;
                rc = from->open(from->ctx, str_of(project), str_of(id), trashed, &laid, b->err);
                if (rc)
                        return rc == STENO_ENOTFOUND ? 0 : rc;
                rc = copy_conv(b, (struct files_conv *)laid.conv, &laid, at, folder);
                from->close(from->ctx);
        }
        return rc == AGAIN ? error_set(b->err, STENO_ECONFLICT,
                                 "conversation \"%.100s\" is purged again and again; try later", id)
                           : rc;
}

static int take_laid(struct backup_store_work *b, const char *project, const char *id,
    const struct trash_item *trashed, const struct backup_shelf *at, const char *folder)
{
        char stamp[SHA256_HEX];
        const struct backup_source *from = b->asked->from;
        int rc = from->stamp(from->ctx, str_of(project), str_of(id), trashed, stamp, b->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        rc = is_unchanged(b, at, folder, stamp) ? note_met(b, at->path, folder)
                                                : copy_laid(b, project, id, trashed, at, folder);
        return rc ? rc : tell(b);
}

static int take_named(void *ctx, const char *project, const char *id)
{
        struct backup_store_work *b = ctx;
        char project_folder[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1];
        if (id_file_name(str_of(project), project_folder) || id_file_name(str_of(id), folder))
                return error_nomem(b->err);
        int rc = shelf_of(b, project_folder);
        return rc || is_met(b, b->shelf.path, folder)
                   ? rc
                   : take_laid(b, project, id, NULL, &b->shelf, folder);
}

/* Folders may have been moved since an earlier walk. */
int backup_store_projects(struct backup_store_work *b)
{
        const struct backup_source *from = b->asked->from;
        backup_shelf_close(b, &b->shelf);
        return from ? from->each(from->ctx, take_named, b, b->err)
                    : files_each_conv(b->store, take_conv, b, b->err);
}

/* ---- the trash ---- */

/* Its note; where the store has no file of it, one is made. */
static int put_note(
    struct backup_store_work *b, const struct backup_shelf *at, const struct trash_item *item)
{
        char note[TRASH_NAME + 8];
        struct buf text;
        snprintf(note, sizeof note, "%s.json", item->name);
        if (!b->asked->from)
                return at->from < 0 ? 0 : backup_store_small(b, at->from, at->to, note, META_MAX);
        buf_init(&text, META_MAX);
        trash_note_put(&text, item);
        int sys = text.failed ? -ENOMEM : fs_replace(b->fs, at->to, note, text.p, text.n);
        buf_release(&text);
        return sys ? backup_store_failed(b, sys, note) : 0;
}

static int take_trashed(
    struct backup_store_work *b, const struct backup_shelf *at, const struct trash_item *item)
{
        struct files_conv *conv;
        if (b->asked->from) {
                int rc = put_note(b, at, item);
                return rc ? rc : take_laid(b, item->project, item->id, item, at, item->name);
        }
        bool same = is_folder_unchanged(b, at, item->name);
        int rc = same ? 0
                      : files_conv_open_trashed(b->store, item->name, str_of(item->project),
                            str_of(item->id), &conv, b->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        b->trashed++;
        rc = put_note(b, at, item);
        if (rc == 0)
                rc = same ? note_met(b, at->path, item->name)
                          : copy_conv(b, conv, NULL, at, item->name);
        if (!same)
                files_conv_release(conv);
        return rc ? rc : tell(b);
}

int backup_store_trash(struct backup_store_work *b)
{
        struct trash_list list;
        struct backup_shelf at = {.path = "trash", .from = -1};
        const struct backup_source *from = b->asked->from;
        int rc = from ? from->trash(from->ctx, &list, b->err)
                      : trash_list_read(b->store, false, &list, b->err);
        if (rc)
                return rc;
        b->trash = fs_open_dir(b->fs, b->root, "trash", true);
        rc = b->trash < 0 ? backup_store_failed(b, b->trash, "trash") : 0;
        at.to = b->trash;
        if (rc == 0)
                at.from = b->fs->open(b->fs, b->store->root, "trash", O_RDONLY | O_DIRECTORY, 0);
        for (size_t i = 0; rc == 0 && i < list.count; i++)
                rc = take_trashed(b, &at, &list.items[i]);
        if (at.from >= 0)
                b->fs->close(b->fs, at.from);
        backend_trash_list_release(&list);
        return rc;
}

/* ---- what the store no longer has ---- */

struct sweep {
        struct backup_store_work *b;
        int dir;
        const char *path; /* of it */
        bool trash;
        uint64_t *count; /* of what stays */
};

static int sweep_conv(void *ctx, const char *name, unsigned char type)
{
        struct sweep *s = ctx;
        struct backup_store_work *b = s->b;
        struct stat st;
        char note[TRASH_NAME + 8];
        if (type == DT_UNKNOWN && b->fs->stat(b->fs, s->dir, name, &st) == 0 && S_ISDIR(st.st_mode))
                type = DT_DIR;
        if (type != DT_DIR)
                return 0;
        if (is_met(b, s->path, name)) {
                ++*s->count;
                return 0;
        }
        if (s->trash) {
                snprintf(note, sizeof note, "%.*s.json", TRASH_NAME - 1, name);
                b->fs->unlink(b->fs, s->dir, note, 0);
        }
        return fs_remove_tree(b->fs, s->dir, name);
}

static int sweep_project(void *ctx, const char *name, unsigned char type)
{
        struct sweep *s = ctx;
        struct backup_store_work *b = s->b;
        char path[PLAIN_NAME_MAX + 40];
        (void)type;
        int dir = open_project(b, name);
        snprintf(path, sizeof path, "projects/%s/conversations", name);
        struct sweep below = {.b = b, .dir = dir, .path = path, .count = s->count};
        int rc = dir < 0 ? dir : b->fs->list(b->fs, dir, sweep_conv, &below);
        if (dir >= 0)
                b->fs->close(b->fs, dir);
        return rc;
}

int backup_store_sweep(struct backup_store_work *b)
{
        uint64_t trashed = 0;
        struct sweep s = {.b = b, .count = &b->conversations};
        int projects = fs_open_dir(b->fs, b->root, "projects", true);
        b->conversations = 0;
        int sys = projects < 0 ? projects : b->fs->list(b->fs, projects, sweep_project, &s);
        if (projects >= 0)
                b->fs->close(b->fs, projects);
        struct sweep t = {
            .b = b, .dir = b->trash, .path = "trash", .trash = true, .count = &trashed};
        if (sys == 0)
                sys = b->fs->list(b->fs, b->trash, sweep_conv, &t);
        b->trashed = trashed;
        return sys ? backup_store_failed(b, sys, "removing what the store no longer has") : 0;
}
