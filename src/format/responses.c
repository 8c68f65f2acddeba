/*
 * responses.c - OpenAI Responses and Conversations items: message, calls and outputs of every kind
 * (kinds.h), reasoning, and any other type verbatim.
 *
 * An item is one message of the hub (`item`). arrange.c joins the items of a turn for formats with
 * whole turns. An item without a type is a message.
 */
#include "format/format.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "format/describe.h"
#include "format/kinds.h"
#include "format/names.h"
#include "format/openai_content.h"
#include "format/reading.h"
#include "format/rules.h"
#include "format/turns.h"
#include "format/writing.h"
#include "model/token.h"

static bool is_message(const struct json *j, json_ref type)
{
        return type == JSON_NONE || json_is(j, type, "message");
}

static int describe_item(struct describe *d, json_ref msg, const struct kinds_row *k, bool answer)
{
        json_ref id = kinds_id(d->j, msg, k);
        d->out->role = answer ? STR("tool") : STR("assistant");
        if (answer)
                return describe_answer(d, id, JSON_NONE, k->id);
        int rc = describe_call(d, id, json_get(d->j, msg, "name"), k->id);
        if (!rc && !k->answer)
                rc = describe_answer(d, id, json_get(d->j, msg, "name"), k->id);
        return rc;
}

static int responses_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {"user", "assistant", "system", "developer", NULL};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        if (json_type(j, msg) != JSON_OBJECT)
                return describe_refuse(&d, "an item is not an object");
        int rc = describe_id(&d, json_get(j, msg, "id"));
        if (rc)
                return rc;
        json_ref type = json_get(j, msg, "type");
        bool answer;
        const struct kinds_row *k = kinds_find(j, msg, &answer);
        if (k)
                rc = describe_item(&d, msg, k, answer);
        else if (is_message(j, type))
                rc = describe_role(&d, json_get(j, msg, "role"), roles, NULL);
        else if (json_type(j, type) != JSON_STRING)
                rc = describe_refuse(&d, "type is not a string");
        if (rc)
                return rc;
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

static bool read_text(struct reading *r, json_ref b, const char *key, enum part_kind kind)
{
        struct part *p = reading_text_of(r, b, key, kind);
        if (!p)
                return false;
        reading_idle(p->extras, "annotations", "[]");
        reading_idle(p->extras, "logprobs", "[]");
        return true;
}

static bool read_media(struct reading *r, json_ref b, bool image)
{
        enum { TYPE, DATA, URL, FILE_ID, NAME, DETAIL, COUNT };
        const char *const keys[] = {"type", image ? "image_url" : "file_data", "file_url",
            "file_id", "filename", "detail", NULL};
        json_ref f[COUNT];
        struct extra *extras = NULL;
        reading_members(r, b, keys, f, &extras, false);
        for (size_t i = DATA; i < NAME; i++) {
                if (json_type(r->j, f[i]) == JSON_NULL) { /* SDKs write null if it is not set */
                        reading_keep(r, &extras, keys[i], f[i], false);
                        reading_idle(extras, keys[i], "null");
                        f[i] = JSON_NONE;
                }
                if (f[i] != JSON_NONE && json_type(r->j, f[i]) != JSON_STRING)
                        return false;
        }
        if ((f[DATA] == JSON_NONE && f[URL] == JSON_NONE && f[FILE_ID] == JSON_NONE) ||
            (f[DATA] != JSON_NONE && f[URL] != JSON_NONE))
                return false;
        struct part *p = reading_part(r, image ? PART_IMAGE : PART_FILE, b);
        if (f[DATA] != JSON_NONE)
                reading_url(&p->media, reading_string(r, f[DATA]));
        if (f[URL] != JSON_NONE)
                p->media.url = reading_string(r, f[URL]);
        p->media.file_id = reading_string(r, f[FILE_ID]);
        p->extras = extras;
        p->media.name = reading_string_or_keep(r, &p->extras, keys[NAME], f[NAME]);
        p->media.detail = reading_string_or_keep(r, &p->extras, keys[DETAIL], f[DETAIL]);
        return true;
}

