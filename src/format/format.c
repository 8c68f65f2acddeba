/* format.c - the table of formats; see format.h */
#include "format/format.h"

#include <string.h>

static const struct format *const table[] = {
    &format_openai,
};

const struct format *format_find(const char *name)
{
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
                if (name && strcmp(table[i]->name, name) == 0)
                        return table[i];
        return NULL;
}

const struct format *format_at(size_t i)
{
        return i < sizeof table / sizeof *table ? table[i] : NULL;
}
