/*
 * json.h - JSON whose every byte survives.
 *
 * A parsed document is a tape of nodes, each a span over the caller's text; nothing is decoded
 * until a caller asks for it, so number spellings, key order, duplicate keys and escapes are kept.
 * Parsing is strict: RFC 8259, UTF-8 (no surrogates, no overlong forms), no trailing bytes, depth
 * and size limited before anything is allocated. Escaped lone surrogates (\ud800) are legal JSON
 * and are kept.
 *
 * The text must outlive the tape. A tape may be reused for any number of documents, and a parsed
 * one may be read by several threads.
 *
 * A node is named by its index. The root is 0. JSON_NONE means "no such node". Every reading call
 * accepts JSON_NONE and answers "nothing", so look-ups can be chained without checks in between.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

enum json_type {
        JSON_NOTHING, /* the type of JSON_NONE */
        JSON_NULL,
        JSON_FALSE,
        JSON_TRUE,
        JSON_NUMBER,
        JSON_STRING,
        JSON_ARRAY,
        JSON_OBJECT,
};

typedef uint32_t json_ref;
#define JSON_NONE UINT32_MAX

struct json_node {
        uint32_t off;  /* where the value starts in the text; for a string, its opening quote */
        uint32_t len;  /* its length, quotes and brackets included */
        uint32_t next; /* index of the first node behind this value's subtree */
        uint32_t info; /* type in the low 4 bits, JSON_ESCAPED, children count above */
};
#define JSON_ESCAPED 0x10u /* a string with at least one backslash */
#define JSON_COUNT_SHIFT 5
#define JSON_COUNT_MAX (UINT32_MAX >> JSON_COUNT_SHIFT) /* from here on json_count walks */

struct json {
        const char *text;
        size_t size;
        struct json_node *nodes; /* an object's children are key, value, key, value ... */
        uint32_t count;
        uint32_t cap;
};

/* Where and why a text is not JSON. `what` is a static sentence in lower case. */
struct json_fault {
        size_t offset;
        const char *what;
};

/* ---- parsing ---- */

void json_init(struct json *j);
void json_release(struct json *j);

/*
 * Parses one document that fills `text` (white space around it is allowed). 0, STENO_EPROTO with
 * the byte position in the message, STENO_ELIMIT (depth, size) or STENO_ENOMEM. `fault` may be
 * NULL. On failure the tape is empty. The depth is counted within a message: if the document is an
 * array (of messages), the array's own level does not count.
 */
int json_parse(
    struct json *j, const char *text, size_t n, struct json_fault *fault, struct steno_error *err);

/* The same, with words for whoever sent the text: "NAME is not JSON: ...", or "NAME cannot be read:
 * ..." where it may be JSON, and goes beyond our limits. */
int json_parse_named(
    struct json *j, const char *text, size_t n, const char *name, struct steno_error *err);

/* Is it one JSON document? Builds no tape, allocates nothing. */
bool json_valid(const char *text, size_t n, struct json_fault *fault);

/*
 * The first value of a stream of values, for readers of concatenated JSON. Returns the offset
 * behind it, 0 when `n` bytes do not yet hold a whole value (more may come; `fault` is empty), or
 * -1 when they can never become one (`fault` says where). With `eof`, an incomplete value is a
 * fault, and a number may end where the text ends. *start is where the value begins. If there is
 * only white space, returns 0 with *start == n.
 */
ptrdiff_t json_scan_value(
    const char *text, size_t n, bool eof, size_t *start, struct json_fault *fault);

/* ---- reading ---- */

/* The shortest calls are inline, because every reader makes them many times for each message. */

static inline enum json_type json_type(const struct json *j, json_ref r)
{
        return r < j->count ? (enum json_type)(j->nodes[r].info & 0x0F) : JSON_NOTHING;
}

