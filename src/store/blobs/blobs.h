/*
 * blobs.h - bytes in a bucket of an S3 server, for a store whose large outputs do not belong into
 * its database.
 *
 *      struct blobs *b;
 *      blobs_open(env, "s3://bucket/prefix?endpoint=http://127.0.0.1:7480", &b, err);
 *      blobs_key(b, "ctx_01...", key);
 *      blobs_upload_begin(b, key, size, &up, err);
 *      blobs_upload_write(up, p, n, err);
 *      blobs_upload_end(up, etag, err);
 *      blobs_read(b, key, etag, at, p, n, err);
 *
 * A key is made for one upload and never used again, so what is read under a key and an ETag is
 * what was uploaded, or it is gone (STENO_ENOTFOUND). Nothing can be read before its upload has
 * ended. The caller notes the key before the upload, so that leftovers of a crash can be removed
 * without a list of the bucket.
 *
 * The URL is s3://BUCKET[/PREFIX][?endpoint=URL][&region=NAME][&style=path|virtual]. Keys come from
 * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, the region from AWS_REGION or
 * AWS_DEFAULT_REGION (us-east-1), the endpoint from AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.
 *
 *   B1  Every request is signed (SigV4) with the hash of its body.
 *   B2  A request that a server could not answer (no connection, 5xx, too many requests) is sent
 *       again, TRIES times in all. One that was refused is not.
 *   B3  A server that sends nothing for STALL seconds is an error.
 *   B4  Memory: three parts of an upload (8 MiB each, more for what is larger than 80 GB): one is
 *       filled while two are sent. Nothing else grows with the size.
 *   B5  All calls are thread-safe, but for those on an upload, which has one user.
 *
 * Errors: STENO_EDENIED wrong keys or no right to it; STENO_ENOTFOUND no such object, or no such
 * bucket; STENO_EIO anything else that a server says or does not say; the message names the request
 * and the server's own words.
 */
#ifndef STORE_BLOBS_BLOBS_H
#define STORE_BLOBS_BLOBS_H

#include <sys/types.h>

#include "base/env.h"
#include "steno.h"

#define BLOBS_KEY 256
#define BLOBS_ETAG 80
#define BLOBS_UPLOAD 256

struct blobs;
struct blobs_upload;

/* Reads the URL and the variables; asks the server nothing. */
int blobs_open(const struct env *env, const char *url, struct blobs **out, struct steno_error *err);
/* NULL does nothing. */
void blobs_close(struct blobs *b);

/* A new key for the bytes of `name`, which is of letters, digits, _ and -. */
int blobs_key(struct blobs *b, const char *name, char out[BLOBS_KEY], struct steno_error *err);

/* `size` is what will come: it decides how large a part is. */
int blobs_upload_begin(struct blobs *b, const char *key, uint64_t size, struct blobs_upload **out,
    struct steno_error *err);
/* What blobs_remove_upload wants when this process dies; "" when the whole goes in one request. */
const char *blobs_upload_id(const struct blobs_upload *u);
int blobs_upload_write(struct blobs_upload *u, const void *p, size_t n, struct steno_error *err);
/* Durable and readable on return. Frees it, whatever happens; on failure nothing is left. */
int blobs_upload_end(struct blobs_upload *u, char etag[BLOBS_ETAG], struct steno_error *err);
/* Frees it; nothing is left at the server. NULL does nothing. */
void blobs_upload_abort(struct blobs_upload *u);

/* Up to `n` bytes from `at` on; fewer only at the end. */
ssize_t blobs_read(struct blobs *b, const char *key, const char *etag, uint64_t at, void *p,
    size_t n, struct steno_error *err);
/* The first `n` bytes, handed on as they come, in one request. STENO_EINTERRUPTED: `sink` returned
 * another number than 0. */
int blobs_stream(struct blobs *b, const char *key, const char *etag, uint64_t n, steno_sink sink,
    void *ctx, struct steno_error *err);
/* Removes an object, and what an upload of it has left. It is no error if there is nothing. */
int blobs_remove(struct blobs *b, const char *key, const char *upload, struct steno_error *err);

#endif
