/*
 * api_verify.c - compares a store with its seals (store/backend_seals.h): the log, every sealed
 * conversation, and conversations that are in the log and not in the store.
 */
#include "api/api_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"

struct verifying {
        struct steno_store *store;
        struct seal_check check;
        struct seal_log log;
        struct note *kept;   /* of `check` */
        const char *project; /* of the conversation at work, or NULL */
        const char *id;
        bool trashed;
        int (*each)(void *ctx, const char *json);
        void *ctx;
        steno_progress progress;
        void *progress_ctx;
        char (*met)[SEAL_CONV]; /* names of conversations that are there */
        size_t met_count;
        size_t met_cap;
        uint64_t conversations;
        int findings;
        struct steno_error *err;
};

static int stopped(struct verifying *v)
{
        return error_set(v->err, STENO_EINTERRUPTED, "stopped by the caller");
}

static int tell(void *ctx, const struct seal_finding *f)
{
        struct verifying *v = ctx;
        struct buf b;
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        if (v->project)
                jsonw_field_cstr(&w, "project", v->project);
        if (v->id)
                jsonw_field_cstr(&w, "conversation", v->id);
        if (v->trashed)
                jsonw_field_bool(&w, "trash", true);
        if (f->seq)
                jsonw_field_u64(&w, "seq", f->seq);
        if (f->last_seq > f->seq)
                jsonw_field_u64(&w, "lastSeq", f->last_seq);
        if (f->ref)
                jsonw_field_cstr(&w, "ref", f->ref);
        jsonw_field_cstr(&w, "kind", f->kind);
        if (f->note)
                jsonw_field_bool(&w, "note", true);
        jsonw_field_cstr(&w, "what", f->what);
        jsonw_object_end(&w);
        const char *json = buf_cstr(&b);
        int rc = !json ? error_nomem(v->err) : v->each && v->each(v->ctx, json) ? stopped(v) : 0;
        buf_release(&b);
        v->findings += rc == 0 && !f->note;
        return rc;
}

static int remember(struct verifying *v, const char *name)
{
        if (!grow_room(v->met, v->met_count, v->met_cap))
                return error_nomem(v->err);
        memcpy(v->met[v->met_count++], name, SEAL_CONV);
        return 0;
}

static int verify_conv(struct verifying *v, struct backend_conv *conv, bool wanted)
{
        char name[SEAL_CONV];
        struct seal_finding f = {.kind = "seal"};
        v->project = backend_conv_project(conv);
        v->id = backend_conv_id(conv);
        int rc = backend_seal_name(conv, name, v->err);
        if (rc == 0 && name[0])
                rc = remember(v, name);
        if (rc == 0 && wanted && backend_seal_is_known(conv, name, &v->log)) {
                v->conversations++;
                if (!name[0])
                        rc = backend_seal_tell(
                            &v->check, f, "meta.json has lost its uid, which the seal names");
                if (rc == 0)
                        rc = backend_seal_verify(conv, name, &v->check, v->err);
        }
        v->project = v->id = NULL;
        return rc;
}