static void read_block(struct reading *r, json_ref b)
{
        const struct json *j = r->j;
        json_ref type = json_get(j, b, "type");
        bool done = false;
        if (json_is(j, type, "input_text") || json_is(j, type, "output_text"))
                done = read_text(r, b, "text", PART_TEXT);
        else if (json_is(j, type, "refusal"))
                done = read_text(r, b, "refusal", PART_REFUSAL);
        else if (json_is(j, type, "input_image"))
                done = read_media(r, b, true);
        else if (json_is(j, type, "input_file"))
                done = read_media(r, b, false);
        else if (json_is(j, type, "input_audio"))
                return openai_read_part(r, b);
        if (!done)
                reading_opaque(r, b);
}

static void read_message(struct reading *r, json_ref msg)
{
        static const char *const keys[] = {"type", "role", "content", "id", NULL};
        struct message *m = r->m;
        json_ref f[4];
        reading_members(r, msg, keys, f, &m->extras, false);
        m->role = openai_role(r->j, f[1]);
        m->id = reading_string_or_keep(r, &m->extras, "id", f[3]);
        if (json_type(r->j, f[2]) == JSON_ARRAY) {
                m->shape = SHAPE_ARRAY;
                r->expected = json_count(r->j, f[2]);
                for (json_ref b = json_child(r->j, f[2]); b != JSON_NONE;
                     b = json_next(r->j, f[2], b))
                        read_block(r, b);
                return;
        }
        openai_read_content(r, f[2]);
}

static int responses_read(
    const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        struct reading r = {.j = j, .arena = arena, .m = m};
        m->item = true;
        json_ref type = json_get(j, msg, "type");
        bool answer;
        const struct kinds_row *k = kinds_find(j, msg, &answer);
        if (k)
                kinds_read(&r, msg, k, answer, read_block);
        else if (is_message(j, type))
                read_message(&r, msg);
        else
                reading_opaque(&r, msg);
        if (json_is(j, type, "reasoning")) {
                m->role = ROLE_ASSISTANT;
                m->reasoning = true;
        }
        reading_idle(m->extras, "status", "\"completed\"");
        return arena->failed;
}

/* ---- writing ---- */

static void write_media(struct writer *w, const struct message *m, const struct part *p)
{
        const struct media *x = &p->media;
        bool image = p->kind == PART_IMAGE;
        jsonw_object(&w->json);
        writing_text(w, "type", image ? "input_image" : "input_file");
        if (x->data.p || (image && x->url.p))
                writing_url(w, image ? "image_url" : "file_data", x);
        else
                writing_string(w, "file_url", x->url);
        writing_string(w, "file_id", x->file_id);
        writing_string(w, "filename", x->name);
        if (w->valid && image && !x->detail.p)
                writing_text(w, "detail", "auto");
        writing_string(w, "detail", x->detail);
        writing_extras(w, m, "content", p->extras, false);
        if (!writing_own(w, m))
                writing_extras(w, m, "content", p->extras, true);
        jsonw_object_end(&w->json);
        if (x->url.p && x->mime.p)
                writing_lose(w, m, "mimeType", "the format has no place for it");
}

/* Do the extras have this member, or did the message come without it (outside of valid views)? */
static bool has_member(
    const struct writer *w, const struct message *m, const struct extra *list, const char *key)
{
        if (!writing_own(w, m))
                return false;
        for (; list; list = list->next)
                if (str_is(list->key, key))
                        return true;
        return !w->valid;
}

/* Does the value have all members that the API requires of this type? */
static bool is_of_type(struct str raw, const char *type)
{
        struct json j;
        json_init(&j);
        bool whole = raw.p && json_parse(&j, raw.p, raw.n, NULL, NULL) == 0 &&
                     rules_is_whole(&rules_responses, type, &j, 0);
        json_release(&j);
        return whole;
}

