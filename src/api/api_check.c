/*
 * api_check.c - verifying a store, conversation by conversation.
 */
#include "api/accepted.h"
#include "api/api_store.h"
#include "api/carry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/files_check.h"
#include "store/files/incoming.h"
#include "store/files/trash.h"

struct checking {
        struct steno_store *store;
        bool repair;
        bool accept;
        struct accepted accepted;
        const char *only_project; /* folder names; NULL: all */
        const char *only_folder;
        steno_finding_fn each;
        void *ctx;
        steno_progress progress;
        void *progress_ctx;
        uint64_t done;
        uint64_t total;
        int findings;
        bool projects;              /* has the folder of them, */
        bool trash;                 /* and that of the trash */
        struct files_conv *conv;    /* at work, */
        bool trashed;               /* and in the trash */
        struct steno_error refused; /* the first repair that the system did not let be done */
        struct steno_error *err;
};

static int stopped(struct checking *c)
{
        return error_set(c->err, STENO_EINTERRUPTED, "stopped by the caller");
}

/* What a repair returned: where nothing can be written the rest is checked all the same. */
static int wrote(struct checking *c, int rc, const char *what)
{
        if (!c->repair || (rc != STENO_EDENIED && rc != STENO_EFULL))
                return rc;
        if (!c->refused.code) {
                c->refused = *c->err;
                error_prefix(&c->refused, rc, "%s cannot be repaired", what);
        }
        return 0;
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
        if (text) {
                jsonw_field_cstr(w, key, text);
        }
}

/* Is it a loss that was accepted, or is now? */
static int accept(struct checking *c, const char *project, const char *conversation,
    const struct check_finding *f, bool *yes)
{
        struct accepted_loss loss = {project, conversation, f->seq, f->what};
        *yes = !f->repaired && !f->note && accepted_has(&c->accepted, &loss);
        if (*yes || f->repaired || f->note || !c->repair || c->trashed ||
            (!c->accept && !f->copied))
                return 0;
        *yes = true;
        return accepted_add(&c->accepted, c->store->env, &loss, c->err);
}

/* Hands out a finding; about the store, a project or a conversation. */
static int tell(struct checking *c, const char *project, const char *conversation,
    const struct check_finding *f)
{
        struct buf b;
        bool accepted;
        int rc = accept(c, project, conversation, f, &accepted);
        if (rc)
                return rc;
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        put_text(&w, "project", project);
        put_text(&w, "conversation", conversation);
        if (f->seq) {
                jsonw_field_u64(&w, "seq", f->seq);
        }
        put_text(&w, "what", f->what);
        jsonw_field_bool(&w, "repaired", f->repaired);
        if (accepted)
                jsonw_field_bool(&w, "accepted", true);
        if (f->repairable && !c->trashed && !accepted) {
                jsonw_field_bool(&w, "repairable", true);
        }
        if (c->trashed) {
                jsonw_field_bool(&w, "trash", true);
        }
        if (f->note) {
                jsonw_field_bool(&w, "note", true);
        }
        jsonw_object_end(&w);
        const char *json = buf_cstr(&b);
        rc = !json ? error_nomem(c->err) : c->each && c->each(c->ctx, json) ? stopped(c) : 0;
        buf_release(&b);
        c->findings += rc == 0 && !accepted && !f->note;
        return rc;
}

static int tell_of_conv(void *ctx, const struct check_finding *f)
{
        struct checking *c = ctx;
        return tell(c, files_conv_project(c->conv), files_conv_id(c->conv), f);
}

static bool is_wanted(const struct checking *c, const char *project, const char *folder)
{
        return (!c->only_project || strcmp(project, c->only_project) == 0) &&
               (!c->only_folder || (folder && strcmp(folder, c->only_folder) == 0));
}

static int count_one(void *ctx, const char *project, const char *folder, bool link)
{
        struct checking *c = ctx;
        (void)link;
        c->total += is_wanted(c, project, folder);
        return 0;
}

/* ---- originals ---- */

/* Of an output that an earlier version took out it kept the text, not how that was written. */
static int look_at_original(void *ctx, const struct files_record *r)
{
        struct checking *c = ctx;
        struct steno_conv conv = {.store = c->store, .files = c->conv};
        struct arena arena;
        struct about about;
        struct artifact_info info;
        bool rendering = false;
        arena_init(&arena);
        int rc = r->damaged ? STENO_ECORRUPT : about_read(r->rec.x, &arena, &about, NULL);
        if (rc == 0 && about.sha.n && about.ref.n && !about.out_count && !about.kind.n &&
            artifact_find(c->conv, about.ref, &info, NULL) == 0 && info.state == ARTIFACT_CLOSED) {
                struct carry_out out = {.conv = &conv, .m = r->rec.m, .about = &about};
                rc = carry_original(&out, NULL, NULL, &rendering, NULL);
        }
        arena_release(&arena);
        if (rc == STENO_ENOMEM)
                return error_nomem(c->err);
        if (rc || !rendering)
                return 0; /* what cannot be read was told of */
        return tell_of_conv(c, &(struct check_finding){.seq = r->rec.seq,
                                   .note = true,
                                   .what = "rendering only: the text of its output was kept, not "
                                           "how it was written"});
}

