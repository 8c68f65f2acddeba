/* strategies_parse.c - reads edit_strategies; see strategies.h. */
#include "view/strategies.h"

#include <stdlib.h>

#include "base/error.h"
#include "model/token.h"

#define STRATEGIES_MAX 64 /* more strategies would have no further effect */

struct parsing {
        const struct json *j;
        json_ref params;
        struct arena *arena;
        const char *type;
        struct steno_error *err;
};

/* Reads a whole number of at least `least`, written as 3 or 3.0, because clients send both. */
static int take_number(
    struct parsing *p, const char *key, uint64_t least, bool required, uint64_t *out)
{
        json_ref v = json_get(p->j, p->params, key);
        double d;
        enum json_type t = json_type(p->j, v);
        if (t == JSON_NOTHING || t == JSON_NULL) {
                if (!required)
                        return 0;
                return error_set(p->err, STENO_EINVAL, "%s: %s is required", p->type, key);
        }
        if (t != JSON_NUMBER || !json_double(p->j, v, &d) || !(d > -1e15 && d < 1e15) ||
            d != (double)(int64_t)d)
                return error_set(p->err, STENO_EINVAL, "%s: %s must be an integer", p->type, key);
        if (d < (double)least)
                return error_set(p->err, STENO_EINVAL, "%s: %s must be at least %llu", p->type, key,
                    (unsigned long long)least);
        *out = (uint64_t)d;
        return 0;
}

static int take_names(struct parsing *p, const char *key, struct strategy *s)
{
        json_ref v = json_get(p->j, p->params, key);
        enum json_type t = json_type(p->j, v);
        if (t == JSON_NOTHING || t == JSON_NULL)
                return 0;
        if (t != JSON_ARRAY)
                return error_set(
                    p->err, STENO_EINVAL, "%s: %s must be an array of strings", p->type, key);
        s->keep_tools = arena_alloc(p->arena, (json_count(p->j, v) + 1) * sizeof *s->keep_tools);
        if (!s->keep_tools)
                return error_nomem(p->err);
        for (json_ref e = json_child(p->j, v); e != JSON_NONE; e = json_next(p->j, v, e)) {
                if (json_type(p->j, e) != JSON_STRING)
                        return error_set(p->err, STENO_EINVAL, "%s: %s must be an array of strings",
                            p->type, key);
                s->keep_tools[s->keep_tool_count++] = token_text(p->j, e, p->arena);
        }
        return 0;
}

static struct str trimmed(struct str s)
{
        while (s.n && strchr(" \t\r\n\v\f", s.p[0]))
                s.p++, s.n--;
        while (s.n && strchr(" \t\r\n\v\f", s.p[s.n - 1]))
                s.n--;
        return s;
}

static int take_placeholder(struct parsing *p, struct strategy *s)
{
        static const char key[] = "tool_result_placeholder";
        json_ref v = json_get(p->j, p->params, key);
        enum json_type t = json_type(p->j, v);
        s->placeholder = STR("Done");
        if (t == JSON_NOTHING || t == JSON_NULL)
                return 0;
        if (t != JSON_STRING)
                return error_set(p->err, STENO_EINVAL, "%s: %s must be a string", p->type, key);
        struct str text = trimmed(token_text(p->j, v, p->arena));
        if (text.n)
                s->placeholder = text;
        return 0;
}

static int read_remove_tool_result(struct parsing *p, struct strategy *s)
{
        s->keep_recent = 3;
        int rc = take_number(p, "keep_recent_n_tool_results", 0, false, &s->keep_recent);
        if (!rc)
                rc = take_number(p, "gt_token", 1, false, &s->gt_token);
        if (!rc)
                rc = take_placeholder(p, s);
        return rc ? rc : take_names(p, "keep_tools", s);
}

static int read_remove_tool_call_params(struct parsing *p, struct strategy *s)
{
        s->keep_recent = 3;
        int rc = take_number(p, "keep_recent_n_tool_calls", 0, false, &s->keep_recent);
        if (!rc)
                rc = take_number(p, "gt_token", 1, false, &s->gt_token);
        return rc ? rc : take_names(p, "keep_tools", s);
}

