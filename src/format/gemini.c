/*
 * gemini.c - contents of parts: text, thought, inlineData, fileData, functionCall,
 * functionResponse, with thought signatures.
 *
 * A functionCall needs no id: the responses come in the order of the calls, and are paired by name.
 * A result that is not an object is written as {"output": text}, an error as {"error": text}.
 */
#include "format/format.h"

#include "base/error.h"
#include "format/describe.h"
#include "format/fit.h"
#include "format/reading.h"
#include "format/turns.h"
#include "format/writing.h"
#include "model/token.h"

static const char USER[] = "user";
static const char MODEL[] = "model";

/* ---- describing ---- */

static int describe_function(struct describe *d, json_ref f, bool call)
{
        json_ref id = json_get(d->j, f, "id");
        json_ref name = json_get(d->j, f, "name");
        return call ? describe_named_call(d, id, name, "the name of a functionCall")
                    : describe_named_answer(d, id, name, "the name of a functionResponse");
}

static int describe_parts(struct describe *d, json_ref parts, bool *only)
{
        int rc = 0;
        *only = json_count(d->j, parts) > 0;
        for (json_ref p = json_child(d->j, parts); !rc && p != JSON_NONE;
             p = json_next(d->j, parts, p)) {
                json_ref call = json_get(d->j, p, "functionCall");
                json_ref response = json_get(d->j, p, "functionResponse");
                if (json_type(d->j, call) == JSON_OBJECT)
                        rc = describe_function(d, call, true);
                else if (json_type(d->j, response) == JSON_OBJECT)
                        rc = describe_function(d, response, false);
                if (json_type(d->j, response) != JSON_OBJECT)
                        *only = false;
        }
        return rc;
}

static int gemini_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {USER, MODEL, "function", "tool", NULL};
        static const char *const as[] = {"user", "assistant", "tool", "tool"};
        struct about a = {.role = STR("user")};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        if (json_type(j, msg) != JSON_OBJECT)
                return describe_refuse(&d, "a message is not an object");
        json_ref role = json_get(j, msg, "role");
        int rc = role == JSON_NONE ? 0 : describe_role(&d, role, roles, as);
        if (!rc)
                rc = describe_id(&d, json_get(j, msg, "id"));
        json_ref parts = json_get(j, msg, "parts");
        if (!rc && json_type(j, parts) != JSON_ARRAY)
                rc = describe_refuse(&d, "parts is not an array");
        bool only = false;
        if (!rc)
                rc = describe_parts(&d, parts, &only);
        if (rc)
                return rc;
        if (only && str_is(a.role, USER))
                a.role = STR("tool");
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

static bool read_call(struct reading *r, json_ref part)
{
        static const char *const outer[] = {"functionCall", "thoughtSignature", NULL};
        static const char *const keys[] = {"id", "name", "args", NULL};
        json_ref f[2], g[3];
        struct part p = {.kind = PART_CALL, .raw = reading_raw(r, part)};
        reading_members(r, part, outer, f, &p.extras, false);
        reading_members(r, f[0], keys, g, &p.extras, true);
        p.id = reading_string(r, g[0]);
        if (!p.id.p)
                reading_keep(r, &p.extras, "id", g[0], true);
        p.by_name = !p.id.n;
        p.name = reading_string(r, g[1]);
        reading_input(r, &p, g[2]);
        p.signature = reading_string_or_keep(r, &p.extras, "thoughtSignature", f[1]);
        *reading_part(r, PART_CALL, part) = p;
        return true;
}

static void read_response(struct reading *r, struct part *p, json_ref v)
{
        const struct json *j = r->j;
        p->output_kind = OUTPUT_DATA;
        p->output = reading_raw(r, v);
        p->output_raw = p->output;
        p->output_object = true;
        if (!p->output.p)
                p->output_kind = OUTPUT_NONE;
        if (json_type(j, v) != JSON_OBJECT || json_count(j, v) != 1)
                return;
        json_ref text = json_get(j, v, "output");
        json_ref failure = json_get(j, v, "error");
        p->error = json_type(j, failure) == JSON_STRING;
        if (p->error)
                text = failure;
        if (json_type(j, text) != JSON_STRING)
                return;
        p->output_kind = OUTPUT_TEXT;
        p->output = reading_string(r, text);
        p->output_raw = reading_raw(r, text);
        p->output_object = false;
}

