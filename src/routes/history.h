/*
 * history.h - pages through a conversation for the OpenAI and Acontext APIs: visible messages,
 * forwards or backwards, each with its id and metadata. Amendments are applied: deleted messages
 * are left out, and superseded ones are replaced.
 */
#ifndef ROUTES_HISTORY_H
#define ROUTES_HISTORY_H

#include "base/arena.h"
#include "steno.h"

struct history_entry;

struct history {
        struct steno_conv *conv;
        struct arena arena;
        struct history_entry *amended; /* ids that amendments are about */
        uint64_t last_seq;
        bool stubs; /* large outputs as excerpts; else as they were stored */
};

/* `outputs` is what the request asked for ("stub", "full"), or NULL: then the configs of the
 * conversation decide, else the settings of its project; without these, messages are given as they
 * were stored. */
int history_outputs(struct history *h, const char *outputs, struct steno_error *err);

int history_open(struct history *h, struct steno_conv *conv, struct steno_error *err);
void history_close(struct history *h);

/* Was the message with this id deleted? */
bool history_is_deleted(const struct history *h, const char *id);

/* A message: `json` is it in the format asked for (an array), `meta` its metadata or NULL. */
struct history_item {
        uint64_t seq;
        const char *id;
        const char *at;
        const char *json;
        size_t n;
        const char *meta;
        const char *format; /* that it was stored in */
        struct steno_conv *conv;
};

/* Non-zero ends the walk and is returned. */
typedef int (*history_fn)(void *ctx, const struct history_item *item);

/* Messages behind `after` (oldest first) or before `before` (newest first; 0: from the end), each
 * in `format`. */
int history_forward(struct history *h, uint64_t after, const char *format, history_fn each,
    void *ctx, struct steno_error *err);
int history_backward(struct history *h, uint64_t before, const char *format, history_fn each,
    void *ctx, struct steno_error *err);
/* One message. STENO_ENOTFOUND: not there, or deleted. */
int history_find(struct history *h, const char *id, const char *format, history_fn each, void *ctx,
    struct steno_error *err);

#endif
