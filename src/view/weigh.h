/*
 * weigh.h - the size of a message in tokens, as views count it.
 *
 * The text of a message consists of its parts, each followed by a line feed. A call is written as
 * {"arguments":...,"name":...} in the way of Go's encoding/json, because Acontext's clients compare
 * the counts with their own. tokens.h counts the tokens of this text. Images and other media weigh
 * no more than their line feed.
 */
#ifndef VIEW_WEIGH_H
#define VIEW_WEIGH_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/message.h"

struct weigher {
        struct buf text;     /* the text of the message that is being weighed */
        struct arena decode; /* emptied for every message */
};

void weigher_init(struct weigher *w);
void weigher_release(struct weigher *w);

/*
 * Returns the tokens of a message. `instead` (may be NULL) returns a text that replaces the output
 * of a result; absent: the result keeps its output. Errors are sticky: call weigher_check.
 */
uint64_t weigh_message(struct weigher *w, const struct message *m,
    struct str (*instead)(void *ctx, const struct message *m, const struct part *result),
    void *ctx);

/* Returns the output of a result as text: a string decoded, data as its JSON, texts joined. It
 * lives until the next call for a message. */
struct str weigh_output(struct weigher *w, const struct part *result);
/* Returns the arguments of a call as text, with the same lifetime. */
struct str weigh_arguments(struct weigher *w, const struct part *call);
/* Frees what was decoded. */
void weigh_forget(struct weigher *w);

int weigher_check(const struct weigher *w, struct steno_error *err);

#endif
