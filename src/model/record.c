/* record.c - see record.h */
#include "model/record.h"

#include <string.h>

#include "base/json.h"
#include "model/sealed.h"

void record_put_fields(struct buf *out, const struct record *r, uint64_t group)
{
        buf_puts(out, ",\"at\":\"");
        buf_put_str(out, r->at);
        buf_puts(out, "\",\"fmt\":\"");
        buf_put_str(out, r->fmt);
        buf_puts(out, "\",\"batch\":[");
        buf_put_u64(out, r->batch_index);
        buf_putc(out, ',');
        buf_put_u64(out, r->batch_count);
        if (group) {
                buf_putc(out, ',');
                buf_put_u64(out, group);
        }
        buf_puts(out, "],\"x\":");
}

void record_write(struct buf *out, const struct record *r, struct str id)
{
        size_t start = out->n;
        buf_puts(out, "{\"v\":1,\"seq\":");
        buf_put_u64(out, r->seq);
        buf_puts(out, ",\"id\":");
        json_put_string(out, id);
        record_put_fields(out, r, r->group);
        buf_put_str(out, r->x);
        buf_puts(out, ",\"m\":");
        buf_put_str(out, r->m);
        sealed_finish(out, start);
}

/* ---- reading by position ---- */

/* Takes an object. Brackets outside of strings are balanced. */
static bool take_object(struct sealed *s, struct str *v)
{
        const char *start = s->p;
        struct str skipped;
        int depth = 0;
        while (s->p < s->end) {
                switch (*s->p++) {
                case '"':
                        if (!sealed_take_string(s, &skipped))
                                return false;
                        break;
                case '{':
                case '[':
                        depth++;
                        break;
                case '}':
                case ']':
                        if (--depth == 0) {
                                *v = str_span(start, (size_t)(s->p - start));
                                return true;
                        }
                        break;
                default:
                        if (depth == 0)
                                return false;
                }
        }
        return false;
}

/* Everything before the x. */
SEALED_INLINE bool take_head(struct sealed *s, struct record *r)
{
        uint64_t index, count;
        r->group = 0;
        if (!sealed_take(s, STR("{\"v\":1,\"seq\":")) || !sealed_take_u64(s, &r->seq) ||
            !sealed_take(s, STR(",\"id\":\"")) || !sealed_take_string(s, &r->id) ||
            !sealed_take(s, STR(",\"at\":\"")) || !sealed_take_string(s, &r->at) ||
            !sealed_take(s, STR(",\"fmt\":\"")) || !sealed_take_string(s, &r->fmt) ||
            !sealed_take(s, STR(",\"batch\":[")) || !sealed_take_u64(s, &index) ||
            !sealed_take(s, STR(",")) || !sealed_take_u64(s, &count))
                return false;
        if (sealed_take(s, STR(",")) && !sealed_take_u64(s, &r->group))
                return false;
        r->batch_index = (uint32_t)index;
        r->batch_count = (uint32_t)count;
        return sealed_take(s, STR("],\"x\":")) && r->seq > 0 && index < count &&
               count <= UINT32_MAX;
}

bool record_peek(struct str line, struct record *out)
{
        struct sealed s;
        struct record r = {.line = line};
        if (!sealed_body(line, &s) || !take_head(&s, &r) || !take_object(&s, &r.x) ||
            !sealed_take(&s, STR(",\"m\":")) || s.p >= s.end)
                return false;
        r.m = str_span(s.p, (size_t)(s.end - s.p));
        *out = r;
        return true;
}

/* Assumes that the x ends at its first closing brace. If this brace is in a string, the assumption
 * is wrong. Then the message does not begin where it should, and its length does not lead to the
 * seal, so the record is read the slow way. */
bool record_take(struct str text, struct record *r)
{
        struct sealed s = {text.p, text.p + text.n};
        uint64_t length;
        if (!take_head(&s, r))
                return false;
        const char *x = s.p;
        if (!sealed_take(&s, STR("{\"len\":")) || !sealed_take_u64(&s, &length))
                return false;
        if (length < (size_t)(s.end - s.p))
                __builtin_prefetch(s.p + length); /* the end of the line is read next */
        const char *brace = memchr(s.p, '}', (size_t)(s.end - s.p));
        if (!brace)
                return false;
        s.p = brace + 1;
        r->x = str_span(x, (size_t)(s.p - x));
        if (!sealed_take(&s, STR(",\"m\":")))
                return false;
        size_t left = (size_t)(s.end - s.p);
        if (left <= SEALED_BYTES || length == 0 || length >= left - SEALED_BYTES ||
            s.p[length + SEALED_BYTES] != '\n')
                return false;
        r->m = str_span(s.p, length);
        r->line = str_span(text.p, (size_t)(s.p - text.p) + length + SEALED_BYTES);
        return sealed_check(r->line);
}

bool record_read(struct str line, struct record *out)
{
        return sealed_check(line) && record_peek(line, out);
}
