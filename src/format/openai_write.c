/* openai_write.c - see openai.h */
#include "format/openai.h"

#include <string.h>

#include "format/blocks.h"
#include "format/openai_content.h"
#include "format/writing.h"

/* Members of OpenAI's that must have the same type as in the hub: tool_calls is a list of calls,
 * name is a string. If a member has another type, it is an extra. */
static const char *const strict[] = {"tool_calls", "name", "refusal", NULL};

/* Returns the name of such an extra, or NULL. */
static const char *odd_member(const struct extra *x)
{
        struct str key = str_span(x->key.p + 1, x->key.n - 2);
        for (const char *const *name = strict; *name; name++)
                if (str_is(key, *name))
                        return str_is(key, "refusal") && str_is(x->value, "null") ? NULL : *name;
        return NULL;
}

/* If a member occurs twice, the last one counts, and this is the one in the hub. */
static bool is_refused(const struct message *m, const char *name)
{
        if (strcmp(name, "name") == 0)
                return !m->name.p;
        return !message_has(m, strcmp(name, "refusal") == 0 ? PART_REFUSAL : PART_CALL);
}

static bool has_refused(const struct writer *w, const struct message *m)
{
        for (const struct extra *x = w->valid ? m->extras : NULL; x; x = x->next)
                if (odd_member(x) && is_refused(m, odd_member(x)))
                        return true;
        return false;
}

static void lose_refused(struct writer *w, const struct message *m)
{
        for (const struct extra *x = m->extras; x; x = x->next)
                if (odd_member(x) && is_refused(m, odd_member(x)))
                        writing_lose(
                            w, m, odd_member(x), "empty or of a type that the format refuses");
}

static void write_extras(struct writer *w, const struct message *m)
{
        if (!writing_own(w, m)) {
                writing_extras(w, m, "", m->extras, false);
                return;
        }
        for (const struct extra *x = m->extras; x; x = x->next) {
                if (w->strip_own && openai_is_own_token(x->key))
                        continue;
                if (w->valid && odd_member(x))
                        continue;
                struct extra one = *x;
                one.next = NULL;
                writing_extras(w, m, "", &one, false);
        }
        if (w->valid)
                lose_refused(w, m);
}

static void write_members(struct writer *w, const struct message *m)
{
        static const char *const has[] = {"name", NULL};
        writing_string(w, "name", m->name);
        if (!w->strip_own) {
                writing_string(w, "id", m->id);
                writing_string(w, "createdAt", m->created_at);
        } else if (!writing_own(w, m)) {
                writing_lose_members(w, m, has);
        }
        write_extras(w, m);
}

static void write_figures(struct writer *w, const struct message *m, const struct part *p)
{
        if (w->strip_own) {
                if (!writing_own(w, m))
                        writing_lose_figures(w, m, p);
                return;
        }
        if (p->ending)
                writing_raw(w, members_ending_name(p->ending), STR("true"));
        writing_raw(w, "duration", p->duration);
        writing_raw(w, "steps", p->steps);
        writing_raw(w, "invokedAt", p->invoked_at);
        writing_raw(w, "ref", p->ref);
        if (p->display.p)
                writing_lose(w, m, "returnDisplay", "the format has no place for it");
}

/* Returns the type of a call if it is not function. */
static const struct extra *odd_type(const struct part *p)
{
        for (const struct extra *x = p->extras; x; x = x->next)
                if (!x->inner && str_is(x->key, "\"type\""))
                        return x;
        return NULL;
}

/* Is it a member of a call whose meaning is written already? */
static bool is_idle_member(const struct extra *x, bool custom)
{
        return !x->inner && (str_is(x->key, "\"function\"") || str_is(x->key, "\"custom\"") ||
                                (str_is(x->key, "\"type\"") && !custom));
}

static void write_call_extras(
    struct writer *w, const struct message *m, const struct part *p, bool custom)
{
        if (!w->valid || !writing_own(w, m)) {
                writing_extras(w, m, "tool_calls", p->extras, false);
                return;
        }
        for (const struct extra *x = p->extras; x; x = x->next) {
                struct extra one = *x;
                one.next = NULL;
                if (is_idle_member(x, custom))
                        writing_lose(w, m, "tool_calls", "a member that the format refuses");
                else
                        writing_extras(w, m, "tool_calls", &one, false);
        }
}

