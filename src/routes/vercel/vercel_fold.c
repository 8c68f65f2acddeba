/*
 * vercel_fold.c - see vercel_fold.h
 */
#include "routes/vercel/vercel_fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

#define PARTS_MAX 10000
#define ID_SIZE 258

enum part_kind {
        PART_WHOLE, /* as its chunk says it */
        PART_WORDS, /* text or reasoning */
        PART_CALL,
};

struct part {
        enum part_kind kind;
        char type[80]; /* "text", "reasoning"; of a call the tool's name; else the chunk's type */
        char id[ID_SIZE];
        bool done, dynamic;
        const char *state;  /* of a call */
        struct buf body;    /* words, decoded; the part, raw; the input of a call, raw */
        struct buf outcome; /* of a call, raw */
        struct buf opaque;  /* what the provider wants back, raw: signatures */
        bool elsewhere;     /* of a call: the provider runs it itself */
};

struct vercel_fold {
        char id[ID_SIZE];
        struct part *parts;
        size_t count, room;
        struct buf metadata;
        int failed;
};

struct vercel_fold *vercel_fold_new(const char *id)
{
        struct vercel_fold *f = calloc(1, sizeof *f);
        if (!f)
                return NULL;
        snprintf(f->id, sizeof f->id, "%s", id);
        buf_init(&f->metadata, MESSAGE_MAX);
        return f;
}

void vercel_fold_free(struct vercel_fold *f)
{
        if (!f)
                return;
        for (size_t i = 0; i < f->count; i++) {
                buf_release(&f->parts[i].body);
                buf_release(&f->parts[i].outcome);
                buf_release(&f->parts[i].opaque);
        }
        free(f->parts);
        buf_release(&f->metadata);
        free(f);
}

static struct part *add_part(
    struct vercel_fold *f, enum part_kind kind, const char *type, const char *id)
{
        if (f->count == PARTS_MAX) {
                f->failed = STENO_ELIMIT;
                return NULL;
        }
        if (f->count == f->room) {
                size_t room = f->room ? 2 * f->room : 16;
                struct part *list = realloc(f->parts, room * sizeof *list);
                if (!list) {
                        f->failed = STENO_ENOMEM;
                        return NULL;
                }
                f->parts = list;
                f->room = room;
        }
        struct part *p = &f->parts[f->count++];
        *p = (struct part){.kind = kind, .state = "input-streaming"};
        snprintf(p->type, sizeof p->type, "%s", type);
        snprintf(p->id, sizeof p->id, "%s", id);
        buf_init(&p->body, MESSAGE_MAX);
        buf_init(&p->outcome, MESSAGE_MAX);
        buf_init(&p->opaque, MESSAGE_MAX);
        return p;
}

/* The newest part of a kind with this id: ids of text begin anew with each step. */
static struct part *find_part(
    struct vercel_fold *f, enum part_kind kind, const char *type, const char *id)
{
        for (size_t i = f->count; i > 0; i--) {
                struct part *p = &f->parts[i - 1];
                if (p->kind == kind && strcmp(p->id, id) == 0 && !p->done &&
                    (!type || strcmp(p->type, type) == 0))
                        return p;
        }
        return NULL;
}

static void text_of(const struct json *j, const char *key, char *out, size_t size)
{
        struct buf b;
        buf_init(&b, 4 * KIB);
        json_string(j, json_get(j, 0, key), &b, NULL);
        snprintf(out, size, "%.*s", (int)b.n, b.n ? b.p : "");
        buf_release(&b);
}

static void set_raw(struct buf *b, const struct json *j, const char *key)
{
        json_ref v = json_get(j, 0, key);
        buf_clear(b);
        if (v != JSON_NONE)
                buf_put_str(b, json_raw(j, v));
}

static void set_opaque(struct part *p, const struct json *j)
{
        if (p && json_type(j, json_get(j, 0, "providerMetadata")) == JSON_OBJECT)
                set_raw(&p->opaque, j, "providerMetadata");
}

void vercel_fold_keep(struct vercel_fold *f, struct str part)
{
        struct part *p = add_part(f, PART_WHOLE, "", "");
        if (p)
                buf_put_str(&p->body, part);
}

/* ---- chunks ---- */

/* text-start, reasoning-delta, ...: the part's type and what happens to it. */
static bool take_words(struct vercel_fold *f, const struct json *j, const char *type)
{
        char kind[16], id[ID_SIZE];
        const char *dash = strchr(type, '-');
        if (!dash || (strncmp(type, "text-", 5) != 0 && strncmp(type, "reasoning-", 10) != 0))
                return false;
        snprintf(kind, sizeof kind, "%.*s", (int)(dash - type), type);
        text_of(j, "id", id, sizeof id);
        struct part *p = find_part(f, PART_WORDS, kind, id);
        if (strcmp(dash, "-start") == 0)
                p = add_part(f, PART_WORDS, kind, id);
        else if (p && strcmp(dash, "-delta") == 0)
                json_string(j, json_get(j, 0, "delta"), &p->body, NULL);
        else if (p && strcmp(dash, "-end") == 0)
                p->done = true;
        set_opaque(p, j);
        return true;
}