/* The value's bytes as they stand in the text. */
struct str json_raw(const struct json *j, json_ref r);
/* A string's bytes between its quotes, escapes as they stand; empty for anything else. */
static inline struct str json_inner(const struct json *j, json_ref r)
{
        if (json_type(j, r) != JSON_STRING)
                return str_span("", 0);
        const struct json_node *n = &j->nodes[r];
        return str_span(j->text + n->off + 1, n->len - 2);
}

bool json_is_escaped(const struct json *j, json_ref r);
/* Elements of an array, members of an object, 0 for anything else. */
uint32_t json_count(const struct json *j, json_ref r);

/* Children: for an array its elements; for an object the keys, each followed by its value. */
static inline json_ref json_child(const struct json *j, json_ref r)
{
        enum json_type t = json_type(j, r);
        bool container = t == JSON_ARRAY || t == JSON_OBJECT;
        return container && j->nodes[r].next != r + 1 ? r + 1 : JSON_NONE;
}

/* The next sibling inside `parent`, or JSON_NONE. */
static inline json_ref json_next(const struct json *j, json_ref parent, json_ref child)
{
        if (parent >= j->count || child >= j->count)
                return JSON_NONE;
        json_ref next = j->nodes[child].next;
        return next < j->nodes[parent].next ? next : JSON_NONE;
}

/*
 * for (json_ref key = json_child(j, obj); key != JSON_NONE; key = json_next_key(j, obj, key)) {
 *         json_ref value = json_value(j, key);
 */
static inline json_ref json_value(const struct json *j, json_ref key)
{
        return key < j->count && key + 1 < j->count ? key + 1 : JSON_NONE;
}

static inline json_ref json_next_key(const struct json *j, json_ref obj, json_ref key)
{
        return json_next(j, obj, json_value(j, key));
}

/* The i-th element of an array: walks. */
json_ref json_at(const struct json *j, json_ref arr, uint32_t i);

/* The value of a member. If a key occurs twice, its last value, as in most readers. */
json_ref json_get(const struct json *j, json_ref obj, const char *key);
/* Compares a string (key or value) with a plain literal, escapes decoded. */
bool json_is_str(const struct json *j, json_ref r, struct str s);
static inline bool json_is(const struct json *j, json_ref r, const char *z)
{
        if (json_type(j, r) != JSON_STRING)
                return false;
        const struct json_node *n = &j->nodes[r];
        const char *inner = j->text + n->off + 1;
        if ((n->info & JSON_ESCAPED) || !z)
                return json_is_str(j, r, str_of(z));
        /* Most compared words differ in their first byte. There is a first byte even in an empty
         * string, because the closing quote follows. */
        if (*inner != *z && n->len > 2)
                return false;
        return strlen(z) == n->len - 2 && memcmp(inner, z, n->len - 2) == 0;
}

/*
 * Appends a string's decoded bytes to `out`; false when `r` is not a string. A lone surrogate
 * becomes U+FFFD; *lossy (may be NULL) is set then.
 */
bool json_string(const struct json *j, json_ref r, struct buf *out, bool *lossy);
/* The same for the inside of a string token that stands outside of a tape. */
void json_unescape(struct str inner, struct buf *out, bool *lossy);
/* The same into memory of at least inner.n bytes, all of which may be written to; returns the
 * length, which is never greater. */
size_t json_unescape_to(struct str inner, char *to, bool *lossy);
/* A member as a decoded, NUL-terminated copy, or NULL; freed with free(). */
char *json_dup_string(const struct json *j, json_ref r);
/* Copies a member of `obj` to an array of `size` bytes, cut to the whole characters that fit; "" if
 * the member is not a string. False: out of memory. */
bool json_copy_string(const struct json *j, json_ref obj, const char *key, char *to, size_t size);

/* A number that is an integer within range, spelled as one ("12", not "1.2e1"). */
bool json_i64(const struct json *j, json_ref r, int64_t *out);
bool json_u64(const struct json *j, json_ref r, uint64_t *out);
bool json_double(const struct json *j, json_ref r, double *out);
bool json_bool(const struct json *j, json_ref r, bool fallback);

/* ---- edits: splices over the original text ---- */

