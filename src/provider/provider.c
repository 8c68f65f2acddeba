/*
 * provider.c - the table of providers.
 */
#include "provider/provider.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"

/* The first is the one that is used when none is named. */
static const struct provider *const table[] = {
    &provider_openai,
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
