/*
 * rules.h - what a provider accepts: one table for each provider.
 *
 * The writers follow it (names, ids, media, members in strict views), and check-history checks
 * against it. So the loop sends nothing else. The types are those that the providers publish with
 * their SDKs; the limits say in the table where they are published or were seen. Used inside
 * format/.
 *
 * TYPES. A type is a list of members, "name:what" where it must be there and "name?:what" where it
 * may. `what` is one or more of
 *
 *      s  a string        n  a number      b  true or false    0  null
 *      o  any object      *  anything      =word  this string  [T  a list of T
 *      T  the type of that name
 *
 * with | between them. A type whose text begins with @ is such a choice under a name. Of several
 * objects the one is meant whose =words fit.
 */
#ifndef FORMAT_RULES_H
#define FORMAT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

struct rules_type {
        const char *name;
        const char *is;
};

struct rules {
        const char *provider;
        const struct rules_type *types; /* ends with a row without a name */
        const char *message;            /* the type of a message */
        const char *reply;              /* members of a reply that no request has, with spaces
                                           around each; views leave them out */
        /* names of tools: letters, digits, _ and -, and these */
        const char *name_also;
        size_t name_max;
        bool name_letter; /* must not begin with a digit or a dash */
        /* ids of calls */
        size_t id_max;
        bool id_plain; /* of letters, digits, _ and - only */
        size_t calls_max;
        /* media types, NULL-terminated; NULL: any */
        const char *const *images;
        const char *const *files;
        const char *const *sounds;
        bool https_only; /* addresses of media */
        size_t cache_marks;
        bool error_says; /* a result that is a failure says something */
};

/* The table of a format; NULL: it is not a provider's. */
const struct rules *rules_find(const char *format);

extern const struct rules rules_openai;
extern const struct rules rules_responses;
extern const struct rules rules_anthropic;
extern const struct rules rules_gemini;

/* ---- members ---- */

/* May an object of the named type have this member? True where the table does not know the type. */
bool rules_has_member(const struct rules *r, const char *type, struct str name);
/* Is it a member of a reply that no request has? */
bool rules_is_reply_member(const struct rules *r, struct str name);

/* Told of each violation: a path such as "content[0].text", and what is wrong there. */
typedef void (*rules_fail_fn)(void *ctx, const char *rule, const char *path, const char *text);
/* Checks a value against a type. Returns the number of violations; `fail` may be NULL. */
size_t rules_check(const struct rules *r, const char *type, const struct json *j, json_ref v,
    rules_fail_fn fail, void *ctx);

/* Is it an object that the type knows, without a member that it must have, or with something of
 * another kind there? Words and kinds of objects that the table does not know may be newer ones. */
bool rules_lacks(const struct rules *r, const char *type, const struct json *j, json_ref v);

/* Is it of the type, once what the type does not have is left out? */
bool rules_is_whole(const struct rules *r, const char *type, const struct json *j, json_ref v);

/*
 * Writes a value without what its type does not have: members, and elements of lists. `lose` is
 * told of each, with its path. What does not fit at all is written as it stands.
 */
void rules_prune(const struct rules *r, const char *type, const struct json *j, json_ref v,
    struct buf *out, void (*lose)(void *ctx, const char *path), void *ctx);

/* ---- values; all take decoded text ---- */

bool rules_is_name(const struct rules *r, struct str name);
bool rules_is_id(const struct rules *r, struct str id);
bool rules_is_base64(struct str s);
/* An address of the web (https, and http where it may be), with a host. */
bool rules_is_address(struct str s, bool https_only);
/* White space, and control characters, which have no meaning either. */
bool rules_is_space(uint32_t character);
/* The length of the character at s[i] of UTF-8 text; *space: it says nothing. */
size_t rules_next(struct str s, size_t i, bool *space);
/* A type of the list, spelled as it stands there. */
bool rules_is_media(const char *const *list, struct str type);
/* What an image is by its first bytes: "image/png" ...; NULL: not known. Takes base64. */
const char *rules_image_type(struct str base64);
/* Half of a surrogate pair anywhere in the inside of a JSON string (escapes as they stand). */
bool rules_has_lone(struct str inner);

#endif
