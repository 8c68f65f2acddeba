/*
 * access_log.h - one line of JSON for each request that was answered, without anything secret:
 * neither the query, which may hold a signature, nor a token in the path.
 */
#ifndef HTTP_ACCESS_LOG_H
#define HTTP_ACCESS_LOG_H

struct request;

/* Writes the line of r into the server's log, where it has one. */
void access_log_request(struct request *r);

#endif
