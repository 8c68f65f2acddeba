/*
 * secrets.h - finding what should not leave, by rules, and masking it.
 *
 * A mask keeps the shape: in a text each byte becomes "*" (line ends stay), in a JSON string each
 * character becomes one of the same length, both as it is written and as it is decoded. So sizes,
 * lines, offsets and escapes stay true, and whoever reads it sees where something was.
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

/* `rules` as steno_export describes them. */
int secrets_open(const char *rules, struct secrets **out, struct steno_error *err);
void secrets_close(struct secrets *s);

/* Masks what the rules match in `n` bytes of text. How many matches, or a negative code. `more`:
 * the text goes on, and what reaches its end is left alone; *safe is then up to where it is final.
 */
int secrets_mask_text(
    struct secrets *s, char *p, size_t n, bool more, size_t *safe, struct steno_error *err);
/* The same in every string of a JSON value, whose bytes are at `text`: they are those that `j` was
 * parsed from. A value under a key such as "password" is masked whole. `keep` (may be NULL) says of
 * a key that its value is left alone. */
int secrets_mask_json(struct secrets *s, const struct json *j, json_ref v, char *text,
    bool (*keep)(struct str key), struct steno_error *err);
/* The same in one string token that stands alone, quotes included. */
int secrets_mask_token(struct secrets *s, char *p, size_t n, struct steno_error *err);

/* How often each rule matched so far: NULL behind the last. */
const char *secrets_rule(const struct secrets *s, size_t i, uint64_t *count);

#endif
