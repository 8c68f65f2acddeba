/*
 * append_ids.h - gives ids to calls that came without one, once, when they are appended.
 *
 * A call without an id gets one, which stands in its record (x.calls). A result without an id
 * answers a call of its own message, if that has one, else the oldest open call of its tool's name
 * in the latest block that has one; a result without a name answers the oldest open call there,
 * whatever its tool (x.answers). Views, pairing and refusals use those ids; the message itself
 * stays as it came.
 */
#ifndef API_APPEND_IDS_H
#define API_APPEND_IDS_H

#include "api/carry.h"

struct append_ids;

/* Reads what the log's last records call. NULL: out of memory, or the log cannot be read. */
struct append_ids *append_ids_new(struct steno_conv *conv, struct steno_error *err);
void append_ids_free(struct append_ids *a);
/* The seq that the batch's first message will have: it was read up to here. */
uint64_t append_ids_next(const struct append_ids *a);

/* Gives ids to what `about` describes and has none. `a` may be NULL where no result is without one:
 * an id for a call is made without a look at the log. */
int append_ids_give(struct steno_conv *conv, struct append_ids *a, const struct carry_message *msg,
    struct arena *arena, struct about *about, struct steno_error *err);
/* The next message of the batch, with its ids. All of a batch have to be told. */
int append_ids_follow(struct append_ids *a, const struct carry_message *msg,
    const struct about *about, struct steno_error *err);

#endif
