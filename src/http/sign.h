/*
 * sign.h - signed URLs: one artifact, for at most an hour, without a token.
 *
 * The signature is an HMAC-SHA-256 over the raw path, the project and the time it ends.
 */
#ifndef HTTP_SIGN_H
#define HTTP_SIGN_H

#include "http/request.h"

/* Appends "?exp=...&prj=...&sig=..." for a raw path. */
void sign_put(
    struct server *s, struct str path, const char *project, struct buf *out, int64_t *expires);
/* Is the request's URL signed by us and still good? Then r->who gets the project. */
bool sign_check(struct request *r);

#endif
