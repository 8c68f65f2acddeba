/*
 * api_export.c - exports conversations as a bundle, or one of them for people to read.
 */
#include "api/api_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_transcript.h"
#include "api/redact.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/tarball.h"
#include "base/text.h"

/* Larger texts are cut, because the log is in the bundle as well. */
#define TRANSCRIPT_MAX (8 * MIB)

struct chosen {
        char *project; /* names that open it, */
        char *id;
        char prefix[2 * PLAIN_NAME_MAX + 2]; /* and where it stands in the bundle */
};

struct exporting {
        struct steno_store *store;
        struct bundle_options bundle;
        struct tarball_writer *tar;
        struct chosen *list;
        size_t count;
        size_t cap;
        steno_progress progress;
        void *progress_ctx;
        uint64_t records;
        uint64_t files;
        uint64_t bytes;
        uint64_t tombstones;
        struct redact *redact; /* NULL: as it is */
        struct steno_error *err;
};

/* ---- which ---- */

/* The folder of a name, which may be that of a folder already (backend_each_conv). */
static int folder_of(const char *name, char out[PLAIN_NAME_MAX + 1])
{
        struct str s = str_of(name);
        if (!id_is_file_name(s))
                return id_file_name(s, out);
        memcpy(out, name, s.n + 1);
        return 0;
}

static int choose(void *ctx, const char *project, const char *id)
{
        struct exporting *x = ctx;
        char project_folder[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1];
        if (!grow_room(x->list, x->count, x->cap))
                return error_nomem(x->err);
        struct chosen c = {.project = strdup(project), .id = strdup(id)};
        if (!c.project || !c.id || folder_of(project, project_folder) || folder_of(id, folder)) {
                free(c.project);
                free(c.id);
                return error_nomem(x->err);
        }
        snprintf(c.prefix, sizeof c.prefix, "%s/%s", project_folder, folder);
        x->list[x->count++] = c;
        return 0;
}

static int choose_id(struct exporting *x, struct str project, const char *id)
{
        struct backend_conv *conv;
        int rc = api_conv_check_id(str_of(id), x->err);
        if (rc == 0)
                rc = backend_conv_open(x->store->backend, project, str_of(id), &conv, x->err);
        if (rc)
                return rc;
        rc = choose(x, backend_conv_project(conv), backend_conv_id(conv));
        backend_conv_release(conv);
        return rc;
}

static int choose_all(struct exporting *x, const char *project)
{
        struct str p;
        int rc = project ? api_store_project(project, &p, x->err) : 0;
        return rc ? rc : backend_each_conv(x->store->backend, project, choose, x, x->err);
}

static int by_folder(const void *a, const void *b)
{
        const struct chosen *x = a, *y = b;
        return strcmp(x->prefix, y->prefix);
}

static void let_go(struct chosen *c)
{
        free(c->project);
        free(c->id);
}

/* Sorted, each once. */
static void sort(struct exporting *x)
{
        size_t out = 0;
        if (x->count)
                qsort(x->list, x->count, sizeof *x->list, by_folder);
        for (size_t i = 0; i < x->count; i++)
                if (i == 0 || by_folder(&x->list[i], &x->list[out - 1]) != 0)
                        x->list[out++] = x->list[i];
                else
                        let_go(&x->list[i]);
        x->count = out;
}

/* ---- one conversation ---- */

static int take_transcript(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        size_t room = TRANSCRIPT_MAX - b->n;
        buf_put(b, p, n < room ? n : text_floor(p, n, room));
        return n > room;
}

static int make_transcript(struct exporting *x, struct backend_conv *backend, struct buf *out)
{
        struct steno_conv conv = {1, x->store, backend};
        int rc = api_transcript_md(&conv, take_transcript, out, x->err);
        if (rc == STENO_EINTERRUPTED) {
                buf_puts(out, "\n\n(The transcript is cut here; messages.jsonl has all of it.)\n");
                rc = 0;
        }
        return rc ? rc : buf_check(out, x->err);
}

