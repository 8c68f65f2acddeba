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
        if (s->spilled) {
                rc = s->spill(s->ctx, NULL, 0);
                s->spilled = false;
        } else if (s->has_data) {
                struct str name = s->name.n ? buf_str(&s->name) : STR("message");
                rc = s->event(s->ctx, name, buf_str(&s->data));
        }
        buf_clear(&s->data);
        buf_clear(&s->name);
        s->has_data = false;
        return rc;
}

/* Data that was collected goes out, and `value` behind it. */
static int spill(struct sse *s, struct str value)
{
        int rc = 0;
        if (s->data.n)
                rc = s->spill(s->ctx, s->data.p, s->data.n);
        if (rc == 0 && s->has_data)
                rc = s->spill(s->ctx, "\n", 1);
        if (rc == 0 && value.n)
                rc = s->spill(s->ctx, value.p, value.n);
        buf_clear(&s->data);
        s->has_data = s->spilled = true;
        return rc;
}

/* A line of data that is long already, and has not ended. */
static int spill_line(struct sse *s)
{
        struct str line = buf_str(&s->line);
        if (!s->spill || line.n <= s->spill_from || !str_starts(line, "data:"))
                return 0;
        size_t skip = line.p[5] == ' ' ? 6 : 5;
        int rc = spill(s, str_span(line.p + skip, line.n - skip));
        buf_clear(&s->line);
        s->in_spilled_line = true;
        return rc;
}

static int take_field(struct sse *s, struct str field, struct str value)
{
        if (str_is(field, "data") && s->spill &&
            (s->spilled || s->data.n + value.n > s->spill_from))
                return spill(s, value);
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
                int rc = 0;
                if (s->in_spilled_line)
                        rc = end > i ? s->spill(s->ctx, p + i, end - i) : 0;
                else
                        buf_put(&s->line, p + i, end - i);
                if (rc || s->line.failed)
                        return rc ? rc : s->line.failed;
                if (end == n)
                        return s->in_spilled_line ? 0 : spill_line(s);
                s->after_cr = p[end] == '\r';
                rc = s->in_spilled_line ? 0 : take_line(s);
                s->in_spilled_line = false;
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
