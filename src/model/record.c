/* record.c - see record.h */
#include "model/record.h"

#include <string.h>

#include "base/json.h"
#include "model/sealed.h"

void record_write(struct buf *out, const struct record *r, struct str id)
{
        size_t start = out->n;
        buf_puts(out, "{\"v\":1,\"seq\":");
        buf_put_u64(out, r->seq);
        buf_puts(out, ",\"id\":");
        json_put_string(out, id);
        buf_puts(out, ",\"at\":\"");
        buf_put_str(out, r->at);
        buf_puts(out, "\",\"fmt\":\"");
        buf_put_str(out, r->fmt);
        buf_puts(out, "\",\"batch\":[");
        buf_put_u64(out, r->batch_index);
        buf_putc(out, ',');
        buf_put_u64(out, r->batch_count);
        if (r->group) {
                buf_putc(out, ',');
                buf_put_u64(out, r->group);
        }
        buf_puts(out, "],\"x\":");
        buf_put_str(out, r->x);
        buf_puts(out, ",\"m\":");
        buf_put_str(out, r->m);
        sealed_finish(out, start);
}

/* ---- reading by position ---- */

/* An object, brackets balanced outside of strings. */
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

bool record_peek(struct str line, struct record *out)
{
        struct sealed s;
        if (!sealed_body(line, &s))
                return false;
        uint64_t index, count;
        struct record r = {.line = line};
        if (!sealed_take(&s, STR("{\"v\":1,\"seq\":")) || !sealed_take_u64(&s, &r.seq) ||
            !sealed_take(&s, STR(",\"id\":\"")) || !sealed_take_string(&s, &r.id) ||
            !sealed_take(&s, STR(",\"at\":\"")) || !sealed_take_string(&s, &r.at) ||
            !sealed_take(&s, STR(",\"fmt\":\"")) || !sealed_take_string(&s, &r.fmt) ||
            !sealed_take(&s, STR(",\"batch\":[")) || !sealed_take_u64(&s, &index) ||
            !sealed_take(&s, STR(",")) || !sealed_take_u64(&s, &count))
                return false;
        if (sealed_take(&s, STR(",")) && !sealed_take_u64(&s, &r.group))
                return false;
        if (!sealed_take(&s, STR("],\"x\":")) || !take_object(&s, &r.x) ||
            !sealed_take(&s, STR(",\"m\":")))
                return false;
        if (r.seq == 0 || index >= count || count > UINT32_MAX || s.p >= s.end)
                return false;
        r.batch_index = (uint32_t)index;
        r.batch_count = (uint32_t)count;
        r.m = str_span(s.p, (size_t)(s.end - s.p));
        *out = r;
        return true;
}

bool record_read(struct str line, struct record *out)
{
        return sealed_check(line) && record_peek(line, out);
}
