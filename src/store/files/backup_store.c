/*
 * backup_store.c - a consistent copy of a store that is being written, and a store from a copy.
 *
 * A backup is a folder in the format of a store, with a file backup.json that says so, and
 * complete.json, which is written last and taken away first: without it the folder is in the middle
 * of something. Conversations are copied one by one (backup.h). Projects are walked, then the
 * trash, then projects again, so that what is moved meanwhile is met at least once. What was met is
 * kept in memory, so that a conversation that did not change is looked at and nothing else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/archive.h"
#include "store/files/backup.h"
#include "store/files/backup_stamp.h"
#include "store/files/files_backend.h"

#define BACKUP_KIND_FILE "backup.json"
#define BACKUP_COMPLETE_FILE "complete.json"
#define SMALL_MAX (64 * MIB)
#define SEALS_MAX (1 * GIB)
#define DEPTH_MAX 16
#define FINDINGS_MAX 100 /* that a report names */
#define TRIES 5          /* of a conversation that is purged meanwhile */
#define AGAIN 1

/* Files of the root that are part of a backup. The server's own token, indexes and figures are
 * not. */
static const char *const ROOT_FILES[] = {
    "store.json", "projects.json", "tokens.json", "accepted.jsonl"};

/* Where conversations lie, in the store and in the backup; -1 where that cannot be opened. */
struct backup_shelf {
        char path[PLAIN_NAME_MAX + 40]; /* in the backup */
        int from;
        int to;
};

struct backup_store_work {
        struct files_store *store;
        const struct fs *fs;
        int root; /* of the backup */
        int trash;
        struct backup_shelf shelf; /* of the project at work */
        void *met;                 /* tree of the paths that are in this backup */
        char mark[BACKUP_MARK];
        uint64_t conversations;
        uint64_t trashed;
        uint64_t records;
        uint64_t copied;
        uint64_t mended;
        uint64_t damaged;
        struct buf findings;         /* about the first of these, as members of an array */
        struct archive_out *archive; /* NULL: the folder is the backup */
        const struct backend_backup *asked;
        struct steno_error *err;
};

static int backup_store_failed(struct backup_store_work *b, int sys, const char *what)
{
        return error_sys(b->err, sys, "backup: %s", what);
}

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

static void put_finding(struct backup_store_work *b, const struct check_finding *f)
{
        struct jsonw w = jsonw_to(&b->findings);
        if (b->findings.n)
                buf_putc(&b->findings, ',');
        jsonw_object(&w);
        if (f->project) {
                jsonw_field_cstr(&w, "project", f->project);
                jsonw_field_cstr(&w, "conversation", f->conversation);
        }
        if (f->seq)
                jsonw_field_u64(&w, "seq", f->seq);
        jsonw_field_cstr(&w, "what", f->what);
        if (f->trashed)
                jsonw_field_bool(&w, "trash", true);
        jsonw_object_end(&w);
}

static void backup_store_finding(struct backup_store_work *b, const struct check_finding *f)
{
        if (b->asked->is_accepted && b->asked->is_accepted(b->asked->ctx, f))
                return;
        if (b->damaged++ < FINDINGS_MAX)
                put_finding(b, f);
}

