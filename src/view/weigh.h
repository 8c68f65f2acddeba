/*
 * weigh.h - the size of a message in tokens, as views count it.
 *
 * A message is the text that its parts make, each followed by a line feed; a call is
 * {"arguments":...,"name":...} written as Go's encoding/json does, because the numbers must be
 * those that Acontext's clients compare with. Its tokens are those of tokens.h. Images and other
 * media weigh no more than their line feed.
 */
#ifndef VIEW_WEIGH_H
#define VIEW_WEIGH_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/message.h"

struct weigher {
        struct buf text;     /* of the message that is being weighed */
        struct arena decode; /* emptied with every message */
};

void weigher_init(struct weigher *w);
void weigher_release(struct weigher *w);

/*
 * Tokens of a message. `instead` (may be NULL) gives a text that replaces the output of a result;
 * absent: the result keeps its output. Errors are sticky: weigher_check.
 */
uint64_t weigh_message(struct weigher *w, const struct message *m,
    struct str (*instead)(void *ctx, const struct message *m, const struct part *result),
    void *ctx);

/* What a result says, as text: a string decoded, data as its JSON, texts one behind the other. It
 * lives until the next message is weighed or told. */
struct str weigh_output(struct weigher *w, const struct part *result);
/* The arguments of a call, as text; lives as long. */
struct str weigh_arguments(struct weigher *w, const struct part *call);
/* Forgets what was decoded. */
void weigh_forget(struct weigher *w);

int weigher_check(const struct weigher *w, struct steno_error *err);

#endif
