/* said.c - see said.h */
#include "foreign/said.h"

#include <string.h>

#include "base/error.h"

static void put_line(struct buf *out, const struct json *j, json_ref v)
{
        if (json_type(j, v) != JSON_STRING || !json_inner(j, v).n)
                return;
        if (out->n && out->p[out->n - 1] != '\n')
                buf_putc(out, '\n');
        json_string(j, v, out, NULL);
}

void said_output(const struct json *j, json_ref content, struct buf *out, bool *failed)
{
        if (json_string(j, content, out, NULL))
                return;
        if (json_type(j, content) != JSON_ARRAY) {
                if (json_type(j, content) > JSON_NULL)
                        buf_put_str(out, json_raw(j, content));
                return;
        }
        for (json_ref e = json_child(j, content); e != JSON_NONE; e = json_next(j, content, e)) {
                json_ref text = json_get(j, e, "text"), result = json_get(j, e, "result");
                if (json_type(j, e) == JSON_STRING)
                        put_line(out, j, e);
                else if (json_type(j, text) == JSON_STRING)
                        put_line(out, j, text);
                else if (json_type(j, result) == JSON_STRING ||
                         json_type(j, json_get(j, e, "error")) == JSON_STRING) {
                        put_line(out, j, result);
                        if (!json_inner(j, result).n)
                                put_line(out, j, json_get(j, e, "error"));
                } else {
                        buf_put_str(out, json_raw(j, e));
                }
                if (json_type(j, json_get(j, e, "success")) == JSON_FALSE)
                        *failed = true;
        }
}

static json_ref either(const struct json *j, json_ref b, const char *one, const char *other)
{
        json_ref v = json_get(j, b, one);
        return v != JSON_NONE ? v : json_get(j, b, other);
}

static bool is_result(const struct json *j, json_ref b)
{
        json_ref type = json_get(j, b, "type");
        return json_is(j, type, "tool_result") || json_is(j, type, "tool-result");
}

static int put_result(struct foreign *t, const struct said_message *m, json_ref b, bool only)
{
        const struct json *j = &t->j;
        json_ref id = either(j, b, "tool_use_id", "toolCallId");
        json_ref result = either(j, b, "content", "result");
        if (id == JSON_NONE)
                id = json_get(j, b, "id");
        if (result == JSON_NONE)
                result = json_get(j, b, "output");
        struct made_result r = made_result_of(
            foreign_text(t, j, id), foreign_text(t, j, either(j, b, "name", "toolName")));
        r.error = json_bool(j, either(j, b, "is_error", "isError"), false) ||
                  json_bool(j, json_get(j, result, "isError"), false) ||
                  json_is(j, json_get(j, result, "type"), "error-text") ||
                  json_is(j, json_get(j, result, "type"), "error-json");
        if (json_get(j, result, "llmContent") != JSON_NONE)
                result = json_get(j, result, "llmContent");
        else if (json_get(j, result, "value") != JSON_NONE)
                result = json_get(j, result, "value");
        buf_clear(&t->a);
        said_output(j, result, &t->a, &r.error);
        r.text = buf_str(&t->a);
        r.has_exit =
            made_find_exit(r.text.n > 300 ? str_span(r.text.p, 300) : r.text, &r.exit_code);
        r.error = r.error || (r.has_exit && r.exit_code != 0);
        struct str own = m->id;
        if (!only && own.n) {
                own = foreign_join(t, own, ":");
                buf_clear(&t->b);
                buf_put_str(&t->b, own);
                buf_put_str(&t->b, r.call);
                own = buf_str(&t->b);
        }
        return made_put_result(t, &r, own, m->at, json_raw(j, only ? m->message : b));
}

static void add_block(struct foreign *t, struct made *to, const struct said_message *m, json_ref b)
{
        const struct json *j = &t->j;
        json_ref type = json_get(j, b, "type");
        if (json_is(j, type, "tool_use") || json_is(j, type, "tool-call")) {
                struct str id = foreign_text(t, j, either(j, b, "id", "toolCallId"));
                struct str name = foreign_text(t, j, either(j, b, "name", "toolName"));
                struct str args = m->arguments ? m->arguments(t, m->message, id) : STR("");
                if (args.n)
                        made_call_text(to, id, name, args);
                else
                        made_call(to, id, name, j, json_get(j, b, "input"));
        } else if (json_is(j, type, "thinking") || json_is(j, type, "reasoning")) {
                made_thinking(to, j, either(j, b, "thinking", "text"));
        } else {
                made_text(to, j, json_get(j, b, "text"));
        }
}

int said_put(struct foreign *t, const struct said_message *m)
{
        const struct json *j = &t->j;
        json_ref content = json_get(j, m->message, "content"),
                 role = json_get(j, m->message, "role");
        bool list = json_type(j, content) == JSON_ARRAY;
        bool only = list && json_count(j, content) == 1;
        struct made said;
        size_t results = 0;
        int rc = 0;
        made_init(&said, json_is(j, role, "assistant") ? "assistant"
                         : json_is(j, role, "system")  ? "system"
                                                       : "user");
        made_text(&said, j, content);
        for (json_ref b = list ? json_child(j, content) : JSON_NONE; rc == 0 && b != JSON_NONE;
             b = json_next(j, content, b)) {
                if (is_result(j, b)) {
                        results++;
                        rc = put_result(t, m, b, only);
                } else {
                        add_block(t, &said, m, b);
                }
        }
        if (rc == 0 && (made_any(&said) || !results))
                rc = made_put(&said, t, m->id, m->at, json_raw(j, m->message));
        made_release(&said);
        return rc;
}