static void write_call(struct writer *w, const struct message *m, const struct part *p)
{
        const struct extra *type = writing_own(w, m) ? odd_type(p) : NULL;
        bool custom = p->call == CALL_CUSTOM;
        jsonw_object(&w->json);
        writing_string(w, "id", p->id.p ? p->id : STR(""));
        if (!type || (w->valid && !custom))
                writing_text(w, "type", custom ? "custom" : "function");
        jsonw_key(&w->json, custom ? "custom" : "function");
        jsonw_object(&w->json);
        writing_string(w, "name", p->name.p ? p->name : STR(""));
        if (writing_own(w, m) && !p->arguments_text && p->raw.p && !w->valid)
                writing_raw(w, custom ? "input" : "arguments", p->arguments);
        else
                writing_arguments_text(w, m, custom ? "input" : "arguments", p);
        writing_extras(w, m, "tool_calls", p->extras, true);
        jsonw_object_end(&w->json);
        if (!writing_own(w, m) && p->signature.p && w->valid) {
                writing_lose(w, m, "signature", "the provider's types have no place for it");
        } else if (!writing_own(w, m) && p->signature.p) {
                jsonw_key(&w->json, "extra_content");
                jsonw_object(&w->json);
                jsonw_key(&w->json, "google");
                jsonw_object(&w->json);
                writing_string(w, "thought_signature", p->signature);
                jsonw_object_end(&w->json);
                jsonw_object_end(&w->json);
        }
        write_call_extras(w, m, p, custom);
        jsonw_object_end(&w->json);
        if (!writing_own(w, m))
                writing_lose_figures(w, m, p);
}

static bool is_entry(const struct part *p)
{
        struct json j;
        json_init(&j);
        bool entry = p->raw.p && json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) == 0 &&
                     json_type(&j, json_get(&j, 0, "function")) != JSON_OBJECT &&
                     json_type(&j, json_get(&j, 0, "custom")) != JSON_OBJECT;
        json_release(&j);
        return entry;
}

/* Writes an entry of an app's own shape, as reading_entry read it. */
static void write_entry(
    struct writer *w, const struct message *m, const struct part *p, const struct part *result)
{
        jsonw_object(&w->json);
        writing_string(w, "id", p->id);
        if (is_entry(p)) {
                writing_string(w, "name", p->name);
                if (p->arguments_text)
                        writing_string(w, "arguments", p->arguments);
                else
                        writing_raw(w, "arguments", p->arguments);
        }
        if (result)
                blocks_write_output(w, m, result->error ? "error" : "result", result);
        writing_raw(w, "steps", p->steps);
        writing_raw(w, "invokedAt", p->invoked_at);
        writing_raw(w, "duration", p->duration);
        writing_raw(w, "ref", p->ref);
        writing_extras(w, m, "tool_calls", p->extras, false);
        jsonw_object_end(&w->json);
}

/* Is it {"type":"function","function":{}} or the same with custom? */
static bool is_regular(const struct part *p)
{
        struct json j;
        json_init(&j);
        bool read = p->raw.p && json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) == 0;
        json_ref type = read ? json_get(&j, 0, "type") : JSON_NONE;
        bool custom = json_is(&j, type, "custom");
        bool regular =
            (custom || json_is(&j, type, "function")) &&
            json_type(&j, json_get(&j, 0, custom ? "custom" : "function")) == JSON_OBJECT;
        json_release(&j);
        return regular;
}

/* Is it the older kind of call? Providers no longer have to accept it, so only its original bytes
 * are written. */
static bool is_legacy(const struct writer *w, const struct message *m, const struct part *p)
{
        return p->call == CALL_LEGACY && writing_own(w, m) && !w->valid;
}

static bool has_calls(const struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_CALL && !is_legacy(w, m, &m->parts[i]))
                        return true;
        return false;
}

static void write_legacy(struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind != PART_CALL || !is_legacy(w, m, p))
                        continue;
                jsonw_key(&w->json, "function_call");
                jsonw_object(&w->json);
                writing_string(w, "name", p->name);
                if (p->arguments_text)
                        writing_string(w, "arguments", p->arguments);
                else
                        writing_raw(w, "arguments", p->arguments);
                writing_extras(w, m, "function_call", p->extras, true);
                jsonw_object_end(&w->json);
        }
}

