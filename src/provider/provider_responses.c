/*
 * provider_responses.c - OpenAI's Responses API: writes the request, and chooses the reader of the
 * answer (itemstream.h).
 *
 * The format of the history is that of chat completions; here its messages become items. The
 * endpoint keeps nothing: each request has the whole history, and reasoning comes back encrypted.
 */
#include <string.h>

#include "base/error.h"
#include "provider/itemstream.h"
#include "provider/provider_http.h"

/* ---- messages as items ---- */

static void put_part(struct jsonw *w, const struct json *j, json_ref part)
{
        json_ref type = json_get(j, part, "type"), image = json_get(j, part, "image_url");
        json_ref file = json_get(j, part, "file");
        jsonw_object(w);
        if (json_is(j, type, "image_url")) {
                json_ref detail = json_get(j, image, "detail");
                jsonw_field_cstr(w, "type", "input_image");
                jsonw_field_copy(w, "image_url", j, json_get(j, image, "url"));
                jsonw_key(w, "detail");
                jsonw_raw(
                    w, json_type(j, detail) == JSON_STRING ? json_raw(j, detail) : STR("\"auto\""));
        } else if (json_is(j, type, "file")) {
                jsonw_field_cstr(w, "type", "input_file");
                for (json_ref k = json_child(j, file); k != JSON_NONE;
                     k = json_next_key(j, file, k))
                        jsonw_copy_member(w, j, k);
        } else if (json_type(j, json_get(j, part, "text")) == JSON_STRING) {
                jsonw_field_cstr(w, "type", "input_text");
                jsonw_field_copy(w, "text", j, json_get(j, part, "text"));
        } else {
                jsonw_field_cstr(w, "type", "input_text");
                jsonw_field_cstr(w, "text", "[content that this API does not take]");
        }
        jsonw_object_end(w);
}

static void put_content(struct jsonw *w, const char *key, const struct json *j, json_ref content)
{
        if (json_type(j, content) != JSON_ARRAY) {
                jsonw_key(w, key);
                jsonw_raw(
                    w, json_type(j, content) == JSON_STRING ? json_raw(j, content) : STR("\"\""));
                return;
        }
        jsonw_key(w, key);
        jsonw_array(w);
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p))
                put_part(w, j, p);
        jsonw_array_end(w);
}

static bool is_blank(struct str inner)
{
        struct buf text;
        buf_init(&text, 0);
        json_unescape(inner, &text, NULL);
        bool blank = !text.failed && str_trim(buf_str(&text)).n == 0;
        buf_release(&text);
        return blank;
}

static void put_assistant_text(struct jsonw *w, struct str json_text)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "role", "assistant");
        jsonw_field_raw(w, "content", json_text);
        jsonw_object_end(w);
}

/* Writes the text of an assistant's message, whatever the shape of its content. The API refuses
 * blank texts. */
static void put_assistant_words(struct jsonw *w, const struct json *j, json_ref content)
{
        struct buf text;
        buf_init(&text, 0);
        buf_putc(&text, '"');
        buf_put_str(&text, json_inner(j, content));
        for (json_ref p = json_child(j, content);
             json_type(j, content) == JSON_ARRAY && p != JSON_NONE; p = json_next(j, content, p)) {
                json_ref words = json_get(j, p, "text");
                if (words == JSON_NONE)
                        words = json_get(j, p, "refusal");
                buf_put_str(&text, json_inner(j, words));
        }
        buf_putc(&text, '"');
        if (text.failed)
                w->b->failed = text.failed;
        else if (!is_blank(str_span(text.p + 1, text.n - 2)))
                put_assistant_text(w, buf_str(&text));
        buf_release(&text);
}

/* Writes the text of a custom tool's call as the arguments of a function, because the results of
 * both look the same in a history of chat completions. */
static void put_custom_arguments(struct jsonw *w, const struct json *j, json_ref input)
{
        struct buf text;
        buf_init(&text, 0);
        buf_puts(&text, "{\"input\":");
        buf_put_str(&text, json_type(j, input) == JSON_STRING ? json_raw(j, input) : STR("\"\""));
        buf_putc(&text, '}');
        jsonw_field_str(w, "arguments", buf_str(&text));
        if (text.failed)
                w->b->failed = text.failed;
        buf_release(&text);
}