static bool take_call(struct vercel_fold *f, const struct json *j, const char *type)
{
        static const struct {
                const char *type, *state, *outcome;
        } steps[] = {{"tool-input-start", "input-streaming", NULL},
            {"tool-input-delta", NULL, NULL}, {"tool-input-available", "input-available", NULL},
            {"tool-input-error", "output-error", "errorText"},
            {"tool-output-available", "output-available", "output"},
            {"tool-output-error", "output-error", "errorText"},
            {"tool-output-denied", "output-denied", NULL}};
        char id[ID_SIZE], name[80];
        size_t i = 0;
        while (i < sizeof steps / sizeof *steps && strcmp(steps[i].type, type) != 0)
                i++;
        if (i == sizeof steps / sizeof *steps)
                return false;
        text_of(j, "toolCallId", id, sizeof id);
        text_of(j, "toolName", name, sizeof name);
        struct part *p = find_part(f, PART_CALL, NULL, id);
        if (!p)
                p = add_part(f, PART_CALL, name, id);
        if (!p || !steps[i].state)
                return true;
        p->state = steps[i].state;
        p->dynamic = p->dynamic || json_bool(j, json_get(j, 0, "dynamic"), false);
        p->elsewhere = p->elsewhere || json_bool(j, json_get(j, 0, "providerExecuted"), false);
        if (strncmp(type, "tool-input", 10) == 0)
                set_opaque(p, j);
        if (json_get(j, 0, "input") != JSON_NONE)
                set_raw(&p->body, j, "input");
        if (steps[i].outcome)
                set_raw(&p->outcome, j, steps[i].outcome);
        return true;
}

/* Parts that one chunk says whole; data with an id takes the place of the earlier one. */
static void take_whole(struct vercel_fold *f, const struct json *j, const char *type)
{
        char id[ID_SIZE];
        bool data = strncmp(type, "data-", 5) == 0;
        bool known = data || strcmp(type, "file") == 0 || strncmp(type, "source-", 7) == 0;
        if (!known || json_bool(j, json_get(j, 0, "transient"), false))
                return;
        text_of(j, "id", id, sizeof id);
        struct part *p = data && id[0] ? find_part(f, PART_WHOLE, type, id) : NULL;
        if (!p)
                p = add_part(f, PART_WHOLE, type, id);
        if (!p)
                return;
        buf_clear(&p->body);
        buf_put_str(&p->body, json_raw(j, 0));
}

void vercel_fold_take(struct vercel_fold *f, const struct json *j)
{
        char type[80];
        text_of(j, "type", type, sizeof type);
        json_ref metadata = json_get(j, 0, "messageMetadata");
        if (metadata != JSON_NONE)
                set_raw(&f->metadata, j, "messageMetadata");
        if (strcmp(type, "start") == 0 && json_inner(j, json_get(j, 0, "messageId")).n)
                text_of(j, "messageId", f->id, sizeof f->id);
        else if (strcmp(type, "start-step") == 0)
                vercel_fold_keep(f, STR("{\"type\":\"step-start\"}"));
        else if (!take_words(f, j, type) && !take_call(f, j, type))
                take_whole(f, j, type);
}

/* ---- the message ---- */

const char *vercel_fold_id(const struct vercel_fold *f)
{
        return f->id;
}

bool vercel_fold_is_empty(const struct vercel_fold *f)
{
        for (size_t i = 0; i < f->count; i++)
                if (f->parts[i].kind != PART_WHOLE || f->parts[i].type[0])
                        return false;
        return true;
}

static void put_call(struct jsonw *w, const struct part *p)
{
        char type[96];
        snprintf(type, sizeof type, "tool-%s", p->type);
        jsonw_object(w);
        jsonw_field_cstr(w, "type", p->dynamic ? "dynamic-tool" : type);
        if (p->dynamic)
                jsonw_field_cstr(w, "toolName", p->type);
        jsonw_field_cstr(w, "toolCallId", p->id);
        jsonw_field_cstr(w, "state", p->state);
        if (p->body.n)
                jsonw_field_raw(w, "input", buf_str(&p->body));
        if (p->outcome.n)
                jsonw_field_raw(w, strcmp(p->state, "output-error") == 0 ? "errorText" : "output",
                    buf_str(&p->outcome));
        if (p->elsewhere)
                jsonw_field_bool(w, "providerExecuted", true);
        if (p->opaque.n)
                jsonw_field_raw(w, "callProviderMetadata", buf_str(&p->opaque));
        jsonw_object_end(w);
}

static void put_part(struct jsonw *w, const struct part *p)
{
        if (p->kind == PART_WHOLE) {
                jsonw_raw(w, buf_str(&p->body));
        } else if (p->kind == PART_CALL) {
                put_call(w, p);
        } else {
                jsonw_object(w);
                jsonw_field_cstr(w, "type", p->type);
                jsonw_field_str(w, "text", buf_str(&p->body));
                jsonw_field_cstr(w, "state", "done");
                if (strcmp(p->type, "reasoning") == 0)
                        jsonw_field_cstr(w, "id", p->id);
                if (p->opaque.n)
                        jsonw_field_raw(w, "providerMetadata", buf_str(&p->opaque));
                jsonw_object_end(w);
        }
}

int vercel_fold_put(const struct vercel_fold *f, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        int failed = f->failed;
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", f->id);
        jsonw_field_cstr(&w, "role", "assistant");
        if (f->metadata.n)
                jsonw_field_raw(&w, "metadata", buf_str(&f->metadata));
        jsonw_key(&w, "parts");
        jsonw_array(&w);
        for (size_t i = 0; i < f->count; i++) {
                put_part(&w, &f->parts[i]);
                if (!failed)
                        failed = f->parts[i].body.failed ? f->parts[i].body.failed
                                                         : f->parts[i].outcome.failed;
        }
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        return failed ? failed : out->failed;
}
