/*
 * acontext.c - messages of parts {type, text, meta}: text, image, audio, video, file, tool-call,
 * tool-result, data, thinking, redacted_thinking; roles user and assistant.
 *
 * Like in Acontext, `meta` holds what has no member of its own: original_role and name of a
 * message, id, name and arguments of a call, tool_call_id and is_error of a result, signature of
 * thinking. Here `meta` also holds the bytes of media (media_type, data), which Acontext drops.
 */
#include "format/format.h"

#include "base/error.h"
#include "format/describe.h"
#include "format/reading.h"
#include "format/writing.h"
#include "model/token.h"

static int describe_parts(struct describe *d, json_ref parts, bool *only)
{
        const struct json *j = d->j;
        int rc = 0;
        *only = json_count(j, parts) > 0;
        for (json_ref p = json_child(j, parts); !rc && p != JSON_NONE; p = json_next(j, parts, p)) {
                json_ref type = json_get(j, p, "type");
                json_ref meta = json_get(j, p, "meta");
                if (json_is(j, type, "tool-result")) {
                        rc = describe_answer(d, json_get(j, meta, "tool_call_id"),
                            json_get(j, meta, "name"), "tool_call_id of a tool-result");
                        d->out->error |= json_bool(j, json_get(j, meta, "is_error"), false);
                        continue;
                }
                *only = false;
                if (!json_is(j, type, "tool-call"))
                        continue;
                rc = describe_named_call(d, json_get(j, meta, "id"), json_get(j, meta, "name"),
                    "the name of a tool-call");
        }
        return rc;
}

static int acontext_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {"user", "assistant", NULL};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        int rc = describe_message(&d, msg, roles);
        json_ref parts = json_get(j, msg, "parts");
        if (!rc && json_type(j, parts) != JSON_ARRAY)
                rc = describe_refuse(&d, "parts is not an array");
        bool only = false;
        if (!rc)
                rc = describe_parts(&d, parts, &only);
        if (rc)
                return rc;
        json_ref was = json_get(j, json_get(j, msg, "meta"), "original_role");
        if (json_is(j, was, "system"))
                a.role = STR("system");
        else if (json_is(j, was, "developer"))
                a.role = STR("developer");
        else if (only && str_is(a.role, "user"))
                a.role = STR("tool");
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

/* Finds the members of a part: the outer ones, and those of its meta. Null counts as absent,
 * because the SDK writes it for absent members. */
static bool open_part(struct reading *r, json_ref v, const char *const *keys, json_ref *g,
    struct part *p, json_ref *text)
{
        static const char *const outer[] = {"type", "text", "meta", "filename", NULL};
        json_ref f[4];
        reading_members(r, v, outer, f, &p->extras, false);
        if (json_type(r->j, f[2]) != JSON_OBJECT)
                reading_keep(r, &p->extras, "meta", f[2], false);
        reading_members(r, f[2], keys, g, &p->extras, true);
        *text = f[1];
        if (json_type(r->j, f[1]) != JSON_STRING)
                reading_keep(r, &p->extras, "text", f[1], false);
        p->media.name = reading_string_or_keep(r, &p->extras, "filename", f[3]);
        static const char *const nulls[] = {"text", "meta", "filename", "file_field"};
        for (size_t i = 0; i < 4; i++)
                reading_idle(p->extras, nulls[i], "null");
        return f[2] == JSON_NONE || json_type(r->j, f[2]) == JSON_OBJECT ||
               json_type(r->j, f[2]) == JSON_NULL;
}

static bool read_words(struct reading *r, json_ref v, enum part_kind kind)
{
        static const char *const none[] = {NULL};
        static const char *const signed_keys[] = {"signature", NULL};
        json_ref g[1] = {JSON_NONE}, text;
        struct part p = {.kind = kind, .raw = reading_raw(r, v)};
        if (!open_part(r, v, kind == PART_THINKING ? signed_keys : none, g, &p, &text) ||
            json_type(r->j, text) != JSON_STRING || p.media.name.p)
                return false;
        p.text = reading_string(r, text);
        p.signature = reading_string(r, g[0]);
        if (kind == PART_THINKING && !p.signature.p)
                reading_keep(r, &p.extras, "signature", g[0], true);
        *reading_part(r, kind, v) = p;
        return true;
}

