/*
 * langchain.c - messages as @langchain/core stores them: {type, data} (StoredMessage), and the form
 * of its serializer, {lc:1, type:"constructor", id:[..., "AIMessage"], kwargs}.
 *
 * type is human, ai, system, developer, tool, function or generic. data (or kwargs) has content,
 * id, name, tool_calls[{name,args,id,type:"tool_call"}], tool_call_id, status, additional_kwargs
 * and response_metadata. Content blocks are those of chat completions. The writer uses {type,
 * data}.
 */
#include "format/format.h"

#include <string.h>

#include "base/error.h"
#include "format/describe.h"
#include "format/openai_content.h"
#include "format/reading.h"
#include "format/writing.h"
#include "model/token.h"

static const struct {
        const char *type;
        const char *name; /* the name of the constructor */
        const char *role;
        enum role is;
} TYPES[] = {
    {"human", "HumanMessage", "user", ROLE_USER},
    {"ai", "AIMessage", "assistant", ROLE_ASSISTANT},
    {"system", "SystemMessage", "system", ROLE_SYSTEM},
    {"developer", "DeveloperMessage", "developer", ROLE_DEVELOPER},
    {"tool", "ToolMessage", "tool", ROLE_TOOL},
    {"human", "HumanMessageChunk", "user", ROLE_USER},
    {"ai", "AIMessageChunk", "assistant", ROLE_ASSISTANT},
    {"tool", "ToolMessageChunk", "tool", ROLE_TOOL},
};

/* Finds the row of a message and its members. -1: the message is not of this format. */
static int open_message(const struct json *j, json_ref msg, json_ref *data)
{
        bool lc = json_is(j, json_get(j, msg, "type"), "constructor");
        json_ref ids = json_get(j, msg, "id");
        json_ref name = lc && json_count(j, ids) ? json_at(j, ids, json_count(j, ids) - 1)
                                                 : json_get(j, msg, "type");
        *data = json_get(j, msg, lc ? "kwargs" : "data");
        if (json_type(j, *data) != JSON_OBJECT)
                return -1;
        for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
                if (json_is(j, name, lc ? TYPES[i].name : TYPES[i].type))
                        return (int)i;
        return -1;
}

static int langchain_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        json_ref data;
        if (json_type(j, msg) != JSON_OBJECT)
                return describe_refuse(&d, "a message is not an object");
        int k = open_message(j, msg, &data);
        if (k < 0)
                return describe_refuse(
                    &d, "a message is neither {type, data} nor a constructor of a message");
        a.role = str_of(TYPES[k].role);
        int rc = describe_id(&d, json_get(j, data, "id"));
        json_ref calls = json_get(j, data, "tool_calls");
        bool list = !rc && TYPES[k].is == ROLE_ASSISTANT && json_type(j, calls) == JSON_ARRAY;
        for (json_ref c = list ? json_child(j, calls) : JSON_NONE; !rc && c != JSON_NONE;
             c = json_next(j, calls, c))
                rc = describe_call(
                    &d, json_get(j, c, "id"), json_get(j, c, "name"), "the id of a tool call");
        if (!rc && TYPES[k].is == ROLE_TOOL) {
                rc = describe_answer(&d, json_get(j, data, "tool_call_id"),
                    json_get(j, data, "name"), "tool_call_id");
                a.error = json_is(j, json_get(j, data, "status"), "error");
        }
        if (rc)
                return rc;
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

static void read_call(struct reading *r, json_ref c)
{
        static const char *const keys[] = {"name", "args", "id", "type", NULL};
        json_ref f[4];
        struct part p = {.kind = PART_CALL, .raw = reading_raw(r, c)};
        reading_members(r, c, keys, f, &p.extras, false);
        p.name = reading_string(r, f[0]);
        reading_input(r, &p, f[1]);
        p.id = reading_string(r, f[2]);
        *reading_part(r, PART_CALL, c) = p;
}

