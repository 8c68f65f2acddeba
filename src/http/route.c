/* route.c - matching paths; the table itself is routes.c. */
#include "http/route.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/percent.h"

static struct str next_segment(struct str *path)
{
        const char *slash = memchr(path->p, '/', path->n);
        struct str s = {path->p, slash ? (size_t)(slash - path->p) : path->n};
        size_t skip = s.n + (slash ? 1 : 0);
        *path = str_span(path->p + skip, path->n - skip);
        return s;
}

static bool matches(
    const char *pattern, struct str path, struct str raw[REQUEST_PARAMS], size_t *count)
{
        struct str p = str_of(pattern);
        *count = 0;
        if (p.n && p.p[p.n - 1] == '*')
                return path.n >= p.n && memcmp(path.p, p.p, p.n - 1) == 0;
        if (p.n && path.n && p.p[0] == '/' && path.p[0] == '/') {
                p = str_span(p.p + 1, p.n - 1);
                path = str_span(path.p + 1, path.n - 1);
        }
        for (;;) {
                bool end_p = p.n == 0, end_path = path.n == 0;
                if (end_p || end_path)
                        return end_p && end_path;
                bool slash_p = memchr(p.p, '/', p.n), slash_path = memchr(path.p, '/', path.n);
                struct str a = next_segment(&p), b = next_segment(&path);
                if (a.n && a.p[0] == ':') {
                        if (b.n == 0 || *count == REQUEST_PARAMS)
                                return false;
                        raw[(*count)++] = b;
                } else if (!str_eq(a, b)) {
                        return false;
                }
                if (slash_p != slash_path)
                        return false;
                if (!slash_p)
                        return true;
        }
}

static bool decode(
    struct arena *arena, const struct str *raw, size_t count, struct str params[REQUEST_PARAMS])
{
        for (size_t i = 0; i < count; i++)
                if (!percent_decode(arena, raw[i], false, &params[i]) || !params[i].n)
                        return false;
        return true;
}

const struct route *route_find(const char *method, struct str path, struct arena *arena,
    struct str params[REQUEST_PARAMS], char allowed[ROUTE_ALLOW])
{
        allowed[0] = '\0';
        for (const struct route *r = routes_table(); r->method; r++) {
                struct str raw[REQUEST_PARAMS];
                size_t count;
                if (!matches(r->pattern, path, raw, &count))
                        continue;
                bool head = strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0;
                bool mine = strcmp(method, r->method) == 0 || head || r->method[0] == '*';
                bool legal = decode(arena, raw, count, params);
                if (mine || !legal) {
                        allowed[0] = '\0';
                        return legal ? r : NULL;
                }
                size_t n = strlen(allowed);
                snprintf(allowed + n, ROUTE_ALLOW - n, "%s%s", n ? ", " : "", r->method);
        }
        return NULL;
}

void route_put_table(struct buf *out)
{
        static const char *const SCOPES[] = {
            "open", "signed", "visitor", "session", "project", "gateway", "path"};
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        for (const struct route *r = routes_table(); r->method; r++) {
                jsonw_object(&w);
                jsonw_field_cstr(&w, "method", r->method);
                jsonw_field_cstr(&w, "path", r->pattern);
                jsonw_field_cstr(&w, "scope", SCOPES[r->scope]);
                jsonw_field_u64(&w, "bodyMax", r->body_max);
                jsonw_field_cstr(&w, "words", r->words);
                jsonw_object_end(&w);
        }
        jsonw_array_end(&w);
}
