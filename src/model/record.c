/* record.c - see record.h */
#include "model/record.h"

#include <string.h>

#include "base/hash.h"
#include "base/json.h"

/* `,"crc":"9ae0daaf"}` */
#define TAIL_LEN 18
#define CRC_AT 8

static const char HEX[] = "0123456789abcdef";

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
        if (out->failed)
                return;
        uint32_t crc = hash_crc32c(0, out->p + start, out->n - start);
        char tail[TAIL_LEN + 1] = ",\"crc\":\"00000000\"}\n";
        for (int i = 7; i >= 0; i--, crc >>= 4)
                tail[CRC_AT + i] = HEX[crc & 15];
        buf_put(out, tail, sizeof tail);
}

/* ---- reading by position ---- */

struct scan {
        const char *p;
        const char *end;
};

static bool take(struct scan *s, const char *lit, size_t n)
{
        if ((size_t)(s->end - s->p) < n || memcmp(s->p, lit, n) != 0)
                return false;
        s->p += n;
        return true;
}
#define TAKE(s, lit) take(s, lit, sizeof(lit) - 1)

static bool take_u64(struct scan *s, uint64_t *v)
{
        const char *start = s->p;
        uint64_t n = 0;
        while (s->p < s->end && *s->p >= '0' && *s->p <= '9' && s->p - start < 19)
                n = n * 10 + (uint64_t)(*s->p++ - '0');
        *v = n;
        return s->p > start;
}

/* The inside of a string whose opening quote has been taken; takes the closing one. */
static bool take_string(struct scan *s, struct str *v)
{
        const char *start = s->p;
        for (; s->p < s->end; s->p++) {
                if (*s->p == '\\')
                        s->p++;
                else if (*s->p == '"')
                        break;
        }
        if (s->p >= s->end)
                return false;
        *v = str_span(start, (size_t)(s->p - start));
        s->p++;
        return true;
}

/* An object, brackets balanced outside of strings. */
static bool take_object(struct scan *s, struct str *v)
{
        const char *start = s->p;
        struct str skipped;
        int depth = 0;
        while (s->p < s->end) {
                switch (*s->p++) {
                case '"':
                        if (!take_string(s, &skipped))
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
        if (line.n < TAIL_LEN || line.p[line.n - 1] != '}')
                return false;
        struct scan s = {line.p, line.p + line.n - TAIL_LEN};
        uint64_t index, count;
        struct record r = {.line = line};
        if (!TAKE(&s, "{\"v\":1,\"seq\":") || !take_u64(&s, &r.seq) || !TAKE(&s, ",\"id\":\"") ||
            !take_string(&s, &r.id) || !TAKE(&s, ",\"at\":\"") || !take_string(&s, &r.at) ||
            !TAKE(&s, ",\"fmt\":\"") || !take_string(&s, &r.fmt) || !TAKE(&s, ",\"batch\":[") ||
            !take_u64(&s, &index) || !TAKE(&s, ",") || !take_u64(&s, &count))
                return false;
        if (TAKE(&s, ",") && !take_u64(&s, &r.group))
                return false;
        if (!TAKE(&s, "],\"x\":") || !take_object(&s, &r.x) || !TAKE(&s, ",\"m\":"))
                return false;
        if (r.seq == 0 || index >= count || count > UINT32_MAX || s.p >= s.end)
                return false;
        r.batch_index = (uint32_t)index;
        r.batch_count = (uint32_t)count;
        r.m = str_span(s.p, (size_t)(s.end - s.p));
        *out = r;
        return true;
}

static bool tail_matches(struct str line)
{
        const char *tail = line.p + line.n - TAIL_LEN;
        if (memcmp(tail, ",\"crc\":\"", CRC_AT) != 0 || memcmp(tail + 16, "\"}", 2) != 0)
                return false;
        uint32_t crc = hash_crc32c(0, line.p, line.n - TAIL_LEN);
        for (int i = 7; i >= 0; i--, crc >>= 4)
                if (tail[CRC_AT + i] != HEX[crc & 15])
                        return false;
        return true;
}

bool record_read(struct str line, struct record *out)
{
        return line.n >= TAIL_LEN && tail_matches(line) && record_peek(line, out);
}