static int verify_each(void *ctx, const char *project, const char *id)
{
        struct verifying *v = ctx;
        struct backend_conv *conv;
        if (v->progress && v->progress(v->progress_ctx, "verify", v->conversations, 0))
                return stopped(v);
        int rc = backend_conv_open(v->store->backend, str_of(project), str_of(id), &conv, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? error_nomem(v->err) : 0; /* then it has vanished */
        rc = verify_conv(v, conv, true);
        backend_conv_release(conv);
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

static int verify_trash(struct verifying *v)
{
        struct trash_list list = {0};
        int rc = backend_trash_list(v->store->backend, false, &list, v->err);
        for (size_t i = 0; rc == 0 && i < list.count; i++) {
                struct backend_conv *conv;
                rc = backend_trash_open(v->store->backend, &list.items[i], &conv, NULL);
                if (rc) {
                        rc = rc == STENO_ENOMEM ? error_nomem(v->err) : 0;
                        continue;
                }
                v->trashed = true;
                rc = verify_conv(v, conv, true);
                v->trashed = false;
                backend_conv_release(conv);
        }
        backend_trash_list_release(&list);
        return rc;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(a, b);
}

/* Conversations that the log knows and nobody has removed. */
static int tell_vanished(struct verifying *v)
{
        struct seal_finding f = {.kind = "vanished"};
        int rc = 0;
        if (v->met_count)
                qsort(v->met, v->met_count, sizeof *v->met, by_name);
        for (size_t i = 0; rc == 0 && i < v->log.count;) {
                const struct seal_entry *e = &v->log.entries[i];
                bool removed = false, headed = false;
                for (; i < v->log.count && strcmp(v->log.entries[i].conv, e->conv) == 0; i++) {
                        removed = v->log.entries[i].type == SEAL_ENTRY_REMOVED;
                        headed = headed || v->log.entries[i].type == SEAL_ENTRY_HEAD;
                }
                if (removed || !headed ||
                    (v->met_count &&
                        bsearch(e->conv, v->met, v->met_count, sizeof *v->met, by_name)))
                        continue;
                struct buf name;
                buf_init(&name, 0);
                backend_seal_log_call(v->store->backend, e->conv, &name);
                rc = name.failed ? error_nomem(v->err)
                                 : backend_seal_tell(&v->check, f,
                                       "a sealed conversation is missing, and it was not removed "
                                       "with Steno: %.*s",
                                       (int)(name.n > 200 ? 200 : name.n), name.p);
                buf_release(&name);
        }
        return rc;
}

static int verify_all(struct verifying *v, const char *project, const char *id)
{
        struct backend_conv *conv;
        struct str p;
        int rc = 0;
        if (id) {
                rc = api_store_project(project, &p, v->err);
                if (rc == 0)
                        rc = backend_conv_open(v->store->backend, p, str_of(id), &conv, v->err);
                if (rc)
                        return rc;
        }
        if (v->log.text || v->log.notes || v->check.kept_count)
                rc = backend_seal_verify_log(v->store->backend, &v->check, v->err);
        if (id) {
                if (rc == 0)
                        rc = verify_conv(v, conv, true);
                backend_conv_release(conv);
                if (rc == 0 && v->conversations == 0)
                        rc = error_set(
                            v->err, STENO_ENOTFOUND, "conversation \"%.100s\" is not sealed", id);
                return rc;
        }
        if (rc == 0)
                rc = backend_each_conv(v->store->backend, NULL, verify_each, v, v->err);
        if (rc == 0)
                rc = verify_trash(v);
        if (rc == 0 && v->conversations && !v->log.text && !v->log.notes) {
                struct seal_finding f = {.kind = "uncovered", .note = true};
                rc = backend_seal_tell(&v->check, f,
                    "the store has no log of seals, so nothing shows whether conversations were "
                    "removed");
        }
        return rc ? rc : tell_vanished(v);
}

static bool is_met(const struct verifying *v, struct str name)
{
        for (size_t i = 0; i < v->met_count; i++)
                if (str_is(name, v->met[i]))
                        return true;
        return false;
}

/* A checkpoint of a conversation that is not in the store was not compared with anything. */
static int tell_unused(struct verifying *v)
{
        struct seal_finding f = {.kind = "seal"};
        size_t skip = sizeof SEAL_ORIGIN - 1;
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < v->check.kept_count; i++) {
                struct str origin = v->check.kept[i].origin;
                if (str_starts(origin, SEAL_ORIGIN) &&
                    !is_met(v, str_span(origin.p + skip, origin.n - skip)))
                        rc = backend_seal_tell(&v->check, f,
                            "a checkpoint that was given is of a conversation that is not here: "
                            "%.*s",
                            (int)origin.n, origin.p);
        }
        return rc;
}

static int report_verify(struct verifying *v, char **report)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_u64(&w, "conversations", v->conversations);
        jsonw_field_u64(&w, "records", v->check.records);
        jsonw_field_u64(&w, "outputs", v->check.outputs);
        jsonw_field_u64(&w, "purged", v->check.purged);
        jsonw_field_u64(&w, "unsealed", v->check.unsealed);
        jsonw_field_cstr(&w, "signatures", v->check.key ? "checked" : "not checked");
        jsonw_field_u64(&w, "findings", (uint64_t)v->findings);
        jsonw_object_end(&w);
        char *text = buf_take(&b, NULL);
        buf_release(&b);
        if (!text)
                return error_nomem(v->err);
        *report = text;
        return 0;
}

/* All notes of a text. Each must be whole, and signed where there is a key. */
static int take_kept(struct verifying *v, struct str text)
{
        struct seal_finding f = {.kind = "seal"};
        struct note note;
        int rc = 0;
        for (size_t n = 0, cap = 0; rc == 0 && text.n;) {
                if (!note_read(text, &note, &n))
                        return error_set(v->err, STENO_EINVAL,
                            "checkpoint %zu that was given is not a signed note",
                            v->check.kept_count + 1);
                text = str_span(text.p + n, text.n - n);
                int is_signed = v->check.key ? note_check(&note, v->check.key) : 1;
                if (is_signed < 0)
                        return error_nomem(v->err);
                if (!is_signed) {
                        rc = backend_seal_tell(&v->check, f,
                            "a checkpoint that was given is not signed by the key %s",
                            v->check.key->name);
                        continue;
                }
                if (v->check.kept_count == cap) {
                        cap = cap ? cap * 2 : 8;
                        struct note *list = realloc(v->kept, cap * sizeof *list);
                        if (!list)
                                return error_nomem(v->err);
                        v->check.kept = v->kept = list;
                }
                v->kept[v->check.kept_count++] = note;
        }
        return rc;
}

int steno_verify(struct steno_store *store, const struct steno_verify_options *opt,
    int (*each)(void *ctx, const char *json), void *ctx, char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        const char *key = OPTION(opt, struct steno_verify_options, key, NULL);
        struct note_key given;
        struct verifying v = {.store = store,
            .each = each,
            .ctx = ctx,
            .progress = OPTION(opt, struct steno_verify_options, progress, NULL),
            .progress_ctx = OPTION(opt, struct steno_verify_options, progress_ctx, NULL),
            .err = err ? err : &why};
        int rc = optstruct_check(opt, sizeof *opt, v.err);
        if (rc == 0 && key)
                rc = note_key_read(str_of(key), &given, v.err);
        if (rc)
                return rc;
        v.check = (struct seal_check){
            .key = key ? &given : store->seal_key, .log = &v.log, .each = tell, .ctx = &v};
        rc = take_kept(&v, str_of(OPTION(opt, struct steno_verify_options, checkpoint, NULL)));
        if (rc == 0)
                rc = backend_seal_log_read(store->backend, &v.log, v.err);
        if (rc == 0)
                rc = verify_all(&v, OPTION(opt, struct steno_verify_options, project, NULL),
                    OPTION(opt, struct steno_verify_options, id, NULL));
        if (rc == 0)
                rc = tell_unused(&v);
        if (rc == 0 && report)
                rc = report_verify(&v, report);
        backend_seal_log_release(&v.log);
        free(v.met);
        free(v.kept);
        if (key)
                note_key_wipe(&given);
        return rc ? rc : v.findings;
}
