/*
 * run.h - runs/<name>.jsonl: a run's journal, one event a line.
 *
 *   {"seq":7,"at":"...","type":"dispatch","data":{...},"crc":"9ae0daaf"}
 *
 * The members stand in this order without white space; `crc` is CRC-32C over the line before
 * `,"crc"`, as in a record. The first line has seq 0, type "run" and says what the run is: id,
 * conversation, project, mode. <name> is the run's id while that is plain, else "~" and a hash.
 *
 *   J1  A journal appears with its first line whole, locked by its writer, and synced.
 *   J2  Whoever writes holds flock (exclusive) on the file, from before it appears until the
 *       writer ends: a journal that nobody has locked has a dead or finished writer.
 *   J3  A line without its line feed is torn. Torn or damaged bytes at the end go to the
 *       quarantine when the journal is taken over; damage before that is stepped over.
 *   J4  Seqs grow and never repeat, also after a machine died: no more than RUN_AHEAD numbers are
 *       given out behind the last synced line, and whoever takes over begins behind that.
 *   J5  A sync covers all that was written before it, whoever wrote it.
 *   J6  A run holds flock (exclusive) on runs/.claim from before it writes anything until it ends,
 *       so a conversation has at most one live run, whatever thread, process or server runs it.
 *
 * Reading takes no lock. Knows nothing of what events mean, except the type that ends a run.
 */
#ifndef STORE_FILES_RUN_H
#define STORE_FILES_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "store/files/files.h"

#define RUN_AHEAD 1000

struct run_event {
        uint64_t seq;
        struct str at;   /* plain text */
        struct str type; /* JSON-escaped as it stands */
        struct str data; /* a JSON object */
};

typedef int (*run_event_fn)(void *ctx, const struct run_event *e);

/* ---- one run at a time ---- */

struct run_claim;

/* Claims the conversation for run `id` (J6). STENO_ECONFLICT names the run that has it. */
int run_claim(
    struct files_conv *conv, struct str id, struct run_claim **out, struct steno_error *err);
void run_claim_release(struct run_claim *claim);

/* ---- writing ---- */

struct run_log;

/* Makes the journal and holds it. STENO_ECONFLICT: the conversation has a run of this id. */
int run_create(struct files_conv *conv, struct str id, struct str mode, struct run_log **out,
    struct steno_error *err);
/* Takes over the journal of a writer that is gone. 1: somebody holds it; *out is untouched. */
int run_take_over(
    struct files_conv *conv, const char *name, struct run_log **out, struct steno_error *err);
/* Frees, and lets go of the journal. What was not yet synced is, as far as possible. */
void run_log_close(struct run_log *log);

/*
 * Writes an event; `data` is one line of JSON. With `sync` it is on the disk on return, and calls
 * of several threads share syncs. After a failed sync: STENO_EPOISONED. Behind the event that
 * ends a run:
 * STENO_EINVAL. *seq may be NULL.
 */
int run_write(struct run_log *log, struct str type, struct str data, bool sync, uint64_t *seq,
    struct steno_error *err);

/*
 * For purge: takes what people and tools said out of a journal, leaving the numbers and kinds of
 * its events. *bytes grows by what went. 1: it is not finished; nothing happened.
 */
int run_blank(struct files_conv *conv, const char *name, uint64_t *bytes, struct steno_error *err);

/* ---- reading ---- */

/* seq > after, in order; the first line is not an event. Stops at the first non-zero return of
 * `each`, which it returns. STENO_ENOTFOUND: no such journal. */
int run_read(struct files_conv *conv, const char *name, uint64_t after, run_event_fn each,
    void *ctx, struct steno_error *err);

/* Waits for an event behind `after`: 1, or 0 when the time is over. */
int run_wait(struct files_conv *conv, const char *name, uint64_t after, int timeout_ms,
    struct steno_error *err);

struct run_state {
        char at[TIME_TEXT]; /* when it began, or "" */
        char *head;         /* data of the first line; "{}" where it cannot be read */
        char *last;         /* data of the last event, "{}" when there is none */
        uint64_t seq;       /* of the last event, 0: none */
        bool finished;
        bool held; /* a writer has it */
};

int run_look(
    struct files_conv *conv, const char *name, struct run_state *out, struct steno_error *err);
void run_state_release(struct run_state *s);

/* Every journal of a conversation by name, in no order. */
int run_each(struct files_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err);
/* Is there one of this name? */
bool run_exists(struct files_conv *conv, const char *name);

/* What check wants to know of the bytes: lines that cannot be read, and bytes of a torn tail. */
struct run_damage {
        uint64_t lines;
        uint64_t tail;
};
int run_verify(
    struct files_conv *conv, const char *name, struct run_damage *out, struct steno_error *err);

#endif
