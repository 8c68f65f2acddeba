/*
 * openai.c - reads chat completions `messages[]`, with Steno's own members (model.md).
 *
 * An entry of tool_calls that holds its own result or error is complete: it counts as a call and as
 * an answer.
 */
#include "format/format.h"

#include "base/error.h"
#include "format/describe.h"
#include "format/openai.h"
#include "format/openai_content.h"
#include "format/reading.h"
#include "model/members.h"
#include "model/token.h"

/* Finds the members of the message that Steno knows, in one walk. If a key occurs twice, the last
 * one counts. */
static void find_members(
    const struct json *j, json_ref msg, json_ref found[MEMBER_COUNT], bool *own)
{
        for (size_t i = 0; i < MEMBER_COUNT; i++)
                found[i] = JSON_NONE;
        for (json_ref key = json_child(j, msg); key != JSON_NONE;
             key = json_next_key(j, msg, key)) {
                enum member member = members_find(j, key);
                if (member == MEMBER_COUNT)
                        continue;
                found[member] = json_value(j, key);
                *own |= members_has(member, MEMBER_NOT_SENT);
        }
}

static bool is_there(const struct json *j, json_ref v)
{
        enum json_type t = json_type(j, v);
        return t != JSON_NOTHING && t != JSON_NULL;
}

/* Returns the name of the tool that an entry calls, wherever the entry has it. */
static json_ref name_of(const struct json *j, json_ref entry)
{
        json_ref in = json_get(j, entry, "custom");
        if (json_type(j, in) != JSON_OBJECT)
                in = json_get(j, entry, "function");
        return json_get(j, json_type(j, in) == JSON_OBJECT ? in : entry, "name");
}

static int describe_entry(struct describe *d, json_ref entry)
{
        const struct json *j = d->j;
        if (json_type(j, entry) != JSON_OBJECT)
                return describe_refuse(d, "a tool_calls entry is not an object");
        json_ref id = json_get(j, entry, "id");
        json_ref name = name_of(j, entry);
        int rc = describe_call(d, id, name, "the id of a tool_calls entry");
        if (rc)
                return rc;
        bool complete =
            is_there(j, json_get(j, entry, "result")) || is_there(j, json_get(j, entry, "error"));
        if (json_get(j, entry, "function") == JSON_NONE &&
            json_get(j, entry, "custom") == JSON_NONE)
                d->out->own_fields = true;
        if (!complete)
                return 0;
        d->out->own_fields = true;
        return describe_answer(d, id, name, "the id of a tool_calls entry");
}

static int describe_calls(struct describe *d, json_ref list)
{
        if (!is_there(d->j, list))
                return 0;
        if (json_type(d->j, list) != JSON_ARRAY)
                return describe_refuse(d, "tool_calls is not an array");
        for (json_ref e = json_child(d->j, list); e != JSON_NONE; e = json_next(d->j, list, e)) {
                int rc = describe_entry(d, e);
                if (rc)
                        return rc;
        }
        return 0;
}

/* Is it the older kind of call: {"function_call":{"name","arguments"}}, answered by role
 * "function"? It has no ids: calls and results are paired by name. */
static bool is_legacy_call(const struct json *j, json_ref v)
{
        return json_type(j, json_get(j, v, "name")) == JSON_STRING;
}

static int describe_legacy_answer(struct describe *d, json_ref name)
{
        enum json_type type = json_type(d->j, name);
        if (type != JSON_STRING && type != JSON_NOTHING && type != JSON_NULL)
                return describe_refuse(d, "the name of a function message is not a string");
        return describe_named_answer(d, JSON_NONE, name, "the name of a function message");
}

