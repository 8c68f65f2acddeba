/*
 * purge_plan.h - what a log refers to, and what a purge takes away: which records, and what only
 * they refer to. For whoever removes or copies conversations; reads, changes nothing.
 */
#ifndef STORE_FILES_PURGE_PLAN_H
#define STORE_FILES_PURGE_PLAN_H

#include "base/arena.h"
#include "store/files/conv.h"

struct purge_names {
        struct str *list; /* sorted, each once */
        size_t count;
        size_t cap;
};

struct purge_plan {
        struct arena arena;
        uint64_t *seqs; /* of the records that go, ascending */
        size_t count;
        size_t cap;
        size_t damaged;           /* places in the log that cannot be read: they are not changed */
        struct purge_names refs;  /* artifacts that only they name */
        struct purge_names parts; /* parts likewise */
        struct purge_names runs;  /* runs that wrote them, those of earlier purges included */
        struct purge_names kept_refs;  /* artifacts and parts that the other records name; */
        struct purge_names kept_parts; /* of purge_plan_make only where something goes */
};

/* Under the lock and fresh. */
int purge_plan_make(struct files_conv *conv, struct purge_plan *plan, struct steno_error *err);
/* The same of the first `end` bytes of an open log; what stays is named in any case. */
int purge_plan_look(
    const struct fs *fs, int log, uint64_t end, struct purge_plan *plan, struct steno_error *err);
void purge_plan_release(struct purge_plan *plan);
bool purge_names_have(const struct purge_names *names, struct str name);
/* Another record; seqs come in order. 0 or STENO_ENOMEM. */
int purge_plan_add(struct purge_plan *plan, uint64_t seq);
bool purge_plan_has(const struct purge_plan *plan, uint64_t seq);

#endif
