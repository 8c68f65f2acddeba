/*
 * projections.c - the table of projections. http/projection.h says what one is.
 */
#include "http/projection.h"

#include <string.h>

#include "routes/agui/agui.h"
#include "routes/own/own_events.h"
#include "routes/vercel/vercel.h"

static const struct projection *const PROJECTIONS[] = {
    &own_events_projection,
    &vercel_projection,
    &agui_projection,
    NULL,
};

const struct projection *const *projections_table(void)
{
        return PROJECTIONS;
}

const struct projection *projection_find(const char *name)
{
        if (!name || strcmp(name, "default") == 0)
                name = "";
        for (const struct projection *const *p = PROJECTIONS; *p; p++)
                if (strcmp((*p)->name, name) == 0)
                        return *p;
        return NULL;
}
