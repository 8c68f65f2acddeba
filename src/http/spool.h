/*
 * spool.h - a body that goes to the disk as it comes, for routes with ROUTE_SPOOL.
 *
 * The daemon's threads never write to a disk. They gather up to SERVER_SPOOL_PIECE bytes in
 * r->body; then the connection is suspended, a worker appends them to a file without a name
 * (base/named_file.h), and the connection goes on. So a body costs this much memory, however long
 * it is, and a slow disk slows its own client alone. A short body never reaches the disk.
 */
#ifndef HTTP_SPOOL_H
#define HTTP_SPOOL_H

#include "http/request.h"

/* Is there room for `n` more bytes in memory? */
bool spool_has_room(const struct request *r, size_t n);
/* On a worker: writes what was gathered. What goes wrong is in r->spool_failed, a negative errno.
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
