/*
 * toolset.c - the tools that a model is offered: names, look-up, and the callbacks that a C program
 * registers. It owns copies of strings, and the sources that were handed to it. It knows nothing of
 * runs or of how a call is executed.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "tool/tool.h"

#define TOOL_NAME_MAX 64 /* the maximum of OpenAI-compatible endpoints */

struct thing {
        struct thing *next;
        void *thing;
        void (*release)(void *thing);
};

struct toolset_things {
        atomic_uint refs; /* one for the set, and one for each call that runs */
        struct thing *first;
};

void toolset_init(struct steno_tools *set)
{
        *set = (struct steno_tools){0};
}

static int make_things(struct steno_tools *set, struct steno_error *err)
{
        if (set->things)
                return 0;
        set->things = calloc(1, sizeof(*set->things));
        if (!set->things)
                return error_nomem(err);
        atomic_init(&set->things->refs, 1);
        return 0;
}

static void drop_things(struct toolset_things *things)
{
        if (!things || atomic_fetch_sub(&things->refs, 1) != 1)
                return;
        while (things->first) {
                struct thing *t = things->first;
                things->first = t->next;
                t->release(t->thing);
                free(t);
        }
        free(things);
}

void toolset_release(struct steno_tools *set)
{
        drop_things(set->things);
        free(set->list);
        *set = (struct steno_tools){0};
}

void toolset_hold(const struct tool *tool)
{
        if (tool->things)
                atomic_fetch_add(&tool->things->refs, 1);
}

void toolset_let_go(const struct tool *tool)
{
        drop_things(tool->things);
}

bool toolset_name_ok(struct str name)
{
        if (name.n == 0 || name.n > TOOL_NAME_MAX)
                return false;
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];
                bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-';
                if (!ok)
                        return false;
        }
        return true;
}

const struct tool *toolset_find(const struct steno_tools *set, struct str name)
{
        for (size_t i = 0; set && i < set->count; i++) {
                const struct tool *t = &set->list[i];
                if (str_is(name, t->name) || (t->alias && str_is(name, t->alias)))
                        return t;
        }
        return NULL;
}

static int check_schema(const struct tool *tool, struct steno_error *err)
{
        if (tool->schema.n == 0)
                return 0;
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, tool->schema.p, tool->schema.n, NULL, err);
        if (rc == STENO_EPROTO || (rc == 0 && json_type(&j, 0) != JSON_OBJECT))
                rc = error_set(
                    err, STENO_EINVAL, "tool \"%s\": its schema is not a JSON object", tool->name);
        json_release(&j);
        return rc;
}

int toolset_add(struct steno_tools *set, const struct tool *tool, struct steno_error *err)
{
        if (!tool->name || !toolset_name_ok(str_of(tool->name)))
                return error_set(err, STENO_EINVAL,
                    "tool \"%.80s\": a name is 1 to 64 of a-z, A-Z, 0-9, _ and -",
                    tool->name ? tool->name : "");
        if (toolset_find(set, str_of(tool->name)) ||
            (tool->alias && toolset_find(set, str_of(tool->alias))))
                return error_set(
                    err, STENO_ECONFLICT, "tool \"%s\": the name is already used", tool->name);
        int rc = check_schema(tool, err);
        if (rc == 0)
                rc = make_things(set, err);
        if (rc)
                return rc;
        if (!grow_room(set->list, set->count, set->cap))
                return error_nomem(err);
        struct tool *added = &set->list[set->count++];
        *added = *tool;
        if (!added->things)
                added->things = set->things;
        return 0;
}

int toolset_own(
    struct steno_tools *set, void *thing, void (*release)(void *thing), struct steno_error *err)
{
        struct thing *t = make_things(set, err) == 0 ? malloc(sizeof(*t)) : NULL;
        if (!t) {
                release(thing);
                return error_nomem(err);
        }
        *t = (struct thing){set->things->first, thing, release};
        set->things->first = t;
        return 0;
}

const char *toolset_strdup(struct steno_tools *set, struct str s)
{
        char *copy = malloc(s.n + 1);
        if (!copy)
                return NULL;
        if (s.n)
                memcpy(copy, s.p, s.n);
        copy[s.n] = '\0';
        return toolset_own(set, copy, free, NULL) == 0 ? copy : NULL;
}

const char *const *toolset_strings(struct steno_tools *set, const char *const *list)
{
        size_t n = 0;
        while (list && list[n])
                n++;
        const char **copy = calloc(n + 1, sizeof(*copy));
        if (!copy || toolset_own(set, copy, free, NULL) != 0)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                copy[i] = toolset_strdup(set, str_of(list[i]));
                if (!copy[i])
                        return NULL;
        }
        return copy;
}

int toolset_approval(struct str name, struct str args, char out[65])
{
        struct sha256 s;
        int rc = hash_sha256_init(&s);
        if (rc)
                return rc;
        unsigned char sum[SHA256_SIZE];
        hash_sha256_update(&s, name.p, name.n);
        hash_sha256_update(&s, "", 1); /* a separator: names contain no NUL */
        hash_sha256_update(&s, args.p, args.n);
        hash_sha256_finish(&s, sum);
        hash_hex(sum, sizeof(sum), out);
        return 0;
}

int toolset_call_approval(const char *run, uint64_t request, const char *call_id, struct str name,
    struct str args, char out[65])
{
        char number[24];
        struct sha256 s;
        int rc = hash_sha256_init(&s);
        if (rc)
                return rc;
        unsigned char sum[SHA256_SIZE];
        /* Each part but the last ends with a NUL, and no part contains one. */
        snprintf(number, sizeof(number), "%llu", (unsigned long long)request);
        hash_sha256_update(&s, run, strlen(run) + 1);
        hash_sha256_update(&s, number, strlen(number) + 1);
        hash_sha256_update(&s, call_id, strlen(call_id) + 1);
        hash_sha256_update(&s, name.p, name.n);
        hash_sha256_update(&s, "", 1);
        hash_sha256_update(&s, args.p, args.n);
        hash_sha256_finish(&s, sum);
        hash_hex(sum, sizeof(sum), out);
        return 0;
}

/* ---- callbacks of C programs ---- */

static int callback_call(const struct tool *self, struct steno_tool_call *call,
    struct tool_result *result, struct steno_error *err)
{
        (void)result;
        return self->fn(self->ctx, call, err);
}

int steno_tools_new(struct steno_tools **out, struct steno_error *err)
{
        struct steno_tools *set = malloc(sizeof(*set));
        if (!set)
                return error_nomem(err);
        toolset_init(set);
        *out = set;
        return 0;
}

void steno_tools_free(struct steno_tools *set)
{
        if (!set)
                return;
        toolset_release(set);
        free(set);
}

int steno_tools_add(struct steno_tools *set, const char *name, const char *description,
    const char *schema, uint32_t flags, steno_tool_fn fn, void *ctx, struct steno_error *err)
{
        if (!name || !fn)
                return error_set(err, STENO_EINVAL, "a tool needs a name and a function");
        struct tool tool = {.flags = flags, .call = callback_call, .fn = fn, .ctx = ctx};
        tool.name = toolset_strdup(set, str_of(name));
        tool.description = description ? toolset_strdup(set, str_of(description)) : NULL;
        const char *copy = schema ? toolset_strdup(set, str_of(schema)) : NULL;
        if (!tool.name || (description && !tool.description) || (schema && !copy))
                return error_nomem(err);
        tool.schema = str_of(copy);
        return toolset_add(set, &tool, err);
}
