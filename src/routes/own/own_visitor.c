/* own_visitor.c - see own_visitor.h */
#include "routes/own/own_visitor.h"

#include <string.h>

#include "http/http_limits.h"
#include "http/server_core.h"

/* ---- what is said ---- */

static bool is_text_part(const struct json *j, json_ref part)
{
        json_ref type = json_get(j, part, "type");
        return json_type(j, part) == JSON_OBJECT &&
               json_type(j, json_get(j, part, "text")) == JSON_STRING &&
               (json_is(j, type, "text") || json_is(j, type, "input_text"));
}

/* Appends the text of a content; false when it holds anything that is not text. */
static bool put_text(const struct json *j, json_ref content, struct buf *out)
{
        if (json_type(j, content) == JSON_STRING)
                return json_string(j, content, out, NULL);
        if (json_type(j, content) != JSON_ARRAY)
                return false;
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p)) {
                if (!is_text_part(j, p) || !json_string(j, json_get(j, p, "text"), out, NULL))
                        return false;
                if (out->n > SERVER_PUBLIC_MESSAGE_MAX)
                        break;
        }
        return true;
}

const char *own_visitor_text(struct request *r, const struct json *j)
{
        json_ref m = json_get(j, 0, "message");
        struct buf b;
        buf_init(&b, SERVER_PUBLIC_BODY_MAX);
        bool ok = put_text(j, json_type(j, m) == JSON_OBJECT ? json_get(j, m, "content") : m, &b);
        const char *text = NULL;
        if (!ok || b.failed || (b.n && memchr(b.p, '\0', b.n)))
                request_error(r, 400, "bad_request", "a visitor's message must be text");
        else if (b.n == 0)
                request_error(r, 400, "bad_request", "message is empty");
        else if (b.n > SERVER_PUBLIC_MESSAGE_MAX)
                request_error(r, 413, "too_large", "a visitor's message has at most %d bytes",
                    (int)SERVER_PUBLIC_MESSAGE_MAX);
        else
                text = arena_dup(&r->arena, buf_str(&b)).p;
        buf_release(&b);
        return text;
}

/* ---- how much there is already ---- */

#define FULL 1

static int count_bytes(void *ctx, const struct steno_record *record)
{
        uint64_t *bytes = ctx;
        struct steno_error err = {0};
        char *json = NULL;
        size_t n = 0;
        int rc = steno_record_message(record, &json, &n, &err);
        steno_free(json);
        if (rc == STENO_ENOMEM)
                return rc;
        *bytes += n;
        return *bytes > SERVER_PUBLIC_HISTORY_MAX ? FULL : 0;
}

bool own_visitor_has_room(struct request *r, const char *conversation)
{
        struct steno_error err = {0};
        struct steno_conv *conv = request_conv(r, conversation);
        uint64_t records = 0, bytes = 0;
        if (!conv)
                return false;
        int rc = steno_conv_last_seq(conv, &records, &err);
        if (rc == 0 && records < SERVER_PUBLIC_MESSAGES_MAX)
                rc = steno_read(conv, 0, 0, count_bytes, &bytes, &err);
        steno_conv_close(conv);
        if (rc == FULL || (rc == 0 && records >= SERVER_PUBLIC_MESSAGES_MAX))
                request_error(r, 413, "too_large",
                    "this conversation is full; start a new one without a token");
        else if (rc)
                request_failed(r, rc, &err);
        return rc == 0 && records < SERVER_PUBLIC_MESSAGES_MAX;
}
