/*
 * api_copy.c - the conversations of one store into another, of whatever kinds the two are; and a
 * store of an earlier version.
 *
 * A conversation is copied as the files of a bundle, whole or not at all, and so is a file of a
 * disk. A copy that was stopped can be started again: it compares what the target has already, and
 * does not copy it again.
 */
#include "steno_copy.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_store.h"
#include "api/copy_seals.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

/* What belongs to a store as a whole and may be in another. */
static const char *const DOCUMENTS[] = {"tokens.json", "projects.json", "accepted.jsonl"};
#define DOCUMENT_MAX ((size_t)64 * MIB)
#define PATIENCE_MS 10000

enum fate { COPIED, REPLACED, UNCHANGED, CONFLICT };
static const char *const FATES[] = {"copied", "replaced", "unchanged", "conflicts"};
#define FATE_COUNT (sizeof FATES / sizeof *FATES)

struct copying {
        struct steno_store *from;
        struct steno_store *to;
        steno_progress progress;
        void *progress_ctx;
        uint64_t done;
        uint64_t total;
        uint64_t counts[FATE_COUNT];
        uint64_t records;
        uint64_t bytes;
        struct buf conflicts; /* a JSON array, without its end */
        char **projects;      /* that were met, each once */
        size_t project_count;
        uint64_t files;   /* of disks */
        uint64_t trashed; /* that went to the target's trash */
        struct steno_error *err;
};

/* ---- projects ---- */

/* Conversations come project by project, so that the last one is nearly always the one. */
static int note_project(struct copying *x, struct str project)
{
        for (size_t i = x->project_count; i-- > 0;)
                if (str_is(project, x->projects[i]))
                        return 0;
        char **more = realloc(x->projects, (x->project_count + 1) * sizeof *more);
        if (!more)
                return error_nomem(x->err);
        x->projects = more;
        more[x->project_count] = strndup(project.p, project.n);
        return more[x->project_count++] ? 0 : error_nomem(x->err);
}

static void forget_projects(struct copying *x)
{
        for (size_t i = 0; i < x->project_count; i++)
                free(x->projects[i]);
        free(x->projects);
}

/* ---- is it there? ---- */

/* Have two bundles the same files? */
static bool is_same(const struct bundle_view *a, const struct bundle_view *b)
{
        if (a->count != b->count)
                return false;
        for (size_t i = 0; i < a->count; i++)
                if (strcmp(a->entries[i].name, b->entries[i].name) != 0 ||
                    a->entries[i].size != b->entries[i].size ||
                    strcmp(a->entries[i].sha256, b->entries[i].sha256) != 0)
                        return false;
        return true;
}

struct comparing {
        struct sha256 sha;
        uint64_t upto;
        uint64_t count;
};

static int add_record(void *ctx, const struct backend_record *r)
{
        struct comparing *c = ctx;
        if (r->damaged || r->rec.seq > c->upto)
                return 1;
        hash_sha256_update(&c->sha, r->rec.id.p, r->rec.id.n);
        hash_sha256_update(&c->sha, r->rec.x.p, r->rec.x.n);
        hash_sha256_update(&c->sha, r->rec.m.p, r->rec.m.n);
        c->count++;
        return 0;
}

static int sum_records(struct copying *x, struct backend_conv *conv, uint64_t upto,
    unsigned char sum[SHA256_SIZE], uint64_t *count)
{
        struct comparing c = {.upto = upto};
        if (hash_sha256_init(&c.sha))
                return error_nomem(x->err);
        int rc = backend_read(conv, 0, add_record, &c, x->err);
        hash_sha256_finish(&c.sha, sum);
        *count = c.count;
        return rc < 0 ? rc : 0;
}

/* Has the conversation only grown in the source since it was copied? */
static int has_gone_on(
    struct copying *x, struct backend_conv *from, struct backend_conv *to, bool *yes)
{
        unsigned char a[SHA256_SIZE], b[SHA256_SIZE];
        uint64_t last = 0, in_from, in_to;
        int rc = backend_last(to, &last, NULL, x->err);
        if (rc == 0)
                rc = sum_records(x, from, last, a, &in_from);
        if (rc == 0)
                rc = sum_records(x, to, last, b, &in_to);
        *yes = rc == 0 && in_from == last && in_to == last && memcmp(a, b, sizeof a) == 0;
        return rc;
}