/* Notes what is neither a file nor a folder where one should be. It stops nobody. */
static bool is_strange(struct backup_store_work *b, const char *path, bool folder)
{
        struct stat st;
        char what[100];
        if (b->fs->stat(b->fs, b->store->root, path, &st) ||
            (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
                return false;
        if (S_ISLNK(st.st_mode))
                snprintf(what, sizeof what, "%s is a symbolic link, which is not followed", path);
        else
                snprintf(what, sizeof what, "%s is not a %s", path, folder ? "folder" : "file");
        backup_store_finding(b, &(struct check_finding){.what = what});
        return true;
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

static void backup_shelf_close(struct backup_store_work *b, struct backup_shelf *at)
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
static int backup_store_projects(struct backup_store_work *b)
{
        const struct backup_source *from = b->asked->from;
        backup_shelf_close(b, &b->shelf);
        return from ? from->each(from->ctx, take_named, b, b->err)
                    : files_each_conv(b->store, take_conv, b, b->err);
}

/* ---- files that are replaced as a whole ---- */

/* Copies one where the backup has other bytes; one that is gone goes there too. */
static int backup_store_small(
    struct backup_store_work *b, int from, int to, const char *name, size_t max)
{
        char *text = NULL, *there = NULL;
        size_t n = 0, there_n = 0;
        int sys = fs_slurp(b->fs, from, name, max, &text, &n);
        bool same = sys == 0 && fs_slurp(b->fs, to, name, max, &there, &there_n) == 0 &&
                    n == there_n && memcmp(text, there, n) == 0;
        if (sys == 0 && !same)
                sys = fs_replace(b->fs, to, name, text, n);
        else if (sys == -ENOENT)
                sys = b->fs->unlink(b->fs, to, name, 0);
        free(text);
        free(there);
        return sys && sys != -ENOENT ? backup_store_failed(b, sys, name) : 0;
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

static int backup_store_trash(struct backup_store_work *b)
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

static int backup_store_sweep(struct backup_store_work *b)
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

/* ---- the folder ---- */

static int backup_note_any(void *ctx, const char *name, unsigned char type)
{
        (void)name, (void)type;
        *(bool *)ctx = true;
        return 0;
}

/* Opens or makes the folder. What is in it must be a backup. */
static int open_target(struct backup_store_work *b, const char *path)
{
        struct stat st;
        bool any = false;
        static const char KIND[] = "{\"steno\":\"backup\",\"version\":1}\n";
        b->root = b->fs->open_root(b->fs, path, true);
        if (b->root < 0)
                return error_sys(b->err, b->root, "opening %.150s", path);
        int sys = b->fs->stat(b->fs, b->root, BACKUP_KIND_FILE, &st);
        if (sys == -ENOENT) {
                sys = b->fs->list(b->fs, b->root, backup_note_any, &any);
                if (sys == 0 && any)
                        return error_set(b->err, STENO_ECONFLICT,
                            "%.150s is not empty, and no backup of Steno", path);
                if (sys == 0)
                        sys = fs_replace(b->fs, b->root, BACKUP_KIND_FILE, KIND, sizeof KIND - 1);
        }
        if (sys == 0)
                sys = b->fs->unlink(b->fs, b->root, BACKUP_COMPLETE_FILE, 0);
        if (sys == 0 || sys == -ENOENT)
                sys = b->fs->fsync(b->fs, b->root);
        return sys ? backup_store_failed(b, sys, path) : 0;
}

static int copy_root_files(struct backup_store_work *b)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < sizeof ROOT_FILES / sizeof *ROOT_FILES; i++)
                if (!is_strange(b, ROOT_FILES[i], false))
                        rc = backup_store_small(
                            b, b->store->root, b->root, ROOT_FILES[i], SMALL_MAX);
        return rc;
}

/* The log of seals goes first: what it says of a conversation must be there when that is copied.
 * Its checkpoints go before its lines, which only grow. */
static int copy_seals(struct backup_store_work *b)
{
        static const char *const FILES[] = {
            "seal/checkpoints", "seal/log.jsonl", "seal/names.jsonl"};
        if (is_strange(b, "seal", true))
                return 0;
        int from = fs_open_dir(b->fs, b->store->root, "seal", false);
        if (from == -ENOENT)
                return 0;
        int to = from < 0 ? from : fs_open_dir(b->fs, b->root, "seal", true);
        int rc = to < 0 ? backup_store_failed(b, to, "seal") : 0;
        for (size_t i = 0; rc == 0 && i < sizeof FILES / sizeof *FILES; i++)
                if (!is_strange(b, FILES[i], false))
                        rc = backup_store_small(b, from, to, FILES[i] + sizeof "seal", SEALS_MAX);
        if (from >= 0)
                b->fs->close(b->fs, from);
        if (to >= 0)
                b->fs->close(b->fs, to);
        return rc;
}

static void put_report(const struct backup_store_work *b, struct buf *out)
{
        char at[TIME_TEXT];
        struct jsonw w = jsonw_to(out);
        time_format(b->store->env->now(b->store->env), at);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "at", at);
        jsonw_field_u64(&w, "conversations", b->conversations);
        jsonw_field_u64(&w, "trashed", b->trashed);
        jsonw_field_u64(&w, "records", b->records);
        jsonw_field_u64(&w, "copied", b->copied);
        if (b->asked->verify)
                jsonw_field_u64(&w, "mended", b->mended);
        jsonw_field_u64(&w, "damaged", b->damaged);
        if (b->damaged) {
                jsonw_key(&w, "findings");
                buf_putc(out, '[');
                buf_put_str(out, buf_str(&b->findings));
                buf_putc(out, ']');
        }
        jsonw_object_end(&w);
}

/* What a look into an earlier backup has left there is about that one. */
static void drop_derived(struct backup_store_work *b)
{
        static const char *const NAMES[] = {
            "index.db", "index.db-wal", "index.db-shm", "recent", "recent.old", "figures.json"};
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                b->fs->unlink(b->fs, b->root, NAMES[i], 0);
}

static int complete(struct backup_store_work *b, char **report)
{
        struct buf out;
        drop_derived(b);
        buf_init(&out, 0);
        put_report(b, &out);
        int rc = buf_check(b->findings.failed ? &b->findings : &out, b->err);
        int sys =
            rc || b->archive ? 0 : fs_replace(b->fs, b->root, BACKUP_COMPLETE_FILE, out.p, out.n);
        if (rc == 0 && b->archive)
                rc = archive_out_end(b->archive, b->root, buf_str(&out), b->err);
        if (sys)
                rc = backup_store_failed(b, sys, BACKUP_COMPLETE_FILE);
        if (rc == 0 && report) {
                *report = buf_take(&out, NULL);
                rc = *report ? 0 : error_nomem(b->err);
        }
        buf_release(&out);
        return rc;
}

static int back_up(struct backup_store_work *b, const char *path, char **report)
{
        id_make(b->store->env, "", b->mark);
        buf_init(&b->findings, 0);
        int rc = open_target(b, path);
        if (rc == 0 && b->archive)
                rc = archive_out_begin(b->archive, b->root, BACKUP_KIND_FILE, b->err);
        if (rc == 0)
                rc = copy_root_files(b);
        if (rc == 0)
                rc = copy_seals(b);
        if (rc == 0)
                rc = backup_store_projects(b);
        if (rc == 0)
                rc = backup_store_trash(b);
        if (rc == 0)
                rc = backup_store_projects(b);
        if (rc == 0)
                rc = backup_store_sweep(b);
        int sys = rc ? 0 : disk_backup(b->store, b->root, &b->copied);
        if (sys)
                rc = backup_store_failed(b, sys, "disks");
        if (rc == 0)
                rc = complete(b, report);
        backup_shelf_close(b, &b->shelf);
        tdestroy(b->met, free);
        buf_release(&b->findings);
        if (b->trash >= 0)
                b->fs->close(b->fs, b->trash);
        if (b->root >= 0)
                b->fs->close(b->fs, b->root);
        return rc;
}

int backup_store(struct files_store *store, const char *path, const struct backend_backup *asked,
    char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        struct backup_store_work b = {.store = store,
            .fs = store->env->fs,
            .root = -1,
            .trash = -1,
            .shelf = {.from = -1, .to = -1},
            .asked = asked,
            .err = err ? err : &why};
        return back_up(&b, path, report);
}

int backup_store_stream(struct files_store *store, const char *scratch, steno_sink sink, void *ctx,
    const struct backend_backup *asked, char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        struct archive_out archive;
        struct backup_store_work b = {.store = store,
            .fs = store->env->fs,
            .root = -1,
            .trash = -1,
            .shelf = {.from = -1, .to = -1},
            .archive = &archive,
            .asked = asked,
            .err = err ? err : &why};
        int rc = archive_out_open(&archive, b.fs, sink, ctx, b.err);
        if (rc)
                return rc;
        rc = back_up(&b, scratch, report);
        archive_out_release(&archive);
        return rc;
}

/* ---- and back ---- */

struct restoring {
        const struct fs *fs;
        int from;
        int to;
        int depth;
        uint64_t files;
        uint64_t bytes;
};

/* Neither the backup's own notes, nor what a look into it has left there. */
static bool is_wanted(const char *name, int depth)
{
        if (depth > 0)
                return name[0] != '.' && strncmp(name, "ids.idx", 7) != 0;
        return archive_is_top(name);
}

static int restore_entry(void *ctx, const char *name, unsigned char type)
{
        struct restoring *r = ctx;
        struct stat st;
        (void)type;
        int rc = r->fs->stat(r->fs, r->from, name, &st);
        if (rc || !is_wanted(name, r->depth))
                return rc;
        if (S_ISREG(st.st_mode)) {
                int fd = r->fs->open(r->fs, r->from, name, O_RDONLY, 0);
                rc = fd < 0 ? fd : fs_copy_new(r->fs, fd, (uint64_t)st.st_size, r->to, name);
                if (fd >= 0)
                        r->fs->close(r->fs, fd);
                r->files++;
                r->bytes += (uint64_t)st.st_size;
                return rc;
        }
        if (!S_ISDIR(st.st_mode) || r->depth >= DEPTH_MAX)
                return 0; /* no backup has such things */
        struct restoring below = {.fs = r->fs, .depth = r->depth + 1};
        below.from = r->fs->open(r->fs, r->from, name, O_RDONLY | O_DIRECTORY, 0);
        below.to = below.from < 0 ? below.from : fs_open_dir(r->fs, r->to, name, true);
        rc = below.to < 0 ? below.to : r->fs->list(r->fs, below.from, restore_entry, &below);
        if (rc == 0)
                rc = r->fs->fsync(r->fs, below.to);
        if (below.to >= 0)
                r->fs->close(r->fs, below.to);
        if (below.from >= 0)
                r->fs->close(r->fs, below.from);
        r->files += below.files;
        r->bytes += below.bytes;
        return rc;
}

static int remove_entry(void *ctx, const char *name, unsigned char type)
{
        struct restoring *r = ctx;
        struct stat st;
        (void)type;
        if (r->fs->stat(r->fs, r->to, name, &st))
                return 0;
        return S_ISDIR(st.st_mode) ? fs_remove_tree(r->fs, r->to, name)
                                   : r->fs->unlink(r->fs, r->to, name, 0);
}

static int restore(struct restoring *r, const char *path, const char *to, struct steno_error *err)
{
        struct stat st;
        bool any = false;
        if (r->from < 0)
                return error_sys(err, r->from, "opening %.150s", path);
        if (r->fs->stat(r->fs, r->from, BACKUP_KIND_FILE, &st))
                return error_set(err, STENO_EPROTO, "%.150s is not a backup of Steno", path);
        if (r->fs->stat(r->fs, r->from, BACKUP_COMPLETE_FILE, &st))
                return error_set(err, STENO_ECORRUPT,
                    "%.120s is not complete: its last backup was cut off; make it again", path);
        if (r->to < 0)
                return error_sys(err, r->to, "opening %.150s", to);
        int sys = r->fs->list(r->fs, r->to, backup_note_any, &any);
        if (sys == 0 && any)
                return error_set(
                    err, STENO_ECONFLICT, "%.150s is not empty; restore into a new folder", to);
        if (sys == 0)
                sys = r->fs->list(r->fs, r->from, restore_entry, r);
        if (sys == 0)
                sys = r->fs->fsync(r->fs, r->to);
        if (sys) {
                r->fs->list(r->fs, r->to, remove_entry, r);
                return error_sys(err, sys, "restoring %.150s", path);
        }
        return 0;
}

static int report_restore(uint64_t files, uint64_t bytes, char **report, struct steno_error *err)
{
        struct buf b;
        if (!report)
                return 0;
        buf_init(&b, 0);
        buf_printf(&b, "{\"files\":%llu,\"bytes\":%llu}", (unsigned long long)files,
            (unsigned long long)bytes);
        *report = buf_take(&b, NULL);
        buf_release(&b);
        return *report ? 0 : error_nomem(err);
}

int backup_restore_stream(
    steno_source source, void *ctx, const char *to, char **report, struct steno_error *err)
{
        bool any = false;
        const struct fs *fs = env_real()->fs;
        uint64_t files = 0, bytes = 0;
        struct restoring r = {.fs = fs, .from = -1, .to = fs->open_root(fs, to, true)};
        int sys = r.to < 0 ? r.to : fs->list(fs, r.to, backup_note_any, &any);
        int rc = sys ? error_sys(err, sys, "opening %.150s", to) : 0;
        if (any)
                rc = error_set(
                    err, STENO_ECONFLICT, "%.150s is not empty; restore into a new folder", to);
        if (rc == 0) {
                rc = archive_in(fs, r.to, source, ctx, &files, &bytes, err);
                if (rc)
                        fs->list(fs, r.to, remove_entry, &r);
        }
        if (r.to >= 0)
                fs->close(fs, r.to);
        return rc ? rc : report_restore(files, bytes, report, err);
}

int backup_restore(const char *path, const char *to, char **report, struct steno_error *err)
{
        const struct fs *fs = env_real()->fs;
        struct restoring r = {.fs = fs, .from = fs->open_root(fs, path, false), .to = -1};
        if (r.from >= 0)
                r.to = fs->open_root(fs, to, true);
        int rc = restore(&r, path, to, err);
        if (rc == 0)
                rc = report_restore(r.files, r.bytes, report, err);
        if (r.to >= 0)
                fs->close(fs, r.to);
        if (r.from >= 0)
                fs->close(fs, r.from);
        return rc;
}
