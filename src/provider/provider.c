/*
 * provider.c - the table of providers.
 */
#include "provider/provider.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"

/* The first one is used if none is named. */
static const struct provider *const table[] = {
    &provider_openai,
    &provider_responses,
    &provider_anthropic,
    &provider_script,
};

#define PROVIDER_COUNT (sizeof table / sizeof *table)

const struct provider *provider_at(size_t i)
{
        return i < PROVIDER_COUNT ? table[i] : NULL;
}

static int refuse(const char *name, struct steno_error *err)
{
        struct buf names;
        buf_init(&names, 4 * KIB);
        for (size_t i = 0; i < PROVIDER_COUNT; i++)
                buf_printf(&names, "%s%s",
                    i == 0                   ? ""
                    : i + 1 < PROVIDER_COUNT ? ", "
                                             : " or ",
                    table[i]->name);
        const char *list = buf_cstr(&names);
        error_set(err, STENO_EINVAL, "unknown provider \"%.40s\": use %s", name, list ? list : "");
        buf_release(&names);
        return STENO_EINVAL;
}

int provider_find(const char *name, const struct provider **out, struct steno_error *err)
{
        for (size_t i = 0; i < PROVIDER_COUNT; i++)
                if (!name || strcmp(name, table[i]->name) == 0) {
                        *out = table[i];
                        return 0;
                }
        return refuse(name, err);
}

/* ---- parameters ---- */

/* Parameters that the loop sets itself. "functions" is the older name of "tools". */
static const char *const taken[] = {"model", "messages", "input", "contents", "system",
    "instructions", "conversation", "previous_response_id", "thread", "tools", "functions",
    "stream", "stream_options"};

static const char *find_taken(const struct json *j, json_ref key)
{
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
                if (json_is(j, key, taken[i]))
                        return taken[i];
        return NULL;
}

bool provider_param_taken(const struct json *j, json_ref key)
{
        return find_taken(j, key) != NULL;
}

const char *provider_params_taken(struct str params)
{
        struct json j;
        const char *found = NULL;
        json_init(&j);
        if (json_parse(&j, params.p, params.n, NULL, NULL) == 0)
                for (json_ref k = json_child(&j, 0); k != JSON_NONE && !found;
                     k = json_next_key(&j, 0, k))
                        found = find_taken(&j, k);
        json_release(&j);
        return found;
}