static int decide(
    struct copying *x, struct backend_conv *conv, struct backend_bundle *bundle, enum fate *fate)
{
        struct bundle_options opt = {0};
        struct backend_conv *there;
        struct backend_bundle *other;
        bool gone_on = false;
        *fate = COPIED;
        int rc = backend_conv_open(x->to->backend, str_of(backend_conv_project(conv)),
            str_of(backend_conv_id(conv)), &there, x->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        rc = backend_bundle_prepare(there, &opt, &other, x->err);
        if (rc == 0) {
                *fate = is_same(backend_bundle_view(bundle), backend_bundle_view(other)) ? UNCHANGED
                                                                                         : CONFLICT;
                backend_bundle_release(other);
        }
        if (rc == 0 && *fate == CONFLICT)
                rc = has_gone_on(x, conv, there, &gone_on);
        backend_conv_release(there);
        if (gone_on)
                *fate = REPLACED;
        return rc;
}

/* ---- one conversation ---- */

struct sending {
        struct backend_incoming *in;
        struct steno_error *err;
        int rc;
};

static int take_piece(void *ctx, const void *p, size_t n)
{
        struct sending *s = ctx;
        s->rc = backend_incoming_write(s->in, p, n, s->err);
        return s->rc;
}

static int send_files(struct copying *x, struct backend_bundle *bundle, struct backend_incoming *in)
{
        const struct bundle_view *v = backend_bundle_view(bundle);
        int rc = backend_incoming_begin(in, 0, x->err);
        for (size_t i = 0; rc == 0 && i < v->count; i++) {
                struct sending s = {.in = in, .err = x->err};
                struct steno_error why = {0};
                rc = backend_incoming_file(in, v->entries[i].name, x->err);
                if (rc == 0)
                        rc = backend_bundle_send(bundle, i, take_piece, &s, &why);
                if (rc && !s.rc)
                        *x->err = why;
                else if (s.rc)
                        rc = s.rc;
                if (rc == 0)
                        rc = backend_incoming_file_end(in, x->err);
        }
        return rc;
}

static int move_old_away(struct copying *x, struct str project, struct str id)
{
        struct backend_conv *old;
        char name[TRASH_NAME];
        int rc = backend_conv_open(x->to->backend, project, id, &old, x->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        rc = backend_trash_put(old, name, x->err);
        backend_conv_release(old);
        return rc;
}

/* Compares the copied conversation with its source. */
static int verify(
    struct copying *x, struct backend_bundle *bundle, struct str project, struct str id)
{
        struct bundle_options opt = {0};
        struct backend_conv *conv;
        struct backend_bundle *other;
        int rc = backend_conv_open(x->to->backend, project, id, &conv, x->err);
        if (rc)
                return rc;
        rc = backend_bundle_prepare(conv, &opt, &other, x->err);
        if (rc == 0) {
                if (!is_same(backend_bundle_view(bundle), backend_bundle_view(other)))
                        rc = error_set(x->err, STENO_ECORRUPT,
                            "what arrived is not what was sent, or somebody changed it meanwhile");
                backend_bundle_release(other);
        }
        backend_conv_release(conv);
        return rc;
}

static int move(
    struct copying *x, struct backend_conv *conv, struct backend_bundle *bundle, bool replace)
{
        struct str project = str_of(backend_conv_project(conv)), id = str_of(backend_conv_id(conv));
        struct backend_incoming *in;
        int rc = backend_incoming_open(x->to->backend, &in, x->err);
        if (rc)
                return rc;
        rc = send_files(x, bundle, in);
        if (rc == 0)
                rc = backend_incoming_end(in, project, id, false, true, x->err);
        if (rc == 0 && replace)
                rc = move_old_away(x, project, id);
        if (rc == 0)
                rc = backend_incoming_install(in, 0, project, id, x->err);
        backend_incoming_close(in);
        return rc ? rc : verify(x, bundle, project, id);
}

static void note_conflict(struct copying *x, struct backend_conv *conv)
{
        buf_puts(&x->conflicts, x->conflicts.n ? "," : "[");
        struct jsonw w = jsonw_to(&x->conflicts);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "project", backend_conv_project(conv));
        jsonw_field_cstr(&w, "id", backend_conv_id(conv));
        jsonw_object_end(&w);
}

static int copy_conv(struct copying *x, struct backend_conv *conv)
{
        struct bundle_options opt = {0};
        struct backend_bundle *bundle;
        enum fate fate = COPIED;
        int rc = backend_bundle_prepare(conv, &opt, &bundle, x->err);
        if (rc)
                return rc;
        rc = decide(x, conv, bundle, &fate);
        if (rc == 0 && fate <= REPLACED)
                rc = move(x, conv, bundle, fate == REPLACED);
        if (rc == 0 && fate <= REPLACED) {
                x->records += backend_bundle_view(bundle)->last_seq;
                x->bytes += backend_bundle_view(bundle)->bytes;
        }
        if (rc == 0 && fate == CONFLICT)
                note_conflict(x, conv);
        x->counts[fate] += rc == 0;
        backend_bundle_release(bundle);
        return rc;
}

static int copy_each(void *ctx, const char *project, const char *id)
{
        struct copying *x = ctx;
        struct backend_conv *conv;
        if (x->progress && x->progress(x->progress_ctx, "copy", x->done++, x->total))
                return error_set(x->err, STENO_EINTERRUPTED, "stopped by the caller");
        int rc = note_project(x, str_of(project));
        if (rc == 0)
                rc =
                    backend_conv_open(x->from->backend, str_of(project), str_of(id), &conv, x->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc; /* removed meanwhile */
        rc = copy_conv(x, conv);
        if (rc && rc != STENO_EINTERRUPTED && rc != STENO_ENOMEM)
                error_prefix(x->err, rc, "%s", backend_conv_id(conv));
        backend_conv_release(conv);
        return rc;
}

/* ---- the trash ---- */

/* Is one of the target's trash the same? */
static int is_in_trash(
    struct copying *x, const struct trash_item *item, struct backend_bundle *bundle, bool *yes)
{
        struct bundle_options opt = {0};
        struct trash_list list = {0};
        int rc = backend_trash_list(x->to->backend, false, &list, x->err);
        for (size_t i = 0; rc == 0 && !*yes && i < list.count; i++) {
                struct backend_conv *conv;
                struct backend_bundle *other;
                if (strcmp(list.items[i].project, item->project) != 0 ||
                    strcmp(list.items[i].id, item->id) != 0 ||
                    backend_trash_open(x->to->backend, &list.items[i], &conv, NULL))
                        continue;
                if (backend_bundle_prepare(conv, &opt, &other, NULL) == 0) {
                        *yes = is_same(backend_bundle_view(bundle), backend_bundle_view(other));
                        backend_bundle_release(other);
                }
                backend_conv_release(conv);
        }
        backend_trash_list_release(&list);
        return rc;
}

/* Has the target's conversation of that id all that this one has? */
static int is_contained(struct copying *x, struct backend_conv *conv, bool *yes)
{
        struct backend_conv *there;
        int rc = backend_conv_open(x->to->backend, str_of(backend_conv_project(conv)),
            str_of(backend_conv_id(conv)), &there, x->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        rc = has_gone_on(x, there, conv, yes);
        backend_conv_release(there);
        return rc;
}

/* A conversation that was removed in the source since it was copied is removed in the target, too.
 * A new one is copied like the others, and moved to the trash at once. */
static int copy_removed(struct copying *x, const struct trash_item *item, struct backend_conv *conv)
{
        struct bundle_options opt = {0};
        struct backend_bundle *bundle;
        enum fate fate = COPIED;
        bool there = false;
        int rc = backend_bundle_prepare(conv, &opt, &bundle, x->err);
        if (rc)
                return rc;
        rc = is_in_trash(x, item, bundle, &there);
        if (rc == 0 && !there)
                rc = decide(x, conv, bundle, &fate);
        if (rc == 0 && !there && fate == CONFLICT)
                rc = is_contained(x, conv, &there);
        if (rc == 0 && !there && fate <= REPLACED)
                rc = move(x, conv, bundle, fate == REPLACED);
        if (rc == 0 && !there && fate != CONFLICT) {
                rc = move_old_away(x, str_of(item->project), str_of(item->id));
                x->trashed += rc == 0;
        }
        if (rc == 0 && !there && fate == CONFLICT)
                note_conflict(x, conv);
        backend_bundle_release(bundle);
        return rc;
}

/* Before the conversations, because a removed one may have the id of one that lives; the oldest
 * first, so that they are in the same order there. */
static int copy_trash(struct copying *x, const char *project)
{
        struct trash_list list = {0};
        int rc = backend_trash_list(x->from->backend, false, &list, x->err);
        for (size_t i = list.count; rc == 0 && i-- > 0;) {
                const struct trash_item *item = &list.items[i];
                struct backend_conv *conv;
                if (project && strcmp(item->project, project) != 0)
                        continue;
                rc = backend_trash_open(x->from->backend, item, &conv, x->err);
                if (rc == STENO_ENOTFOUND) { /* destroyed meanwhile */
                        rc = 0;
                        continue;
                }
                if (rc == 0) {
                        rc = copy_removed(x, item, conv);
                        backend_conv_release(conv);
                }
                if (rc && rc != STENO_ENOMEM)
                        error_prefix(x->err, rc, "%s, in the trash", item->id);
        }
        backend_trash_list_release(&list);
        return rc;
}

/* ---- what belongs to the store ---- */

static int put_if_missing(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        (void)err;
        buf_put_str(out, old.n ? old : *(const struct str *)ctx);
        return 0;
}

/* The projects that a document names: the members of projects.json, and those of tokens. */
static int note_projects_of(struct copying *x, struct str document)
{
        struct json j;
        json_init(&j);
        int rc = 0;
        bool is_json = json_parse(&j, document.p, document.n, NULL, NULL) == 0;
        json_ref tokens = is_json ? json_get(&j, 0, "tokens") : JSON_NONE;
        json_ref first = !is_json ? JSON_NONE : json_child(&j, tokens == JSON_NONE ? 0 : tokens);
        for (json_ref i = first; rc == 0 && i != JSON_NONE;
             i = tokens == JSON_NONE ? json_next_key(&j, 0, i) : json_next(&j, tokens, i)) {
                json_ref name = tokens == JSON_NONE ? i : json_get(&j, i, "project");
                char *project = json_dup_string(&j, name);
                rc = project ? note_project(x, str_of(project)) : 0;
                free(project);
        }
        json_release(&j);
        return rc;
}

/* Documents that the target already has stay unchanged. */
static int copy_documents(struct copying *x)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < sizeof DOCUMENTS / sizeof *DOCUMENTS; i++) {
                char *text = NULL;
                size_t n = 0;
                rc = backend_document_read(
                    x->from->backend, DOCUMENTS[i], DOCUMENT_MAX, &text, &n, NULL, x->err);
                struct str whole = str_span(text, n);
                if (rc == 0)
                        rc = note_projects_of(x, whole);
                if (rc == 0)
                        rc = backend_document_change(x->to->backend, DOCUMENTS[i], DOCUMENT_MAX,
                            PATIENCE_MS, put_if_missing, &whole, x->err);
                rc = rc == STENO_ENOTFOUND ? 0 : rc;
                free(text);
        }
        return rc;
}

/* ---- disks ---- */

struct copying_disk {
        struct copying *x;
        struct backend_disk from;
        struct backend_disk to;
};

static bool has_file(const struct copying_disk *d, struct str path, const struct json *j)
{
        struct buf text;
        struct json other;
        buf_init(&text, META_MAX);
        json_init(&other);
        bool same = d->to.store->ops->disks->file(&d->to, path, &text, NULL) == 0 &&
                    json_parse(&other, text.p, text.n, NULL, NULL) == 0 &&
                    str_eq(json_raw(&other, json_get(&other, 0, "sha256")),
                        json_raw(j, json_get(j, 0, "sha256"))) &&
                    str_eq(json_raw(&other, json_get(&other, 0, "meta")),
                        json_raw(j, json_get(j, 0, "meta")));
        json_release(&other);
        buf_release(&text);
        return same;
}

static int copy_file(void *ctx, struct str text)
{
        struct copying_disk *d = ctx;
        struct steno_error *err = d->x->err;
        struct json j;
        char *path = NULL, *mime = NULL, *bytes = NULL;
        size_t n = 0;
        json_init(&j);
        int rc = json_parse(&j, text.p, text.n, NULL, err);
        if (rc == 0) {
                path = json_dup_string(&j, json_get(&j, 0, "path"));
                mime = json_dup_string(&j, json_get(&j, 0, "mime"));
                rc = path && mime ? 0 : error_nomem(err);
        }
        if (rc == 0 && !has_file(d, str_of(path), &j)) {
                rc = d->from.store->ops->disks->read(&d->from, str_of(path), &bytes, &n, err);
                struct backend_disk_file file = {.path = str_of(path),
                    .mime = str_of(mime),
                    .meta = json_raw(&j, json_get(&j, 0, "meta")),
                    .bytes = str_span(bytes, n)};
                struct buf made;
                buf_init(&made, META_MAX);
                if (rc == 0)
                        rc = d->to.store->ops->disks->put(&d->to, &file, &made, err);
                buf_release(&made);
                if (rc == 0)
                        d->x->files++;
                rc = rc == STENO_ENOTFOUND ? 0 : rc; /* removed meanwhile */
        }
        free(path);
        free(mime);
        free(bytes);
        json_release(&j);
        return rc;
}

/* Files that the target has and the source has not stay. */
static int copy_disk(void *ctx, struct str text)
{
        struct copying_disk *d = ctx;
        struct steno_error *err = d->x->err;
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, text.p, text.n, NULL, err);
        char *id = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "id"));
        json_release(&j);
        if (rc == 0 && !id)
                rc = error_nomem(err);
        if (rc == 0) {
                d->from.id = d->to.id = str_of(id);
                struct buf made;
                buf_init(&made, META_MAX);
                rc = d->to.store->ops->disks->create(&d->to, &made, err);
                rc = rc == STENO_ECONFLICT ? 0 : rc; /* it is there */
                buf_release(&made);
        }
        if (rc == 0)
                rc = d->from.store->ops->disks->each_file(&d->from, copy_file, d, err);
        free(id);
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

