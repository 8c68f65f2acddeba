/* text.c - see text.h */
#include "base/text.h"

#include "base/scan.h"

size_t text_utf8_prefix(const char *p, size_t n)
{
        return scan_utf8(p, n);
}

/* ---- streams ---- */

static size_t length_by_lead(unsigned char c)
{
        return c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
}

/* A rest of at most three bytes is kept for the next piece when its lead asks for more than
 * there is; whether the sequence is right is only judged when it is whole. */
void text_utf8_feed(struct text_utf8 *u, const char *p, size_t n)
{
        while (u->have && n && !u->bad) {
                u->pending[u->have++] = (unsigned char)*p++;
                n--;
                if (u->have < length_by_lead(u->pending[0]))
                        continue;
                u->bad = scan_sequence(u->pending, u->have) != u->have;
                u->have = 0;
        }
        if (u->bad || n == 0)
                return;
        size_t good = scan_utf8(p, n);
        size_t rest = n - good;
        if (rest == 0)
                return;
        if (rest >= length_by_lead((unsigned char)p[good])) {
                u->bad = true;
                return;
        }
        memcpy(u->pending, p + good, rest);
        u->have = (unsigned char)rest;
}

bool text_utf8_finish(const struct text_utf8 *u)
{
        return !u->bad && u->have == 0;
}

/* ---- characters ---- */

size_t text_count_leads(const char *p, size_t n)
{
        return n - scan_continuations(p, n);
}

/* Where bytes are bad, more of them are likely to follow: a few characters are taken one by one
 * before the fast scan is tried again. */
#define SLOW_STEPS 64

size_t text_count(const char *p, size_t n)
{
        size_t count = 0;
        size_t i = 0;
        while (i < n) {
                size_t good = scan_utf8(p + i, n - i);
                count += text_count_leads(p + i, good);
                i += good;
                for (int k = 0; k < SLOW_STEPS && i < n; k++) {
                        size_t size = scan_sequence((const unsigned char *)p + i, n - i);
                        i += size ? size : 1;
                        count++;
                }
        }
        return count;
}

size_t text_bytes_of(const char *p, size_t n, size_t chars)
{
        size_t i = 0;
        while (chars > 0 && i < n) {
                size_t k = scan_sequence((const unsigned char *)p + i, n - i);
                i += k ? k : 1;
                chars--;
        }
        return i;
}

/* The character that covers the bytes on both sides of `at`: its start and length, or false. */
static bool around(const char *p, size_t n, size_t at, size_t *start, size_t *len)
{
        if (at >= n)
                return false;
        for (size_t back = 1; back <= 3 && back <= at; back++) {
                unsigned char c = (unsigned char)p[at - back];
                if ((c & 0xC0) == 0x80)
                        continue;
                *start = at - back;
                *len = scan_sequence((const unsigned char *)p + *start, n - *start);
                return *len > back;
        }
        return false;
}

size_t text_floor(const char *p, size_t n, size_t at)
{
        size_t start;
        size_t len;
        if (around(p, n, at, &start, &len))
                return start;
        return at < n ? at : n;
}

size_t text_ceil(const char *p, size_t n, size_t at)
{
        size_t start;
        size_t len;
        if (around(p, n, at, &start, &len))
                return start + len;
        return at < n ? at : n;
}

size_t text_decode(const char *p, size_t n, uint32_t *cp)
{
        const unsigned char *u = (const unsigned char *)p;
        size_t k = scan_sequence(u, n);
        switch (k) {
        case 1:
                *cp = u[0];
                return 1;
        case 2:
                *cp = (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
                return 2;
        case 3:
                *cp = (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
                return 3;
        case 4:
                *cp = (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 |
                      (u[3] & 0x3Fu);
                return 4;
        default:
                *cp = 0xFFFD;
                return n ? 1 : 0;
        }
}

#define ESCAPED 4 /* bytes of \xNN */

void text_put_escaped(struct buf *b, struct str s)
{
        for (size_t i = 0; i < s.n;) {
                size_t good = text_utf8_prefix(s.p + i, s.n - i);
                buf_put(b, s.p + i, good);
                i += good;
                if (i < s.n)
                        buf_printf(b, "\\x%02X", (unsigned char)s.p[i++]);
        }
}

size_t text_escaped_size(struct str s)
{
        size_t size = s.n;
        for (size_t i = text_utf8_prefix(s.p, s.n); i < s.n;
             i += text_utf8_prefix(s.p + i, s.n - i)) {
                size += ESCAPED - 1;
                i++;
        }
        return size;
}

size_t text_escaped_fit(struct str s, size_t room)
{
        size_t size = 0, i = 0;
        while (i < s.n) {
                uint32_t cp;
                size_t n = text_decode(s.p + i, s.n - i, &cp);
                size_t needs = n == 1 && cp == 0xFFFD ? ESCAPED : n;
                if (size + needs > room)
                        break;
                size += needs;
                i += n;
        }
        return i;
}

bool text_looks_binary(const char *p, size_t n)
{
        size_t odd = 0;
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)p[i];
                if (c == 0)
                        return true;
                odd += c >= 0x7F || (c < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != 0x1B);
        }
        return odd > n / 3;
}

void text_encode(struct buf *b, uint32_t cp)
{
        char out[4];
        size_t n = text_encode_to(cp, out);
        buf_put(b, out, n);
}

size_t text_encode_to(uint32_t cp, char out[4])
{
        if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
                cp = 0xFFFD;
        if (cp < 0x80) {
                out[0] = (char)cp;
                return 1;
        }
        if (cp < 0x800) {
                out[0] = (char)(0xC0 | cp >> 6);
                out[1] = (char)(0x80 | (cp & 0x3F));
                return 2;
        }
        if (cp < 0x10000) {
                out[0] = (char)(0xE0 | cp >> 12);
                out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
                out[2] = (char)(0x80 | (cp & 0x3F));
                return 3;
        }
        out[0] = (char)(0xF0 | cp >> 18);
        out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
        out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[3] = (char)(0x80 | (cp & 0x3F));
        return 4;
}

/* ---- numbers for people ---- */

void text_put_size(struct buf *b, uint64_t bytes)
{
        static const char units[] = "KMGTPE";
        if (bytes < 1000) {
                buf_put_u64(b, bytes);
                buf_puts(b, " B");
                return;
        }
        uint64_t tenth = 100;
        size_t unit = 0;
        uint64_t tenths;
        for (;;) {
                tenths = bytes / tenth + (bytes % tenth >= tenth / 2);
                if (tenths < 10000 || unit == sizeof units - 2)
                        break;
                tenth *= 1000;
                unit++;
        }
        buf_put_u64(b, tenths / 10);
        buf_putc(b, '.');
        buf_put_u64(b, tenths % 10);
        buf_putc(b, ' ');
        buf_putc(b, units[unit]);
        buf_putc(b, 'B');
}

void text_put_grouped(struct buf *b, uint64_t n)
{
        char out[32];
        size_t i = sizeof out;
        int digits = 0;
        do {
                if (digits && digits % 3 == 0)
                        out[--i] = ',';
                out[--i] = (char)('0' + n % 10);
                n /= 10;
                digits++;
        } while (n);
        buf_put(b, out + i, sizeof out - i);
}
