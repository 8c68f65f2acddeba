/*
 * elements.h - digests of the contents of messages, for comparing them.
 *
 * Clients send their whole history with every request, and spell it differently each time: a string
 * or one text part, members in another order, with or without ids and cache marks. So messages are
 * compared by content: role and text, a call's id, name and arguments as JSON values, a result's id
 * and output. Thinking, ids, status, annotations and the like are left out.
 *
 * A history is a chain: the digest after a message depends on all messages before it. Two histories
 * have the same beginning exactly as far as their chains are equal.
 */
#ifndef GATEWAY_ELEMENTS_H
#define GATEWAY_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/str.h"
#include "gateway/wire.h"

#define ELEMENTS_CHAIN 33 /* 32 hex digits and a NUL */

struct elements_link {
        char chain[ELEMENTS_CHAIN]; /* after this message */
        bool assistant;             /* it is the model's */
        bool system;                /* the message belongs to the instructions at the beginning */
};

/* Resolves an item_reference: continues `chain` with the item that it names. False: the item is not
 * known. */
typedef bool (*elements_find)(void *ctx, struct str id, char digest[ELEMENTS_CHAIN]);

/*
 * One link for each message of the array `list`; freed with free(). Instructions at the beginning
 * are not part of the chain: `system` gets their digest, together with that of `beside`, the system
 * prompt outside of the messages (JSON, may be empty). `start` is the chain before the first
 * message of the list; "": the list is the whole history. NULL: no memory.
 */
struct elements_link *elements_of(const struct wire *w, const struct json *list, struct str beside,
    const char *start, elements_find find, void *ctx, char system[ELEMENTS_CHAIN]);

/* The digest of one message alone, for elements_find. */
int elements_digest(
    const struct wire *w, const struct json *j, json_ref message, char digest[ELEMENTS_CHAIN]);

/* Continues a chain; an empty digest (of a message without content) leaves it as it is. */
void elements_continue(char chain[ELEMENTS_CHAIN], const char *digest);

/* A JSON value as text that is equal for equal values: members sorted, numbers and strings in one
 * spelling. */
void elements_put_value(const struct json *j, json_ref r, struct buf *out);

#endif
