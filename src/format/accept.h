/*
 * accept.h - checks whether a provider accepts a history, and if not, which rule is broken and
 * where.
 *
 * The rules are those that the providers publish (API references and the texts of their errors).
 * Input is the provider's own JSON: the array of messages, or a request that holds one ("messages",
 * for responses "input", for gemini "contents"). The provider's table (rules.h) has the members,
 * names, ids and media that it accepts; orders and pairs are checked here. This file uses neither
 * the store nor the hub, so that it judges the output of our own code like any other input.
 */
#ifndef FORMAT_ACCEPT_H
#define FORMAT_ACCEPT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "format/rules.h"
#include "steno.h"

/* A history that is being checked. Violations are written as they are found. */
struct check {
        const struct json *j;
        const struct rules *rules;
        struct arena *arena;
        struct jsonw *out;
        size_t found;
};

/* An entry in a set of call ids. The set lives in the arena and remembers the order of its ids. */
struct check_id {
        struct str id;
        bool answered;
};
struct check_ids {
        struct check_id *list;
        size_t count;
        size_t cap;
        uint32_t *slots;
        size_t slot_count;
};

/*
 * Checks a history for "openai", "responses", "anthropic" or "gemini" and writes the JSON array of
 * violations:
 * {"rule","message","call"?,"text"}; `message` counts from 0. 0, STENO_EINVAL (no such provider),
 * STENO_EPROTO (neither an array nor a request) or STENO_ENOMEM.
 */
int accept_history(
    const char *provider, const struct json *j, struct buf *out, struct steno_error *err);

/* ---- for the providers' own files ---- */

void accept_openai(struct check *c, json_ref list);
void accept_anthropic(struct check *c, json_ref list);
void accept_gemini(struct check *c, json_ref list);
void accept_responses(struct check *c, json_ref list);

/* Checks the name of a tool or the id of a call by the table. A node that is not a string is not
 * checked. */
void accept_name(struct check *c, size_t message, json_ref name, struct str call);
void accept_call_id(struct check *c, size_t message, json_ref id);
/* Is it a web address, or a data URL of an image type that the provider accepts? */
bool accept_is_image(const struct check *c, struct str url);
/* Is it a data URL of a file of any type? */
bool accept_is_file(struct str url);

/* Writes a violation. `call` is the id of the call that it is about, or absent. */
void accept_fail(struct check *c, const char *rule, size_t message, struct str call,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Finds an id, or adds it; *fresh says whether it was added. NULL: out of memory. */
struct check_id *accept_ids_put(struct check *c, struct check_ids *ids, struct str id, bool *fresh);
/* Finds an id. NULL: it is not in the set. */
struct check_id *accept_ids_find(const struct check_ids *ids, struct str id);
void accept_ids_clear(struct check_ids *ids);

/* Returns the decoded text of a string node, absent for anything else. */
struct str accept_text(struct check *c, json_ref r);
/* Is it a string with something other than white space? */
bool accept_says_something(struct check *c, json_ref r);

#endif
