/*
 * acp_result.c - the results of calls, and terminals that belong to no call. See acp_record.h
 */
#include "acp/acp_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

int acp_output_begin(struct acp_record *r, const char *tool, const char *call, bool terminal,
    struct steno_output **out)
{
        struct steno_error err = {0};
        struct steno_output_options opt = {.size = sizeof opt,
            .tool = tool,
            .call_id = call,
            .terminal = terminal,
            .flags = STENO_RECORD,
            .context_tools = true};
        int rc = steno_output_begin(r->conv, &opt, out, &err);
        if (rc)
                acp_record_fail(r, rc, &err);
        return rc;
}

/* ---- the text of a result ---- */

/* Members of rawOutput in which known agents give what a command printed. */
static const char *const printed[] = {"aggregated_output", "formatted_output", "output", "stdout"};

static void put_raw_text(const char *raw, bool anything, struct buf *out, int64_t *code, bool *has)
{
        struct json j;
        json_init(&j);
        if (raw && json_parse(&j, raw, strlen(raw), NULL, NULL) == 0) {
                *has = json_i64(&j, json_get(&j, 0, "exit_code"), code) ||
                       json_i64(&j, json_get(&j, 0, "exitCode"), code);
                bool found = json_string(&j, 0, out, NULL);
                for (size_t i = 0; i < sizeof printed / sizeof *printed && !found; i++) {
                        json_ref v = json_get(&j, 0, printed[i]);
                        found = json_inner(&j, v).n && json_string(&j, v, out, NULL);
                        if (found && strcmp(printed[i], "stdout") == 0)
                                json_string(&j, json_get(&j, 0, "stderr"), out, NULL);
                }
                if (!found && anything)
                        buf_puts(out, raw);
        }
        json_release(&j);
}

static void put_content_text(const char *content, struct buf *out)
{
        struct json j;
        bool first = true;
        json_init(&j);
        if (content && json_parse(&j, content, strlen(content), NULL, NULL) == 0)
                for (json_ref b = json_child(&j, 0); b != JSON_NONE; b = json_next(&j, 0, b)) {
                        json_ref type = json_get(&j, b, "type");
                        if (!first)
                                buf_putc(out, '\n');
                        first = false;
                        if (json_is(&j, type, "content")) {
                                acp_put_block_text(&j, json_get(&j, b, "content"), out, NULL);
                                continue;
                        }
                        bool diff = json_is(&j, type, "diff");
                        buf_puts(out, diff ? "[diff " : "[terminal ");
                        json_string(&j, json_get(&j, b, diff ? "path" : "terminalId"), out, NULL);
                        buf_puts(out, "]");
                }
        json_release(&j);
}

static void put_text(const struct acp_call *c, struct buf *out, int64_t *code, bool *has)
{
        const char *raw = acp_call_get(c, "rawOutput");
        const char *content = acp_call_get(c, "content");
        bool command = acp_call_is(c, "kind", "execute");
        if (command)
                put_raw_text(raw, false, out, code, has);
        if (!out->n)
                put_content_text(content, out);
        if (!out->n)
                put_raw_text(raw, true, out, code, has);
}

/* ---- storing ---- */

/* Makes the message of an output and appends it. */
static void store_output(
    struct acp_record *r, struct steno_output *out, struct buf *fields, uint64_t of_seq)
{
        struct steno_error err = {0};
        char *message = NULL;
        size_t n = 0;
        const char *json = buf_cstr(fields);
        int rc = json ? steno_output_message(out, json, &message, &n, &err) : STENO_ENOMEM;
        if (rc)
                acp_record_fail(r, rc, &err);
        else
                acp_record_append(r, str_span(message, n), of_seq, true, false, NULL);
        steno_free(message);
}

static void put_exit(struct jsonw *w, const struct acp_terminal *t)
{
        if (t->has_exit)
                jsonw_field_i64(w, "exitCode", t->exit_code);
}

static void put_terminal_about(struct jsonw *w, const struct acp_terminal *t)
{
        jsonw_key(w, "terminal");
        jsonw_object(w);
        jsonw_field_cstr(w, "terminalId", t->id);
        if (t->command)
                jsonw_field_raw(w, "started", str_of(t->command));
        if (t->signal)
                jsonw_field_cstr(w, "signal", t->signal);
        if (t->truncated)
                jsonw_field_bool(w, "truncated", true);
        jsonw_object_end(w);
}

static void put_call_fields(
    const struct acp_record *r, const struct acp_call *c, struct str output, struct buf *fields)
{
        struct jsonw w = jsonw_to(fields);
        jsonw_object(&w);
        if (c->terminal)
                put_exit(&w, c->terminal);
        if (acp_call_is(c, "status", "failed") || c->cancelled)
                jsonw_field_bool(&w, "isError", true);
        if (c->cancelled)
                jsonw_field_bool(&w, "interrupted", true);
        if (c->unfinished)
                jsonw_field_bool(&w, "unfinished", true);
        if (r->now > c->began)
                jsonw_field_i64(&w, "duration", r->now - c->began);
        struct buf *b = (jsonw_key(&w, "acp"), jsonw_value(&w));
        size_t from = b->n;
        acp_call_put_about(c, true, output, b);
        if (c->terminal && !b->failed) {
                struct jsonw inside = b->n - from > 2 ? jsonw_behind(b) : jsonw_to(b);
                b->n--; /* there is one more member before the brace */
                put_terminal_about(&inside, c->terminal);
                buf_putc(b, '}');
        }
        jsonw_object_end(&w);
}

