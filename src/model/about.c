/*
 * about.c - writes and reads the record's `x` object. The member names are part of the log's
 * format: they are short because every record has them, and new ones are only added.
 */
#include "model/about.h"

#include <limits.h>

#include "base/error.h"
#include "base/json.h"
#include "model/token.h"

static void put_text(struct jsonw *w, const char *key, struct str s)
{
        if (!s.n)
                return;
        jsonw_field_str(w, key, s);
}

static void put_number(struct jsonw *w, const char *key, uint64_t v)
{
        if (!v)
                return;
        jsonw_field_u64(w, key, v);
}

static void put_list(struct jsonw *w, const char *key, const struct str *list, size_t count)
{
        if (!count)
                return;
        jsonw_key(w, key);
        jsonw_array(w);
        for (size_t i = 0; i < count; i++)
                jsonw_str(w, list[i]);
        jsonw_array_end(w);
}

static void put_mark(struct jsonw *w, const char *key, bool set)
{
        if (!set)
                return;
        jsonw_field_bool(w, key, true);
}

static void put_parts(struct jsonw *w, const struct about *a)
{
        if (!a->part_count)
                return;
        jsonw_key(w, "parts");
        jsonw_array(w);
        for (size_t i = 0; i < a->part_count; i++) {
                jsonw_array(w);
                jsonw_u64(w, a->parts[i].at);
                jsonw_u64(w, a->parts[i].size);
                jsonw_str(w, a->parts[i].name);
                jsonw_array_end(w);
        }
        jsonw_array_end(w);
}

/* Leaves out numbers that are 0 and strings that are empty. */
static void put_outs(struct jsonw *w, const struct about *a)
{
        if (!a->out_count)
                return;
        jsonw_key(w, "outs");
        jsonw_array(w);
        for (size_t i = 0; i < a->out_count; i++) {
                const struct about_out *o = &a->outs[i];
                jsonw_object(w);
                jsonw_field_u64(w, "at", o->at);
                jsonw_field_u64(w, "len", o->len);
                put_text(w, "ref", o->ref);
                put_text(w, "sha", o->ref_sha);
                put_number(w, "bytes", o->ref_size);
                put_text(w, "mime", o->mime);
                put_text(w, "hint", o->hint);
                put_text(w, "call", o->call);
                put_number(w, "from", o->from);
                put_number(w, "size", o->size);
                put_mark(w, "value", o->value);
                put_text(w, "part", o->part);
                put_number(w, "token", o->part_size);
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

void about_write(const struct about *a, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        /* `kind` or `len` must be the first member: code that walks a log looks for it only
         * there. */
        put_text(&w, "kind", a->kind);
        put_number(&w, "len", a->length);
        put_number(&w, "plain", a->plain);
        put_text(&w, "target", a->target);
        put_text(&w, "role", a->role);
        put_list(&w, "calls", a->calls, a->call_count);
        put_list(&w, "answers", a->answers, a->answer_count);
        put_text(&w, "mode", a->mode);
        put_text(&w, "run", a->run);
        put_text(&w, "ref", a->ref);
        put_text(&w, "refsha", a->ref_sha);
        put_list(&w, "refs", a->refs, a->ref_count);
        put_list(&w, "refshas", a->ref_shas, a->ref_shas ? a->ref_count : 0);
        put_outs(&w, a);
        put_number(&w, "of", a->of);
        put_text(&w, "via", a->via);
        put_number(&w, "after", a->after);
        put_text(&w, "own_id", a->own_id);
        put_text(&w, "source", a->source);
        put_text(&w, "key", a->key);
        put_number(&w, "prev", a->prev);
        put_text(&w, "sha", a->sha);
        put_parts(&w, a);
        put_mark(&w, "own", a->own_fields);
        put_mark(&w, "off", a->off_context);
        put_mark(&w, "error", a->error);
        put_mark(&w, "orphan", a->orphan);
        put_mark(&w, "duplicate", a->duplicate);
        put_mark(&w, "keep", a->keep_output);
        put_mark(&w, "inline", a->inlined);
        put_mark(&w, "lost", a->lost);
        put_mark(&w, "recovered", a->recovered);
        put_text(&w, "leaf", a->leaf);
        put_text(&w, "salt", a->salt);
        jsonw_object_end(&w);
}

/* ---- reading ---- */

struct reader {
        const struct json *j;
        struct arena *arena;
        const char *bad; /* the first member that has a wrong type */
};

static void get_text(struct reader *r, json_ref v, const char *key, struct str *out)
{
        if (json_type(r->j, v) != JSON_STRING)
                r->bad = key;
        else
                *out = token_text(r->j, v, r->arena);
}

static void get_list(
    struct reader *r, json_ref v, const char *key, struct str **list, size_t *count)
{
        if (json_type(r->j, v) != JSON_ARRAY) {
                r->bad = key;
                return;
        }
        uint32_t n = json_count(r->j, v);
        struct str *to = arena_zalloc(r->arena, n * sizeof *to);
        if (!to)
                return;
        size_t i = 0;
        for (json_ref e = json_child(r->j, v); e != JSON_NONE; e = json_next(r->j, v, e))
                get_text(r, e, key, &to[i++]);
        *list = to;
        *count = n;
}

static void get_parts(struct reader *r, json_ref v, struct about *out)
{
        if (json_type(r->j, v) != JSON_ARRAY) {
                r->bad = "parts";
                return;
        }
        uint32_t n = json_count(r->j, v);
        struct about_part *to = arena_zalloc(r->arena, n * sizeof *to);
        if (!to)
                return;
        size_t i = 0;
        for (json_ref e = json_child(r->j, v); e != JSON_NONE; e = json_next(r->j, v, e), i++) {
                if (!json_u64(r->j, json_at(r->j, e, 0), &to[i].at) ||
                    !json_u64(r->j, json_at(r->j, e, 1), &to[i].size))
                        r->bad = "parts";
                get_text(r, json_at(r->j, e, 2), "parts", &to[i].name);
        }
        out->parts = to;
        out->part_count = n;
}

static void get_out(struct reader *r, json_ref e, struct about_out *to)
{
        const struct {
                const char *key;
                uint64_t *to;
        } numbers[] = {{"at", &to->at}, {"len", &to->len}, {"bytes", &to->ref_size},
            {"from", &to->from}, {"size", &to->size}, {"token", &to->part_size}};
        const struct {
                const char *key;
                struct str *to;
        } texts[] = {{"ref", &to->ref}, {"sha", &to->ref_sha}, {"mime", &to->mime},
            {"hint", &to->hint}, {"call", &to->call}, {"part", &to->part}};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
                json_ref v = json_get(r->j, e, numbers[i].key);
                if (v != JSON_NONE && !json_u64(r->j, v, numbers[i].to))
                        r->bad = "outs";
        }
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                json_ref v = json_get(r->j, e, texts[i].key);
                if (v != JSON_NONE)
                        get_text(r, v, "outs", texts[i].to);
        }
        to->value = json_bool(r->j, json_get(r->j, e, "value"), false);
}

