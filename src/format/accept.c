/* accept.c - see accept.h. This file has what the providers' rules share. */
#include "format/accept.h"
#include "format/spelling.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "model/token.h"

void accept_fail(
    struct check *c, const char *rule, size_t message, struct str call, const char *fmt, ...)
{
        char text[240];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);

        jsonw_object(c->out);
        jsonw_field_cstr(c->out, "rule", rule);
        jsonw_field_u64(c->out, "message", message);
        if (call.p) {
                jsonw_field_str(c->out, "call", call);
        }
        jsonw_field_cstr(c->out, "text", text);
        jsonw_object_end(c->out);
        c->found++;
}

struct str accept_text(struct check *c, json_ref r)
{
        return token_text(c->j, r, c->arena);
}

bool accept_says_something(struct check *c, json_ref r)
{
        struct str s = accept_text(c, r);
        for (size_t i = 0; i < s.n;) {
                bool space;
                bool control = (unsigned char)s.p[i] < ' ' && !strchr("\t\r\n\v\f", s.p[i]);
                i += rules_next(s, i, &space);
                if (!space || control || s.p[i - 1] == '\0')
                        return true;
        }
        return false;
}

static bool ids_grow(struct check *c, struct check_ids *ids)
{
        size_t cap = ids->cap ? ids->cap * 2 : 16;
        struct check_id *list = arena_alloc(c->arena, cap * sizeof *list);
        uint32_t *slots = arena_zalloc(c->arena, cap * 2 * sizeof *slots);
        if (!list || !slots)
                return false;
        if (ids->count)
                memcpy(list, ids->list, ids->count * sizeof *list);
        ids->list = list;
        ids->cap = cap;
        ids->slots = slots;
        ids->slot_count = cap * 2;
        for (size_t i = 0; i < ids->count; i++) {
                size_t at = hash_64(list[i].id.p, list[i].id.n) & (ids->slot_count - 1);
                while (slots[at])
                        at = (at + 1) & (ids->slot_count - 1);
                slots[at] = (uint32_t)i + 1;
        }
        return true;
}

struct check_id *accept_ids_find(const struct check_ids *ids, struct str id)
{
        if (!ids->count)
                return NULL;
        size_t at = hash_64(id.p, id.n) & (ids->slot_count - 1);
        for (; ids->slots[at]; at = (at + 1) & (ids->slot_count - 1)) {
                struct check_id *e = &ids->list[ids->slots[at] - 1];
                if (str_eq(e->id, id))
                        return e;
        }
        return NULL;
}

struct check_id *accept_ids_put(struct check *c, struct check_ids *ids, struct str id, bool *fresh)
{
        struct check_id *e = accept_ids_find(ids, id);
        *fresh = !e;
        if (e)
                return e;
        if (ids->count == ids->cap && !ids_grow(c, ids))
                return NULL;
        size_t at = hash_64(id.p, id.n) & (ids->slot_count - 1);
        while (ids->slots[at])
                at = (at + 1) & (ids->slot_count - 1);
        e = &ids->list[ids->count++];
        *e = (struct check_id){.id = id};
        ids->slots[at] = (uint32_t)ids->count;
        return e;
}

void accept_ids_clear(struct check_ids *ids)
{
        if (ids->count)
                memset(ids->slots, 0, ids->slot_count * sizeof *ids->slots);
        ids->count = 0;
}

/* ---- checks by the provider's table ---- */

struct at {
        struct check *c;
        size_t message;
};

static void tell_type(void *ctx, const char *rule, const char *path, const char *text)
{
        struct at *at = ctx;
        accept_fail(
            at->c, rule, at->message, (struct str){0}, "%s%s%s", path, *path ? ": " : "", text);
}

static void check_types(struct check *c, json_ref list)
{
        struct at at = {c, 0};
        for (json_ref m = json_child(c->j, list); m != JSON_NONE; m = json_next(c->j, list, m)) {
                rules_check(c->rules, c->rules->message, c->j, m, tell_type, &at);
                if (rules_has_lone(json_raw(c->j, m)))
                        accept_fail(c, "lone_surrogate", at.message, (struct str){0},
                            "a string holds half of a surrogate pair");
                at.message++;
        }
}

