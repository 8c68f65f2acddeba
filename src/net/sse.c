/*
 * sse.c - the line machine behind sse.h.
 */
#include "net/sse.h"

#include "base/limits.h"

void sse_init(struct sse *s, size_t max, sse_event_fn event, void *ctx)
{
        size_t cap = max ? max : MESSAGE_MAX;
        *s = (struct sse){.event = event, .ctx = ctx, .first_line = true};
        buf_init(&s->line, cap);
        buf_init(&s->data, cap);
        buf_init(&s->name, 256);
}

void sse_release(struct sse *s)
{
        buf_release(&s->line);
        buf_release(&s->data);
        buf_release(&s->name);
}

static int dispatch(struct sse *s)
{
        int rc = 0;
        if (s->has_data) {
                struct str name = s->name.n ? buf_str(&s->name) : STR("message");
                rc = s->event(s->ctx, name, buf_str(&s->data));
        }
        buf_clear(&s->data);
        buf_clear(&s->name);
        s->has_data = false;
        return rc;
}

static int take_field(struct sse *s, struct str field, struct str value)
{
        if (str_is(field, "data")) {
                if (s->has_data)
                        buf_putc(&s->data, '\n');
                buf_put_str(&s->data, value);
                s->has_data = true;
                return s->data.failed;
        }
        if (str_is(field, "event")) {
                buf_clear(&s->name);
                buf_put_str(&s->name, value);
                return s->name.failed;
        }
        if (s->other)
                s->other(s->ctx, field, value);
        return 0;
}

static int take_line(struct sse *s)
{
        struct str line = buf_str(&s->line);
        if (s->first_line && str_starts(line, "\xEF\xBB\xBF"))
                line = str_span(line.p + 3, line.n - 3);
        s->first_line = false;

        if (line.n == 0)
                return dispatch(s);
        const char *colon = memchr(line.p, ':', line.n);
        if (colon == line.p)
                return 0;
        if (!colon)
                return take_field(s, line, (struct str){"", 0});
        struct str field = str_span(line.p, (size_t)(colon - line.p));
        struct str value = str_span(colon + 1, line.n - field.n - 1);
        if (value.n && value.p[0] == ' ')
                value = str_span(value.p + 1, value.n - 1);
        return take_field(s, field, value);
}

int sse_feed(struct sse *s, const char *p, size_t n)
{
        size_t i = 0;
        while (i < n) {
                if (s->after_cr && p[i] == '\n') {
                        s->after_cr = false;
                        i++;
                        continue;
                }
                s->after_cr = false;
                size_t end = i;
                while (end < n && p[end] != '\n' && p[end] != '\r')
                        end++;
                buf_put(&s->line, p + i, end - i);
                if (s->line.failed)
                        return s->line.failed;
                if (end == n)
                        return 0;
                s->after_cr = p[end] == '\r';
                int rc = take_line(s);
                buf_clear(&s->line);
                if (rc)
                        return rc;
                i = end + 1;
        }
        return 0;
}

int sse_finish(struct sse *s)
{
        int rc = 0;
        if (s->line.n)
                rc = take_line(s);
        buf_clear(&s->line);
        return rc ? rc : dispatch(s);
}