static void get_outs(struct reader *r, json_ref v, struct about *out)
{
        if (json_type(r->j, v) != JSON_ARRAY) {
                r->bad = "outs";
                return;
        }
        uint32_t n = json_count(r->j, v);
        struct about_out *to = arena_zalloc(r->arena, n * sizeof *to);
        if (!to)
                return;
        size_t i = 0;
        for (json_ref e = json_child(r->j, v); e != JSON_NONE; e = json_next(r->j, v, e), i++) {
                get_out(r, e, &to[i]);
                if (i && to[i].at < to[i - 1].at + to[i - 1].len)
                        r->bad = "outs";
        }
        out->outs = to;
        out->out_count = n;
}

static bool get_string_member(struct reader *r, json_ref key, json_ref v, struct about *out)
{
        const struct {
                const char *key;
                struct str *to;
        } texts[] = {{"role", &out->role}, {"id", &out->id}, {"mode", &out->mode},
            {"run", &out->run}, {"ref", &out->ref}, {"kind", &out->kind}, {"target", &out->target},
            {"key", &out->key}, {"sha", &out->sha}, {"refsha", &out->ref_sha},
            {"own_id", &out->own_id}, {"source", &out->source}, {"via", &out->via},
            {"leaf", &out->leaf}, {"salt", &out->salt}};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                if (!json_is(r->j, key, texts[i].key))
                        continue;
                get_text(r, v, texts[i].key, texts[i].to);
                return true;
        }
        return false;
}

static void get_mark(struct reader *r, json_ref key, json_ref v, struct about *out)
{
        const struct {
                const char *key;
                bool *to;
        } marks[] = {{"own", &out->own_fields}, {"off", &out->off_context}, {"error", &out->error},
            {"orphan", &out->orphan}, {"duplicate", &out->duplicate}, {"keep", &out->keep_output},
            {"inline", &out->inlined}, {"lost", &out->lost}, {"recovered", &out->recovered}};
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
                if (json_is(r->j, key, marks[i].key))
                        *marks[i].to = json_bool(r->j, v, false);
}

static void get_rule(const struct json *j, json_ref v, struct about *out)
{
        uint64_t rule;
        if (json_u64(j, v, &rule) && rule <= UINT_MAX)
                out->plain = (unsigned)rule;
}