static int check_originals(struct checking *c)
{
        struct steno_error why = {0};
        int rc = files_read(c->conv, 0, look_at_original, c, &why);
        if (rc == STENO_ENOTFOUND || rc == STENO_ECORRUPT || rc == STENO_EIO)
                return 0; /* a log that cannot be read was told of */
        if (rc && why.code && c->err)
                *c->err = why;
        return rc;
}

static int check_one(void *ctx, const char *project, const char *folder, bool link)
{
        struct checking *c = ctx;
        (void)link; /* does not open, and says why */
        if (!is_wanted(c, project, folder))
                return 0;
        if (c->progress && c->progress(c->progress_ctx, "check", c->done, c->total))
                return stopped(c);
        struct steno_error why = {0};
        int rc = files_conv_open_folder(c->store->files, project, folder, &c->conv, &why);
        if (rc == 0) {
                rc = files_check_conv(c->conv, c->repair, tell_of_conv, c, c->err);
                rc = wrote(c, rc, files_conv_id(c->conv));
                if (rc == 0)
                        rc = check_originals(c);
                files_conv_release(c->conv);
        } else if (rc == STENO_ENOMEM) {
                error_nomem(c->err);
        } else if (rc != STENO_ENOTFOUND) {
                rc = tell(c, project, folder, &(struct check_finding){.what = why.msg});
        }
        c->done++;
        return rc == STENO_ENOTFOUND ? 0 : rc; /* removed meanwhile */
}

