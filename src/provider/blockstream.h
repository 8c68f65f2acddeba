/*
 * blockstream.h - from a stream of Anthropic's Messages API to one assistant message.
 *
 * Pure: no I/O, no clock; ids that must be made come from the caller. Takes the events of a stream
 * (message_start, content_block_start, content_block_delta, content_block_stop, message_delta,
 * message_stop, ping, error) or one whole body. Blocks of every type are kept with all their
 * members in the order in which they came, and so are deltas of kinds that are not known: thinking
 * keeps its signature, a text its citations, a hosted tool its result. The input of a call is the
 * text that the model wrote where that is JSON, byte for byte; where it is not, it is kept as a
 * string, and the call is not run.
 *
 * The message does not get the members that belong to the answer and not to the history: id, type,
 * model, stop_reason, stop_sequence and usage.
 */
#ifndef PROVIDER_BLOCKSTREAM_H
#define PROVIDER_BLOCKSTREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/accum.h"
#include "provider/provider_reader.h"

struct blockstream_block {
        int64_t index;
        struct accum members;
        struct buf input; /* the fragments of partial_json, joined, escapes as they stand */
        bool streamed;    /* its input came in fragments */
};

/* Does this member belong to the answer only, and not to the history? */
bool blockstream_is_of_answer(struct str key);

struct blockstream {
        struct provider_reader reader;
        struct accum message; /* members of the message that are not known here */
        struct accum usage;   /* of message_start, with what message_delta replaced */
        struct blockstream_block *list;
        size_t count;
        size_t cap;
};

/* Makes one on the heap, for a provider_wire. */
struct provider_reader *blockstream_reader(const struct reply_hooks *hooks);

void blockstream_init(struct blockstream *b, const struct reply_hooks *hooks);
void blockstream_release(struct blockstream *b);

/* The data of one event; its type stands in it. Faults of the endpoint are kept for the reply;
 * negative: memory, a limit, or what `piece` returned. After a fault, events are ignored. */
int blockstream_event(struct blockstream *b, struct str data);
/* A whole, not streamed answer. */
int blockstream_body(struct blockstream *b, struct str json);
/*
 * To be called at the end of the answer: fills `out`, which must be empty. A stream that has
 * neither a stop_reason nor message_stop was cut off: fault LLM_NETWORK, with the text that had
 * arrived.
 */
int blockstream_finish(struct blockstream *b, struct reply *out, struct steno_error *err);

#endif
