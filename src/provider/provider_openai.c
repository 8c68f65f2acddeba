/*
 * provider_openai.c - chat completions of any OpenAI-compatible endpoint: writes the request, and
 * chooses the reader of the answer (assemble.h).
 */
#include <string.h>

#include "base/error.h"
#include "provider/assemble.h"
#include "provider/provider_http.h"

/* ---- the request ---- */

static void put_words(struct jsonw *w, const char *role, const char *text)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "role", role);
        jsonw_field_cstr(w, "content", text);
        jsonw_object_end(w);
}

/* Writes the history between the system prompt and, if it ends with an assistant's message, a
 * request to continue. Neither of the two is stored. */
static void put_messages(struct jsonw *w, const struct provider_request *r, const struct json *j)
{
        const char *go_on = provider_go_on_words(r, j);
        jsonw_key(w, "messages");
        jsonw_array(w);
        if (r->system)
                put_words(w, "system", r->system);
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m))
                jsonw_raw(w, json_raw(j, m));
        if (go_on)
                put_words(w, "user", go_on);
        jsonw_array_end(w);
}

static void put_tool(struct jsonw *w, const struct provider_tool *t)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "function");
        jsonw_key(w, "function");
        jsonw_object(w);
        jsonw_field_cstr(w, "name", t->name);
        if (t->description)
                jsonw_field_cstr(w, "description", t->description);
        provider_put_schema(w, "parameters", t);
        jsonw_object_end(w);
        jsonw_object_end(w);
}

static void put_choice(struct jsonw *w, const char *tool)
{
        jsonw_key(w, "tool_choice");
        if (strcmp(tool, "any") == 0) {
                jsonw_cstr(w, "required");
                return;
        }
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "function");
        jsonw_key(w, "function");
        jsonw_object(w);
        jsonw_field_cstr(w, "name", tool);
        jsonw_object_end(w);
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
        if (r->require_tool)
                put_choice(w, r->require_tool);
}

static void put_body(struct jsonw *w, const struct provider_request *r, const struct json *history,
    const struct json *params)
{
        put_messages(w, r, history);
        put_tools(w, r);
        if (r->stream) {
                jsonw_field_bool(w, "stream", true);
                jsonw_field_raw(w, "stream_options", STR("{\"include_usage\":true}"));
        }
        provider_put_params(w, params, NULL);
}

/* ---- the row ---- */

static const struct provider_wire wire = {
    .path = "/chat/completions",
    .key_header = "Authorization: Bearer ",
    .put_body = put_body,
    .reader_new = assemble_reader,
};

const struct provider provider_openai = {
    .name = "openai",
    .format = "openai",
    .base_url = "https://api.openai.com/v1",
    .url_variable = "OPENAI_BASE_URL",
    .key_variable = "OPENAI_API_KEY",
    .needs_model = true,
    .wire = &wire,
    .open = provider_http_open,
};