/* Writes a text of the model as a block. Annotations that the API would refuse are left out. */
static void write_words(struct writer *w, const struct message *m, const struct part *p)
{
        static const char ANNOTATIONS[] = "\"annotations\"";
        bool bad = w->valid && writing_own(w, m) && p->raw.p && !is_of_type(p->raw, "output_text");
        if (bad || !has_member(w, m, p->extras, ANNOTATIONS))
                writing_raw(w, "annotations", STR("[]"));
        if (!bad) {
                writing_extras(w, m, "content", p->extras, false);
                return;
        }
        for (const struct extra *x = p->extras; x; x = x->next) {
                if (!str_is(x->key, ANNOTATIONS)) {
                        jsonw_raw(&w->json, x->key);
                        buf_putc(w->out, ':');
                        buf_put_str(w->out, x->value);
                } else if (!x->idle) {
                        writing_lose(
                            w, m, "content.annotations", "not in a form that the provider accepts");
                }
        }
}

static void write_block(struct writer *w, const struct message *m, const struct part *p)
{
        bool refusal = p->kind == PART_REFUSAL;
        bool spoken = m->role == ROLE_ASSISTANT;
        if (p->kind == PART_IMAGE || p->kind == PART_FILE) {
                write_media(w, m, p);
                return;
        }
        if (p->kind == PART_AUDIO) {
                jsonw_object(&w->json);
                writing_text(w, "type", "input_audio");
                jsonw_key(&w->json, "input_audio");
                jsonw_object(&w->json);
                writing_string(w, "data", p->media.data);
                struct str mime = p->media.mime;
                size_t cut = str_starts(mime, "audio/") ? 6 : 0;
                writing_string(w, "format", str_span(mime.p + cut, mime.n - cut));
                writing_extras(w, m, "input_audio", p->extras, true);
                jsonw_object_end(&w->json);
                writing_extras(w, m, "input_audio", p->extras, false);
                jsonw_object_end(&w->json);
                return;
        }
        if (p->kind == PART_OPAQUE) {
                writing_opaque(w, m, p);
                return;
        }
        jsonw_object(&w->json);
        writing_text(w, "type", refusal ? "refusal" : spoken ? "output_text" : "input_text");
        writing_string(w, refusal ? "refusal" : "text", p->text);
        if (spoken && !refusal)
                write_words(w, m, p);
        else
                writing_extras(w, m, "content", p->extras, false);
        jsonw_object_end(&w->json);
}

/* Does the item have all members that the API requires? */
static bool is_whole(const struct part *p)
{
        return is_of_type(p->raw, rules_responses.message);
}

/* Can the part be written with its own kind of call? A custom call may come from any format. */
static bool is_native(const struct writer *w, const struct message *m, const struct part *p)
{
        if (p->kind != PART_CALL && p->kind != PART_RESULT)
                return false;
        if (writing_own(w, m) && !w->valid)
                return p->call != CALL_FUNCTION && p->raw.p;
        if ((!writing_own(w, m) && p->call != CALL_CUSTOM) || !kinds_is_native(p))
                return false;
        /* This check comes last, because it parses. */
        return !w->valid || p->call == CALL_CUSTOM ||
               (is_whole(p) && (!p->peer || is_whole(p->peer)));
}

/* Are call and output paired by the item's own id? */
static bool has_own_id(const struct part *p)
{
        const struct kinds_row *k = kinds_of(p->call);
        return !k->answer || (p->call == CALL_LOCAL_SHELL && p->kind == PART_RESULT);
}

/* Does this kind need an item id beside the id that pairs call and output? */
static bool needs_id(const struct part *p)
{
        return p->kind == PART_CALL && (p->call == CALL_COMPUTER || p->call == CALL_LOCAL_SHELL);
}

