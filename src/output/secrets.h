/*
 * secrets.h - finds secrets by rules, and masks them.
 *
 * A mask keeps the shape: in a text, each byte becomes "*" (line ends stay). In a JSON string, each
 * character becomes one of the same length, both written and decoded. So sizes, lines, offsets and
 * escapes remain correct, and a reader sees where something was masked.
 */
#ifndef OUTPUT_SECRETS_H
#define OUTPUT_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/str.h"
#include "steno.h"

struct secrets;

/* Opens rules. steno_export in steno.h describes the text `rules`. */
int secrets_open(const char *rules, struct secrets **out, struct steno_error *err);
void secrets_close(struct secrets *s);

/* Masks what the rules match in `n` bytes of text. Returns the number of matches, or a negative
 * code. `more`: more text follows, so a match that reaches the end is not masked yet; the text up
 * to *safe is final.
 */
int secrets_mask_text(
    struct secrets *s, char *p, size_t n, bool more, size_t *safe, struct steno_error *err);
/* Does the same in every string of a JSON value. `text` has the bytes that `j` was parsed from. The
 * whole value of a key such as "password" is masked. `keep` (may be NULL) returns true for a key
 * whose value must not be masked. */
int secrets_mask_json(struct secrets *s, const struct json *j, json_ref v, char *text,
    bool (*keep)(struct str key), struct steno_error *err);
/* Does the same in a single string token, including its quotes. */
int secrets_mask_token(struct secrets *s, char *p, size_t n, struct steno_error *err);

/* Returns the name of rule `i` and how often it matched so far; NULL behind the last rule. */
const char *secrets_rule(const struct secrets *s, size_t i, uint64_t *count);

#endif
