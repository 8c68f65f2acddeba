/*
 * doubles.c - see doubles.h
 */
#include "gateway/doubles.h"

#include <stdlib.h>
#include <string.h>

#define FEW 16 /* members that are compared each with each; more are sorted */

static int by_bytes(const void *a, const void *b)
{
        const struct str *x = a, *y = b;
        int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
        return order ? order : (x->n > y->n) - (x->n < y->n);
}

static int find_in(const struct json *j, json_ref obj, struct str *name)
{
        uint32_t count = json_count(j, obj), n = 0;
        struct str few[FEW];
        struct str *list = count > FEW ? malloc(count * sizeof *list) : few;
        if (!list)
                return STENO_ENOMEM;
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k))
                list[n++] = json_inner(j, k);
        if (list != few)
                qsort(list, n, sizeof *list, by_bytes);
        for (uint32_t i = 1; i < n && !name->p; i++)
                for (uint32_t at = list == few ? 0 : i - 1; at < i && !name->p; at++)
                        if (str_eq(list[at], list[i]))
                                *name = list[i];
        if (list != few)
                free(list);
        return 0;
}

int doubles_find(const struct json *j, struct str *name)
{
        *name = (struct str){0};
        for (json_ref r = 0; r < j->count && !name->p; r++)
                if (json_type(j, r) == JSON_OBJECT && json_count(j, r) > 1 &&
                    find_in(j, r, name) != 0)
                        return STENO_ENOMEM;
        return 0;
}
