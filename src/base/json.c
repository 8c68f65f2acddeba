/* json.c - reading a tape: see json.h */
#include "base/json.h"

#include <langinfo.h>
#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/scan.h"
#include "base/text.h"

static const struct json_node *node_of(const struct json *j, json_ref r)
{
        return r < j->count ? &j->nodes[r] : NULL;
}

struct str json_raw(const struct json *j, json_ref r)
{
        const struct json_node *n = node_of(j, r);
        return n ? str_span(j->text + n->off, n->len) : str_span("", 0);
}

bool json_is_escaped(const struct json *j, json_ref r)
{
        return json_type(j, r) == JSON_STRING && (j->nodes[r].info & JSON_ESCAPED);
}

static bool is_container(const struct json *j, json_ref r)
{
        enum json_type t = json_type(j, r);
        return t == JSON_ARRAY || t == JSON_OBJECT;
}

uint32_t json_count(const struct json *j, json_ref r)
{
        if (!is_container(j, r))
                return 0;
        uint32_t n = j->nodes[r].info >> JSON_COUNT_SHIFT;
        if (n < JSON_COUNT_MAX)
                return n;
        n = 0;
        for (json_ref c = json_child(j, r); c != JSON_NONE; c = json_next(j, r, c))
                n++;
        return json_type(j, r) == JSON_OBJECT ? n / 2 : n;
}

json_ref json_at(const struct json *j, json_ref arr, uint32_t i)
{
        if (json_type(j, arr) != JSON_ARRAY)
                return JSON_NONE;
        json_ref r = json_child(j, arr);
        while (i-- > 0 && r != JSON_NONE)
                r = json_next(j, arr, r);
        return r;
}

json_ref json_get(const struct json *j, json_ref obj, const char *key)
{
        if (json_type(j, obj) != JSON_OBJECT)
                return JSON_NONE;
        struct str want = str_of(key);
        json_ref found = JSON_NONE;
        json_ref end = j->nodes[obj].next;
        for (json_ref k = obj + 1; k < end; k = j->nodes[k + 1].next) {
                const struct json_node *n = &j->nodes[k];
                if (n->info & JSON_ESCAPED
                        ? json_is_str(j, k, want)
                        : n->len == want.n + 2 && memcmp(j->text + n->off + 1, want.p, want.n) == 0)
                        found = k + 1;
        }
        return found;
}

/* ---- escapes ---- */

static uint32_t hex4(const char *p)
{
        uint32_t v = 0;
        for (int i = 0; i < 4; i++) {
                unsigned char c = (unsigned char)p[i];
                v = v << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        }
        return v;
}

static uint32_t plain_escape(char c)
{
        switch (c) {
        case 'b':
                return '\b';
        case 'f':
                return '\f';
        case 'n':
                return '\n';
        case 'r':
                return '\r';
        case 't':
                return '\t';
        default:
                return (unsigned char)c;
        }
}

/* The code point of the escape at `p`, 0xD800..0xDFFF for a lone surrogate; *used is its length.
 * Spans from outside a tape may end too early: what is missing reads as the bytes themselves. */
static uint32_t decode_escape(const char *p, size_t n, size_t *used)
{
        *used = n < 2 ? n : 2;
        if (n < 2)
                return '\\';
        if (p[1] != 'u')
                return plain_escape(p[1]);
        if (n < 6)
                return 'u';
        *used = 6;
        uint32_t hi = hex4(p + 2);
        if (hi < 0xD800 || hi > 0xDBFF || n < 12 || p[6] != '\\' || p[7] != 'u')
                return hi;
        uint32_t lo = hex4(p + 8);
        if (lo < 0xDC00 || lo > 0xDFFF)
                return hi;
        *used = 12;
        return 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
}

static bool is_surrogate(uint32_t cp)
{
        return cp >= 0xD800 && cp <= 0xDFFF;
}

static bool escaped_equals(struct str inner, struct str want)
{
        size_t i = 0;
        size_t k = 0;
        while (i < inner.n) {
                char unit[4] = {inner.p[i]};
                size_t len = 1;
                size_t used = 1;
                if (inner.p[i] == '\\') {
                        uint32_t cp = decode_escape(inner.p + i, inner.n - i, &used);
                        if (is_surrogate(cp))
                                return false;
                        len = text_encode_to(cp, unit);
                }
                if (want.n - k < len || memcmp(want.p + k, unit, len) != 0)
                        return false;
                k += len;
                i += used;
        }
        return k == want.n;
}

bool json_is_str(const struct json *j, json_ref r, struct str s)
{
        if (json_type(j, r) != JSON_STRING)
                return false;
        struct str inner = json_inner(j, r);
        if (!(j->nodes[r].info & JSON_ESCAPED))
                return str_eq(inner, s);
        return escaped_equals(inner, s);
}

