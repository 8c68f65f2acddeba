/*
 * files_check_store.c - verifying an embedded store: its places, its settings, every conversation,
 * the trash and the index.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/conv.h"
#include "store/files/files_backend.h"
#include "store/files/incoming.h"
#include "store/index/index.h"
#include "store/set_aside.h"

struct checking {
        struct files_store *store;
        struct backend_check *asked;
        const char *only_project; /* folder names; NULL: all */
        const char *only_folder;
        uint64_t done;
        uint64_t total;
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
        if (!c->asked->repair || (rc != STENO_EDENIED && rc != STENO_EFULL))
                return rc;
        if (!c->refused.code) {
                c->refused = *c->err;
                error_prefix(&c->refused, rc, "%s cannot be repaired", what);
        }
        return 0;
}

/* Hands out a finding; about the store, a project or a conversation. */
static int tell(struct checking *c, const char *project, const char *conversation,
    const struct check_finding *f)
{
        struct check_finding named = *f;
        named.project = project;
        named.conversation = conversation;
        named.trashed = c->trashed;
        return c->asked->each(c->asked->ctx, &named);
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

static bool is_stopped(struct checking *c)
{
        return c->asked->progress &&
               c->asked->progress(c->asked->progress_ctx, "check", c->done, c->total);
}

static int check_one(void *ctx, const char *project, const char *folder, bool link)
{
        struct checking *c = ctx;
        (void)link; /* does not open, and says why */
        if (!is_wanted(c, project, folder))
                return 0;
        if (is_stopped(c))
                return stopped(c);
        struct steno_error why = {0};
        int rc = files_conv_open_folder(c->store, project, folder, &c->conv, &why);
        if (rc == 0) {
                rc = files_check_conv(c->conv, c->asked->repair, tell_of_conv, c, c->err);
                rc = wrote(c, rc, files_conv_id(c->conv));
                if (rc == 0 && c->asked->checked)
                        rc = c->asked->checked(c->asked->ctx, &c->conv->base);
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
        if (is_stopped(c))
                return stopped(c);
        struct steno_error why = {0};
        int rc = files_conv_open_trashed(
            c->store, item->name, str_of(item->project), str_of(item->id), &c->conv, &why);
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
        if (c->only_project && strcmp(project, c->only_project) != 0)
                return 0;
        if (!sys)
                return files_each_in(c->store, project, check_one, c, c->err);
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
        bool repaired = c->asked->repair && rc == 0;
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
        enum files_place place = files_look_at_place(c->store, name);
        int rc = 0;
        *usable = place == FILES_PLACE_OK;
        if (place == FILES_PLACE_LINK) {
                snprintf(what, sizeof what, "%s is a symbolic link, which is not followed", name);
                return tell(c, NULL, NULL, &(struct check_finding){.what = what});
        }
        if (*usable)
                return 0;
        if (c->asked->repair)
                rc = files_free_place(c->store, name, c->err);
        *usable = c->asked->repair && rc == 0;
        snprintf(what, sizeof what, "%s is not a folder", name);
        return tell_of_store(c, rc, name, what);
}

static int check_places(struct checking *c)
{
        bool quarantine;
        int rc = check_place(c, "quarantine", &quarantine);
        /* There is nowhere to put anything: what is looked at stays as it is. */
        c->asked->repair = c->asked->repair && quarantine;
        if (rc == 0)
                rc = check_place(c, "projects", &c->projects);
        return rc ? rc : check_place(c, "trash", &c->trash);
}

static int check_root_file(struct checking *c, const char *name)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        char what[100];
        int rc = 0;
        if (fs->stat(fs, c->store->root, name, &st) || S_ISREG(st.st_mode))
                return 0;
        if (S_ISLNK(st.st_mode)) {
                snprintf(what, sizeof what, "%s is a symbolic link, which is not followed", name);
                return tell(c, NULL, NULL, &(struct check_finding){.what = what});
        }
        if (c->asked->repair)
                rc = quarantine_file(c->store, name, "not a file", c->err);
        snprintf(what, sizeof what, "%s is not a file", name);
        return tell_of_store(c, rc, name, what);
}

/* Files and folders beside those of conversations: what they say is for their readers, but they
 * must be files and folders. */
static int check_root(struct checking *c)
{
        static const char *const FILES[] = {"projects.json", "tokens.json", "accepted.jsonl",
            "seal/checkpoints", "seal/log.jsonl", "seal/names.jsonl"};
        bool seal, search;
        int rc = check_place(c, "seal", &seal);
        if (rc == 0)
                rc = check_place(c, "search", &search);
        for (size_t i = 0; rc == 0 && i < sizeof FILES / sizeof *FILES; i++)
                if (seal || strncmp(FILES[i], "seal/", 5) != 0)
                        rc = check_root_file(c, FILES[i]);
        return rc;
}

static int check_settings(struct checking *c)
{
        char *problem = c->asked->settings_problem;
        if (!problem[0])
                return 0;
        int rc = 0;
        if (c->asked->repair)
                rc = files_renew_settings(c->store, problem, c->err);
        bool repaired = c->asked->repair && rc == 0;
        rc = tell_of_store(c, rc, "store.json", problem);
        if (rc == 0 && repaired)
                problem[0] = '\0';
        return rc;
}

/* The index is made anew from nothing and compared. */
static int check_index(struct checking *c)
{
        struct backend_caught_up up;
        struct index_difference differ = {0};
        char what[300];
        int rc = files_catch_up(c->store, false, NULL, NULL, &up, c->err);
        if (rc == 0)
                rc = index_compare(c->store->index, &differ, c->err);
        if (rc == STENO_ECORRUPT && c->store->index) {
                rc = c->asked->repair ? index_rebuild(c->store->index, c->err) : 0;
                return tell_of_store(c, rc, "index.db",
                    "index.db cannot be read; it is derived, and can be rebuilt");
        }
        /* What changed meanwhile is not there any more when it is looked at again. */
        if (rc == 0 && differ.count &&
            (rc = files_catch_up(c->store, false, NULL, NULL, &up, c->err)) == 0)
                rc = index_compare(c->store->index, &differ, c->err);
        if (rc || differ.count == 0)
                return rc;
        if (c->asked->repair)
                rc = index_rebuild(c->store->index, c->err);
        snprintf(what, sizeof what,
            "index.db differs from the folders of %llu conversation%s (%s); it is derived, and can "
            "be rebuilt",
            (unsigned long long)differ.count, differ.count == 1 ? "" : "s", differ.first);
        return tell_of_store(c, rc, "index.db", what);
}

/* Folders of imports and forks whose process died. */
static int check_incoming(struct checking *c)
{
        uint64_t count = 0;
        int rc = incoming_sweep(c->store, c->asked->repair, &count, c->err);
        return rc == 0 && count == 0
                   ? 0
                   : tell_of_store(c, rc, INCOMING_PREFIX,
                         "an import or fork that was cut off left a folder behind");
}

static int tell_of_kept(void *ctx, const char *what)
{
        return tell(ctx, NULL, NULL, &(struct check_finding){.what = what, .note = true});
}

static int check_all(struct checking *c, struct str project)
{
        struct files_store *files = c->store;
        struct trash_list list = {0};
        int rc = check_places(c);
        if (rc == 0)
                rc = check_settings(c);
        if (rc == 0 && !c->only_project)
                rc = check_root(c);
        if (rc == 0 && !c->only_project)
                rc = check_incoming(c);
        if (rc == 0 && !c->only_project)
                rc = set_aside_each(files->env->fs, files->root, tell_of_kept, c);
        if (rc == 0 && !c->only_folder && c->trash)
                rc = trash_list_read(files, false, &list, c->err);
        c->total = list.count;
        if (rc == 0 && c->asked->progress && c->projects)
                files_each_conv(files, count_one, c, NULL); /* what cannot be read is told below */
        if (rc == 0 && c->projects)
                rc = files_each_project(files, check_project, c, c->err);
        if (rc == 0)
                rc = check_trash(c, project, &list);
        if (rc == 0 && !c->only_project && c->projects)
                rc = check_index(c);
        if (rc == 0 && is_stopped(c))
                rc = stopped(c);
        if (rc == 0 && c->asked->repair && !c->only_project && !c->refused.code &&
            files_is_copied(files)) /* what is missing from now on was not lost by copying */
                rc = wrote(c, files_settle_place(files, c->err), "place.json");
        backend_trash_list_release(&list);
        return rc;
}

int files_check_store(struct files_store *s, struct backend_check *asked, struct steno_error *err)
{
        char project_folder[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1];
        struct steno_error none = {0};
        struct files_conv *conv;
        struct checking c = {.store = s, .asked = asked, .err = err ? err : &none};
        if (asked->project.n) {
                if (id_file_name(asked->project, project_folder))
                        return error_nomem(err);
                c.only_project = project_folder;
        }
        if (asked->id.n) {
                int rc = files_conv_open(s, asked->project, asked->id, &conv, err);
                if (rc)
                        return rc;
                snprintf(folder, sizeof folder, "%s", conv->folder);
                files_conv_release(conv);
                c.only_folder = folder;
        }
        int rc = check_all(&c, asked->project);
        if (rc == 0 && c.refused.code) {
                *c.err = c.refused;
                rc = c.refused.code;
        }
        return rc;
}
