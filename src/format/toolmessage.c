/*
 * toolmessage.c - two formats of one family: `toolmessage2` and the older `toolmessage`.
 *
 * Assistant parts are text, reasoning and tool_use{id,name,input,displayName?,description?}.
 * Results are {role:"tool",content:[{type:"tool-result",toolCallId,toolName,input,result}]},
 * several in one message; in the older form {role:"user",content:[{type:"tool_result",id,name,
 * input,result}]}. result is {llmContent, returnDisplay?, isError?}; an older one may be plain. The
 * readers of both formats accept both forms; each writer writes its own form.
 */
#include "format/format.h"

#include "base/error.h"
#include "format/blocks.h"
#include "format/describe.h"
#include "format/openai_content.h"
#include "format/reading.h"
#include "format/writing.h"
#include "model/token.h"

static bool is_result(const struct json *j, json_ref b)
{
        json_ref type = json_get(j, b, "type");
        return json_is(j, type, "tool-result") || json_is(j, type, "tool_result");
}

static json_ref result_id(const struct json *j, json_ref b)
{
        return json_get(
            j, b, json_is(j, json_get(j, b, "type"), "tool-result") ? "toolCallId" : "id");
}

static json_ref result_name(const struct json *j, json_ref b)
{
        return json_get(
            j, b, json_is(j, json_get(j, b, "type"), "tool-result") ? "toolName" : "name");
}

static int toolmessage_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {
            "system", "developer", "user", "assistant", "tool", NULL};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        int rc = describe_message(&d, msg, roles);
        json_ref content = json_get(j, msg, "content");
        bool list = json_type(j, content) == JSON_ARRAY;
        bool only = list && json_count(j, content);
        for (json_ref b = list ? json_child(j, content) : JSON_NONE; !rc && b != JSON_NONE;
             b = json_next(j, content, b)) {
                if (is_result(j, b)) {
                        rc = describe_answer(
                            &d, result_id(j, b), result_name(j, b), "the call id of a result");
                        json_ref result = json_get(j, b, "result");
                        a.error |= json_bool(j, json_get(j, result, "isError"), false);
                        continue;
                }
                only = false;
                if (json_is(j, json_get(j, b, "type"), "tool_use"))
                        rc = describe_call(&d, json_get(j, b, "id"), json_get(j, b, "name"),
                            "the id of a tool_use part");
        }
        if (rc)
                return rc;
        if (only && str_is(a.role, "user"))
                a.role = STR("tool");
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

static void read_use(struct reading *r, json_ref b)
{
        static const char *const keys[] = {
            "type", "id", "name", "input", "displayName", "description", NULL};
        json_ref f[6];
        struct part p = {.kind = PART_CALL, .raw = reading_raw(r, b)};
        reading_members(r, b, keys, f, &p.extras, false);
        p.id = reading_string(r, f[1]);
        p.name = reading_string(r, f[2]);
        reading_input(r, &p, f[3]);
        p.display_name = reading_raw(r, f[4]);
        p.description = reading_raw(r, f[5]);
        *reading_part(r, PART_CALL, b) = p;
}

static bool is_wrapped(const struct json *j, json_ref result)
{
        return json_type(j, result) == JSON_OBJECT &&
               json_get(j, result, "llmContent") != JSON_NONE;
}

static void read_result(struct reading *r, json_ref b)
{
        bool newer = json_is(r->j, json_get(r->j, b, "type"), "tool-result");
        const char *const keys[] = {"type", newer ? "toolCallId" : "id",
            newer ? "toolName" : "name", "input", "result", NULL};
        static const char *const inner[] = {"llmContent", "returnDisplay", "isError", NULL};
        json_ref f[5], g[3];
        struct part p = {.kind = PART_RESULT, .raw = reading_raw(r, b)};
        reading_members(r, b, keys, f, &p.extras, false);
        p.id = reading_string(r, f[1]);
        p.name = reading_string(r, f[2]);
        p.arguments = reading_raw(r, f[3]);
        if (is_wrapped(r->j, f[4])) {
                reading_members(r, f[4], inner, g, &p.extras, true);
                blocks_read_output(r, &p, g[0]);
                p.display = reading_raw(r, g[1]);
                p.error = json_type(r->j, g[2]) == JSON_TRUE;
                if (!p.error)
                        reading_keep(r, &p.extras, "isError", g[2], true);
                reading_idle(p.extras, "isError", "false");
        } else {
                blocks_read_output(r, &p, f[4]);
        }
        *reading_part(r, PART_RESULT, b) = p;
}

