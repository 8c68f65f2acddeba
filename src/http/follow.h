/*
 * follow.h - runs and their readers.
 *
 * A follower reads a run's journal once, however many readers it has: each reader says behind
 * which event it wants to go on, gets what is stored, then what comes, until run_finished. The
 * journal is the truth: a reader that was cut off, or comes back after the server died, goes on
 * from the last event it saw.
 *
 * What a reader gets is a projection of the journal, behind a small table; the default one sends
 * the events as they are.
 */
#ifndef HTTP_FOLLOW_H
#define HTTP_FOLLOW_H

#include "http/streams.h"

struct follow;

/* Writes one event of a run into a stream. False: the reader is gone. */
typedef bool (*projection_fn)(
    struct stream *s, const char *run, uint64_t seq, const char *type, const char *data, size_t n);
/* By the value of ?format=; NULL and "" are the default. NULL: there is none of that name. */
projection_fn follow_projection_find(const char *name);

struct follow *follow_new(struct server *server);
/* Adds a reader. Takes over the caller's reference to the stream. */
int follow_add(struct follow *f, const char *project, const char *run, uint64_t after,
    projection_fn project_events, struct stream *stream, struct steno_error *err);
/* How many watch this run. */
unsigned follow_readers(struct follow *f, const char *run);
/* Something was written to this run: look now. */
void follow_poke(struct follow *f, const char *run);
/* Readers get no more; runs are asked to stop. */
void follow_stop(struct follow *f);
void follow_free(struct follow *f);

#endif
