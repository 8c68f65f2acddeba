/*
 * backend.h - the interface of a kind of store: what every kind offers, and nothing about how it
 * does it.
 *
 * A kind of store is a `struct steno_backend`, a table of functions. What is open is a handle whose
 * first member points to the table of its kind, so that a call finds its way:
 *
 *      struct backend_conv *conv;
 *      backend_conv_open(store, STR("default"), STR("chat"), &conv, err);
 *      backend_append(conv, &batch, &receipt, err);
 *      backend_conv_release(conv);
 *
 * For callers:
 *
 *   C1  No path, descriptor, folder or lock crosses this interface. Conversations are named by
 *       project and id, runs and outputs by their ids; bytes are read through readers.
 *   C2  Every call is thread-safe, but for those on something that is being written (an output, a
 *       bundle), which has one user at a time. A journal has as many as a turn has calls.
 *   C3  Callers never ask which kind they have. An operation that a kind does not have is
 *       STENO_EUNSUPPORTED.
 *   C4  An error is a negative code and a sentence; outputs are untouched then.
 *
 * For implementers of a kind:
 *
 *   K1  A receipt is given after durability, seqs have no gaps, and a batch is seen whole or not
 *       at all.
 *   K2  What a record names is durable before the record.
 *   K3  Leases say which process is alive. A process that has lost its lease gets an error at its
 *       next call, and writes nothing more.
 *   K4  A slot that can fail may be NULL: then it is STENO_EUNSUPPORTED. All others are filled.
 *   K5  A handle's `ops` is set by whoever makes it, and the functions of a kind never call each
 *       other through it: a wrapper replaces it to see every call.
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/backend_catalogue.h"
#include "store/backend_disks.h"
#include "store/backend_moves.h"
#include "store/backend_outputs.h"
#include "store/backend_records.h"
#include "store/backend_removal.h"
#include "store/backend_runs.h"
#include "store/backend_seals.h"
#include "store/backend_tables.h"

struct steno_backend;

/* What every handle begins with. */
struct backend_store {
        const struct steno_backend *ops;
};
struct backend_conv {
        const struct steno_backend *ops;
};
struct backend_claim {
        const struct steno_backend *ops;
};
struct backend_run {
        const struct steno_backend *ops;
};
struct backend_artifact {
        const struct steno_backend *ops;
};
struct backend_reader {
        const struct steno_backend *ops;
};
struct backend_lookup {
        const struct steno_backend *ops;
};
struct backend_bundle {
        const struct steno_backend *ops;
};
struct backend_incoming {
        const struct steno_backend *ops;
};
struct backend_lock {
        const struct steno_backend *ops;
};
struct backend_watcher {
        const struct steno_backend *ops;
};

struct steno_backend {
        const char *name;
        const struct backend_disks *disks;   /* optional */
        const struct backend_tables *tables; /* likewise */

        /* `where` is a path or a URL that backend_find has given to this kind; `flags` are enum
         * steno_open_flags. A store is made only where those allow it. */
        int (*open)(const struct env *env, const char *where, uint32_t flags,
            struct backend_store **out, struct steno_error *err);
        /* Optional: brings a store of an earlier version up to date, all or nothing. */
        int (*migrate)(const struct env *env, const char *where, uint64_t *from, uint64_t *to,
            struct steno_error *err);
        /* Optional: makes a store of a backup (backend_backup). *report is JSON. */
        int (*restore)(const char *path, const char *where, char **report, struct steno_error *err);
        /* Optional, likewise: of one that is a stream (backend_backup_stream). */
        int (*restore_stream)(steno_source source, void *ctx, const char *where, char **report,
            struct steno_error *err);

