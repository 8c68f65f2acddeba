/*
 * backend_moves.h - exports and imports of conversations, backups, checks, and documents and locks
 * of the store.
 *
 * A bundle has the files of a conversation under the names of docs/format.md, whatever the backend
 * keeps them as: the same conversation gives the same bytes on each.
 */
#ifndef STORE_BACKEND_MOVES_H
#define STORE_BACKEND_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "store/backend_records.h"
#include "store/backend_removal.h"

struct backend_bundle;
struct backend_incoming;
struct backend_lock;

/* ---- out ---- */

struct bundle_entry {
        const char *name;
        uint64_t size;
        char sha256[SHA256_HEX];
        struct str text;  /* its bytes, where they are in memory */
        const char *path; /* else where the backend has them */
        struct str ref;   /* of an output: its name may change while it is written */
};

struct bundle_options {
        bool partial;          /* what has no bytes is a tombstone, else it is STENO_ECORRUPT */
        uint64_t max_artifact; /* larger outputs are tombstones; 0: none */
};

/* What a caller sees of a conversation that is to go out; the backend has more behind it. */
struct bundle_view {
        struct bundle_entry *entries; /* in the order of the bundle */
        size_t count;
        uint64_t last_seq;
        uint64_t bytes;
        uint64_t tombstones; /* outputs and messages whose bytes are not here */
};

/* Lists and hashes what there is. Nothing is locked: if a purge removes bytes meanwhile, the
 * sending stops. */
int backend_bundle_prepare(struct backend_conv *conv, const struct bundle_options *opt,
    struct backend_bundle **out, struct steno_error *err);
const struct bundle_view *backend_bundle_view(const struct backend_bundle *b);
/* Adds a file that lives in memory until the release, at the end. */
int backend_bundle_add_text(
    struct backend_bundle *b, const char *name, struct str text, struct steno_error *err);
/* Hands out the bytes of the i-th file, and compares them with the announced size and hash. */
int backend_bundle_send(
    struct backend_bundle *b, size_t i, steno_sink sink, void *ctx, struct steno_error *err);
/* NULL does nothing. */
void backend_bundle_release(struct backend_bundle *b);
/* Is it a name that a conversation has in a bundle? */
bool backend_bundle_is_name(const char *name);
/* How names sort, by group and then by bytes; negative, 0 or positive. */
int backend_bundle_compare(const char *a, const char *b);

/* ---- in ---- */

/* Opens a temporary place for conversations that come in. What is not installed is removed with
 * it. */
int backend_incoming_open(
    struct backend_store *store, struct backend_incoming **out, struct steno_error *err);
/* NULL does nothing. */
void backend_incoming_close(struct backend_incoming *in);
/* Begins the number-th conversation. */
int backend_incoming_begin(struct backend_incoming *in, uint32_t number, struct steno_error *err);
/* Begins a file of it, under its name in a bundle; what is written goes there until the next one.
 */
int backend_incoming_file(struct backend_incoming *in, const char *name, struct steno_error *err);
int backend_incoming_write(
    struct backend_incoming *in, const void *p, size_t n, struct steno_error *err);
/* The file is whole. */
int backend_incoming_file_end(struct backend_incoming *in, struct steno_error *err);
/* The conversation is whole: is it one that this store may take over, under these names?
 * `renamed`: they are not those that it came with. `trusted`: its lines may be of any size.
 * STENO_EPROTO says what is wrong. */
int backend_incoming_end(struct backend_incoming *in, struct str project, struct str id,
    bool renamed, bool trusted, struct steno_error *err);
/* Opens the conversation at work under these names, to be read where it is. It is the incoming's,
 * and lives until the next one is begun or all is closed. */
int backend_incoming_look(struct backend_incoming *in, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err);
/* Gives the number-th its place. STENO_ECONFLICT: the id is taken. */
int backend_incoming_install(struct backend_incoming *in, uint32_t number, struct str project,
    struct str id, struct steno_error *err);

/* ---- copies and checks ---- */

struct check_finding {
        const char *project; /* NULL: it is about the store */
        const char *conversation;
        bool trashed;     /* it is in the trash */
        uint64_t seq;     /* of the record it is about, 0: none */
        const char *what; /* a sentence */
        bool repaired;
        bool repairable; /* by a check that repairs */
        bool note;       /* worth knowing, and no damage */
        bool copied; /* it is missing, and this store is a copy of another: it may have been written
                        while the copy was made; a repair notes that it is lost */
        bool lost;   /* a tombstone in the log tells of it too */
};

