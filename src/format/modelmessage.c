/*
 * modelmessage.c - ModelMessage of the AI SDK.
 *
 * system: a text. user: text, image{image,mediaType?}, file{data,mediaType,filename?}. assistant:
 * text, reasoning, file, tool-call{toolCallId,toolName,input,providerExecuted?}. tool:
 * tool-result{toolCallId,toolName,output}, where output is {type,value} and type is text, json,
 * error-text, error-json or content (a list of text and media).
 */
#include "format/format.h"

#include <string.h>

#include "base/error.h"
#include "format/blocks.h"
#include "format/describe.h"
#include "format/openai_content.h"
#include "format/reading.h"
#include "format/sdkparts.h"
#include "format/writing.h"
#include "model/token.h"

static int modelmessage_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {"system", "user", "assistant", "tool", NULL};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        int rc = describe_message(&d, msg, roles);
        json_ref content = json_get(j, msg, "content");
        bool list = json_type(j, content) == JSON_ARRAY;
        for (json_ref p = list ? json_child(j, content) : JSON_NONE; !rc && p != JSON_NONE;
             p = json_next(j, content, p)) {
                json_ref type = json_get(j, p, "type");
                json_ref id = json_get(j, p, "toolCallId"), name = json_get(j, p, "toolName");
                if (json_is(j, type, "tool-call"))
                        rc = describe_call(&d, id, name, "toolCallId");
                else if (json_is(j, type, "tool-result"))
                        rc = describe_answer(&d, id, name, "toolCallId");
        }
        if (rc)
                return rc;
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

/* Reads {type:"image",image} or {type:"file",data}: base64, a data URL or an address. */
static bool read_media(struct reading *r, json_ref p, bool image)
{
        const char *const keys[] = {
            "type", image ? "image" : "data", "mediaType", "filename", NULL};
        json_ref f[4];
        struct extra *extras = NULL;
        reading_members(r, p, keys, f, &extras, false);
        struct str data = reading_string(r, f[1]);
        if (!data.p || (f[2] != JSON_NONE && json_type(r->j, f[2]) != JSON_STRING))
                return false;
        struct str mime = reading_string(r, f[2]);
        struct part *to = reading_part(r, PART_FILE, p);
        to->kind = image ? PART_IMAGE : sdkparts_kind(mime);
        reading_url(&to->media, data);
        bool address = memmem(data.p, data.n < 12 ? data.n : 12, "://", 3);
        if (to->media.url.p && !address) {
                to->media.data = to->media.url;
                to->media.url = (struct str){0};
        }
        if (mime.p)
                to->media.mime = mime;
        to->media.name = reading_string_or_keep(r, &extras, "filename", f[3]);
        if (image)
                sdkparts_keep_type(r, &extras, f[0]);
        to->extras = extras;
        return true;
}

static void read_call(struct reading *r, json_ref p)
{
        static const char *const keys[] = {
            "type", "toolCallId", "toolName", "input", "providerExecuted", NULL};
        json_ref f[5];
        struct part call = {.kind = PART_CALL, .raw = reading_raw(r, p)};
        reading_members(r, p, keys, f, &call.extras, false);
        call.id = reading_string(r, f[1]);
        call.name = reading_string(r, f[2]);
        reading_input(r, &call, f[3]);
        call.provider_run = json_type(r->j, f[4]) == JSON_TRUE;
        if (!call.provider_run)
                reading_keep(r, &call.extras, "providerExecuted", f[4], false);
        reading_idle(call.extras, "providerExecuted", "false");
        *reading_part(r, PART_CALL, p) = call;
}

static void read_block(struct reading *r, json_ref p);

static void read_output(struct reading *r, struct part *to, json_ref output)
{
        json_ref type = json_get(r->j, output, "type"), value = json_get(r->j, output, "value");
        to->error = json_is(r->j, type, "error-text") || json_is(r->j, type, "error-json");
        to->output_raw = reading_raw(r, value);
        if (json_is(r->j, type, "content") && json_type(r->j, value) == JSON_ARRAY) {
                reading_children(r, to, value, read_block);
        } else if (json_type(r->j, value) == JSON_STRING) {
                to->output_kind = OUTPUT_TEXT;
                to->output = reading_string(r, value);
        } else if (output != JSON_NONE) {
                to->output_kind = OUTPUT_DATA;
                to->output = reading_raw(r, value == JSON_NONE ? output : value);
        }
}

static void read_result(struct reading *r, json_ref p)
{
        static const char *const keys[] = {"type", "toolCallId", "toolName", "output", NULL};
        json_ref f[4];
        struct part to = {.kind = PART_RESULT, .raw = reading_raw(r, p)};
        reading_members(r, p, keys, f, &to.extras, false);
        to.id = reading_string(r, f[1]);
        to.name = reading_string(r, f[2]);
        read_output(r, &to, f[3]);
        *reading_part(r, PART_RESULT, p) = to;
}

