/*
 * context_json.c - the JSON of an output, one level at a time: the children of a value, and where
 * they are.
 *
 *   J1  Nothing is changed: keys and values keep their spelling, and every child has its place in
 *       bytes, so that read and raw give the rest.
 *   J2  An answer has a maximum size for any text, and so has the memory that it takes to make it.
 *   J3  Continuing from next_cursor reads no byte twice.
 */
#include "api/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "output/level.h"

/* What is asked for. */
struct question {
        uint64_t at;            /* where the value begins, or where to go on */
        uint64_t from;          /* the first child that is wanted */
        uint64_t limit;         /* how many */
        enum level_type inside; /* of a cursor: what it is in; LEVEL_NOTHING without one */
};

struct answer {
        const struct question *q;
        struct jsonw w;
        uint64_t given;
};

/* ---- the question ---- */

/* "a100.7" and "o100.7": in an array or an object, at byte 100, with child 7. */
static bool read_cursor(const char *text, struct question *q)
{
        unsigned long long at, index;
        char kind, more;
        if (sscanf(text, "%c%19llu.%19llu%c", &kind, &at, &index, &more) != 3 ||
            (kind != 'a' && kind != 'o'))
                return false;
        q->inside = kind == 'a' ? LEVEL_ARRAY : LEVEL_OBJECT;
        q->at = at;
        q->from = index;
        return true;
}

static int take_cursor(const struct json *args, struct question *q, struct steno_error *err)
{
        struct buf text;
        json_ref v = json_get(args, 0, "cursor");
        if (v == JSON_NONE || json_type(args, v) == JSON_NULL)
                return 0;
        buf_init(&text, 4 * KIB);
        bool good = json_string(args, v, &text, NULL) && buf_cstr(&text) && read_cursor(text.p, q);
        buf_release(&text);
        return good ? 0
                    : error_set(err, STENO_EPROTO, "cursor must be the next_cursor of an answer");
}

static int take_question(
    const struct json *args, struct question *q, struct buf *said, struct steno_error *err)
{
        const struct context_range any = {0, 0, UINT64_MAX >> 1};
        *q = (struct question){0};
        int rc = context_number(args, "at", any, said, &q->at, err);
        if (rc == 0)
                rc = context_number(args, "from", any, said, &q->from, err);
        if (rc == 0)
                rc = context_number(args, "limit",
                    (struct context_range){CONTEXT_JSON_DEFAULT, 1, CONTEXT_JSON_MAX}, said,
                    &q->limit, err);
        return rc ? rc : take_cursor(args, q, err);
}

/* ---- the answer ---- */

/* Without a character at the end that was cut. */
static struct str whole_characters(struct str s)
{
        size_t valid = text_utf8_prefix(s.p, s.n);
        return str_span(s.p, s.n - valid < 4 ? valid : s.n);
}

/* A key is a JSON string already, and stands here as it stands there. One that is very long, or no
 * UTF-8, is given as text, with its place. */
static void put_key(struct jsonw *w, const struct level_child *c)
{
        struct buf text;
        bool whole = c->key_bytes == c->key.n;
        if (whole && text_is_utf8(c->key.p, c->key.n)) {
                jsonw_key(w, "key");
                buf_put_str(jsonw_value(w), c->key);
                return;
        }
        buf_init(&text, 0);
        text_put_escaped(&text, whole ? c->key : whole_characters(c->key));
        if (text.failed)
                w->b->failed = text.failed;
        jsonw_field_str(w, "key_content", buf_str(&text));
        jsonw_field_u64(w, "key_offset", c->key_offset);
        jsonw_field_u64(w, "key_bytes", c->key_bytes);
        buf_release(&text);
}

static int put_child(void *ctx, const struct level_child *c)
{
        struct answer *a = ctx;
        if (c->index < a->q->from)
                return 0;
        struct str head = c->head;
        if (head.n < c->bytes)
                head = whole_characters(head);
        bool plain = text_is_utf8(head.p, head.n);
        jsonw_object(&a->w);
        if (c->key_bytes)
                put_key(&a->w, c);
        jsonw_field_cstr(&a->w, "type", level_type_name(c->type));
        jsonw_field_u64(&a->w, "offset", c->offset);
        jsonw_field_u64(&a->w, "bytes", c->bytes);
        context_put_content(&a->w, "content", head, plain ? CONTEXT_TEXT : CONTEXT_ESCAPED);
        jsonw_object_end(&a->w);
        return ++a->given >= a->q->limit || a->w.b->n >= CONTEXT_JSON_ANSWER;
}

