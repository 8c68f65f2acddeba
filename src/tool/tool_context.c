/*
 * tool_context.c - the context_* tools as a source of tools. They read stored outputs of this
 * conversation and nothing else. So they are public, and may run at the same time as any other
 * tool.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "tool/tool.h"

static int context_call(const struct tool *self, struct steno_tool_call *call,
    struct tool_result *result, struct steno_error *err)
{
        char *text = NULL;
        int rc = steno_context_call(
            call->conv, self->name, call->args.p, call->args.n, &text, &result->is_error, err);
        if (rc == 0)
                rc = tool_call_puts(call, text, err);
        steno_free(text);
        return rc;
}

/* Models may know the dotted names from elsewhere, so they can use them here. */
static const char *dotted(struct steno_tools *set, const char *name)
{
        char *alias = strdup(name);
        if (!alias)
                return NULL;
        char *bar = strchr(alias, '_');
        if (bar)
                *bar = '.';
        return toolset_own(set, alias, free, NULL) == 0 ? alias : NULL;
}

static const char *own(struct steno_tools *set, const struct json *j, json_ref r)
{
        char *z = json_dup_string(j, r);
        return z && toolset_own(set, z, free, NULL) == 0 ? z : NULL;
}

static int add_one(
    struct steno_tools *set, const struct json *j, json_ref function, struct steno_error *err)
{
        /* The tools read only the conversation of the call, also for a visitor. */
        struct tool tool = {.flags = TOOL_PARALLEL | TOOL_PUBLIC | TOOL_INLINE | TOOL_VISITORS,
            .call = context_call};
        tool.name = own(set, j, json_get(j, function, "name"));
        tool.description = own(set, j, json_get(j, function, "description"));
        const char *schema = toolset_strdup(set, json_raw(j, json_get(j, function, "parameters")));
        if (!tool.name || !tool.description || !schema)
                return error_nomem(err);
        tool.alias = dotted(set, tool.name);
        tool.schema = str_of(schema);
        if (toolset_find(set, str_of(tool.name)))
                return 0;
        return toolset_add(set, &tool, err);
}

int steno_tools_add_context(struct steno_tools *set, struct steno_error *err)
{
        char *json = NULL;
        struct json j;
        json_init(&j);
        int rc = steno_context_tools("openai", &json, err);
        if (rc == 0)
                rc = json_parse(&j, json, strlen(json), NULL, err);
        if (rc == 0)
                for (json_ref t = json_child(&j, 0); t != JSON_NONE && rc == 0;
                     t = json_next(&j, 0, t))
                        rc = add_one(set, &j, json_get(&j, t, "function"), err);
        json_release(&j);
        steno_free(json);
        return rc;
}