/* The byte that a backslash and this one stand for; 0: more than one, or not ASCII. */
static const char short_escapes[256] = {['"'] = '"',
    ['\\'] = '\\',
    ['/'] = '/',
    ['b'] = '\b',
    ['f'] = '\f',
    ['n'] = '\n',
    ['r'] = '\r',
    ['t'] = '\t'};

size_t json_unescape_to(struct str inner, char *to, bool *lossy)
{
        const char *p = inner.p;
        const char *end = inner.p + inner.n;
        char *at = to;
        while (p < end) {
                p = scan_copy_plain(p, end, &at);
                if (p == end)
                        break;
                char one = end - p >= 2 ? short_escapes[(unsigned char)p[1]] : 0;
                if (one) {
                        *at++ = one;
                        p += 2;
                        continue;
                }
                size_t used;
                uint32_t cp = decode_escape(p, (size_t)(end - p), &used);
                if (is_surrogate(cp)) {
                        cp = 0xFFFD;
                        if (lossy)
                                *lossy = true;
                }
                char unit[4];
                size_t len = text_encode_to(cp, unit);
                memcpy(at, unit, len);
                at += len;
                p += used;
        }
        return (size_t)(at - to);
}

/* What is decoded is never longer than its escapes, so room for all is taken once. */
void json_unescape(struct str inner, struct buf *out, bool *lossy)
{
        char *to = inner.n ? buf_reserve(out, inner.n) : NULL;
        if (to)
                out->n += json_unescape_to(inner, to, lossy);
}

bool json_string(const struct json *j, json_ref r, struct buf *out, bool *lossy)
{
        if (json_type(j, r) != JSON_STRING)
                return false;
        if (json_is_escaped(j, r))
                json_unescape(json_inner(j, r), out, lossy);
        else
                buf_put_str(out, json_inner(j, r));
        return true;
}

char *json_dup_string(const struct json *j, json_ref r)
{
        struct buf b;
        buf_init(&b, 0);
        char *z = json_string(j, r, &b, NULL) ? buf_take(&b, NULL) : NULL;
        buf_release(&b);
        return z;
}

bool json_copy_string(const struct json *j, json_ref obj, const char *key, char *to, size_t size)
{
        struct buf b;
        buf_init(&b, 64 * KIB);
        json_string(j, json_get(j, obj, key), &b, NULL);
        size_t n = b.n ? text_floor(b.p, b.n, size - 1) : 0;
        if (n)
                memcpy(to, b.p, n);
        to[n] = '\0';
        bool failed = b.failed == STENO_ENOMEM;
        buf_release(&b);
        return !failed;
}

/* ---- numbers ---- */

static bool digits_u64(struct str s, uint64_t *out)
{
        uint64_t v = 0;
        if (s.n == 0)
                return false;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                if (__builtin_mul_overflow(v, 10, &v) ||
                    __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
                        return false;
        }
        *out = v;
        return true;
}

bool json_u64(const struct json *j, json_ref r, uint64_t *out)
{
        return json_type(j, r) == JSON_NUMBER && digits_u64(json_raw(j, r), out);
}

bool json_i64(const struct json *j, json_ref r, int64_t *out)
{
        if (json_type(j, r) != JSON_NUMBER)
                return false;
        struct str s = json_raw(j, r);
        bool minus = s.p[0] == '-';
        uint64_t v;
        if (!digits_u64(str_span(s.p + minus, s.n - minus), &v))
                return false;
        if (v > (uint64_t)INT64_MAX + minus)
                return false;
        *out = minus ? (int64_t)(0 - v) : (int64_t)v;
        return true;
}

/* strtod reads the decimal point of the program's locale. */
static bool span_double(struct str s, char *room, double *out)
{
        const char *point = nl_langinfo(RADIXCHAR);
        size_t point_len = strlen(point);
        char *to = room;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '.') {
                        memcpy(to, point, point_len);
                        to += point_len;
                } else {
                        *to++ = s.p[i];
                }
        }
        *to = '\0';
        double v = strtod(room, NULL);
        if (!isfinite(v))
                return false;
        *out = v;
        return true;
}

bool json_double(const struct json *j, json_ref r, double *out)
{
        if (json_type(j, r) != JSON_NUMBER)
                return false;
        struct str s = json_raw(j, r);
        char small[128];
        if (s.n < sizeof small - 16)
                return span_double(s, small, out);
        char *room = malloc(s.n + 16);
        bool ok = room && span_double(s, room, out);
        free(room);
        return ok;
}

bool json_bool(const struct json *j, json_ref r, bool fallback)
{
        switch (json_type(j, r)) {
        case JSON_TRUE:
                return true;
        case JSON_FALSE:
                return false;
        default:
                return fallback;
        }
}
