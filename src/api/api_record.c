/*
 * api_record.c - records as callers of steno_read see them.
 */
#include "api/api_recover.h"
#include "api/carry.h"
#include "api/api_record_as.h"
#include "api/api_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct steno_record {
        struct steno_conv *conv;
        const struct backend_record *from;
        struct about about;
        char *id;
        char at[TIME_TEXT];
        char fmt[32];
        char kind[16];
        char *target;
        const char *own_id;
        const char *key;
        struct str x;
};

static void copy_word(struct str s, char *to, size_t size)
{
        size_t n = s.n < size - 1 ? s.n : size - 1;
        memcpy(to, s.p, n);
        to[n] = '\0';
}

/* Fills a record from what the store read. Strings live in `arena`. */
static int fill(struct steno_conv *conv, const struct backend_record *from, struct arena *arena,
    struct steno_record *out, struct steno_error *err)
{
        *out = (struct steno_record){.conv = conv,
            .from = from,
            .id = "",
            .target = "",
            .own_id = "",
            .key = "",
            .x = STR("{}")};
        if (from->damaged) {
                copy_word(STR("damaged"), out->kind, sizeof out->kind);
                return 0;
        }
        int rc = about_read(from->rec.x, arena, &out->about, err);
        if (rc)
                return rc;
        struct buf id;
        buf_init(&id, 0);
        json_unescape(from->rec.id, &id, NULL);
        struct str copy = arena_dup(arena, buf_str(&id));
        struct str target = arena_dup(arena, out->about.target);
        out->x = arena_dup(arena, from->rec.x);
        buf_release(&id);
        if (!copy.p || !target.p || !out->x.p)
                return error_nomem(err);
        struct str own_id = arena_dup(arena, out->about.own_id);
        struct str key = arena_dup(arena, out->about.key);
        if (!own_id.p || !key.p)
                return error_nomem(err);
        out->own_id = own_id.p;
        out->key = key.p;
        out->id = (char *)copy.p;
        out->target = (char *)target.p;
        copy_word(from->rec.at, out->at, sizeof out->at);
        copy_word(from->rec.fmt, out->fmt, sizeof out->fmt);
        copy_word(
            out->about.kind.n ? out->about.kind : STR("message"), out->kind, sizeof out->kind);
        return 0;
}

uint64_t steno_record_seq(const struct steno_record *r)
{
        return r->from->damaged ? r->from->first_seq : r->from->rec.seq;
}

struct api_record_source api_record_source(const struct steno_record *r)
{
        return (struct api_record_source){r->conv, steno_record_seq(r), &r->about};
}

const char *steno_record_id(const struct steno_record *r)
{
        return r->id;
}

const char *steno_record_at(const struct steno_record *r)
{
        return r->at;
}

const char *steno_record_own_id(const struct steno_record *r)
{
        return r->own_id;
}

const char *steno_record_key(const struct steno_record *r)
{
        return r->key;
}

const char *steno_record_format(const struct steno_record *r)
{
        return r->fmt;
}

const char *steno_record_kind(const struct steno_record *r)
{
        return r->kind;
}

const char *steno_record_target(const struct steno_record *r)
{
        return r->target;
}

const char *steno_record_about(const struct steno_record *r, size_t *n)
{
        if (n)
                *n = r->x.n;
        return r->x.p;
}

static int to_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

enum extent { EXTENT_STUBS, EXTENT_KEPT, EXTENT_ORIGINAL };

static int message_of(const struct steno_record *r, enum extent extent, char **json, size_t *n,
    struct steno_error *err)
{
        struct buf b;
        bool rendering;
        if (r->from->damaged)
                return error_set(err, STENO_ECORRUPT, "the record at seq %llu cannot be read",
                    (unsigned long long)r->from->first_seq);
        buf_init(&b, 0);
        struct carry_out c = {.conv = r->conv,
            .m = r->from->rec.m,
            .about = &r->about,
            .full = extent == EXTENT_KEPT && r->about.keep_output};
        int rc = extent == EXTENT_ORIGINAL ? carry_original(&c, to_buf, &b, &rendering, err)
                                           : carry_out(&c, to_buf, &b, err);
        if (b.failed)
                rc = buf_check(&b, err);
        char *text = rc ? NULL : buf_take(&b, n);
        if (rc == 0 && !text)
                rc = error_nomem(err);
        buf_release(&b);
        if (rc == 0)
                *json = text;
        return rc;
}

int steno_record_message(
    const struct steno_record *r, char **json, size_t *n, struct steno_error *err)
{
        return message_of(r, EXTENT_KEPT, json, n, err);
}

int steno_record_original(
    const struct steno_record *r, char **json, size_t *n, struct steno_error *err)
{
        return message_of(r, EXTENT_ORIGINAL, json, n, err);
}

int api_record_stubs(const struct steno_record *r, char **json, size_t *n, struct steno_error *err)
{
        return message_of(r, EXTENT_STUBS, json, n, err);
}

struct walk {
        struct steno_conv *conv;
        struct arena arena;
        uint64_t limit;
        uint64_t count;
        steno_record_fn each;
        void *ctx;
        int answer; /* what `each` returned */
        struct steno_error *err;
};

static int hand_out(void *ctx, const struct backend_record *from)
{
        struct walk *w = ctx;
        struct steno_record r;
        if (w->limit && w->count == w->limit)
                return 1;
        w->count++;
        arena_reset(&w->arena);
        int rc = fill(w->conv, from, &w->arena, &r, w->err);
        if (rc)
                return rc;
        w->answer = w->each(w->ctx, &r);
        return w->answer != 0;
}

/* `rc` of the store's walk: negative failed, 1 the caller or the limit ended it. */
static int walk_end(struct walk *w, int rc)
{
        arena_release(&w->arena);
        return rc < 0 ? rc : w->answer;
}

int steno_read(struct steno_conv *conv, uint64_t after_seq, uint64_t limit, steno_record_fn each,
    void *ctx, struct steno_error *err)
{
        struct steno_conv *shown = api_recover_to_read(conv);
        struct walk w = {
            .conv = shown ? shown : conv, .limit = limit, .each = each, .ctx = ctx, .err = err};
        arena_init(&w.arena);
        int rc = walk_end(&w, backend_read(w.conv->backend, after_seq, hand_out, &w, err));
        steno_conv_close(shown);
        return rc;
}

int steno_read_id(struct steno_conv *conv, const char *id, steno_record_fn each, void *ctx,
    struct steno_error *err)
{
        struct walk w = {.conv = conv, .each = each, .ctx = ctx, .err = err};
        arena_init(&w.arena);
        return walk_end(&w, backend_read_id(conv->backend, str_of(id), hand_out, &w, err));
}

int api_record_lookup(struct steno_conv *conv, struct backend_lookup *lookup, uint64_t seq,
    steno_record_fn each, void *ctx, struct steno_error *err)
{
        struct walk w = {.conv = conv, .each = each, .ctx = ctx, .err = err};
        arena_init(&w.arena);
        return walk_end(&w, backend_lookup_record(lookup, seq, hand_out, &w, err));
}

int steno_read_amendments(
    struct steno_conv *conv, steno_record_fn each, void *ctx, struct steno_error *err)
{
        struct walk w = {.conv = conv, .each = each, .ctx = ctx, .err = err};
        arena_init(&w.arena);
        return walk_end(&w, backend_read_amendments(conv->backend, hand_out, &w, err));
}