static void get_members(struct reader *r, struct about *out)
{
        const struct json *j = r->j;
        size_t sums = 0;
        for (json_ref key = json_child(j, 0); key != JSON_NONE; key = json_next_key(j, 0, key)) {
                json_ref v = json_value(j, key);
                if (get_string_member(r, key, v, out))
                        continue;
                if (json_is(j, key, "calls"))
                        get_list(r, v, "calls", &out->calls, &out->call_count);
                else if (json_is(j, key, "answers"))
                        get_list(r, v, "answers", &out->answers, &out->answer_count);
                else if (json_is(j, key, "refs"))
                        get_list(r, v, "refs", &out->refs, &out->ref_count);
                else if (json_is(j, key, "refshas"))
                        get_list(r, v, "refshas", &out->ref_shas, &sums);
                else if (json_is(j, key, "parts"))
                        get_parts(r, v, out);
                else if (json_is(j, key, "outs"))
                        get_outs(r, v, out);
                else if (json_is(j, key, "of"))
                        json_u64(j, v, &out->of);
                else if (json_is(j, key, "after"))
                        json_u64(j, v, &out->after);
                else if (json_is(j, key, "prev"))
                        json_u64(j, v, &out->prev);
                else if (json_is(j, key, "len"))
                        json_u64(j, v, &out->length);
                else if (json_is(j, key, "plain"))
                        get_rule(j, v, out);
                else
                        get_mark(r, key, v, out);
        }
        if (sums != out->ref_count)
                out->ref_shas = NULL;
}

int about_read(struct str json, struct arena *arena, struct about *out, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        struct steno_error why = {0};
        int rc = json_parse(&j, json.p, json.n, NULL, &why);
        if (rc == STENO_ENOMEM) {
                error_nomem(err);
                goto out;
        }
        if (rc || json_type(&j, 0) != JSON_OBJECT) {
                rc = error_set(err, STENO_ECORRUPT, "x is not an object: %s", why.msg);
                goto out;
        }
        struct reader r = {&j, arena, NULL};
        struct about a = {0};
        get_members(&r, &a);
        if (arena->failed)
                rc = error_nomem(err);
        else if (r.bad)
                rc = error_set(err, STENO_ECORRUPT, "x.%s is not of its type", r.bad);
        else
                *out = a;
out:
        json_release(&j);
        return rc;
}

bool about_key(struct str json, struct str *key)
{
        /* In a string the quotes would be escaped, so this text can only be the member. */
        static const char MEMBER[] = "\"key\":\"";
        const char *at = memmem(json.p, json.n, MEMBER, sizeof MEMBER - 1);
        if (!at)
                return false;
        const char *start = at + sizeof MEMBER - 1;
        const char *p = start;
        const char *end = json.p + json.n;
        while (p < end && *p != '"')
                p += *p == '\\' ? 2 : 1;
        if (p >= end)
                return false;
        *key = str_span(start, (size_t)(p - start));
        return true;
}

bool about_without_key(struct str json, struct buf *out)
{
        static const char MEMBER[] = ",\"key\":\"";
        struct str key;
        if (!about_key(json, &key))
                return false;
        /* `key` is never the first member, because `kind` or `len` is. */
        const char *from = key.p - (sizeof MEMBER - 1);
        if (from <= json.p || memcmp(from, MEMBER, sizeof MEMBER - 1) != 0)
                return false;
        buf_put(out, json.p, (size_t)(from - json.p));
        const char *behind = key.p + key.n + 1;
        buf_put(out, behind, (size_t)(json.p + json.n - behind));
        return true;
}

bool about_is_lost(struct str json)
{
        static const char MEMBER[] = ",\"lost\":true";
        return str_starts(json, "{\"kind\":\"tombstone\"") &&
               memmem(json.p, json.n, MEMBER, sizeof MEMBER - 1);
}

/* ---- what a message refers to ---- */

const struct about_out *about_out_at(const struct about *a, size_t slot)
{
        size_t first = 1 + a->ref_count;
        if (slot < first || slot - first >= a->out_count)
                return NULL;
        const struct about_out *o = &a->outs[slot - first];
        for (const struct about_out *e = o; e-- > a->outs;)
                if (str_eq(e->ref, o->ref))
                        return NULL; /* another piece of the same artifact */
        return o->ref.n && !str_eq(o->ref, a->ref) ? o : NULL;
}

struct str about_ref_at(const struct about *a, size_t slot)
{
        if (slot <= a->ref_count)
                return slot ? a->refs[slot - 1] : a->ref;
        const struct about_out *o = about_out_at(a, slot);
        return o ? o->ref : (struct str){0};
}

struct about_part about_part_at(const struct about *a, size_t slot)
{
        if (slot < a->part_count)
                return a->parts[slot];
        const struct about_out *o = &a->outs[slot - a->part_count];
        return (struct about_part){.size = o->part_size, .name = o->part};
}
