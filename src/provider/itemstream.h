/*
 * itemstream.h - makes one assistant message from a stream of OpenAI's Responses API.
 *
 * It uses no I/O and no clock, and the caller makes missing ids. It reads the events of a stream or
 * one whole body. An item counts when it is done (response.output_item.done). Deltas are only
 * passed on as they come; if a reply is cut off, its deltas are all that is left.
 *
 * The result is a message of chat completions: the texts of all messages are its content, and calls
 * are its tool_calls. Some items cannot be in a chat message, but the endpoint must get them back
 * unchanged; these are mainly encrypted reasoning. They are kept verbatim in the member
 * `response_items`, which is sent back only to the endpoint that made it (provider_responses.c puts
 * them before the text).
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
        struct accum shown; /* text and thinking from deltas */
        struct buf text;    /* the texts of finished messages, raw, without quotes */
        struct buf summary; /* the summaries of finished reasoning, in the same form */
        struct buf items;   /* items that are sent back unchanged, separated by commas */
        struct itemstream_call *calls;
        size_t count;
        size_t cap;
        struct buf usage;
        int failed;
};

/* Makes a reader on the heap, for a provider_wire. */
struct provider_reader *itemstream_reader(const struct reply_hooks *hooks);

#endif