static void read_block(struct reading *r, json_ref p)
{
        const struct json *j = r->j;
        json_ref type = json_get(j, p, "type");
        bool done = true;
        if (json_is(j, type, "text"))
                done = reading_text_of(r, p, "text", PART_TEXT) != NULL;
        else if (json_is(j, type, "reasoning"))
                done = reading_text_of(r, p, "text", PART_THINKING) != NULL;
        else if (json_is(j, type, "image") || json_is(j, type, "file") || json_is(j, type, "media"))
                done = read_media(r, p, json_is(j, type, "image"));
        else if (json_is(j, type, "tool-call"))
                read_call(r, p);
        else if (json_is(j, type, "tool-result") && json_get(j, p, "output") != JSON_NONE)
                read_result(r, p);
        else
                done = false;
        if (!done)
                reading_opaque(r, p);
}

static int modelmessage_read(
    const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        static const char *const keys[] = {"role", "content", "id", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[3];
        reading_members(&r, msg, keys, f, &m->extras, false);
        m->role = openai_role(j, f[0]);
        m->id = reading_string_or_keep(&r, &m->extras, "id", f[2]);
        if (json_type(j, f[1]) == JSON_ARRAY) {
                m->shape = SHAPE_ARRAY;
                for (json_ref p = json_child(j, f[1]); p != JSON_NONE; p = json_next(j, f[1], p))
                        read_block(&r, p);
        } else {
                openai_read_content(&r, f[1]);
        }
        return arena->failed;
}

/* ---- writing ---- */

static void write_file(struct writer *w, const struct message *m, const struct part *p)
{
        const struct media *x = &p->media;
        struct str type = sdkparts_type(w, m, p); /* "image" for images */
        writing_raw(w, "type", type.p ? type : STR("\"file\""));
        writing_string(w, type.p ? "image" : "data",
            x->data.p  ? x->data
            : x->url.p ? x->url
                       : x->file_id);
        writing_string(w, "mediaType", type.p ? x->mime : sdkparts_mime(p));
        writing_string(w, "filename", x->name);
}

static void write_call(struct writer *w, const struct message *m, const struct part *p)
{
        jsonw_object(&w->json);
        writing_text(w, "type", "tool-call");
        writing_string(w, "toolCallId", p->id.p ? p->id : STR(""));
        writing_string(w, "toolName", p->name.p ? p->name : STR(""));
        writing_arguments_value(w, m, "input", p);
        if (p->provider_run && writing_own(w, m))
                writing_raw(w, "providerExecuted", STR("true"));
        writing_extras(w, m, "tool_calls", p->extras, false);
        jsonw_object_end(&w->json);
        if (writing_own(w, m))
                return;
        writing_extras(w, m, "tool_calls", p->extras, true);
        writing_lose_figures(w, m, p);
        if (p->signature.p)
                writing_lose(w, m, "signature", "the format has no place for it");
}

static bool is_list(const struct part *p)
{
        for (size_t i = 0; i < p->child_count; i++)
                if (p->children[i].kind != PART_TEXT && p->children[i].kind != PART_IMAGE &&
                    p->children[i].kind != PART_FILE)
                        return false;
        return p->output_kind == OUTPUT_PARTS && p->child_count;
}

/* Writes a part of a result. Media are {type:"media",data,mediaType} there, and always data. */
static void write_child(struct writer *w, const struct message *m, const struct part *p)
{
        if (p->kind == PART_TEXT || !p->media.data.p) {
                jsonw_object(&w->json);
                writing_text(w, "type", "text");
                writing_string(w, "text",
                    p->kind == PART_TEXT ? p->text
                    : p->media.url.p     ? p->media.url
                                         : STR(""));
                jsonw_object_end(&w->json);
                if (p->kind != PART_TEXT)
                        writing_lose(w, m, "image", "an address, written as text");
        } else {
                jsonw_object(&w->json);
                writing_text(w, "type", "media");
                writing_string(w, "data", p->media.data);
                writing_string(w, "mediaType", p->media.mime.p ? p->media.mime : STR("image/png"));
                jsonw_object_end(&w->json);
        }
        writing_lose_extras(w, m, "content", p->extras);
}

static void write_output(struct writer *w, const struct message *m, const struct part *p)
{
        bool list = is_list(p) && !p->error, data = p->output_kind == OUTPUT_DATA;
        jsonw_key(&w->json, "output");
        jsonw_object(&w->json);
        writing_text(w, "type",
            list       ? "content"
            : p->error ? (data ? "error-json" : "error-text")
                       : (data ? "json" : "text"));
        if (list) {
                jsonw_key(&w->json, "value");
                jsonw_array(&w->json);
                for (size_t i = 0; i < p->child_count; i++)
                        write_child(w, m, &p->children[i]);
                jsonw_array_end(&w->json);
        } else if (data) {
                writing_raw(w, "value", p->output);
        } else {
                writing_string(w, "value", writing_output(w, m, p));
                for (size_t i = 0; i < p->child_count; i++)
                        if (p->children[i].kind != PART_TEXT)
                                writing_lose_part(w, m, &p->children[i]);
                        else
                                writing_lose_extras(w, m, "content", p->children[i].extras);
        }
        jsonw_object_end(&w->json);
}

static void write_result(struct writer *w, const struct message *m, const struct part *p)
{
        struct str name = writing_tool(p);
        jsonw_object(&w->json);
        writing_text(w, "type", "tool-result");
        writing_string(w, "toolCallId", p->id.p ? p->id : STR(""));
        writing_string(w, "toolName", name.p ? name : STR(""));
        write_output(w, m, p);
        writing_extras(w, m, "result", p->extras, false);
        jsonw_object_end(&w->json);
        if (writing_own(w, m))
                return;
        writing_extras(w, m, "result", p->extras, true);
        writing_lose_figures(w, m, p);
}

static void write_block(struct writer *w, const struct message *m, const struct part *p)
{
        static const struct sdkparts_writer how = {write_call, write_result, write_file};
        if (m->shape == SHAPE_STRING || !writing_same_part(w, m, p))
                sdkparts_write(w, m, p, &how);
}

static struct str join_texts(struct writer *w, const struct message *m)
{
        struct token_sum all;
        token_sum_begin(&all);
        token_sum_add(&all, STR(""));
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_TEXT) {
                        token_sum_add(&all, m->parts[i].text);
                        writing_lose_extras(w, m, "content", m->parts[i].extras);
                } else {
                        writing_lose_part(w, m, &m->parts[i]);
                }
        if (m->count > 1)
                writing_lose(w, m, "content", "several texts, joined");
        return token_sum_end(&all, w->arena);
}

