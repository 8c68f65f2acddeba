/* backup_store.c - see backup_store.h */
#include "store/files/backup_store_work.h"

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

#define SMALL_MAX (64 * MIB)
#define SEALS_MAX (1 * GIB)
#define FINDINGS_MAX 100 /* that a report names */

/* Files of the root that are part of a backup. The server's own token, indexes and figures are
 * not. */
static const char *const ROOT_FILES[] = {
    "store.json", "projects.json", "tokens.json", "accepted.jsonl"};

int backup_store_failed(struct backup_store_work *b, int sys, const char *what)
{
        return error_sys(b->err, sys, "backup: %s", what);
}

/* ---- what is damaged ---- */

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

void backup_store_finding(struct backup_store_work *b, const struct check_finding *f)
{
        if (b->asked->is_accepted && b->asked->is_accepted(b->asked->ctx, f))
                return;
        if (b->damaged++ < FINDINGS_MAX)
                put_finding(b, f);
}

static bool is_strange(struct backup_store_work *b, const char *path, bool folder)
{
        char what[BACKUP_WORDS];
        bool strange = backup_is_strange(b->fs, b->store->root, path, folder, what);
        if (strange)
                backup_store_finding(b, &(struct check_finding){.what = what});
        return strange;
}

/* ---- files that are replaced as a whole ---- */

int backup_store_small(struct backup_store_work *b, int from, int to, const char *name, size_t max)
{
        uint64_t copied;
        int sys = backup_small(b->fs, from, to, name, max, &copied);
        if (sys == 1)
                sys = b->fs->unlink(b->fs, to, name, 0);
        return sys && sys != -ENOENT ? backup_store_failed(b, sys, name) : 0;
}

/* ---- the folder ---- */

int backup_note_any(void *ctx, const char *name, unsigned char type)
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
