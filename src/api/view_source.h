/*
 * view_source.h - where a view gets its records from: a conversation of a store, or of a test.
 */
#ifndef API_VIEW_SOURCE_H
#define API_VIEW_SOURCE_H

#include "api/carry.h"
#include "model/about.h"
#include "model/repair.h"
#include "steno.h"

enum view_lack {
        VIEW_LACKS_NOTHING,
        VIEW_LACKS_OUTPUT, /* the stub can stand for it */
        VIEW_LACKS_PART,   /* the message cannot be given back */
};

struct view_source {
        void *ctx;
        /* The last seq, 0 when empty. */
        int (*last)(void *ctx, uint64_t *seq, struct steno_error *err);
        /* Records with seq > after, oldest first, until `each` returns non-zero. */
        int (*read)(void *ctx, uint64_t after, backend_record_fn each, void *each_ctx,
            struct steno_error *err);
        /* Amendments, newest first. */
        int (*amendments)(
            void *ctx, backend_record_fn each, void *each_ctx, struct steno_error *err);
        /* The seq of the message with this id; STENO_ENOTFOUND. */
        int (*seq_of)(void *ctx, const char *id, uint64_t *seq, struct steno_error *err);
        /* Streams a message with what was taken out of it put back (api/carry.h); c->conv is
         * set by this call. */
        int (*carry)(void *ctx, struct carry_out *c, steno_sink sink, void *sink_ctx,
            struct steno_error *err);
        /* The same of the message as it came (carry_original). `sink` NULL: only *rendering. */
        int (*original)(void *ctx, struct carry_out *c, steno_sink sink, void *sink_ctx,
            bool *rendering, struct steno_error *err);
        /* Which of the files that `carry` would need are not whole; may be NULL. */
        enum view_lack (*lack)(void *ctx, const struct about *about, bool full);
        /* What is known of a call that has no result; may be NULL. */
        enum repair_class (*classify)(
            void *ctx, struct str run, uint64_t seq, struct str call, struct repair_facts *facts);
};

#endif
