/*
 * follow.h - runs and their readers.
 *
 * A follower reads a run's journal once, however many readers it has: each reader says behind
 * which event it wants to go on, gets what is stored, then what comes, until run_finished. The
 * journal is the truth: a reader that was cut off, or comes back after the server died, goes on
 * from the last event it saw.
 *
 * What a reader gets is a projection of the journal (projection.h).
 */
#ifndef HTTP_FOLLOW_H
#define HTTP_FOLLOW_H

#include "http/projection.h"
#include "http/streams.h"

struct follow;

struct follow *follow_new(struct server *server);
/* Adds a reader of the events behind `after`. Takes over the caller's reference to the stream. */
int follow_add(struct follow *f, const char *project, const char *run, uint64_t after,
    const struct projection *projection, struct stream *stream, struct steno_error *err);
/* How many watch this run who may answer its questions: a visitor may not. */
unsigned follow_answerers(struct follow *f, const char *run);
/* Something was written to this run: look now. */
void follow_poke(struct follow *f, const char *run);
/* Brings a run whose process died to its end, so that its readers see one. */
void follow_bury(struct server *server, const char *project, const char *run);
/* Readers get no more; runs are asked to stop. */
void follow_stop(struct follow *f);
void follow_free(struct follow *f);

#endif
