/*
 * uimessage.c - UIMessage of the AI SDK, the form in which a page keeps messages.
 *
 * {id, role: system | user | assistant, metadata?, parts}. Parts are text, reasoning, file{url,
 * mediaType,filename?}, step-start and, for calls, tool-NAME or dynamic-tool{toolName}, each with
 * toolCallId, state, input, and output or errorText: the result is in the part of its call. Other
 * parts (sources, data-*) are kept as they are.
 */
#include "format/format.h"

#include <string.h>

#include "base/error.h"
#include "format/describe.h"
#include "format/openai_content.h"
#include "format/reading.h"
#include "format/sdkparts.h"
#include "format/writing.h"
#include "model/token.h"

static bool is_tool(const struct json *j, json_ref part)
{
        struct str type = json_inner(j, json_get(j, part, "type"));
        return str_is(type, "dynamic-tool") || (type.n > 5 && str_starts(type, "tool-"));
}

static bool is_answered(const struct json *j, json_ref part)
{
        json_ref state = json_get(j, part, "state");
        return json_is(j, state, "output-available") || json_is(j, state, "output-error") ||
               json_is(j, state, "output-denied");
}

static int uimessage_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {"system", "user", "assistant", NULL};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        int rc = describe_message(&d, msg, roles);
        json_ref parts = json_get(j, msg, "parts");
        if (!rc && json_type(j, parts) != JSON_ARRAY)
                rc = describe_refuse(&d, "parts is not an array");
        for (json_ref p = rc ? JSON_NONE : json_child(j, parts); !rc && p != JSON_NONE;
             p = json_next(j, parts, p)) {
                if (!is_tool(j, p))
                        continue;
                json_ref id = json_get(j, p, "toolCallId"), name = json_get(j, p, "toolName");
                rc = describe_call(&d, id, name, "toolCallId");
                if (!rc && is_answered(j, p))
                        rc = describe_answer(&d, id, name, "toolCallId");
        }
        if (rc)
                return rc;
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

static bool read_text(struct reading *r, json_ref p, enum part_kind kind)
{
        struct part *to = reading_text_of(r, p, "text", kind);
        if (to)
                reading_idle(to->extras, "state", "\"done\"");
        return to != NULL;
}

static bool read_file(struct reading *r, json_ref p)
{
        static const char *const keys[] = {"type", "url", "mediaType", "filename", NULL};
        json_ref f[4];
        struct extra *extras = NULL;
        reading_members(r, p, keys, f, &extras, false);
        struct str url = reading_string(r, f[1]), mime = reading_string(r, f[2]);
        if (!url.p || !mime.p)
                return false;
        struct part *to = reading_part(r, PART_FILE, p);
        to->kind = sdkparts_kind(mime);
        reading_url(&to->media, url);
        to->media.mime = mime;
        to->media.name = reading_string_or_keep(r, &extras, "filename", f[3]);
        to->extras = extras;
        return true;
}

static void read_result(struct reading *r, const struct part *call, json_ref part, json_ref out)
{
        json_ref state = json_get(r->j, part, "state");
        struct part *p = reading_part(r, PART_RESULT, part);
        p->with_call = true;
        p->id = call->id;
        p->name = call->name;
        p->provider_run = call->provider_run;
        p->error = !json_is(r->j, state, "output-available");
        p->output_raw = reading_raw(r, out);
        if (json_type(r->j, out) == JSON_STRING) {
                p->output_kind = OUTPUT_TEXT;
                p->output = reading_string(r, out);
        } else if (out != JSON_NONE) {
                p->output_kind = OUTPUT_DATA;
                p->output = reading_raw(r, out);
        } else if (p->error) {
                p->output_kind = OUTPUT_TEXT;
                p->output = STR("[The call was denied.]");
        }
}