static void write_members(struct writer *w, const struct message *m, bool first)
{
        if (writing_own(w, m)) {
                bool there = m->count && is_native(w, m, &m->parts[0]) && has_own_id(&m->parts[0]);
                there |= w->strict && m->count && m->parts[0].kind != PART_OPAQUE &&
                         !(m->parts[0].provider_run && is_native(w, m, &m->parts[0])) &&
                         !needs_id(&m->parts[0]);
                writing_string(w, "id", there ? (struct str){0} : m->id);
                writing_extras(w, m, "", m->extras, false);
        } else if (first) {
                writing_lose_members(w, m, NULL);
                writing_lose_extras(w, m, "", m->extras);
        }
}

/* Returns the function name of a call. A provider's own tool keeps its name until it is written as
 * a function. */
static struct str function_name(struct writer *w, const struct part *p)
{
        struct str name = p->name.p ? token_decode(p->name, w->arena, NULL) : STR("");
        if (!w->names || !p->provider_run || rules_is_name(&rules_responses, name))
                return p->name.p ? p->name : STR("");
        return names_map(w->names, name);
}

static void write_call(struct writer *w, const struct message *m, const struct part *p)
{
        bool native = is_native(w, m, p);
        jsonw_object(&w->json);
        if (native) {
                kinds_write(w, m, p);
        } else {
                if (writing_own(w, m) && p->call != CALL_FUNCTION)
                        writing_lose(w, m, kinds_name(p->call), "written as a function call");
                writing_text(w, "type", "function_call");
                writing_string(w, "call_id", p->id.p ? p->id : STR(""));
                writing_string(w, "name", function_name(w, p));
                if (writing_own(w, m) && !p->arguments_text && p->raw.p && !w->valid)
                        writing_raw(w, "arguments", p->arguments);
                else
                        writing_arguments_text(w, m, "arguments", p);
        }
        if (native && writing_own(w, m)) {
                write_members(w, m, true);
        } else if (writing_own(w, m) && p->call == CALL_FUNCTION) {
                write_members(w, m, true);
        } else {
                if (writing_own(w, m))
                        writing_lose_extras(w, m, "", m->extras);
                writing_lose_extras(w, m, "tool_calls", p->extras);
                writing_lose_figures(w, m, p);
                if (p->signature.p)
                        writing_lose(w, m, "signature", "the format has no place for it");
        }
        jsonw_object_end(&w->json);
}

static void write_output(struct writer *w, const struct message *m, const struct part *p)
{
        bool own = writing_own(w, m) && p->call == CALL_FUNCTION;
        if (p->output_kind == OUTPUT_PARTS && !p->child_count && w->valid) {
                writing_text(w, "output", "");
        } else if (p->output_kind == OUTPUT_PARTS) {
                jsonw_key(&w->json, "output");
                jsonw_array(&w->json);
                for (size_t i = 0; i < p->child_count; i++)
                        write_block(w, m, &p->children[i]);
                jsonw_array_end(&w->json);
        } else if (own && p->output_kind == OUTPUT_DATA && !w->valid) {
                writing_raw(w, "output", p->output);
        } else if (!own || w->valid || p->output_kind == OUTPUT_TEXT) {
                writing_string(w, "output", writing_output(w, m, p));
        }
}

static void write_result(struct writer *w, const struct message *m, const struct part *p)
{
        bool native = is_native(w, m, p);
        bool custom = (p->peer ? p->peer->call : p->call) == CALL_CUSTOM;
        bool own = writing_own(w, m) && (native || custom || p->call == CALL_FUNCTION);
        jsonw_object(&w->json);
        if (native && !custom) {
                kinds_write(w, m, p);
        } else {
                writing_text(
                    w, "type", custom ? "custom_tool_call_output" : "function_call_output");
                writing_string(w, "call_id", p->id.p ? p->id : STR(""));
                write_output(w, m, p);
        }
        if (own) {
                write_members(w, m, true);
        } else {
                if (writing_own(w, m) && m->role == ROLE_TOOL)
                        writing_lose_extras(w, m, "", m->extras);
                writing_lose_extras(w, m, "result", p->extras);
                writing_lose_figures(w, m, p);
                if (p->error)
                        writing_lose(w, m, "is_error", "the format has no place for it");
                if (p->name.p && (!p->peer || !str_eq(p->name, p->peer->name)))
                        writing_lose(w, m, "name", "the format has no place for it");
        }
        jsonw_object_end(&w->json);
}

