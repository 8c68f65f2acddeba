/* acontext_check.c - see acontext_check.h */
#include "routes/acontext/acontext_check.h"

#include <string.h>

static bool is_one_of(const struct json *j, json_ref v, const char *const *words)
{
        for (; *words; words++)
                if (json_is(j, v, *words))
                        return true;
        return false;
}

static bool is_there(const struct json *j, json_ref v)
{
        return v != JSON_NONE && json_type(j, v) != JSON_NULL;
}

/* A text, or a list with something in it. */
static bool has_content(const struct json *j, json_ref v)
{
        return json_type(j, v) == JSON_STRING ||
               (json_type(j, v) == JSON_ARRAY && json_count(j, v) > 0);
}

static const char *check_openai(const struct json *j, json_ref m)
{
        static const char *const ROLES[] = {
            "user", "assistant", "system", "developer", "tool", "function", NULL};
        static const char *const SPEAKERS[] = {"user", "system", "developer", NULL};
        json_ref role = json_get(j, m, "role");
        json_ref content = json_get(j, m, "content");
        if (!is_one_of(j, role, ROLES))
                return "role must be user, assistant, system, developer, tool or function";
        if (is_one_of(j, role, SPEAKERS) && !has_content(j, content))
                return "a message of this role needs content";
        if (json_is(j, role, "tool") && json_type(j, json_get(j, m, "tool_call_id")) != JSON_STRING)
                return "a tool message needs its tool_call_id";
        if (json_is(j, role, "assistant") && !has_content(j, content) &&
            !is_there(j, json_get(j, m, "tool_calls")) &&
            !is_there(j, json_get(j, m, "function_call")))
                return "an assistant message needs content or tool calls";
        return NULL;
}

static const char *check_anthropic(const struct json *j, json_ref m)
{
        static const char *const ROLES[] = {"user", "assistant", NULL};
        if (!is_one_of(j, json_get(j, m, "role"), ROLES))
                return "role must be user or assistant";
        return has_content(j, json_get(j, m, "content")) ? NULL : "a message needs content";
}

static const char *check_gemini(const struct json *j, json_ref m)
{
        static const char *const ROLES[] = {"user", "model", NULL};
        json_ref parts = json_get(j, m, "parts");
        if (!is_one_of(j, json_get(j, m, "role"), ROLES))
                return "role must be user or model";
        return json_type(j, parts) == JSON_ARRAY && json_count(j, parts) ? NULL
                                                                         : "a message needs parts";
}

static const char *check_part(const struct json *j, json_ref p)
{
        json_ref type = json_get(j, p, "type");
        json_ref text = json_get(j, p, "text");
        json_ref meta = json_get(j, p, "meta");
        if (json_type(j, p) != JSON_OBJECT || json_type(j, type) != JSON_STRING)
                return "a part needs a type";
        if ((json_is(j, type, "text") || json_is(j, type, "thinking")) &&
            (json_type(j, text) != JSON_STRING || json_inner(j, text).n == 0))
                return "a text part needs text";
        if (json_is(j, type, "tool-call") && (!is_there(j, json_get(j, meta, "name")) ||
                                                 !is_there(j, json_get(j, meta, "arguments"))))
                return "a tool-call part needs meta.name and meta.arguments";
        if (json_is(j, type, "tool-result") && !is_there(j, json_get(j, meta, "tool_call_id")))
                return "a tool-result part needs meta.tool_call_id";
        if (json_is(j, type, "data") && !is_there(j, json_get(j, meta, "data_type")))
                return "a data part needs meta.data_type";
        return NULL;
}

static const char *check_acontext(const struct json *j, json_ref m)
{
        static const char *const ROLES[] = {"user", "assistant", NULL};
        json_ref parts = json_get(j, m, "parts");
        if (!is_one_of(j, json_get(j, m, "role"), ROLES))
                return "role must be user or assistant";
        if (json_type(j, parts) != JSON_ARRAY || json_count(j, parts) == 0)
                return "a message needs parts";
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                const char *why = check_part(j, p);
                if (why)
                        return why;
        }
        return NULL;
}

const char *acontext_check(const struct json *j, json_ref blob, const char *format)
{
        static const struct {
                const char *format;
                const char *(*check)(const struct json *j, json_ref m);
        } CHECKS[] = {{"openai", check_openai}, {"anthropic", check_anthropic},
            {"gemini", check_gemini}, {"acontext", check_acontext}};
        if (json_type(j, blob) != JSON_OBJECT)
                return "blob must be an object";
        for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++)
                if (strcmp(format, CHECKS[i].format) == 0)
                        return CHECKS[i].check(j, blob);
        return NULL;
}