static void write_calls(struct writer *w, const struct message *m)
{
        write_legacy(w, m);
        if (!has_calls(w, m))
                return;
        jsonw_key(&w->json, "tool_calls");
        jsonw_array(&w->json);
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind != PART_CALL || is_legacy(w, m, p))
                        continue;
                const struct part *next = i + 1 < m->count ? p + 1 : NULL;
                if (next && next->kind != PART_RESULT)
                        next = NULL;
                if (next || (writing_own(w, m) && !w->valid && is_entry(p)))
                        write_entry(w, m, p, next);
                else
                        write_call(w, m, p);
        }
        jsonw_array_end(&w->json);
}

/* Writes a refusal that cannot be among other parts. The texts of several refusals are joined. */
static void write_refusal(struct writer *w, const struct message *m)
{
        struct buf text;
        size_t n = 0;
        buf_init(&text, 0);
        for (size_t i = 0; i < m->count && openai_refuses_apart(w, m); i++) {
                if (m->parts[i].kind != PART_REFUSAL)
                        continue;
                if (n++)
                        buf_puts(&text, "\\n");
                buf_put_str(&text, m->parts[i].text);
        }
        if (n)
                writing_string(w, "refusal", arena_dup(w->arena, buf_str(&text)));
        buf_release(&text);
}

static void write_assistant(struct writer *w, const struct message *m)
{
        jsonw_object(&w->json);
        writing_text(w, "role", "assistant");
        openai_write_content(w, m);
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind == PART_THINKING && writing_own(w, m))
                        writing_string(w, "reasoning_content", p->text);
                else if (p->kind == PART_THINKING || p->kind == PART_REDACTED)
                        writing_lose_part(w, m, p);
        }
        write_refusal(w, m);
        write_calls(w, m);
        write_members(w, m);
        jsonw_object_end(&w->json);
}

static void write_result(struct writer *w, const struct message *m, const struct part *p)
{
        bool alone = m->role == ROLE_TOOL && m->count == 1;
        bool legacy = is_legacy(w, m, p);
        jsonw_object(&w->json);
        writing_text(w, "role", legacy ? "function" : "tool");
        if (legacy)
                writing_string(w, "name", p->name);
        else
                writing_string(w, "tool_call_id", p->id.p ? p->id : STR(""));
        openai_write_output(w, m, p);
        if (legacy) {
                if (p->error)
                        writing_raw(w, "isError", STR("true"));
        } else if (!w->strip_own) {
                writing_string(w, "toolName", p->name);
                if (p->error)
                        writing_raw(w, "isError", STR("true"));
        } else if (!writing_own(w, m)) {
                if (p->error)
                        writing_lose(w, m, "is_error", "the format has no place for it");
                if (p->name.p && (!p->peer || !str_eq(p->name, p->peer->name)))
                        writing_lose(w, m, "name", "the format has no place for it");
        }
        write_figures(w, m, p);
        writing_lose_extras(w, m, "result", p->extras);
        if (alone)
                write_members(w, m);
        jsonw_object_end(&w->json);
}

static bool is_speech(const struct part *p)
{
        return p->kind != PART_RESULT;
}

static void write_others(struct writer *w, const struct message *m)
{
        size_t results = 0, rest = 0;
        for (size_t i = 0; i < m->count; i++) {
                if (is_speech(&m->parts[i]))
                        rest++;
                else
                        results++, write_result(w, m, &m->parts[i]);
        }
        if (results && !rest) {
                if (m->count > 1 ||
                    m->role !=
                        ROLE_TOOL) { /* its members belong to several messages of the output */
                        writing_lose_members(w, m, NULL);
                        writing_lose_extras(w, m, "", m->extras);
                }
                return;
        }
        jsonw_object(&w->json);
        writing_text(w, "role", openai_role_name(m->role));
        openai_write_content(w, m);
        write_members(w, m);
        jsonw_object_end(&w->json);
}

