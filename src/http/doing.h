/*
 * doing.h - what a run is doing, according to its journal: it waits for the model, runs tools, or
 * waits for a person.
 *
 * A call that the model has made is queued at first. It waits while a person is asked, and runs
 * from its dispatch on, which is stored just before the tool begins.
 */
#ifndef HTTP_DOING_H
#define HTTP_DOING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "model/event.h"

#define DOING_NAME 80

enum doing_phase { DOING_QUEUED, DOING_WAITING, DOING_RUNNING, DOING_ENDED };

/* A call whose result is not in the log yet. */
struct doing_call {
        uint64_t message; /* hash_64 of the id of the reply that makes it */
        uint64_t id;      /* the same of its own */
        enum doing_phase phase;
        int64_t at;  /* when it began; 0: it has not */
        int64_t end; /* of DOING_ENDED */
        char name[DOING_NAME];
};

struct doing {
        bool live;        /* a run is at work */
        int64_t asked_at; /* when the model was asked; 0: no reply is awaited */
        struct doing_call *calls;
        size_t count;
};

/* Nothing is done, and no memory is held. */
void doing_clear(struct doing *d);
/* Takes an event of the journal. STENO_ENOMEM, or 0. */
int doing_take(struct doing *d, const char *type, const char *at, const char *data, size_t n);
/* Work that is under way, or that has ended but is not in the log yet: 'm' of a model, 't' of
 * tools, 0: none. It lasts from *from to *to, which is `now` for work under way. */
char doing_work(const struct doing *d, int64_t now, int64_t *from, int64_t *to);
/* NULL: the run knows no such call, or its result is in the log. */
const struct doing_call *doing_find(const struct doing *d, struct str message, struct str call);
/* Does the run work on the calls of the newest reply, which was stored at `at`? A reply is stored
 * before the run tells of its calls, and then it tells of one after the other. */
bool doing_newest(const struct doing *d, int64_t at);
/* The call that has been running for longest, or NULL. */
const struct doing_call *doing_first(const struct doing *d);

#endif