static void write_message(struct writer *w, const struct message *m)
{
        bool own = writing_own(w, m);
        bool system = m->role == ROLE_SYSTEM || m->role == ROLE_DEVELOPER;
        jsonw_object(&w->json);
        writing_text(w, "role", system ? "system" : openai_role_name(m->role));
        if (system && !(own && m->shape != SHAPE_STRING)) {
                writing_string(w, "content", join_texts(w, m));
        } else if (m->count == 1 && m->parts[0].kind == PART_TEXT &&
                   (own ? m->shape == SHAPE_STRING : true)) {
                writing_string(w, "content", m->parts[0].text);
                if (!own)
                        writing_lose_extras(w, m, "content", m->parts[0].extras);
        } else if (own && m->shape == SHAPE_NULL) {
                writing_raw(w, "content", STR("null"));
        } else if (m->count || m->shape == SHAPE_ARRAY || !own) {
                jsonw_key(&w->json, "content");
                jsonw_array(&w->json);
                for (size_t i = 0; i < m->count; i++)
                        write_block(w, m, &m->parts[i]);
                jsonw_array_end(&w->json);
        }
        if (own)
                writing_string(w, "id", m->id);
        writing_extras(w, m, "", m->extras, false);
        jsonw_object_end(&w->json);
        if (own)
                return;
        if (m->role == ROLE_DEVELOPER)
                writing_lose(w, m, "role", "written as system");
        writing_extras(w, m, "", m->extras, true);
        writing_lose_members(w, m, NULL);
}

/* Writes results as a message of their own, before the other parts of the message. */
static void write_turn(struct writer *w, const struct message *m)
{
        size_t results = message_count(m, PART_RESULT);
        struct message some = *m;
        if (!results || m->role != ROLE_USER) {
                write_message(w, m);
                return;
        }
        some.parts = arena_alloc(w->arena, m->count * sizeof *some.parts);
        if (!some.parts)
                return;
        for (int wanted = 1; wanted >= 0; wanted--) {
                some.count = 0;
                for (size_t i = 0; i < m->count; i++)
                        if ((m->parts[i].kind == PART_RESULT) == wanted)
                                some.parts[some.count++] = m->parts[i];
                some.role = wanted ? ROLE_TOOL : ROLE_USER;
                some.extras = wanted ? NULL : m->extras;
                if (some.count)
                        write_message(w, &some);
        }
}

static int modelmessage_write(struct writer *w, const struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                if (m->role == ROLE_NONE)
                        for (size_t k = 0; k < m->count; k++)
                                writing_lose_part(w, m, &m->parts[k]);
                else if (!writing_same(w, m))
                        write_turn(w, m);
        }
        return 0;
}

static int modelmessage_detect(const struct json *j, json_ref msg)
{
        json_ref role = json_get(j, msg, "role"), content = json_get(j, msg, "content");
        if (openai_role(j, role) == ROLE_NONE || json_is(j, role, "developer"))
                return 0;
        if (json_type(j, content) != JSON_ARRAY)
                return json_is(j, role, "tool") ? 0 : 25;
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p)) {
                json_ref type = json_get(j, p, "type");
                if (json_is(j, type, "tool-call") ||
                    (json_is(j, type, "tool-result") && json_get(j, p, "output") != JSON_NONE))
                        return 99;
        }
        return 20;
}

const struct format format_modelmessage = {
    .name = "modelmessage",
    /* Versions 5 and 7 of the SDK have no common type for media in results. */
    .flags = FORMAT_TEXT_RESULTS | FORMAT_ANSWERED,
    .describe = modelmessage_describe,
    .read = modelmessage_read,
    .write = modelmessage_write,
    .detect = modelmessage_detect,
};