/* Is it a member that this writer leaves out? */
static bool is_left_out(
    const struct writer *w, const struct message *m, const struct json *j, json_ref key)
{
        if (w->strip_own && openai_is_own(j, key))
                return true;
        bool null = json_type(j, json_value(j, key)) == JSON_NULL;
        for (const char *const *name = w->valid ? strict : NULL; name && *name; name++)
                if (json_is(j, key, *name) && is_refused(m, *name))
                        return !null || strcmp(*name, "refusal") != 0;
        return false;
}

/* Writes an untouched message without some of its members. The others stay, each token in its
 * place. */
static bool write_some(struct writer *w, const struct message *m)
{
        struct json j;
        if (!m->raw.p || !writing_own(w, m) || w->rebuild)
                return false;
        json_init(&j);
        bool read = json_parse(&j, m->raw.p, m->raw.n, NULL, NULL) == 0;
        if (read)
                jsonw_object(&w->json);
        for (json_ref key = read ? json_child(&j, 0) : JSON_NONE; key != JSON_NONE;
             key = json_next_key(&j, 0, key)) {
                if (is_left_out(w, m, &j, key))
                        continue;
                jsonw_raw(&w->json, json_raw(&j, key));
                buf_putc(w->out, ':');
                buf_put_str(w->out, json_raw(&j, json_value(&j, key)));
        }
        if (read)
                jsonw_object_end(&w->json);
        json_release(&j);
        if (read && w->valid)
                lose_refused(w, m);
        return read;
}

/* Is the content of the result a text or a list of texts? Providers accept nothing else from a
 * tool. */
static bool is_said(const struct part *p)
{
        if (p->output_kind == OUTPUT_TEXT)
                return true;
        if (p->output_kind != OUTPUT_PARTS || !p->child_count)
                return false;
        for (size_t i = 0; i < p->child_count; i++)
                if (p->children[i].kind != PART_TEXT)
                        return false;
        return true;
}

/* Does a provider accept the message unchanged? Messages of users, systems and tools must have
 * content. */
static bool is_acceptable(const struct writer *w, const struct message *m)
{
        if (!w->valid || m->role == ROLE_ASSISTANT)
                return true;
        if (m->role == ROLE_TOOL)
                return m->count == 1 && is_said(&m->parts[0]);
        return m->shape == SHAPE_STRING || (m->shape == SHAPE_ARRAY && m->count);
}

static bool has_entries(const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_RESULT ||
                    (m->parts[i].kind == PART_CALL &&
                        (!m->parts[i].arguments_text || !is_regular(&m->parts[i]))))
                        return true;
        return false;
}

/* Is it a spoken reply? Such a message only has a reference to the audio at the provider. */
static bool has_audio(const struct message *m)
{
        for (const struct extra *x = m->extras; x; x = x->next)
                if (str_is(x->key, "\"audio\"") && !str_is(x->value, "null"))
                        return true;
        return false;
}

static bool has_refusal_among_parts(const struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_REFUSAL && m->parts[i].raw.p)
                        return openai_refuses_apart(w, m);
        return false;
}

static bool is_fine(const struct writer *w, const struct message *m)
{
        if (!is_acceptable(w, m))
                return false;
        if (w->valid && (openai_has_broken(m->parts, m->count) || has_refusal_among_parts(w, m)))
                return false;
        if (!w->valid || m->role != ROLE_ASSISTANT)
                return true;
        if (m->shape == SHAPE_ARRAY && !openai_has_content(w, m))
                return false; /* an array without parts does not count as content */
        if (m->shape == SHAPE_NULL && has_audio(m))
                return true;
        if (m->shape == SHAPE_ABSENT || m->shape == SHAPE_NULL || !m->count)
                return message_has(m, PART_CALL) && !has_entries(m);
        return !message_has(m, PART_CALL) || !has_entries(m);
}

int openai_write(struct writer *w, const struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                if (is_fine(w, m) &&
                    ((!has_refused(w, m) && writing_same(w, m)) || write_some(w, m)))
                        continue;
                if (m->role == ROLE_ASSISTANT)
                        write_assistant(w, m);
                else if (m->role != ROLE_NONE)
                        write_others(w, m);
                else
                        for (size_t k = 0; k < m->count; k++)
                                writing_lose_part(w, m, &m->parts[k]);
        }
        return 0;
}
