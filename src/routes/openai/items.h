/*
 * items.h - converts between items of OpenAI's Conversations and stored messages: from what clients
 * send to what is stored, and from any stored message to items with ids.
 */
#ifndef ROUTES_OPENAI_ITEMS_H
#define ROUTES_OPENAI_ITEMS_H

#include "base/json.h"
#include "routes/history.h"

/*
 * Writes the item at `item` as it is stored and given back: with a type, an id, a status, and its
 * content as an array. Unknown types keep every byte and get an id. `seed` (may be empty) makes
 * the ids follow from it, so that a repeated request makes the same ones. False: it is not an item;
 * *why says so.
 */
bool items_normalise(const struct json *j, json_ref item, struct str seed, size_t index,
    struct buf *out, const char **why);

/* Item `k` of a stored message: its JSON with an id. False: the message has no such item. */
bool items_of_message(const struct history_item *message, size_t k, struct buf *out);
size_t items_count(const struct history_item *message);

/* Steno's id of item `k`: the message's and, where it is several items, the place. Clients page
 * with it; the item itself carries the id that its client gave it. */
#define ITEMS_ID 330
void items_id(const struct history_item *message, size_t k, char out[ITEMS_ID]);
/* Takes such an id apart. */
void items_split_id(const char *id, char message[300], size_t *k);

/* The items of a message but one, as a JSON array. False: out of memory, or it has no such item. */
bool items_without(const struct history_item *message, size_t k, struct buf *out);

#endif