        /* backend_records.h */
        void (*close)(struct backend_store *store);
        bool (*is_ours)(const struct backend_store *store);
        void (*sync)(struct backend_store *store);
        uint64_t (*quarantined)(const struct backend_store *store);
        int (*settings)(struct backend_store *store, char **json, struct steno_error *err);
        int (*set_settings)(
            struct backend_store *store, const char *json, size_t n, struct steno_error *err);
        int (*conv_create)(struct backend_store *store, struct str project, struct str id,
            struct str meta, struct backend_conv **out, struct steno_error *err);
        int (*conv_open)(struct backend_store *store, struct str project, struct str id,
            struct backend_conv **out, struct steno_error *err);
        void (*conv_release)(struct backend_conv *conv);
        const char *(*conv_id)(const struct backend_conv *conv);
        const char *(*conv_project)(const struct backend_conv *conv);
        struct backend_store *(*conv_store)(const struct backend_conv *conv);
        int (*conv_meta)(
            struct backend_conv *conv, char **json, size_t *n, struct steno_error *err);
        int (*conv_change_meta)(struct backend_conv *conv, backend_change_fn change, void *ctx,
            struct steno_error *err);
        int (*conv_exclusively)(
            struct backend_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err);
        int (*each_conv)(struct backend_store *store, const char *project, backend_conv_fn each,
            void *ctx, struct steno_error *err);
        int (*append)(struct backend_conv *conv, struct backend_batch *batch,
            struct backend_receipt *out, struct steno_error *err);
        int (*read)(struct backend_conv *conv, uint64_t after, backend_record_fn each, void *ctx,
            struct steno_error *err);
        int (*read_last)(struct backend_conv *conv, uint64_t count, backend_record_fn each,
            void *ctx, struct steno_error *err);
        int (*read_id)(struct backend_conv *conv, struct str id, backend_record_fn each, void *ctx,
            struct steno_error *err);
        int (*read_amendments)(
            struct backend_conv *conv, backend_record_fn each, void *ctx, struct steno_error *err);
        int (*lookup_open)(
            struct backend_conv *conv, struct backend_lookup **out, struct steno_error *err);
        int (*lookup_record)(struct backend_lookup *l, uint64_t seq, backend_record_fn each,
            void *ctx, struct steno_error *err);
        void (*lookup_close)(struct backend_lookup *l);
        int (*last)(
            struct backend_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err);
        uint64_t (*generation)(struct backend_conv *conv);
        int (*wait)(
            struct backend_conv *conv, uint64_t after, int timeout_ms, struct steno_error *err);

        /* backend_runs.h */
        int (*run_claim)(struct backend_conv *conv, struct str id, struct backend_claim **out,
            struct steno_error *err);
        void (*run_claim_release)(struct backend_claim *claim, bool finished);
        int (*run_claim_check)(struct backend_claim *claim, struct steno_error *err);
        void (*run_claim_listen)(struct backend_claim *claim, run_mail_fn fn, void *ctx);
        int (*run_mail_send)(struct backend_conv *conv, struct str line, struct steno_error *err);
        int (*watch)(struct backend_store *store, struct str project, struct backend_watcher **out,
            struct steno_error *err);
        void (*watch_end)(struct backend_watcher *w);
        bool (*watched)(struct backend_store *store, struct str project);
        /* Optional. */
        int (*aside)(struct backend_conv *conv, const char *name, struct backend_store **out,
            const struct env **env, struct steno_error *err);
        int (*run_last)(struct backend_conv *conv, char name[PLAIN_NAME_MAX + 1],
            enum run_life *out, struct steno_error *err);
        bool (*run_is_dead)(struct backend_conv *conv, const char *name);
        void (*run_settle)(struct backend_conv *conv, const char *name);
        void (*run_settle_all)(struct backend_conv *conv);
        int (*run_fence)(struct backend_conv *conv, const char *name, struct steno_error *err);
        int (*run_create)(struct backend_conv *conv, struct str id, struct str mode,
            struct backend_run **out, struct steno_error *err);
        int (*run_take_over)(struct backend_conv *conv, const char *name, struct backend_run **out,
            struct steno_error *err);
        void (*run_close)(struct backend_run *run);
        int (*run_write)(struct backend_run *run, struct str type, struct str data, bool sync,
            uint64_t *seq, struct steno_error *err);
        int (*run_read)(struct backend_conv *conv, const char *name, uint64_t after,
            run_event_fn each, void *ctx, struct steno_error *err);
        int (*run_wait)(struct backend_conv *conv, const char *name, uint64_t after, int timeout_ms,
            struct steno_error *err);
        int (*run_look)(struct backend_conv *conv, const char *name, struct run_state *out,
            struct steno_error *err);
        int (*run_each)(struct backend_conv *conv, int (*each)(void *ctx, const char *name),
            void *ctx, struct steno_error *err);
        int (*run_find)(struct backend_store *store, struct str project, const char *name,
            struct backend_conv **out, struct steno_error *err);

