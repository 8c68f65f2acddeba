/*
 * assemble.h - makes one assistant message from an OpenAI-compatible stream.
 *
 * It uses no I/O and no clock, and the caller makes missing ids. It reads chunks (the data of SSE
 * events) or one whole body, and accepts these known departures of endpoints from the protocol:
 *
 *   - tool call deltas without `index`: a delta with an id (or a name) opens a call, and one with
 *     only arguments continues the last call;
 *   - the same `index` with another id, or a new name after complete arguments: this is a new call;
 *   - no id, an empty id, or the id of an earlier call of the message: a new id is made;
 *   - arguments as an object instead of a string; a name repeated with every fragment;
 *   - reasoning before the role, null content, content as an array, empty choices;
 *   - an error object in place of a chunk; no [DONE]; no finish_reason.
 *
 * Unknown members of the message, of a call and of its function keep their bytes and order. The
 * `index` of a call is left out, because it belongs to the stream, and so is a message's own `id`,
 * because the stored message has another one. A `verbatim` reader (provider_reader.h) makes and
 * adds nothing.
 */
#ifndef PROVIDER_ASSEMBLE_H
#define PROVIDER_ASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/accum.h"
#include "provider/provider_reader.h"

struct assemble_call {
        int64_t index;         /* -1: the stream gave none */
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

/* Makes a reader on the heap, for a provider_wire. */
struct provider_reader *assemble_reader(const struct reply_hooks *hooks);

void assemble_init(struct assemble *a, const struct reply_hooks *hooks);
void assemble_release(struct assemble *a);

/* Takes the data of one event. Faults of the endpoint are kept for the reply. Negative: out of
 * memory, a limit, or the result of `piece`. After a fault, further chunks are ignored. */
int assemble_chunk(struct assemble *a, struct str data);
/* Takes a whole answer that is not streamed. */
int assemble_body(struct assemble *a, struct str json);
/*
 * Call it at the end of the answer: fills `out`, which must be empty. A stream without
 * finish_reason and [DONE] was cut off: then the fault is LLM_NETWORK, with the text that had
 * arrived.
 */
int assemble_finish(struct assemble *a, struct reply *out, struct steno_error *err);

#endif
