/*
 * journal.h - the loop's events: written to the run's log, then given to the listeners.
 *
 * Pieces of text are merged over at most JOURNAL_MERGE_MS and written with `process` durability;
 * every other event is synced first (except the beginning of a tool, because the synced dispatch
 * before it has the same information). Pending text is written before it, so that the log has the
 * order in which things happened. A failed write is remembered: from then on listeners get nothing,
 * because nothing would be stored (journal_check).
 *
 * Events may come from any thread; listeners are called one at a time, in the order of seq.
 */
#ifndef LOOP_JOURNAL_H
#define LOOP_JOURNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "model/event.h"
#include "provider/reply.h"
#include "steno_loop.h"

#define JOURNAL_MERGE_MS 50

struct journal {
        struct steno_run *run;
        void (*on_event)(void *ctx, uint64_t seq, const char *type, const char *data, size_t n);
        void *ctx;
        pthread_mutex_t lock;
        /* pending text, and whose it is */
        struct buf text;
        enum reply_piece kind;
        char message_id[64];
        int64_t since;
        struct steno_error failed; /* code 0 while all is well */
};

/* `run` must outlive it. */
void journal_init(struct journal *j, struct steno_run *run);
void journal_release(struct journal *j);

/* An event under construction: `{"runId":...,"messageId":...` is there, members may follow. */
struct event {
        enum steno_event type;
        struct buf data;
        struct jsonw w;
};
/* `message_id` may be NULL. */
void journal_event_begin(
    struct event *e, const struct journal *j, enum steno_event type, const char *message_id);
/* Closes and stores the event, gives it to the listeners and releases it. Returns 0 or the store's
 * error. */
int journal_event_end(struct event *e, struct journal *j);

/* Sets the message that the following pieces of text belong to. */
void journal_message(struct journal *j, const char *message_id);
int journal_piece(struct journal *j, enum reply_piece kind, struct str text);
/* Writes pending text when it is due. Returns in how many milliseconds it must be called again, -1
 * when nothing is pending. */
int journal_tick(struct journal *j);
int journal_flush(struct journal *j);

/* 0, or the first failure. */
int journal_check(struct journal *j, struct steno_error *err);

#endif