static void read_tool(struct reading *r, json_ref part)
{
        enum { TYPE, ID, NAME, STATE, INPUT, OUTPUT, ERROR, EXECUTED, COUNT };
        static const char *const keys[] = {"type", "toolCallId", "toolName", "state", "input",
            "output", "errorText", "providerExecuted", NULL};
        json_ref f[COUNT];
        struct part call = {.kind = PART_CALL, .raw = reading_raw(r, part)};
        reading_members(r, part, keys, f, &call.extras, false);
        struct str type = json_inner(r->j, f[TYPE]);
        bool answered = is_answered(r->j, part);
        bool failed = answered && !json_is(r->j, f[STATE], "output-available");
        call.id = reading_string(r, f[ID]);
        call.name = str_is(type, "dynamic-tool") ? reading_string(r, f[NAME])
                                                 : str_span(type.p + 5, type.n - 5);
        reading_input(r, &call, f[INPUT]);
        call.provider_run = json_type(r->j, f[EXECUTED]) == JSON_TRUE;
        if (!str_is(type, "dynamic-tool"))
                sdkparts_keep_type(r, &call.extras, f[TYPE]);
        reading_keep(r, &call.extras, "state", f[STATE], false);
        reading_idle(call.extras, "state", "\"output-available\"");
        reading_idle(call.extras, "state", "\"output-error\"");
        reading_idle(call.extras, "state", "\"input-available\"");
        if (!answered || failed)
                reading_keep(r, &call.extras, "output", f[OUTPUT], false);
        if (!failed)
                reading_keep(r, &call.extras, "errorText", f[ERROR], false);
        *reading_part(r, PART_CALL, part) = call;
        if (answered)
                read_result(r, &call, part, failed ? f[ERROR] : f[OUTPUT]);
}

static void read_part(struct reading *r, json_ref p)
{
        json_ref type = json_get(r->j, p, "type");
        bool done = true;
        if (json_is(r->j, type, "text"))
                done = read_text(r, p, PART_TEXT);
        else if (json_is(r->j, type, "reasoning"))
                done = read_text(r, p, PART_THINKING);
        else if (json_is(r->j, type, "file"))
                done = read_file(r, p);
        else if (is_tool(r->j, p))
                read_tool(r, p);
        else if (!json_is(r->j, type, "step-start")) /* a step begins a new message */
                done = false;
        if (!done)
                reading_opaque(r, p);
}

