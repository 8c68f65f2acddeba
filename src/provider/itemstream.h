/*
 * itemstream.h - from a stream of OpenAI's Responses API to one assistant message.
 *
 * Pure: no I/O, no clock; ids that must be made come from the caller. Takes the events of a stream
 * or one whole body. An item counts when it is done (response.output_item.done); deltas are only
 * passed on as they come, and are what is left of a reply that was cut off.
 *
 * The message is one of chat completions: the words of all messages are its content, calls are its
 * tool_calls. Items that a chat message cannot hold but that the endpoint must get back unchanged,
 * mainly encrypted reasoning, are kept verbatim in `response_items`, a member that is sent back
 * only to the endpoint that made it (provider_responses.c puts them before the words).
 */
#ifndef PROVIDER_ITEMSTREAM_H
#define PROVIDER_ITEMSTREAM_H

#include "provider/accum.h"
#include "provider/provider_reader.h"

struct itemstream_call {
        struct buf raw; /* the item */
};

struct itemstream {
        struct provider_reader reader;
        struct accum shown; /* text and thinking as deltas gave them */
        struct buf text;    /* of messages that are done, raw inside of quotes */
        struct buf summary; /* of reasoning that is done, likewise */
        struct buf items;   /* that come back as they are, with commas between */
        struct itemstream_call *calls;
        size_t count;
        size_t cap;
        struct buf usage;
        int failed;
};

/* One on the heap, for a provider_wire. */
struct provider_reader *itemstream_reader(const struct reply_hooks *hooks);

#endif
