/*
 * describe.h - what the formats' `describe` functions have in common: collecting ids with their
 * limits, and the members that mean the same everywhere. Used inside format/ only.
 */
#ifndef FORMAT_DESCRIBE_H
#define FORMAT_DESCRIBE_H

#include "base/arena.h"
#include "base/json.h"
#include "model/about.h"

struct describe {
        const struct json *j;
        struct arena *arena;
        struct about *out;
        struct steno_error *err;
        size_t call_cap;
        size_t answer_cap;
};

/* Each returns 0 or a negative code with `err` filled. `what` names the id for the error text,
 * as in "tool_call_id". The node must be a string; where it is absent, null or empty the name of
 * the tool stands for it, and `lacks` says so. */
int describe_call(struct describe *d, json_ref id, json_ref name, const char *what);
int describe_answer(struct describe *d, json_ref id, json_ref name, const char *what);
/* A string that says something. */
bool describe_is_id(const struct json *j, json_ref id);
/* The same for formats that need no id, because the name of the tool pairs calls and results:
 * `lacks` is set only if the name is missing as well. `what` is then the member of the name. */
int describe_named_call(struct describe *d, json_ref id, json_ref name, const char *what);
int describe_named_answer(struct describe *d, json_ref id, json_ref name, const char *what);

/* The message's own `id`: absent or null, or a string that can be one. */
int describe_id(struct describe *d, json_ref id);

/* A role that is one of the NULL-terminated list; out->role is `as[i]` where `as` is given. */
int describe_role(
    struct describe *d, json_ref role, const char *const *roles, const char *const *as);

/* What most formats begin with: an object with a `role` of the list and perhaps an `id`. */
int describe_message(struct describe *d, json_ref msg, const char *const *roles);

/* "message is not an object" and the like. */
int describe_refuse(struct describe *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
