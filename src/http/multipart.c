/* multipart.c - see multipart.h */
#include "http/multipart.h"

#include <strings.h>

/* The value of `key=` in a header, quotes removed. */
static struct str parameter(struct str header, const char *key, struct arena *arena)
{
        size_t n = strlen(key);
        for (size_t i = 0; i + n < header.n; i++) {
                if (strncasecmp(header.p + i, key, n) != 0 || header.p[i + n] != '=' ||
                    (i > 0 && header.p[i - 1] != ' ' && header.p[i - 1] != ';'))
                        continue;
                const char *p = header.p + i + n + 1, *end = header.p + header.n;
                bool quoted = p < end && *p == '"';
                const char *from = quoted ? p + 1 : p;
                const char *to = from;
                while (to < end && (quoted ? *to != '"' : *to != ';' && *to != ' '))
                        to++;
                return arena_dup(arena, str_span(from, (size_t)(to - from)));
        }
        return (struct str){0};
}

static const char *find(const char *from, const char *end, struct str what)
{
        return from < end ? memmem(from, (size_t)(end - from), what.p, what.n) : NULL;
}

static void read_headers(struct str headers, struct arena *arena, struct multipart_part *p)
{
        while (headers.n) {
                const char *crlf = find(headers.p, headers.p + headers.n, STR("\r\n"));
                struct str line = {headers.p, crlf ? (size_t)(crlf - headers.p) : headers.n};
                if (line.n > 20 && strncasecmp(line.p, "Content-Disposition:", 20) == 0) {
                        p->name = parameter(line, "name", arena);
                        p->filename = parameter(line, "filename", arena);
                } else if (line.n > 13 && strncasecmp(line.p, "Content-Type:", 13) == 0) {
                        struct str v = {line.p + 13, line.n - 13};
                        while (v.n && *v.p == ' ')
                                v = str_span(v.p + 1, v.n - 1);
                        p->type = arena_dup(arena, v);
                }
                size_t skip = line.n + (crlf ? 2 : 0);
                headers = str_span(headers.p + skip, headers.n - skip);
        }
}

bool multipart_parse(const char *type, struct str body, struct arena *arena, struct multipart *out)
{
        struct str boundary = parameter(str_of(type), "boundary", arena);
        const char *end = body.p + body.n;
        out->count = 0;
        if (!boundary.n || boundary.n > 200)
                return false;
        char *mark = arena_alloc(arena, boundary.n + 5);
        if (!mark)
                return false;
        memcpy(mark, "\r\n--", 4);
        memcpy(mark + 4, boundary.p, boundary.n);
        struct str delimiter = {mark, boundary.n + 4};
        struct str opening = {mark + 2, boundary.n + 2};
        if (body.n < opening.n || memcmp(body.p, opening.p, opening.n) != 0)
                return false;
        const char *p = body.p + opening.n;
        while (end - p >= 2 && memcmp(p, "\r\n", 2) == 0) {
                const char *from = p + 2;
                const char *blank = find(from, end, STR("\r\n\r\n"));
                const char *next = blank ? find(blank + 2, end, delimiter) : NULL;
                if (!next || out->count == MULTIPART_MAX)
                        return false;
                struct multipart_part *part = &out->parts[out->count++];
                *part = (struct multipart_part){0};
                read_headers(str_span(from, (size_t)(blank - from)), arena, part);
                const char *content = blank + 4 <= next ? blank + 4 : next;
                part->body = str_span(content, (size_t)(next - content));
                p = next + delimiter.n;
        }
        return end - p >= 2 && memcmp(p, "--", 2) == 0;
}

const struct multipart_part *multipart_find(const struct multipart *m, const char *name)
{
        for (size_t i = 0; i < m->count; i++)
                if (str_is(m->parts[i].name, name))
                        return &m->parts[i];
        return NULL;
}
