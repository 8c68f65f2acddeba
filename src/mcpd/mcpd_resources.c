/*
 * mcpd_resources.c - artifacts as resources: lists them, lists the templates, and reads a page.
 *
 * A cursor is the last ref of the page before or, in a project, the cursor of the list of
 * conversations.
 */
#include "mcpd/mcpd_call.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/percent.h"
#include "base/text.h"

#define LIST_PAGE 100         /* number of resources */
#define LIST_CONVERSATIONS 20 /* of a project on one page, with their newest resources */
#define LIST_OF_EACH 50
#define URI_MAX (4 * KIB)
#define ARTIFACTS "steno:///artifacts/"
#define CONVERSATIONS "steno:///conversations/"

/* ---- addresses ---- */

static void put_percent(struct buf *out, struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                unsigned char c = (unsigned char)s.p[i];
                if (isalnum(c) || strchr("-._~", c))
                        buf_putc(out, (char)c);
                else
                        buf_printf(out, "%%%02X", c);
        }
}

void mcpd_put_uri(
    const struct mcpd_scope *scope, const char *conversation, struct str ref, struct buf *out)
{
        if (scope->conversation) {
                buf_puts(out, ARTIFACTS);
        } else {
                buf_puts(out, CONVERSATIONS);
                put_percent(out, str_of(conversation));
                buf_puts(out, "/artifacts/");
        }
        put_percent(out, ref);
}

/* A parsed address. */
struct address {
        struct arena arena;
        struct str conversation; /* NUL-terminated, and so is the ref */
        struct str ref;
        uint64_t offset;
};

static bool take_number(struct str s, uint64_t *out)
{
        uint64_t n = 0;
        if (s.n == 0 || s.n > 18)
                return false;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                n = n * 10 + (uint64_t)(s.p[i] - '0');
        }
        *out = n;
        return true;
}

static bool take_address(const struct mcpd_scope *scope, struct str uri, struct address *out)
{
        const char *q = memchr(uri.p, '?', uri.n);
        struct str query = q ? str_span(q + 1, uri.n - (size_t)(q + 1 - uri.p)) : (struct str){0};
        struct str path = q ? str_span(uri.p, (size_t)(q - uri.p)) : uri;
        const char *base = scope->conversation ? ARTIFACTS : CONVERSATIONS;
        if (q && (!str_starts(query, "offset=") ||
                     !take_number(str_span(query.p + 7, query.n - 7), &out->offset)))
                return false;
        if (!str_starts(path, base))
                return false;
        path = str_span(path.p + strlen(base), path.n - strlen(base));
        if (!scope->conversation) {
                static const char BETWEEN[] = "/artifacts/";
                const char *slash = memchr(path.p, '/', path.n);
                size_t n = slash ? (size_t)(slash - path.p) : path.n;
                struct str rest = str_span(path.p + n, path.n - n);
                if (!str_starts(rest, BETWEEN) ||
                    !percent_decode(&out->arena, str_span(path.p, n), false, &out->conversation))
                        return false;
                path = str_span(rest.p + sizeof BETWEEN - 1, rest.n - (sizeof BETWEEN - 1));
        }
        return percent_decode(&out->arena, path, false, &out->ref) && out->ref.n;
}

int mcpd_open(
    const struct mcpd_call *c, const char *named, struct steno_conv **out, struct steno_error *err)
{
        const struct mcpd_scope *s = c->scope;
        const char *id = s->conversation ? s->conversation : named;
        if (!id)
                return error_set(err, STENO_EPROTO,
                    "conversation must be given, as a string; conversation_list shows the ids");
        int rc = steno_conv_open(s->store, s->project, id, out, err);
        if (rc == STENO_ENOTFOUND || rc == STENO_EINVAL)
                return error_set(err, STENO_ENOTFOUND, "there is no such conversation");
        return rc;
}

/* ---- the list ---- */