static int copy_disks(struct copying *x)
{
        struct backend_store *from = x->from->backend, *to = x->to->backend;
        int rc = 0;
        if (!from->ops->disks || !to->ops->disks)
                return 0;
        for (size_t i = 0; rc == 0 && i < x->project_count; i++) {
                struct str project = str_of(x->projects[i]);
                struct copying_disk d = {.x = x,
                    .from = {.store = from, .project = project},
                    .to = {.store = to, .project = project}};
                rc = from->ops->disks->each(from, project, copy_disk, &d, x->err);
        }
        return rc;
}

/* ---- all of it ---- */

static int report_copy(struct copying *x, char **report)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        for (size_t i = 0; i < CONFLICT; i++)
                jsonw_field_u64(&w, FATES[i], x->counts[i]);
        buf_puts(&x->conflicts, x->conflicts.n ? "]" : "[]");
        jsonw_field_raw(&w, FATES[CONFLICT], buf_str(&x->conflicts));
        jsonw_field_u64(&w, "records", x->records);
        jsonw_field_u64(&w, "bytes", x->bytes);
        jsonw_field_u64(&w, "files", x->files);
        jsonw_field_u64(&w, "trashed", x->trashed);
        jsonw_object_end(&w);
        *report = x->conflicts.failed ? NULL : buf_take(&b, NULL);
        buf_release(&b);
        return *report ? 0 : error_nomem(x->err);
}

