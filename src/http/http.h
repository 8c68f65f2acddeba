/*
 * http.h - the daemon underneath, for server.c and stream.c.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>

#include "http/server_core.h"

struct sockaddr;
struct MHD_Response;

int http_start(struct server *s, const struct sockaddr *address, struct steno_error *err);
/* No new connections from here on. */
void http_quiesce(struct server *s);
/* Every connection is closed. Nobody may hold a suspended one. */
void http_stop(struct server *s);
/* Does the body come in chunks? */
bool http_is_chunked(const struct request *r);

/* streams.c: the answer of a request that became a stream. */
struct MHD_Response *stream_response(struct stream *stream);
struct MHD_Response *stream_file_response(struct file_answer *f);
/* The request ended before it could be answered: there will be no reader. */
void stream_abandon(struct stream *stream);
void stream_file_abandon(struct file_answer *f);

#endif