static int read_middle_out(struct parsing *p, struct strategy *s)
{
        return take_number(p, "token_reduce_to", 1, true, &s->tokens);
}

static int read_token_limit(struct parsing *p, struct strategy *s)
{
        return take_number(p, "limit_tokens", 1, true, &s->tokens);
}

static const struct {
        const char *type;
        int (*read)(struct parsing *p, struct strategy *s);
} TYPES[] = {
    [STRATEGY_REMOVE_TOOL_RESULT] = {"remove_tool_result", read_remove_tool_result},
    [STRATEGY_REMOVE_TOOL_CALL_PARAMS] = {"remove_tool_call_params", read_remove_tool_call_params},
    [STRATEGY_MIDDLE_OUT] = {"middle_out", read_middle_out},
    [STRATEGY_TOKEN_LIMIT] = {"token_limit", read_token_limit},
};

static int read_one(struct parsing *p, json_ref e, struct strategy *s)
{
        const size_t n = sizeof TYPES / sizeof *TYPES;
        json_ref type = json_get(p->j, e, "type");
        p->params = json_get(p->j, e, "params");
        if (json_type(p->j, e) != JSON_OBJECT || json_type(p->j, type) != JSON_STRING)
                return error_set(
                    p->err, STENO_EPROTO, "an edit strategy is an object with a \"type\"");
        size_t k = 0;
        while (k < n && !json_is(p->j, type, TYPES[k].type))
                k++;
        if (k == n) {
                struct str name = token_text(p->j, type, p->arena);
                return error_set(p->err, STENO_EINVAL, "unknown edit strategy \"%.*s\"",
                    (int)(name.n > 60 ? 60 : name.n), name.p ? name.p : "");
        }
        p->type = TYPES[k].type;
        enum json_type t = json_type(p->j, p->params);
        if (t != JSON_OBJECT && t != JSON_NULL && t != JSON_NOTHING)
                return error_set(p->err, STENO_EINVAL, "%s: params must be an object", p->type);
        *s = (struct strategy){.kind = (enum strategy_kind)k};
        return TYPES[k].read(p, s);
}

/* The sort is stable, because two strategies of one kind are applied in the given order. */
static void sort(struct strategy *list, size_t count)
{
        for (size_t i = 1; i < count; i++) {
                struct strategy s = list[i];
                size_t k = i;
                for (; k > 0 && list[k - 1].kind > s.kind; k--)
                        list[k] = list[k - 1];
                list[k] = s;
        }
}

static int read_all(
    struct parsing *p, struct strategy **list, size_t *count, struct steno_error *err)
{
        uint32_t n = json_count(p->j, 0);
        if (json_type(p->j, 0) != JSON_ARRAY)
                return error_set(err, STENO_EPROTO, "edit strategies are an array of objects");
        if (n > STRATEGIES_MAX)
                return error_set(err, STENO_ELIMIT, "%u edit strategies, at most %d are allowed",
                    (unsigned)n, STRATEGIES_MAX);
        struct strategy *to = arena_alloc(p->arena, (n + 1) * sizeof *to);
        if (!to)
                return error_nomem(err);
        size_t i = 0;
        for (json_ref e = json_child(p->j, 0); e != JSON_NONE; e = json_next(p->j, 0, e)) {
                int rc = read_one(p, e, &to[i++]);
                if (rc)
                        return rc;
        }
        if (p->arena->failed)
                return error_nomem(err);
        sort(to, i);
        *list = to;
        *count = i;
        return 0;
}

int strategies_parse(struct str json, struct arena *arena, struct strategy **list, size_t *count,
    struct steno_error *err)
{
        struct json j;
        json_init(&j);
        struct parsing p = {.j = &j, .arena = arena, .err = err};
        int rc = json_parse(&j, json.p, json.n, NULL, err);
        if (rc)
                error_prefix(err, rc, "invalid edit_strategies JSON");
        else
                rc = read_all(&p, list, count, err);
        json_release(&j);
        return rc;
}
