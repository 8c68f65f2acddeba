/*
 * pg_moves.c - conversations that leave or enter a store in PostgreSQL, or are made anew: bundles,
 * forks, purges. The work is done on a copy as files (pg_layout.c), and what came of it is read
 * back into rows.
 */
#include "store/postgres/pg.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define TRIES 20 /* of a purge, while others write */

static struct pg_conv *of(const struct backend_conv *conv)
{
        return (struct pg_conv *)conv;
}

/* ---- out ---- */

struct pg_bundle {
        struct backend_bundle base;
        struct pg_layout layout;
        struct backend_bundle *files;
};

int pg_bundle_prepare(struct backend_conv *conv, const struct bundle_options *opt,
    struct backend_bundle **out, struct steno_error *err)
{
        struct pg_bundle *b = calloc(1, sizeof *b);
        if (!b)
                return error_nomem(err);
        b->base.ops = &postgres_backend;
        int rc = pg_layout_open(of(conv), PG_LAYOUT_ALL, &b->layout, err);
        if (rc == 0)
                rc = files_backend.bundle_prepare(b->layout.conv, opt, &b->files, err);
        if (rc) {
                pg_bundle_release(&b->base);
                return rc;
        }
        *out = &b->base;
        return 0;
}

static struct backend_bundle *files_of(const struct backend_bundle *b)
{
        return ((const struct pg_bundle *)b)->files;
}

const struct bundle_view *pg_bundle_view(const struct backend_bundle *b)
{
        return files_backend.bundle_view(files_of(b));
}

int pg_bundle_add_text(
    struct backend_bundle *b, const char *name, struct str text, struct steno_error *err)
{
        return files_backend.bundle_add_text(files_of(b), name, text, err);
}

int pg_bundle_send(
    struct backend_bundle *b, size_t i, steno_sink sink, void *ctx, struct steno_error *err)
{
        return files_backend.bundle_send(files_of(b), i, sink, ctx, err);
}

void pg_bundle_release(struct backend_bundle *bundle)
{
        struct pg_bundle *b = (struct pg_bundle *)bundle;
        if (b->files)
                files_backend.bundle_release(b->files);
        pg_layout_close(&b->layout);
        free(b);
}

/* ---- in ---- */

struct pg_incoming {
        struct backend_incoming base;
        struct pg_store *store;
        struct pg_scratch *scratch;
        struct backend_incoming *files;
};

int pg_incoming_open(
    struct backend_store *store, struct backend_incoming **out, struct steno_error *err)
{
        struct pg_incoming *in = calloc(1, sizeof *in);
        if (!in)
                return error_nomem(err);
        in->base.ops = &postgres_backend;
        in->store = (struct pg_store *)store;
        int rc = pg_scratch_open(in->store, &in->scratch, err);
        if (rc == 0)
                rc = files_backend.incoming_open(in->scratch->store, &in->files, err);
        if (rc) {
                pg_incoming_close(&in->base);
                return rc;
        }
        *out = &in->base;
        return 0;
}

void pg_incoming_close(struct backend_incoming *incoming)
{
        struct pg_incoming *in = (struct pg_incoming *)incoming;
        if (in->files)
                files_backend.incoming_close(in->files);
        pg_scratch_close(in->scratch);
        free(in);
}

static struct backend_incoming *unpacked(struct backend_incoming *in)
{
        return ((struct pg_incoming *)in)->files;
}

int pg_incoming_begin(struct backend_incoming *in, uint32_t number, struct steno_error *err)
{
        return files_backend.incoming_begin(unpacked(in), number, err);
}

int pg_incoming_file(struct backend_incoming *in, const char *name, struct steno_error *err)
{
        return files_backend.incoming_file(unpacked(in), name, err);
}

int pg_incoming_write(struct backend_incoming *in, const void *p, size_t n, struct steno_error *err)
{
        return files_backend.incoming_write(unpacked(in), p, n, err);
}

