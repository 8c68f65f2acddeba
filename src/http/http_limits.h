/*
 * http_limits.h - every maximum of the server in one place, with its reason.
 */
#ifndef HTTP_HTTP_LIMITS_H
#define HTTP_HTTP_LIMITS_H

#include "base/limits.h"

#define SERVER_CONNECTIONS_MAX 16000 /* below the descriptors a process usually gets */
#define SERVER_FILES_SHARE 4         /* one of so many descriptors is for files, not connections */
#define SERVER_POOL_THREADS 2        /* epoll loops; they never block */
#define SERVER_BACKLOG 1024          /* connections that wait to be accepted */
#define SERVER_WORKERS 64            /* handlers may wait for a disk: appends share a sync */
#define SERVER_QUEUE_MAX 4096        /* requests that wait for a worker; then 503 */
#define SERVER_HEAVY_BYTES (1 * MIB) /* of a body: more is work of tens of milliseconds */
#define SERVER_KEPT_MEMORY (4 * MIB) /* free at the end of a heap, for the next answers */
#define SERVER_HEAPS 16              /* of the C library, which threads share */
#define SERVER_TURNS_MAX 512         /* turns under way, each with a thread; then 503 */
#define SERVER_VISITOR_TURNS_MAX 64  /* of these, visitors' */
#define SERVER_VISITORS_ASKING_MAX 128 /* of their threads; one that asks again waits as well */
#define SERVER_URGENT_WORKERS 64       /* for stop, approve and health */
#define SERVER_CONNECTION_MEMORY (12 * KIB) /* headers; 10,000 idle readers cost 120 MB */
#define SERVER_FIELD_MEMORY 64 /* the library's record of a header, a cookie or a trailer */
#define SERVER_HEAD_MEMORY (3 * KIB / 2) /* kept for the headers of the answer */
#define SERVER_URI_MAX (8 * KIB)
#define SERVER_HEADERS_MAX 100
#define SERVER_BODY_MAX (MESSAGE_MAX + 1 * MIB)
#define SERVER_SMALL_BODY_MAX (1 * MIB)
#define SERVER_SPOOLED_MAX                                                                         \
        (64 * GIB)                   /* of a body that goes to the disk; the disk may be smaller   \
                                      */
#define SERVER_SPOOL_PIECE (1 * MIB) /* of it that is in memory */
#define SERVER_SKIP_MAX (128 * MIB)  /* discarded, so that a refused client gets the reason */
#define SERVER_SKIP_SECONDS 60       /* for so long, counted from the request's begin */
#define SERVER_SKIP_PAUSE_MS 6000   /* a client that stops sending so long may wait for an answer */
#define SERVER_SKIPPING_MAX 64      /* bodies that are read past at once */
#define SERVER_LEFTOVER_SECONDS 10  /* how long data that comes after a refusal is discarded */
#define SERVER_BODIES_MAX (1 * GIB) /* of all requests under way; then 503 */
#define SERVER_VISITOR_BODIES_MAX (128 * MIB) /* beside these, those of guests */
#define SERVER_KEPT_BODY (64 * KIB)  /* of a guest; a smaller one is never refused for that */
#define SERVER_REPLIES_MAX (1 * GIB) /* of answers that are not read yet; then 503 */
#define SERVER_VISITOR_REPLIES_MAX (128 * MIB) /* beside these, those of guests */
#define SERVER_REPLY_SHARE 2                   /* one client may have a half of that */
#define SERVER_REPLY_SHARES 4096               /* clients that are told apart */
#define SERVER_READ_GRACE_MS 10000             /* for an answer that others need the memory of, */
#define SERVER_READ_RATE (256 * KIB)           /* and a second for so many bytes of it */
#define SERVER_KEPT_REPLY (64 * KIB)           /* a smaller answer is never refused for that */
#define SERVER_IDLE_SECONDS 60                 /* a connection on which nothing moves */
#define SERVER_HEADER_SECONDS 15 /* from accept, or a request line, to the end of the headers */
#define SERVER_VISITOR_BODY_SECONDS 60  /* for a body of somebody without a token */
#define SERVER_STREAM_QUEUE (256 * KIB) /* a reader that is this far behind is cut off */
#define SERVER_STREAMS_MAX (512 * MIB)  /* of all readers; then each is sent a little at a time, */
#define SERVER_VISITOR_STREAMS_MAX (32 * MIB) /* and beside these, of guests; */
#define SERVER_STREAM_LITTLE (16 * KIB)       /* so much */
#define SERVER_STREAM_BLOCK (2 * KIB)         /* buffer of a stream; there may be 10,000 */
#define SERVER_RAW_BLOCK (32 * KIB)
#define SERVER_KEEPALIVE_MS 15000
#define SERVER_LOCK_MS 2000         /* for a lock on the tokens that another process may hold */
#define SERVER_TICK_MS 250          /* how soon a new or revoked token counts */
#define SERVER_DRAIN_MS 5000        /* how long SIGTERM waits for what was accepted */
#define SERVER_RECOVER_MS 2000      /* how often it looks for runs whose process died */
#define SERVER_PAGE_MAX 1000        /* messages of one answer; a larger limit is clamped */
#define SERVER_PUBLIC_PER_MINUTE 10 /* chatbot-public: turns of one visitor session */
#define SERVER_PUBLIC_SESSIONS_PER_MINUTE 60
#define SERVER_PUBLIC_READS_PER_MINUTE 240   /* a visitor's other requests: a page that reloads */
#define SERVER_PUBLIC_BODY_MAX (256 * KIB)   /* room for a message in JSON's longest spelling */
#define SERVER_PUBLIC_MESSAGE_MAX (32 * KIB) /* a long question with a pasted file */
#define SERVER_PUBLIC_MESSAGES_MAX 1000      /* records of a visitor's conversation, then 413 */
#define SERVER_PUBLIC_HISTORY_MAX (4 * MIB)  /* bytes of its messages: each turn reads them all */
#define SERVER_VISITORS_MAX 2000             /* tokens of visitors; the oldest make room */
#define SERVER_SIGNED_SECONDS 3600           /* life of a signed URL */
#define SERVER_IDEMPOTENCY_MAX 4096          /* remembered replies, in memory beside the store's */
#define SERVER_IDEMPOTENCY_REPLY (64 * KIB)  /* a larger one is not remembered */

#endif
