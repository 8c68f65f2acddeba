/*
 * seams.h - where the gateway put something into a history that the client does not know of.
 *
 * A client sends its history as it saw it. Between two of its messages the model may have called a
 * context tool (rounds.h); without those calls the prompt would be another one, and no cache of it
 * would hold. So each reply that hides something is remembered by the history before it and the
 * history after it, as the client sees both (elements.h), and by the answer's id for clients that
 * name that. Also kept: the limits that a group of requests began with.
 *
 * The tables (tables.h) can be deleted; then old hidden calls are left out of prompts. Any thread
 * may ask.
 */
#ifndef GATEWAY_SEAMS_H
#define GATEWAY_SEAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "gateway/elements.h"
#include "steno.h"

struct seams;

/* `path` is the store's folder, or the server's own. */
int seams_open(
    struct steno_store *store, const char *path, struct seams **out, struct steno_error *err);
void seams_close(struct seams *s);

struct seam {
        char before[ELEMENTS_CHAIN]; /* the history before the reply */
        struct buf messages;         /* of the reply as they were, JSON with commas between */
        struct buf lead; /* results that belong to the beginning of the next message, likewise */
};

void seam_init(struct seam *s);
void seam_release(struct seam *s);

/* Both answer false when there is none. `owner` is lineage.h's; `after` a chain or an answer's id.
 */
bool seams_find(struct seams *s, const char *owner, struct str after, struct seam *out);
/* The same of many chains with few questions, because a database may be far away. `each` is told of
 * those that there are, in any order; the texts live until it returns. */
typedef void (*seam_fn)(
    void *ctx, struct str after, struct str before, struct str messages, struct str lead);
int seams_find_all(struct seams *s, const char *owner, const struct str *after, size_t count,
    seam_fn each, void *ctx);
int seams_add(struct seams *s, const char *owner, struct str after, const struct seam *seam,
    struct steno_error *err);

/* The limits of a group: those that are given here at the first time, and for ever. */
int seams_pin(struct seams *s, const char *owner, struct str group, uint64_t *chars,
    uint64_t *bytes, struct steno_error *err);

#endif