void mcpd_put_link(struct jsonw *w, const struct mcpd_scope *scope, const char *conversation,
    const struct json *j, json_ref item, const char *type)
{
        struct buf ref, uri;
        buf_init(&ref, 4 * KIB);
        buf_init(&uri, URI_MAX);
        json_string(j, json_get(j, item, "id"), &ref, NULL);
        mcpd_put_uri(scope, conversation, buf_str(&ref), &uri);
        jsonw_object(w);
        if (type)
                jsonw_field_cstr(w, "type", type);
        jsonw_field_str(w, "uri", buf_str(&uri));
        jsonw_field_str(w, "name", buf_str(&ref));
        jsonw_field_copy(w, "title", j, json_get(j, item, "hint"));
        jsonw_field_copy(w, "mimeType", j, json_get(j, item, "mimeType"));
        jsonw_field_copy(w, "size", j, json_get(j, item, "byteSize"));
        jsonw_object_end(w);
        buf_release(&ref);
        buf_release(&uri);
}

/* Writes the resources of one conversation behind `after`; *count becomes their number. */
static int put_artifacts(struct mcpd_call *c, struct steno_conv *conv, const char *after,
    unsigned limit, struct buf *last, uint32_t *count, struct steno_error *err)
{
        struct buf args;
        struct json j;
        char *json = NULL;
        json_init(&j);
        buf_init(&args, 64 * KIB);
        struct jsonw w = jsonw_to(&args);
        jsonw_object(&w);
        jsonw_field_u64(&w, "limit", limit);
        if (after)
                jsonw_field_cstr(&w, "after", after);
        jsonw_object_end(&w);
        int rc = buf_check(&args, err);
        if (rc == 0)
                rc = steno_context(conv, "list", args.p, args.n, &json, err);
        if (rc == 0)
                rc = json_parse(&j, json, strlen(json), NULL, err);
        json_ref items = rc == 0 ? json_get(&j, 0, "items") : JSON_NONE;
        *count = 0;
        for (json_ref r = json_child(&j, items); r != JSON_NONE; r = json_next(&j, items, r)) {
                mcpd_put_link(&c->w, c->scope, steno_conv_id(conv), &j, r, NULL);
                buf_clear(last);
                json_string(&j, json_get(&j, r, "id"), last, NULL);
                ++*count;
        }
        json_release(&j);
        steno_free(json);
        buf_release(&args);
        return rc;
}

static int list_one(
    struct mcpd_call *c, const char *cursor, struct buf *next, struct steno_error *err)
{
        struct steno_conv *conv;
        uint32_t count;
        int rc = mcpd_open(c, NULL, &conv, err);
        if (rc)
                return rc;
        rc = put_artifacts(c, conv, cursor, LIST_PAGE, next, &count, err);
        if (rc == 0 && count < LIST_PAGE)
                buf_clear(next);
        steno_conv_close(conv);
        /* If the ref in a cursor does not exist, the cursor is not ours. */
        return cursor && rc == STENO_ENOTFOUND ? STENO_EINVAL : rc;
}

static int list_project(
    struct mcpd_call *c, const char *cursor, struct buf *next, struct steno_error *err)
{
        struct steno_list_options opt = {
            .size = sizeof opt, .limit = LIST_CONVERSATIONS, .cursor = cursor, .complete = 1};
        struct json j;
        struct buf id, last;
        char *json = NULL;
        json_init(&j);
        buf_init(&id, ID_MAX + 1);
        buf_init(&last, 4 * KIB);
        int rc = steno_list(c->scope->store, c->scope->project, &opt, &json, err);
        if (rc == 0)
                rc = json_parse(&j, json, strlen(json), NULL, err);
        json_ref items = rc == 0 ? json_get(&j, 0, "items") : JSON_NONE;
        for (json_ref r = json_child(&j, items); r != JSON_NONE && rc == 0;
             r = json_next(&j, items, r)) {
                struct steno_conv *conv = NULL;
                uint32_t count;
                buf_clear(&id);
                json_string(&j, json_get(&j, r, "id"), &id, NULL);
                /* If a conversation was removed meanwhile or cannot be read, the others are still
                 * listed. */
                if (buf_cstr(&id) && mcpd_open(c, buf_cstr(&id), &conv, NULL) == 0)
                        put_artifacts(c, conv, NULL, LIST_OF_EACH, &last, &count, NULL);
                steno_conv_close(conv);
        }
        if (rc == 0)
                json_string(&j, json_get(&j, 0, "next_cursor"), next, NULL);
        json_release(&j);
        steno_free(json);
        buf_release(&id);
        buf_release(&last);
        return rc;
}