void accept_name(struct check *c, size_t message, json_ref name, struct str call)
{
        if (json_type(c->j, name) == JSON_STRING && !rules_is_name(c->rules, accept_text(c, name)))
                accept_fail(c, "tool_name", message, call,
                    "the name of a tool is up to %zu letters, digits, _ and -", c->rules->name_max);
}

void accept_call_id(struct check *c, size_t message, json_ref id)
{
        struct str text = accept_text(c, id);
        if (json_type(c->j, id) == JSON_STRING && !rules_is_id(c->rules, text))
                accept_fail(c, "call_id", message, text,
                    "the id of a call is empty, too long, or has characters that are not accepted");
}

/* Splits "data:TYPE;base64,DATA"; false: the URL is not of this form. */
static bool split_data(struct str url, struct str *type, struct str *data)
{
        static const char MARK[] = ";base64,";
        const char *at = str_starts(url, "data:") ? memmem(url.p, url.n, MARK, 8) : NULL;
        if (!at)
                return false;
        const char *semicolon = memchr(url.p, ';', url.n);
        *type = str_span(url.p + 5, (size_t)(semicolon - url.p) - 5);
        *data = str_span(at + 8, (size_t)(url.p + url.n - at) - 8);
        return true;
}

bool accept_is_image(const struct check *c, struct str url)
{
        struct str type, data;
        if (!split_data(url, &type, &data))
                return rules_is_address(url, c->rules->https_only);
        const char *real = rules_image_type(data);
        return rules_is_media(c->rules->images, type) && rules_is_base64(data) &&
               (!real || str_is(type, real));
}

bool accept_is_file(struct str url)
{
        struct str type, data;
        return split_data(url, &type, &data) && type.n && rules_is_base64(data);
}

static const struct {
        const char *name;
        const char *member;
        void (*run)(struct check *c, json_ref list);
} PROVIDERS[] = {
    {"openai", "messages", accept_openai},
    {"responses", "input", accept_responses},
    {"anthropic", "messages", accept_anthropic},
    {"gemini", "contents", accept_gemini},
};

/* The rules compare words, so the history is checked without escapes in them. */
int accept_history(
    const char *provider, const struct json *spelled, struct buf *out, struct steno_error *err)
{
        const size_t n = sizeof PROVIDERS / sizeof *PROVIDERS;
        size_t i = 0;
        while (i < n && !(provider && strcmp(PROVIDERS[i].name, provider) == 0))
                i++;
        if (i == n)
                return error_set(err, STENO_EINVAL,
                    "provider \"%s\" is not one of openai, responses, anthropic, gemini",
                    provider ? provider : "");

        struct arena arena;
        struct spelling plain;
        arena_init(&arena);
        if (spelling_of(spelled, 0, &arena, &plain)) {
                arena_release(&arena);
                return error_nomem(err);
        }
        const struct json *j = plain.j;
        json_ref list = 0;
        if (json_type(j, 0) == JSON_OBJECT)
                list = json_get(j, 0, PROVIDERS[i].member);
        if (json_type(j, list) != JSON_ARRAY) {
                arena_release(&arena);
                return error_set(err, STENO_EPROTO,
                    "a history for %s is an array, or an object with \"%s\"", provider,
                    PROVIDERS[i].member);
        }
        struct jsonw w = jsonw_to(out);
        struct check c = {
            .j = j, .rules = rules_find(PROVIDERS[i].name), .arena = &arena, .out = &w};
        jsonw_array(&w);
        if (json_count(j, list) == 0)
                accept_fail(&c, "no_messages", 0, (struct str){0}, "the history has no messages");
        check_types(&c, list);
        PROVIDERS[i].run(&c, list);
        jsonw_array_end(&w);
        int rc = arena.failed ? error_nomem(err) : buf_check(out, err);
        arena_release(&arena);
        return rc;
}
