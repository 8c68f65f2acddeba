/*
 * http_check.c - what is refused before a handler sees it: headers that two parties could read
 * differently, hosts and origins that are not ours, bodies of the wrong kind or size.
 *
 * libmicrohttpd takes the first of several Content-Length or Host headers and lets Content-Length
 * stand beside Transfer-Encoding; a proxy in front may do otherwise. So: one length, one host.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "http/server_core.h"
#include "http/http_limits.h"
#include "http/libmhd.h"

#define LINE_END 2 /* CR LF */

struct header_count {
        unsigned all;
        unsigned lengths;
        unsigned hosts;
        unsigned encodings;
        unsigned types;
        unsigned authorizations;
        bool bad;
        const char *end; /* of the last value, as we see it */
};

/*
 * libmicrohttpd before 0.9.76 joins a folded line to the header's name instead of its value, so
 * that "Content-Length:\r\n 5" is a header "Content-Length5", and a body becomes the next request.
 * The name has then been moved: its value no longer stands right behind it.
 */
static bool is_folded(const char *key, const char *value)
{
#if MHD_VERSION < 0x00097600
        uintptr_t end = (uintptr_t)key + strlen(key) + 1, at = (uintptr_t)value;
        if (!value || at < end || at - end > SERVER_CONNECTION_MEMORY)
                return value != NULL;
        return strspn(key + strlen(key) + 1, " \t") < at - end;
#else
        (void)key;
        (void)value;
        return false;
#endif
}

static enum MHD_Result count_header(
    void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
        struct header_count *c = cls;
        (void)kind;
        c->all++;
        if (strcasecmp(key, "Content-Length") == 0)
                c->lengths++;
        else if (strcasecmp(key, "Host") == 0)
                c->hosts++;
        else if (strcasecmp(key, "Transfer-Encoding") == 0)
                c->encodings++;
        else if (strcasecmp(key, "Content-Type") == 0)
                c->types++;
        else if (strcasecmp(key, "Authorization") == 0)
                c->authorizations++;
        c->bad = c->bad || is_folded(key, value);
        /* A value is a C string here: we do not see what follows a NUL in it, but other programs
         * do. Lines end with CR LF, so the next name stands two bytes behind the value. */
        c->bad = c->bad || (c->end && key - c->end != LINE_END);
        c->end = value ? value + strlen(value) : NULL;
        /* A name with white space in it, or a value with control characters, is refused: only
         * attacks send them. */
        for (const char *p = key; *p; p++)
                c->bad = c->bad || *p <= ' ' || *p == 127 || *p == ':';
        for (const char *p = value ? value : ""; *p; p++)
                c->bad = c->bad || ((unsigned char)*p < ' ' && *p != '\t') || *p == 127;
        return MHD_YES;
}

/* The headers end with an empty line, at the place where the library says. */
static bool ends_early(struct request *r, const char *method, const char *end)
{
        const union MHD_ConnectionInfo *info =
            libmhd.get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        return end && info && method + info->header_size - end != 2 * LINE_END;
}

static bool is_number(const char *z)
{
        if (!*z || strlen(z) > 18)
                return false;
        for (; *z; z++)
                if (!isdigit((unsigned char)*z))
                        return false;
        return true;
}

/* Are there only blanks between the end of a word of the request line and the next word? The
 * library ended the first with a NUL in place of one. */
static bool is_gap(const char *end, const char *next)
{
        if ((uintptr_t)next <= (uintptr_t)end || (size_t)(next - end) > SERVER_CONNECTION_MEMORY)
                return false;
        for (const char *p = end + 1; p < next; p++)
                if (*p != ' ' && *p != '\t')
                        return false;
        return true;
}

/* Its words are C strings here: we do not see what follows a NUL in one, but other programs do. */
int http_check_line(
    const struct request *r, const char *method, const char *version, const char **why)
{
        if (is_gap(method + strlen(method), r->target) && is_gap(r->target_end, version))
                return 0;
        *why = "a request line with characters that are not allowed";
        return 400;
}

