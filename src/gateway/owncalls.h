/*
 * owncalls.h - calls of context tools in a model's reply, and their results, in each API's
 * spelling.
 *
 * The functions are pure, except for the tools themselves, which read the results of the present
 * request (steno_stubs).
 */
#ifndef GATEWAY_OWNCALLS_H
#define GATEWAY_OWNCALLS_H

#include "base/buf.h"
#include "base/json.h"
#include "gateway/wire.h"
#include "steno.h"

/* The most requests of one turn that are answered here. */
#define OWNCALLS_ROUNDS_MAX 8

struct owncalls {
        /* The reply and the results: JSON values with commas between, as the next request has them
         * after its messages. */
        struct buf messages;
        /* Results that must be in the same message as the app's own results: the beginning of its
         * next message. Empty where results are separate messages. */
        struct buf lead;
        struct buf results; /* all of them, with commas between */
        size_t own;         /* calls of context tools */
        size_t others;      /* calls that are the app's */
        size_t shown;       /* other content for the app: text, images, work of the endpoint */
};

void owncalls_init(struct owncalls *h);
void owncalls_release(struct owncalls *h);

/*
 * Answers the calls of context tools in `reply`, a JSON array of messages in the wire's format.
 * `refused`: the calls are not run, and their results say so.
 */
int owncalls_answer(const struct wire *w, struct str reply, struct steno_stubs *stubs, bool refused,
    struct owncalls *out, struct steno_error *err);

/* Is this a context tool's name? */
bool owncalls_is_name(const struct json *j, json_ref name);
bool owncalls_is_own(struct str name);
/* Could it be the beginning of one? `begun` is not empty. */
bool owncalls_may_become_own(struct str begun);
/* Does an item of Responses need an answer from the app? */
bool owncalls_is_call_item(const struct json *j, json_ref item);

#endif