static void store_terminal_result(struct acp_record *r, struct acp_call *c)
{
        struct steno_error err = {0};
        struct acp_terminal *t = c->terminal;
        struct buf fields;
        char *name = acp_call_name(c);
        int rc = 0;
        if (!t->out) {
                rc = acp_output_begin(r, name ? name : "tool", c->id, true, &t->out);
                if (rc == 0 && t->text.n)
                        rc = steno_output_write(t->out, t->text.p, t->text.n, &err);
        }
        buf_init(&fields, 2 * MESSAGE_MAX);
        put_call_fields(r, c, buf_str(&t->text), &fields);
        if (rc == 0)
                store_output(r, t->out, &fields, c->seq);
        else if (err.code)
                acp_record_fail(r, rc, &err);
        buf_release(&fields);
        free(name);
}

static void store_text_result(struct acp_record *r, struct acp_call *c)
{
        struct steno_error err = {0};
        struct steno_output *out = NULL;
        struct buf text, fields;
        char *name = acp_call_name(c);
        int64_t code = 0;
        bool has_code = false;
        buf_init(&text, 0);
        buf_init(&fields, 2 * MESSAGE_MAX);
        put_text(c, &text, &code, &has_code);
        bool terminal = acp_call_is(c, "kind", "execute") && text.n;
        int rc = acp_output_begin(r, name ? name : "tool", c->id, terminal, &out);
        if (rc == 0 && text.n && (rc = steno_output_write(out, text.p, text.n, &err)) != 0)
                acp_record_fail(r, rc, &err);
        put_call_fields(r, c, buf_str(&text), &fields);
        if (has_code && fields.n > 1 && !fields.failed) {
                fields.n--;
                buf_printf(&fields, ",\"exitCode\":%lld}", (long long)code);
        }
        if (rc == 0)
                store_output(r, out, &fields, c->seq);
        steno_output_free(out);
        buf_release(&text);
        buf_release(&fields);
        free(name);
}

void acp_call_store_result(struct acp_record *r, struct acp_call *c)
{
        uint64_t seq;
        if (r->failed || acp_record_is_stored(r, &seq))
                return;
        if (c->terminal)
                store_terminal_result(r, c);
        else
                store_text_result(r, c);
}

/* ---- terminals that no call shows ---- */

void acp_terminal_call_id(const struct acp_terminal *t, char out[CALL_ID_MAX])
{
        snprintf(out, CALL_ID_MAX, "terminal-%s", t->id);
}

static void put_own_call(const struct acp_record *r, const struct acp_terminal *t, struct buf *out)
{
        char call[CALL_ID_MAX];
        struct jsonw w = jsonw_to(out);
        acp_terminal_call_id(t, call);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_null(&w, "content");
        jsonw_key(&w, "tool_calls");
        jsonw_array(&w);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", call);
        jsonw_field_cstr(&w, "type", "function");
        jsonw_key(&w, "function");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "name", "terminal");
        jsonw_field_cstr(&w, "arguments", t->command ? t->command : "{}");
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        jsonw_array_end(&w);
        jsonw_field_bool(&w, "includeInContext", false);
        acp_put_time(&w, "createdAt", r->now);
        jsonw_object_end(&w);
}

static void store_own_result(struct acp_record *r, struct acp_terminal *t, uint64_t of_seq)
{
        struct steno_error err = {0};
        struct buf fields;
        char call[CALL_ID_MAX];
        int rc = 0;
        acp_terminal_call_id(t, call);
        if (!t->out) {
                rc = acp_output_begin(r, "terminal", call, true, &t->out);
                if (rc == 0 && t->text.n &&
                    (rc = steno_output_write(t->out, t->text.p, t->text.n, &err)) != 0)
                        acp_record_fail(r, rc, &err);
        }
        buf_init(&fields, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&fields);
        jsonw_object(&w);
        put_exit(&w, t);
        if (!t->ended)
                jsonw_field_bool(&w, "unfinished", true);
        if (r->now > t->began)
                jsonw_field_i64(&w, "duration", r->now - t->began);
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_key(&w, "acp");
        jsonw_object(&w);
        put_terminal_about(&w, t);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        if (rc == 0)
                store_output(r, t->out, &fields, of_seq);
        buf_release(&fields);
}

void acp_terminal_store(struct acp_record *r, struct acp_terminal *t)
{
        struct buf message;
        uint64_t seq = 0, there = 0;
        buf_init(&message, MESSAGE_MAX);
        put_own_call(r, t, &message);
        if (!r->failed && !message.failed && !r->replaying && (t->out || t->text.n || t->command)) {
                acp_record_append(r, buf_str(&message), 0, false, false, &seq);
                if (!r->failed && !acp_record_is_stored(r, &there))
                        store_own_result(r, t, seq);
        }
        buf_release(&message);
        acp_terminal_free(t);
}
