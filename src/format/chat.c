/*
 * chat.c - what a chat page shows:
 *
 *   {id, role, content, thinking?, attachments?, toolCalls?:[{id, name, arguments, state, result?,
 *    error?, invokedAt?, duration?, steps?, ref?, display?:{returnDisplay?, displayName?,
 *    description?}}], createdAt?, partType?, error?}
 *
 * content is one text; attachments are blocks (blocks.h). A tool call holds its result; there are
 * no tool messages. state is
 *
 *   unrecorded    no result, and nothing more is known
 *   waiting       a live run has not started it yet; it may wait for permission
 *   running       the live run runId is executing it
 *   not_dispatched, indeterminate, cut, interrupted   no result will come (model/repair.h)
 *   complete      result
 *   error         error: the output of the tool, which failed
 *   denied        error: the call was not allowed, so it was not run
 *   interrupted   error or result: the call was stopped
 *   cut           error: the arguments were cut off, so the call was not run
 *
 * A page gets this form in two ways: by folding messages as they come (model/fold.h), and by
 * formatting a whole history. Only the peers of calls and results count, not the place of a result
 * in the history.
 */
#include "format/format.h"

#include "base/error.h"
#include "format/blocks.h"
#include "format/describe.h"
#include "format/openai_content.h"
#include "format/reading.h"
#include "format/writing.h"
#include "model/token.h"

static bool is_there(const struct json *j, json_ref v)
{
        enum json_type t = json_type(j, v);
        return t != JSON_NOTHING && t != JSON_NULL;
}

