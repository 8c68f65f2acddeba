/*
 * elements.h - what a message says, as digests that can be compared.
 *
 * Clients send their whole history with every request, and spell it differently each time: a string
 * or one text part, members in another order, ids and cache marks that come and go. So messages are
 * compared by what they say: role and text, a call's id, name and arguments as JSON values, a
 * result's id and output. Thinking, ids, status, annotations and the like are left out.
 *
 * A history is a chain: the digest after a message depends on all that was said before it. Two
 * histories begin alike exactly as far as their chains are equal.
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
        bool system;                /* it belongs to the instructions at the beginning */
};

/* What an item_reference stands for: fills `chain` as the item would continue it. False: nobody
 * knows it. */
typedef bool (*elements_find)(void *ctx, struct str id, char digest[ELEMENTS_CHAIN]);

/*
 * One link for each message of the array `list`; freed with free(). Instructions at the beginning
 * do not count into the chain: `system` gets their digest together with `beside`, the system prompt
 * that stands beside the messages (JSON, may be empty). `start` is the chain that the messages go
 * on behind; "": they are the whole history. NULL: no memory.
 */
struct elements_link *elements_of(const struct wire *w, const struct json *list, struct str beside,
    const char *start, elements_find find, void *ctx, char system[ELEMENTS_CHAIN]);

/* The digest of one message alone, for elements_find. */
int elements_digest(
    const struct wire *w, const struct json *j, json_ref message, char digest[ELEMENTS_CHAIN]);

/* Continues a chain; an empty digest (a message that says nothing) leaves it as it is. */
void elements_continue(char chain[ELEMENTS_CHAIN], const char *digest);

/* A JSON value as text that is equal for equal values: members sorted, numbers and strings in one
 * spelling. */
void elements_put_value(const struct json *j, json_ref r, struct buf *out);

#endif
