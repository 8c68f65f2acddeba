/*
 * provider_anthropic.c - Anthropic's Messages API, and endpoints that are compatible with it:
 * writes the request, and chooses the reader of the answer (blockstream.h).
 */
#include <string.h>

#include "base/error.h"
#include "provider/blockstream.h"
#include "provider/provider_http.h"

/* The API requires a limit in every request; a parameter "max_tokens" replaces this one. */
#define MAX_TOKENS 8192
/* The maximum number of cache marks in a request. */
#define CACHE_MARKS_MAX 4

/* ---- the request ---- */

static bool has_param(const struct json *params, const char *name)
{
        return json_get(params, 0, name) != JSON_NONE;
}

/* Writes the history. If it ends with an assistant's message, appends a request to continue, which
 * is not stored. */
static void put_messages(struct jsonw *w, const struct provider_request *r, const struct json *j)
{
        const char *go_on = provider_go_on_words(r, j);
        jsonw_key(w, "messages");
        jsonw_array(w);
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m))
                jsonw_raw(w, json_raw(j, m));
        if (go_on) {
                jsonw_object(w);
                jsonw_field_cstr(w, "role", "user");
                jsonw_field_cstr(w, "content", go_on);
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

static void put_tool(struct jsonw *w, const struct provider_tool *t)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "name", t->name);
        if (t->description)
                jsonw_field_cstr(w, "description", t->description);
        provider_put_schema(w, "input_schema", t);
        jsonw_object_end(w);
}

static void put_tools(struct jsonw *w, const struct provider_request *r)
{
        if (r->tool_count == 0)
                return;
        jsonw_key(w, "tools");
        jsonw_array(w);
        for (size_t i = 0; i < r->tool_count; i++)
                put_tool(w, &r->tools[i]);
        jsonw_array_end(w);
        if (!r->require_tool)
                return;
        bool any = strcmp(r->require_tool, "any") == 0;
        jsonw_key(w, "tool_choice");
        jsonw_object(w);
        jsonw_field_cstr(w, "type", any ? "any" : "tool");
        if (!any)
                jsonw_field_cstr(w, "name", r->require_tool);
        jsonw_object_end(w);
}

static size_t count_marks(const struct json *j)
{
        size_t marks = 0;
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m)) {
                json_ref content = json_get(j, m, "content");
                if (json_type(j, content) != JSON_ARRAY)
                        continue;
                for (json_ref b = json_child(j, content); b != JSON_NONE;
                     b = json_next(j, content, b))
                        marks += json_type(j, json_get(j, b, "cache_control")) == JSON_OBJECT;
        }
        return marks;
}

/* The endpoint's prompt cache keeps everything up to the last block, so the next turn pays only for
 * what is new. */
static void put_cache_mark(struct jsonw *w, const struct json *history, const struct json *params)
{
        if (!has_param(params, "cache_control") && count_marks(history) < CACHE_MARKS_MAX)
                jsonw_field_raw(w, "cache_control", STR("{\"type\":\"ephemeral\"}"));
}

static void put_body(struct jsonw *w, const struct provider_request *r, const struct json *history,
    const struct json *params)
{
        if (!has_param(params, "max_tokens"))
                jsonw_field_u64(w, "max_tokens", MAX_TOKENS);
        if (r->system)
                jsonw_field_cstr(w, "system", r->system);
        put_tools(w, r);
        put_messages(w, r, history);
        put_cache_mark(w, history, params);
        if (r->stream)
                jsonw_field_bool(w, "stream", true);
        provider_put_params(w, params, NULL);
}

/* ---- the row ---- */

static const char *const headers[] = {"anthropic-version: 2023-06-01", NULL};

static const struct provider_wire wire = {
    .path = "/v1/messages",
    .key_header = "x-api-key: ",
    .headers = headers,
    .put_body = put_body,
    .reader_new = blockstream_reader,
};

const struct provider provider_anthropic = {
    .name = "anthropic",
    .format = "anthropic",
    .base_url = "https://api.anthropic.com",
    .url_variable = "ANTHROPIC_BASE_URL",
    .key_variable = "ANTHROPIC_API_KEY",
    .needs_model = true,
    .wire = &wire,
    .open = provider_http_open,
};
