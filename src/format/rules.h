/*
 * rules.h - what a provider accepts: one table for each provider.
 *
 * The writers follow the table (names, ids, media, members in strict views), and check-history
 * checks against it. So the loop sends nothing else. The types are those that the providers publish
 * with their SDKs. The table says where each limit is published or was seen. Used inside format/.
 *
 * TYPES. A type is a list of members: "name:what" is required, "name?:what" is optional. `what` is
 * one or more of
 *
 *      s  a string        n  a number      b  true or false    0  null
 *      o  any object      *  anything      =word  this string  [T  a list of T
 *      T  the type of that name
 *
 * with | between them. A type whose text begins with @ is a named choice of this form. If a choice
 * has several objects, the one whose =words match is used.
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
        const char *reply;              /* members of a reply that no request has, each with
                                           spaces around it; views leave them out */
        /* the name of a tool: letters, digits, _ and -, and the characters in name_also */
        const char *name_also;
        size_t name_max;
        bool name_letter; /* must not begin with a digit or a dash */
        /* the id of a call */
        size_t id_max;
        bool id_plain; /* only letters, digits, _ and - */
        size_t calls_max;
        /* media types, NULL-terminated; NULL: any */
        const char *const *images;
        const char *const *files;
        const char *const *sounds;
        bool https_only; /* for addresses of media */
        size_t cache_marks;
        bool error_says; /* a result that is an error must have content */
};

/* The table of a format; NULL: the format is not a provider's. */
const struct rules *rules_find(const char *format);

extern const struct rules rules_openai;
extern const struct rules rules_responses;
extern const struct rules rules_anthropic;
extern const struct rules rules_gemini;

/* ---- members ---- */

/* May an object of the named type have this member? True if the table does not know the type. */
bool rules_has_member(const struct rules *r, const char *type, struct str name);
/* Is it a member of a reply that no request has? */
bool rules_is_reply_member(const struct rules *r, struct str name);

/* Called for each violation with its path such as "content[0].text" and a text that says what is
 * wrong. */
typedef void (*rules_fail_fn)(void *ctx, const char *rule, const char *path, const char *text);
/* Checks a value against a type. Returns the number of violations; `fail` may be NULL. */
size_t rules_check(const struct rules *r, const char *type, const struct json *j, json_ref v,
    rules_fail_fn fail, void *ctx);

/* Is it an object of a known type that lacks a required member, or has a member of a wrong type?
 * Words and kinds of objects that the table does not know may be newer than the table, so they are
 * no error. */
bool rules_lacks(const struct rules *r, const char *type, const struct json *j, json_ref v);

/* Does the value match the type, apart from members that the type does not have? */
bool rules_is_whole(const struct rules *r, const char *type, const struct json *j, json_ref v);

/*
 * Writes a value without the members and list elements that its type does not have. `lose` is
 * called for each with its path. A value that does not match at all is written unchanged.
 */
void rules_prune(const struct rules *r, const char *type, const struct json *j, json_ref v,
    struct buf *out, void (*lose)(void *ctx, const char *path), void *ctx);

/* ---- values; all take decoded text ---- */

bool rules_is_name(const struct rules *r, struct str name);
bool rules_is_id(const struct rules *r, struct str id);
bool rules_is_base64(struct str s);
/* Is it a web address with a host? Its scheme is https, or http if that is allowed. */
bool rules_is_address(struct str s, bool https_only);
/* Is it white space, or a control character? Neither counts as content. */
bool rules_is_space(uint32_t character);
/* Returns the length of the character at s[i] of UTF-8 text; sets *space if it is white space. */
size_t rules_next(struct str s, size_t i, bool *space);
/* Is the type in the list, with the same spelling? */
bool rules_is_media(const char *const *list, struct str type);
/* Returns the type of an image by its first bytes: "image/png" ...; NULL: not known. The image is
 * given as base64. */
const char *rules_image_type(struct str base64);
/* Does the inside of a JSON string (with its escapes) contain half of a surrogate pair? */
bool rules_has_lone(struct str inner);

#endif
