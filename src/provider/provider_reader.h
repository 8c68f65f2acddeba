/*
 * provider_reader.h - reads one answer of an endpoint. It has the members that the readers of all
 * providers share and that the transport checks.
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
        bool any;      /* a part of a reply has arrived, so the call is not retried */
        bool finished; /* the reply is complete, but usage or an end mark may follow */
        bool done;     /* nothing more is expected */
        bool whole;    /* the answer is a body, not a stream */
        /*
         * Set before the first event, to record an answer that another program received. Then ids
         * and names are not changed, and nothing is added. An event that is not JSON or that
         * reports an error does not end the reading. If there are several choices, `choice` is
         * read: in a stream the choice with this index, in a body the choice at this place.
         */
        bool verbatim;
        int64_t choice;
        unsigned skipped; /* with verbatim: number of pieces that did not fit into the reply */
        struct reply_fault fault;
        /* used by the readers themselves */
        struct reply_hooks hooks;
        struct json tape; /* the current event */
        char finish[40];  /* the endpoint's reason for the end of the reply */
};

struct provider_reader_ops {
        /* Takes the next event of a stream. Negative: out of memory, a limit, or the result of a
         * hook. Faults that the endpoint reports are stored in reader->fault. */
        int (*event)(struct provider_reader *reader, struct str name, struct str data);
        /* Takes a whole answer, a JSON object, in the same way. */
        int (*body)(struct provider_reader *reader, struct str json);
        /* Says that nothing more comes. Fills `out`, which must be empty, also after a fault. */
        int (*finish)(struct provider_reader *reader, struct reply *out, struct steno_error *err);
        void (*free)(struct provider_reader *reader);
};

void provider_reader_init(struct provider_reader *r, const struct reply_hooks *hooks);
void provider_reader_release(struct provider_reader *r);

/* Parses an event or a body, which must be an object, into the tape. Returns false if there is
 * nothing to read: it is not an object or reports an error (both are faults), or *rc is negative.
 * With verbatim, an event that is not an object is skipped, and an event that reports an error is
 * read like any other. */
bool provider_reader_parse(struct provider_reader *r, struct str data, int *rc);
/* Is the reading over, after a fault or at the end? */
bool provider_reader_is_over(const struct provider_reader *r);
/* Keeps the reason for the end of the reply, if there is one. */
void provider_reader_finish(struct provider_reader *r, json_ref word);

/* The meaning of an endpoint's reasons for the end of a reply; a list ends with NULL. */
struct provider_finish {
        const char *word;
        enum reply_finish finish;
};
enum reply_finish provider_reader_finish_of(
    const struct provider_reader *r, const struct provider_finish *list);

#endif
