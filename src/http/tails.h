/*
 * tails.h - readers of outputs that still grow. One thread serves all of them.
 */
#ifndef HTTP_TAILS_H
#define HTTP_TAILS_H

#include "http/streams.h"
#include "steno.h"

struct tails;

struct tails *tails_new(void);
/* Adds a reader from `offset` on. Takes over conv, ref (freed with free()) and the caller's
 * reference to the stream, also when it fails. */
int tails_add(struct tails *all, struct steno_conv *conv, char *ref, uint64_t offset,
    struct stream *stream, struct steno_error *err);
/* Readers get no more. */
void tails_stop(struct tails *all);
void tails_free(struct tails *all);

#endif