void mcpd_resources_list(struct mcpd_call *c)
{
        struct steno_error err = {0};
        struct buf cursor, next;
        if (c->scope->fixtures) {
                mcpd_fixtures_resources(c);
                return;
        }
        buf_init(&cursor, 4 * KIB);
        buf_init(&next, 4 * KIB);
        bool given = json_get(&c->m->j, c->m->params, "cursor") != JSON_NONE;
        const char *from = mcpd_param(c, "cursor", &cursor);
        int rc = given && (!from || !*from) ? STENO_EINVAL : 0;
        jsonw_key(&c->w, "resources");
        jsonw_array(&c->w);
        if (rc == 0)
                rc = (c->scope->conversation ? list_one : list_project)(c, from, &next, &err);
        jsonw_array_end(&c->w);
        if (rc == 0 && next.n)
                jsonw_field_str(&c->w, "nextCursor", buf_str(&next));
        if (given && (rc == STENO_EINVAL || rc == STENO_EPROTO))
                mcpd_fail(c, MCPD_PARAMS, "the cursor is not from this server");
        else if (rc)
                mcpd_fail_with(c, rc, &err);
        buf_release(&cursor);
        buf_release(&next);
}

void mcpd_resources_templates(struct mcpd_call *c)
{
        if (json_get(&c->m->j, c->m->params, "cursor") != JSON_NONE) {
                mcpd_fail(c, MCPD_PARAMS, "the cursor is not from this server");
                return;
        }
        if (c->scope->fixtures) {
                mcpd_fixtures_templates(c);
                return;
        }
        jsonw_key(&c->w, "resourceTemplates");
        jsonw_array(&c->w);
        jsonw_object(&c->w);
        jsonw_field_cstr(&c->w, "uriTemplate",
            c->scope->conversation ? ARTIFACTS "{ref}{?offset}"
                                   : CONVERSATIONS "{conversation}/artifacts/{ref}{?offset}");
        jsonw_field_cstr(&c->w, "name", "artifact");
        jsonw_field_cstr(&c->w, "title", "A stored tool output");
        jsonw_field_cstr(&c->w, "description",
            "The output behind a ref (ctx_...), a page at a time; offset is the first byte.");
        jsonw_object_end(&c->w);
        jsonw_array_end(&c->w);
}

/* ---- a page ---- */

struct page {
        char *p;
        size_t n;
};

static int fill(void *ctx, const void *p, size_t n)
{
        struct page *page = ctx;
        size_t take = n < MCPD_PAGE - page->n ? n : MCPD_PAGE - page->n;
        memcpy(page->p + page->n, p, take);
        page->n += take;
        return take < n;
}

/* Sets the present size. */
static int measure(
    struct steno_conv *conv, const char *ref, uint64_t *total, struct steno_error *err)
{
        struct buf args;
        struct json j;
        char *json = NULL;
        json_init(&j);
        buf_init(&args, 64 * KIB);
        buf_puts(&args, "{\"limit\":1,\"ref\":");
        json_put_string(&args, str_of(ref));
        buf_putc(&args, '}');
        int rc = buf_check(&args, err);
        if (rc == 0)
                rc = steno_context(conv, "read", args.p, args.n, &json, err);
        if (rc == 0)
                rc = json_parse(&j, json, strlen(json), NULL, err);
        if (rc == 0)
                json_u64(&j, json_get(&j, 0, "total_bytes"), total);
        json_release(&j);
        steno_free(json);
        buf_release(&args);
        return rc;
}

/* Writes bytes as text if they are UTF-8, without splitting the last character; otherwise as
 * base64. */
