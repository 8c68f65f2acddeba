/*
 * provider_reader.h - reading one answer of an endpoint: what the readers of all providers share,
 * and what the transport looks at.
 *
 * A provider embeds a `struct provider_reader` as the first member of a struct of its own
 * (assemble.h, blockstream.h).
 */
#ifndef PROVIDER_PROVIDER_READER_H
#define PROVIDER_PROVIDER_READER_H

#include "base/json.h"
#include "provider/reply.h"

struct provider_reader {
        const struct provider_reader_ops *ops;
        bool any;      /* something of a reply was seen: the call is not made again */
        bool finished; /* the reply is complete, but usage or an end mark may follow */
        bool done;     /* nothing more will come */
        bool whole;    /* a body, not a stream */
        /*
         * Set by somebody who records an answer that another program got, before the first event.
         * Then ids and names stay as they came, nothing is added, reading goes on behind an event
         * that is not JSON or tells of an error, and of several choices `choice` is read: the one
         * with this index in a stream, the one at this place in a body.
         */
        bool verbatim;
        int64_t choice;
        unsigned skipped; /* with verbatim: pieces that had no place in the reply */
        struct reply_fault fault;
        /* the readers' own */
        struct reply_hooks hooks;
        struct json tape; /* of the event at hand */
        char finish[40];  /* the endpoint's word for why the reply ended */
};

struct provider_reader_ops {
        /* The next event of a stream. Negative: memory, a limit, or what a hook returned. Faults
         * that the endpoint reports go into reader->fault. */
        int (*event)(struct provider_reader *reader, struct str name, struct str data);
        /* A whole answer, a JSON object. The same. */
        int (*body)(struct provider_reader *reader, struct str json);
        /* Nothing more comes: fills `out`, which is empty before, also after a fault. */
        int (*finish)(struct provider_reader *reader, struct reply *out, struct steno_error *err);
        void (*free)(struct provider_reader *reader);
};

void provider_reader_init(struct provider_reader *r, const struct reply_hooks *hooks);
void provider_reader_release(struct provider_reader *r);

/* Parses an event or a body, an object, into the tape. False: there is nothing to read, because it
 * is none or tells an error (both are faults), or because *rc is negative. With verbatim an event
 * that is not an object is passed over, and one that tells an error is read all the same. */
bool provider_reader_parse(struct provider_reader *r, struct str data, int *rc);
/* Is nothing read any more, after a fault or the end? */
bool provider_reader_is_over(const struct provider_reader *r);
/* Keeps the word for why the reply ended, where there is one. */
void provider_reader_finish(struct provider_reader *r, json_ref word);

/* What an endpoint's words for the end of a reply mean; a list ends with NULL. */
struct provider_finish {
        const char *word;
        enum reply_finish finish;
};
enum reply_finish provider_reader_finish_of(
    const struct provider_reader *r, const struct provider_finish *list);

#endif
