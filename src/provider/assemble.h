/*
 * assemble.h - from an OpenAI-compatible stream to one assistant message.
 *
 * Pure: no I/O, no clock; ids it must make come from the caller. Takes chunks (the data of SSE
 * events) or one whole body, and every departure from the protocol that endpoints show:
 *
 *   - tool call deltas without `index`: one with an id (or a name) opens a call, one with only
 *     arguments continues the last;
 *   - the same `index` with another id, or a new name after complete arguments: a new call;
 *   - no id, an empty one, one that an earlier call of the message has: an id is made;
 *   - arguments as an object instead of a string; a name repeated with every fragment;
 *   - reasoning before the role, null content, content as an array, empty choices;
 *   - an error object in place of a chunk; no [DONE]; no finish_reason.
 *
 * Everything it does not know travels verbatim: unknown members of the message, of a call and of
 * its function keep their bytes and order. It leaves out the `index` of a call (which belongs to
 * the stream) and a message's own `id` (the stored message has another one). A reader that is
 * `verbatim` (provider_reader.h) makes and adds nothing.
 */
#ifndef PROVIDER_ASSEMBLE_H
#define PROVIDER_ASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/accum.h"
#include "provider/provider_reader.h"

struct assemble_call {
        int64_t index;         /* -1: none was told */
        bool legacy;           /* it came as `function_call` */
        struct accum members;  /* id, type, extra_content ...; not function */
        struct accum function; /* name, arguments ... */
};

struct assemble {
        struct provider_reader reader;
        struct accum message; /* without role, id and tool_calls */
        struct buf role;
        struct assemble_call *calls;
        size_t count;
        size_t cap;
        struct buf usage;
};

/* Makes one on the heap, for a provider_wire. */
struct provider_reader *assemble_reader(const struct reply_hooks *hooks);

void assemble_init(struct assemble *a, const struct reply_hooks *hooks);
void assemble_release(struct assemble *a);

/* The data of one event. Faults of the endpoint are kept for the reply; negative: memory, a
 * limit, or what `piece` returned. After a fault further chunks are ignored. */
int assemble_chunk(struct assemble *a, struct str data);
/* A whole, not streamed answer. */
int assemble_body(struct assemble *a, struct str json);
/*
 * To be called at the end of the answer: fills `out`, which must be empty. A stream that has
 * neither finish_reason nor [DONE] was cut off: fault LLM_NETWORK, with the text that had arrived.
 */
int assemble_finish(struct assemble *a, struct reply *out, struct steno_error *err);

#endif
