/*
 * neovate.c - neovate: a file of lines, of which the tool rewrites the first one in place.
 */
#include "foreign/said.h"
#include "foreign/foreign_kinds.h"

#include <string.h>

static const struct foreign_place PLACES[] = {
    {NULL, "", ".neovate/projects"},
    {NULL, NULL, NULL},
};

static bool neovate_is(const struct foreign_probe *p)
{
        const struct json *j = p->first;
        json_ref type = json_get(j, 0, "type");
        return (json_is(j, type, "config") && json_get(j, 0, "sessionId") == JSON_NONE &&
                   strstr(p->path, "neovate")) ||
               (json_is(j, type, "config") && json_get(j, 0, "config") != JSON_NONE) ||
               (json_is(j, type, "message") && json_get(j, 0, "uuid") != JSON_NONE &&
                   json_get(j, 0, "role") != JSON_NONE);
}

static int neovate_line(struct foreign *t)
{
        const struct json *j = &t->j;
        struct str id = foreign_text(t, j, json_get(j, 0, "uuid"));
        struct str at = json_inner(j, json_get(j, 0, "timestamp"));
        if (json_is(j, json_get(j, 0, "type"), "config")) {
                foreign_skip(t);
                return 0;
        }
        foreign_learn(t, &t->session.model, j, json_get(j, 0, "model"));
        if (!json_is(j, json_get(j, 0, "type"), "message") ||
            json_type(j, json_get(j, 0, "role")) != JSON_STRING)
                return foreign_other(t, id, at, t->raw);
        struct said_message m = {.message = 0, .id = id, .at = at};
        return said_put(t, &m);
}

const struct foreign_kind foreign_neovate = {
    .name = "neovate",
    .shape = FOREIGN_LINES,
    .places = PLACES,
    .is = neovate_is,
    .line = neovate_line,
};
