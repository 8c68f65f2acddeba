/*
 * lineage.h - finds the conversation that a request belongs to when the client names none.
 *
 * Most clients send their whole history with every request, but no id for it. So each message that
 * the gateway stored has a node here: its owner, the chain after it (elements.h), and its place. A
 * request whose beginning is the whole history of a conversation continues that conversation. It is
 * another attempt if the last attempt failed. It becomes a fork if it shares a beginning with at
 * least one reply. Otherwise it begins a new conversation. The tables (tables.h) can be deleted;
 * then the next request of each client begins a new conversation.
 */
#ifndef GATEWAY_LINEAGE_H
#define GATEWAY_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/elements.h"
#include "steno.h"

#define LINEAGE_CONV 258

struct lineage;

/* `path` is the store's folder, or the server's own. */
int lineage_open(
    struct steno_store *store, const char *path, struct lineage **out, struct steno_error *err);
void lineage_close(struct lineage *l);

/* All changes of one exchange are one transaction. Transactions of the same owner run one after the
 * other. */
int lineage_begin(struct lineage *l, const char *owner, struct steno_error *err);
int lineage_commit(struct lineage *l, struct steno_error *err);
void lineage_rollback(struct lineage *l);

/* The functions below that return a bool cannot report that the database failed. Returns STENO_EIO
 * if a query has failed since lineage_trust(). */
int lineage_check(const struct lineage *l, struct steno_error *err);
void lineage_trust(struct lineage *l);

/* Whose request it is. */
struct lineage_who {
        const char *owner; /* project, token, upstream and wire */
        const char *group; /* what the client calls its session; "": nothing */
        const char *system;
};

enum lineage_kind {
        LINEAGE_NEW,      /* the request has a new history */
        LINEAGE_CONTINUE, /* behind the last message of `conv` */
        LINEAGE_AGAIN,    /* another attempt: `conv` already has the request, up to `seq` */
        LINEAGE_FORK,     /* `conv` shares the history up to `seq` */
};

struct lineage_place {
        enum lineage_kind kind;
        char conv[LINEAGE_CONV];
        uint64_t seq;
        int64_t node;
        size_t from;                       /* the messages before this one are already stored */
        char compacted_from[LINEAGE_CONV]; /* the session's conversation, which continued with a new
                                              history */
};

/* `only`: of this conversation, by name; NULL: of any. */
int lineage_find(struct lineage *l, const struct lineage_who *who, const char *only,
    const struct elements_link *links, size_t count, struct lineage_place *out,
    struct steno_error *err);

struct lineage_node {
        const char *conv;
        uint64_t seq;
        const char *chain;
        bool replied; /* this message or one before it is a recorded reply */
        bool tip;     /* the last of its conversation */
        bool open;    /* the end of a request whose reply failed: the request may come again */
};

int lineage_add(struct lineage *l, const struct lineage_who *who, const struct lineage_node *node,
    struct steno_error *err);
/* A new conversation has this id: forgets what is known about an earlier one. */
int lineage_forget(struct lineage *l, const char *owner, const char *conv, struct steno_error *err);
/* The conversation continues: removes its tip, and its requests that could have come again. */
int lineage_continued(struct lineage *l, const char *conv, struct steno_error *err);
/* A repeated request was answered this time, or failed again. */
int lineage_set_open(struct lineage *l, int64_t node, bool open, struct steno_error *err);

/* An answer or an item of one, by the id that the endpoint gave it. */
int lineage_add_id(struct lineage *l, const char *owner, struct str id, const char *digest,
    const char *conv, uint64_t seq, struct steno_error *err);
bool lineage_find_id(struct lineage *l, const char *owner, struct str id,
    char digest[ELEMENTS_CHAIN], char conv[LINEAGE_CONV], uint64_t *seq);

/* Is this chain the end of that conversation? */
bool lineage_is_tip(struct lineage *l, const char *conv, const char *chain);

/* Finds the place of a history that ends with this chain, whichever exchange stored it. */
bool lineage_find_chain(struct lineage *l, const char *owner, const char *chain,
    char conv[LINEAGE_CONV], uint64_t *seq);

/* Have the prompt, tools and parameters changed since the last request of this conversation?
 * Remembers them. */
int lineage_changed(
    struct lineage *l, const char *conv, const char *digest, bool *is, struct steno_error *err);

#endif
