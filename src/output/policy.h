/*
 * policy.h - when a tool's output leaves the conversation for a file.
 *
 * An output stays inline while it has at most `max_chars` code points and at most `max_bytes`
 * bytes; whichever is passed first decides. The profile `runtime-store` keeps an older rule:
 * over 51,200 bytes, whatever the characters.
 *
 * Counting is incremental, so a stream knows the moment it has become too large:
 *
 *         struct policy policy;
 *         policy_init(&policy, POLICY_DEFAULT, 0, 0);
 *         struct policy_count count = {0};
 *         while (more) {
 *                 policy_count_feed(&count, p, n);
 *                 if (policy_passed(&policy, &count))
 *                         ... from here on it is a file ...
 *         }
 *
 * Knows text only. Where a file goes and who writes it is for the layers above.
 */
#ifndef OUTPUT_POLICY_H
#define OUTPUT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum policy_profile {
        POLICY_DEFAULT,       /* "default" */
        POLICY_RUNTIME_STORE, /* "runtime-store" */
};

#define POLICY_RUNTIME_STORE_BYTES 51200
#define POLICY_RUNTIME_STORE_PREVIEW 500 /* characters */

struct policy {
        enum policy_profile profile;
        uint64_t max_chars; /* UINT64_MAX: no bound */
        uint64_t max_bytes;
};

/* Fills a policy. 0 for a limit means the profile's own; what lies below INLINE_BYTES_FLOOR is
 * raised to it, characters as well as bytes, because a stub needs room to be of use. */
void policy_init(
    struct policy *p, enum policy_profile profile, uint64_t max_chars, uint64_t max_bytes);

/* "default" (or "" or no name at all) and "runtime-store"; false for any other name. */
bool policy_profile_parse(struct str name, enum policy_profile *out);
const char *policy_profile_name(enum policy_profile profile);

/*
 * Bytes and code points of a stream; all zero is the beginning. A byte that is not part of a
 * UTF-8 sequence counts as one character. The sum does not depend on how the stream was cut.
 */
struct policy_count {
        uint64_t bytes;
        uint64_t chars; /* of whole characters so far; policy_count_chars adds the rest */
        unsigned char pending[4];
        unsigned char have;
};

void policy_count_feed(struct policy_count *c, const void *p, size_t n);
/* Characters so far, were the stream to end here. */
uint64_t policy_count_chars(const struct policy_count *c);

/* Has what was counted passed the limits? Once true, more bytes never make it false. */
bool policy_passed(const struct policy *p, const struct policy_count *c);

/* The same question about a whole text. A text that already is a stub has never passed. */
bool policy_is_large(const struct policy *p, struct str text);

/*
 * Is this text, whole, one of our own stubs (stub.h)? Only texts of at most STUB_MAX bytes can
 * be, so an output cannot stay inline by pretending.
 */
bool policy_is_stub(struct str text);

#endif
