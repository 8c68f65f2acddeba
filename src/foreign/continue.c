/*
 * continue.c - Continue: a document for each session, without ids and times. The state of a call is
 * stored beside the message that makes the call, and holds the result.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"

static const struct foreign_place PLACES[] = {
    {"CONTINUE_GLOBAL_DIR", "sessions", ".continue/sessions"},
    {NULL, NULL, NULL},
};

static bool continue_is(const struct foreign_probe *p)
{
        return json_get(p->whole, 0, "sessionId") != JSON_NONE &&
               json_type(p->whole, json_get(p->whole, 0, "history")) == JSON_ARRAY;
}

static void add_content(struct made *m, const struct json *j, json_ref content)
{
        made_text(m, j, content);
        bool list = json_type(j, content) == JSON_ARRAY;
        for (json_ref p = list ? json_child(j, content) : JSON_NONE; p != JSON_NONE;
             p = json_next(j, content, p))
                made_text(m, j, json_get(j, p, "text"));
}

static int put_state(struct foreign *t, json_ref state)
{
        const struct json *j = &t->j;
        json_ref status = json_get(j, state, "status"), output = json_get(j, state, "output");
        json_ref call = json_get(j, json_get(j, state, "toolCall"), "function");
        struct made_result r = made_result_of(foreign_text(t, j, json_get(j, state, "toolCallId")),
            foreign_text(t, j, json_get(j, call, "name")));
        struct made text;
        if (json_type(j, output) != JSON_ARRAY && !json_is(j, status, "errored") &&
            !json_is(j, status, "canceled"))
                return 0; /* there is no result yet */
        made_init(&text, "tool");
        for (json_ref p = json_child(j, output); p != JSON_NONE; p = json_next(j, output, p))
                made_text(&text, j, json_get(j, p, "content"));
        r.text = buf_str(&text.text);
        r.error = json_is(j, status, "errored") || json_is(j, status, "canceled");
        r.has_exit =
            made_find_exit(r.text.n > 300 ? str_span(r.text.p, 300) : r.text, &r.exit_code);
        r.error = r.error || (r.has_exit && r.exit_code != 0);
        int rc = made_put_result(t, &r, STR(""), STR(""), json_raw(j, state));
        made_release(&text);
        return rc;
}

static int take_step(struct foreign *t, json_ref step)
{
        const struct json *j = &t->j;
        json_ref message = json_get(j, step, "message"), role = json_get(j, message, "role");
        json_ref calls = json_get(j, message, "toolCalls"),
                 states = json_get(j, step, "toolCallStates");
        int rc = 0;
        if (json_is(j, role, "tool")) {
                struct made_result r =
                    made_result_of(foreign_text(t, j, json_get(j, message, "toolCallId")), STR(""));
                r.text = foreign_text(t, j, json_get(j, message, "content"));
                return made_put_result(t, &r, STR(""), STR(""), json_raw(j, message));
        }
        struct made m;
        made_init(&m, json_is(j, role, "assistant") ? "assistant"
                      : json_is(j, role, "system")  ? "system"
                                                    : "user");
        add_content(&m, j, json_get(j, message, "content"));
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c)) {
                json_ref f = json_get(j, c, "function");
                made_call(&m, foreign_text(t, j, json_get(j, c, "id")),
                    foreign_text(t, j, json_get(j, f, "name")), j, json_get(j, f, "arguments"));
        }
        json_ref model = json_get(j, json_get(j, message, "usage"), "model");
        foreign_learn(t, &t->session.model, j, model);
        rc = made_put(&m, t, STR(""), STR(""), json_raw(j, message));
        made_release(&m);
        for (json_ref s = json_child(j, states); rc == 0 && s != JSON_NONE;
             s = json_next(j, states, s))
                rc = put_state(t, s);
        return rc;
}

static int continue_read(struct foreign *t)
{
        const struct json *j = &t->j;
        json_ref history = json_get(j, 0, "history"), title = json_get(j, 0, "title");
        t->session.id = STR("");
        foreign_learn(t, &t->session.id, j, json_get(j, 0, "sessionId"));
        if (!json_is(j, title, "Untitled Session"))
                foreign_learn(t, &t->session.title, j, title);
        foreign_learn(t, &t->session.cwd, j, json_get(j, 0, "workspaceDirectory"));
        int rc = t->sink.begin(t->sink.ctx, &t->session);
        for (json_ref s = json_child(j, history); rc == 0 && s != JSON_NONE;
             s = json_next(j, history, s)) {
                if (json_type(j, json_get(j, s, "message")) == JSON_OBJECT)
                        rc = take_step(t, s);
                else
                        rc = foreign_other(t, STR(""), STR(""), json_raw(j, s));
        }
        return rc;
}

const struct foreign_kind foreign_continue = {
    .name = "continue",
    .shape = FOREIGN_DOCUMENT,
    .places = PLACES,
    .is = continue_is,
    .read = continue_read,
};
