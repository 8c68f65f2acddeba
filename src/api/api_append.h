/*
 * api_append.h - appending what an importer found: messages of any format, each with the id and
 * the time that it had elsewhere.
 *
 * The caller makes sure that no id is in the log already (files_read_id), because the caller
 * decides what to do with a message that comes again. Every item is a batch of its own, so that a
 * fork can be cut behind any of them; all go in with one write and one sync, or none.
 */
#ifndef API_API_APPEND_H
#define API_API_APPEND_H

#include "api/api_store.h"

struct append_item {
        const char *format;
        struct str json;   /* the message, on one line */
        struct str id;     /* its record's */
        struct str at;     /* ISO 8601; "": now */
        struct str source; /* about.source */
        struct str target; /* the message that it supersedes; "": none. Such an item comes alone */
};

/*
 * At most BATCH_MAX of them. Pairing that is broken is marked, not refused. STENO_EPROTO: item
 * *bad is not a message of its format, or has results without ids and does not come alone
 * (*alone is set then); nothing was stored. STENO_ENOTFOUND: there is no such target.
 */
int api_append_items(struct steno_conv *conv, const struct append_item *items, size_t count,
    size_t *bad, bool *alone, struct steno_error *err);

#endif
