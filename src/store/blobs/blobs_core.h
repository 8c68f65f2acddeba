/*
 * blobs_core.h - one signed request to an S3 server, as the files of this folder share it.
 */
#ifndef STORE_BLOBS_BLOBS_CORE_H
#define STORE_BLOBS_BLOBS_CORE_H

#include <pthread.h>

#include "base/buf.h"
#include "base/libcurl.h"
#include "base/str.h"
#include "store/blobs/blobs.h"

#define BLOBS_IDLE 16 /* connections that are kept */

struct blobs {
        const struct env *env;
        char *host;    /* "http://127.0.0.1:7480/bucket/", or with the bucket in its name */
        char *prefix;  /* "" or "some/folder/" */
        char *signing; /* "aws:amz:REGION:s3" */
        char *keys;    /* "ID:SECRET" */
        char *token;   /* of a session, or NULL */
        int64_t ahead; /* atomic: of the server's clock, in seconds */
        int stall_s;
        pthread_mutex_t mutex;
        CURL *idle[BLOBS_IDLE];
        int idle_count;
};

/* What is asked, and what comes back. */
struct blobs_request {
        const char *method; /* "GET", "PUT", "HEAD", "POST", "DELETE" */
        const char *key;    /* "" is the bucket */
        const char *query;  /* sorted, encoded, without the ?; or NULL */
        const char *match;  /* an ETag that it must have, or NULL */
        struct str body;
        uint64_t at;     /* of a GET: a range, when `room` is set */
        char *to;        /* where its bytes go, */
        steno_sink sink; /* or who gets them as they come; a retry goes on where they ended */
        void *ctx;
        bool stopped;      /* by the sink */
        const char *wrong; /* what came is not what was asked for, and was not handed on, */
        int wrong_code;    /* and what that comes to */
        uint64_t room;     /* how many, */
        uint64_t got;      /* and how many there were, */
        uint64_t asked;    /* of which so many before this try */
        long status;
        uint64_t size; /* Content-Length */
        char etag[BLOBS_ETAG];
        struct buf answer; /* any other body, up to 64 KB; released by the caller */
};

/* Sends it, again where that helps (B2). 0: a 2xx. `what` is for the message: "upload". */
int blobs_ask(struct blobs *b, struct blobs_request *q, const char *what, struct steno_error *err);
/* The text of the first element of that name, or an empty one. */
struct str blobs_element(struct str xml, const char *name);

#endif
