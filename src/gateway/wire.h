/*
 * wire.h - reads requests and answers of the four APIs, one row for each.
 *
 * Everything is passed on, whether the gateway understands it or not; the rows only decide what
 * becomes part of a conversation. Nothing here writes or sends.
 */
#ifndef GATEWAY_WIRE_H
#define GATEWAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "steno.h"

struct wire_answer;

/*
 * Answers are read to be recorded: calls keep their ids, members their spelling, and one event that
 * cannot be read does not cost the others. `odd` says what the messages leave out of an answer; the
 * recorder then keeps the answer's bytes as well.
 */
struct wire {
        const char *name;   /* "chat", "responses", "anthropic", "gemini" */
        const char *format; /* of the messages */
        const char *list;   /* the member of a request that holds them */
        const char *system; /* the member with a system prompt beside them */
        /* Fills `out` from a whole answer or from a stream. Negative: memory or a limit. */
        int (*read_answer)(struct str body, bool stream, struct wire_answer *out);
};

/* An answer as it is stored. */
struct wire_answer {
        bool answered; /* in: the gateway answers its calls, so a call without a usable id gets
                          one */
        struct buf messages; /* a JSON array in the wire's format; empty where nothing came */
        size_t count;
        /* Further choices, with commas between: as they came, or of a stream with the members that
         * they would have had. Their messages are in the member `message`, or `content`. */
        struct buf others;
        size_t other_count;
        struct buf odd;  /* sentences with "; " between; "": the messages leave nothing out */
        bool complete;   /* the answer came to its end */
        bool ended;      /* and the client knows it: a stream had its last event */
        struct buf text; /* for an answer that did not: the text that had arrived, decoded */
        char finish[40];
        struct buf usage; /* the endpoint's object; may be empty */
        struct buf model;
        struct buf id;      /* the answer's own id */
        struct buf problem; /* the endpoint's words for an error inside the answer */
};

/* The API of a request below an upstream's prefix ("openai", "anthropic", "gemini"); NULL: it is
 * passed on and not understood. `path` is what stands behind the prefix, with its slash. */
const struct wire *wire_of(const char *upstream, const char *method, struct str path);
/* Is this answer a stream? Its content decides, because clients that asked for a stream ignore the
 * content type; `told` decides if the content shows neither. */
bool wire_is_stream(struct str body, bool told);
/* One by its name, from a recorded head; NULL: none. */
const struct wire *wire_named(const char *name);

/* The messages of a request as an array; what is given as a string becomes one message. */
int wire_messages(const struct wire *w, const struct json *request, struct buf *out);

/* The event by which a stream of this API tells of a failure. `code` is a short word. */
void wire_put_error(const struct wire *w, const char *code, const char *message, struct buf *out);

void wire_answer_init(struct wire_answer *a);
void wire_answer_release(struct wire_answer *a);

#endif
