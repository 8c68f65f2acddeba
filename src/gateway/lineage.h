/*
 * lineage.h - which conversation a request belongs to, where clients name none.
 *
 * Most clients send their whole history with every request and no name for it. So each message that
 * the gateway stored has a node here: who sent it, the chain after it (elements.h), and where it
 * stands. A request continues the conversation whose whole history it begins with; it is another
 * attempt where the last one failed; it is a fork where it shares at least one reply; else it is
 * new. The tables (tables.h) can be deleted, and then running conversations are begun anew.
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

/* All changes of one exchange are one transaction, and one at a time of an owner. */
int lineage_begin(struct lineage *l, const char *owner, struct steno_error *err);
int lineage_commit(struct lineage *l, struct steno_error *err);
void lineage_rollback(struct lineage *l);

/* The questions below that are answered with a bool cannot tell that there was no answer: STENO_EIO
 * where there was none since lineage_trust(). */
int lineage_check(const struct lineage *l, struct steno_error *err);
void lineage_trust(struct lineage *l);

/* Whose request it is. */
struct lineage_who {
        const char *owner; /* project, token, upstream and wire */
        const char *group; /* what the client calls its session; "": nothing */
        const char *system;
};

enum lineage_kind {
        LINEAGE_NEW,      /* of a history that nobody has seen */
        LINEAGE_CONTINUE, /* behind the last message of `conv` */
        LINEAGE_AGAIN,    /* another attempt: `conv` has the request already, up to `seq` */
        LINEAGE_FORK,     /* `conv` shares the history up to `seq` */
};

struct lineage_place {
        enum lineage_kind kind;
        char conv[LINEAGE_CONV];
        uint64_t seq;
        int64_t node;
        size_t from;                       /* messages of the request before this one are stored */
        char compacted_from[LINEAGE_CONV]; /* the session's, which went on with a new history */
};

/* `only`: of this conversation, by name; NULL: of any. */
int lineage_find(struct lineage *l, const struct lineage_who *who, const char *only,
    const struct elements_link *links, size_t count, struct lineage_place *out,
    struct steno_error *err);

struct lineage_node {
        const char *conv;
        uint64_t seq;
        const char *chain;
        bool replied; /* it or something before it is a reply that was recorded */
        bool tip;     /* the last of its conversation */
        bool open;    /* the end of a request whose reply failed: it may come again */
};

int lineage_add(struct lineage *l, const struct lineage_who *who, const struct lineage_node *node,
    struct steno_error *err);
/* A conversation of this name is made, so what is known of an earlier one is not true of it. */
int lineage_forget(struct lineage *l, const char *owner, const char *conv, struct steno_error *err);
/* The conversation goes on: it has no tip, and no request of it may come again. */
int lineage_continued(struct lineage *l, const char *conv, struct steno_error *err);
/* A request was answered after all, or failed again. */
int lineage_set_open(struct lineage *l, int64_t node, bool open, struct steno_error *err);

/* An answer or an item of one, by the id that the endpoint gave it. */
int lineage_add_id(struct lineage *l, const char *owner, struct str id, const char *digest,
    const char *conv, uint64_t seq, struct steno_error *err);
bool lineage_find_id(struct lineage *l, const char *owner, struct str id,
    char digest[ELEMENTS_CHAIN], char conv[LINEAGE_CONV], uint64_t *seq);

/* Is this chain the end of that conversation? */
bool lineage_is_tip(struct lineage *l, const char *conv, const char *chain);

/* Where a history that ends with this chain stands, whoever stored it. */
bool lineage_find_chain(struct lineage *l, const char *owner, const char *chain,
    char conv[LINEAGE_CONV], uint64_t *seq);

/* Has what stands beside the messages (prompt, tools, parameters) changed since the last request
 * of this conversation? Remembers it. */
int lineage_changed(
    struct lineage *l, const char *conv, const char *digest, bool *is, struct steno_error *err);

#endif
