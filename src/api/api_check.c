/*
 * api_check.c - verifying a store: what its backend finds, what was accepted of that, and what only
 * records can tell.
 */
#include "api/accepted.h"
#include "api/api_store.h"
#include "api/carry.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

struct checking {
        struct steno_store *store;
        struct backend_check asked;
        bool accept;
        struct accepted accepted;
        steno_finding_fn each;
        void *ctx;
        int findings;
        struct backend_conv *conv; /* at work */
        struct steno_error *err;
};

static int stopped(struct checking *c)
{
        return error_set(c->err, STENO_EINTERRUPTED, "stopped by the caller");
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
        if (text) {
                jsonw_field_cstr(w, key, text);
        }
}

/* Is it a loss that was accepted, or is now? */
static int accept(struct checking *c, const struct check_finding *f, bool *yes)
{
        struct accepted_loss loss = {f->project, f->conversation, f->seq, f->what};
        *yes = !f->repaired && !f->note && accepted_has(&c->accepted, &loss);
        if (*yes || f->repaired || f->note || !c->asked.repair || (!c->accept && !f->copied))
                return 0;
        *yes = true;
        return accepted_add(&c->accepted, c->store->env, &loss, c->err);
}

/* Hands out a finding; about the store, a project or a conversation. */
static int tell(void *ctx, const struct check_finding *f)
{
        struct checking *c = ctx;
        struct buf b;
        bool accepted;
        int rc = accept(c, f, &accepted);
        if (rc)
                return rc;
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        put_text(&w, "project", f->project);
        put_text(&w, "conversation", f->conversation);
        if (f->seq) {
                jsonw_field_u64(&w, "seq", f->seq);
        }
        put_text(&w, "what", f->what);
        jsonw_field_bool(&w, "repaired", f->repaired);
        if (accepted)
                jsonw_field_bool(&w, "accepted", true);
        if (f->repairable && !f->trashed && !accepted) {
                jsonw_field_bool(&w, "repairable", true);
        }
        if (f->trashed) {
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

/* ---- originals ---- */

/* An earlier version kept only the text of an output that it took out, and not its spelling. */
static int look_at_original(void *ctx, const struct backend_record *r)
{
        struct checking *c = ctx;
        struct steno_conv conv = {.store = c->store, .backend = c->conv};
        struct arena arena;
        struct about about;
        struct artifact_info info;
        bool rendering = false;
        arena_init(&arena);
        int rc = r->damaged ? STENO_ECORRUPT : about_read(r->rec.x, &arena, &about, NULL);
        if (rc == 0 && about.sha.n && about.ref.n && !about.out_count && !about.kind.n &&
            backend_artifact_find(c->conv, about.ref, &info, NULL) == 0 &&
            info.state == ARTIFACT_CLOSED) {
                struct carry_out out = {.conv = &conv, .m = r->rec.m, .about = &about};
                rc = carry_original(&out, NULL, NULL, &rendering, NULL);
        }
        arena_release(&arena);
        if (rc == STENO_ENOMEM)
                return error_nomem(c->err);
        if (rc || !rendering)
                return 0; /* it was reported as unreadable before */
        return tell(c, &(struct check_finding){.project = backend_conv_project(c->conv),
                           .conversation = backend_conv_id(c->conv),
                           .seq = r->rec.seq,
                           .note = true,
                           .what = "rendering only: the text of its output was kept, not "
                                   "how it was written"});
}

static int check_originals(void *ctx, struct backend_conv *conv)
{
        struct checking *c = ctx;
        c->conv = conv;
        struct steno_error why = {0};
        int rc = backend_read(conv, 0, look_at_original, c, &why);
        if (rc == STENO_ENOTFOUND || rc == STENO_ECORRUPT || rc == STENO_EIO)
                return 0; /* an unreadable log was reported before */
        if (rc && why.code && c->err)
                *c->err = why;
        return rc;
}

/* The result of a repair. Where nothing could be written, the rest was checked nevertheless. */
static bool is_refused(const struct checking *c, int rc)
{
        return c->asked.repair && (rc == STENO_EDENIED || rc == STENO_EFULL);
}

static int check_and_accept(struct checking *c)
{
        struct steno_error why = {0};
        int rc = backend_check(c->store->backend, &c->asked, c->err);
        if (rc && !is_refused(c, rc))
                return rc;
        int wrote = accepted_write(&c->accepted, c->store->backend, &why);
        if (rc || wrote == 0)
                return rc;
        *c->err = why;
        return is_refused(c, wrote)
                   ? error_prefix(c->err, wrote, "%s cannot be repaired", ACCEPTED_NAME)
                   : wrote;
}

int steno_check(struct steno_store *store, const struct steno_check_options *opt,
    steno_finding_fn each, void *ctx, struct steno_error *err)
{
        const char *project = OPTION(opt, struct steno_check_options, project, NULL);
        const char *id = OPTION(opt, struct steno_check_options, id, NULL);
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        struct str p = {0};
        struct steno_error none = {0};
        struct checking c = {.store = store,
            .accept = OPTION(opt, struct steno_check_options, accept, false),
            .each = each,
            .ctx = ctx,
            .err = err ? err : &none};
        c.asked =
            (struct backend_check){.repair = OPTION(opt, struct steno_check_options, repair, false),
                .settings_problem = store->settings_problem,
                .each = tell,
                .checked = check_originals,
                .ctx = &c,
                .progress = OPTION(opt, struct steno_check_options, progress, NULL),
                .progress_ctx = OPTION(opt, struct steno_check_options, progress_ctx, NULL)};
        if (project || id) {
                rc = api_store_project(project, &p, err);
                if (rc)
                        return rc;
                c.asked.project = p;
        }
        if (id)
                c.asked.id = str_of(id);
        if (c.accept && !c.asked.repair)
                return error_set(err, STENO_EINVAL, "only a check that repairs can accept losses");
        rc = accepted_read(&c.accepted, store->backend, c.err);
        if (rc == 0)
                rc = check_and_accept(&c);
        accepted_release(&c.accepted);
        return rc ? rc : c.findings;
}
