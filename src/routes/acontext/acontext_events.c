/*
 * acontext_events.c - /api/v1/session/:id/events: what happened in a session besides its messages.
 *
 * An event is a member "event:ID" of the conversation's metadata. So no model reads it, two clients
 * can add events at the same time, and it is copied, exported and removed with its conversation.
 * Metadata has at most 1 MiB; events beyond that are refused.
 */
#include "routes/acontext/acontext_wire.h"
#include "routes/handlers.h"

#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/limits.h"

#define PREFIX "event:"
#define EVENTS_MAX 200
#define EVENT_DATA_MAX (64 * KIB)

static bool is_event(const struct json *meta, json_ref key)
{
        return str_starts(json_inner(meta, key), PREFIX);
}

static void put_event(struct request *r, struct jsonw *w, const struct json *meta, json_ref key)
{
        struct str id = json_inner(meta, key);
        json_ref e = json_value(meta, key), at = json_get(meta, e, "at");
        jsonw_object(w);
        jsonw_field_str(w, "id", str_span(id.p + strlen(PREFIX), id.n - strlen(PREFIX)));
        jsonw_field_str(w, "session_id", r->params[0]);
        jsonw_field_cstr(w, "project_id", r->who.project);
        jsonw_field_copy(w, "type", meta, json_get(meta, e, "type"));
        jsonw_field_copy(w, "data", meta, json_get(meta, e, "data"));
        jsonw_field_copy(w, "created_at", meta, at);
        jsonw_field_copy(w, "updated_at", meta, at);
        jsonw_object_end(w);
}

static uint64_t count_events(const struct json *meta)
{
        uint64_t n = 0;
        for (json_ref k = json_child(meta, 0); k != JSON_NONE; k = json_next_key(meta, 0, k))
                n += is_event(meta, k);
        return n;
}

/* The n-th event, in the order in which they came. */
static json_ref event_at(const struct json *meta, uint64_t n)
{
        json_ref k = json_child(meta, 0);
        while (k != JSON_NONE && (!is_event(meta, k) || n-- > 0))
                k = json_next_key(meta, 0, k);
        return k;
}

/* The metadata of a conversation, parsed. `text` is freed with steno_free(). */
static int read_meta(
    struct steno_conv *conv, struct json *meta, char **text, struct steno_error *err)
{
        int rc = steno_conv_meta(conv, text, err);
        return rc ? rc : json_parse(meta, *text, strlen(*text), NULL, err);
}

int acontext_put_events(
    struct request *r, struct steno_conv *conv, struct jsonw *w, struct steno_error *err)
{
        struct json meta;
        char *text = NULL;
        json_init(&meta);
        int rc = read_meta(conv, &meta, &text, err);
        jsonw_array(w);
        for (json_ref k = rc ? JSON_NONE : json_child(&meta, 0); k != JSON_NONE;
             k = json_next_key(&meta, 0, k))
                if (is_event(&meta, k))
                        put_event(r, w, &meta, k);
        jsonw_array_end(w);
        json_release(&meta);
        steno_free(text);
        return rc;
}

/* ---- adding ---- */

/* {"event:ID":{...}} */
static void put_patch(struct buf *out, const char *id, const struct json *j)
{
        char key[64], at[TIME_TEXT];
        struct jsonw w = jsonw_to(out);
        snprintf(key, sizeof key, PREFIX "%s", id);
        time_format(env_real()->now(env_real()), at);
        jsonw_object(&w);
        jsonw_key(&w, key);
        jsonw_object(&w);
        jsonw_field_copy(&w, "type", j, json_get(j, 0, "type"));
        jsonw_field_copy(&w, "data", j, json_get(j, 0, "data"));
        jsonw_field_cstr(&w, "at", at);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
}

static void add_event(struct request *r, struct steno_conv *conv, const struct json *j)
{
        struct steno_error err = {0};
        struct json meta;
        struct jsonw w;
        struct buf patch;
        char id[37], key[64], *text = NULL;
        json_init(&meta);
        buf_init(&patch, 0);
        acontext_new_id(r, "event", id);
        snprintf(key, sizeof key, PREFIX "%s", id);
        put_patch(&patch, id, j);
        const char *json = buf_cstr(&patch);
        int rc = read_meta(conv, &meta, &text, &err);
        /* The same Idempotency-Key once more: the event is there. */
        bool again = rc == 0 && json_get(&meta, 0, key) != JSON_NONE;
        if (rc == 0 && !again)
                rc = json ? steno_conv_set_meta(conv, json, &err) : STENO_ENOMEM;
        json_release(&meta);
        json_init(&meta);
        steno_free(text);
        text = NULL;
        if (rc == 0)
                rc = read_meta(conv, &meta, &text, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                acontext_begin(r, &w);
                for (json_ref k = json_child(&meta, 0); k != JSON_NONE;
                     k = json_next_key(&meta, 0, k))
                        if (json_is(&meta, k, key))
                                put_event(r, &w, &meta, k);
                acontext_end(r, &w, 200);
        }
        json_release(&meta);
        steno_free(text);
        buf_release(&patch);
}

void acontext_event_add(struct request *r)
{
        static const struct body_rule RULES[] = {{"type", BODY_NAME}, {0}};
        struct json j;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        if (request_json(r, &j, RULES)) {
                json_ref type = json_get(&j, 0, "type"), data = json_get(&j, 0, "data");
                if (json_type(&j, type) != JSON_STRING || !json_inner(&j, type).n)
                        request_error(r, 400, "bad_request", "type must be a text");
                else if (data == JSON_NONE || json_type(&j, data) == JSON_NULL)
                        request_error(r, 400, "bad_request", "data is missing");
                else if (json_raw(&j, data).n > EVENT_DATA_MAX)
                        request_error(r, 413, "too_large", "data has at most 64 KB");
                else
                        add_event(r, conv, &j);
        }
        json_release(&j);
        steno_conv_close(conv);
}

/* ---- listing ---- */

static void put_page(struct request *r, const struct json *meta, uint64_t from, uint64_t limit)
{
        struct jsonw w;
        bool newest_first = request_flag(r, "time_desc", false);
        uint64_t count = count_events(meta), i = from;
        acontext_page_begin(r, &w);
        for (; i < count && i - from < limit; i++)
                put_event(r, &w, meta, event_at(meta, newest_first ? count - 1 - i : i));
        acontext_page_end(r, &w, i, count);
}

void acontext_event_list(struct request *r)
{
        struct steno_error err = {0};
        struct json meta;
        uint64_t limit, from;
        char *text = NULL;
        if (!request_number(r, "limit", 50, 1, EVENTS_MAX, &limit) || !acontext_cursor(r, &from))
                return;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&meta);
        int rc = read_meta(conv, &meta, &text, &err);
        if (rc)
                request_failed(r, rc, &err);
        else
                put_page(r, &meta, from, limit);
        json_release(&meta);
        steno_free(text);
        steno_conv_close(conv);
}
