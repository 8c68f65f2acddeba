/*
 * follow.h - runs and their readers.
 *
 * A follower reads a run's journal once, however many readers it has. Each reader names the event
 * after which it wants to begin; it gets the stored events, then the new ones, until run_finished.
 * Everything comes from the journal: a reader that was disconnected, or comes back after the server
 * died, continues after the last event that it saw.
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
/* Completes a run whose process died, so that its readers see its end. */
void follow_bury(struct server *server, const char *project, const char *run);
/* Readers get no more; runs are asked to stop. */
void follow_stop(struct follow *f);
void follow_free(struct follow *f);

#endif
