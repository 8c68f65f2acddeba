/*
 * access.h - whether a request may come in: its line, headers, host and origin, who sends it, and
 * whether this identity may use this route.
 *
 *   H1  All of it is checked once, before routing to a handler and before a byte of the body is
 *       taken. Whether the token still counts is asked again at the end of the body.
 *
 * What the headers themselves must keep to is in http_check.c.
 */
#ifndef HTTP_ACCESS_H
#define HTTP_ACCESS_H

#include <microhttpd.h>
#include <stdbool.h>

struct request;

/* Fills in who sends the request and its route, or refuses it. Method and version are those of the
 * library. */
enum MHD_Result access_check(struct request *r, const char *method, const char *version);
/* A body may take long: was its sender's token revoked meanwhile? */
bool access_revoked(const struct request *r);

#endif
