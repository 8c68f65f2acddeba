/*
 * backend_records.h - a store, its conversations and their records.
 *
 * A conversation is named by its project and its id. Appends of several callers are put in order by
 * the backend; a reader sees whole batches only.
 */
#ifndef STORE_BACKEND_RECORDS_H
#define STORE_BACKEND_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "model/about.h"
#include "model/record.h"
#include "steno.h"

struct backend_store;
struct backend_conv;
struct backend_claim;
struct backend_lookup;

/* ---- the store ---- */

/* Lets go of it. In a child of fork() only descriptors and sockets are closed. */
void backend_close(struct backend_store *store);
/* False in a child of fork(): it shares what the process holds that opened the store, and has
 * none of its threads. */
bool backend_is_ours(const struct backend_store *store);
/* Makes durable what was acknowledged as process-durable, as far as it can. */
void backend_sync(struct backend_store *store);
/* Bytes that this handle moved to the quarantine because they could not be read. */
uint64_t backend_quarantined(const struct backend_store *store);
/* The settings as they are; freed with free(). STENO_ENOTFOUND: there are none. STENO_ECORRUPT:
 * they cannot be used; the store opens all the same. */
int backend_settings(struct backend_store *store, char **json, struct steno_error *err);
int backend_set_settings(
    struct backend_store *store, const char *json, size_t n, struct steno_error *err);

/* ---- conversations ---- */

/* `meta` is the whole metadata. STENO_ECONFLICT: the id is taken. */
int backend_conv_create(struct backend_store *store, struct str project, struct str id,
    struct str meta, struct backend_conv **out, struct steno_error *err);
/* By its names, or by those that a walk gave. STENO_ENOTFOUND: there is none, or it was removed. */
int backend_conv_open(struct backend_store *store, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err);
/* Every handle must be released as often as it was opened. */
void backend_conv_release(struct backend_conv *conv);
const char *backend_conv_id(const struct backend_conv *conv);
const char *backend_conv_project(const struct backend_conv *conv);
struct backend_store *backend_conv_store(const struct backend_conv *conv);
/* The metadata with the true names in it. Freed with free(). */
int backend_conv_meta(struct backend_conv *conv, char **json, size_t *n, struct steno_error *err);
/* Makes the new text from the old one. It is called again if another process has changed the text
 * meanwhile. */
typedef int (*backend_change_fn)(
    void *ctx, struct str old, struct buf *out, struct steno_error *err);

/* No concurrent change is lost. */
int backend_conv_change_meta(
    struct backend_conv *conv, backend_change_fn change, void *ctx, struct steno_error *err);
/* Calls `work` while no other process changes the conversation, for code that restores lost data.
 * Returns what `work` returns. */
int backend_conv_exclusively(
    struct backend_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err);
/* The names open the conversation. They are its project and id wherever these are known; ask the
 * open handle for what it is called. A non-zero return ends a walk, which returns it. */
typedef int (*backend_conv_fn)(void *ctx, const char *project, const char *id);

/* Walks over all conversations, or those of one project (NULL: all). Conversations that are made or
 * removed meanwhile may be visited or not. */
int backend_each_conv(struct backend_store *store, const char *project, backend_conv_fn each,
    void *ctx, struct steno_error *err);

/* ---- appending ---- */

struct backend_entry {
        struct str id; /* decoded; the caller's or made */
        bool made_id;  /* made by Steno: cannot be there yet */
        struct str fmt;
        struct about about; /* may get marks, and an amendment's target its first id */
        struct str named;   /* of an amendment: what the caller called its target */
        struct str m;       /* one line of JSON */
        struct str at;      /* when it was said, as text; "": now */
};

struct backend_batch {
        struct backend_entry *entries;
        size_t count;
        bool record; /* take broken pairing and mark it */
        bool expect;
        uint64_t expected_seq;
        struct str key; /* idempotency key, or "" */
        int durability; /* enum steno_durability */
        bool each;      /* every entry is a batch of its own; all go in with one write, or none */
        /* The claim of the run that appends, or NULL. STENO_ECONFLICT if the run was taken over.
         * Stores in which a holder lives as long as its lock have nothing to check. */
        const struct backend_claim *claim;
};

struct backend_receipt {
        uint64_t first_seq;
        uint64_t last_seq;
        int durability;
        bool replayed;
        char **ids; /* of a replay: what was stored then, `count` of them; else NULL */
};

void backend_receipt_release(struct backend_receipt *r, size_t count);
/* Appends all of the batch or nothing, without gaps in the seqs, with the durability that was asked
 * for. Ids, key, expected seq and pairing are checked and the records written in one critical
 * section. Thread-safe. */
int backend_append(struct backend_conv *conv, struct backend_batch *batch,
    struct backend_receipt *out, struct steno_error *err);

/* ---- reading ---- */

struct backend_record {
        struct record rec; /* spans live until the callback returns */
        bool damaged;
        uint64_t first_seq; /* what damage stood for; 0: for nothing */
        uint64_t last_seq;
};

/* The first non-zero return ends a reading, which returns it. */
typedef int (*backend_record_fn)(void *ctx, const struct backend_record *r);

/* seq > after, oldest first, in bounded memory. */
int backend_read(struct backend_conv *conv, uint64_t after, backend_record_fn each, void *ctx,
    struct steno_error *err);
/* The last `count` records, oldest first. */
int backend_read_last(struct backend_conv *conv, uint64_t count, backend_record_fn each, void *ctx,
    struct steno_error *err);
/* The record with this id (amendments have ids of their own). STENO_ENOTFOUND. */
int backend_read_id(struct backend_conv *conv, struct str id, backend_record_fn each, void *ctx,
    struct steno_error *err);
/* Amendments, newest first, without reading what is between them. */
int backend_read_amendments(
    struct backend_conv *conv, backend_record_fn each, void *ctx, struct steno_error *err);
/*
 * Single records by their seqs, without opening the conversation for each. It shows the
 * conversation at the time when it was opened, or later, and has one user at a time. The
 * conversation stays open until it is closed.
 */
int backend_lookup_open(
    struct backend_conv *conv, struct backend_lookup **out, struct steno_error *err);
/* Calls `each` with the record of this seq and returns what that returns. 0 without a call: there
 * is none, or it cannot be read. */
int backend_lookup_record(struct backend_lookup *l, uint64_t seq, backend_record_fn each, void *ctx,
    struct steno_error *err);
void backend_lookup_close(struct backend_lookup *l);
/* Last seq, and how many bytes records, outputs and parts have; either may be NULL. */
int backend_last(
    struct backend_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err);
/* A number that changes with a purge or a repair: seqs that were read before may have other records
 * then. 0: not known. */
uint64_t backend_generation(struct backend_conv *conv);
/* Waits for a record behind `after`: 1, or 0 when the time is over. Only a hint: the caller
 * reads. */
int backend_wait(
    struct backend_conv *conv, uint64_t after, int timeout_ms, struct steno_error *err);

#endif
