/*
 * api_store.h - what the files of this folder share: the handles behind include/steno.h.
 */
#ifndef API_API_STORE_H
#define API_API_STORE_H

#include <pthread.h>

#include "base/env.h"
#include "base/optstruct.h"
#include "steno.h"
#include "store/backend.h"

/* Settings of a store (store.json). */
struct store_settings {
        char profile[32];
        uint64_t max_inline_chars; /* 0: the profile's */
        uint64_t max_inline_bytes;
        uint64_t quota[3]; /* of an output, a conversation, the store; STORE_QUOTA_UNSET, 0: none */
};

#define STORE_QUOTA_UNSET UINT64_MAX

struct note_key;

#define MADE_IDS 4096 /* turns that are about to begin at the same time */

struct steno_store {
        unsigned refs; /* the caller's, and those of open conversations and runs; atomic */
        const struct env *env;
        struct backend_store *backend;
        uint64_t unindexed; /* conversations that the last catch-up left; atomic */
        bool index_denied;  /* because it may not write; atomic */
        bool surveyed;      /* `unindexed` has been counted; atomic */
        pthread_mutex_t mutex;
        struct store_settings settings;
        char settings_problem[240]; /* why they are the defaults; "": they are what was set */
        steno_progress progress;
        void *progress_ctx;
        steno_warning warning;
        void *warning_ctx;
        struct note_key *seal_key; /* NULL: there is none */
        uint64_t unreadable;       /* that a warning was given about, under `mutex` */
        uint64_t made[MADE_IDS];   /* hashes of run ids that were made last, under `mutex` */
        size_t made_next;
};

struct steno_conv {
        unsigned refs; /* the caller's, and those of outputs that are being written; atomic */
        struct steno_store *store;
        struct backend_conv *backend;
};

/* What is open keeps what it came from, so that callers close in any order. */
/* Makes a store from an open backend and takes it over; the backend is closed also when this
 * fails. */
int api_store_around(struct backend_store *backend, const struct env *env, struct steno_store **out,
    struct steno_error *err);
void api_store_hold(struct steno_store *store);
void api_store_release(struct steno_store *store);

/* A handle that takes over a reference to `backend`, also when it fails. */
int api_conv_wrap(struct steno_store *store, struct backend_conv *backend, struct steno_conv **out,
    struct steno_error *err);

/* steno_open with a world of one's own, and with a kind of store of one's own: for tests. */
int api_store_open_in(const struct env *env, const char *url, const struct steno_open_options *opt,
    struct steno_store **out, struct steno_error *err);

int api_store_open_on(const struct steno_backend *kind, const struct env *env, const char *where,
    const struct steno_open_options *opt, struct steno_store **out, struct steno_error *err);

/* Signs what a purge or a removal has entered in the log of seals, where the store has a key; and
 * seals the conversation that was purged (NULL: none) first. */
int api_seal_sign(struct steno_store *store, struct backend_conv *conv, struct steno_error *err);

/* Tells whoever opened the store. */
void api_store_warn(struct steno_store *store, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Brings the list up to date, and warns of what cannot be read. */
int api_store_catch_up(struct steno_store *store, struct steno_error *err);
/* The same, but what takes its time after a boot goes on in the background; *behind says so. */
int api_store_catch_up_at_once(struct steno_store *store, bool *behind, struct steno_error *err);

/* "default" for NULL; refused when it is not legal. */
int api_store_project(const char *project, struct str *out, struct steno_error *err);

/* Refuses what cannot be the id of a conversation. */
int api_conv_check_id(struct str id, struct steno_error *err);

/* Copies a member of an options struct that the caller's compiler may not have known. */
#define OPTION(opt, type, field, fallback)                                                         \
        ((opt) && (opt)->size >= offsetof(type, field) + sizeof((opt)->field) ? (opt)->field       \
                                                                              : (fallback))

#endif