int steno_copy(struct steno_store *from, struct steno_store *to,
    const struct steno_copy_options *opt, char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        struct backend_totals totals = {0};
        const char *project = OPTION(opt, struct steno_copy_options, project, NULL);
        struct copying x = {.from = from, .to = to, .err = err ? err : &why};
        struct str legal;
        x.progress = OPTION(opt, struct steno_copy_options, progress, NULL);
        x.progress_ctx = OPTION(opt, struct steno_copy_options, progress_ctx, NULL);
        int rc = optstruct_check(opt, sizeof *opt, x.err);
        if (rc == 0 && project)
                rc = api_store_project(project, &legal, x.err);
        if (rc)
                return rc;
        if (!project && backend_totals(from->backend, &totals, NULL) == 0)
                x.total = totals.conversations;
        buf_init(&x.conflicts, 0);
        rc = copy_trash(&x, project);
        if (rc == 0)
                rc = backend_each_conv(from->backend, project, copy_each, &x, x.err);
        if (rc == 0)
                rc = note_project(&x, project ? legal : STR("default"));
        if (rc == 0 && !project)
                rc = copy_documents(&x);
        if (rc == 0 && !project)
                rc = copy_seals(from->backend, to->backend, x.err);
        if (rc == 0)
                rc = copy_disks(&x);
        if (rc == 0 && report)
                rc = report_copy(&x, report);
        buf_release(&x.conflicts);
        forget_projects(&x);
        return rc;
}

/* ---- versions ---- */

int steno_migrate(const char *store_url, char **report, struct steno_error *err)
{
        const struct steno_backend *kind;
        char *where = NULL;
        uint64_t from = 0, to = 0;
        struct buf b;
        int rc = backend_find(store_url, &kind, &where, err);
        if (rc == 0)
                rc = kind->migrate ? kind->migrate(env_real(), where, &from, &to, err)
                                   : backend_lacks(err, kind, "versions to migrate between");
        free(where);
        if (rc || !report)
                return rc;
        buf_init(&b, 0);
        buf_printf(
            &b, "{\"from\":%llu,\"to\":%llu}", (unsigned long long)from, (unsigned long long)to);
        *report = buf_take(&b, NULL);
        buf_release(&b);
        return *report ? 0 : error_nomem(err);
}