        /* backend_outputs.h */
        int (*artifact_begin)(struct backend_conv *conv, const char *kind, struct str want,
            struct str hint, struct backend_artifact **out, struct steno_error *err);
        int (*artifact_begin_again)(struct backend_conv *conv, const struct artifact_info *info,
            struct str want, struct backend_artifact **out, struct steno_error *err);
        const char *(*artifact_id)(const struct backend_artifact *a);
        int (*artifact_write)(
            struct backend_artifact *a, const void *p, size_t n, struct steno_error *err);
        void (*artifact_lift_quota)(struct backend_artifact *a);
        void (*artifact_index)(struct backend_artifact *a, struct str bytes);
        int (*artifact_close)(struct backend_artifact *a, const struct artifact_end *end,
            struct artifact_info *info, struct steno_error *err);
        void (*artifact_free)(struct backend_artifact *a);
        void (*artifact_undo)(struct backend_conv *conv, const char *id);
        int (*artifact_find)(struct backend_conv *conv, struct str id, struct artifact_info *out,
            struct steno_error *err);
        int (*artifact_each)(struct backend_conv *conv,
            int (*each)(void *ctx, const struct artifact_info *info), void *ctx,
            struct steno_error *err);
        int (*artifact_open)(struct backend_conv *conv, const struct artifact_info *info,
            struct backend_reader **out, uint64_t *size, struct steno_error *err);
        int (*artifact_verify)(
            struct backend_conv *conv, const struct artifact_info *info, struct steno_error *err);
        int (*artifact_lines)(struct backend_conv *conv, const struct artifact_info *info, char **p,
            size_t *n, struct steno_error *err);
        int (*artifact_relist)(struct backend_conv *conv, const struct artifact_info *said,
            struct str call, bool *done, struct steno_error *err);
        ssize_t (*reader_read)(
            struct backend_reader *r, uint64_t at, void *p, size_t n, struct steno_error *err);
        int (*reader_whole)(struct backend_reader *r, const struct artifact_info *info,
            steno_sink sink, void *ctx, struct steno_error *err);
        void (*reader_close)(struct backend_reader *r);
        int (*part_put)(struct backend_conv *conv, struct str token, char name[PART_NAME],
            struct steno_error *err);
        int (*part_get)(struct backend_conv *conv, struct str name, uint64_t size, steno_sink sink,
            void *ctx, struct steno_error *err);
        void (*set_quota)(
            struct backend_store *store, const struct quota *quota, quota_warn_fn warn, void *ctx);
        void (*figures_add)(struct backend_store *store, const struct figures *more);
        void (*figures_get)(struct backend_store *store, struct figures *out);

        /* backend_catalogue.h */
        int (*catch_up)(struct backend_store *store, bool at_once, steno_progress progress,
            void *progress_ctx, struct backend_caught_up *out, struct steno_error *err);
        int (*list)(struct backend_store *store, const struct backend_query *q, char **json,
            struct steno_error *err);
        int (*list_each)(struct backend_store *store,
            int (*each)(void *ctx, const struct backend_listed *row), void *ctx,
            struct steno_error *err);
        int (*totals)(
            struct backend_store *store, struct backend_totals *out, struct steno_error *err);
        int (*tally)(
            struct backend_store *store, struct backend_tally *out, struct steno_error *err);
        int (*unfinished)(struct backend_store *store, const char *project, uint32_t max,
            char **json, struct steno_error *err);
        int (*search_lock)(struct backend_store *store, bool wait, struct steno_error *err);
        void (*search_unlock)(struct backend_store *store);
        int (*search_progress)(
            struct backend_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err);
        int (*search_each_conv)(struct backend_store *store, backend_progress_fn each, void *ctx,
            struct steno_error *err);
        int (*search_begin)(
            struct backend_conv *conv, uint64_t generation, struct steno_error *err);
        int (*search_add)(
            struct backend_store *store, const struct search_block *b, struct steno_error *err);
        int (*search_commit)(struct backend_store *store, uint64_t seq, struct steno_error *err);
        int (*search_forget)(struct backend_store *store, const char *project, const char *id,
            struct steno_error *err);
        int (*search_discard)(struct backend_store *store, struct steno_error *err);
        int (*search_each)(struct backend_store *store, const struct search_ask *ask,
            search_hit_fn each, void *ctx, struct steno_error *err);

        /* backend_removal.h */
        int (*trash_put)(struct backend_conv *conv, char name[TRASH_NAME], struct steno_error *err);
        int (*trash_list)(struct backend_store *store, bool sizes, struct trash_list *out,
            struct steno_error *err);
        int (*trash_open)(struct backend_store *store, const struct trash_item *item,
            struct backend_conv **out, struct steno_error *err);
        int (*trash_put_back)(struct backend_store *store, const struct trash_item *item,
            const char *as, struct steno_error *err);
        int (*trash_destroy)(
            struct backend_store *store, const struct trash_item *item, struct steno_error *err);
        int (*trash_sweep)(struct backend_store *store, struct steno_error *err);
        int (*purge)(struct backend_conv *conv, struct purge_result *out, struct steno_error *err);
        int (*fork)(struct backend_conv *origin, const struct fork_request *request,
            struct backend_conv **out, uint64_t *seq, struct steno_error *err);

