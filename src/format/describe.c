/* describe.c - see describe.h */
#include "format/describe.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "model/token.h"

int describe_refuse(struct describe *d, const char *fmt, ...)
{
        char text[200];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        return error_set(d->err, STENO_EPROTO, "%s", text);
}

static int add(struct describe *d, struct str id, struct str **list, size_t *count, size_t *cap)
{
        if (d->arena->failed)
                return error_nomem(d->err);
        if (id.n > CALL_ID_MAX)
                return error_set(d->err, STENO_ELIMIT,
                    "a call id has %zu bytes, at most %d are allowed", id.n, CALL_ID_MAX);
        if (*count == CALLS_MAX)
                return error_set(
                    d->err, STENO_ELIMIT, "a message has more than %d calls", CALLS_MAX);
        if (*count == *cap) {
                size_t grown = *cap ? *cap * 4 : 4;
                struct str *to = arena_alloc(d->arena, grown * sizeof *to);
                if (!to)
                        return error_nomem(d->err);
                if (*count)
                        memcpy(to, *list, *count * sizeof *to);
                *list = to;
                *cap = grown;
        }
        (*list)[(*count)++] = id;
        return 0;
}

bool describe_is_id(const struct json *j, json_ref id)
{
        return json_type(j, id) == JSON_STRING && json_inner(j, id).n > 0;
}

/* Takes the id by which pairing knows a call. It is the same as repair_id returns for the message
 * that was read. */
static int take_id(
    struct describe *d, json_ref id, json_ref name, const char *what, bool by_name, struct str *out)
{
        enum json_type type = json_type(d->j, id);
        if (type != JSON_STRING && type != JSON_NOTHING && type != JSON_NULL)
                return describe_refuse(d, "%s is not a string", what);
        bool there = describe_is_id(d->j, id);
        bool known = there || (by_name && describe_is_id(d->j, name));
        if (!known && !d->out->lacks)
                d->out->lacks = what;
        d->out->no_id |= !there;
        *out = token_text(d->j, there ? id : name, d->arena);
        return 0;
}

static int take_call(struct describe *d, json_ref id, json_ref name, const char *what, bool by_name)
{
        struct str text;
        int rc = take_id(d, id, name, what, by_name, &text);
        return rc ? rc : add(d, text, &d->out->calls, &d->out->call_count, &d->call_cap);
}

static int take_answer(
    struct describe *d, json_ref id, json_ref name, const char *what, bool by_name)
{
        struct str text;
        int rc = take_id(d, id, name, what, by_name, &text);
        d->out->no_answer_id |= !describe_is_id(d->j, id);
        return rc ? rc : add(d, text, &d->out->answers, &d->out->answer_count, &d->answer_cap);
}

int describe_call(struct describe *d, json_ref id, json_ref name, const char *what)
{
        return take_call(d, id, name, what, false);
}

int describe_answer(struct describe *d, json_ref id, json_ref name, const char *what)
{
        return take_answer(d, id, name, what, false);
}

int describe_named_call(struct describe *d, json_ref id, json_ref name, const char *what)
{
        return take_call(d, id, name, what, true);
}

int describe_named_answer(struct describe *d, json_ref id, json_ref name, const char *what)
{
        return take_answer(d, id, name, what, true);
}

int describe_id(struct describe *d, json_ref id)
{
        enum json_type type = json_type(d->j, id);
        if (type == JSON_NOTHING || type == JSON_NULL)
                return 0;
        if (type != JSON_STRING)
                return describe_refuse(d, "id is not a string");
        struct str text = token_text(d->j, id, d->arena);
        if (d->arena->failed)
                return error_nomem(d->err);
        if (text.n == 0 || text.n > ID_MAX)
                return describe_refuse(d, "id has %zu bytes, not 1 to %d", text.n, ID_MAX);
        for (size_t i = 0; i < text.n; i++)
                if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
                        return describe_refuse(d, "id contains a control character");
        d->out->id = text;
        return 0;
}

int describe_role(
    struct describe *d, json_ref role, const char *const *roles, const char *const *as)
{
        if (role == JSON_NONE)
                return describe_refuse(d, "no role");
        if (json_type(d->j, role) != JSON_STRING)
                return describe_refuse(d, "role is not a string");
        for (size_t i = 0; roles[i]; i++) {
                if (json_is(d->j, role, roles[i])) {
                        d->out->role = str_of(as ? as[i] : roles[i]);
                        return 0;
                }
        }
        char list[120];
        size_t n = 0;
        for (size_t i = 0; roles[i] && n < sizeof list; i++)
                n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", roles[i]);
        struct str raw = json_inner(d->j, role);
        return describe_refuse(
            d, "role \"%.*s\" is not one of %s", (int)(raw.n > 40 ? 40 : raw.n), raw.p, list);
}

int describe_message(struct describe *d, json_ref msg, const char *const *roles)
{
        if (json_type(d->j, msg) != JSON_OBJECT)
                return describe_refuse(d, "a message is not an object");
        int rc = describe_role(d, json_get(d->j, msg, "role"), roles, NULL);
        return rc ? rc : describe_id(d, json_get(d->j, msg, "id"));
}
