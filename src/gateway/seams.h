/*
 * seams.h - remembers the places of hidden calls in the histories of clients.
 *
 * A client sends its history as it saw it. Between two of its messages the model may have called a
 * context tool (rounds.h); without those calls the prompt would change, and the provider's cache
 * would not work. So each reply with hidden calls is remembered by the history before it and the
 * history after it, both as the client sees them (elements.h), and by the answer's id for clients
 * that use it. The limits with which a group of requests began are kept here as well. The tables
 * (tables.h) can be deleted; then old hidden calls are left out of prompts. Any thread may call
 * these functions.
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
        struct buf lead; /* the results that belong to the beginning of the next message, in the
                            same form */
};

void seam_init(struct seam *s);
void seam_release(struct seam *s);

/* Both return false when there is none. `owner` is as in lineage.h; `after` is a chain or an
 * answer's id.
 */
bool seams_find(struct seams *s, const char *owner, struct str after, struct seam *out);
/* The same for many chains with few queries, because a database may be far away. `each` gets those
 * that exist, in any order; the texts are valid until it returns. */
typedef void (*seam_fn)(
    void *ctx, struct str after, struct str before, struct str messages, struct str lead);
int seams_find_all(struct seams *s, const char *owner, const struct str *after, size_t count,
    seam_fn each, void *ctx);
int seams_add(struct seams *s, const char *owner, struct str after, const struct seam *seam,
    struct steno_error *err);

/* The limits of a group. The limits of the first call are stored, and every later call returns
 * them. */
int seams_pin(struct seams *s, const char *owner, struct str group, uint64_t *chars,
    uint64_t *bytes, struct steno_error *err);

#endif