        /* backend_seals.h */
        int (*seal)(struct backend_conv *conv, const struct note_key *key, struct seal_result *out,
            struct steno_error *err);
        enum seal_standing (*seal_standing)(struct backend_conv *conv);
        uint64_t (*seal_size)(struct backend_conv *conv);
        int (*seal_notes)(
            struct backend_conv *conv, char **text, size_t *n, struct steno_error *err);
        int (*seal_prove)(
            struct backend_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err);
        int (*seal_name)(struct backend_conv *conv, char out[SEAL_CONV], struct steno_error *err);
        bool (*seal_has_log)(struct backend_store *store);
        int (*seal_log_read)(
            struct backend_store *store, struct seal_log *out, struct steno_error *err);
        void (*seal_log_call)(struct backend_store *store, const char *conv, struct buf *out);
        int (*seal_log_sign)(
            struct backend_store *store, const struct note_key *key, struct steno_error *err);
        int (*seal_verify)(struct backend_conv *conv, const char *name, struct seal_check *check,
            struct steno_error *err);
        bool (*seal_is_known)(
            struct backend_conv *conv, const char *name, const struct seal_log *log);
        int (*seal_verify_log)(
            struct backend_store *store, struct seal_check *check, struct steno_error *err);

        /* backend_moves.h */
        int (*bundle_prepare)(struct backend_conv *conv, const struct bundle_options *opt,
            struct backend_bundle **out, struct steno_error *err);
        const struct bundle_view *(*bundle_view)(const struct backend_bundle *b);
        int (*bundle_add_text)(
            struct backend_bundle *b, const char *name, struct str text, struct steno_error *err);
        int (*bundle_send)(struct backend_bundle *b, size_t i, steno_sink sink, void *ctx,
            struct steno_error *err);
        void (*bundle_release)(struct backend_bundle *b);
        int (*incoming_open)(
            struct backend_store *store, struct backend_incoming **out, struct steno_error *err);
        void (*incoming_close)(struct backend_incoming *in);
        int (*incoming_begin)(
            struct backend_incoming *in, uint32_t number, struct steno_error *err);
        int (*incoming_file)(
            struct backend_incoming *in, const char *name, struct steno_error *err);
        int (*incoming_write)(
            struct backend_incoming *in, const void *p, size_t n, struct steno_error *err);
        int (*incoming_file_end)(struct backend_incoming *in, struct steno_error *err);
        int (*incoming_end)(struct backend_incoming *in, struct str project, struct str id,
            bool renamed, bool trusted, struct steno_error *err);
        int (*incoming_look)(struct backend_incoming *in, struct str project, struct str id,
            struct backend_conv **out, struct steno_error *err);
        int (*incoming_install)(struct backend_incoming *in, uint32_t number, struct str project,
            struct str id, struct steno_error *err);
        int (*backup)(struct backend_store *store, const char *path,
            const struct backend_backup *asked, char **report, struct steno_error *err);
        int (*backup_stream)(struct backend_store *store, const char *scratch, steno_sink sink,
            void *ctx, const struct backend_backup *asked, char **report, struct steno_error *err);
        int (*check)(
            struct backend_store *store, struct backend_check *check, struct steno_error *err);
        int (*lock)(struct backend_store *store, const char *name, struct backend_lock **out,
            struct steno_error *err);
        void (*unlock)(struct backend_lock *lock);
        int (*document_read)(struct backend_store *store, const char *name, size_t max, char **text,
            size_t *n, uint64_t *stamp, struct steno_error *err);
        int (*document_stamp)(struct backend_store *store, const char *name, uint64_t *stamp,
            struct steno_error *err);
        int (*document_change)(struct backend_store *store, const char *name, size_t max,
            int patience_ms, backend_change_fn change, void *ctx, struct steno_error *err);
};

/* The kind that a path or URL names. STENO_EUNSUPPORTED: there is none. *where is what its `open`
 * wants; freed with free(). */
int backend_find(
    const char *url, const struct steno_backend **out, char **where, struct steno_error *err);
/* STENO_EUNSUPPORTED, in words. */
int backend_lacks(struct steno_error *err, const struct steno_backend *ops, const char *what);

/* The kinds that there are. */
extern const struct steno_backend files_backend;
extern const struct steno_backend postgres_backend;

#endif