static void read_block(struct reading *r, json_ref b)
{
        json_ref type = json_get(r->j, b, "type");
        if (json_is(r->j, type, "tool_use"))
                read_use(r, b);
        else if (is_result(r->j, b))
                read_result(r, b);
        else if (!json_is(r->j, type, "reasoning") || !reading_text_of(r, b, "text", PART_THINKING))
                blocks_read(r, b);
}

static int toolmessage_read(
    const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        static const char *const keys[] = {"role", "content", "id", "createdAt", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[4];
        reading_members(&r, msg, keys, f, &m->extras, false);
        m->native_role = reading_string(&r, f[0]);
        m->role = openai_role(j, f[0]);
        m->id = reading_string_or_keep(&r, &m->extras, "id", f[2]);
        m->created_at = reading_string_or_keep(&r, &m->extras, "createdAt", f[3]);
        if (json_type(j, f[1]) == JSON_ARRAY) {
                m->shape = SHAPE_ARRAY;
                for (json_ref b = json_child(j, f[1]); b != JSON_NONE; b = json_next(j, f[1], b))
                        read_block(&r, b);
        } else {
                openai_read_content(&r, f[1]);
        }
        if (m->role == ROLE_USER && m->count && message_count(m, PART_RESULT) == m->count)
                m->role = ROLE_TOOL;
        return arena->failed;
}

/* ---- writing ---- */

static bool is_older(const struct writer *w)
{
        return w->format == &format_toolmessage;
}

/* Was the result a plain value in its message? */
static bool was_plain(const struct part *p)
{
        struct json j;
        json_init(&j);
        bool plain = p->raw.p && json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) == 0 &&
                     !is_wrapped(&j, json_get(&j, 0, "result"));
        json_release(&j);
        return plain;
}

static void write_input(struct writer *w, const struct message *m, const struct part *p)
{
        if (p->arguments.p && !p->arguments_text)
                writing_raw(w, "input", p->arguments);
        else if (p->peer && !writing_own(w, m))
                writing_arguments_value(w, m, "input", p->peer);
}

static void write_result(struct writer *w, const struct message *m, const struct part *p)
{
        bool own = writing_own(w, m);
        bool older = is_older(w);
        jsonw_object(&w->json);
        writing_text(w, "type", older ? "tool_result" : "tool-result");
        writing_string(w, older ? "id" : "toolCallId", p->id.p ? p->id : STR(""));
        writing_string(w, older ? "name" : "toolName", own ? p->name : writing_tool(p));
        write_input(w, m, p);
        if (own && was_plain(p)) {
                blocks_write_output(w, m, "result", p);
        } else {
                jsonw_key(&w->json, "result");
                jsonw_object(&w->json);
                blocks_write_output(w, m, "llmContent", p);
                writing_raw(w, "returnDisplay", p->display);
                if (p->error)
                        writing_raw(w, "isError", STR("true"));
                writing_extras(w, m, "result", p->extras, true);
                jsonw_object_end(&w->json);
        }
        writing_extras(w, m, "result", p->extras, false);
        jsonw_object_end(&w->json);
        if (own)
                return;
        struct part rest = *p;
        rest.display = (struct str){0};
        writing_lose_figures(w, m, &rest);
}

static void write_use(struct writer *w, const struct message *m, const struct part *p)
{
        jsonw_object(&w->json);
        writing_text(w, "type", "tool_use");
        writing_string(w, "id", p->id.p ? p->id : STR(""));
        writing_string(w, "name", p->name.p ? p->name : STR(""));
        if (p->arguments.p || !writing_own(w, m))
                writing_arguments_value(w, m, "input", p);
        writing_raw(w, "displayName", p->display_name);
        writing_raw(w, "description", p->description);
        writing_extras(w, m, "tool_calls", p->extras, false);
        jsonw_object_end(&w->json);
        if (writing_own(w, m))
                return;
        writing_extras(w, m, "tool_calls", p->extras, true);
        struct part rest = *p;
        rest.display_name = rest.description = (struct str){0};
        writing_lose_figures(w, m, &rest);
        if (p->signature.p)
                writing_lose(w, m, "signature", "the format has no place for it");
}

