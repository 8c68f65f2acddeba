/*
 * json_keys.h - strict reading of JSON objects that people write: every key must be known and occur
 * once, and an error message suggests what was probably meant.
 */
#ifndef BASE_JSON_KEYS_H
#define BASE_JSON_KEYS_H

#include "base/json.h"
#include "steno.h"

/* STENO_EINVAL when `obj` is not an object, or has a key twice or one that is not known; `where`
 * names the object in the message. */
int json_keys_check(const struct json *j, json_ref obj, const char *const *known, const char *where,
    struct steno_error *err);

/* A string member without NULs as a copy (freed with free()), NULL when it is absent. */
int json_keys_string(const struct json *j, json_ref obj, const char *key, const char *where,
    char **out, struct steno_error *err);
/* A NULL-terminated list of strings, freed with json_keys_free_list(); NULL when absent. */
int json_keys_strings(const struct json *j, json_ref obj, const char *key, const char *where,
    char ***out, struct steno_error *err);
/* A whole number from 0 to `max`; *out is left alone when it is absent. */
int json_keys_number(const struct json *j, json_ref obj, const char *key, const char *where,
    uint64_t max, uint64_t *out, struct steno_error *err);
void json_keys_free_list(char **list);

/* Does an object have the same key twice, however it is spelled? */
bool json_keys_repeats(const struct json *j, json_ref obj);

#endif
