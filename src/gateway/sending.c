/*
 * sending.c - see sending.h
 */
#include "gateway/sending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "gateway/gateway_request.h"
#include "gateway/headers.h"
#include "gateway/passkeys.h"

static void add_header(struct sending *h, const char *a, struct str b)
{
        char *z = NULL;
        if (h->count >= SENDING_HEADERS + 6 ||
            asprintf(&z, "%s%.*s", a, (int)b.n, b.n ? b.p : "") < 0)
                h->failed = true;
        else
                h->headers[h->count++] = z;
}

static void list_headers(
    const struct upstream *up, const struct gateway_request *r, struct sending *h)
{
        static const char *const ours[] = {
            "host", "content-length", "accept-encoding", "expect", "x-steno-conversation", NULL};
        bool own = gateway_request_has_key(r);
        struct str connection = gateway_request_header(r, "connection");
        bool accept = false, type = false;
        for (size_t i = 0; r->headers[i] && h->count < SENDING_HEADERS; i++) {
                struct str name, value, line = str_of(r->headers[i]);
                if (!headers_split(line, &name, &value) || headers_is_hop(name, connection) ||
                    headers_name_in(name, ours) || (!own && passkeys_is_header(name)) ||
                    passkeys_in(r, line))
                        continue;
                accept = accept || headers_name_is(name, "accept");
                type = type || headers_name_is(name, "content-type");
                /* libcurl takes "Name:" for "leave it out", and "Name;" for an empty one. */
                char *z = NULL;
                if (value.n)
                        add_header(h, "", line);
                else if (asprintf(&z, "%.*s;", (int)name.n, name.p) >= 0)
                        add_header(h, z, (struct str){0});
                free(z);
        }
        add_header(h, "Accept-Encoding: identity", (struct str){0});
        add_header(h, "Expect:", (struct str){0});
        if (!accept)
                add_header(h, "Accept:", (struct str){0});
        if (!type)
                add_header(h, "Content-Type:", (struct str){0});
        if (!own)
                add_header(h, up->key_header, str_of(up->key));
        h->headers[h->count] = NULL;
}

/* The query without the key that named our token, and without our tokens. */
static void put_query(struct buf *url, const struct gateway_request *r)
{
        struct str q = r->query;
        bool first = true, own = gateway_request_has_key(r);
        while (q.n) {
                const char *amp = memchr(q.p, '&', q.n);
                size_t n = amp ? (size_t)(amp - q.p) : q.n;
                struct str one = str_span(q.p, n);
                if ((own || !passkeys_is_key(one)) && !passkeys_in(r, one)) {
                        buf_putc(url, first ? '?' : '&');
                        buf_put_str(url, one);
                        first = false;
                }
                size_t skip = n + (amp ? 1 : 0);
                q = str_span(q.p + skip, q.n - skip);
        }
}

int sending_make(struct sending *s, const struct upstream *up, const struct gateway_request *r,
    struct steno_error *err)
{
        struct buf url;
        buf_init(&url, 64 * KIB);
        buf_puts(&url, up->url);
        /* Some clients have /v1 in their base URL and some have not. */
        if (strcmp(up->name, "anthropic") == 0 && str_starts(r->rest, "/messages"))
                buf_puts(&url, "/v1");
        buf_put_str(&url, r->rest);
        put_query(&url, r);
        list_headers(up, r, s);
        snprintf(s->method, sizeof s->method, "%s", r->method);
        s->url = buf_take(&url, NULL);
        buf_release(&url);
        return s->url && !s->failed ? 0 : error_nomem(err);
}

void sending_release(struct sending *s)
{
        for (size_t i = 0; i < s->count; i++)
                free(s->headers[i]);
        free(s->url);
}