static int openai_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {
            "system", "developer", "user", "assistant", "tool", "function", NULL};
        static const char *const as[] = {
            "system", "developer", "user", "assistant", "tool", "tool"};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        if (json_type(j, msg) != JSON_OBJECT)
                return describe_refuse(&d, "a message is not an object");
        json_ref f[MEMBER_COUNT];
        find_members(j, msg, f, &a.own_fields);
        int rc = describe_role(&d, f[MEMBER_ROLE], roles, as);
        if (!rc)
                rc = describe_id(&d, f[MEMBER_ID]);
        if (!rc && str_is(a.role, "assistant"))
                rc = describe_calls(&d, f[MEMBER_TOOL_CALLS]);
        if (!rc && str_is(a.role, "assistant") && is_legacy_call(j, f[MEMBER_FUNCTION_CALL]))
                rc = describe_named_call(&d, JSON_NONE,
                    json_get(j, f[MEMBER_FUNCTION_CALL], "name"), "the id of a function_call");
        if (!rc && json_is(j, f[MEMBER_ROLE], "function"))
                rc = describe_legacy_answer(&d, json_get(j, msg, "name"));
        else if (!rc && str_is(a.role, "tool"))
                rc = describe_answer(
                    &d, f[MEMBER_TOOL_CALL_ID], f[MEMBER_TOOL_NAME], "tool_call_id");
        if (rc)
                return rc;
        a.mode = token_text(j, f[MEMBER_MODE], arena);
        a.run = token_text(j, f[MEMBER_RUN_ID], arena);
        json_ref ref = f[MEMBER_REF];
        a.ref =
            token_text(j, json_type(j, ref) == JSON_OBJECT ? json_get(j, ref, "id") : ref, arena);
        a.off_context = json_type(j, f[MEMBER_INCLUDE]) == JSON_FALSE;
        a.error =
            json_is(j, f[MEMBER_PART_TYPE], "error") || json_bool(j, f[MEMBER_IS_ERROR], false);
        if (arena->failed)
                return error_nomem(err);
        *out = a;
        return 0;
}

/* ---- reading ---- */

/* extra_content.google.thought_signature becomes the hub's signature. If the extra has nothing
 * else, it has no more meaning. */
static void read_signature(struct reading *r, struct part *p, json_ref content)
{
        const struct json *j = r->j;
        json_ref google = json_get(j, content, "google");
        p->signature = reading_string(r, json_get(j, google, "thought_signature"));
        if (!p->signature.p || json_count(j, content) != 1 || json_count(j, google) != 1)
                return;
        for (struct extra *x = p->extras; x; x = x->next)
                x->idle |= str_is(x->key, "\"extra_content\"");
}

static void read_call(struct reading *r, json_ref entry)
{
        enum { ID, TYPE, FUNCTION, CUSTOM, COUNT };
        static const char *const keys[] = {"id", "type", "function", "custom", NULL};
        static const char *const function_keys[] = {"name", "arguments", NULL};
        static const char *const custom_keys[] = {"name", "input", NULL};
        const struct json *j = r->j;
        bool complete =
            is_there(j, json_get(j, entry, "result")) || is_there(j, json_get(j, entry, "error"));
        json_ref f[COUNT], g[2];
        struct part p = {.kind = PART_CALL, .raw = reading_raw(r, entry)};
        reading_members(r, entry, keys, f, &p.extras, false);
        bool custom = json_type(j, f[CUSTOM]) == JSON_OBJECT;
        json_ref in = custom ? f[CUSTOM] : f[FUNCTION];
        if (complete || json_type(j, in) != JSON_OBJECT) {
                reading_entry(r, entry, false);
                return;
        }
        reading_members(r, in, custom ? custom_keys : function_keys, g, &p.extras, true);
        if (custom || !json_is(j, f[TYPE], "function"))
                reading_keep(r, &p.extras, "type", f[TYPE], false);
        p.id = reading_string(r, f[ID]);
        p.name = reading_string(r, g[0]);
        p.arguments_text = json_type(j, g[1]) == JSON_STRING;
        p.arguments = p.arguments_text ? reading_string(r, g[1]) : reading_raw(r, g[1]);
        p.call = custom ? CALL_CUSTOM : CALL_FUNCTION;
        read_signature(r, &p, json_get(j, entry, "extra_content"));
        *reading_part(r, PART_CALL, entry) = p;
}

/* Notes figures of a result among the extras, where the writer finds them. */
static void note_extras(const struct message *m, struct part *p)
{
        for (const struct extra *x = m->extras; x; x = x->next) {
                bool string = x->value.n >= 2 && x->value.p[0] == '"';
                if (string && str_is(x->key, "\"serverName\""))
                        p->server = str_span(x->value.p + 1, x->value.n - 2);
                else if (!string && str_is(x->key, "\"exitCode\"") && !str_is(x->value, "null"))
                        p->exit_code = x->value;
        }
}