static size_t put_bytes(struct jsonw *w, const struct page *page, bool at_end)
{
        size_t valid = text_utf8_prefix(page->p, page->n);
        bool split = !at_end && page->n - valid < 4 && valid < page->n &&
                     (unsigned char)page->p[valid] >= 0xC2;
        if (valid == page->n || split) {
                jsonw_field_cstr(w, "mimeType", "text/plain");
                jsonw_field_str(w, "text", str_span(page->p, valid));
                return valid;
        }
        jsonw_field_cstr(w, "mimeType", "application/octet-stream");
        jsonw_key(w, "blob");
        struct buf *b = jsonw_value(w);
        buf_putc(b, '"');
        base64_put(b, page->p, page->n);
        buf_putc(b, '"');
        return page->n;
}

static void put_contents(struct mcpd_call *c, const char *conversation, const struct address *a,
    struct str uri, const struct page *page, uint64_t total)
{
        struct buf next, words;
        buf_init(&next, URI_MAX);
        buf_init(&words, URI_MAX + 1 * KIB);
        jsonw_key(&c->w, "contents");
        jsonw_array(&c->w);
        jsonw_object(&c->w);
        jsonw_field_str(&c->w, "uri", uri);
        uint64_t end = a->offset + put_bytes(&c->w, page, a->offset + page->n >= total);
        jsonw_object_end(&c->w);
        if (end < total) {
                mcpd_put_uri(c->scope, conversation, a->ref, &next);
                buf_printf(&next, "?offset=%llu", (unsigned long long)end);
                buf_printf(&words, "[INCOMPLETE: bytes %llu to %llu of %llu; the next page is %s]",
                    (unsigned long long)a->offset, (unsigned long long)end,
                    (unsigned long long)total, buf_cstr(&next));
                jsonw_object(&c->w);
                jsonw_field_str(&c->w, "uri", buf_str(&next));
                jsonw_field_cstr(&c->w, "mimeType", "text/plain");
                jsonw_field_str(&c->w, "text", buf_str(&words));
                jsonw_object_end(&c->w);
        }
        jsonw_array_end(&c->w);
        buf_release(&next);
        buf_release(&words);
}

static int read_page(
    struct mcpd_call *c, struct address *a, struct str uri, struct steno_error *err)
{
        struct steno_conv *conv = NULL;
        struct page page = {.p = malloc(MCPD_PAGE)};
        uint64_t total = 0;
        const char *ref = a->ref.p;
        int rc = page.p ? mcpd_open(c, a->conversation.p, &conv, err) : error_nomem(err);
        if (rc == 0)
                rc = measure(conv, ref, &total, err);
        if (rc == 0 && a->offset < total)
                rc = steno_context_raw(conv, ref, a->offset, MCPD_PAGE, fill, &page, err);
        if (rc == STENO_EINTERRUPTED)
                rc = 0; /* the page is full */
        if (rc == 0)
                put_contents(c, steno_conv_id(conv), a, uri, &page, total);
        steno_conv_close(conv);
        free(page.p);
        return rc;
}

void mcpd_resources_read(struct mcpd_call *c)
{
        struct steno_error err = {0};
        struct address a = {.offset = 0};
        struct buf text;
        buf_init(&text, URI_MAX);
        arena_init(&a.arena);
        const char *uri = mcpd_param(c, "uri", &text);
        int rc = STENO_ENOTFOUND;
        if (!uri)
                mcpd_fail(c, MCPD_PARAMS, "resources/read needs a uri of at most 4096 bytes");
        else if (c->scope->fixtures)
                rc = mcpd_fixtures_read(c, buf_str(&text)) ? 0 : STENO_ENOTFOUND;
        else if (take_address(c->scope, buf_str(&text), &a))
                rc = read_page(c, &a, buf_str(&text), &err);
        if (uri && rc == STENO_ENOTFOUND) {
                mcpd_fail(c, c->m->modern ? MCPD_PARAMS : MCPD_NO_RESOURCE, "%s",
                    err.msg[0] ? err.msg : "there is no such resource");
                buf_puts(&c->data, "{\"uri\":");
                json_put_string(&c->data, buf_str(&text));
                buf_putc(&c->data, '}');
        } else if (uri && rc) {
                mcpd_fail_with(c, rc, &err);
        }
        buf_release(&text);
        arena_release(&a.arena);
}