/* A non-zero return stops the check, which returns it. */
typedef int (*check_fn)(void *ctx, const struct check_finding *f);

/* A conversation of another kind of store as files, for a backup. */
struct backup_copy {
        struct backend_conv *conv; /* of a store of files; closed outputs and parts have their size,
                                      and get their bytes when they are wanted */
        char stamp[SHA256_HEX];    /* changes whenever the conversation changes */
        uint64_t log;              /* changes whenever its log did more than grow */
};

/* Where a backup of files gets the conversations of another kind of store, one at a time. `trashed`
 * is NULL for those that are in their place. STENO_ENOTFOUND: it was removed meanwhile. */
struct backup_source {
        int (*each)(void *ctx, backend_conv_fn each, void *each_ctx, struct steno_error *err);
        int (*trash)(void *ctx, struct trash_list *out, struct steno_error *err);
        /* What backup_copy says, without a copy. */
        int (*stamp)(void *ctx, struct str project, struct str id, const struct trash_item *trashed,
            char out[SHA256_HEX], struct steno_error *err);
        int (*open)(void *ctx, struct str project, struct str id, const struct trash_item *trashed,
            struct backup_copy *out, struct steno_error *err);
        /* The bytes of an output or part of the open one, by its path. */
        int (*fill)(void *ctx, const char *path, struct steno_error *err);
        /* Were bytes taken away from the original since it was opened? */
        bool (*has_lost)(void *ctx);
        void (*close)(void *ctx);
        void *ctx;
};

struct backend_backup {
        const struct backup_source *from; /* NULL: the store's own conversations */
        bool verify; /* also read what an earlier backup copied, and copy again what is damaged */
        steno_progress progress;
        void *progress_ctx;
        /* May be NULL. Is damage that was met a loss that somebody has accepted? */
        bool (*is_accepted)(void *ctx, const struct check_finding *f);
        void *ctx;
};

/* A copy of the whole store in a folder, while it is written; a copy that is there is brought up
 * to date. *report is JSON. */
int backend_backup(struct backend_store *store, const char *path,
    const struct backend_backup *asked, char **report, struct steno_error *err);
/* The same as one stream, as steno_backup_stream describes it. */
int backend_backup_stream(struct backend_store *store, const char *scratch, steno_sink sink,
    void *ctx, const struct backend_backup *asked, char **report, struct steno_error *err);

struct backend_check {
        bool repair;
        struct str project; /* "": all */
        struct str id;      /* "": all of the project */
        /* In: why the settings are the defaults; "": they are what was set. A repair that wrote
         * them anew makes it "". */
        char *settings_problem;
        check_fn each;
        /* A conversation was looked at, and is not in the trash. */
        int (*checked)(void *ctx, struct backend_conv *conv);
        void *ctx;
        steno_progress progress;
        void *progress_ctx;
};

/* Looks at everything. STENO_EDENIED and STENO_EFULL: all was looked at, but something that was
 * told of could not be repaired. */
int backend_check(
    struct backend_store *store, struct backend_check *check, struct steno_error *err);

/* ---- of the store ---- */

/* One at a time of all who use the store: waits until nobody else holds the lock of this name. */
int backend_lock(struct backend_store *store, const char *name, struct backend_lock **out,
    struct steno_error *err);
/* NULL does nothing. */
void backend_unlock(struct backend_lock *lock);
/* A small text of the store's own (tokens.json, accepted.jsonl), freed with free(). *stamp (may be
 * NULL) changes with the text. STENO_ENOTFOUND: there is none. */
int backend_document_read(struct backend_store *store, const char *name, size_t max, char **text,
    size_t *n, uint64_t *stamp, struct steno_error *err);
/* Only the stamp, which costs little; 0: there is none. */
int backend_document_stamp(
    struct backend_store *store, const char *name, uint64_t *stamp, struct steno_error *err);
/* Makes the new text from the old one ("" if there is none). No concurrent change is lost. Waits at
 * most `patience_ms` for others, then STENO_ETIMEOUT. */
int backend_document_change(struct backend_store *store, const char *name, size_t max,
    int patience_ms, backend_change_fn change, void *ctx, struct steno_error *err);

#endif
