/*
 * api_record_as.h - converts one message to another format: nothing is repaired, and nothing is
 * left out.
 */
#ifndef API_API_RECORD_AS_H
#define API_API_RECORD_AS_H

#include "base/arena.h"
#include "format/format.h"
#include "steno.h"

/* The message with stubs for its large outputs, whoever stored it. */
int api_record_stubs(const struct steno_record *r, char **json, size_t *n, struct steno_error *err);

/* Where a record stands, and what is said about its message. */
struct api_record_source {
        struct steno_conv *conv;
        uint64_t seq;
        const struct about *about;
};

/* As steno_read, of the record with this seq alone, and without completing dead runs first. */
struct backend_lookup;
int api_record_lookup(struct steno_conv *conv, struct backend_lookup *lookup, uint64_t seq,
    steno_record_fn each, void *ctx, struct steno_error *err);

struct api_record_source api_record_source(const struct steno_record *r);

/* Gives the calls and results of a message that came without ids those that stand in its record.
 * 0 or STENO_ENOMEM. */
int api_record_give_ids(struct message *m, const struct about *a, struct arena *arena);

#endif
