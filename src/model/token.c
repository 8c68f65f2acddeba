/* token.c - see token.h */
#include "model/token.h"

#include <string.h>

#include "steno.h"

static struct str decode(struct str inner, struct arena *arena, bool *lossy)
{
        char *to = arena_alloc(arena, inner.n + 1);
        if (!to)
                return (struct str){0};
        size_t n = json_unescape_to(inner, to, lossy);
        to[n] = '\0';
        arena_trim(arena, to, inner.n + 1, n + 1);
        return str_span(to, n);
}

struct str token_text(const struct json *j, json_ref r, struct arena *arena)
{
        if (json_type(j, r) != JSON_STRING)
                return (struct str){0};
        if (json_is_escaped(j, r))
                return decode(json_inner(j, r), arena, NULL);
        return arena_dup(arena, json_inner(j, r));
}

struct str token_decode(struct str string, struct arena *arena, bool *lossy)
{
        if (!string.n || !memchr(string.p, '\\', string.n))
                return string;
        return decode(string, arena, lossy);
}

struct str token_make(struct str text, struct arena *arena)
{
        struct buf b;
        buf_init(&b, 0);
        json_put_escaped(&b, text);
        struct str string = {0};
        if (b.failed)
                arena->failed = STENO_ENOMEM;
        else
                string = arena_dup(arena, buf_str(&b));
        buf_release(&b);
        return string;
}

struct str token_join(struct str a, struct str b, struct arena *arena)
{
        if (!a.n)
                return b;
        if (!b.n)
                return a;
        char *p = arena_alloc(arena, a.n + b.n);
        if (!p)
                return (struct str){0};
        memcpy(p, a.p, a.n);
        memcpy(p + a.n, b.p, b.n);
        return str_span(p, a.n + b.n);
}

void token_sum_begin(struct token_sum *s)
{
        *s = (struct token_sum){0};
        buf_init(&s->all, 0);
}

void token_sum_add(struct token_sum *s, struct str string)
{
        if (!s->first.n) {
                if (string.p)
                        s->first = string;
                return;
        }
        if (string.n && !s->all.n)
                buf_put_str(&s->all, s->first);
        buf_put_str(&s->all, string);
}

struct str token_sum_end(struct token_sum *s, struct arena *arena)
{
        struct str all = s->all.n ? arena_dup(arena, buf_str(&s->all)) : s->first;
        if (s->all.failed) {
                arena->failed = STENO_ENOMEM;
                all = (struct str){0};
        }
        buf_release(&s->all);
        return all;
}