static bool read_result(struct reading *r, json_ref part)
{
        static const char *const outer[] = {"functionResponse", NULL};
        static const char *const keys[] = {"id", "name", "response", NULL};
        json_ref f[1], g[3];
        struct part p = {.kind = PART_RESULT, .raw = reading_raw(r, part)};
        reading_members(r, part, outer, f, &p.extras, false);
        reading_members(r, f[0], keys, g, &p.extras, true);
        p.id = reading_string(r, g[0]);
        if (!p.id.p)
                reading_keep(r, &p.extras, "id", g[0], true);
        p.name = reading_string(r, g[1]);
        read_response(r, &p, g[2]);
        *reading_part(r, PART_RESULT, part) = p;
        return true;
}

static bool read_media(struct reading *r, json_ref part, bool inlined)
{
        const char *const outer[] = {inlined ? "inlineData" : "fileData", NULL};
        const char *const keys[] = {"mimeType", inlined ? "data" : "fileUri", "displayName", NULL};
        json_ref f[1], g[3];
        struct extra *extras = NULL;
        reading_members(r, part, outer, f, &extras, false);
        reading_members(r, f[0], keys, g, &extras, true);
        bool typed = json_type(r->j, g[0]) == JSON_STRING || (!inlined && g[0] == JSON_NONE);
        bool named = json_type(r->j, g[2]) == JSON_STRING || g[2] == JSON_NONE;
        if (!typed || !named || json_type(r->j, g[1]) != JSON_STRING)
                return false;
        struct str mime = reading_string(r, g[0]);
        struct part *p = reading_part(r, PART_FILE, part);
        p->kind = str_starts(mime, "image/")   ? PART_IMAGE
                  : str_starts(mime, "audio/") ? PART_AUDIO
                                               : PART_FILE;
        p->media.mime = mime;
        if (inlined)
                p->media.data = reading_string(r, g[1]);
        else
                p->media.url = reading_string(r, g[1]);
        p->media.name = reading_string(r, g[2]);
        p->extras = extras;
        return true;
}

static bool read_text(struct reading *r, json_ref part)
{
        static const char *const keys[] = {"text", "thought", "thoughtSignature", NULL};
        json_ref f[3];
        struct extra *extras = NULL;
        reading_members(r, part, keys, f, &extras, false);
        if (json_type(r->j, f[0]) != JSON_STRING)
                return false;
        bool thought = json_type(r->j, f[1]) == JSON_TRUE;
        struct part *p = reading_part(r, thought ? PART_THINKING : PART_TEXT, part);
        p->text = reading_string(r, f[0]);
        p->extras = extras;
        if (!thought)
                reading_keep(r, &p->extras, "thought", f[1], false);
        if (thought && json_type(r->j, f[2]) == JSON_STRING)
                p->signature = reading_string(r, f[2]);
        else
                reading_keep(r, &p->extras, "thoughtSignature", f[2], false);
        return true;
}

static void read_part(struct reading *r, json_ref part)
{
        const struct json *j = r->j;
        bool done = false;
        if (json_type(j, json_get(j, part, "text")) == JSON_STRING)
                done = read_text(r, part);
        else if (json_type(j, json_get(j, part, "functionCall")) == JSON_OBJECT)
                done = read_call(r, part);
        else if (json_type(j, json_get(j, part, "functionResponse")) == JSON_OBJECT)
                done = read_result(r, part);
        else if (json_type(j, json_get(j, part, "inlineData")) == JSON_OBJECT)
                done = read_media(r, part, true);
        else if (json_type(j, json_get(j, part, "fileData")) == JSON_OBJECT)
                done = read_media(r, part, false);
        if (!done)
                reading_opaque(r, part);
}