static bool read_redacted(struct reading *r, json_ref v)
{
        static const char *const keys[] = {"data", NULL};
        json_ref g[1], text;
        struct part p = {.kind = PART_REDACTED, .raw = reading_raw(r, v)};
        if (!open_part(r, v, keys, g, &p, &text) || json_type(r->j, g[0]) != JSON_STRING ||
            json_type(r->j, text) == JSON_STRING)
                return false;
        p.text = reading_string(r, g[0]);
        *reading_part(r, PART_REDACTED, v) = p;
        return true;
}

static bool read_media(struct reading *r, json_ref v, enum part_kind kind)
{
        enum { MIME, DATA, URL, FILE_ID, DETAIL, COUNT };
        static const char *const keys[] = {"media_type", "data", "url", "file_id", "detail", NULL};
        json_ref g[COUNT], text;
        struct part p = {.kind = kind, .raw = reading_raw(r, v)};
        if (!open_part(r, v, keys, g, &p, &text) || json_type(r->j, text) == JSON_STRING)
                return false;
        struct str *to[] = {
            &p.media.mime, &p.media.data, &p.media.url, &p.media.file_id, &p.media.detail};
        for (size_t i = 0; i < COUNT; i++) {
                *to[i] = reading_string(r, g[i]);
                if (!to[i]->p)
                        reading_keep(r, &p.extras, keys[i], g[i], true);
        }
        if (!p.media.data.p && !p.media.url.p && !p.media.file_id.p)
                return false;
        *reading_part(r, kind, v) = p;
        return true;
}

static bool read_call(struct reading *r, json_ref v)
{
        static const char *const keys[] = {"id", "name", "arguments", "type", "signature", NULL};
        json_ref g[5], text;
        struct part p = {.kind = PART_CALL, .raw = reading_raw(r, v)};
        if (!open_part(r, v, keys, g, &p, &text) || json_type(r->j, text) == JSON_STRING)
                return false;
        p.id = reading_string(r, g[0]);
        p.name = reading_string(r, g[1]);
        p.arguments_text = json_type(r->j, g[2]) == JSON_STRING;
        p.arguments = p.arguments_text ? reading_string(r, g[2]) : reading_raw(r, g[2]);
        p.signature = reading_string(r, g[4]);
        if (!p.signature.p)
                reading_keep(r, &p.extras, "signature", g[4], true);
        reading_keep(r, &p.extras, "type", g[3], true);
        reading_idle(p.extras, "type", "\"function\"");
        reading_idle(p.extras, "type", "\"tool_use\"");
        *reading_part(r, PART_CALL, v) = p;
        return true;
}

static bool read_result(struct reading *r, json_ref v)
{
        static const char *const keys[] = {"tool_call_id", "is_error", "name", NULL};
        json_ref g[3], text;
        struct part p = {.kind = PART_RESULT, .raw = reading_raw(r, v)};
        if (!open_part(r, v, keys, g, &p, &text))
                return false;
        p.id = reading_string(r, g[0]);
        p.error = json_type(r->j, g[1]) == JSON_TRUE;
        if (!p.error)
                reading_keep(r, &p.extras, "is_error", g[1], true);
        reading_idle(p.extras, "is_error", "false");
        p.name = reading_string(r, g[2]);
        if (!p.name.p)
                reading_keep(r, &p.extras, "name", g[2], true);
        if (json_type(r->j, text) == JSON_STRING) {
                p.output_kind = OUTPUT_TEXT;
                p.output = reading_string(r, text);
                p.output_raw = reading_raw(r, text);
        }
        *reading_part(r, PART_RESULT, v) = p;
        return true;
}

static void read_part(struct reading *r, json_ref v)
{
        const struct json *j = r->j;
        json_ref type = json_get(j, v, "type");
        bool done = false;
        if (json_is(j, type, "text"))
                done = read_words(r, v, PART_TEXT);
        else if (json_is(j, type, "tool-call"))
                done = read_call(r, v);
        else if (json_is(j, type, "tool-result"))
                done = read_result(r, v);
        else if (json_is(j, type, "thinking"))
                done = read_words(r, v, PART_THINKING);
        else if (json_is(j, type, "redacted_thinking"))
                done = read_redacted(r, v);
        else if (json_is(j, type, "image"))
                done = read_media(r, v, PART_IMAGE);
        else if (json_is(j, type, "audio"))
                done = read_media(r, v, PART_AUDIO);
        else if (json_is(j, type, "file"))
                done = read_media(r, v, PART_FILE);
        if (!done)
                reading_opaque(r, v);
}

