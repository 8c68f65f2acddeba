/*
 * policy.h - when a tool's output leaves the conversation for a file.
 *
 * An output stays inline while it has at most `max_chars` code points and at most `max_bytes`
 * bytes; whichever is passed first decides. The profile `runtime-store` keeps an older rule:
 * over 51,200 bytes, whatever the characters.
 *
 * Counting is incremental, so that a stream knows when it becomes too large:
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

#include "base/limits.h"
#include "base/str.h"

/*
 * ROW(identifier, name, characters, bytes, does a stub name a path?). Adding a profile is adding a
 * row. A stub names the ref of its output, or, as an older program of ours had it, a path.
 */
#define POLICY_PROFILES(ROW)                                                                       \
        ROW(DEFAULT, "default", INLINE_CHARS_DEFAULT, INLINE_BYTES_DEFAULT, false)                 \
        ROW(RUNTIME_STORE, "runtime-store", UINT64_MAX, 51200, true)

#define POLICY_ROW(id, name, chars, bytes, path) POLICY_##id,
enum policy_profile { POLICY_PROFILES(POLICY_ROW) POLICY_PROFILE_COUNT };
#undef POLICY_ROW

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

/* A profile by name; "" or no name at all is "default". False for a name that no row has. */
bool policy_profile_parse(struct str name, enum policy_profile *out);
const char *policy_profile_name(enum policy_profile profile);
/* Does a stub of this profile name a path instead of a ref? */
bool policy_names_path(const struct policy *p);

/*
 * Bytes and code points of a stream; it begins as all zero. A byte that is not part of a UTF-8
 * sequence counts as one character. The sum does not depend on how the stream was cut.
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

/* How the stub of a short text that is not UTF-8 begins, and what stands before its ref. */
#define POLICY_NOT_UTF8 "[NOT UTF-8: all "
#define POLICY_NOT_UTF8_IN " shown, bytes that are not as \\xNN; as it came it is in "

/*
 * Is this text, whole, one of our own stubs (stub.h)? Only texts of at most STUB_MAX bytes can
 * be, so an output cannot stay inline by pretending.
 */
bool policy_is_stub(struct str text);

#endif
