/*
 * gemini_cli.c - Gemini CLI: lines, each a message or an edit of the list of messages; before that,
 * one JSON document.
 *
 * The tool writes a message twice under the same id, the second time with its calls and their
 * results. It writes the results again as a message of the user. After a resume it writes
 * everything a third time, with other times and with the calls moved. These repeated entries are
 * weak: an id that is known already keeps its first version.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"

#include <string.h>

#include "base/error.h"

static const struct foreign_place PLACES[] = {
    {"GEMINI_CLI_HOME", ".gemini/tmp", ".gemini/tmp"},
    {NULL, NULL, NULL},
};

static bool gemini_is(const struct foreign_probe *p)
{
        const struct json *j = p->first;
        return json_get(j, 0, "sessionId") != JSON_NONE &&
               json_get(j, 0, "projectHash") != JSON_NONE &&
               json_get(j, 0, "messages") == JSON_NONE;
}

static bool gemini_old_is(const struct foreign_probe *p)
{
        const struct json *j = p->whole;
        json_ref messages = json_get(j, 0, "messages");
        return json_get(j, 0, "sessionId") != JSON_NONE &&
               json_get(j, 0, "projectHash") != JSON_NONE && json_type(j, messages) == JSON_ARRAY;
}

static int identify(struct foreign *t, const struct json *j)
{
        t->session.id = STR("");
        foreign_learn(t, &t->session.id, j, json_get(j, 0, "sessionId"));
        if (!json_is(j, json_get(j, 0, "kind"), "subagent"))
                return 0;
        /* The path is chats/<parent>/<agent>.jsonl. */
        const char *slash = strrchr(t->path, '/');
        const char *start = slash;
        while (start && start > t->path && start[-1] != '/')
                start--;
        if (slash)
                t->session.parent = str_span(start, (size_t)(slash - start));
        t->session.origin = "subagent";
        return 0;
}

static int gemini_identify(struct foreign *t, const struct foreign_probe *p)
{
        return identify(t, p->first);
}

static int gemini_old_identify(struct foreign *t, const struct foreign_probe *p)
{
        return identify(t, p->whole);
}

/* ---- results ---- */

/* Reads the file with the whole output, which is below tool-outputs/ beside chats/. */
static bool find_whole(struct foreign *t, struct str said, struct buf *out)
{
        static const char SEE[] = "For full output see: ";
        unsigned up = t->session.origin ? 2 : 1;
        const char *at = said.n > sizeof SEE ? memmem(said.p, said.n, SEE, sizeof SEE - 1) : NULL;
        if (!at)
                return false;
        at += sizeof SEE - 1;
        size_t n = 0;
        while (at + n < said.p + said.n && at[n] != '\n')
                n++;
        return foreign_side_named(t, up, "/tool-outputs/", str_span(at, n), out);
}

static int put_result(
    struct foreign *t, json_ref response, json_ref call, struct str at, bool weak, struct str entry)
{
        const struct json *j = &t->j;
        json_ref answer = json_get(j, response, "response");
        json_ref error = json_get(j, answer, "error"), output = json_get(j, answer, "output");
        json_ref display = json_get(j, call, "resultDisplay");
        json_ref id = json_get(j, response, "id");
        if (id == JSON_NONE)
                id = json_get(j, call, "id");
        struct made_result r = made_result_of(
            foreign_text(t, j, id), foreign_text(t, j, json_get(j, response, "name")));
        buf_clear(&t->a);
        buf_clear(&t->b);
        if (!json_string(j, output != JSON_NONE ? output : error, &t->a, NULL))
                buf_put_str(&t->a, json_raw(j, answer));
        r.text = buf_str(&t->a);
        r.weak = weak;
        r.error = error != JSON_NONE || json_is(j, json_get(j, call, "status"), "error");
        r.has_exit = made_find_exit(r.text, &r.exit_code);
        r.error = r.error || (r.has_exit && r.exit_code != 0);
        if (find_whole(t, r.text, &t->b) ||
            (json_inner(j, display).n > r.text.n && json_string(j, display, &t->b, NULL))) {
                r.seen = r.text;
                r.text = buf_str(&t->b);
        }
        return made_put_result(t, &r, foreign_join(t, r.call, ":result"), at, entry);
}

static int put_results(struct foreign *t, json_ref calls, struct str at)
{
        const struct json *j = &t->j;
        int rc = 0;
        for (json_ref c = json_child(j, calls); rc == 0 && c != JSON_NONE;
             c = json_next(j, calls, c)) {
                json_ref results = json_get(j, c, "result");
                json_ref when = json_get(j, c, "timestamp");
                json_ref first = json_get(j, json_child(j, results), "functionResponse");
                if (first != JSON_NONE)
                        rc = put_result(t, first, c,
                            json_inner(j, when).n ? json_inner(j, when) : at, false,
                            json_raw(j, c));
        }
        return rc;
}

/* ---- messages ---- */

