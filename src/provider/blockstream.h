/*
 * blockstream.h - makes one assistant message from a stream of Anthropic's Messages API.
 *
 * It uses no I/O and no clock, and the caller makes missing ids. It reads the events of a stream
 * (message_start, content_block_start, content_block_delta, content_block_stop, message_delta,
 * message_stop, ping, error) or one whole body. Blocks of every type are kept with all their
 * members in order, and so are deltas of unknown kinds: thinking keeps its signature, a text its
 * citations, a hosted tool its result. The input of a call is kept byte for byte as the model wrote
 * it. If it is not JSON, it becomes a string, and the call is not run.
 *
 * The message does not get members that belong only to the answer: id, type, model, stop_reason,
 * stop_sequence and usage.
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
        struct buf input; /* the fragments of partial_json, joined, with their escapes */
        bool streamed;    /* the input came in fragments */
};

/* Does this member belong to the answer only, and not to the history? */
bool blockstream_is_of_answer(struct str key);

struct blockstream {
        struct provider_reader reader;
        struct accum message; /* unknown members of the message */
        struct accum usage;   /* from message_start, with the values that message_delta
                                 replaced */
        struct blockstream_block *list;
        size_t count;
        size_t cap;
};

/* Makes a reader on the heap, for a provider_wire. */
struct provider_reader *blockstream_reader(const struct reply_hooks *hooks);

void blockstream_init(struct blockstream *b, const struct reply_hooks *hooks);
void blockstream_release(struct blockstream *b);

/* Takes the data of one event, which contains the event's type. Faults of the endpoint are kept for
 * the reply. Negative: out of memory, a limit, or the result of `piece`. After a fault, events are
 * ignored. */
int blockstream_event(struct blockstream *b, struct str data);
/* Takes a whole answer that is not streamed. */
int blockstream_body(struct blockstream *b, struct str json);
/*
 * Call it at the end of the answer: fills `out`, which must be empty. A stream without stop_reason
 * and message_stop was cut off: then the fault is LLM_NETWORK, with the text that had arrived.
 */
int blockstream_finish(struct blockstream *b, struct reply *out, struct steno_error *err);

#endif
