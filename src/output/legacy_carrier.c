/* legacy_carrier.c - see legacy_carrier.h */
#include "output/legacy_carrier.h"

#include "base/json.h"

#define OPEN "<function_call>"
#define CLOSE "</function_call>"

/* Writes JSON text with every `<` as an escape. In valid JSON, `<` can only be in strings. */
static void put_closed(struct buf *out, struct str json)
{
        while (json.n) {
                const char *lt = memchr(json.p, '<', json.n);
                size_t n = lt ? (size_t)(lt - json.p) : json.n;
                buf_put(out, json.p, n);
                if (lt)
                        buf_puts(out, "\\u003c");
                json.p += lt ? n + 1 : n;
                json.n -= lt ? n + 1 : n;
        }
}

static void put_members(struct buf *out, const struct json *j)
{
        for (json_ref key = json_child(j, 0); key != JSON_NONE; key = json_next_key(j, 0, key)) {
                if (key != json_child(j, 0))
                        buf_putc(out, ',');
                put_closed(out, json_raw(j, key));
                buf_putc(out, ':');
                put_closed(out, json_raw(j, json_value(j, key)));
        }
}

bool legacy_put_call(struct buf *out, struct str call)
{
        struct json j;
        json_init(&j);
        bool ok =
            json_parse(&j, call.p, call.n, NULL, NULL) == 0 && json_type(&j, 0) == JSON_OBJECT;
        if (ok) {
                buf_puts(out, OPEN "{");
                put_members(out, &j);
                buf_puts(out, "}" CLOSE);
        }
        json_release(&j);
        return ok;
}

static size_t skip_blanks(struct str text, size_t at)
{
        while (at < text.n && (text.p[at] == ' ' || text.p[at] == '\n' || text.p[at] == '\t' ||
                                  text.p[at] == '\r'))
                at++;
        return at;
}

bool legacy_next(struct str text, size_t *at, size_t *start, struct str *call)
{
        size_t from = *at;
        while (from < text.n) {
                struct str rest = {text.p + from, text.n - from};
                const char *open = memmem(rest.p, rest.n, OPEN, strlen(OPEN));
                if (!open)
                        return false;
                size_t body = (size_t)(open - text.p) + strlen(OPEN);
                size_t begin = 0;
                from = body;
                ptrdiff_t n = json_scan_value(text.p + body, text.n - body, true, &begin, NULL);
                if (n <= 0 || text.p[body + begin] != '{')
                        continue;
                size_t end = skip_blanks(text, body + (size_t)n);
                if (!str_starts(str_span(text.p + end, text.n - end), CLOSE))
                        continue;
                *start = (size_t)(open - text.p);
                *call = str_span(text.p + body + begin, (size_t)n - begin);
                *at = end + strlen(CLOSE);
                return true;
        }
        return false;
}