static void add_parts(struct foreign *t, struct made *m, json_ref content)
{
        const struct json *j = &t->j;
        made_text(m, j, content);
        bool list = json_type(j, content) == JSON_ARRAY;
        for (json_ref p = list ? json_child(j, content) : JSON_NONE; p != JSON_NONE;
             p = json_next(j, content, p)) {
                json_ref call = json_get(j, p, "functionCall");
                if (call != JSON_NONE)
                        made_call(m, foreign_text(t, j, json_get(j, call, "id")),
                            foreign_text(t, j, json_get(j, call, "name")), j,
                            json_get(j, call, "args"));
                else if (json_bool(j, json_get(j, p, "thought"), false))
                        made_thinking(m, j, json_get(j, p, "text"));
                else
                        made_text(m, j, json_get(j, p, "text"));
        }
}

static void add_thoughts(struct made *m, const struct json *j, json_ref thoughts)
{
        for (json_ref x = json_child(j, thoughts); x != JSON_NONE; x = json_next(j, thoughts, x)) {
                made_thinking(m, j, json_get(j, x, "subject"));
                made_thinking(m, j, json_get(j, x, "description"));
        }
}

/* Writes the message without its calls, because calls are kept with their results. */
static int entry_of(struct foreign *t, json_ref message, struct buf *out)
{
        static const char *const CALLS[] = {"toolCalls", NULL};
        struct json_edits e;
        json_edits_init(&e);
        json_edit_remove_members(&e, &t->j, message, CALLS);
        int rc = json_edits_apply(&e, &t->j, message, out);
        json_edits_release(&e);
        return rc ? error_nomem(t->err) : 0;
}

static int take_model(struct foreign *t, json_ref message, struct str at, bool weak)
{
        const struct json *j = &t->j;
        json_ref calls = json_get(j, message, "toolCalls");
        struct made m;
        struct buf entry;
        made_init(&m, "assistant");
        buf_init(&entry, 0);
        add_thoughts(&m, j, json_get(j, message, "thoughts"));
        add_parts(t, &m, json_get(j, message, "content"));
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c))
                made_call(&m, foreign_text(t, j, json_get(j, c, "id")),
                    foreign_text(t, j, json_get(j, c, "name")), j, json_get(j, c, "args"));
        foreign_learn(t, &t->session.model, j, json_get(j, message, "model"));
        m.key = json_raw(j, message);
        m.weak = weak;
        int rc = entry_of(t, message, &entry);
        if (rc == 0)
                rc = made_put(
                    &m, t, foreign_text(t, j, json_get(j, message, "id")), at, buf_str(&entry));
        made_release(&m);
        buf_release(&entry);
        return rc ? rc : put_results(t, calls, at);
}

static int take_user(struct foreign *t, json_ref message, struct str at, bool weak)
{
        const struct json *j = &t->j;
        json_ref content = json_get(j, message, "content");
        bool list = json_type(j, content) == JSON_ARRAY, results = false;
        int rc = 0;
        for (json_ref p = list ? json_child(j, content) : JSON_NONE; rc == 0 && p != JSON_NONE;
             p = json_next(j, content, p)) {
                json_ref response = json_get(j, p, "functionResponse");
                if (response == JSON_NONE)
                        continue;
                results = true;
                rc = put_result(t, response, JSON_NONE, at, true, json_raw(j, p));
        }
        if (rc || results)
                return rc;
        struct made m;
        made_init(&m, "user");
        add_parts(t, &m, content);
        m.weak = weak;
        rc = made_put(
            &m, t, foreign_text(t, j, json_get(j, message, "id")), at, json_raw(j, message));
        made_release(&m);
        return rc;
}

static int take_message(struct foreign *t, json_ref message, bool weak)
{
        const struct json *j = &t->j;
        json_ref type = json_get(j, message, "type");
        struct str at = json_inner(j, json_get(j, message, "timestamp"));
        if (json_is(j, type, "gemini") || json_is(j, type, "model"))
                return take_model(t, message, at, weak);
        if (json_is(j, type, "user"))
                return take_user(t, message, at, weak);
        return foreign_other(
            t, foreign_text(t, j, json_get(j, message, "id")), at, json_raw(j, message));
}

static int take_messages(struct foreign *t, json_ref list, bool weak)
{
        int rc = 0;
        for (json_ref m = json_child(&t->j, list); rc == 0 && m != JSON_NONE;
             m = json_next(&t->j, list, m))
                rc = take_message(t, m, weak);
        return rc;
}

static int gemini_line(struct foreign *t)
{
        const struct json *j = &t->j;
        json_ref set = json_get(j, 0, "$set");
        if (set != JSON_NONE && json_get(j, set, "messages") != JSON_NONE)
                return take_messages(t, json_get(j, set, "messages"), true);
        if (set != JSON_NONE || json_get(j, 0, "projectHash") != JSON_NONE) {
                foreign_skip(t);
                return 0;
        }
        return take_message(t, 0, false);
}

static int gemini_old_read(struct foreign *t)
{
        int rc = t->sink.begin(t->sink.ctx, &t->session);
        return rc ? rc : take_messages(t, json_get(&t->j, 0, "messages"), false);
}

const struct foreign_kind foreign_gemini = {
    .name = "gemini",
    .shape = FOREIGN_LINES,
    .places = PLACES,
    .is = gemini_is,
    .identify = gemini_identify,
    .line = gemini_line,
};

const struct foreign_kind foreign_gemini_old = {
    .name = "gemini",
    .shape = FOREIGN_DOCUMENT,
    .is = gemini_old_is,
    .identify = gemini_old_identify,
    .read = gemini_old_read,
};
