/* made.c - see made.h */
#include "foreign/made.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"

void made_init(struct made *m, const char *role)
{
        *m = (struct made){.role = role};
        buf_init(&m->text, 0);
        buf_init(&m->thinking, 0);
        buf_init(&m->openai, 0);
        buf_init(&m->model, 0);
}

void made_release(struct made *m)
{
        buf_release(&m->text);
        buf_release(&m->thinking);
        buf_release(&m->openai);
        buf_release(&m->model);
}

static void add(struct buf *to, const struct json *j, json_ref v)
{
        if (json_type(j, v) != JSON_STRING)
                return;
        if (to->n && json_inner(j, v).n)
                buf_putc(to, '\n');
        json_string(j, v, to, NULL);
}

void made_text(struct made *m, const struct json *j, json_ref v)
{
        add(&m->text, j, v);
}

void made_thinking(struct made *m, const struct json *j, json_ref v)
{
        add(&m->thinking, j, v);
}

/* `string` is the arguments as a string token, `value` the same as a JSON value. */
static void add_call(
    struct made *m, struct str id, struct str name, struct str string, struct str value)
{
        struct jsonw w = m->calls ? jsonw_behind(&m->openai) : jsonw_to(&m->openai);
        jsonw_object(&w);
        jsonw_field_str(&w, "id", id);
        jsonw_field_cstr(&w, "type", "function");
        jsonw_key(&w, "function");
        jsonw_object(&w);
        jsonw_field_str(&w, "name", name);
        jsonw_field_raw(&w, "arguments", string);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        w = m->calls ? jsonw_behind(&m->model) : jsonw_to(&m->model);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "type", "tool-call");
        jsonw_field_str(&w, "toolCallId", id);
        jsonw_field_str(&w, "toolName", name);
        jsonw_field_raw(&w, "input", value);
        jsonw_object_end(&w);
        m->calls++;
}

void made_call_text(struct made *m, struct str id, struct str name, struct str args)
{
        struct buf string;
        buf_init(&string, 0);
        json_put_string(&string, args);
        bool valid = args.n && args.n < JSON_SIZE_MAX && json_valid(args.p, args.n, NULL);
        add_call(m, id, name, buf_str(&string), valid ? args : buf_str(&string));
        if (string.failed)
                m->openai.failed = string.failed;
        buf_release(&string);
}

void made_call(struct made *m, struct str id, struct str name, const struct json *j, json_ref args)
{
        struct buf text;
        buf_init(&text, 0);
        if (!json_string(j, args, &text, NULL))
                buf_put_str(&text, args == JSON_NONE ? STR("{}") : json_raw(j, args));
        if (text.failed)
                m->openai.failed = text.failed;
        else
                made_call_text(m, id, name, buf_str(&text));
        buf_release(&text);
}

bool made_any(const struct made *m)
{
        return m->text.n || m->thinking.n || m->calls || m->error.n;
}

static void put_model_parts(struct jsonw *w, const struct made *m)
{
        jsonw_key(w, "content");
        jsonw_array(w);
        if (m->thinking.n) {
                jsonw_object(w);
                jsonw_field_cstr(w, "type", "reasoning");
                jsonw_field_str(w, "text", buf_str(&m->thinking));
                jsonw_object_end(w);
        }
        if (m->text.n) {
                jsonw_object(w);
                jsonw_field_cstr(w, "type", "text");
                jsonw_field_str(w, "text", buf_str(&m->text));
                jsonw_object_end(w);
        }
        if (m->calls)
                jsonw_raw(w, buf_str(&m->model));
        jsonw_array_end(w);
}

static void put_openai_parts(struct jsonw *w, const struct made *m)
{
        if (m->text.n || !m->calls)
                jsonw_field_str(w, "content", m->text.p ? buf_str(&m->text) : STR(""));
        else
                jsonw_field_null(w, "content");
        if (m->calls) {
                jsonw_key(w, "tool_calls");
                jsonw_array(w);
                jsonw_raw(w, buf_str(&m->openai));
                jsonw_array_end(w);
        }
        if (m->error.n) {
                jsonw_field_cstr(w, "partType", "error");
                jsonw_key(w, "error");
                jsonw_object(w);
                jsonw_field_cstr(w, "code", "LLM_ERROR");
                jsonw_field_str(w, "message", m->error);
                jsonw_field_bool(w, "retryable", false);
                jsonw_object_end(w);
        }
        if (m->hidden)
                jsonw_field_bool(w, "includeInContext", false);
}

int made_put(struct made *m, struct foreign *t, struct str id, struct str at, struct str entry)
{
        bool model = m->thinking.n && !m->error.n && !m->hidden;
        struct jsonw w = jsonw_to(&t->out);
        buf_clear(&t->out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", m->role);
        if (model)
                put_model_parts(&w, m);
        else
                put_openai_parts(&w, m);
        if (at.n && !model)
                jsonw_field_str(&w, "createdAt", at);
        if (entry.n)
                jsonw_field_raw(&w, "entry", entry);
        jsonw_object_end(&w);
        if (m->text.failed || m->thinking.failed || m->openai.failed || m->model.failed)
                return error_nomem(t->err);
        struct foreign_item item = {.id = id,
            .at = at,
            .format = model ? "modelmessage" : "openai",
            .json = buf_str(&t->out),
            .entry = m->key.n ? m->key : entry,
            .weak = m->weak,
            .calls = m->calls};
        return foreign_item(t, &item);
}

int made_put_result(
    struct foreign *t, const struct made_result *r, struct str id, struct str at, struct str entry)
{
        struct jsonw w = jsonw_to(&t->out);
        buf_clear(&t->out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "tool");
        jsonw_field_str(&w, "tool_call_id", r->call);
        if (r->name.n)
                jsonw_field_str(&w, "toolName", r->name);
        jsonw_field_str(&w, "content", r->text.p ? r->text : STR(""));
        if (r->error)
                jsonw_field_bool(&w, "isError", true);
        if (r->has_exit)
                jsonw_field_i64(&w, "exitCode", r->exit_code);
        if (r->duration >= 0)
                jsonw_field_i64(&w, "duration", r->duration);
        if (at.n)
                jsonw_field_str(&w, "createdAt", at);
        if (r->seen.p && !str_eq(r->seen, r->text))
                jsonw_field_str(&w, "seen", r->seen);
        if (entry.n)
                jsonw_field_raw(&w, "entry", entry);
        jsonw_object_end(&w);
        struct foreign_item item = {.id = id,
            .at = at,
            .format = "openai",
            .json = buf_str(&t->out),
            .entry = entry,
            .weak = r->weak,
            .results = 1};
        return foreign_item(t, &item);
}

bool made_find_exit(struct str text, int64_t *code)
{
        static const char *const WORDS[] = {"Exit Code: ", "exited with code ", "exit code "};
        for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
                size_t n = strlen(WORDS[i]);
                const char *p = text.n > n ? memmem(text.p, text.n, WORDS[i], n) : NULL;
                if (!p || p + n == text.p + text.n)
                        continue;
                char digits[12] = "";
                size_t left = (size_t)(text.p + text.n - p) - n;
                memcpy(digits, p + n, left < 11 ? left : 11);
                char *end;
                *code = strtol(digits, &end, 10);
                if (end != digits)
                        return true;
        }
        return false;
}
