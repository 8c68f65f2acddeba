/*
 * accepted.h - losses that somebody has accepted: <root>/accepted.jsonl.
 *
 *   {"at":"...","project":...,"conversation":...,"seq":N,"what":"..."}
 *
 * Every check reports damage that cannot be repaired. A line here says that the owner knows about a
 * loss: from then on it is reported as accepted and no longer counted. Nothing else reads the file,
 * so views still name what is lost.
 */
#ifndef API_ACCEPTED_H
#define API_ACCEPTED_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/env.h"
#include "steno.h"
#include "store/backend.h"

#define ACCEPTED_NAME "accepted.jsonl"

struct accepted {
        struct arena arena;
        struct str *keys; /* sorted up to `sorted` */
        size_t count;
        size_t cap;
        size_t sorted;
        struct buf lines; /* that are to be written */
};

/* A loss: what a finding says. `project` and `conversation` may be NULL. */
struct accepted_loss {
        const char *project;
        const char *conversation;
        uint64_t seq;
        const char *what;
};

int accepted_read(struct accepted *a, struct backend_store *store, struct steno_error *err);
bool accepted_has(const struct accepted *a, const struct accepted_loss *loss);
/* Remembers one; written by accepted_write. */
int accepted_add(struct accepted *a, const struct env *env, const struct accepted_loss *loss,
    struct steno_error *err);
/* Appends what was added, synced. */
int accepted_write(struct accepted *a, struct backend_store *store, struct steno_error *err);
void accepted_release(struct accepted *a);

#endif