static void read_result(struct reading *r, json_ref *f, const int *at)
{
        const struct json *j = r->j;
        struct part *p = reading_part(r, PART_RESULT, JSON_NONE);
        p->id = reading_string(r, f[at[0]]);
        p->name = reading_string(r, f[at[1]]);
        p->error = json_type(j, f[at[2]]) == JSON_TRUE;
        if (!p->error)
                reading_keep(r, &r->m->extras, "isError", f[at[2]], false);
        p->duration = reading_raw(r, f[at[3]]);
        p->steps = reading_raw(r, f[at[4]]);
        p->invoked_at = reading_raw(r, f[at[5]]);
        p->ref = reading_raw(r, f[at[6]]);
        note_extras(r->m, p);
        p->ending = reading_ending(&r->m->extras);
        json_ref content = f[at[7]];
        p->output_raw = reading_raw(r, content);
        switch (json_type(j, content)) {
        case JSON_NOTHING:
                break;
        case JSON_STRING:
                p->output_kind = OUTPUT_TEXT;
                p->output = reading_string(r, content);
                break;
        case JSON_ARRAY:
                reading_children(r, p, content, openai_read_part);
                break;
        default:
                p->output_kind = OUTPUT_DATA;
                p->output = reading_raw(r, content);
        }
}

enum {
        R_ROLE,
        R_CONTENT,
        R_NAME,
        R_ID,
        R_CREATED,
        R_CALLS,
        R_REASONING,
        R_REFUSAL,
        R_FUNCTION,
        R_CALL_ID,
        R_TOOL_NAME,
        R_IS_ERROR,
        R_DURATION,
        R_STEPS,
        R_INVOKED,
        R_REF,
        R_COUNT
};

static void read_legacy_call(struct reading *r, json_ref v)
{
        static const char *const keys[] = {"name", "arguments", NULL};
        json_ref g[2];
        struct part p = {.kind = PART_CALL, .call = CALL_LEGACY, .raw = reading_raw(r, v)};
        reading_members(r, v, keys, g, &p.extras, true);
        p.name = reading_string(r, g[0]);
        p.arguments_text = json_type(r->j, g[1]) == JSON_STRING;
        p.arguments = p.arguments_text ? reading_string(r, g[1]) : reading_raw(r, g[1]);
        *reading_part(r, PART_CALL, v) = p;
}

/* Reads {"role":"function","name","content"}. The name is the tool's, not the speaker's. */
static void read_legacy_result(struct message *m)
{
        struct part *p = m->count ? &m->parts[0] : NULL;
        if (!p || !str_is(m->native_role, "function"))
                return;
        p->call = CALL_LEGACY;
        p->name = m->name;
        m->name = (struct str){0};
}

/* The number of parts of an assistant's message, if its calls hold no results. */
static size_t expected_parts(const struct json *j, const json_ref *f)
{
        bool list = json_type(j, f[R_CONTENT]) == JSON_ARRAY;
        size_t said = list ? json_count(j, f[R_CONTENT]) : is_there(j, f[R_CONTENT]);
        size_t calls = json_type(j, f[R_CALLS]) == JSON_ARRAY ? json_count(j, f[R_CALLS]) : 0;
        return said + calls + is_there(j, f[R_REASONING]) + is_there(j, f[R_REFUSAL]) +
               is_there(j, f[R_FUNCTION]);
}

static void read_assistant(struct reading *r, json_ref *f)
{
        const struct json *j = r->j;
        r->expected = expected_parts(j, f);
        if (json_type(j, f[R_REASONING]) == JSON_STRING)
                reading_part(r, PART_THINKING, JSON_NONE)->text = reading_string(r, f[R_REASONING]);
        else
                reading_keep(r, &r->m->extras, "reasoning_content", f[R_REASONING], false);
        openai_read_content(r, f[R_CONTENT]);
        if (json_type(j, f[R_REFUSAL]) == JSON_STRING)
                reading_part(r, PART_REFUSAL, JSON_NONE)->text = reading_string(r, f[R_REFUSAL]);
        else
                reading_keep(r, &r->m->extras, "refusal", f[R_REFUSAL], false);
        reading_idle(r->m->extras, "refusal", "null");
        if (is_legacy_call(j, f[R_FUNCTION]))
                read_legacy_call(r, f[R_FUNCTION]);
        else
                reading_keep(r, &r->m->extras, "function_call", f[R_FUNCTION], false);
        reading_idle(r->m->extras, "function_call", "null");
        if (json_type(j, f[R_CALLS]) != JSON_ARRAY || !json_count(j, f[R_CALLS])) {
                reading_keep(r, &r->m->extras, "tool_calls", f[R_CALLS], false);
                reading_idle(r->m->extras, "tool_calls", "null");
                reading_idle(r->m->extras, "tool_calls", "[]");
                return;
        }
        json_ref list = f[R_CALLS];
        for (json_ref e = json_child(j, list); e != JSON_NONE; e = json_next(j, list, e))
                read_call(r, e);
}

