/*
 * spool.h - writes a body to the disk while it arrives, for routes with ROUTE_SPOOL.
 *
 * The daemon's threads never write to a disk. They gather up to SERVER_SPOOL_PIECE bytes in
 * r->body; then the connection is suspended, a worker appends them to a file without a name
 * (base/named_file.h), and the connection goes on. So a body needs only this much memory, however
 * long it is, and a slow disk slows only the client that sends the body. A short body is never
 * written to the disk.
 */
#ifndef HTTP_SPOOL_H
#define HTTP_SPOOL_H

#include "http/request.h"

/* Is there room for `n` more bytes in memory? */
bool spool_has_room(const struct request *r, size_t n);
/* On a worker: writes the gathered bytes. An error is stored in r->spool_failed, as a negative
 * errno.
 */
void spool_write(struct request *r);
void spool_release(struct request *r);

/* ---- for handlers: the whole body, wherever it is ---- */

uint64_t spool_size(const struct request *r);
/* The next bytes from *at on: how many, 0 at the end, or a negative errno. */
long spool_read(const struct request *r, uint64_t *at, void *p, size_t n);
/* The file with all of it, which stays the request's; a short body is written to one now. A
 * descriptor or a negative errno. */
int spool_file(struct request *r);

#endif
