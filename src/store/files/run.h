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
 *       used behind the last synced line, and a process that takes over begins behind that.
 *   J5  A sync covers all that was written before it, whoever wrote it.
 *   J6  A run holds flock (exclusive) on runs/.claim from before it writes anything until it ends,
 *       so a conversation has at most one live run, whatever thread, process or server runs it.
 *   J7  The claim names the one run that may not have ended. Another id replaces it only after that
 *       run has ended. So recovery has to look at one journal, not at all of them.
 *
 * Reading takes no lock. Knows nothing of what events mean, except the type that ends a run.
 */
#ifndef STORE_FILES_RUN_H
#define STORE_FILES_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/limits.h"
#include "store/backend_lines.h"
#include "store/files/files.h"

#define RUN_AHEAD 1000

/* ---- one run at a time ---- */

struct run_claim;

/* Claims the conversation, which stays open as long, for run `id` (J6). STENO_ECONFLICT names the
 * run that has it. 1: the run that claimed before did not end, and must be completed first (J7). */
int run_claim(
    struct files_conv *conv, struct str id, struct run_claim **out, struct steno_error *err);
/* `finished`: the run's last event is on the disk, and all that it showed is stored. */
void run_claim_release(struct run_claim *claim, bool finished);
/* STENO_ECONFLICT: somebody took the run over, and its holder must not write any more. */
int run_claim_check(struct run_claim *claim, struct steno_error *err);

/* runs/.mail: lines that others send to the live run, whoever holds it. They are handed out on a
 * thread of the claim's, which must not wait for whoever releases the claim. */
void run_claim_listen(struct run_claim *claim, run_mail_fn fn, void *ctx);
int run_mail_send(struct files_conv *conv, struct str line, struct steno_error *err);

/* `name` becomes the journal's where there is one. Takes no lock. */
int run_last(struct files_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err);
/* Of any run: it has no last event, and nobody will write one. */
bool run_is_dead(struct files_conv *conv, const char *name);
/* It was completed: from now on nobody needs to look at it. */
void run_settle(struct files_conv *conv, const char *name);

/* A run on another machine, or of an earlier boot, is dead when its lease has not changed for so
 * long; run_claim.c explains it. */
#define RUN_LEASE_MS 60000

/* Makes an empty claim where there is none: every run is known to have ended. Errors are ignored on
 * purpose: then all runs are looked at once more. */
void run_lease_settle(struct files_conv *conv);
/* Writes a new generation, so that a holder which only seemed to be dead writes nothing more. */
int run_lease_take_over(struct files_conv *conv, const char *name, struct steno_error *err);

/* ---- writing ---- */

struct run_log;

/* Makes the journal and holds it. STENO_ECONFLICT: the conversation has a run of this id. */
int run_create(struct files_conv *conv, struct str id, struct str mode, struct run_log **out,
    struct steno_error *err);
/* Takes over the journal of a writer that is gone. 1: somebody holds it; *out is untouched. */
int run_take_over(
    struct files_conv *conv, const char *name, struct run_log **out, struct steno_error *err);
/* Frees it and releases the journal. What was not synced yet is synced now, as far as possible. */
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
 * For purge: removes the text of people and tools from a journal, and keeps the numbers and kinds
 * of its events. The number of removed bytes is added to *bytes. 1: the run is not finished;
 * nothing was changed.
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

int run_look(
    struct files_conv *conv, const char *name, struct run_state *out, struct steno_error *err);

/* Every journal of a conversation by name, in no order. */
int run_each(struct files_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err);
/* The same, including names of entries that are not files. */
int run_each_name(struct files_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
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