static bool is_content(const struct writer *w, const struct message *m, const struct part *p)
{
        switch (p->kind) {
        case PART_TEXT:
        case PART_REFUSAL:
        case PART_IMAGE:
        case PART_FILE:
                return true;
        case PART_AUDIO:
                return p->media.data.p != NULL;
        case PART_OPAQUE:
                return writing_own(w, m) && m->shape == SHAPE_ARRAY;
        default:
                return false;
        }
}

/* Is there an extra that is more than an empty list? */
static bool has_words(const struct extra *list)
{
        for (; list; list = list->next)
                if (!list->idle)
                        return true;
        return false;
}

/* Ends a message item. With the first item of a message of another format, reports the members that
 * have no place in it. */
static size_t end_message(struct writer *w, const struct message *m, size_t end, bool first)
{
        jsonw_object_end(&w->json);
        if (first && !writing_own(w, m)) {
                writing_lose_members(w, m, NULL);
                writing_lose_extras(w, m, "", m->extras);
        }
        return end;
}

/* Writes the consecutive content parts from `i` on as one message item; returns their end. */
static size_t write_message(struct writer *w, const struct message *m, size_t i, bool first)
{
        size_t end = i;
        while (end < m->count && is_content(w, m, &m->parts[end]))
                end++;
        bool own = writing_own(w, m), spoken = m->role == ROLE_ASSISTANT;
        bool alone = end - i == 1 && m->parts[i].kind == PART_TEXT;
        bool string = alone && own && m->shape == SHAPE_STRING;
        /* Output of the model is either a text, or an item with an id and a status. */
        bool strict = w->strict && spoken;
        string |= strict && alone && !has_words(m->parts[i].extras);
        string |= w->valid && alone && !m->parts[i].text.n;
        jsonw_object(&w->json);
        writing_text(w, "type", "message");
        writing_text(w, "role", openai_role_name(m->role));
        if (string) {
                writing_string(w, "content", m->parts[i].text);
        } else if (end == i && w->valid) {
                writing_text(w, "content", "");
        } else if (end > i || m->shape == SHAPE_ARRAY || !writing_own(w, m)) {
                jsonw_key(&w->json, "content");
                jsonw_array(&w->json);
                for (size_t k = i; k < end; k++)
                        write_block(w, m, &m->parts[k]);
                jsonw_array_end(&w->json);
        } else if (m->shape == SHAPE_NULL) {
                writing_raw(w, "content", STR("null"));
        }
        if (w->valid && spoken && !string) {
                char id[48];
                snprintf(id, sizeof id, "msg_%llu_%zu", (unsigned long long)m->seq, i);
                if (strict || !own || !m->id.p)
                        writing_text(w, "id", id);
                if (strict || !has_member(w, m, m->extras, "\"status\""))
                        writing_text(w, "status", "completed");
        }
        if (strict)
                return end_message(w, m, end, first);
        write_members(w, m, first);
        jsonw_object_end(&w->json);
        return end;
}

static bool is_held(const struct writer *w, const struct message *m, const struct part *p)
{
        return p->provider_run && is_native(w, m, p);
}

/* Is the message no longer of its own kind? A call whose output was changed is written as a
 * function call; an output whose kind differs from its call's is written with the call's kind. */
static bool is_changed(const struct writer *w, const struct message *m)
{
        for (size_t i = 0; w->valid && i < m->count; i++) {
                const struct part *p = &m->parts[i];
                bool call = p->kind == PART_CALL || p->kind == PART_RESULT;
                if (p->kind == PART_RESULT && p->peer && p->peer->call != p->call)
                        return true;
                if (call && p->call != CALL_FUNCTION && p->call != CALL_CUSTOM &&
                    !is_native(w, m, p))
                        return true;
        }
        return false;
}

