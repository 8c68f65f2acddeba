/*
 * codex.c - Codex CLI: rollout-*.jsonl.
 *
 * A `response_item` is the model's input or output in the form of the Responses API; it is kept
 * unchanged. An `event_msg` repeats the same for the screen, with one exception: the event of a
 * command has more of the output, and the exit code. It comes before the result, or alone if the
 * tool was killed. So these events are held until their result comes. An event that is still held
 * at the end of the file is handed out as a result, and read again next time.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define HELD_MAX 64

struct held {
        char *id; /* the ids of the turn and of the call */
        char *call;
        char *at;
        char *output;
        char *entry;
        size_t output_n;
        int64_t exit_code;
        int64_t duration;
        bool has_exit;
        bool has_output;
};

struct codex {
        struct held held[HELD_MAX];
        size_t count;
};

static const struct foreign_place PLACES[] = {
    {"CODEX_HOME", "sessions", ".codex/sessions"},
    {"CODEX_HOME", "archived_sessions", ".codex/archived_sessions"},
    {NULL, NULL, NULL},
};

static bool codex_is(const struct foreign_probe *p)
{
        json_ref payload = json_get(p->first, 0, "payload");
        return json_is(p->first, json_get(p->first, 0, "type"), "session_meta") &&
               json_type(p->first, payload) == JSON_OBJECT;
}

static int codex_identify(struct foreign *t, const struct foreign_probe *p)
{
        const struct json *j = p->first;
        json_ref payload = json_get(j, 0, "payload");
        struct foreign_session *s = &t->session;
        struct str id = {0};
        foreign_learn(t, &id, j, json_get(j, payload, "id"));
        if (id.n)
                s->id = id;
        foreign_learn(t, &s->version, j, json_get(j, payload, "cli_version"));
        foreign_learn(t, &s->cwd, j, json_get(j, payload, "cwd"));
        foreign_learn(t, &s->parent, j, json_get(j, payload, "parent_thread_id"));
        s->origin = s->parent.n ? "subagent" : NULL;
        foreign_learn(t, &s->parent, j, json_get(j, payload, "forked_from_id"));
        if (s->parent.n && !s->origin)
                s->origin = "fork";
        s->cut =
            json_u64(j, json_get(j, payload, "forked_from_ordinal_exclusive"), &s->cut_ordinal);
        return 0;
}

/* ---- commands that wait for their result ---- */

static void held_free(struct held *h)
{
        free(h->id);
        free(h->call);
        free(h->at);
        free(h->output);
        free(h->entry);
}

static void drop_held(struct foreign *t, size_t i)
{
        struct codex *c = t->state;
        held_free(&c->held[i]);
        memmove(&c->held[i], &c->held[i + 1], (c->count - i - 1) * sizeof *c->held);
        c->count--;
        t->unsettled = c->count > 0;
}

static int put_held(
    struct foreign *t, const struct held *h, struct str seen, struct str at, struct str entry)
{
        struct made_result r = made_result_of(str_of(h->call), STR(""));
        r.text = h->has_output ? str_span(h->output, h->output_n) : seen;
        r.seen = seen;
        r.has_exit = h->has_exit;
        r.exit_code = h->exit_code;
        r.error = h->has_exit && h->exit_code != 0;
        r.duration = h->duration;
        return made_put_result(t, &r, str_of(h->id), at, entry);
}

static char *dup_str(struct str s)
{
        return strndup(s.p ? s.p : "", s.n);
}

static int hold(struct foreign *t, json_ref payload, json_ref item)
{
        struct codex *c = t->state;
        const struct json *j = &t->j;
        struct held h = {.duration = -1};
        struct buf out, id;
        int rc = 0;
        if (c->count == HELD_MAX) {
                rc = put_held(t, &c->held[0], (struct str){0}, str_of(c->held[0].at),
                    str_of(c->held[0].entry));
                drop_held(t, 0);
        }
        buf_init(&out, 0);
        buf_init(&id, 0);
        json_string(j, json_get(j, payload, "turn_id"), &id, NULL);
        buf_putc(&id, ':');
        json_string(j, json_get(j, item, "id"), &id, NULL);
        h.has_output = json_string(j, json_get(j, item, "aggregated_output"), &out, NULL);
        h.has_exit = json_i64(j, json_get(j, item, "exit_code"), &h.exit_code);
        int64_t from, to;
        if (json_i64(j, json_get(j, payload, "started_at_ms"), &from) &&
            json_i64(j, json_get(j, payload, "completed_at_ms"), &to) && to >= from)
                h.duration = to - from;
        h.call = json_dup_string(j, json_get(j, item, "id"));
        h.at = json_dup_string(j, json_get(j, 0, "timestamp"));
        if (!h.at)
                h.at = strdup("");
        h.entry = dup_str(t->raw);
        h.output_n = out.n;
        h.output = buf_take(&out, NULL);
        h.id = buf_take(&id, NULL);
        buf_release(&out);
        buf_release(&id);
        if (rc || !h.call || !h.at || !h.entry || !h.output || !h.id) {
                held_free(&h);
                return rc ? rc : error_nomem(t->err);
        }
        c->held[c->count++] = h;
        t->unsettled = true;
        return 0;
}

