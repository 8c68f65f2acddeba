/*
 * openai.c - chat completions `messages[]`, with Steno's own fields (model.md) on the way in.
 *
 * An entry of tool_calls that carries its own result or error is complete: it stands among the
 * calls and among the answers.
 */
#include "format/format.h"

#include "base/error.h"
#include "format/describe.h"
#include "model/token.h"

/* The members that mean something to `describe`, found in one walk. Where a key stands twice the
 * last one counts. */
enum field {
        F_ROLE,
        F_ID,
        F_TOOL_CALLS,
        F_TOOL_CALL_ID,
        F_MODE,
        F_RUN_ID,
        F_PART_TYPE,
        F_IS_ERROR,
        F_INCLUDE,
        F_REF,
        F_OWN, /* the rest of Steno's own: only that they are there counts */
        F_COUNT,
};

static const struct {
        struct str key;
        enum field field;
        bool own;
} fields[] = {
    {STR("role"), F_ROLE, false},
    {STR("tool_calls"), F_TOOL_CALLS, false},
    {STR("tool_call_id"), F_TOOL_CALL_ID, false},
    {STR("id"), F_ID, true},
    {STR("mode"), F_MODE, true},
    {STR("runId"), F_RUN_ID, true},
    {STR("partType"), F_PART_TYPE, true},
    {STR("isError"), F_IS_ERROR, true},
    {STR("includeInContext"), F_INCLUDE, true},
    {STR("ref"), F_REF, true},
    {STR("createdAt"), F_OWN, true},
    {STR("toolName"), F_OWN, true},
    {STR("serverName"), F_OWN, true},
    {STR("duration"), F_OWN, true},
    {STR("steps"), F_OWN, true},
    {STR("invokedAt"), F_OWN, true},
    {STR("error"), F_OWN, true},
    {STR("agentId"), F_OWN, true},
    {STR("workflowId"), F_OWN, true},
    {STR("fullOutputPath"), F_OWN, true},
};

static void find_fields(const struct json *j, json_ref msg, json_ref found[F_COUNT], bool *own)
{
        for (size_t i = 0; i < F_COUNT; i++)
                found[i] = JSON_NONE;
        for (json_ref key = json_child(j, msg); key != JSON_NONE;
             key = json_next_key(j, msg, key)) {
                for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
                        if (!json_is_str(j, key, fields[i].key))
                                continue;
                        found[fields[i].field] = json_value(j, key);
                        *own |= fields[i].own;
                        break;
                }
        }
}

static bool is_there(const struct json *j, json_ref v)
{
        enum json_type t = json_type(j, v);
        return t != JSON_NOTHING && t != JSON_NULL;
}

static int describe_entry(struct describe *d, json_ref entry)
{
        const struct json *j = d->j;
        if (json_type(j, entry) != JSON_OBJECT)
                return describe_refuse(d, "a tool_calls entry is not an object");
        json_ref id = json_get(j, entry, "id");
        int rc = describe_call(d, id, "the id of a tool_calls entry");
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
        return describe_answer(d, id, "the id of a tool_calls entry");
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

static int openai_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {
            "system", "developer", "user", "assistant", "tool", NULL};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        if (json_type(j, msg) != JSON_OBJECT)
                return describe_refuse(&d, "a message is not an object");
        json_ref f[F_COUNT];
        find_fields(j, msg, f, &a.own_fields);
        int rc = describe_role(&d, f[F_ROLE], roles, NULL);
        if (!rc)
                rc = describe_id(&d, f[F_ID]);
        if (!rc && str_is(a.role, "assistant"))
                rc = describe_calls(&d, f[F_TOOL_CALLS]);
        if (!rc && str_is(a.role, "tool"))
                rc = describe_answer(&d, f[F_TOOL_CALL_ID], "tool_call_id");
        if (rc)
                return rc;
        a.mode = token_text(j, f[F_MODE], arena);
        a.run = token_text(j, f[F_RUN_ID], arena);
        json_ref ref = f[F_REF];
        a.ref =
            token_text(j, json_type(j, ref) == JSON_OBJECT ? json_get(j, ref, "id") : ref, arena);
        a.off_context = json_type(j, f[F_INCLUDE]) == JSON_FALSE;
        a.error = json_is(j, f[F_PART_TYPE], "error") || json_bool(j, f[F_IS_ERROR], false);
        if (arena->failed)
                return error_nomem(err);
        *out = a;
        return 0;
}

const struct format format_openai = {
    .name = "openai",
    .describe = openai_describe,
};
