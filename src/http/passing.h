/*
 * passing.h - passes an answer of the gateway to the client, unchanged and without delay.
 */
#ifndef HTTP_PASSING_H
#define HTTP_PASSING_H

#include "http/request.h"

struct passing;
struct MHD_Response;

/*
 * Passes the request on. The answer comes later, on another thread (ROUTE_LATER). This call takes
 * over the request, whatever happens.
 */
void passing_start(struct request *r, const char *upstream, struct str rest);

/* http.c's: the response with its status and headers, which begins when the endpoint's headers are
 * there. The passing is gone with it. */
struct MHD_Response *passing_response(struct passing *p);
/* Finds clients that have disconnected while nothing was sent to them, which the library does not
 * notice.
 */
void passing_tick(struct server *s);
/* The request ended before it could be answered: there will be no reader. */
void passing_forget(struct passing *p);

#endif
