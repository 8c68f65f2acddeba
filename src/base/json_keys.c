/*
 * json_keys.c - known keys, suggestions, and typed members with errors that say where.
 */
#include "base/json_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define NAME_MOST 63 /* longer names are not compared for typing mistakes */

static size_t least(size_t a, size_t b, size_t c)
{
        size_t m = a < b ? a : b;
        return m < c ? m : c;
}

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Levenshtein's distance, upper and lower case being the same. */
static size_t distance(struct str a, struct str b)
{
        size_t row[NAME_MOST + 1];

        for (size_t k = 0; k <= b.n; k++)
                row[k] = k;
        for (size_t i = 1; i <= a.n; i++) {
                size_t diagonal = row[0];
                row[0] = i;
                for (size_t k = 1; k <= b.n; k++) {
                        size_t above = row[k];
                        size_t same = lower(a.p[i - 1]) == lower(b.p[k - 1]) ? 0 : 1;
                        row[k] = least(above + 1, row[k - 1] + 1, diagonal + same);
                        diagonal = above;
                }
        }
        return row[b.n];
}

static struct str without_underscores(struct str s, char *room)
{
        size_t n = 0;

        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] != '_' && s.p[i] != '-')
                        room[n++] = s.p[i];
        return str_span(room, n);
}

/* The known name nearest to `name`, or NULL when none is near. */
static const char *suggest(const char *const *known, struct str name)
{
        const char *best = NULL;
        size_t best_distance = 0;
        char room[NAME_MOST];

        if (name.n > NAME_MOST)
                return NULL;
        name = without_underscores(name, room);
        for (size_t i = 0; known[i]; i++) {
                struct str k = str_of(known[i]);
                size_t d = distance(name, k);
                size_t tolerance = k.n < 4 ? 1 : k.n < 8 ? 2 : 3;
                if (d <= tolerance && (!best || d < best_distance)) {
                        best = known[i];
                        best_distance = d;
                }
        }
        return best;
}

bool json_keys_repeats(const struct json *j, json_ref obj)
{
        struct buf name;
        bool repeats = false;

        buf_init(&name, 0);
        for (json_ref a = json_child(j, obj); a != JSON_NONE && !repeats;
             a = json_next_key(j, obj, a)) {
                buf_clear(&name);
                json_string(j, a, &name, NULL);
                for (json_ref b = json_next_key(j, obj, a); b != JSON_NONE && !repeats;
                     b = json_next_key(j, obj, b))
                        repeats = name.failed || json_is_str(j, b, buf_str(&name));
        }
        buf_release(&name);
        return repeats;
}

static bool is_known(const struct json *j, json_ref key, const char *const *known)
{
        for (size_t i = 0; known[i]; i++)
                if (json_is(j, key, known[i]))
                        return true;
        return false;
}

int json_keys_check(const struct json *j, json_ref obj, const char *const *known, const char *where,
    struct steno_error *err)
{
        if (json_type(j, obj) != JSON_OBJECT)
                return error_set(err, STENO_EINVAL, "%s: not an object", where);
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k)) {
                if (is_known(j, k, known))
                        continue;
                struct str name = json_inner(j, k);
                const char *near = suggest(known, name);
                int shown = name.n > 60 ? 60 : (int)name.n;
                if (near)
                        return error_set(err, STENO_EINVAL,
                            "%s: unknown key \"%.*s\", did you mean \"%s\"?", where, shown, name.p,
                            near);
                return error_set(
                    err, STENO_EINVAL, "%s: unknown key \"%.*s\"", where, shown, name.p);
        }
        if (json_keys_repeats(j, obj))
                return error_set(err, STENO_EINVAL, "%s: a key occurs twice", where);
        return 0;
}

/* A string's decoded bytes; NULL in *out when they hold a NUL or half a surrogate pair. */
static int plain_string(const struct json *j, json_ref r, char **out, struct steno_error *err)
{
        struct buf b;
        bool lossy = false;

        buf_init(&b, 0);
        json_string(j, r, &b, &lossy);
        if (lossy || (b.n && memchr(b.p, '\0', b.n))) {
                buf_release(&b);
                *out = NULL;
                return 0;
        }
        *out = buf_take(&b, NULL);
        return *out ? 0 : error_nomem(err);
}

int json_keys_string(const struct json *j, json_ref obj, const char *key, const char *where,
    char **out, struct steno_error *err)
{
        json_ref r = json_get(j, obj, key);

        *out = NULL;
        if (r == JSON_NONE)
                return 0;
        if (json_type(j, r) == JSON_STRING) {
                int rc = plain_string(j, r, out, err);
                if (rc < 0 || *out)
                        return rc;
        }
        return error_set(err, STENO_EINVAL, "%s: \"%s\" must be a string", where, key);
}

int json_keys_strings(const struct json *j, json_ref obj, const char *key, const char *where,
    char ***out, struct steno_error *err)
{
        json_ref r = json_get(j, obj, key);
        size_t n = 0;

        *out = NULL;
        if (r == JSON_NONE)
                return 0;
        char **list = calloc((size_t)json_count(j, r) + 1, sizeof(*list));
        if (!list)
                return error_nomem(err);
        int rc = json_type(j, r) == JSON_ARRAY ? 0 : STENO_EINVAL;
        for (json_ref e = json_child(j, r); rc == 0 && e != JSON_NONE; e = json_next(j, r, e)) {
                rc = json_type(j, e) == JSON_STRING ? plain_string(j, e, &list[n], err)
                                                    : STENO_EINVAL;
                if (rc == 0 && !list[n++])
                        rc = STENO_EINVAL;
        }
        if (rc == 0) {
                *out = list;
                return 0;
        }
        json_keys_free_list(list);
        if (rc == STENO_ENOMEM)
                return rc;
        return error_set(err, STENO_EINVAL, "%s: \"%s\" must be a list of strings", where, key);
}

int json_keys_number(const struct json *j, json_ref obj, const char *key, const char *where,
    uint64_t max, uint64_t *out, struct steno_error *err)
{
        json_ref r = json_get(j, obj, key);
        uint64_t v;

        if (r == JSON_NONE)
                return 0;
        if (!json_u64(j, r, &v) || v > max)
                return error_set(err, STENO_EINVAL,
                    "%s: \"%s\" must be a whole number from 0 to %llu", where, key,
                    (unsigned long long)max);
        *out = v;
        return 0;
}

void json_keys_free_list(char **list)
{
        for (size_t i = 0; list && list[i]; i++)
                free(list[i]);
        free(list);
}
