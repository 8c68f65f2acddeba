/*
 * unread.h - the memory of answers that their clients have not read yet, and who makes room.
 *
 * An answer is in memory until its client has read it, which may be as late as the client likes. So
 * all of them together have a bound: one for clients with a project's token, and one for guests.
 * When an answer does not fit, others are cut off for it, in this order:
 *
 *   U1  those that are read too slowly, whoever they belong to, the oldest first;
 *   U2  the oldest of the address that holds most, as long as it holds more than the newcomer's
 *       address would; of one address, those of the token that holds most, as long as it holds more
 *       than the newcomer's token would.
 *
 * Otherwise the newcomer is refused: it holds most itself. Nobody is cut off in vain. Small answers
 * are not counted, and never refused.
 */
#ifndef HTTP_UNREAD_H
#define HTTP_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

struct unread;

/* An answer, in its request: zeroed before it is held. */
struct unread_answer {
        struct unread_answer *next, *prev; /* older and newer ones are before and behind it */
        uint64_t bytes;                    /* 0: it is not held */
        int64_t begun_ms;
        int fd; /* its connection's */
        unsigned address, token;
        bool guest, lasting, chosen;
        bool counted; /* it was held once; whoever holds it asks without the mutex */
};

struct unread *unread_new(void);
void unread_free(struct unread *all);

/*
 * Holds an answer of `bytes` bytes, from now until unread_let_go(), which comes before its
 * connection is closed. `token` is its client's, "" for none; `guest`: it has no token of a
 * project. A lasting one cannot be asked for again: it is neither refused nor cut off. False: there
 * is no room.
 */
bool unread_hold(struct unread *all, struct unread_answer *a, const char *token, uint64_t bytes);
void unread_let_go(struct unread *all, struct unread_answer *a);
/* Of all answers. */
uint64_t unread_bytes(struct unread *all);

#endif
