/*
 * pi.c - Pi: lines of a session, each with an id and its parent.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"

#include <stdio.h>
#include <string.h>

static const struct foreign_place PLACES[] = {
    {"PI_CODING_AGENT_DIR", "sessions", ".pi/agent/sessions"},
    {NULL, NULL, NULL},
};

static bool pi_is(const struct foreign_probe *p)
{
        const struct json *j = p->first;
        return json_is(j, json_get(j, 0, "type"), "session") &&
               json_get(j, 0, "version") != JSON_NONE && json_get(j, 0, "id") != JSON_NONE;
}

static int pi_identify(struct foreign *t, const struct foreign_probe *p)
{
        const struct json *j = p->first;
        struct foreign_session *s = &t->session;
        s->id = STR("");
        foreign_learn(t, &s->id, j, json_get(j, 0, "id"));
        foreign_learn(t, &s->cwd, j, json_get(j, 0, "cwd"));
        foreign_learn(t, &s->parent, j, json_get(j, 0, "parentSession"));
        if (s->parent.n)
                s->origin = "fork";
        return 0;
}

/* Is this the name of a log that Pi writes, pi-bash-<hex>.log? */
static bool is_log(struct str name)
{
        if (!str_starts(name, "pi-bash-") || name.n < 13 || name.n > 80 ||
            memcmp(name.p + name.n - 4, ".log", 4) != 0)
                return false;
        for (size_t i = 8; i < name.n - 4; i++)
                if (!strchr("0123456789abcdef", name.p[i]))
                        return false;
        return true;
}

static bool find_whole(struct foreign *t, json_ref details, struct buf *out)
{
        char tail[100], name[96];
        struct str path = foreign_text(t, &t->j, json_get(&t->j, details, "fullOutputPath"));
        size_t n = 0;
        while (n < path.n && path.p[path.n - n - 1] != '/')
                n++;
        struct str base = str_span(path.p + path.n - n, n);
        if (!n || !is_log(base))
                return false;
        snprintf(name, sizeof name, "%.*s", (int)base.n, base.p);
        snprintf(tail, sizeof tail, "tmp/%.90s", name);
        return foreign_side(t, 4, str_of(tail), out) || foreign_temporary(t, name, out);
}

static int take_result(struct foreign *t, json_ref message, struct str id, struct str at)
{
        const struct json *j = &t->j;
        json_ref content = json_get(j, message, "content");
        struct made text;
        struct made_result r =
            made_result_of(foreign_text(t, j, json_get(j, message, "toolCallId")),
                foreign_text(t, j, json_get(j, message, "toolName")));
        made_init(&text, "tool");
        made_text(&text, j, content);
        bool list = json_type(j, content) == JSON_ARRAY;
        for (json_ref p = list ? json_child(j, content) : JSON_NONE; p != JSON_NONE;
             p = json_next(j, content, p))
                made_text(&text, j, json_get(j, p, "text"));
        r.text = buf_str(&text.text);
        r.error = json_bool(j, json_get(j, message, "isError"), false);
        struct str end = r.text.n > 80 ? str_span(r.text.p + r.text.n - 80, 80) : r.text;
        r.has_exit = r.error && made_find_exit(end, &r.exit_code);
        if (find_whole(t, json_get(j, message, "details"), &t->b)) {
                r.seen = r.text;
                r.text = buf_str(&t->b);
        }
        int rc = made_put_result(t, &r, id, at, t->raw);
        made_release(&text);
        return rc;
}

static int take_said(
    struct foreign *t, json_ref message, const char *role, struct str id, struct str at)
{
        const struct json *j = &t->j;
        json_ref content = json_get(j, message, "content");
        struct made m;
        made_init(&m, role);
        made_text(&m, j, content);
        bool list = json_type(j, content) == JSON_ARRAY;
        for (json_ref p = list ? json_child(j, content) : JSON_NONE; p != JSON_NONE;
             p = json_next(j, content, p)) {
                json_ref type = json_get(j, p, "type");
                if (json_is(j, type, "toolCall"))
                        made_call(&m, foreign_text(t, j, json_get(j, p, "id")),
                            foreign_text(t, j, json_get(j, p, "name")), j,
                            json_get(j, p, "arguments"));
                else if (json_is(j, type, "thinking"))
                        made_thinking(&m, j, json_get(j, p, "thinking"));
                else
                        made_text(&m, j, json_get(j, p, "text"));
        }
        if (json_is(j, json_get(j, message, "stopReason"), "error"))
                m.error = foreign_text(t, j, json_get(j, message, "errorMessage"));
        foreign_learn(t, &t->session.model, j, json_get(j, message, "model"));
        int rc = made_put(&m, t, id, at, t->raw);
        made_release(&m);
        return rc;
}

static int pi_line(struct foreign *t)
{
        static const char *const KNOWN[] = {
            "session", "model_change", "thinking_level_change", "label", "session_info", NULL};
        const struct json *j = &t->j;
        json_ref message = json_get(j, 0, "message"), role = json_get(j, message, "role");
        struct str at = json_inner(j, json_get(j, 0, "timestamp"));
        struct str id = foreign_text(t, j, json_get(j, 0, "id"));
        if (json_is(j, role, "toolResult"))
                return take_result(t, message, id, at);
        if (json_is(j, role, "user") || json_is(j, role, "assistant"))
                return take_said(
                    t, message, json_is(j, role, "user") ? "user" : "assistant", id, at);
        if (json_is(j, json_get(j, 0, "type"), "session_info"))
                foreign_learn(t, &t->session.title, j, json_get(j, 0, "name"));
        for (size_t i = 0; KNOWN[i]; i++) {
                if (json_is(j, json_get(j, 0, "type"), KNOWN[i])) {
                        foreign_skip(t);
                        return 0;
                }
        }
        return foreign_other(t, id, at, t->raw);
}

const struct foreign_kind foreign_pi = {
    .name = "pi",
    .shape = FOREIGN_LINES,
    .places = PLACES,
    .is = pi_is,
    .identify = pi_identify,
    .line = pi_line,
};
