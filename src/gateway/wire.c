/*
 * wire.c - the four APIs, a row each (wire.h). How the answers of each are read is in wire_chat.c,
 * wire_blocks.c, wire_items.c and wire_parts.c.
 */
#include "gateway/wire.h"

#include "base/limits.h"
#include "gateway/wire_core.h"

void wire_answer_init(struct wire_answer *a)
{
        *a = (struct wire_answer){0};
        buf_init(&a->messages, 0);
        buf_init(&a->others, 0);
        buf_init(&a->odd, WIRE_ODD_MAX);
        buf_init(&a->text, MESSAGE_MAX);
        buf_init(&a->usage, 64 * KIB);
        buf_init(&a->model, 4 * KIB);
        buf_init(&a->id, 4 * KIB);
        buf_init(&a->problem, 64 * KIB);
}

void wire_answer_release(struct wire_answer *a)
{
        buf_release(&a->messages);
        buf_release(&a->others);
        buf_release(&a->odd);
        buf_release(&a->text);
        buf_release(&a->usage);
        buf_release(&a->model);
        buf_release(&a->id);
        buf_release(&a->problem);
}

static const struct wire wires[] = {
    {"chat", "openai", "messages", NULL, wire_read_chat},
    {"responses", "responses", "input", "instructions", wire_read_items},
    {"anthropic", "anthropic", "messages", "system", wire_read_blocks},
    {"gemini", "gemini", "contents", "systemInstruction", wire_read_parts},
};

const struct wire *wire_named(const char *name)
{
        for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
                if (name && strcmp(wires[i].name, name) == 0)
                        return &wires[i];
        return NULL;
}

bool wire_is_stream(struct str body, bool told)
{
        static const char *const fields[] = {"data:", "event:", "id:", "retry:", ":"};
        body = str_trim(body);
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
                if (str_starts(body, fields[i]))
                        return true;
        return told && !(body.n && (body.p[0] == '{' || body.p[0] == '['));
}

static bool ends_with(struct str s, const char *z)
{
        size_t n = strlen(z);
        return s.n >= n && memcmp(s.p + s.n - n, z, n) == 0;
}

const struct wire *wire_of(const char *upstream, const char *method, struct str path)
{
        if (strcmp(method, "POST") != 0)
                return NULL;
        if (strcmp(upstream, "gemini") == 0)
                return ends_with(path, ":generateContent") ||
                               ends_with(path, ":streamGenerateContent")
                           ? wire_named("gemini")
                           : NULL;
        if (strcmp(upstream, "anthropic") == 0)
                return str_is(path, "/v1/messages") || str_is(path, "/messages")
                           ? wire_named("anthropic")
                           : NULL;
        if (ends_with(path, "/chat/completions"))
                return wire_named("chat");
        return ends_with(path, "/responses") ? wire_named("responses") : NULL;
}

int wire_messages(const struct wire *w, const struct json *request, struct buf *out)
{
        json_ref list = json_get(request, 0, w->list);
        if (json_type(request, list) == JSON_ARRAY) {
                buf_put_str(out, json_raw(request, list));
        } else if (json_type(request, list) == JSON_STRING) {
                buf_puts(out, "[{\"role\":\"user\",\"content\":");
                buf_put_str(out, json_raw(request, list));
                buf_puts(out, "}]");
        } else {
                buf_puts(out, "[]");
        }
        return out->failed;
}

void wire_put_error(const struct wire *w, const char *code, const char *message, struct buf *out)
{
        bool items = strcmp(w->name, "responses") == 0, blocks = strcmp(w->name, "anthropic") == 0;
        bool gemini = strcmp(w->name, "gemini") == 0;
        buf_puts(out, items || blocks ? "event: error\ndata: " : "data: ");
        struct jsonw j = jsonw_to(out);
        jsonw_object(&j);
        if (items || blocks)
                jsonw_field_cstr(&j, "type", "error");
        if (!items) {
                jsonw_key(&j, "error");
                jsonw_object(&j);
        }
        if (blocks)
                jsonw_field_cstr(&j, "type", "api_error");
        else if (gemini)
                jsonw_field_i64(&j, "code", 500);
        else
                jsonw_field_cstr(&j, "code", code);
        jsonw_field_cstr(&j, "message", message);
        if (gemini)
                jsonw_field_cstr(&j, "status", "INTERNAL");
        else if (!blocks)
                jsonw_field_null(&j, "param");
        if (!items && !blocks && !gemini)
                jsonw_field_cstr(&j, "type", "server_error");
        if (!items)
                jsonw_object_end(&j);
        jsonw_object_end(&j);
        buf_puts(out, "\n\n");
}
