/*
 * qwen.c - Qwen Code: a file of lines for each session.
 *
 * The `message` of a line is Gemini's, kept as it stands. The tool stores more about a result
 * beside the message (the exit code, files with the whole output). So the message of a result is
 * built anew from both.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"

#include <string.h>

static const struct foreign_place PLACES[] = {
    {"QWEN_HOME", "projects", ".qwen/projects"},
    {NULL, NULL, NULL},
};

static bool qwen_is(const struct foreign_probe *p)
{
        const struct json *j = p->first;
        json_ref message = json_get(j, 0, "message");
        return json_get(j, 0, "uuid") != JSON_NONE && json_get(j, 0, "sessionId") != JSON_NONE &&
               (json_get(j, message, "parts") != JSON_NONE ||
                   json_get(j, 0, "provenance") != JSON_NONE ||
                   json_get(j, 0, "systemPayload") != JSON_NONE);
}

/* The path is subagents/<session>/agent-<type>-<call>.jsonl. */
static int qwen_identify(struct foreign *t, const struct foreign_probe *p)
{
        const char *sub = strstr(p->path, "/subagents/");
        const char *end = sub ? strchr(sub + 11, '/') : NULL;
        if (!end)
                return 0;
        t->session.parent = str_span(sub + 11, (size_t)(end - sub) - 11);
        t->session.origin = "subagent";
        return 0;
}

static bool find_whole(struct foreign *t, json_ref display, struct str said, struct buf *out)
{
        static const char *const SAVED[] = {"saved to: ", "Full output saved to: "};
        const struct json *j = &t->j;
        json_ref files = json_get(j, display, "outputFiles");
        buf_clear(&t->b);
        json_string(j, json_child(j, files), &t->b, NULL);
        for (size_t i = 0; !t->b.n && i < sizeof SAVED / sizeof *SAVED; i++) {
                size_t n = strlen(SAVED[i]);
                const char *at = said.n > n ? memmem(said.p, said.n, SAVED[i], n) : NULL;
                for (at = at ? at + n : NULL; at && at < said.p + said.n && *at != '\n'; at++)
                        buf_putc(&t->b, *at);
        }
        return t->b.n && foreign_side_named(t, 3, "/tmp/", buf_str(&t->b), out);
}

static int take_result(struct foreign *t, json_ref response, struct str id, struct str at)
{
        const struct json *j = &t->j;
        json_ref extra = json_get(j, 0, "toolCallResult");
        json_ref display = json_get(j, extra, "resultDisplay");
        json_ref answer = json_get(j, response, "response");
        json_ref error = json_get(j, answer, "error"), output = json_get(j, answer, "output");
        struct made_result r = made_result_of(foreign_text(t, j, json_get(j, response, "id")),
            foreign_text(t, j, json_get(j, response, "name")));
        buf_clear(&t->a);
        if (!json_string(j, output != JSON_NONE ? output : error, &t->a, NULL))
                buf_put_str(&t->a, json_raw(j, answer));
        r.text = buf_str(&t->a);
        r.error = error != JSON_NONE || json_is(j, json_get(j, extra, "status"), "error");
        r.has_exit = json_i64(j, json_get(j, display, "exitCode"), &r.exit_code) ||
                     made_find_exit(r.text, &r.exit_code);
        r.error = r.error || (r.has_exit && r.exit_code != 0);
        buf_clear(&t->c);
        if (find_whole(t, display, r.text, &t->c)) {
                r.seen = r.text;
                r.text = buf_str(&t->c);
        } else if (json_type(j, display) == JSON_STRING && json_inner(j, display).n > t->a.n) {
                json_string(j, display, &t->c, NULL);
                r.seen = r.text;
                r.text = buf_str(&t->c);
        }
        return made_put_result(t, &r, id, at, t->raw);
}

static int take_message(struct foreign *t, struct str id, struct str at)
{
        const struct json *j = &t->j;
        json_ref message = json_get(j, 0, "message"), parts = json_get(j, message, "parts");
        struct foreign_item item = {
            .id = id, .at = at, .format = "gemini", .json = json_raw(j, message)};
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                item.calls += json_get(j, p, "functionCall") != JSON_NONE;
                item.results += json_get(j, p, "functionResponse") != JSON_NONE;
        }
        if (item.results == 1 && json_count(j, parts) == 1)
                return take_result(
                    t, json_get(j, json_child(j, parts), "functionResponse"), id, at);
        return foreign_item(t, &item);
}

static int qwen_line(struct foreign *t)
{
        const struct json *j = &t->j;
        struct foreign_session *s = &t->session;
        struct str at = json_inner(j, json_get(j, 0, "timestamp"));
        struct str id = foreign_text(t, j, json_get(j, 0, "uuid"));
        foreign_learn(t, &s->version, j, json_get(j, 0, "version"));
        foreign_learn(t, &s->cwd, j, json_get(j, 0, "cwd"));
        foreign_learn(t, &s->model, j, json_get(j, 0, "model"));
        if (json_type(j, json_get(j, json_get(j, 0, "message"), "parts")) == JSON_ARRAY)
                return take_message(t, id, at);
        if (json_is(j, json_get(j, 0, "type"), "system") &&
            !json_is(j, json_get(j, 0, "subtype"), "chat_compression")) {
                foreign_skip(t);
                return 0;
        }
        return foreign_other(t, id, at, t->raw);
}

const struct foreign_kind foreign_qwen = {
    .name = "qwen",
    .shape = FOREIGN_LINES,
    .places = PLACES,
    .is = qwen_is,
    .identify = qwen_identify,
    .line = qwen_line,
};
