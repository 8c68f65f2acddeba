/* names.c - see names.h */
#include "format/names.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define HASH_DIGITS 8

static struct names_slot *find(struct names_slot *slots, size_t cap, struct str name)
{
        for (size_t k = hash_64(name.p, name.n);; k++) {
                struct names_slot *s = &slots[k & (cap - 1)];
                if (!s->name.p || str_eq(s->name, name))
                        return s;
        }
}

static bool grow(struct names *n)
{
        if (n->count * 2 < n->cap)
                return true;
        size_t cap = n->cap ? n->cap * 2 : 32;
        struct names_slot *to = arena_zalloc(n->arena, cap * sizeof *to);
        if (!to)
                return false;
        for (size_t i = 0; i < n->cap; i++)
                if (n->slots[i].name.p)
                        *find(to, cap, n->slots[i].name) = n->slots[i];
        n->slots = to;
        n->cap = cap;
        return true;
}

/* Writes the tool `of` under `name`, unless `name` is already used for another tool. */
static bool take(struct names *n, struct str name, struct str of)
{
        if (!grow(n))
                return false;
        struct names_slot *s = find(n->slots, n->cap, name);
        if (s->name.p)
                return str_eq(s->of, of);
        *s = (struct names_slot){.name = name, .of = of};
        n->count++;
        return true;
}

void names_take(struct names *n, struct str name)
{
        take(n, name, name);
}

static bool is_kept(const struct rules *r, char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || (c && r->name_also && strchr(r->name_also, c));
}

/* Returns the name with _ for each character that the provider does not accept, with room for a
 * hash behind it. */
static char *replaced(const struct names *n, struct str name, size_t *length)
{
        const struct rules *r = n->rules;
        char *to = arena_alloc(n->arena, name.n + HASH_DIGITS + 3);
        size_t k = 0;
        if (!to)
                return NULL;
        if (r->name_letter && name.n && is_kept(r, name.p[0]) &&
            !rules_is_name(r, str_span(name.p, 1)))
                to[k++] = '_';
        for (size_t i = 0; i < name.n; i++)
                to[k++] = is_kept(r, name.p[i]) ? name.p[i] : '_';
        *length = k;
        return to;
}

struct str names_map(struct names *n, struct str name)
{
        size_t length, most = n->rules->name_max;
        if (rules_is_name(n->rules, name) && take(n, name, name))
                return name;
        char *to = replaced(n, name, &length);
        if (!to)
                return (struct str){0};
        if (length && length <= most && take(n, str_span(to, length), name))
                return str_span(to, length);
        if (length > most - HASH_DIGITS - 1)
                length = most - HASH_DIGITS - 1;
        snprintf(to + length, HASH_DIGITS + 2, "_%0*x", HASH_DIGITS,
            (unsigned)(hash_64(name.p, name.n) & 0xffffffff));
        length += HASH_DIGITS + 1;
        take(n, str_span(to, length), name);
        return str_span(to, length);
}