static int chat_describe(const struct json *j, json_ref msg, struct arena *arena, struct about *out,
    struct steno_error *err)
{
        static const char *const roles[] = {"system", "developer", "user", "assistant", NULL};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        int rc = describe_message(&d, msg, roles);
        json_ref list = json_get(j, msg, "toolCalls");
        if (!rc && is_there(j, list) && json_type(j, list) != JSON_ARRAY)
                rc = describe_refuse(&d, "toolCalls is not an array");
        for (json_ref e = json_type(j, list) == JSON_ARRAY ? json_child(j, list) : JSON_NONE;
             !rc && e != JSON_NONE; e = json_next(j, list, e)) {
                if (json_type(j, e) != JSON_OBJECT) {
                        rc = describe_refuse(&d, "a toolCalls entry is not an object");
                        break;
                }
                json_ref id = json_get(j, e, "id");
                rc = describe_call(&d, id, json_get(j, e, "name"), "the id of a toolCalls entry");
                if (!rc &&
                    (is_there(j, json_get(j, e, "result")) || is_there(j, json_get(j, e, "error"))))
                        rc = describe_answer(
                            &d, id, json_get(j, e, "name"), "the id of a toolCalls entry");
        }
        if (rc)
                return rc;
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

static int chat_read(const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        enum { ROLE, CONTENT, ID, CREATED, CALLS, ATTACHMENTS, THINKING, COUNT };
        static const char *const keys[] = {
            "role", "content", "id", "createdAt", "toolCalls", "attachments", "thinking", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[COUNT];
        reading_members(&r, msg, keys, f, &m->extras, false);
        m->role = openai_role(j, f[ROLE]);
        m->id = reading_string_or_keep(&r, &m->extras, "id", f[ID]);
        m->created_at = reading_string_or_keep(&r, &m->extras, "createdAt", f[CREATED]);
        r.expected = (json_type(j, f[THINKING]) == JSON_STRING) +
                     (json_type(j, f[CONTENT]) == JSON_STRING) + json_count(j, f[ATTACHMENTS]) +
                     2 * json_count(j, f[CALLS]); /* most calls have a result */
        if (json_type(j, f[THINKING]) == JSON_STRING)
                reading_part(&r, PART_THINKING, JSON_NONE)->text = reading_string(&r, f[THINKING]);
        else
                reading_keep(&r, &m->extras, "thinking", f[THINKING], false);
        if (json_type(j, f[CONTENT]) == JSON_STRING) {
                m->shape = SHAPE_STRING;
                reading_text(&r, f[CONTENT]);
        } else {
                m->shape = SHAPE_ABSENT;
                reading_keep(&r, &m->extras, "content", f[CONTENT], false);
        }
        if (blocks_are(j, f[ATTACHMENTS]))
                for (json_ref b = json_child(j, f[ATTACHMENTS]); b != JSON_NONE;
                     b = json_next(j, f[ATTACHMENTS], b))
                        blocks_read(&r, b);
        else
                reading_keep(&r, &m->extras, "attachments", f[ATTACHMENTS], false);
        json_ref list = f[CALLS];
        if (json_type(j, list) != JSON_ARRAY || !json_count(j, list))
                reading_keep(&r, &m->extras, "toolCalls", list, false);
        else
                for (json_ref e = json_child(j, list); e != JSON_NONE; e = json_next(j, list, e))
                        reading_entry(&r, e, true);
        reading_idle(m->extras, "toolCalls", "null");
        reading_idle(m->extras, "toolCalls", "[]");
        return arena->failed;
}

/* ---- writing ---- */

/* Returns the value of the result if there is one, because it is newer; else that of the call. */
static struct str figure(struct str of_result, struct str of_call)
{
        return of_result.p ? of_result : of_call;
}

static void write_display(struct writer *w, const struct part *call, const struct part *result)
{
        struct str shown = figure(result->display, call->display);
        if (!shown.p && !call->display_name.p && !call->description.p)
                return;
        jsonw_key(&w->json, "display");
        jsonw_object(&w->json);
        writing_raw(w, "returnDisplay", shown);
        writing_raw(w, "displayName", call->display_name);
        writing_raw(w, "description", call->description);
        jsonw_object_end(&w->json);
}

static void write_call(struct writer *w, const struct message *m, const struct part *p)
{
        const struct part none = {0};
        const struct part *r = p->peer ? p->peer : &none;
        bool own = writing_own(w, m);
        jsonw_object(&w->json);
        writing_string(w, "id", p->id);
        writing_string(w, "name", p->name);
        if (!p->arguments_text && own)
                writing_raw(w, "arguments", p->arguments);
        else
                writing_arguments_text(w, m, "arguments", p);
        bool said = false;
        for (const struct extra *x = p->extras; own && x; x = x->next)
                said |= str_is(x->key, "\"state\"");
        if (!said)
                writing_text(w, "state",
                    !p->peer    ? (p->state ? p->state : "unrecorded")
                    : r->ending ? members_ending_name(r->ending)
                    : r->error  ? "error"
                                : "complete");
        if (p->peer) {
                struct message from = *m;
                from.seq = r->seq ? r->seq : m->seq;
                blocks_write_output(w, &from, r->error ? "error" : "result", r);
        }
        writing_raw(w, "invokedAt", figure(r->invoked_at, p->invoked_at));
        writing_raw(w, "duration", figure(r->duration, p->duration));
        writing_raw(w, "steps", figure(r->steps, p->steps));
        writing_raw(w, "ref", figure(r->ref, p->ref));
        writing_raw(w, "runId", p->run);
        write_display(w, p, r);
        writing_extras(w, m, "tool_calls", p->extras, false);
        jsonw_object_end(&w->json);
        if (own)
                return;
        writing_extras(w, m, "tool_calls", p->extras, true);
        if (p->signature.p)
                writing_lose(w, m, "signature", "the format has no place for it");
}

/* Reports the members of a result's message, because a page has no place for this message. */
static void report_result(struct writer *w, const struct message *m, const struct part *p)
{
        writing_report_result(w, m, p);
        if (p->name.p && p->peer && !str_eq(p->name, p->peer->name))
                writing_lose(w, m, "name", "the format has no place for it");
        writing_report_silence(w, m, p);
}

static struct str join_texts(struct writer *w, const struct message *m, bool thinking, size_t *n)
{
        struct token_sum all;
        token_sum_begin(&all);
        *n = 0;
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                bool text = p->kind == PART_TEXT || p->kind == PART_REFUSAL;
                if (thinking ? p->kind != PART_THINKING : !text)
                        continue;
                *n += p->text.p != NULL;
                token_sum_add(&all, p->text);
                if (p->kind == PART_REFUSAL)
                        writing_lose(w, m, "refusal", "written as text");
                if (p->signature.p)
                        writing_lose(w, m, "signature", "the format has no place for it");
                writing_lose_extras(w, m, thinking ? "thinking" : "content", p->extras);
        }
        return token_sum_end(&all, w->arena);
}

static bool is_media(const struct part *p)
{
        return p->kind == PART_IMAGE || p->kind == PART_AUDIO || p->kind == PART_FILE;
}

static void write_attachments(struct writer *w, const struct message *m)
{
        bool any = false;
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                bool block = is_media(p) || (p->kind == PART_OPAQUE && writing_own(w, m));
                if (!block)
                        continue;
                if (!any) {
                        jsonw_key(&w->json, "attachments");
                        jsonw_array(&w->json);
                }
                any = true;
                blocks_write(w, m, p);
        }
        if (any)
                jsonw_array_end(&w->json);
}