static void put_manifest(const struct exporting *x, const struct backend_conv *conv,
    const struct bundle_view *b, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_u64(&w, "version", 1);
        jsonw_field_cstr(&w, "project", backend_conv_project(conv));
        jsonw_field_cstr(&w, "id", backend_conv_id(conv));
        jsonw_field_u64(&w, "lastSeq", b->last_seq);
        if (x->bundle.partial || x->bundle.max_artifact) {
                jsonw_field_bool(&w, "partial", true);
                jsonw_field_u64(&w, "tombstones", b->tombstones);
        }
        if (x->redact)
                jsonw_field_bool(&w, "redacted", true);
        jsonw_key(&w, "entries");
        jsonw_array(&w);
        for (size_t i = 0; i < b->count; i++) {
                buf_puts(out, i ? ",\n" : "\n");
                struct jsonw e = jsonw_to(out);
                jsonw_object(&e);
                jsonw_field_cstr(&e, "name", b->entries[i].name);
                jsonw_field_u64(&e, "size", b->entries[i].size);
                jsonw_field_cstr(&e, "sha256", b->entries[i].sha256);
                jsonw_object_end(&e);
        }
        buf_puts(out, "\n]}\n");
}

static int add_text(struct exporting *x, const char *name, struct str text)
{
        int rc = tarball_add(x->tar, name, text.n, x->err);
        return rc ? rc : tarball_write(x->tar, text.p, text.n, x->err);
}

struct sending {
        struct exporting *x;
        struct steno_error err;
};

static int send_piece(void *ctx, const void *p, size_t n)
{
        struct sending *s = ctx;
        return tarball_write(s->x->tar, p, n, &s->err);
}

static int send_entries(struct exporting *x, const struct chosen *c, struct backend_bundle *bundle)
{
        const struct bundle_view *b = backend_bundle_view(bundle);
        struct buf name;
        int rc = 0;
        buf_init(&name, 0);
        for (size_t i = 0; rc == 0 && i < b->count; i++) {
                struct sending s = {.x = x};
                buf_clear(&name);
                buf_printf(&name, "%s/%s", c->prefix, b->entries[i].name);
                const char *z = buf_cstr(&name);
                rc = z ? tarball_add(x->tar, z, b->entries[i].size, x->err) : error_nomem(x->err);
                if (rc == 0)
                        rc = backend_bundle_send(bundle, i, send_piece, &s, x->err);
                if (s.err.code) {
                        *x->err = s.err;
                        rc = s.err.code;
                }
        }
        buf_release(&name);
        return rc;
}

static int export_prepared(struct exporting *x, const struct chosen *c, struct backend_conv *conv,
    struct backend_bundle *bundle, struct buf *transcript)
{
        struct buf manifest, name;
        buf_init(&manifest, BUNDLE_MANIFEST_MAX);
        buf_init(&name, 0);
        int rc = make_transcript(x, conv, transcript);
        if (rc == 0)
                rc = backend_bundle_add_text(bundle, "transcript.md", buf_str(transcript), x->err);
        if (rc == 0) {
                put_manifest(x, conv, backend_bundle_view(bundle), &manifest);
                buf_printf(&name, "%s/manifest.json", c->prefix);
                rc = buf_check(&manifest, x->err);
        }
        if (rc == 0)
                rc =
                    buf_cstr(&name) ? add_text(x, name.p, buf_str(&manifest)) : error_nomem(x->err);
        if (rc == 0)
                rc = send_entries(x, c, bundle);
        const struct bundle_view *b = backend_bundle_view(bundle);
        x->records += b->last_seq;
        x->files += b->count;
        x->bytes += b->bytes;
        x->tombstones += b->tombstones;
        buf_release(&manifest);
        buf_release(&name);
        return rc;
}

static int export_one(struct exporting *x, const struct chosen *c)
{
        struct backend_conv *conv, *shown;
        struct backend_bundle *bundle;
        struct buf transcript;
        int rc =
            backend_conv_open(x->store->backend, str_of(c->project), str_of(c->id), &conv, x->err);
        if (rc)
                return rc;
        buf_init(&transcript, 0);
        shown = conv;
        if (x->redact)
                rc = redact_conv(x->redact, conv, &x->bundle, &shown);
        if (rc == 0)
                rc = backend_bundle_prepare(shown, &x->bundle, &bundle, x->err);
        if (rc == 0) {
                rc = export_prepared(x, c, shown, bundle, &transcript);
                backend_bundle_release(bundle);
        }
        if (rc && rc != STENO_EINTERRUPTED && rc != STENO_ENOMEM)
                error_prefix(x->err, rc, "%s", backend_conv_id(conv));
        buf_release(&transcript);
        backend_conv_release(conv);
        return rc;
}

/* ---- all of them ---- */

