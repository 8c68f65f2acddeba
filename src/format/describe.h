/*
 * describe.h - what the formats' `describe` functions have in common: collecting ids with their
 * limits, and the members that have the same meaning in all formats. Used inside format/ only.
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

/* Each returns 0 or a negative code with `err` filled. `what` names the id for the error text, as
 * in "tool_call_id". The node must be a string. If it is absent, null or empty, the name of the
 * tool replaces it, and `lacks` is set. */
int describe_call(struct describe *d, json_ref id, json_ref name, const char *what);
int describe_answer(struct describe *d, json_ref id, json_ref name, const char *what);
/* Is it a string that is not empty? */
bool describe_is_id(const struct json *j, json_ref id);
/* The same for formats that need no id, because calls and results are paired by the name of the
 * tool: `lacks` is set only if the name is missing as well. `what` is then the member of the
 * name. */
int describe_named_call(struct describe *d, json_ref id, json_ref name, const char *what);
int describe_named_answer(struct describe *d, json_ref id, json_ref name, const char *what);

/* Takes the message's own `id`: it must be absent, null, or a string that is a valid id. */
int describe_id(struct describe *d, json_ref id);

/* Takes the role, which must be in the NULL-terminated list. out->role is `as[i]` if `as` is
 * given. */
int describe_role(
    struct describe *d, json_ref role, const char *const *roles, const char *const *as);

/* Checks the beginning of most formats: an object with a `role` of the list and perhaps an `id`. */
int describe_message(struct describe *d, json_ref msg, const char *const *roles);

/* Returns an error such as "message is not an object". */
int describe_refuse(struct describe *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