/* Is it an item with only blanks, beside other items of the same message that have text? The parts
 * between them are not written. */
static bool is_blank_item(const struct writer *w, const struct message *m, size_t i)
{
        bool says = false;
        if (!w->valid || m->role != ROLE_ASSISTANT)
                return false;
        for (; i < m->count && is_content(w, m, &m->parts[i]); i++)
                if (m->parts[i].kind != PART_TEXT || !turns_is_blank(m->parts[i].text))
                        return false;
        for (i = 0; i < m->count; i++)
                says = says || (m->parts[i].kind == PART_TEXT && !turns_is_blank(m->parts[i].text));
        return says;
}

static void write_items(struct writer *w, const struct message *m)
{
        bool spoken = false;
        if (!m->count && (m->role != ROLE_NONE && m->role != ROLE_TOOL)) {
                write_message(w, m, 0, true);
                return;
        }
        for (size_t i = 0; i < m->count;) {
                const struct part *p = &m->parts[i];
                if (is_content(w, m, p)) {
                        /* Other formats write "" beside calls if there is no text. */
                        bool blank =
                            w->valid ? turns_is_blank(p->text) : !p->text.n && !writing_own(w, m);
                        bool nothing = p->kind == PART_TEXT && blank &&
                                       (message_has(m, PART_CALL) || is_blank_item(w, m, i));
                        if (nothing) {
                                if (p->text.n)
                                        writing_lose(w, m, "content",
                                            "blank text, which the format refuses");
                                writing_lose_extras(w, m, "content", p->extras);
                                i++;
                                continue;
                        }
                        if (spoken)
                                writing_lose(w, m, "message", "split into several items");
                        i = write_message(w, m, i, !spoken);
                        spoken = true;
                        continue;
                }
                i++;
                if (p->kind == PART_CALL)
                        write_call(w, m, p);
                else if (p->kind == PART_RESULT && is_held(w, m, p))
                        continue; /* the item of the call holds the result */
                else if (p->kind == PART_RESULT)
                        write_result(w, m, p);
                else if (p->kind == PART_OPAQUE)
                        writing_opaque(w, m, p);
                else
                        writing_lose_part(w, m, p);
        }
        if (!spoken && !writing_own(w, m)) {
                writing_lose_members(w, m, NULL);
                writing_lose_extras(w, m, "", m->extras);
        }
}

static bool is_reasoning(const struct message *m)
{
        return m->reasoning && m->count == 1 && m->parts[0].kind == PART_OPAQUE;
}

/* Must the reasoning be left out? It must be followed by what the model said or called next. If
 * that item is written as another kind, the endpoint does not know it. */
static bool is_left_alone(const struct writer *w, const struct history *h, size_t i)
{
        if (!w->valid || !writing_own(w, &h->list[i]) || !is_reasoning(&h->list[i]))
                return false;
        while (is_reasoning(&h->list[i]) && message_is_tied(h, i))
                i++;
        return is_reasoning(&h->list[i]) || is_changed(w, &h->list[i]);
}

/* Completes reasoning that lacks members the API requires. Encrypted reasoning gets an id and a
 * summary. Other reasoning is useless to an endpoint that cannot look it up. Absent: it cannot be
 * completed. */