static int export_bundle(struct exporting *x, steno_sink sink, void *ctx)
{
        struct buf head;
        int rc = tarball_writer_new(sink, ctx, &x->tar, x->err);
        if (rc)
                return rc;
        buf_init(&head, 0);
        buf_printf(&head, "{\"steno\":\"bundle\",\"version\":1,\"conversations\":%zu}\n", x->count);
        rc = buf_check(&head, x->err);
        if (rc == 0)
                rc = add_text(x, "bundle.json", buf_str(&head));
        buf_release(&head);
        for (size_t i = 0; rc == 0 && i < x->count; i++) {
                rc = export_one(x, &x->list[i]);
                if (rc == 0 && x->progress &&
                    x->progress(x->progress_ctx, "export", i + 1, x->count))
                        rc = error_set(x->err, STENO_EINTERRUPTED, "stopped by the caller");
        }
        if (rc == 0)
                rc = tarball_finish(x->tar, x->err);
        tarball_writer_free(x->tar);
        return rc;
}

static int report_export(const struct exporting *x, char **report, struct steno_error *err)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_u64(&w, "conversations", x->count);
        jsonw_field_u64(&w, "records", x->records);
        jsonw_field_u64(&w, "files", x->files);
        jsonw_field_u64(&w, "bytes", x->bytes);
        jsonw_field_u64(&w, "tombstones", x->tombstones);
        if (x->redact) {
                jsonw_key(&w, "redacted");
                redact_report(x->redact, &b);
        }
        jsonw_object_end(&w);
        *report = buf_take(&b, NULL);
        buf_release(&b);
        return *report ? 0 : error_nomem(err);
}

int steno_export(struct steno_store *store, const char *project, const char *const *ids,
    size_t count, const struct steno_export_options *opt, steno_sink sink, void *ctx, char **report,
    struct steno_error *err)
{
        struct steno_error why = {0};
        struct str p;
        uint32_t flags = OPTION(opt, struct steno_export_options, flags, 0);
        struct exporting x = {.store = store, .err = err ? err : &why};
        if (flags & ~(uint32_t)STENO_EXPORT_PARTIAL)
                return error_set(err, STENO_EINVAL, "export has no flag 0x%x", flags);
        x.bundle.partial = flags & STENO_EXPORT_PARTIAL;
        x.bundle.max_artifact = OPTION(opt, struct steno_export_options, max_artifact, 0);
        x.progress = OPTION(opt, struct steno_export_options, progress, NULL);
        x.progress_ctx = OPTION(opt, struct steno_export_options, progress_ctx, NULL);
        int rc = ids ? api_store_project(project, &p, x.err) : choose_all(&x, project);
        for (size_t i = 0; rc == 0 && ids && i < count; i++)
                rc = choose_id(&x, p, ids[i]);
        sort(&x);
        const char *rules = OPTION(opt, struct steno_export_options, redact, NULL);
        struct redact redact = {0};
        if (rc == 0 && rules) {
                rc = redact_open(&redact, store, rules, x.err);
                x.redact = &redact;
        }
        if (rc == 0)
                rc = export_bundle(&x, sink, ctx);
        if (rc == 0 && report)
                rc = report_export(&x, report, x.err);
        redact_close(&redact);
        for (size_t i = 0; i < x.count; i++)
                let_go(&x.list[i]);
        free(x.list);
        return rc;
}

int steno_export_redacted(struct steno_conv *conv, const char *format, const char *rules,
    steno_sink sink, void *ctx, char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        struct bundle_options opt = {0};
        struct redact redact;
        struct buf text;
        struct steno_conv copy = {.refs = 1, .store = conv->store};
        int rc = redact_open(&redact, conv->store, rules, err ? err : &why);
        if (rc == 0)
                rc = redact_conv(&redact, conv->backend, &opt, &copy.backend);
        if (rc == 0)
                rc = steno_export_as(&copy, format, sink, ctx, err);
        buf_init(&text, 0);
        if (rc == 0 && report) {
                redact_report(&redact, &text);
                *report = buf_take(&text, NULL);
                rc = *report ? 0 : error_nomem(err);
        }
        buf_release(&text);
        redact_close(&redact);
        return rc;
}

int steno_export_as(struct steno_conv *conv, const char *format, steno_sink sink, void *ctx,
    struct steno_error *err)
{
        static const struct {
                const char *name;
                int (*write)(struct steno_conv *, steno_sink, void *, struct steno_error *);
        } FORMATS[] = {{"html", api_transcript_html}, {"md", api_transcript_md},
            {"json", api_transcript_json}};
        for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
                if (strcmp(format, FORMATS[i].name) == 0)
                        return FORMATS[i].write(conv, sink, ctx, err);
        return error_set(err, STENO_EINVAL,
            "a conversation is exported as html, md or json, not as \"%.40s\"", format);
}
