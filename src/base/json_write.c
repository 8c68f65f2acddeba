/* json_write.c - writing JSON: see json.h */
#include "base/json.h"

#include <string.h>

#include "base/scan.h"

/* Writes at most six bytes. */
static size_t escape(char *to, unsigned char c)
{
        static const char hex[] = "0123456789abcdef";
        static const char brief[0x20] = {
            ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
        to[0] = '\\';
        if (c == '"' || c == '\\' || (c < 0x20 && brief[c])) {
                to[1] = c < 0x20 ? brief[c] : (char)c;
                return 2;
        }
        to[1] = 'u';
        to[2] = to[3] = '0';
        to[4] = hex[c >> 4];
        to[5] = hex[c & 15];
        return 6;
}

static void put_control(struct buf *b, unsigned char c)
{
        char out[6];
        buf_put(b, out, escape(out, c));
}

/* Room for a step of scan_copy_step and the escape behind it: as long as the buffer has so much,
 * nothing is asked of it. */
#define STEP_ROOM 32

static const char *put_quickly(struct buf *b, const char *p, const char *end)
{
        char *at = b->p + b->n;
        const char *limit = b->p + b->cap - STEP_ROOM;
        while (end - p >= SCAN_STEP && at <= limit) {
                size_t n = scan_copy_step(p, at);
                p += n;
                at += n;
                if (n < SCAN_STEP)
                        at += escape(at, (unsigned char)*p++);
        }
        b->n = (size_t)(at - b->p);
        return p;
}

static void put_valid(struct buf *b, const char *p, const char *end)
{
        while (p < end) {
                if (!b->failed && b->cap - b->n >= STEP_ROOM)
                        p = put_quickly(b, p, end);
                const char *q = scan_string(p, end);
                buf_put(b, p, (size_t)(q - p));
                if (q == end)
                        return;
                put_control(b, (unsigned char)*q);
                p = q + 1;
        }
}

void json_put_escaped(struct buf *b, struct str s)
{
        const char *p = s.p;
        size_t n = s.n;
        while (n > 0 && !b->failed) {
                size_t good = scan_utf8(p, n);
                put_valid(b, p, p + good);
                if (good == n)
                        return;
                buf_puts(b, "\xEF\xBF\xBD");
                p += good + 1;
                n -= good + 1;
        }
}

void json_put_string(struct buf *b, struct str s)
{
        buf_putc(b, '"');
        json_put_escaped(b, s);
        buf_putc(b, '"');
}

static void begin_value(struct jsonw *w)
{
        if (w->comma)
                buf_putc(w->b, ',');
        w->comma = true;
}

static void open_with(struct jsonw *w, char c)
{
        begin_value(w);
        buf_putc(w->b, c);
        w->comma = false;
}

static void close_with(struct jsonw *w, char c)
{
        buf_putc(w->b, c);
        w->comma = true;
}

void jsonw_object(struct jsonw *w)
{
        open_with(w, '{');
}

void jsonw_object_end(struct jsonw *w)
{
        close_with(w, '}');
}

void jsonw_array(struct jsonw *w)
{
        open_with(w, '[');
}

void jsonw_array_end(struct jsonw *w)
{
        close_with(w, ']');
}

void jsonw_key(struct jsonw *w, const char *key)
{
        begin_value(w);
        buf_putc(w->b, '"');
        buf_puts(w->b, key);
        buf_put(w->b, "\":", 2);
        w->comma = false;
}

void jsonw_key_str(struct jsonw *w, struct str key)
{
        begin_value(w);
        json_put_string(w->b, key);
        buf_putc(w->b, ':');
        w->comma = false;
}

void jsonw_str(struct jsonw *w, struct str s)
{
        begin_value(w);
        json_put_string(w->b, s);
}

void jsonw_cstr(struct jsonw *w, const char *z)
{
        if (z)
                jsonw_str(w, str_of(z));
        else
                jsonw_null(w);
}

void jsonw_u64(struct jsonw *w, uint64_t v)
{
        begin_value(w);
        buf_put_u64(w->b, v);
}

void jsonw_i64(struct jsonw *w, int64_t v)
{
        begin_value(w);
        if (v < 0)
                buf_putc(w->b, '-');
        buf_put_u64(w->b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void jsonw_bool(struct jsonw *w, bool v)
{
        jsonw_raw(w, v ? STR("true") : STR("false"));
}

void jsonw_null(struct jsonw *w)
{
        jsonw_raw(w, STR("null"));
}

void jsonw_raw(struct jsonw *w, struct str json)
{
        begin_value(w);
        buf_put_str(w->b, json);
}

void jsonw_field_str(struct jsonw *w, const char *key, struct str s)
{
        jsonw_key(w, key);
        jsonw_str(w, s);
}

void jsonw_field_cstr(struct jsonw *w, const char *key, const char *z)
{
        jsonw_key(w, key);
        jsonw_cstr(w, z);
}

void jsonw_field_u64(struct jsonw *w, const char *key, uint64_t v)
{
        jsonw_key(w, key);
        jsonw_u64(w, v);
}

void jsonw_field_i64(struct jsonw *w, const char *key, int64_t v)
{
        jsonw_key(w, key);
        jsonw_i64(w, v);
}

void jsonw_field_bool(struct jsonw *w, const char *key, bool v)
{
        jsonw_key(w, key);
        jsonw_bool(w, v);
}

void jsonw_field_raw(struct jsonw *w, const char *key, struct str json)
{
        jsonw_key(w, key);
        jsonw_raw(w, json);
}

void jsonw_field_null(struct jsonw *w, const char *key)
{
        jsonw_key(w, key);
        jsonw_null(w);
}

void jsonw_field_copy(struct jsonw *w, const char *key, const struct json *j, json_ref v)
{
        jsonw_field_raw(w, key, json_raw(j, v));
}

void jsonw_copy_member(struct jsonw *w, const struct json *j, json_ref key)
{
        jsonw_raw(w, json_raw(j, key));
        buf_putc(w->b, ':');
        w->comma = false;
        jsonw_raw(w, json_raw(j, json_value(j, key)));
}

struct buf *jsonw_value(struct jsonw *w)
{
        begin_value(w);
        return w->b;
}

void json_single_line(char *text, size_t n)
{
        char *end = text + n;
        for (char *p = text; (p = memchr(p, '\n', (size_t)(end - p))); p++)
                *p = ' ';
        for (char *p = text; (p = memchr(p, '\r', (size_t)(end - p))); p++)
                *p = ' ';
}
