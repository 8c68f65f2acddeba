/*
 * streams.h - an answer that goes on: server-sent events, or the bytes of a file.
 *
 * Any thread may write to a stream. There is a bounded queue between writer and reader, and writers
 * never wait: a reader that falls too far behind is disconnected, and can resume with the id of the
 * last event that it saw. A stream that is ended first sends what is queued. The token that opened
 * a stream is watched: when it is revoked the stream ends within a second.
 */
#ifndef HTTP_STREAMS_H
#define HTTP_STREAMS_H

#include <sys/types.h>

#include "http/request.h"

struct stream;

/*
 * Makes the answer of `r` a stream of server-sent events. The caller holds a reference besides the
 * connection's own and gives it back with stream_unref. `on_close` (may be NULL) is told once when
 * the reader is gone, on any thread.
 */
struct stream *stream_events(struct request *r, void (*on_close)(void *ctx), void *ctx);

void stream_ref(struct stream *s);
void stream_unref(struct stream *s);

/* Bytes for the reader. False: the reader is gone or was cut off. */
bool stream_write(struct stream *s, const void *p, size_t n);
/* One event; `id` and `event` may be NULL. Data is put on one line (JSON has no raw line feeds). */
bool stream_event(struct stream *s, const char *id, const char *event, const char *data, size_t n);
/* Ends the stream cleanly after what is queued has been sent. */
void stream_end(struct stream *s);
/* Breaks the stream off at once, so that the reader does not take it for complete. */
void stream_break(struct stream *s);
bool stream_is_open(struct stream *s);
/* May its reader answer the questions of a run? Visitors may not. */
bool stream_may_answer(const struct stream *s);
/* Is there room in the queue? A writer that can wait should wait for room, because otherwise the
 * reader is disconnected. */
bool stream_has_room(struct stream *s);
/* For how many ms the reader has taken nothing although something is queued. */
int64_t stream_stalled(struct stream *s);

/* ---- the server's side ---- */

struct streams;
struct streams *streams_new(struct server *server);
/* Keep-alives and revoked tokens: called about once a second. */
void streams_tick(struct streams *all);
/* Ends all of them, with a comment that says so. */
void streams_drain(struct streams *all);
void streams_free(struct streams *all);
uint64_t streams_count(struct streams *all);
/* Bytes that wait for their readers. */
uint64_t streams_queued(struct streams *all);

/* A pull stream: `read` fills up to `n` bytes from `offset`; 0 is the end, -1 a failure. For raw
 * artifacts. */
typedef ssize_t (*stream_read_fn)(void *ctx, uint64_t offset, char *p, size_t n);
void stream_file(struct request *r, int status, const char *content_type, uint64_t size,
    stream_read_fn read, void (*release)(void *ctx), void *ctx);

#endif
