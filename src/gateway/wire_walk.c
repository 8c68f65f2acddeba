/*
 * wire_walk.c - the events of an answer, one after the other, and what is wrong with them
 * (wire_core.h).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "gateway/doubles.h"
#include "gateway/wire_core.h"
#include "net/sse.h"

void wire_take_string(const struct json *j, json_ref obj, const char *key, struct buf *out)
{
        if (out->n == 0)
                json_string(j, json_get(j, obj, key), out, NULL);
}

void wire_take_word(const struct json *j, json_ref r, char *out, size_t size)
{
        struct str s = json_inner(j, r);
        if (s.n)
                snprintf(out, size, "%.*s", (int)(s.n < size ? s.n : size - 1), s.p);
}

void wire_take_problem(const struct json *j, json_ref error, struct wire_answer *out)
{
        if (json_type(j, error) == JSON_NOTHING || json_type(j, error) == JSON_NULL)
                return;
        json_ref message = json_get(j, error, "message");
        buf_clear(&out->problem);
        if (!json_string(j, message, &out->problem, NULL) &&
            !json_string(j, error, &out->problem, NULL))
                buf_put_str(&out->problem, json_raw(j, error));
}

void wire_take_usage(const struct json *j, json_ref usage, struct wire_answer *out)
{
        if (json_type(j, usage) != JSON_OBJECT)
                return;
        buf_clear(&out->usage);
        buf_put_str(&out->usage, json_raw(j, usage));
}

/* ---- what is odd about an answer ---- */

__attribute__((format(printf, 2, 3))) void wire_note_odd(
    struct wire_answer *out, const char *fmt, ...)
{
        char words[400];
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(words, sizeof words, fmt, ap);
        va_end(ap);
        size_t size = n < 0 ? 0 : (size_t)n < sizeof words ? (size_t)n : sizeof words - 1;
        size = text_utf8_prefix(words, size);
        if (out->odd.n + size + 2 > WIRE_ODD_MAX ||
            (out->odd.n && strstr(buf_cstr(&out->odd), words)))
                return; /* told already, or enough is told */
        if (out->odd.n)
                buf_puts(&out->odd, "; ");
        buf_put_str(&out->odd, str_span(words, size));
        buf_cstr(&out->odd);
}

void wire_check_role(
    const struct json *j, json_ref role, const char *wanted, struct wire_answer *out)
{
        struct str said = json_raw(j, role);
        if (said.n && json_type(j, role) != JSON_NULL && !json_is(j, role, wanted) &&
            !str_is(said, "\"\""))
                wire_note_odd(out, "the endpoint gave the role %.*s",
                    (int)(said.n < 100 ? said.n : 100), said.p);
}

/* ---- the walk ---- */

static int look_at(struct wire_walk *w, struct str text, struct steno_error *why)
{
        int rc = json_parse(&w->j, text.p, text.n, NULL, why);
        if (rc)
                return rc;
        struct str twice;
        rc = doubles_find(&w->j, &twice);
        if (rc == 0 && twice.p)
                wire_note_odd(w->out, "the member \"%.*s\" occurs twice in one object",
                    (int)(twice.n < 100 ? twice.n : 100), twice.p);
        return rc;
}

static int walk_event(void *ctx, struct str name, struct str data)
{
        struct wire_walk *w = ctx;
        struct steno_error why = {0};
        (void)name;
        data = str_trim(data);
        if (data.n == 0)
                return 0;
        w->events++;
        w->late += w->out->ended;
        if (w->last && str_is(data, w->last)) {
                w->out->ended = true;
                return 0;
        }
        int rc = look_at(w, data, &why);
        if (rc == STENO_ENOMEM)
                return rc;
        if (rc || json_type(&w->j, 0) != JSON_OBJECT) {
                if (w->broken++ == 0)
                        wire_note_odd(w->out, "event %zu of the stream is not a JSON object%s%s",
                            w->events, rc ? ": " : "", rc ? why.msg : "");
                return 0;
        }
        if (w->last && json_is(&w->j, json_get(&w->j, 0, "type"), w->last))
                w->out->ended = true;
        return w->each(w, &w->j);
}

static int walk_stream(struct wire_walk *w, struct str body)
{
        struct sse s;
        sse_init(&s, MESSAGE_MAX, walk_event, w);
        int rc = sse_feed(&s, body.p, body.n);
        if (rc == 0)
                rc = sse_finish(&s);
        sse_release(&s);
        if (w->broken > 1)
                wire_note_odd(w->out, "so are %zu more", w->broken - 1);
        if (w->late)
                wire_note_odd(w->out, "%zu event%s came after the end of the answer", w->late,
                    w->late == 1 ? "" : "s");
        return rc;
}

static int walk_body(struct wire_walk *w, struct str body)
{
        struct steno_error why = {0};
        int rc = look_at(w, body, &why);
        w->out->ended = true;
        if (rc == STENO_ENOMEM)
                return rc;
        if (rc && str_trim(body).n == 0)
                wire_note_odd(w->out, "the answer is empty");
        else if (rc)
                wire_note_odd(w->out, "the answer is not JSON: %s", why.msg);
        else
                return w->each(w, &w->j);
        return 0;
}

int wire_walk_answer(struct wire_walk *w, struct str body, bool stream)
{
        json_init(&w->j);
        w->stream = stream;
        int rc = stream ? walk_stream(w, body) : walk_body(w, body);
        json_release(&w->j);
        return rc;
}
