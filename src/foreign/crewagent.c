/*
 * crewagent.c - CrewAgent: messages.json of a conversation, in the form of OpenAI's messages with
 * members of its own. Large results are files below the project's state folder.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"

#include <string.h>

#include "base/error.h"

static bool crewagent_is(const struct foreign_probe *p)
{
        const struct json *j = p->whole;
        json_ref first = json_child(j, 0);
        return json_type(j, 0) == JSON_ARRAY && strstr(p->path, "/conversations/") &&
               str_is(foreign_stem(p->path, NULL), "messages.json") &&
               json_get(j, first, "role") != JSON_NONE && json_get(j, first, "id") != JSON_NONE;
}

/* Reads the whole output of a result. "@state/logs/tool-results/<c>/<id>.json" is a file in
 * projects/<p>/state, two folders up. */
static bool find_whole(struct foreign *t, json_ref m, struct buf *out)
{
        static const char FULL[] = "[Full output: ";
        const struct json *j = &t->j;
        struct str path = foreign_text(t, j, json_get(j, m, "fullOutputPath"));
        struct str text = foreign_text(t, j, json_get(j, m, "content"));
        if (!path.n) {
                const char *at =
                    text.n > sizeof FULL ? memmem(text.p, text.n, FULL, sizeof FULL - 1) : NULL;
                const char *end = at ? memchr(at, ']', (size_t)(text.p + text.n - at)) : NULL;
                if (end)
                        path = str_span(at + sizeof FULL - 1, (size_t)(end - at) - sizeof FULL + 1);
        }
        if (!str_starts(path, "@state/"))
                return false;
        buf_clear(&t->b);
        buf_put(&t->b, path.p + 1, path.n - 1);
        return !t->b.failed && foreign_side(t, 2, buf_str(&t->b), out);
}

static int take_message(struct foreign *t, json_ref m)
{
        const struct json *j = &t->j;
        struct str id = foreign_text(t, j, json_get(j, m, "id"));
        struct str at = json_inner(j, json_get(j, m, "createdAt"));
        bool tool = json_is(j, json_get(j, m, "role"), "tool");
        if (json_type(j, json_get(j, m, "role")) != JSON_STRING)
                return foreign_other(t, id, at, json_raw(j, m));
        if (tool && find_whole(t, m, &t->a)) {
                struct made_result r =
                    made_result_of(foreign_text(t, j, json_get(j, m, "tool_call_id")),
                        foreign_text(t, j, json_get(j, m, "toolName")));
                r.text = buf_str(&t->a);
                r.seen = foreign_text(t, j, json_get(j, m, "content"));
                r.error = json_bool(j, json_get(j, m, "isError"), false);
                json_i64(j, json_get(j, m, "duration"), &r.duration);
                return made_put_result(t, &r, id, at, json_raw(j, m));
        }
        struct foreign_item item = {.id = id,
            .at = at,
            .format = "openai",
            .json = json_raw(j, m),
            .calls = json_count(j, json_get(j, m, "tool_calls")),
            .results = tool};
        return foreign_item(t, &item);
}

static int crewagent_read(struct foreign *t)
{
        const char *end = strrchr(t->path, '/');
        const char *start = end;
        while (start > t->path && start[-1] != '/')
                start--;
        t->session.id = str_span(start, (size_t)(end - start));
        int rc = t->sink.begin(t->sink.ctx, &t->session);
        for (json_ref m = json_child(&t->j, 0); rc == 0 && m != JSON_NONE;
             m = json_next(&t->j, 0, m))
                rc = take_message(t, m);
        return rc;
}

const struct foreign_kind foreign_crewagent = {
    .name = "crewagent",
    .shape = FOREIGN_DOCUMENT,
    .is = crewagent_is,
    .read = crewagent_read,
};