static void read_result(struct reading *r, json_ref content, json_ref id, json_ref status)
{
        struct part *p = reading_part(r, PART_RESULT, JSON_NONE);
        p->id = reading_string(r, id);
        p->name = r->m->name;
        r->m->name = (struct str){0};
        p->error = json_is(r->j, status, "error");
        p->output_raw = reading_raw(r, content);
        if (json_type(r->j, content) == JSON_ARRAY) {
                reading_children(r, p, content, openai_read_part);
        } else if (json_type(r->j, content) == JSON_STRING) {
                p->output_kind = OUTPUT_TEXT;
                p->output = reading_string(r, content);
        } else if (content != JSON_NONE) {
                p->output_kind = OUTPUT_DATA;
                p->output = reading_raw(r, content);
        }
}

/* Marks empty members that the serializer always writes as having no meaning. */
static void note_idle(struct extra *list)
{
        static const char *const names[] = {"additional_kwargs", "response_metadata",
            "invalid_tool_calls", "tool_calls", "tool_call_chunks", "usage_metadata", "name", "id",
            "role", "tool_call_id"};
        static const char *const values[] = {"{}", "[]", "null"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                for (size_t k = 0; k < 3; k++)
                        reading_idle(list, names[i], values[k]);
        reading_idle(list, "status", "\"success\"");
}

/* Reads the members around the data: {type} or {lc, type: "constructor", id}. The type is kept for
 * messages that are written in their own format. */
static void read_frame(struct reading *r, json_ref msg)
{
        static const char *const keys[] = {"type", "data", "kwargs", NULL};
        json_ref f[3];
        reading_members(r, msg, keys, f, &r->m->extras, true);
        r->m->native_role = reading_string(r, f[0]);
        bool lc = json_is(r->j, f[0], "constructor");
        for (struct extra *x = r->m->extras; lc && x; x = x->next)
                x->idle = str_is(x->key, "\"lc\"") || str_is(x->key, "\"id\"");
}

static int langchain_read(
    const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        enum { CONTENT, ID, NAME, CALLS, CALL_ID, STATUS, COUNT };
        static const char *const keys[] = {
            "content", "id", "name", "tool_calls", "tool_call_id", "status", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[COUNT], data;
        int k = open_message(j, msg, &data);
        if (k < 0)
                return 0;
        read_frame(&r, msg);
        reading_members(&r, data, keys, f, &m->extras, false);
        m->role = TYPES[k].is;
        m->id = reading_string(&r, f[ID]);
        m->name = reading_string(&r, f[NAME]);
        if (m->role == ROLE_TOOL) {
                read_result(&r, f[CONTENT], f[CALL_ID], f[STATUS]);
                reading_keep(&r, &m->extras, "status", f[STATUS], false);
                reading_idle(m->extras, "status", "\"error\"");
                note_idle(m->extras);
                return arena->failed;
        }
        openai_read_content(&r, f[CONTENT]);
        json_ref list = f[CALLS];
        bool calls = m->role == ROLE_ASSISTANT && json_type(j, list) == JSON_ARRAY;
        for (json_ref c = calls ? json_child(j, list) : JSON_NONE; c != JSON_NONE;
             c = json_next(j, list, c))
                read_call(&r, c);
        if (!calls)
                reading_keep(&r, &m->extras, "tool_calls", list, false);
        reading_keep(&r, &m->extras, "tool_call_id", f[CALL_ID], false);
        reading_keep(&r, &m->extras, "status", f[STATUS], false);
        note_idle(m->extras);
        return arena->failed;
}

/* ---- writing ---- */

static const char *type_of(enum role role)
{
        for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
                if (TYPES[i].is == role)
                        return TYPES[i].type;
        return "human";
}

static void write_calls(struct writer *w, const struct message *m)
{
        jsonw_key(&w->json, "tool_calls");
        jsonw_array(&w->json);
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind != PART_CALL)
                        continue;
                jsonw_object(&w->json);
                writing_string(w, "name", p->name.p ? p->name : STR(""));
                writing_arguments_value(w, m, "args", p);
                writing_string(w, "id", p->id.p ? p->id : STR(""));
                writing_text(w, "type", "tool_call");
                writing_extras(w, m, "tool_calls", p->extras, false);
                jsonw_object_end(&w->json);
                if (writing_own(w, m))
                        continue;
                writing_extras(w, m, "tool_calls", p->extras, true);
                writing_lose_figures(w, m, p);
                if (p->signature.p)
                        writing_lose(w, m, "signature", "the format has no place for it");
        }
        jsonw_array_end(&w->json);
}