int http_check_headers(struct server *s, struct request *r, const char *method, const char **why)
{
        struct header_count c = {0};
        (void)s;
        libmhd.get_connection_values(r->connection, MHD_HEADER_KIND, count_header, &c);
        const char *length = request_header(r, "Content-Length");
        const char *encoding = request_header(r, "Transfer-Encoding");
        if (c.all > SERVER_HEADERS_MAX) {
                *why = "too many headers";
                return 431;
        }
        if (c.bad || ends_early(r, method, c.end))
                *why = "a header that is folded or has characters that are not allowed";
        else if (c.hosts != 1)
                *why = "there must be exactly one Host";
        else if (c.lengths > 1 || (length && !is_number(length)))
                *why = "Content-Length must be one number";
        else if (c.encodings > 1 || (encoding && strcasecmp(encoding, "chunked") != 0))
                *why = "Transfer-Encoding must be chunked, once";
        else if (c.encodings && c.lengths)
                *why = "Content-Length and Transfer-Encoding exclude each other";
        else if (c.types > 1 || c.authorizations > 1)
                *why = "a header that may occur once occurs twice";
        else
                return 0;
        return 400;
}

struct room {
        size_t fields;
        size_t text; /* beside that of the headers, which the library counts */
};

static enum MHD_Result count_field(
    void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
        struct room *room = cls;
        room->fields++;
        if (kind == MHD_COOKIE_KIND || kind == MHD_FOOTER_KIND)
                room->text += strlen(key) + (value ? strlen(value) : 0) + 2 * LINE_END;
        return MHD_YES;
}

/*
 * The library has one piece of memory for all that it knows of a request and for the head of the
 * answer. If that is full, the library closes the connection without an answer, perhaps after the
 * request was carried out. So the room is checked before.
 */
bool http_check_room(struct request *r)
{
        struct room room = {0};
        const union MHD_ConnectionInfo *info =
            libmhd.get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        libmhd.get_connection_values(
            r->connection, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_FOOTER_KIND, count_field, &room);
        size_t used = room.text + room.fields * SERVER_FIELD_MEMORY;
        return used + (info ? info->header_size : 0) + SERVER_HEAD_MEMORY <=
               SERVER_CONNECTION_MEMORY;
}

static bool is_port(const char *z)
{
        return *z == '\0' || (*z == ':' && (z[1] == '\0' || is_number(z + 1)));
}

/* "name:port" or "[::1]:port" without its port; empty when it is neither. */
static struct str host_name(const char *host)
{
        const char *end = host[0] == '[' ? strchr(host, ']') : host + strcspn(host, ":");
        if (!end)
                return (struct str){0};
        end += host[0] == '[';
        return is_port(end) ? str_span(host, (size_t)(end - host)) : (struct str){0};
}

static bool host_allowed(const struct server *s, struct str host)
{
        for (char **h = s->hosts; host.n && *h; h++)
                if (strlen(*h) == host.n && strncasecmp(*h, host.p, host.n) == 0)
                        return true;
        return false;
}

int http_check_origin(struct server *s, struct request *r, const char **why)
{
        const char *host = request_header(r, "Host");
        const char *origin = request_header(r, "Origin");
        /* This alone stops DNS rebinding: a page of another name has that name in Host. */
        if (!host || !host_allowed(s, host_name(host))) {
                *why = "this Host is not served here";
                return 403;
        }
        if (!origin)
                return 0;
        struct str o = str_of(origin);
        struct str name = {0};
        if (str_starts(o, "http://"))
                name = host_name(origin + 7);
        else if (str_starts(o, "https://"))
                name = host_name(origin + 8);
        if (name.n && host_allowed(s, name)) {
                /* Another port is another site. */
                const char *at = strstr(origin, "://") + 3;
                if (strcasecmp(at, host) == 0)
                        return 0;
        }
        *why = "this Origin is not allowed here";
        return 403;
}

static bool type_is(const char *type, const char *want)
{
        size_t n = strlen(want);
        return type && strncasecmp(type, want, n) == 0 &&
               (type[n] == '\0' || type[n] == ';' || type[n] == ' ');
}

int http_check_body(struct request *r, const char **why)
{
        const char *length = request_header(r, "Content-Length");
        const char *type = request_header(r, "Content-Type");
        bool chunked = request_header(r, "Transfer-Encoding") != NULL;
        unsigned long long n = length ? strtoull(length, NULL, 10) : 0;
        if (n > r->route->body_max) {
                *why = "the body is too large";
                return 413;
        }
        if (n == 0 && !chunked)
                return 0; /* an empty body needs no type */
        if (type_is(type, "application/json"))
                return 0;
        if (r->route->flags & ROUTE_BYTES)
                return 0;
        if ((r->route->flags & ROUTE_MULTIPART) && type_is(type, "multipart/form-data"))
                return 0;
        *why = "the body must be application/json";
        return 415;
}
