/*
 * headers.c - see headers.h
 */
#include "gateway/headers.h"

#include <string.h>
#include <strings.h>

bool headers_split(struct str line, struct str *name, struct str *value)
{
        const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
        if (!colon)
                return false;
        *name = str_trim(str_span(line.p, (size_t)(colon - line.p)));
        *value = str_trim(str_span(colon + 1, line.n - (size_t)(colon + 1 - line.p)));
        return name->n > 0;
}

bool headers_name_is(struct str name, const char *z)
{
        return name.n == strlen(z) && strncasecmp(name.p, z, name.n) == 0;
}

bool headers_name_in(struct str name, const char *const *list)
{
        for (; *list; list++)
                if (headers_name_is(name, *list))
                        return true;
        return false;
}

static const char *const HOP_BY_HOP[] = {"connection", "keep-alive", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    NULL};

static bool has_word(struct str s, const char *z)
{
        size_t n = strlen(z);
        for (size_t i = 0; i + n <= s.n; i++)
                if (strncasecmp(s.p + i, z, n) == 0)
                        return true;
        return false;
}

/* Is the name one of those that a Connection header lists, with commas between? */
static bool is_listed(struct str connection, struct str name)
{
        while (connection.n) {
                const char *comma = memchr(connection.p, ',', connection.n);
                size_t n = comma ? (size_t)(comma - connection.p) : connection.n;
                struct str one = str_trim(str_span(connection.p, n));
                if (one.n == name.n && strncasecmp(one.p, name.p, name.n) == 0)
                        return true;
                size_t skip = n + (comma ? 1 : 0);
                connection = str_span(connection.p + skip, connection.n - skip);
        }
        return false;
}

bool headers_is_hop(struct str name, struct str connection)
{
        return headers_name_in(name, HOP_BY_HOP) || is_listed(connection, name);
}

void headers_each(struct str block, void (*each)(void *ctx, struct str line), void *ctx)
{
        while (block.n) {
                const char *end = memchr(block.p, '\n', block.n);
                size_t n = end ? (size_t)(end - block.p) + 1 : block.n;
                each(ctx, str_span(block.p, n));
                block = str_span(block.p + n, block.n - n);
        }
}

struct seen {
        struct headers_body body;
        bool chunked;
};

static void look_at_length(struct headers_body *s, struct str value)
{
        int64_t length = 0;
        for (size_t i = 0; i < value.n && i < 18; i++) {
                s->wrong = s->wrong || value.p[i] < '0' || value.p[i] > '9';
                length = 10 * length + (value.p[i] - '0');
        }
        s->wrong =
            s->wrong || value.n == 0 || value.n > 18 || (s->length >= 0 && s->length != length);
        s->length = length;
}

static void look_at_header(void *ctx, struct str line)
{
        struct seen *s = ctx;
        struct str name, value;
        if (!headers_split(line, &name, &value))
                return;
        if (headers_name_is(name, "content-type"))
                s->body.stream = has_word(value, "event-stream");
        else if (headers_name_is(name, "content-encoding"))
                s->body.encoded = value.n && !headers_name_is(value, "identity");
        else if (headers_name_is(name, "content-length"))
                look_at_length(&s->body, value);
        else if (headers_name_is(name, "transfer-encoding"))
                s->chunked = true;
}

struct headers_body headers_body_of(struct str block)
{
        struct seen seen = {.body = {.length = -1}};
        headers_each(block, look_at_header, &seen);
        if (seen.chunked && seen.body.length >= 0)
                seen.body.wrong = true;
        return seen.body;
}
