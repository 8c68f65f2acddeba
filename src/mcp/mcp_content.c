/*
 * mcp_content.c - content parts as text; nothing is dropped.
 */
#include "mcp/mcp_content.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

struct writer {
        steno_sink sink;
        void *ctx;
        bool begun;
};

static void put_member(
    struct buf *b, const struct json *j, json_ref obj, const char *key, const char *before)
{
        json_ref r = json_get(j, obj, key);

        if (json_type(j, r) != JSON_STRING)
                return;
        buf_puts(b, before);
        json_string(j, r, b, NULL);
}

/* "[image image/png, 1,234 bytes]" and the data: URI. */
static void put_data(struct buf *b, const struct json *j, json_ref part, const char *what,
    const char *key, const char *uri)
{
        struct str data = json_inner(j, json_get(j, part, key));

        buf_puts(b, "[");
        buf_puts(b, what);
        put_member(b, j, part, "mimeType", " ");
        if (uri)
                put_member(b, j, part, uri, " ");
        buf_puts(b, ", ");
        text_put_grouped(b, data.n / 4 * 3);
        buf_puts(b, " bytes]\ndata:");
        put_member(b, j, part, "mimeType", "");
        buf_puts(b, ";base64,");
        json_string(j, json_get(j, part, key), b, NULL);
}

static void put_resource(struct buf *b, const struct json *j, json_ref part)
{
        json_ref r = json_get(j, part, "resource");

        if (json_type(j, json_get(j, r, "blob")) == JSON_STRING) {
                put_data(b, j, r, "resource", "blob", "uri");
                return;
        }
        buf_puts(b, "[resource");
        put_member(b, j, r, "mimeType", " ");
        put_member(b, j, r, "uri", " ");
        buf_puts(b, "]\n");
        put_member(b, j, r, "text", "");
}

static void put_link(struct buf *b, const struct json *j, json_ref part)
{
        buf_puts(b, "[resource_link");
        put_member(b, j, part, "name", " ");
        put_member(b, j, part, "uri", " ");
        buf_puts(b, "]\n");
        buf_put_str(b, json_raw(j, part));
}

void mcp_content_put_part(struct buf *b, const struct json *j, json_ref part)
{
        json_ref type = json_get(j, part, "type");

        if (json_is(j, type, "text") && json_type(j, json_get(j, part, "text")) == JSON_STRING)
                put_member(b, j, part, "text", "");
        else if (json_is(j, type, "image") || json_is(j, type, "audio"))
                put_data(b, j, part, json_is(j, type, "image") ? "image" : "audio", "data", NULL);
        else if (json_is(j, type, "resource"))
                put_resource(b, j, part);
        else if (json_is(j, type, "resource_link"))
                put_link(b, j, part);
        else
                buf_put_str(b, json_raw(j, part));
}

static int give(struct writer *w, const struct buf *b, struct steno_error *err)
{
        int rc = buf_check(b, err);

        if (rc == 0 && w->begun)
                rc = w->sink(w->ctx, "\n", 1);
        if (rc == 0 && b->n)
                rc = w->sink(w->ctx, b->p, b->n);
        w->begun = true;
        return rc;
}

static size_t skip_white(struct str s, size_t i)
{
        while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '\r' || s.p[i] == '\n'))
                i++;
        return i;
}

/* The same document but for white space between tokens? */
static bool same_json(struct str a, struct str b)
{
        size_t i = 0, k = 0;
        bool quoted = false, escaped = false;

        for (;;) {
                if (!quoted) {
                        i = skip_white(a, i);
                        k = skip_white(b, k);
                }
                if (i == a.n || k == b.n)
                        return i == a.n && k == b.n;
                if (a.p[i] != b.p[k])
                        return false;
                if (a.p[i] == '"' && !escaped)
                        quoted = !quoted;
                escaped = quoted && a.p[i] == '\\' && !escaped;
                i++, k++;
        }
}

static bool is_said(const struct json *j, json_ref content, struct str structured)
{
        bool said = false;

        for (json_ref p = json_child(j, content); p != JSON_NONE && !said;
             p = json_next(j, content, p)) {
                struct buf text;
                buf_init(&text, MESSAGE_MAX);
                if (json_string(j, json_get(j, p, "text"), &text, NULL) && !text.failed)
                        said = same_json(buf_str(&text), structured);
                buf_release(&text);
        }
        return said;
}

int mcp_content_write(const struct json *j, json_ref result, steno_sink sink, void *ctx,
    bool *is_error, struct steno_error *err)
{
        struct writer w = {sink, ctx, false};
        json_ref content = json_get(j, result, "content");
        json_ref structured = json_get(j, result, "structuredContent");
        json_ref kind = json_get(j, result, "resultType");
        struct buf b;
        int rc = 0;

        if (json_type(j, result) != JSON_OBJECT ||
            (kind != JSON_NONE && !json_is(j, kind, "complete")))
                return error_set(
                    err, STENO_EPROTO, "the server asks for input that this client cannot give");
        if (json_type(j, content) != JSON_ARRAY && structured == JSON_NONE)
                return error_set(err, STENO_EPROTO, "the result has no content");
        buf_init(&b, 2 * MESSAGE_MAX);
        for (json_ref p = json_child(j, content); p != JSON_NONE && rc == 0;
             p = json_next(j, content, p)) {
                buf_clear(&b);
                mcp_content_put_part(&b, j, p);
                rc = give(&w, &b, err);
        }
        if (rc == 0 && structured != JSON_NONE && !is_said(j, content, json_raw(j, structured))) {
                buf_clear(&b);
                buf_put_str(&b, json_raw(j, structured));
                rc = give(&w, &b, err);
        }
        *is_error = json_bool(j, json_get(j, result, "isError"), false);
        buf_release(&b);
        return rc;
}
