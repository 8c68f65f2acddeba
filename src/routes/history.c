/* history.c - see history.h */
#include "routes/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

/* How many records a backward walk reads at a time. */
#define CHUNK 64

struct history_entry {
        struct history_entry *next;
        const char *id;
        bool deleted;
        const char *by;   /* id of the record that supersedes it */
        const char *meta; /* merged patches, newest first wins */
};

/* ---- amendments ---- */

static struct history_entry *find(const struct history *h, const char *id)
{
        for (struct history_entry *e = h->amended; e; e = e->next)
                if (strcmp(e->id, id) == 0)
                        return e;
        return NULL;
}

/* Members of `newer` and those of `older` that it does not name; null removes. */
static const char *merge(struct arena *arena, const char *newer, const char *older)
{
        struct json a, b;
        struct buf out;
        struct str copy = {0};
        json_init(&a);
        json_init(&b);
        buf_init(&out, 0);
        if (json_parse(&a, newer, strlen(newer), NULL, NULL) == 0 &&
            json_parse(&b, older, strlen(older), NULL, NULL) == 0) {
                struct jsonw w = jsonw_to(&out);
                jsonw_object(&w);
                for (json_ref k = json_child(&b, 0); k != JSON_NONE; k = json_next_key(&b, 0, k)) {
                        char *name = json_dup_string(&b, k);
                        bool kept = name && json_get(&a, 0, name) == JSON_NONE;
                        if (kept) {
                                jsonw_key_str(&w, str_of(name));
                                jsonw_raw(&w, json_raw(&b, json_value(&b, k)));
                        }
                        free(name);
                }
                for (json_ref k = json_child(&a, 0); k != JSON_NONE; k = json_next_key(&a, 0, k)) {
                        char *name = json_dup_string(&a, k);
                        if (name) {
                                jsonw_key_str(&w, str_of(name));
                                jsonw_raw(&w, json_raw(&a, json_value(&a, k)));
                        }
                        free(name);
                }
                jsonw_object_end(&w);
                copy = arena_dup(arena, buf_str(&out));
        }
        json_release(&a);
        json_release(&b);
        buf_release(&out);
        return copy.p;
}

static int note(void *ctx, const struct steno_record *r)
{
        struct history *h = ctx;
        const char *kind = steno_record_kind(r);
        const char *target = steno_record_target(r);
        if (!*target)
                return 0;
        struct history_entry *e = find(h, target);
        if (!e) {
                e = arena_zalloc(&h->arena, sizeof *e);
                if (!e)
                        return STENO_ENOMEM;
                e->id = arena_dup(&h->arena, str_of(target)).p;
                e->next = h->amended;
                h->amended = e;
        }
        if (strcmp(kind, "delete") == 0) {
                e->deleted = true;
        } else if (strcmp(kind, "supersede") == 0 && !e->by) {
                e->by = arena_dup(&h->arena, str_of(steno_record_id(r))).p;
        } else if (strcmp(kind, "meta") == 0) {
                char *json;
                size_t n;
                if (steno_record_message(r, &json, &n, NULL) == 0) {
                        struct str copy = arena_dup(&h->arena, str_span(json, n));
                        e->meta = e->meta && copy.p ? merge(&h->arena, e->meta, copy.p) : copy.p;
                        steno_free(json);
                }
        }
        return h->arena.failed;
}

/* A null hides what an older patch said. When all of them are merged, it has done its work. */
static const char *without_nulls(struct arena *arena, const char *meta)
{
        struct json j;
        struct buf out;
        const char *copy = meta;
        json_init(&j);
        buf_init(&out, 0);
        if (json_parse(&j, meta, strlen(meta), NULL, NULL) == 0) {
                struct jsonw w = jsonw_to(&out);
                jsonw_object(&w);
                for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k))
                        if (json_type(&j, json_value(&j, k)) != JSON_NULL)
                                jsonw_copy_member(&w, &j, k);
                jsonw_object_end(&w);
                copy = arena_dup(arena, buf_str(&out)).p;
        }
        json_release(&j);
        buf_release(&out);
        return copy;
}

int history_open(struct history *h, struct steno_conv *conv, struct steno_error *err)
{
        *h = (struct history){.conv = conv};
        arena_init(&h->arena);
        int rc = steno_read_amendments(conv, note, h, err);
        for (struct history_entry *e = rc ? NULL : h->amended; e; e = e->next)
                if (e->meta)
                        e->meta = without_nulls(&h->arena, e->meta);
        if (rc == 0)
                rc = steno_conv_last_seq(conv, &h->last_seq, err);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        if (rc)
                history_close(h);
        return rc;
}

bool history_is_deleted(const struct history *h, const char *id)
{
        const struct history_entry *e = find(h, id);
        return e && e->deleted;
}