static struct str mended_reasoning(struct writer *w, const struct message *m)
{
        struct json j;
        struct buf b;
        struct str raw = m->parts[0].raw, mended = {0};
        char id[32];
        json_init(&j);
        buf_init(&b, 0);
        if (json_parse(&j, raw.p, raw.n, NULL, NULL) == 0 &&
            json_inner(&j, json_get(&j, 0, "encrypted_content")).n) {
                struct jsonw to = jsonw_to(&b);
                jsonw_object(&to);
                for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k))
                        jsonw_copy_member(&to, &j, k);
                snprintf(id, sizeof id, "rs_%llu", (unsigned long long)m->seq);
                if (json_get(&j, 0, "id") == JSON_NONE)
                        jsonw_field_cstr(&to, "id", id);
                if (json_get(&j, 0, "summary") == JSON_NONE)
                        jsonw_field_raw(&to, "summary", STR("[]"));
                jsonw_object_end(&to);
                if (!b.failed && is_of_type(buf_str(&b), rules_responses.message))
                        mended = arena_dup(w->arena, buf_str(&b));
        }
        buf_release(&b);
        json_release(&j);
        return mended;
}

/* Writes reasoning that cannot be copied, or reports that it is lost. False: it can be copied. */
static bool write_reasoning(struct writer *w, const struct message *m)
{
        if (!w->valid || !writing_own(w, m) || !is_reasoning(m) || is_whole(&m->parts[0]))
                return false;
        struct str mended = mended_reasoning(w, m);
        if (mended.p)
                jsonw_raw(&w->json, mended);
        else
                writing_lose(w, m, "reasoning", "the provider would not accept it");
        return true;
}

/* Returns the id of an item as text. Absent: the item has no id, or is a call that the provider
 * ran, whose id was made unique together with the ids of calls (arrange.c). A reference has no id
 * of its own. */
static struct str item_id(struct writer *w, const struct message *m)
{
        struct str id = {0};
        if (m->count && is_native(w, m, &m->parts[0]) && has_own_id(&m->parts[0]))
                return id;
        if (m->id.p)
                return token_decode(m->id, w->arena, NULL);
        struct json j;
        json_init(&j);
        if (m->count == 1 && m->parts[0].kind == PART_OPAQUE && m->parts[0].raw.p &&
            json_parse(&j, m->parts[0].raw.p, m->parts[0].raw.n, NULL, NULL) == 0 &&
            !json_is(&j, json_get(&j, 0, "type"), "item_reference"))
                id = token_text(&j, json_get(&j, 0, "id"), w->arena);
        json_release(&j);
        return id;
}

/* Is it reasoning with an id that a strict endpoint refuses? */
static bool has_bad_id(struct writer *w, const struct message *m)
{
        if (!w->strict || !writing_own(w, m) || !is_reasoning(m))
                return false;
        struct str id = item_id(w, m);
        return !str_starts(id, "rs") || !rules_is_name(&rules_responses, id);
}

/* Did an earlier item have the same id? */
static bool is_again(struct writer *w, const struct message *m)
{
        struct str id = w->valid && writing_own(w, m) ? item_id(w, m) : (struct str){0};
        return id.n && writing_seen_in(w, &w->item_ids, id);
}

/* Ids of items must be unique in a request, but a client that records may send an item again.
 * Returns another id if this kind of item must have one; other items get none. */
static struct str other_id(struct writer *w, const struct message *m)
{
        const char *kind = m->count && m->parts[0].call == CALL_COMPUTER ? "cu" : "lsh";
        struct str id = {0};
        char text[64];
        if (!m->count || !needs_id(&m->parts[0]))
                return id;
        for (unsigned n = 0; n == 0 || writing_seen_in(w, &w->item_ids, id); n++) {
                snprintf(
                    text, sizeof text, "%s_again_%llu_%u", kind, (unsigned long long)m->seq, n);
                id = arena_dup(w->arena, str_of(text));
        }
        return id;
}

/* Does the message have a block of a type that only the other side can use? It is written as a type
 * of this side. */
static bool has_block_of_other(const struct message *m)
{
        const char *type = m->role == ROLE_ASSISTANT ? "\"input_text\"" : "\"output_text\"";
        return m->raw.p && memmem(m->raw.p, m->raw.n, type, strlen(type));
}