/* Looked at, never repaired: it may be restored, and then is. */
static int check_trashed(struct checking *c, const struct trash_item *item)
{
        if (c->progress && c->progress(c->progress_ctx, "check", c->done, c->total))
                return stopped(c);
        struct steno_error why = {0};
        int rc = files_conv_open_trashed(
            c->store->files, item->name, str_of(item->project), str_of(item->id), &c->conv, &why);
        if (rc == 0) {
                rc = files_check_conv(c->conv, false, tell_of_conv, c, c->err);
                files_conv_release(c->conv);
        } else if (rc == STENO_ENOMEM) {
                error_nomem(c->err);
        } else if (rc != STENO_ENOTFOUND) {
                rc = tell(c, item->project, item->id, &(struct check_finding){.what = why.msg});
        }
        c->done++;
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

/* With everything else, or with the rest of its project. */
static int check_trash(struct checking *c, struct str project, const struct trash_list *list)
{
        int rc = 0;
        c->trashed = true;
        for (size_t i = 0; rc == 0 && i < list->count; i++)
                if (!c->only_project || str_is(project, list->items[i].project))
                        rc = check_trashed(c, &list->items[i]);
        c->trashed = false;
        return rc;
}

static int check_project(void *ctx, const char *project, const struct stat *st, int sys)
{
        struct checking *c = ctx;
        struct steno_error why = {0};
        (void)st;
        if (!sys || !is_wanted(c, project, NULL))
                return 0;
        if (sys == -ELOOP)
                error_set(
                    &why, STENO_EDENIED, "the project is a symbolic link, which is not followed");
        else
                error_sys(&why, sys, "opening the project");
        return tell(c, project, NULL, &(struct check_finding){.what = why.msg});
}

/* What a repair can mend wherever it may write; `rc` is what it returned. */
static int tell_of_store(struct checking *c, int rc, const char *name, const char *what)
{
        bool repaired = c->repair && rc == 0;
        rc = wrote(c, rc, name);
        return rc ? rc
                  : tell(c, NULL, NULL,
                        &(struct check_finding){
                            .what = what, .repaired = repaired, .repairable = !repaired});
}

/* Is the folder there, or nothing yet? */
static int check_place(struct checking *c, const char *name, bool *usable)
{
        char what[100];
        enum files_place place = files_look_at_place(c->store->files, name);
        int rc = 0;
        *usable = place == FILES_PLACE_OK;
        if (place == FILES_PLACE_LINK) {
                snprintf(what, sizeof what, "%s is a symbolic link, which is not followed", name);
                return tell(c, NULL, NULL, &(struct check_finding){.what = what});
        }
        if (*usable)
                return 0;
        if (c->repair)
                rc = files_free_place(c->store->files, name, c->err);
        *usable = c->repair && rc == 0;
        snprintf(what, sizeof what, "%s is not a folder", name);
        return tell_of_store(c, rc, name, what);
}

static int check_places(struct checking *c)
{
        bool quarantine;
        int rc = check_place(c, "quarantine", &quarantine);
        /* There is nowhere to put anything: what is looked at stays as it is. */
        c->repair = c->repair && quarantine;
        if (rc == 0)
                rc = check_place(c, "projects", &c->projects);
        return rc ? rc : check_place(c, "trash", &c->trash);
}

static int check_settings(struct checking *c)
{
        struct steno_store *s = c->store;
        if (!s->settings_problem[0])
                return 0;
        int rc = 0;
        if (c->repair)
                rc = files_renew_settings(s->files, s->settings_problem, c->err);
        bool repaired = c->repair && rc == 0;
        rc = tell_of_store(c, rc, "store.json", s->settings_problem);
        if (rc == 0 && repaired)
                s->settings_problem[0] = '\0';
        return rc;
}

/* The index is made anew from nothing and compared. */
static int check_index(struct checking *c)
{
        struct index *index = NULL;
        struct index_difference differ = {0};
        char what[300];
        int rc = api_store_index(c->store, &index, c->err);
        if (rc == 0)
                rc = index_compare(index, &differ, c->err);
        if (rc == STENO_ECORRUPT && index) {
                rc = c->repair ? index_rebuild(index, c->err) : 0;
                return tell_of_store(c, rc, "index.db",
                    "index.db cannot be read; it is derived, and can be made anew");
        }
        /* What changed meanwhile is not there any more when it is looked at again. */
        if (rc == 0 && differ.count && (rc = api_store_index(c->store, &index, c->err)) == 0)
                rc = index_compare(index, &differ, c->err);
        if (rc || differ.count == 0)
                return rc;
        if (c->repair)
                rc = index_rebuild(index, c->err);
        snprintf(what, sizeof what,
            "index.db says something else than the folders of %llu conversation%s (%s); it is "
            "derived, and can be made anew",
            (unsigned long long)differ.count, differ.count == 1 ? "" : "s", differ.first);
        return tell_of_store(c, rc, "index.db", what);
}

/* Folders of imports and forks whose process died. */
static int check_incoming(struct checking *c)
{
        uint64_t count = 0;
        int rc = incoming_sweep(c->store->files, c->repair, &count, c->err);
        return rc == 0 && count == 0
                   ? 0
                   : tell_of_store(c, rc, INCOMING_PREFIX,
                         "an import or fork that was cut off left a folder behind");
}

static int check_all(struct checking *c, struct str project)
{
        struct files_store *files = c->store->files;
        struct trash_list list = {0};
        int rc = check_places(c);
        if (rc == 0)
                rc = check_settings(c);
        if (rc == 0 && !c->only_project)
                rc = check_incoming(c);
        if (rc == 0 && !c->only_folder && c->trash)
                rc = trash_list_read(files, false, &list, c->err);
        c->total = list.count;
        if (rc == 0 && c->progress && c->projects)
                rc = files_each_conv(files, count_one, c, c->err);
        if (rc == 0 && c->projects)
                rc = files_each_project(files, check_project, c, c->err);
        if (rc == 0 && c->projects)
                rc = files_each_conv(files, check_one, c, c->err);
        if (rc == 0)
                rc = check_trash(c, project, &list);
        if (rc == 0 && !c->only_project && c->projects)
                rc = check_index(c);
        if (rc == 0 && c->progress && c->progress(c->progress_ctx, "check", c->done, c->total))
                rc = stopped(c);
        trash_list_release(&list);
        return rc;
}

int steno_check(struct steno_store *store, const struct steno_check_options *opt,
    steno_finding_fn each, void *ctx, struct steno_error *err)
{
        const char *project = OPTION(opt, struct steno_check_options, project, NULL);
        const char *id = OPTION(opt, struct steno_check_options, id, NULL);
        char project_folder[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1];
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        struct str p = {0};
        struct steno_error none = {0};
        struct checking c = {.store = store,
            .repair = OPTION(opt, struct steno_check_options, repair, false),
            .accept = OPTION(opt, struct steno_check_options, accept, false),
            .each = each,
            .ctx = ctx,
            .progress = OPTION(opt, struct steno_check_options, progress, NULL),
            .progress_ctx = OPTION(opt, struct steno_check_options, progress_ctx, NULL),
            .err = err ? err : &none};
        if (project || id) {
                rc = api_store_project(project, &p, err);
                if (rc)
                        return rc;
                if (id_file_name(p, project_folder))
                        return error_nomem(err);
                c.only_project = project_folder;
        }
        if (id) {
                struct files_conv *conv;
                rc = files_conv_open(store->files, p, str_of(id), &conv, err);
                if (rc)
                        return rc;
                snprintf(folder, sizeof folder, "%s", files_conv_folder(conv));
                files_conv_release(conv);
                c.only_folder = folder;
        }
        if (c.accept && !c.repair)
                return error_set(err, STENO_EINVAL, "only a check that repairs can accept losses");
        rc = accepted_read(&c.accepted, store->env->fs, files_root(store->files), c.err);
        if (rc == 0)
                rc = check_all(&c, p);
        if (rc == 0)
                rc = wrote(&c,
                    accepted_write(&c.accepted, store->env->fs, files_root(store->files), c.err),
                    ACCEPTED_NAME);
        accepted_release(&c.accepted);
        if (rc == 0 && c.refused.code) {
                *c.err = c.refused;
                rc = c.refused.code;
        }
        return rc ? rc : c.findings;
}