static int gemini_read(const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        static const char *const keys[] = {"role", "parts", "id", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[3];
        reading_members(&r, msg, keys, f, &m->extras, false);
        m->native_role = reading_string(&r, f[0]);
        m->role = json_is(j, f[0], MODEL) ? ROLE_ASSISTANT : ROLE_USER;
        m->id = reading_string_or_keep(&r, &m->extras, "id", f[2]);
        m->shape = SHAPE_ANY;
        for (json_ref p = json_child(j, f[1]); p != JSON_NONE; p = json_next(j, f[1], p))
                read_part(&r, p);
        if (m->role == ROLE_USER && m->count && message_count(m, PART_RESULT) == m->count)
                m->role = ROLE_TOOL;
        return arena->failed;
}

/* ---- writing ---- */

static bool is_writable(const struct writer *w, const struct message *m, const struct part *p)
{
        switch (p->kind) {
        case PART_TEXT:
        case PART_REFUSAL:
                return !w->valid || !turns_is_blank(p->text);
        case PART_THINKING:
                return writing_own(w, m) && (!w->valid || p->text.n);
        case PART_OPAQUE:
                return writing_own(w, m);
        case PART_REDACTED:
                return false;
        case PART_IMAGE:
        case PART_AUDIO:
        case PART_FILE:
                return p->media.data.p || p->media.url.p;
        default:
                return true;
        }
}

/* A call that came without an id gets none here, even if the store gave it one: calls and results
 * are matched by name and order, and a call that is copied unchanged has no id either. */
static void write_id(struct writer *w, const struct part *p)
{
        uint64_t seq;
        uint32_t place;
        const struct part *call = p->kind == PART_RESULT && p->peer ? p->peer : p;
        if (p->id.n && !call->by_name && !message_is_derived_id(p->id, &seq, &place))
                writing_string(w, "id", p->id);
}

static void write_call(struct writer *w, const struct message *m, const struct part *p)
{
        jsonw_key(&w->json, "functionCall");
        jsonw_object(&w->json);
        write_id(w, p);
        writing_string(w, "name", p->name);
        if (p->arguments.p)
                writing_arguments_value(w, m, "args", p);
        writing_extras(w, m, "tool_calls", p->extras, true);
        jsonw_object_end(&w->json);
        writing_string(w, "thoughtSignature", p->signature);
        if (!writing_own(w, m))
                writing_lose_figures(w, m, p);
}

static void write_response(struct writer *w, const struct message *m, const struct part *p)
{
        struct str text = {0};
        jsonw_key(&w->json, "response");
        if (p->output_kind == OUTPUT_DATA && (p->output.p[0] == '{' || writing_own(w, m))) {
                if (p->error && !writing_own(w, m))
                        writing_lose(w, m, "is_error", "the format has no place for it");
                jsonw_raw(&w->json, p->output);
                return;
        }
        if (p->output_kind == OUTPUT_TEXT && !p->error && !writing_own(w, m)) {
                bool lossy = false;
                text = token_decode(p->output, w->arena, &lossy);
                /* A single member "output" or "error" would be read back as text. */
                if (!lossy && writing_is_object(text) &&
                    !memmem(text.p, text.n < 64 ? text.n : 64, "\"output\"", 8) &&
                    !memmem(text.p, text.n < 64 ? text.n : 64, "\"error\"", 7)) {
                        jsonw_raw(&w->json, w->valid ? fit_text(text, w->arena) : text);
                        return;
                }
        }
        jsonw_object(&w->json);
        writing_string(w, p->error ? "error" : "output", writing_output(w, m, p));
        jsonw_object_end(&w->json);
        for (size_t i = 0; i < p->child_count; i++) {
                const struct part *child = &p->children[i];
                if (child->kind == PART_TEXT)
                        writing_lose_extras(w, m, "content", child->extras);
                else
                        writing_lose_part(w, m, child);
        }
        if (p->child_count > 1)
                writing_lose(w, m, "content", "several texts, joined");
}

static void write_result(struct writer *w, const struct message *m, const struct part *p)
{
        jsonw_key(&w->json, "functionResponse");
        jsonw_object(&w->json);
        write_id(w, p);
        struct str name = writing_tool(p);
        writing_string(w, "name", name.p ? name : STR("unknown"));
        if (p->output_kind != OUTPUT_NONE || !writing_own(w, m))
                write_response(w, m, p);
        writing_extras(w, m, "result", p->extras, true);
        jsonw_object_end(&w->json);
        if (!writing_own(w, m))
                writing_lose_figures(w, m, p);
}

static void write_media(struct writer *w, const struct message *m, const struct part *p)
{
        const struct media *x = &p->media;
        jsonw_key(&w->json, x->data.p ? "inlineData" : "fileData");
        jsonw_object(&w->json);
        if (x->mime.p || x->data.p)
                writing_string(w, "mimeType", x->mime.p ? x->mime : STR("image/png"));
        writing_string(w, "data", x->data);
        writing_string(w, "fileUri", x->data.p ? (struct str){0} : x->url);
        writing_string(w, "displayName", x->name);
        writing_extras(w, m, "image", p->extras, true);
        jsonw_object_end(&w->json);
        if (x->detail.p)
                writing_lose(w, m, "detail", "the format has no place for it");
        if (x->file_id.p)
                writing_lose(w, m, "file_id", "the format has no place for it");
        if (!x->data.p && !x->mime.p)
                writing_lose(w, m, "image", "a link without a type, which comes back as a file");
}

static void write_part(struct writer *w, const struct message *m, const struct part *p)
{
        if (p->kind == PART_OPAQUE) {
                writing_opaque(w, m, p);
                return;
        }
        if (writing_same_part(w, m, p))
                return;
        jsonw_object(&w->json);
        switch (p->kind) {
        case PART_CALL:
                write_call(w, m, p);
                break;
        case PART_RESULT:
                write_result(w, m, p);
                break;
        case PART_IMAGE:
        case PART_AUDIO:
        case PART_FILE:
                write_media(w, m, p);
                break;
        default:
                writing_string(w, "text", p->text);
                if (p->kind == PART_THINKING)
                        writing_raw(w, "thought", STR("true"));
                if (p->kind == PART_REFUSAL)
                        writing_lose(w, m, "refusal", "written as text");
                writing_string(w, "thoughtSignature", p->signature);
        }
        writing_extras(w, m, "tool_calls", p->extras, false);
        jsonw_object_end(&w->json);
}

static void say(struct writer *w, const char *text)
{
        jsonw_object(&w->json);
        writing_text(w, "text", text);
        jsonw_object_end(&w->json);
}

static bool is_clean(const struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (!is_writable(w, m, &m->parts[i]))
                        return false;
        return m->count > 0 && str_is(m->native_role, m->role == ROLE_ASSISTANT ? MODEL : USER);
}

static void write_alone(struct writer *w, const struct message *m)
{
        jsonw_object(&w->json);
        writing_string(w, "role", m->native_role);
        jsonw_key(&w->json, "parts");
        jsonw_array(&w->json);
        for (size_t i = 0; i < m->count; i++)
                write_part(w, m, &m->parts[i]);
        jsonw_array_end(&w->json);
        writing_string(w, "id", m->id);
        writing_extras(w, m, "", m->extras, false);
        jsonw_object_end(&w->json);
}

static int gemini_write(struct writer *w, const struct history *h)
{
        static const struct turns_style style = {
            .content = "parts",
            .user = USER,
            .model = MODEL,
            .is_writable = is_writable,
            .is_clean = is_clean,
            .write_part = write_part,
            .write_alone = write_alone,
            .say = say,
        };
        return turns_write(w, h, &style);
}

static int gemini_detect(const struct json *j, json_ref msg)
{
        if (json_type(j, json_get(j, msg, "parts")) != JSON_ARRAY)
                return 0;
        json_ref role = json_get(j, msg, "role");
        if (json_is(j, role, MODEL) || json_is(j, role, "function"))
                return 98;
        json_ref part = json_child(j, json_get(j, msg, "parts"));
        if (json_get(j, part, "type") != JSON_NONE ||
            !(json_is(j, role, USER) || role == JSON_NONE))
                return 0;
        return 90;
}

const struct format format_gemini = {
    .name = "gemini",
    .flags = FORMAT_PROVIDER | FORMAT_NAMELESS | FORMAT_TEXT_RESULTS | FORMAT_OBJECT_RESULTS,
    .describe = gemini_describe,
    .read = gemini_read,
    .write = gemini_write,
    .carries = is_writable,
    .detect = gemini_detect,
};