static void end_message(struct writer *w, const struct message *m)
{
        static const char *const has[] = {"id", "name", NULL};
        writing_string(w, "id", m->id);
        if (writing_own(w, m))
                writing_extras(w, m, "", m->extras, false);
        jsonw_object_end(&w->json);
        jsonw_object_end(&w->json);
        if (writing_own(w, m))
                return;
        writing_lose_extras(w, m, "", m->extras);
        writing_lose_members(w, m, has);
}

static void begin_message(struct writer *w, const struct message *m, enum role role)
{
        bool own = writing_own(w, m) && m->native_role.p;
        jsonw_object(&w->json);
        if (own) {
                writing_string(w, "type", m->native_role);
                writing_extras(w, m, "", m->extras, true);
        } else {
                writing_text(w, "type", role == ROLE_DEVELOPER ? "system" : type_of(role));
        }
        jsonw_key(&w->json, own && str_is(m->native_role, "constructor") ? "kwargs" : "data");
        jsonw_object(&w->json);
}

/* Writes the content of a message that has no parts to write. */
static void write_no_content(struct writer *w, const struct message *m)
{
        bool own = writing_own(w, m);
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_OPAQUE)
                        writing_opaque(w, m, &m->parts[i]);
        if (own && m->shape == SHAPE_NULL)
                writing_raw(w, "content", STR("null"));
        else if (own && m->shape == SHAPE_ARRAY)
                writing_raw(w, "content", STR("[]"));
        else if (!own || m->shape != SHAPE_ABSENT)
                writing_text(w, "content", "");
}

static void write_result(struct writer *w, const struct message *m, const struct part *p)
{
        struct str name = writing_tool(p);
        struct message alone = *m;
        begin_message(w, m, ROLE_TOOL);
        openai_write_output(w, m, p);
        writing_string(w, "tool_call_id", p->id.p ? p->id : STR(""));
        writing_string(w, "name", name);
        if (!writing_own(w, m))
                writing_text(w, "status", p->error ? "error" : "success");
        if (m->count > 1) {
                alone.id = (struct str){0};
                if (p != m->parts)
                        alone.extras = NULL;
        }
        if (!writing_own(w, m)) {
                writing_lose_extras(w, m, "result", p->extras);
                writing_lose_figures(w, m, p);
        }
        end_message(w, &alone);
}

static void write_message(struct writer *w, const struct message *m)
{
        begin_message(w, m, m->role);
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind == PART_THINKING || p->kind == PART_REDACTED)
                        writing_lose_part(w, m, p);
        }
        struct message spoken = *m;
        if (m->shape != SHAPE_ARRAY || !writing_own(w, m))
                spoken.shape = SHAPE_ANY;
        if (!openai_has_content(w, &spoken))
                write_no_content(w, m);
        else
                openai_write_content(w, &spoken);
        writing_string(w, "name", m->name);
        if (m->role == ROLE_ASSISTANT && message_has(m, PART_CALL))
                write_calls(w, m);
        if (m->role == ROLE_DEVELOPER && !writing_own(w, m))
                writing_lose(w, m, "role", "written as system");
        end_message(w, m);
}

static int langchain_write(struct writer *w, const struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                if (writing_same(w, m))
                        continue;
                if (m->role == ROLE_NONE || m->role == ROLE_TOOL) {
                        for (size_t k = 0; k < m->count; k++)
                                if (m->parts[k].kind == PART_RESULT)
                                        write_result(w, m, &m->parts[k]);
                                else
                                        writing_lose_part(w, m, &m->parts[k]);
                        continue;
                }
                write_message(w, m);
                for (size_t k = 0; k < m->count; k++)
                        if (m->parts[k].kind == PART_RESULT)
                                write_result(w, m, &m->parts[k]);
        }
        return 0;
}

static int langchain_detect(const struct json *j, json_ref msg)
{
        json_ref data;
        return open_message(j, msg, &data) < 0 ? 0 : 99;
}

const struct format format_langchain = {
    .name = "langchain",
    .flags = FORMAT_ANSWERED,
    .describe = langchain_describe,
    .read = langchain_read,
    .write = langchain_write,
    .detect = langchain_detect,
};