struct json_edit {
        size_t off; /* replaces text[off, off + len) */
        size_t len;
        struct str with;
};

/* A list of edits; spans must not overlap, order does not matter. */
struct json_edits {
        struct json_edit *list;
        size_t count;
        size_t cap;
        int failed;
};

void json_edits_init(struct json_edits *e);
void json_edits_release(struct json_edits *e);
/* Replaces `len` bytes at `off` of the text. `with` must live until json_edits_apply. */
void json_edit_span(struct json_edits *e, size_t off, size_t len, struct str with);
/* The same for a value. */
void json_edit_replace(struct json_edits *e, const struct json *j, json_ref r, struct str with);
/* Removes every member whose key is in the NULL-terminated list `keys`, commas included. */
void json_edit_remove_members(
    struct json_edits *e, const struct json *j, json_ref obj, const char *const *keys);
/* Adds `"key":value` (both already JSON text, one span: `member`) as an object's last member. Not
 * to be combined with json_edit_remove_members on the same object. */
void json_edit_add_member(
    struct json_edits *e, const struct json *j, json_ref obj, struct str member);
/* Writes the span of `r` with the edits applied. 0 or the sticky error. */
int json_edits_apply(struct json_edits *e, const struct json *j, json_ref r, struct buf *out);

/* ---- writing ---- */

/* A quoted, escaped string. Bytes that are not UTF-8 become U+FFFD. */
void json_put_string(struct buf *b, struct str s);
/* Only the inside, without quotes. */
void json_put_escaped(struct buf *b, struct str s);

/*
 * A writer that puts the commas. The caller nests correctly: each begin needs its end. Only the
 * writer reads and sets `comma`.
 */
struct jsonw {
        struct buf *b;
        bool comma;
};

static inline struct jsonw jsonw_to(struct buf *b)
{
        return (struct jsonw){b, false};
}
/* A writer that continues an object or array which already has an element. */
static inline struct jsonw jsonw_behind(struct buf *b)
{
        return (struct jsonw){b, true};
}
void jsonw_object(struct jsonw *w);
void jsonw_object_end(struct jsonw *w);
void jsonw_array(struct jsonw *w);
void jsonw_array_end(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key); /* a plain literal that needs no escapes */
void jsonw_key_str(struct jsonw *w, struct str key);
void jsonw_str(struct jsonw *w, struct str s);
void jsonw_cstr(struct jsonw *w, const char *z); /* NULL writes null */
void jsonw_u64(struct jsonw *w, uint64_t v);
void jsonw_i64(struct jsonw *w, int64_t v);
void jsonw_bool(struct jsonw *w, bool v);
void jsonw_null(struct jsonw *w);
void jsonw_raw(struct jsonw *w, struct str json); /* a value that already is JSON */
/* Makes room for a value that the caller writes to the buffer that is returned. */
struct buf *jsonw_value(struct jsonw *w);

/* A member of an object: a key (a plain literal that needs no escapes) and its value. */
void jsonw_field_str(struct jsonw *w, const char *key, struct str s);
void jsonw_field_cstr(struct jsonw *w, const char *key, const char *z); /* NULL writes null */
void jsonw_field_u64(struct jsonw *w, const char *key, uint64_t v);
void jsonw_field_i64(struct jsonw *w, const char *key, int64_t v);
void jsonw_field_bool(struct jsonw *w, const char *key, bool v);
void jsonw_field_null(struct jsonw *w, const char *key);
void jsonw_field_raw(struct jsonw *w, const char *key, struct str json);
/* The value `v` of another document, as it stands there. */
void jsonw_field_copy(struct jsonw *w, const char *key, const struct json *j, json_ref v);
/* The member whose key is the node `key` of another document, both as they stand there. */
void jsonw_copy_member(struct jsonw *w, const struct json *j, json_ref key);

/* Turns raw CR and LF between tokens into spaces so that a document is one line; inside strings
 * there are none in valid JSON. In place. */
void json_single_line(char *text, size_t n);

#endif