int history_outputs(struct history *h, const char *outputs, struct steno_error *err)
{
        int set;
        if (outputs && *outputs) {
                h->stubs = strcmp(outputs, "stub") == 0;
                return h->stubs || strcmp(outputs, "full") == 0
                           ? 0
                           : error_set(err, STENO_EINVAL, "outputs must be stub or full");
        }
        int rc = steno_conv_outputs(h->conv, &set, err);
        if (rc == 0)
                h->stubs = set == STENO_OUTPUTS_STUB;
        return rc;
}

void history_close(struct history *h)
{
        arena_release(&h->arena);
}

/* ---- walking ---- */

struct walk {
        struct history *h;
        const char *format;
        history_fn each;
        void *ctx;
        struct steno_error *err;
        uint64_t before;               /* 0: no bound */
        const struct history_item *as; /* a superseding record stands for this one */
        const char *meta;
};

static int hand_out(struct walk *w, const struct steno_record *r, const struct history_entry *e)
{
        char *json;
        size_t n;
        int rc = w->h->stubs ? steno_record_as(r, w->format, &json, &n, w->err)
                             : steno_record_whole(r, w->format, &json, &n, w->err);
        if (rc)
                return rc;
        struct history_item item = {.seq = w->as ? w->as->seq : steno_record_seq(r),
            .id = w->as ? w->as->id : steno_record_id(r),
            .at = w->as ? w->as->at : steno_record_at(r),
            .json = json,
            .n = n,
            .meta = w->as ? w->meta
                    : e   ? e->meta
                          : NULL,
            .format = steno_record_format(r),
            .conv = w->h->conv};
        rc = w->each(w->ctx, &item);
        steno_free(json);
        return rc;
}

static int hand_out_superseding(void *ctx, const struct steno_record *r)
{
        return hand_out(ctx, r, NULL);
}

static int visit(void *ctx, const struct steno_record *r)
{
        struct walk *w = ctx;
        if (w->before && steno_record_seq(r) >= w->before)
                return 1;
        struct history_entry *e = w->h->amended ? find(w->h, steno_record_id(r)) : NULL;
        if (e && e->deleted)
                return 0;
        /* A message that replaces another one is shown in its place, even if the bytes of the
         * original were purged. */
        bool place = e && e->by && strcmp(steno_record_kind(r), "tombstone") == 0;
        if (!place && strcmp(steno_record_kind(r), "message") != 0)
                return 0;
        if (!e || !e->by)
                return hand_out(w, r, e);
        struct history_item as = {
            .seq = steno_record_seq(r), .id = steno_record_id(r), .at = steno_record_at(r)};
        struct walk inner = *w;
        inner.as = &as;
        inner.meta = e->meta;
        return steno_read_id(w->h->conv, e->by, hand_out_superseding, &inner, w->err);
}

int history_forward(struct history *h, uint64_t after, const char *format, history_fn each,
    void *ctx, struct steno_error *err)
{
        struct walk w = {.h = h, .format = format, .each = each, .ctx = ctx, .err = err};
        return steno_read(h->conv, after, 0, visit, &w, err);
}

/* A chunk of a backward walk, kept until it is handed out from its end. */
struct chunk {
        struct history_item *items;
        size_t count;
        struct arena arena;
};

static int keep(void *ctx, const struct history_item *item)
{
        struct chunk *c = ctx;
        struct history_item *k = &c->items[c->count++];
        *k = *item;
        k->id = arena_dup(&c->arena, str_of(item->id)).p;
        k->at = arena_dup(&c->arena, str_of(item->at)).p;
        k->json = arena_dup(&c->arena, str_span(item->json, item->n)).p;
        k->meta = item->meta ? arena_dup(&c->arena, str_of(item->meta)).p : NULL;
        k->format = arena_dup(&c->arena, str_of(item->format)).p;
        return c->arena.failed;
}

int history_backward(struct history *h, uint64_t before, const char *format, history_fn each,
    void *ctx, struct steno_error *err)
{
        uint64_t end = before ? before : h->last_seq + 1;
        struct history_item items[CHUNK];
        int rc = 0;
        while (end > 1 && rc == 0) {
                uint64_t from = end - 1 > CHUNK ? end - 1 - CHUNK : 0;
                struct chunk c = {.items = items};
                struct walk w = {
                    .h = h, .format = format, .each = keep, .ctx = &c, .err = err, .before = end};
                arena_init(&c.arena);
                rc = steno_read(h->conv, from, 0, visit, &w, err);
                rc = rc == 1 ? 0 : rc;
                while (rc == 0 && c.count > 0)
                        rc = each(ctx, &c.items[--c.count]);
                arena_release(&c.arena);
                end = from + 1;
        }
        return rc;
}

int history_find(struct history *h, const char *id, const char *format, history_fn each, void *ctx,
    struct steno_error *err)
{
        struct walk w = {.h = h, .format = format, .each = each, .ctx = ctx, .err = err};
        struct history_entry *e = find(h, id);
        if (e && e->deleted)
                return error_set(err, STENO_ENOTFOUND, "no message \"%.100s\"", id);
        return steno_read_id(h->conv, id, visit, &w, err);
}