/* ---- lines ---- */

static int take_output(struct foreign *t, json_ref payload, struct str at)
{
        struct codex *c = t->state;
        const struct json *j = &t->j;
        json_ref output = json_get(j, payload, "output");
        buf_clear(&t->a);
        if (!json_string(j, output, &t->a, NULL) && output != JSON_NONE)
                buf_put_str(&t->a, json_raw(j, output));
        struct str seen = buf_str(&t->a);
        for (size_t i = 0; i < c->count; i++) {
                if (!json_is(j, json_get(j, payload, "call_id"), c->held[i].call))
                        continue;
                int rc =
                    put_held(t, &c->held[i], seen.p ? seen : STR(""), at, json_raw(j, payload));
                drop_held(t, i);
                return rc;
        }
        struct made_result r =
            made_result_of(foreign_text(t, j, json_get(j, payload, "call_id")), STR(""));
        r.text = seen;
        r.has_exit = made_find_exit(str_span(seen.p, seen.n < 400 ? seen.n : 400), &r.exit_code);
        r.error = r.has_exit && r.exit_code != 0;
        buf_clear(&t->b);
        json_string(j, json_get(j, payload, "id"), &t->b, NULL);
        return made_put_result(t, &r, buf_str(&t->b), at, json_raw(j, payload));
}

static int take_response(struct foreign *t, json_ref payload, struct str at)
{
        static const char *const CALLS[] = {"function_call", "custom_tool_call", "local_shell_call",
            "web_search_call", "tool_search_call", NULL};
        const struct json *j = &t->j;
        json_ref type = json_get(j, payload, "type");
        if (json_is(j, type, "function_call_output") || json_is(j, type, "custom_tool_call_output"))
                return take_output(t, payload, at);
        buf_clear(&t->b);
        json_string(j, json_get(j, payload, "id"), &t->b, NULL);
        struct foreign_item item = {
            .id = buf_str(&t->b), .at = at, .format = "responses", .json = json_raw(j, payload)};
        for (size_t i = 0; CALLS[i]; i++)
                item.calls += json_is(j, type, CALLS[i]);
        return foreign_item(t, &item);
}

static int take_event(struct foreign *t, json_ref payload, struct str at)
{
        const struct json *j = &t->j;
        json_ref item = json_get(j, payload, "item");
        json_ref error = json_get(j, payload, "error");
        if (json_is(j, json_get(j, item, "type"), "CommandExecution") &&
            json_inner(j, json_get(j, item, "id")).n)
                return hold(t, payload, item);
        if (json_is(j, json_get(j, payload, "type"), "task_complete") &&
            json_type(j, error) > JSON_NULL) {
                struct made m;
                made_init(&m, "assistant");
                json_ref text = json_get(j, error, "message");
                m.error = text == JSON_NONE ? json_raw(j, error) : foreign_text(t, j, text);
                int rc = made_put(&m, t, STR(""), at, t->raw);
                made_release(&m);
                return rc;
        }
        foreign_skip(t);
        return 0;
}

static int codex_line(struct foreign *t)
{
        static const char *const KNOWN[] = {
            "session_meta", "turn_context", "world_state", "token_usage_record", NULL};
        const struct json *j = &t->j;
        json_ref type = json_get(j, 0, "type"), payload = json_get(j, 0, "payload");
        struct str at = json_inner(j, json_get(j, 0, "timestamp"));
        if (json_is(j, type, "response_item"))
                return take_response(t, payload, at);
        if (json_is(j, type, "event_msg"))
                return take_event(t, payload, at);
        if (json_is(j, type, "session_meta")) {
                int rc = foreign_instructions(
                    t, at, j, json_get(j, json_get(j, payload, "base_instructions"), "text"));
                if (rc)
                        return rc;
        }
        if (json_is(j, type, "turn_context"))
                foreign_learn(t, &t->session.model, j, json_get(j, payload, "model"));
        for (size_t i = 0; KNOWN[i]; i++) {
                if (json_is(j, type, KNOWN[i])) {
                        foreign_skip(t);
                        return 0;
                }
        }
        return foreign_other(t, STR(""), at, t->raw);
}

static int codex_end(struct foreign *t)
{
        struct codex *c = t->state;
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < c->count; i++)
                rc = put_held(t, &c->held[i], (struct str){0}, str_of(c->held[i].at),
                    str_of(c->held[i].entry));
        return rc;
}

static void codex_release(struct foreign *t)
{
        struct codex *c = t->state;
        for (size_t i = 0; i < c->count; i++)
                held_free(&c->held[i]);
}

const struct foreign_kind foreign_codex = {
    .name = "codex",
    .shape = FOREIGN_LINES,
    .state_size = sizeof(struct codex),
    .places = PLACES,
    .is = codex_is,
    .identify = codex_identify,
    .line = codex_line,
    .end = codex_end,
    .release = codex_release,
};
