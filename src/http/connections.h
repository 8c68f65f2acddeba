/*
 * connections.h - how long each connection may take for what it owes the server: its next request's
 * headers, or the rest of a body that is read past. Of requests it knows only which one is whose.
 */
#ifndef HTTP_CONNECTIONS_H
#define HTTP_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <microhttpd.h>

#include "base/str.h"

struct connections;

/* `most`: as many as there may be at once. When they are nearly so many, those whose clients owe
 * something make room: see connections_reap(). */
struct connections *connections_new(unsigned most);
unsigned connections_most(const struct connections *all);
/* May be called only when every connection is closed. */
void connections_free(struct connections *all);

/* For MHD_OPTION_NOTIFY_CONNECTION. A new one owes its first headers. */
void connections_notify(struct connections *all, struct MHD_Connection *connection,
    void **socket_context, enum MHD_ConnectionNotificationCode what);

/* It owes nothing: its request is being served. */
void connections_settled(struct MHD_Connection *connection);
/* Its request was answered: the next one may begin when it likes, within the limits. */
void connections_answered(struct MHD_Connection *connection);
/* Its next request has begun: the headers must follow soon. */
void connections_begun(struct MHD_Connection *connection, void *request);
/* The request that has begun and was not answered; NULL: there is none. */
void *connections_request(struct MHD_Connection *connection);
/* A piece of its chunked body may come next. Called before the first piece and at each. */
void connections_owes_chunk(struct MHD_Connection *connection);
/*
 * The request of the one connection of this thread that sent a part of its chunked body which was
 * not handed over. NULL: there is none, or more than one.
 */
void *connections_unparsed(struct connections *all);
/* It owes its body until `deadline` (time_monotonic_ms(), INT64_MAX: for ever). */
void connections_owes_body(struct MHD_Connection *connection, int64_t deadline);
/*
 * It owes the rest of a body that is read past until `deadline`. When nothing came for a few
 * seconds, the client may be waiting for its answer: it is sent then, and the body is read on,
 * because a client that was merely slow would have the connection reset under it. `answer` is the
 * whole answer as it is sent; it is copied the first time, and may be empty later.
 */
void connections_skip(struct connections *all, struct MHD_Connection *connection, int64_t deadline,
    struct str answer);
/* Its request is answered by the caller from now on. False: the answer was sent while the body was
 * read past, and nothing more may be sent. */
bool connections_claim(struct connections *all, struct MHD_Connection *connection);
/* Its socket. */
int connections_fd(struct MHD_Connection *connection);

/*
 * Ends those whose time is over, and reads past what closed ones still send; a few times a second.
 * Where there is hardly room for more, the oldest that wait for a request, its headers or the body
 * of a guest for a second are ended as well.
 */
void connections_reap(struct connections *all);

#endif
