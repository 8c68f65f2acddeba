/*
 * passkeys.c - see passkeys.h
 */
#include "gateway/passkeys.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/limits.h"
#include "gateway/headers.h"

#define TOKEN_MIN 16 /* no token is shorter; most words of a header are */
#define TOKEN_MAX 80
#define PREFIX "sk-ac-" /* of every token that Steno makes, with hex digits behind */
#define ESCAPES_MAX 3   /* times that a text is decoded */

bool passkeys_is_header(struct str name)
{
        static const char *const names[] = {"authorization", "x-api-key", "x-goog-api-key", NULL};
        return headers_name_in(name, names);
}

static bool is_token_char(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
}

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A token inside of a longer word is known by its beginning. */
static bool is_inside(const struct gateway_request *r, struct str word)
{
        const size_t n = strlen(PREFIX);
        for (size_t i = 0; i + n < word.n; i++) {
                size_t end = i + n;
                if (memcmp(word.p + i, PREFIX, n) != 0)
                        continue;
                while (end < word.n && is_hex(word.p[end]))
                        end++;
                /* What follows may be hex digits as well. */
                for (; end > i + n; end--)
                        if (end - i <= TOKEN_MAX && end - i >= TOKEN_MIN &&
                            r->is_token(r->is_token_ctx, str_span(word.p + i, end - i)))
                                return true;
        }
        return false;
}

/* As it stands. */
static bool is_plain(const struct gateway_request *r, struct str text)
{
        for (size_t i = 0; i < text.n; i++) {
                size_t end = i;
                while (end < text.n && is_token_char(text.p[end]))
                        end++;
                struct str word = str_span(text.p + i, end - i);
                if (word.n >= TOKEN_MIN &&
                    ((word.n <= TOKEN_MAX && r->is_token(r->is_token_ctx, word)) ||
                        is_inside(r, word)))
                        return true;
                i = end;
        }
        return false;
}

static int digit(char c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* Undoes percent escapes; what is none stays. False: there were none. */
static bool unescape(struct str text, struct buf *out)
{
        bool any = false;
        for (size_t i = 0; i < text.n; i++) {
                int hi = i + 2 < text.n && text.p[i] == '%' ? digit(text.p[i + 1]) : -1;
                int lo = hi >= 0 ? digit(text.p[i + 2]) : -1;
                buf_putc(out, lo >= 0 ? (char)(16 * hi + lo) : text.p[i]);
                i += lo >= 0 ? 2 : 0;
                any = any || lo >= 0;
        }
        return any;
}

static bool is_base64_char(char c)
{
        return is_token_char(c) || c == '+' || c == '/' || c == '=';
}

/* Each word that is base64, decoded. */
static bool is_encoded(const struct gateway_request *r, struct str text)
{
        bool found = false;
        for (size_t i = 0; i < text.n && !found; i++) {
                size_t end = i;
                while (end < text.n && is_base64_char(text.p[end]))
                        end++;
                struct str word = str_span(text.p + i, end - i);
                i = end;
                if (word.n < 24 || word.n % 4)
                        continue;
                size_t n = word.n / 4 * 3;
                n -= (word.p[word.n - 1] == '=') + (word.p[word.n - 2] == '=');
                char *plain = malloc(n + 1);
                found = !plain || (base64_take(word, plain, n) && is_plain(r, str_span(plain, n)));
                free(plain);
        }
        return found;
}

bool passkeys_in(const struct gateway_request *r, struct str text)
{
        struct buf a, b;
        if (!r->is_token || text.n < TOKEN_MIN)
                return false;
        buf_init(&a, 1 * MIB);
        buf_init(&b, 1 * MIB);
        bool found = is_plain(r, text) || is_encoded(r, text);
        for (int i = 0; i < ESCAPES_MAX && !found; i++) {
                buf_clear(&b);
                if (!unescape(text, &b))
                        break;
                struct buf last = a;
                a = b;
                b = last;
                text = buf_str(&a);
                /* What cannot be looked at is not sent. */
                found = a.failed || is_plain(r, text) || is_encoded(r, text);
        }
        buf_release(&a);
        buf_release(&b);
        return found;
}

bool passkeys_is_key(struct str member)
{
        struct buf name;
        const char *equals = member.n ? memchr(member.p, '=', member.n) : NULL;
        buf_init(&name, 1 * MIB);
        unescape(str_span(member.p, equals ? (size_t)(equals - member.p) : member.n), &name);
        bool is = name.failed || str_is(buf_str(&name), "key");
        buf_release(&name);
        return is;
}

bool passkeys_as_key(const struct gateway_request *r)
{
        struct str q = r->query;
        for (size_t i = 0; r->headers[i]; i++) {
                struct str name, value;
                if (headers_split(str_of(r->headers[i]), &name, &value) &&
                    passkeys_is_header(name) && passkeys_in(r, value))
                        return true;
        }
        while (q.n) {
                const char *amp = memchr(q.p, '&', q.n);
                size_t n = amp ? (size_t)(amp - q.p) : q.n;
                struct str one = str_span(q.p, n);
                if (passkeys_is_key(one) && passkeys_in(r, one))
                        return true;
                size_t skip = n + (amp ? 1 : 0);
                q = str_span(q.p + skip, q.n - skip);
        }
        return false;
}