int pg_incoming_file_end(struct backend_incoming *in, struct steno_error *err)
{
        return files_backend.incoming_file_end(unpacked(in), err);
}

int pg_incoming_end(struct backend_incoming *in, struct str project, struct str id, bool renamed,
    bool trusted, struct steno_error *err)
{
        return files_backend.incoming_end(unpacked(in), project, id, renamed, trusted, err);
}

int pg_incoming_look(struct backend_incoming *in, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err)
{
        return files_backend.incoming_look(unpacked(in), project, id, out, err);
}

/* Reads a conversation of the scratch store into rows. */
static int load_copy(struct pg_store *s, struct backend_conv *copy, struct str project,
    struct str id, struct steno_error *err)
{
        struct bundle_options opt = {0};
        struct backend_bundle *bundle;
        int rc = files_backend.bundle_prepare(copy, &opt, &bundle, err);
        if (rc)
                return rc;
        const struct bundle_view *v = files_backend.bundle_view(bundle);
        uint64_t outputs = 0;
        for (size_t i = 0; i < v->count; i++)
                outputs +=
                    strncmp(v->entries[i].name, "artifacts/", 10) == 0 ? v->entries[i].size : 0;
        rc = pg_quota_take_conv(s, outputs, err);
        if (rc == 0)
                rc = pg_load(s, bundle, project, id, err);
        files_backend.bundle_release(bundle);
        return rc;
}

int pg_incoming_install(struct backend_incoming *incoming, uint32_t number, struct str project,
    struct str id, struct steno_error *err)
{
        struct pg_incoming *in = (struct pg_incoming *)incoming;
        struct backend_conv *copy;
        int rc = files_backend.incoming_install(in->files, number, project, id, err);
        if (rc == 0)
                rc = files_backend.conv_open(in->scratch->store, project, id, &copy, err);
        if (rc)
                return rc;
        rc = load_copy(in->store, copy, project, id, err);
        files_backend.conv_release(copy);
        return rc;
}

/* ---- forks ---- */

/* A fork names its origin's uid, which a conversation gets when somebody needs it. */
int pg_fork(struct backend_conv *origin, const struct fork_request *request,
    struct backend_conv **out, uint64_t *seq, struct steno_error *err)
{
        struct pg_layout layout;
        struct backend_conv *copy;
        struct pg_store *s = of(origin)->store;
        int rc = pg_conv_give_uid(of(origin), err);
        if (rc == 0)
                rc = pg_layout_open(of(origin), PG_LAYOUT_ALL, &layout, err);
        if (rc)
                return rc;
        rc = files_backend.fork(layout.conv, request, &copy, seq, err);
        if (rc == 0) {
                rc = load_copy(s, copy, request->project, request->id, err);
                files_backend.conv_release(copy);
        }
        pg_layout_close(&layout);
        return rc ? rc : pg_conv_open(&s->base, request->project, request->id, out, err);
}

/* ---- purges ---- */

static int purge(struct pg_conv *c, struct purge_result *out, struct steno_error *err)
{
        int rc = 1;
        for (int i = 0; rc == 1 && i < TRIES; i++) {
                struct pg_layout layout;
                struct purge_result result;
                rc = pg_layout_open(c, PG_LAYOUT_ALL, &layout, err);
                if (rc)
                        return rc;
                rc = files_backend.purge(layout.conv, &result, err);
                if (rc == 0)
                        rc = pg_load_purged(c, &layout, err);
                pg_layout_close(&layout);
                if (rc == 0)
                        *out = result;
        }
        return rc == 1 ? error_set(err, STENO_ECONFLICT,
                             "other writers append to this conversation all the time; try again")
                       : rc;
}

int pg_purge(struct backend_conv *conv, struct purge_result *out, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct backend_lock *lock = NULL;
        int rc = pg_seal_exists(c) ? pg_lock(&c->store->base, "seal", &lock, err) : 0;
        if (rc)
                return rc;
        rc = purge(c, out, err);
        if (lock)
                pg_unlock(lock);
        return rc;
}
