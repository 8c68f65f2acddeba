/*
 * policy.h - decides when a tool's output is moved from the conversation to a file.
 *
 * An output stays inline as long as it has at most `max_chars` code points and at most `max_bytes`
 * bytes. The profile `runtime-store` keeps an older rule: only the limit of 51,200 bytes counts.
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
 * This file knows only text. The layers above decide where a file is and who writes it.
 */
#ifndef OUTPUT_POLICY_H
#define OUTPUT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/str.h"

/*
 * ROW(identifier, name, characters, bytes, does a stub name a path?). To add a profile, add a row.
 * A stub names the ref of its output, or a path, as an older program of ours did.
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
        uint64_t max_chars; /* UINT64_MAX: no limit */
        uint64_t max_bytes;
};

/* Fills a policy. A limit of 0 means the profile's own limit. A limit below INLINE_BYTES_FLOOR is
 * raised to it, for characters as well as bytes, because a useful stub needs this room. */
void policy_init(
    struct policy *p, enum policy_profile profile, uint64_t max_chars, uint64_t max_bytes);

/* Finds a profile by name; "" or no name is "default". Returns false if no row has this name. */
bool policy_profile_parse(struct str name, enum policy_profile *out);
const char *policy_profile_name(enum policy_profile profile);
/* Does a stub of this profile name a path instead of a ref? */
bool policy_names_path(const struct policy *p);

/*
 * The number of bytes and code points of a stream. It begins as all zero. A byte that is not part
 * of a UTF-8 sequence counts as one character. The result does not depend on how the stream is cut
 * into pieces.
 */
struct policy_count {
        uint64_t bytes;
        uint64_t chars; /* whole characters so far; policy_count_chars adds the rest */
        unsigned char pending[4];
        unsigned char have;
};

void policy_count_feed(struct policy_count *c, const void *p, size_t n);
/* Returns the number of characters if the stream ended here. */
uint64_t policy_count_chars(const struct policy_count *c);

/* Has the stream passed the limits? Once true, the answer stays true. */
bool policy_passed(const struct policy *p, const struct policy_count *c);

/* Has a whole text passed the limits? The answer is false for a text that is a stub already. */
bool policy_is_large(const struct policy *p, struct str text);

/* The beginning of the stub of a short text that is not UTF-8, and the text before its ref. */
#define POLICY_NOT_UTF8 "[NOT UTF-8: all "
#define POLICY_NOT_UTF8_IN " shown, bytes that are not as \\xNN; as it came it is in "

/*
 * Is the whole text one of our own stubs (stub.h)? Only texts of at most STUB_MAX bytes can be
 * stubs, so an output cannot stay inline by imitating one.
 */
bool policy_is_stub(struct str text);

#endif