bool openai_is_own_token(struct str token)
{
        return members_has(members_find_name(str_span(token.p + 1, token.n - 2)), MEMBER_NOT_SENT);
}

bool openai_is_own(const struct json *j, json_ref key)
{
        return members_has(members_find(j, key), MEMBER_NOT_SENT);
}

static bool has_own_fields(const struct message *m)
{
        if (m->id.p || m->created_at.p)
                return true;
        for (const struct extra *x = m->extras; x; x = x->next)
                if (openai_is_own_token(x->key))
                        return true;
        const struct part *p = m->role == ROLE_TOOL && m->count ? &m->parts[0] : NULL;
        bool named = p && p->name.p && p->call != CALL_LEGACY;
        return p && (named || p->error || p->ending || p->duration.p || p->steps.p ||
                        p->invoked_at.p || p->ref.p);
}

static int openai_read(const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        static const char *const all[] = {"role", "content", "name", "id", "createdAt",
            "tool_calls", "reasoning_content", "refusal", "function_call", "tool_call_id",
            "toolName", "isError", "duration", "steps", "invokedAt", "ref", NULL};
        static const int result[] = {
            R_CALL_ID, R_TOOL_NAME, R_IS_ERROR, R_DURATION, R_STEPS, R_INVOKED, R_REF, R_CONTENT};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[R_COUNT];
        reading_members(&r, msg, all, f, &m->extras, false);
        m->role = json_is(j, f[R_ROLE], "function") ? ROLE_TOOL : openai_role(j, f[R_ROLE]);
        m->native_role = reading_string(&r, f[R_ROLE]);
        static const int strings[] = {R_NAME, R_ID, R_CREATED};
        struct str *to[] = {&m->name, &m->id, &m->created_at};
        for (size_t i = 0; i < 3; i++) {
                *to[i] = reading_string_or_keep(&r, &m->extras, all[strings[i]], f[strings[i]]);
        }
        int from = R_CALLS, until = R_COUNT;
        if (m->role == ROLE_ASSISTANT) {
                read_assistant(&r, f);
                from = R_CALL_ID;
        } else if (m->role == ROLE_TOOL) {
                read_result(&r, f, result);
                until = R_CALL_ID;
                if (!m->parts || !m->parts[0].name.p)
                        reading_keep(&r, &m->extras, "toolName", f[R_TOOL_NAME], false);
                read_legacy_result(m);
        } else {
                openai_read_content(&r, f[R_CONTENT]);
        }
        for (int i = from; i < until; i++)
                reading_keep(&r, &m->extras, all[i], f[i], false);
        m->own_fields = has_own_fields(m);
        return arena->failed;
}

/* ---- the format ---- */

static int openai_detect(const struct json *j, json_ref msg)
{
        if (json_is(j, json_get(j, msg, "role"), "function"))
                return 95;
        if (openai_role(j, json_get(j, msg, "role")) == ROLE_NONE)
                return 0;
        if (json_get(j, msg, "tool_calls") != JSON_NONE ||
            json_get(j, msg, "function_call") != JSON_NONE ||
            json_get(j, msg, "tool_call_id") != JSON_NONE)
                return 95;
        return openai_detect_content(j, json_get(j, msg, "content"));
}

const struct format format_openai = {
    .name = "openai",
    .flags = FORMAT_PROVIDER | FORMAT_USER_MEDIA | FORMAT_TEXT_RESULTS | FORMAT_TEXT_ARGUMENTS |
             FORMAT_REF_MEMBER | FORMAT_MEMBERS,
    .kinds = FORMAT_KIND(CALL_CUSTOM),
    .describe = openai_describe,
    .read = openai_read,
    .write = openai_write,
    .detect = openai_detect,
    .ready = openai_ready,
};