static int walk(struct context_file *f, struct level *l, const struct context_watch *watch,
    struct steno_error *err)
{
        size_t room = 256 * KIB;
        uint64_t first = l->pos;
        char *block = malloc(room);
        int rc = block ? 0 : error_nomem(err);
        while (rc == 0 && l->state == LEVEL_MORE && l->pos < f->size) {
                size_t n = f->size - l->pos < room ? (size_t)(f->size - l->pos) : room;
                rc = context_read_at(f, l->pos, block, n, err);
                if (rc == 0)
                        level_feed(l, block, n);
                if (rc == 0 && watch->progress &&
                    watch->progress(watch->ctx, "json", l->pos - first, f->size - first))
                        rc = error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
        }
        free(block);
        if (rc == 0 && level_failed(l))
                rc = error_nomem(err);
        return rc;
}

/* What is not JSON, or less than one value. Of an output that still grows there is what there is.
 */
static int judge(const struct context_file *f, struct level *l, struct steno_error *err)
{
        enum level_state s = level_finish(l);
        if (s == LEVEL_BAD)
                return error_set(err, STENO_EUNSUPPORTED,
                    "%s is not JSON at byte %llu, or is nested more than %d deep; read and raw "
                    "give "
                    "it as it is",
                    f->info.id, (unsigned long long)l->pos - 1, JSON_DEPTH_MAX);
        if (s == LEVEL_MORE && f->info.state != ARTIFACT_OPEN)
                return error_set(err, STENO_EUNSUPPORTED,
                    "%s is not JSON: it ends at byte %llu, before the value does; read and raw "
                    "give "
                    "it as it is",
                    f->info.id, (unsigned long long)f->size);
        return 0;
}

static void put_end(struct jsonw *w, const struct question *q, const struct level *l)
{
        bool ended = l->state == LEVEL_DONE;
        bool resumed = q->inside != LEVEL_NOTHING;
        jsonw_field_cstr(w, "type", level_type_name(l->type));
        if (!resumed)
                jsonw_field_u64(w, "offset", l->start);
        if (ended && !resumed)
                jsonw_field_u64(w, "bytes", l->end - l->start);
        if (ended && (l->type == LEVEL_OBJECT || l->type == LEVEL_ARRAY))
                jsonw_field_u64(w, "count", l->child.index);
        jsonw_key(w, "next_cursor");
        if (l->state == LEVEL_STOPPED) {
                char cursor[48];
                snprintf(cursor, sizeof cursor, "%c%llu.%llu", l->type == LEVEL_ARRAY ? 'a' : 'o',
                    (unsigned long long)l->pos, (unsigned long long)l->child.index);
                jsonw_cstr(w, cursor);
        } else {
                jsonw_null(w);
        }
}

static int answer(struct context_file *f, const struct question *q,
    const struct context_watch *watch, struct buf *said, struct buf *out, struct steno_error *err)
{
        struct answer a = {.q = q, .w = jsonw_to(out)};
        struct level l;
        level_init(&l, q->at, CONTEXT_JSON_HEAD, put_child, &a);
        if (q->inside != LEVEL_NOTHING)
                level_resume(&l, q->at, q->inside, q->from);
        jsonw_object(&a.w);
        jsonw_key(&a.w, "items");
        jsonw_array(&a.w);
        int rc = walk(f, &l, watch, err);
        jsonw_array_end(&a.w);
        if (rc == 0)
                rc = judge(f, &l, err);
        if (rc == 0) {
                put_end(&a.w, q, &l);
                jsonw_field_u64(&a.w, "total_bytes", f->size);
                context_put_state(&a.w, f, said);
                context_put_notes(&a.w, said);
                jsonw_object_end(&a.w);
        }
        level_release(&l);
        return rc;
}

int context_json(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err)
{
        struct context_file f;
        struct question q;
        struct buf said;
        int rc = context_open_ref(shelf, args, &f, err);
        if (rc)
                return rc;
        buf_init(&said, 4 * KIB);
        rc = take_question(args, &q, &said, err);
        if (rc == 0)
                rc = answer(&f, &q, watch, &said, out, err);
        buf_release(&said);
        context_close(&f);
        return rc;
}