/* May the item be copied? In a strict view, only an item without an id of its own may. */
static bool is_copied(const struct writer *w, const struct message *m)
{
        bool message = m->role != ROLE_NONE && m->role != ROLE_TOOL;
        if (!writing_own(w, m) || !m->raw.p)
                return false; /* checked first, because the rest parses */
        if (w->valid && message &&
            (!m->count || m->shape == SHAPE_ABSENT || m->shape == SHAPE_NULL))
                return false;
        if (w->strict && (message_has(m, PART_IMAGE) || message_has(m, PART_FILE)))
                return false;
        if (w->valid && message && (has_block_of_other(m) || !is_of_type(m->raw, "message")))
                return false;
        return !w->strict || is_reasoning(m) || (m->role != ROLE_ASSISTANT && m->role != ROLE_TOOL);
}

static int responses_write(struct writer *w, const struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                message_ahead(h, i);
                if (is_left_alone(w, h, i) || has_bad_id(w, m)) {
                        writing_lose(w, m, "reasoning", "the item that it belongs to is missing");
                        continue;
                }
                bool again = is_again(w, m);
                if (again && m->count == 1 && m->parts[0].kind == PART_OPAQUE) {
                        writing_lose(w, m, "item", "an earlier item has the same id");
                        continue;
                }
                if (write_reasoning(w, m) ||
                    (is_copied(w, m) && !again && !is_changed(w, m) && writing_same(w, m)))
                        continue;
                struct message renamed = *m;
                if (again) {
                        renamed.id = other_id(w, m);
                        writing_lose(w, m, "id", "an earlier item has the same id");
                }
                /* Items of different turns look like items of one turn. */
                if (i && !writing_own(w, m) && m->role == ROLE_ASSISTANT &&
                    h->list[i - 1].role == ROLE_ASSISTANT)
                        writing_lose(w, m, "message", "may come back joined with the one before");
                write_items(w, &renamed);
        }
        return 0;
}

static bool responses_reasons(struct str m)
{
        struct json j;
        json_init(&j);
        bool reasons = json_parse(&j, m.p, m.n, NULL, NULL) == 0 &&
                       json_is(&j, json_get(&j, 0, "type"), "reasoning");
        json_release(&j);
        return reasons;
}

static int responses_detect(const struct json *j, json_ref msg)
{
        json_ref type = json_get(j, msg, "type");
        if (json_type(j, type) == JSON_STRING && !json_is(j, type, "message"))
                return 97;
        if (json_is(j, type, "message"))
                return 96;
        json_ref role = json_get(j, msg, "role");
        if (type != JSON_NONE || openai_role(j, role) == ROLE_NONE || json_is(j, role, "tool") ||
            json_get(j, msg, "tool_calls") != JSON_NONE || json_get(j, msg, "parts") != JSON_NONE)
                return 0;
        json_ref block = json_child(j, json_get(j, msg, "content"));
        json_ref kind = json_get(j, block, "type");
        if (json_is(j, kind, "input_text") || json_is(j, kind, "output_text"))
                return 95;
        return 30;
}

const struct format format_responses = {
    .name = "responses",
    .flags = FORMAT_PROVIDER | FORMAT_ITEMS | FORMAT_USER_MEDIA | FORMAT_TEXT_ARGUMENTS,
    .kinds = FORMAT_KIND(CALL_CUSTOM) | FORMAT_KIND(CALL_MCP) | FORMAT_KIND(CALL_SHELL) |
             FORMAT_KIND(CALL_LOCAL_SHELL) | FORMAT_KIND(CALL_COMPUTER) |
             FORMAT_KIND(CALL_APPLY_PATCH) | FORMAT_KIND(CALL_WEB_SEARCH) |
             FORMAT_KIND(CALL_CODE_INTERPRETER) | FORMAT_KIND(CALL_FILE_SEARCH) |
             FORMAT_KIND(CALL_IMAGE_GENERATION),
    .describe = responses_describe,
    .read = responses_read,
    .write = responses_write,
    .reasons = responses_reasons,
    .detect = responses_detect,
};