static int uimessage_read(
    const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        static const char *const keys[] = {"role", "parts", "id", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[3];
        reading_members(&r, msg, keys, f, &m->extras, false);
        m->role = openai_role(j, f[0]);
        m->id = reading_string_or_keep(&r, &m->extras, "id", f[2]);
        m->shape = SHAPE_ANY;
        for (json_ref p = json_child(j, f[1]); p != JSON_NONE; p = json_next(j, f[1], p))
                read_part(&r, p);
        return arena->failed;
}

/* ---- writing ---- */

static void write_file(struct writer *w, const struct message *m, const struct part *p)
{
        const struct media *x = &p->media;
        (void)m;
        writing_text(w, "type", "file");
        writing_string(w, "mediaType", sdkparts_mime(p));
        writing_string(w, "filename", x->name);
        if (x->data.p || x->url.p)
                writing_url(w, "url", x);
        else
                writing_string(w, "url", x->file_id.p ? x->file_id : STR(""));
}

static void write_output(struct writer *w, const struct message *m, const struct part *result)
{
        struct message from = *m;
        from.seq = result->seq ? result->seq : m->seq;
        if (result->error) {
                writing_string(w, "errorText", writing_output(w, &from, result));
        } else if (result->output_kind == OUTPUT_DATA) {
                writing_raw(w, "output", result->output);
        } else {
                writing_string(w, "output", writing_output(w, &from, result));
        }
        for (size_t i = 0; i < result->child_count; i++) {
                if (result->children[i].kind != PART_TEXT)
                        writing_lose_part(w, &from, &result->children[i]);
                else
                        writing_lose_extras(w, &from, "content", result->children[i].extras);
        }
}

/* Returns a state that the hub does not know: "input-streaming", "approval-requested" and so on. */
static struct str own_state(const struct writer *w, const struct message *m, const struct part *p)
{
        const struct extra *x = writing_own(w, m) && !p->peer ? p->extras : NULL;
        while (x && !str_is(x->key, "\"state\""))
                x = x->next;
        return x ? x->value : (struct str){0};
}

static void write_tool(struct writer *w, const struct message *m, const struct part *p)
{
        const struct part *result = p->peer;
        struct str type = sdkparts_type(w, m, p);
        struct str state = own_state(w, m, p);
        jsonw_object(&w->json);
        if (type.p) {
                writing_raw(w, "type", type); /* the type contains the name */
        } else {
                writing_text(w, "type", "dynamic-tool");
                writing_string(w, "toolName", p->name.p ? p->name : STR(""));
        }
        writing_string(w, "toolCallId", p->id.p ? p->id : STR(""));
        if (state.p)
                writing_raw(w, "state", state);
        else
                writing_text(w, "state",
                    !result         ? "input-available"
                    : result->error ? "output-error"
                                    : "output-available");
        writing_arguments_value(w, m, "input", p);
        if (result)
                write_output(w, m, result);
        if (p->provider_run)
                writing_raw(w, "providerExecuted", STR("true"));
        for (const struct extra *x = p->extras; x; x = x->next) {
                struct extra one = *x;
                one.next = NULL;
                if (!str_is(x->key, "\"state\""))
                        writing_extras(w, m, "tool_calls", &one, false);
        }
        jsonw_object_end(&w->json);
        if (writing_own(w, m))
                return;
        writing_extras(w, m, "tool_calls", p->extras, true);
        writing_lose_figures(w, m, p);
        if (p->signature.p)
                writing_lose(w, m, "signature", "the format has no place for it");
}

/* Reports a result without a call, because a result is in the part of its call. */
static void write_no_result(struct writer *w, const struct message *m, const struct part *p)
{
        (void)w;
        (void)m;
        (void)p;
}

static const struct sdkparts_writer parts_writer = {
    .call = write_tool,
    .result = write_no_result,
    .file = write_file,
};

static void report_result(struct writer *w, const struct message *m, const struct part *p)
{
        writing_report_result(w, m, p);
        writing_lose_figures(w, m, p);
        writing_report_silence(w, m, p);
}

static int write_message(struct writer *w, const struct message *m)
{
        bool own = writing_own(w, m);
        bool system = m->role == ROLE_SYSTEM || m->role == ROLE_DEVELOPER;
        jsonw_object(&w->json);
        if (m->id.p || !own)
                writing_id(w, m);
        writing_text(w, "role", system ? "system" : openai_role_name(m->role));
        jsonw_key(&w->json, "parts");
        jsonw_array(&w->json);
        size_t results = 0;
        for (size_t i = 0; i < m->count; i++) {
                sdkparts_write(w, m, &m->parts[i], &parts_writer);
                results += m->parts[i].kind == PART_RESULT;
        }
        if (m->count == results && !own) { /* a message has at least one part */
                jsonw_object(&w->json);
                writing_text(w, "type", "text");
                writing_text(w, "text", "");
                jsonw_object_end(&w->json);
        }
        jsonw_array_end(&w->json);
        writing_extras(w, m, "", m->extras, false);
        jsonw_object_end(&w->json);
        if (own)
                return 0;
        static const char *const has[] = {"id", NULL};
        if (m->role == ROLE_DEVELOPER)
                writing_lose(w, m, "role", "written as system");
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_RESULT)
                        report_result(w, m, &m->parts[i]);
        writing_extras(w, m, "", m->extras, true);
        writing_lose_members(w, m, has);
        return 0;
}

static int uimessage_write(struct writer *w, const struct history *h)
{
        return writing_embedded(w, h, write_message, report_result);
}

static int uimessage_detect(const struct json *j, json_ref msg)
{
        json_ref parts = json_get(j, msg, "parts");
        if (json_type(j, parts) != JSON_ARRAY || json_get(j, msg, "content") != JSON_NONE ||
            openai_role(j, json_get(j, msg, "role")) == ROLE_NONE)
                return 0;
        int score = 30;
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                json_ref type = json_get(j, p, "type");
                /* It is a part of acontext, which also has "parts". */
                bool other = json_is(j, type, "tool-call") || json_is(j, type, "tool-result");
                if (json_type(j, type) != JSON_STRING || other)
                        return 0;
                if (is_tool(j, p) || json_is(j, type, "step-start") ||
                    json_is(j, type, "reasoning"))
                        score = 96;
        }
        return score;
}

const struct format format_uimessage = {
    .name = "uimessage",
    .flags = FORMAT_EMBEDS | FORMAT_MESSAGE_IDS,
    .describe = uimessage_describe,
    .read = uimessage_read,
    .write = uimessage_write,
    .detect = uimessage_detect,
};
