/*
 * redact.h - a copy of a conversation without its secrets, from which it is then exported.
 *
 * The copy lies in <root>/.import-<ULID>/ (store/files/incoming.h), like one that comes in, and
 * is removed when it is closed. The rules (output/secrets.h) are applied to everything that was
 * said:
 *
 *   messages        to every string. In `x`, the hashes of outputs and parts become those of the
 *                   masked ones, and the hash of the message as it came becomes zeros
 *   outputs, parts  to their bytes; parts are named by their hash, so their names change
 *   meta.json       to every string except names and times
 *   journals        are as after a purge, because they quote pieces of replies, in which no rule
 *                   would find a secret that was cut in two
 *
 * Seals are not copied.
 */
#ifndef API_REDACT_H
#define API_REDACT_H

#include "api/api_store.h"
#include "output/secrets.h"
#include "store/backend.h"

#define REDACT_PLACES_MAX 1000

struct redact {
        struct steno_store *store;
        struct secrets *rules;
        struct backend_incoming *in; /* NULL: nothing was copied yet */
        uint32_t number;
        uint64_t count;
        struct buf places; /* objects with commas */
        size_t place_count;
        struct steno_error *err;
};

int redact_open(
    struct redact *r, struct steno_store *store, const char *rules, struct steno_error *err);
void redact_close(struct redact *r);

/* Makes the copy, which lives until the next one is made or all is closed. */
int redact_conv(struct redact *r, struct backend_conv *conv, const struct bundle_options *opt,
    struct backend_conv **out);
/* The object for a report. */
void redact_report(const struct redact *r, struct buf *out);

#endif