static void write_block(struct writer *w, const struct message *m, const struct part *p)
{
        switch (p->kind) {
        case PART_CALL:
                write_use(w, m, p);
                break;
        case PART_RESULT:
                write_result(w, m, p);
                break;
        case PART_THINKING:
                jsonw_object(&w->json);
                writing_text(w, "type", "reasoning");
                writing_string(w, "text", p->text.p ? p->text : STR(""));
                writing_extras(w, m, "thinking", p->extras, false);
                jsonw_object_end(&w->json);
                if (p->signature.p)
                        writing_lose(w, m, "signature", "the format has no place for it");
                break;
        case PART_REDACTED:
                writing_lose_part(w, m, p);
                break;
        case PART_REFUSAL:
                writing_lose(w, m, "refusal", "written as text");
                blocks_write(w, m, p);
                break;
        default:
                blocks_write(w, m, p);
        }
}

static void write_message(struct writer *w, const struct message *m)
{
        static const char *const has[] = {"id", "createdAt", NULL};
        bool own = writing_own(w, m);
        bool string = m->count == 1 && m->parts[0].kind == PART_TEXT && m->role != ROLE_ASSISTANT &&
                      (!own || m->shape == SHAPE_STRING);
        if (own && m->shape == SHAPE_STRING && m->count == 1 && m->parts[0].kind == PART_TEXT)
                string = true;
        jsonw_object(&w->json);
        writing_string(w, "id", m->id);
        writing_text(
            w, "role", m->role == ROLE_TOOL && is_older(w) ? "user" : openai_role_name(m->role));
        if (string) {
                writing_string(w, "content", m->parts[0].text);
                if (!own)
                        writing_lose_extras(w, m, "content", m->parts[0].extras);
        } else if (!own || m->shape == SHAPE_ARRAY) {
                jsonw_key(&w->json, "content");
                jsonw_array(&w->json);
                for (size_t i = 0; i < m->count; i++)
                        write_block(w, m, &m->parts[i]);
                jsonw_array_end(&w->json);
        } else if (m->shape == SHAPE_NULL) {
                writing_raw(w, "content", STR("null"));
        }
        writing_string(w, "createdAt", m->created_at);
        writing_extras(w, m, "", m->extras, false);
        jsonw_object_end(&w->json);
        if (own)
                return;
        writing_extras(w, m, "", m->extras, true);
        writing_lose_members(w, m, has);
}

static int toolmessage_write(struct writer *w, const struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                if (!writing_same(w, m))
                        write_message(w, m);
        }
        return 0;
}

static int detect(const struct json *j, json_ref msg, bool older)
{
        json_ref role = json_get(j, msg, "role");
        json_ref content = json_get(j, msg, "content");
        if (openai_role(j, role) == ROLE_NONE)
                return 0;
        if (json_type(j, content) != JSON_ARRAY)
                return 40;
        int score = 35;
        for (json_ref b = json_child(j, content); b != JSON_NONE; b = json_next(j, content, b)) {
                json_ref type = json_get(j, b, "type");
                if (json_is(j, type, "tool-result"))
                        return older ? 0 : 98;
                if (json_is(j, type, "tool_result"))
                        return older && json_get(j, b, "tool_use_id") == JSON_NONE ? 98 : 0;
                int one = json_is(j, type, "reasoning")                                        ? 92
                          : json_is(j, type, "tool_use")                                       ? 90
                          : json_is(j, type, "image") && json_get(j, b, "source") == JSON_NONE ? 86
                                                                                               : 0;
                if (one > score)
                        score = one;
        }
        /* Only results differ between the two forms, so the newer one wins if there are none. */
        return score > 80 && !older ? score + 1 : score;
}

static int detect_newer(const struct json *j, json_ref msg)
{
        return detect(j, msg, false);
}

static int detect_older(const struct json *j, json_ref msg)
{
        return detect(j, msg, true);
}

const struct format format_toolmessage2 = {
    .name = "toolmessage2",
    .describe = toolmessage_describe,
    .read = toolmessage_read,
    .write = toolmessage_write,
    .detect = detect_newer,
};

const struct format format_toolmessage = {
    .name = "toolmessage",
    .describe = toolmessage_describe,
    .read = toolmessage_read,
    .write = toolmessage_write,
    .detect = detect_older,
};