static void write_calls(struct writer *w, const struct message *m)
{
        if (!message_has(m, PART_CALL))
                return;
        jsonw_key(&w->json, "toolCalls");
        jsonw_array(&w->json);
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_CALL)
                        write_call(w, m, &m->parts[i]);
        jsonw_array_end(&w->json);
}

/* Returns the place of a part in the order in which a page shows parts: thinking, text,
 * attachments, calls. */
static int place(const struct part *p)
{
        if (p->kind == PART_THINKING)
                return 0;
        if (p->kind == PART_TEXT || p->kind == PART_REFUSAL)
                return 1;
        return is_media(p) ? 2 : 3;
}

static void report_rest(struct writer *w, const struct message *m, size_t texts, size_t thoughts)
{
        int last = 0;
        bool moved = false;
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind == PART_REDACTED || p->kind == PART_OPAQUE)
                        writing_lose_part(w, m, p);
                else if (p->kind == PART_RESULT)
                        report_result(w, m, p);
                else if (place(p) < last)
                        moved = true;
                else
                        last = place(p);
        }
        if (texts > 1)
                writing_lose(w, m, "content", "several texts, joined");
        if (thoughts > 1)
                writing_lose(w, m, "thinking", "several, joined");
        if (moved)
                writing_lose(w, m, "content", "in another order");
        writing_extras(w, m, "", m->extras, true);
        static const char *const has[] = {"id", "createdAt", NULL};
        writing_lose_members(w, m, has);
}

/* Is it an extra that the page shows? These are the error of a failed model call, and the time of a
 * run's reply in its provider's shape. */
static bool is_shown(const struct extra *x)
{
        return (str_is(x->key, "\"createdAt\"") && x->value.p[0] == '"') ||
               (str_is(x->key, "\"partType\"") && str_is(x->value, "\"error\"")) ||
               (str_is(x->key, "\"error\"") && x->value.n && x->value.p[0] == '{');
}

static void write_extras(struct writer *w, const struct message *m)
{
        for (const struct extra *x = m->extras; x; x = x->next) {
                struct extra one = *x;
                one.next = NULL;
                if (writing_own(w, m) || x->inner || !is_shown(x)) {
                        writing_extras(w, m, "", &one, false);
                        continue;
                }
                jsonw_raw(&w->json, x->key);
                buf_putc(w->out, ':');
                buf_put_str(w->out, x->value);
        }
}

static int write_message(struct writer *w, const struct message *m)
{
        size_t texts, thoughts;
        bool own = writing_own(w, m);
        struct str thinking = join_texts(w, m, true, &thoughts);
        struct str text = join_texts(w, m, false, &texts);
        jsonw_object(&w->json);
        if (m->id.p || !own)
                writing_id(w, m);
        writing_text(w, "role", openai_role_name(m->role));
        if (text.p || !own)
                writing_string(w, "content", text.p ? text : STR(""));
        writing_string(w, "thinking", thinking);
        write_attachments(w, m);
        write_calls(w, m);
        writing_string(w, "createdAt", m->created_at);
        write_extras(w, m);
        jsonw_object_end(&w->json);
        if (!own)
                report_rest(w, m, texts, thoughts);
        return 0;
}

static int chat_write(struct writer *w, const struct history *h)
{
        return writing_embedded(w, h, write_message, report_result);
}

static int chat_detect(const struct json *j, json_ref msg)
{
        json_ref role = json_get(j, msg, "role");
        if (openai_role(j, role) == ROLE_NONE || json_is(j, role, "tool") ||
            json_type(j, json_get(j, msg, "content")) != JSON_STRING)
                return 0;
        if (json_get(j, msg, "toolCalls") != JSON_NONE)
                return 97;
        return json_get(j, msg, "attachments") != JSON_NONE ? 90 : 42;
}

const struct format format_chat = {
    .name = "chat",
    .flags = FORMAT_EMBEDS | FORMAT_TEXT_ARGUMENTS | FORMAT_MESSAGE_IDS,
    .describe = chat_describe,
    .read = chat_read,
    .write = chat_write,
    .detect = chat_detect,
};
