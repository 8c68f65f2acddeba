/*
 * connections.h - time limits of connections: for the headers of the next request, and for the rest
 * of a body that is discarded. Of requests this file knows only the connection.
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

/* For MHD_OPTION_NOTIFY_CONNECTION. The time limit for the first headers of a new connection
 * begins. */
void connections_notify(struct connections *all, struct MHD_Connection *connection,
    void **socket_context, enum MHD_ConnectionNotificationCode what);

/* It owes nothing: its request is being served. */
void connections_settled(struct MHD_Connection *connection);
/* Its request was answered: the next request may begin at any time within the limits. */
void connections_answered(struct MHD_Connection *connection);
/* Its next request has begun: the time limit for the headers begins. */
void connections_begun(struct MHD_Connection *connection, void *request);
/* The request that has begun and was not answered; NULL: there is none. */
void *connections_request(struct MHD_Connection *connection);
/* A piece of its chunked body may come next. To be called before the first piece and at each
 * piece. */
void connections_owes_chunk(struct MHD_Connection *connection);
/*
 * If exactly one connection of this thread has sent a part of its chunked body that was not handed
 * over yet: its request. Otherwise NULL.
 */
void *connections_unparsed(struct connections *all);
/* Its body must have arrived by `deadline` (time_monotonic_ms(), INT64_MAX: no limit). */
void connections_owes_body(struct MHD_Connection *connection, int64_t deadline);
/*
 * The rest of its body is discarded, and must have arrived by `deadline`. If nothing came for a few
 * seconds, the client may be waiting for its answer. The answer is then sent, and the body is still
 * read, because otherwise the connection of a slow client would be reset. `answer` is the whole
 * answer with its head; it is copied the first time, and may be empty later.
 */
void connections_skip(struct connections *all, struct MHD_Connection *connection, int64_t deadline,
    struct str answer);
/* The caller is about to answer its request. False: the answer was already sent while the body was
 * discarded, and nothing more may be sent. */
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