static void read_meta(struct reading *r, json_ref meta)
{
        static const char *const keys[] = {"original_role", "name", NULL};
        struct message *m = r->m;
        json_ref g[2];
        reading_members(r, meta, keys, g, &m->extras, true);
        if (json_is(r->j, g[0], "system"))
                m->role = ROLE_SYSTEM;
        else if (json_is(r->j, g[0], "developer"))
                m->role = ROLE_DEVELOPER;
        else
                reading_keep(r, &m->extras, "original_role", g[0], true);
        m->name = reading_string(r, g[1]);
        if (!m->name.p)
                reading_keep(r, &m->extras, "name", g[1], true);
}

static int acontext_read(const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        static const char *const keys[] = {"role", "parts", "meta", "id", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[4];
        reading_members(&r, msg, keys, f, &m->extras, false);
        m->native_role = reading_string(&r, f[0]);
        m->role = json_is(j, f[0], "assistant") ? ROLE_ASSISTANT : ROLE_USER;
        if (json_type(j, f[2]) == JSON_OBJECT)
                read_meta(&r, f[2]);
        else
                reading_keep(&r, &m->extras, "meta", f[2], false);
        reading_idle(m->extras, "meta", "null");
        m->id = reading_string_or_keep(&r, &m->extras, "id", f[3]);
        /* The shape remembers whether the message had an empty meta or none. */
        m->shape = json_type(j, f[2]) == JSON_OBJECT ? SHAPE_ARRAY : SHAPE_ANY;
        for (json_ref p = json_child(j, f[1]); p != JSON_NONE; p = json_next(j, f[1], p))
                read_part(&r, p);
        if (m->role == ROLE_USER && m->count && message_count(m, PART_RESULT) == m->count)
                m->role = ROLE_TOOL;
        return arena->failed;
}

/* ---- writing ---- */

static const char *type_of(const struct part *p)
{
        static const char *const names[] = {[PART_TEXT] = "text",
            [PART_IMAGE] = "image",
            [PART_AUDIO] = "audio",
            [PART_FILE] = "file",
            [PART_CALL] = "tool-call",
            [PART_RESULT] = "tool-result",
            [PART_THINKING] = "thinking",
            [PART_REDACTED] = "redacted_thinking",
            [PART_REFUSAL] = "text"};
        return names[p->kind];
}

static void write_call_meta(struct writer *w, const struct message *m, const struct part *p)
{
        writing_string(w, "id", p->id);
        writing_string(w, "name", p->name.p ? p->name : STR(""));
        if (writing_own(w, m) && !p->arguments_text)
                writing_raw(w, "arguments", p->arguments);
        else
                writing_arguments_text(w, m, "arguments", p);
        if (!writing_own(w, m))
                writing_text(w, "type", "function");
        writing_string(w, "signature", p->signature);
}

static void write_meta(struct writer *w, const struct message *m, const struct part *p)
{
        const struct media *x = &p->media;
        jsonw_key(&w->json, "meta");
        jsonw_object(&w->json);
        switch (p->kind) {
        case PART_CALL:
                write_call_meta(w, m, p);
                break;
        case PART_RESULT:
                writing_string(w, "tool_call_id", p->id.p ? p->id : STR(""));
                if (p->error)
                        writing_raw(w, "is_error", STR("true"));
                writing_string(w, "name", p->name);
                break;
        case PART_THINKING:
                writing_string(w, "signature", p->signature);
                break;
        case PART_REDACTED:
                writing_string(w, "data", p->text);
                break;
        case PART_REFUSAL:
                writing_raw(w, "is_refusal", STR("true"));
                break;
        default:
                writing_string(w, "media_type", x->mime);
                writing_string(w, "data", x->data);
                writing_string(w, "url", x->url);
                writing_string(w, "file_id", x->file_id);
                writing_string(w, "detail", x->detail);
        }
        writing_extras(w, m, type_of(p), p->extras, true);
        jsonw_object_end(&w->json);
}

static bool has_inner(const struct extra *x)
{
        for (; x; x = x->next)
                if (x->inner)
                        return true;
        return false;
}

static void write_part(struct writer *w, const struct message *m, const struct part *p)
{
        bool own = writing_own(w, m);
        if (p->kind == PART_OPAQUE) {
                writing_opaque(w, m, p);
                return;
        }
        if (writing_same_part(w, m, p))
                return;
        jsonw_object(&w->json);
        writing_text(w, "type", type_of(p));
        if (p->kind == PART_RESULT && (p->output_kind != OUTPUT_NONE || !own))
                writing_string(w, "text", writing_output(w, m, p));
        else if (p->kind != PART_REDACTED)
                writing_string(w, "text", p->text);
        bool bare = p->kind == PART_TEXT || (p->kind == PART_THINKING && !p->signature.p);
        if (!bare || (own && has_inner(p->extras)))
                write_meta(w, m, p);
        writing_string(w, "filename", p->media.name);
        writing_extras(w, m, type_of(p), p->extras, false);
        jsonw_object_end(&w->json);
        if (own)
                return;
        if (bare)
                writing_extras(w, m, type_of(p), p->extras, true);
        writing_lose_figures(w, m, p);
        for (size_t i = 0; i < p->child_count; i++) {
                if (p->children[i].kind == PART_TEXT)
                        writing_lose_extras(w, m, "content", p->children[i].extras);
                else
                        writing_lose_part(w, m, &p->children[i]);
        }
        if (p->child_count > 1)
                writing_lose(w, m, "content", "several texts, joined");
}

static void write_message_meta(struct writer *w, const struct message *m)
{
        bool system = m->role == ROLE_SYSTEM || m->role == ROLE_DEVELOPER;
        bool own = writing_own(w, m);
        if (!system && !m->name.p && !(own && (has_inner(m->extras) || m->shape == SHAPE_ARRAY)))
                return;
        jsonw_key(&w->json, "meta");
        jsonw_object(&w->json);
        if (system)
                writing_text(w, "original_role", m->role == ROLE_SYSTEM ? "system" : "developer");
        writing_string(w, "name", m->name);
        if (own)
                writing_extras(w, m, "meta", m->extras, true);
        jsonw_object_end(&w->json);
}

static void write_message(struct writer *w, const struct message *m)
{
        static const char *const has[] = {"id", "name", NULL};
        jsonw_object(&w->json);
        writing_string(w, "id", m->id);
        writing_text(w, "role", m->role == ROLE_ASSISTANT ? "assistant" : "user");
        jsonw_key(&w->json, "parts");
        jsonw_array(&w->json);
        for (size_t i = 0; i < m->count; i++)
                write_part(w, m, &m->parts[i]);
        jsonw_array_end(&w->json);
        write_message_meta(w, m);
        writing_extras(w, m, "", m->extras, false);
        jsonw_object_end(&w->json);
        if (!writing_own(w, m)) {
                writing_extras(w, m, "", m->extras, true);
                writing_lose_members(w, m, has);
        }
}

static int acontext_write(struct writer *w, const struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                if (!writing_same(w, m))
                        write_message(w, m);
        }
        return 0;
}

static int acontext_detect(const struct json *j, json_ref msg)
{
        json_ref role = json_get(j, msg, "role");
        json_ref parts = json_get(j, msg, "parts");
        if (json_type(j, parts) != JSON_ARRAY ||
            (!json_is(j, role, "user") && !json_is(j, role, "assistant")))
                return 0;
        json_ref first = json_child(j, parts);
        return first == JSON_NONE || json_get(j, first, "type") != JSON_NONE ? 94 : 0;
}

const struct format format_acontext = {
    .name = "acontext",
    .flags = FORMAT_TEXT_RESULTS | FORMAT_CARRIER | FORMAT_TEXT_ARGUMENTS,
    .describe = acontext_describe,
    .read = acontext_read,
    .write = acontext_write,
    .detect = acontext_detect,
};