static void put_call(struct jsonw *w, const struct json *j, json_ref call)
{
        json_ref f = json_get(j, call, "function"), custom = json_get(j, call, "custom");
        bool is_custom = json_type(j, custom) == JSON_OBJECT;
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "function_call");
        jsonw_field_copy(w, "call_id", j, json_get(j, call, "id"));
        jsonw_field_copy(w, "name", j, json_get(j, is_custom ? custom : f, "name"));
        if (is_custom)
                put_custom_arguments(w, j, json_get(j, custom, "input"));
        else
                jsonw_field_copy(w, "arguments", j, json_get(j, f, "arguments"));
        jsonw_object_end(w);
}

static void put_assistant(struct jsonw *w, const struct json *j, json_ref m)
{
        json_ref kept = json_get(j, m, "response_items"), calls = json_get(j, m, "tool_calls");
        for (json_ref i = json_child(j, kept); i != JSON_NONE; i = json_next(j, kept, i))
                jsonw_raw(w, json_raw(j, i));
        put_assistant_words(w, j, json_get(j, m, "content"));
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c))
                put_call(w, j, c);
}

static void put_message(struct jsonw *w, const struct json *j, json_ref m)
{
        json_ref role = json_get(j, m, "role");
        if (json_is(j, role, "assistant")) {
                put_assistant(w, j, m);
                return;
        }
        jsonw_object(w);
        if (json_is(j, role, "tool")) {
                jsonw_field_cstr(w, "type", "function_call_output");
                jsonw_field_copy(w, "call_id", j, json_get(j, m, "tool_call_id"));
                put_content(w, "output", j, json_get(j, m, "content"));
        } else {
                jsonw_field_copy(w, "role", j, role);
                put_content(w, "content", j, json_get(j, m, "content"));
        }
        jsonw_object_end(w);
}

static void put_input(struct jsonw *w, const struct provider_request *r, const struct json *j)
{
        const char *go_on = provider_go_on_words(r, j);
        jsonw_key(w, "input");
        jsonw_array(w);
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m))
                put_message(w, j, m);
        if (go_on) {
                jsonw_object(w);
                jsonw_field_cstr(w, "role", "user");
                jsonw_field_cstr(w, "content", go_on);
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

/* ---- the rest of the request ---- */

static void put_tools(struct jsonw *w, const struct provider_request *r)
{
        if (r->tool_count == 0)
                return;
        jsonw_key(w, "tools");
        jsonw_array(w);
        for (size_t i = 0; i < r->tool_count; i++) {
                const struct provider_tool *t = &r->tools[i];
                jsonw_object(w);
                jsonw_field_cstr(w, "type", "function");
                jsonw_field_cstr(w, "name", t->name);
                if (t->description)
                        jsonw_field_cstr(w, "description", t->description);
                provider_put_schema(w, "parameters", t);
                jsonw_field_bool(w, "strict", false); /* the endpoint's default is true */
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
        if (!r->require_tool)
                return;
        jsonw_key(w, "tool_choice");
        if (strcmp(r->require_tool, "any") == 0) {
                jsonw_cstr(w, "required");
                return;
        }
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "function");
        jsonw_field_cstr(w, "name", r->require_tool);
        jsonw_object_end(w);
}

static void put_params(struct jsonw *w, const struct json *params)
{
        provider_put_params(w, params, "store");
        /* Models without reasoning refuse this. */
        if (json_get(params, 0, "reasoning") != JSON_NONE &&
            json_get(params, 0, "include") == JSON_NONE)
                jsonw_field_raw(w, "include", STR("[\"reasoning.encrypted_content\"]"));
}

static void put_body(struct jsonw *w, const struct provider_request *r, const struct json *history,
    const struct json *params)
{
        if (r->system)
                jsonw_field_cstr(w, "instructions", r->system);
        put_tools(w, r);
        put_input(w, r, history);
        jsonw_field_bool(w, "store", false);
        if (r->stream)
                jsonw_field_bool(w, "stream", true);
        put_params(w, params);
}

/* ---- the row ---- */

static const struct provider_wire wire = {
    .path = "/responses",
    .key_header = "Authorization: Bearer ",
    .put_body = put_body,
    .reader_new = itemstream_reader,
};

const struct provider provider_responses = {
    .name = "responses",
    .format = "openai",
    .base_url = "https://api.openai.com/v1",
    .url_variable = "OPENAI_BASE_URL",
    .key_variable = "OPENAI_API_KEY",
    .needs_model = true,
    .wire = &wire,
    .open = provider_http_open,
};
