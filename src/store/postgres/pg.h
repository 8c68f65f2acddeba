/*
 * pg.h - a store in PostgreSQL, as the files of this folder share it. Nobody else includes it.
 *
 * Rows are keyed by project and by the conversation's uid, a ULID that no other conversation ever
 * has; no statement touches two conversations. A record is the line that messages.jsonl would have
 * (model/record.h), so that what one kind of store wrote is what the other reads.
 *
 *   G1  Every change is one transaction, nearly always of one statement: it happened, or it did
 *       not. If the connection broke meanwhile, this is unknown, and the error says so; sending the
 *       same ids or key again finds it out.
 *   G2  An append names the last seq that it was admitted against. If there is a later one by then,
 *       nothing is written, and the append is admitted again.
 *   G3  A commit that was cancelled while it waited for its standby is not acknowledged. A batch
 *       that is found to be stored already is acknowledged only after a commit of its own, which
 *       also waits for the standby.
 *   G4  Leases say which process is alive, by the database's clock.
 */
#ifndef STORE_POSTGRES_PG_H
#define STORE_POSTGRES_PG_H

#include <pthread.h>

#include "base/buf.h"
#include "base/env.h"
#include "model/pairing.h"
#include "store/backend.h"
#include "store/blobs/blobs.h"
#include "store/postgres/libpq.h"

#define PG_POOL 16 /* connections, unless the URL says pool=N */
#define PG_POOL_MAX 1000
#define PG_READ_MS 60000          /* for a statement that changes nothing */
#define PG_LONG_MS 3600000        /* for one that removes as much as there is */
#define PG_COMMIT_MS 10000        /* for a change: then it is in doubt, or was not made */
#define PG_BLOB_MIN (1024 * 1024) /* larger outputs go into the bucket, if there is one */
#define PG_UID 27
#define PG_SCHEMA 48

/* ---- connections and statements: pg_pool.c, pg_query.c, pg_value.c ---- */

/* Commits of the session wait again for whatever the settings of the role or the database name. */
#define PG_DURABLE                                                                                 \
        "SELECT set_config('synchronous_commit', current_setting('steno.durable'), false)"

struct pg_conn {
        PGconn *pq;
        bool busy;
        int *counted;      /* of its pool, while it is connected */
        bool relaxed;      /* synchronous_commit is off */
        bool doubt;        /* the standby did not confirm the last commit */
        bool cancelled;    /* a cancel is on its way, and may hit whatever runs when it arrives */
        bool snapshot;     /* in a transaction that only reads: where it breaks, that is over */
        unsigned prepared; /* bits of enum pg_prepared that the server knows */
};

/* Statements that are sent so often that the server keeps them, a session each. */
enum pg_prepared {
        PG_UNPREPARED,
        PG_APPEND_ONE,
        PG_APPEND_RUN, /* the same of a run */
        PG_FIND_ID,
        PG_FIND_KEY,
};

/* What outputs take, as far as it is known. */
struct pg_usage {
        int64_t looked; /* monotonic ms; 0: never */
        uint64_t bytes;
};

struct pg_store {
        struct backend_store base;
        const struct env *env;
        char *url;              /* as libpq knows it */
        char *name;             /* as the user wrote it */
        char schema[PG_SCHEMA]; /* the tables are there */
        int owner;              /* the process that opened it */
        pthread_mutex_t mutex;  /* the pool and the table below */
        pthread_cond_t given;
        struct pg_conn *pool;
        int pool_size;
        int connected;         /* atomic: of the pool */
        int64_t crowded_until; /* the server gives no more connections; monotonic ms */
        bool reached;          /* atomic: it was connected to once */
        bool unsynced;         /* atomic: records or events may not be on the disk yet */
        struct pg_conv *convs;
        int lease_ms;
        int commit_ms;
        struct quota quota;
        quota_warn_fn quota_warn;
        void *quota_ctx;
        struct pg_usage usage;
        struct pg_signal *signal;
        struct blobs *blobs;     /* NULL: outputs are rows, however large */
        pthread_mutex_t locking; /* one locks a tail at a time (pg_append.c) */
        pthread_mutex_t search;  /* one indexes at a time, and what it adds: */
        struct pg_indexing *indexing;
};

/* A statement and its values; made with the functions below, used once. */
struct pg_query {
        const char *sql;
        enum pg_prepared prepared; /* its text is always the same */
        int count;
        int patience_ms; /* 0: as long as its kind usually may take */
        bool relaxed;    /* need not wait for the disk */
        bool repeatable; /* twice is the same as once; so is every SELECT */
        bool failed;     /* too many values */
        const char **values;
        int *lengths;
        int *formats;
        Oid *types;
        char (*numbers)[24];
        int room;
        const char *few_values[16];
        int few_lengths[16];
        int few_formats[16];
        Oid few_types[16];
        char few_numbers[16][24];
};

void pg_query_init(struct pg_query *q, const char *sql);
/* For more than 16 values. False: out of memory. */
bool pg_query_room(struct pg_query *q, int values);
void pg_query_release(struct pg_query *q);
void pg_text(struct pg_query *q, struct str text);
void pg_cstr(struct pg_query *q, const char *text);
void pg_u64(struct pg_query *q, uint64_t n);
void pg_bytes(struct pg_query *q, struct str bytes);
void pg_null(struct pg_query *q);
void pg_null_bytes(struct pg_query *q);

/* What a statement can answer besides the codes of steno.h. */
enum {
        PG_UNIQUE =
            0x40000000, /* a row with this key is there; no statement changes so many rows */
};

/*
 * Runs a statement on a connection of the pool. *out (may be NULL) is released with libpq.clear();
 * its values are binary. A broken connection is replaced before anything is sent. If it breaks
 * while the statement runs, a repeatable statement is sent again; for any other it is unknown
 * whether it took effect: STENO_EINDOUBT. A statement that failed because of another transaction
 * (serialisation, deadlock) is tried again. STENO_ETIMEOUT: it was cancelled, and nothing happened.
 */
int pg_run(struct pg_store *s, struct pg_query *q, PGresult **out, struct steno_error *err);
/* The same; how many rows it changed, or negative. */
long pg_change(struct pg_store *s, struct pg_query *q, struct steno_error *err);
/*
 * Several statements as one transaction, on a connection of their own: no other session sees
 * anything of it before it ends.
 */
struct pg_tx {
        struct pg_store *store;
        struct pg_conn *conn;
};
int pg_tx_begin(struct pg_store *s, struct pg_tx *tx, struct steno_error *err);
int pg_tx_run(struct pg_tx *tx, struct pg_query *q, PGresult **out, struct steno_error *err);
long pg_tx_change(struct pg_tx *tx, struct pg_query *q, struct steno_error *err);
/* Ends it: commits where `rc` is 0, else takes everything back. Returns `rc`, or why the commit
 * failed. */
int pg_tx_end(struct pg_tx *tx, int rc, struct steno_error *err);
/* Several statements without values. */
int pg_tx_script(struct pg_tx *tx, const char *sql, struct steno_error *err);

int pg_pool_open(struct pg_store *s, int size, struct steno_error *err);
void pg_pool_close(struct pg_store *s, bool polite);
/* A connection that nobody else has, until `until` (monotonic ms); it may be broken. One that is
 * not connected is not given where the server has just refused another one (a role may have a
 * limit) and some are connected: whoever asks waits for these. */
int pg_pool_take(struct pg_store *s, int64_t until, struct pg_conn **out, struct steno_error *err);
void pg_pool_give(struct pg_store *s, struct pg_conn *c);
/* Connects it anew, and goes on trying when the store was reached before. It may be exchanged for
 * another one of the pool, which may be broken in turn; NULL: it was given back. */
int pg_pool_connect(struct pg_store *s, struct pg_conn **c, int64_t until, struct steno_error *err);
bool pg_pool_is_up(const struct pg_conn *c);
/* Asks the server to cancel what runs on it, and does not wait for that. */
void pg_pool_cancel(struct pg_conn *c);
void pg_pool_drop(struct pg_conn *c);
/* A connection outside of the pool, which may have failed; ended with libpq.finish(). */
PGconn *pg_pool_dial(struct pg_store *s);
/* STENO_EIO with what libpq says; and that in one line. */
int pg_pool_refuse(struct pg_conn *c, struct steno_error *err);
void pg_pool_reason(const char *from, char *to, size_t room);

struct str pg_get(const PGresult *r, int row, int column);
uint64_t pg_get_u64(const PGresult *r, int row, int column);
bool pg_get_bool(const PGresult *r, int row, int column);
char *pg_get_dup(const PGresult *r, int row, int column);

/* ---- the schema: pg_schema.c ---- */

/* Makes the schema (`create`), or compares it with the version that this program knows. */
int pg_schema_prepare(struct pg_store *s, bool create, struct steno_error *err);
/* Brings an older one up to date, all or nothing: from which version to which. */
int pg_schema_migrate(struct pg_store *s, uint64_t *from, uint64_t *to, struct steno_error *err);

/* ---- conversations: pg_conv.c ---- */

struct pg_conv {
        struct backend_conv base;
        struct pg_store *store;
        struct pg_conv *next;
        unsigned refs; /* under the store's mutex */
        char *project;
        char *id;
        char uid[PG_UID];
        bool trashed;
        struct pg_usage usage; /* under the store's mutex */

        pthread_mutex_t mutex; /* one append at a time, and what it knows: */
        bool known;
        uint64_t last_seq;
        uint64_t last_amend;
        char last_at[TIME_TEXT]; /* when the last record was written; "": there is none */
        struct pairing *pairing; /* NULL: not loaded */
        uint64_t signals;        /* atomic (pg_signal.c) */
        uint64_t claimed;        /* atomic: the epoch of this process's claim, or 0 */
};

/* What lists show of metadata. Nothing of it may keep a conversation from being listed. */
struct pg_facts {
        char *title;
        char *created;
};
int pg_facts_read(struct str meta, struct pg_facts *out, struct steno_error *err);
void pg_facts_release(struct pg_facts *f);

/* Gives the conversation's metadata a uid, which forks and seals need, if it has none yet. */
int pg_conv_give_uid(struct pg_conv *c, struct steno_error *err);
/* Adds project and uid, the first parts of every key. */
void pg_key(struct pg_query *q, const struct pg_conv *c);

/* A conversation as it is at one moment: every statement about `conv` is one of the same read-only
 * transaction, on a connection of its own. */
struct pg_snapshot {
        struct pg_conv conv;
        struct pg_store store;
        struct pg_conn conn;
        struct pg_tx tx; /* store NULL: it is closed */
};
int pg_snapshot_open(struct pg_conv *c, struct pg_snapshot *out, struct steno_error *err);
/* Does nothing if it is closed already. */
void pg_snapshot_close(struct pg_snapshot *s);

/* ---- conversations as files: pg_scratch.c, pg_layout.c, pg_load.c ---- */

/* An embedded store in a temporary folder: operations on a whole conversation (forks, purges,
 * seals, bundles) work on its files there, with the code of the embedded store, so that the results
 * are the same bytes. */
struct pg_scratch {
        struct env env; /* first: the clock and random numbers of `real`, and files without syncs */
        const struct env *real;
        struct fs fs;
        int folder; /* that it is in */
        int lock;   /* the folder itself, locked for as long as it is in use */
        char name[48];
        char *path;
        struct backend_store *store;
};
int pg_scratch_open(struct pg_store *s, struct pg_scratch **out, struct steno_error *err);
/* NULL does nothing. */
void pg_scratch_close(struct pg_scratch *x);

struct pg_layout_part {
        char name[PART_NAME];
        uint64_t size;
        uint64_t uses; /* grows whenever somebody stores it anew */
};

enum pg_layout_kind {
        PG_LAYOUT_ALL,
        PG_LAYOUT_SEAL,  /* records, metadata and the seal: neither outputs nor journals */
        PG_LAYOUT_LATER, /* all, but closed outputs and parts have only their size, and get their
                            bytes one by one from pg_layout_fill() */
};

/* A conversation of PostgreSQL as the files of a bundle, in a scratch store, with the store's log
 * of seals beside it. */
struct pg_layout {
        struct pg_scratch *scratch;
        struct backend_conv *conv; /* the copy */
        uint64_t last_seq;         /* what was copied, */
        uint64_t generation;       /* of which */
        struct pg_layout_part *parts;
        size_t part_count;
        struct artifact_info *outputs; /* of PG_LAYOUT_LATER, newest first */
        size_t output_count;
        struct pg_snapshot snapshot; /* likewise */
        char *filled;                /* the file that has bytes now */
};
int pg_layout_open(
    struct pg_conv *c, enum pg_layout_kind kind, struct pg_layout *out, struct steno_error *err);
void pg_layout_close(struct pg_layout *l);
/* The folder of the copy; the caller closes it. */
int pg_layout_folder(struct pg_layout *l, struct pg_conv *c, struct steno_error *err);
/* The bytes of an output or part, by its path in the folder; those of the last one go. */
int pg_layout_fill(struct pg_layout *l, const char *path, struct steno_error *err);

/* Reads a bundle of any kind of store into a new conversation. STENO_ECONFLICT: the id is taken. */
int pg_load(struct pg_store *s, struct backend_bundle *from, struct str project, struct str id,
    struct steno_error *err);
/* Brings rows of a conversation up to what a purge made of its copy. */
int pg_load_purged(struct pg_conv *c, struct pg_layout *l, struct steno_error *err);

/* ---- backups: pg_backup.c ---- */

int pg_backup(struct backend_store *store, const char *path, const struct backend_backup *asked,
    char **report, struct steno_error *err);
int pg_backup_stream(struct backend_store *store, const char *scratch, steno_sink sink, void *ctx,
    const struct backend_backup *asked, char **report, struct steno_error *err);

/* ---- tables of functions, by family ---- */

extern const struct steno_backend postgres_backend;

/* pg_store.c */
int pg_open(const struct env *env, const char *url, uint32_t flags, struct backend_store **out,
    struct steno_error *err);
int pg_migrate(
    const struct env *env, const char *url, uint64_t *from, uint64_t *to, struct steno_error *err);
void pg_close(struct backend_store *store);
bool pg_is_ours(const struct backend_store *store);
void pg_sync(struct backend_store *store);
uint64_t pg_quarantined(const struct backend_store *store);
int pg_settings(struct backend_store *store, char **json, struct steno_error *err);
int pg_set_settings(
    struct backend_store *store, const char *json, size_t n, struct steno_error *err);
int pg_document_read(struct backend_store *store, const char *name, size_t max, char **text,
    size_t *n, uint64_t *stamp, struct steno_error *err);
int pg_document_stamp(
    struct backend_store *store, const char *name, uint64_t *stamp, struct steno_error *err);
int pg_document_change(struct backend_store *store, const char *name, size_t max, int patience_ms,
    backend_change_fn change, void *ctx, struct steno_error *err);
int pg_lock(struct backend_store *store, const char *name, struct backend_lock **out,
    struct steno_error *err);
void pg_unlock(struct backend_lock *lock);
void pg_figures_add(struct backend_store *store, const struct figures *more);
void pg_figures_get(struct backend_store *store, struct figures *out);

/* pg_check.c */
int pg_check(struct backend_store *store, struct backend_check *check, struct steno_error *err);

/* pg_conv.c */
int pg_conv_create(struct backend_store *store, struct str project, struct str id, struct str meta,
    struct backend_conv **out, struct steno_error *err);
int pg_conv_open(struct backend_store *store, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err);
void pg_conv_release(struct backend_conv *conv);
const char *pg_conv_id(const struct backend_conv *conv);
const char *pg_conv_project(const struct backend_conv *conv);
struct backend_store *pg_conv_store(const struct backend_conv *conv);
int pg_conv_meta(struct backend_conv *conv, char **json, size_t *n, struct steno_error *err);
int pg_conv_change_meta(
    struct backend_conv *conv, backend_change_fn change, void *ctx, struct steno_error *err);
int pg_conv_exclusively(
    struct backend_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err);
int pg_each_conv(struct backend_store *store, const char *project, backend_conv_fn each, void *ctx,
    struct steno_error *err);
int pg_trash_put(struct backend_conv *conv, char name[TRASH_NAME], struct steno_error *err);
int pg_trash_list(
    struct backend_store *store, bool sizes, struct trash_list *out, struct steno_error *err);
int pg_trash_open(struct backend_store *store, const struct trash_item *item,
    struct backend_conv **out, struct steno_error *err);
int pg_trash_put_back(struct backend_store *store, const struct trash_item *item, const char *as,
    struct steno_error *err);
int pg_trash_destroy(
    struct backend_store *store, const struct trash_item *item, struct steno_error *err);
int pg_trash_sweep(struct backend_store *store, struct steno_error *err);

/* pg_append.c */
int pg_append(struct backend_conv *conv, struct backend_batch *batch, struct backend_receipt *out,
    struct steno_error *err);

/* pg_read.c */
int pg_read(struct backend_conv *conv, uint64_t after, backend_record_fn each, void *ctx,
    struct steno_error *err);
int pg_read_last(struct backend_conv *conv, uint64_t count, backend_record_fn each, void *ctx,
    struct steno_error *err);
int pg_read_id(struct backend_conv *conv, struct str id, backend_record_fn each, void *ctx,
    struct steno_error *err);
int pg_read_amendments(
    struct backend_conv *conv, backend_record_fn each, void *ctx, struct steno_error *err);
int pg_lookup_open(struct backend_conv *conv, struct backend_lookup **out, struct steno_error *err);
int pg_lookup_record(struct backend_lookup *l, uint64_t seq, backend_record_fn each, void *ctx,
    struct steno_error *err);
void pg_lookup_close(struct backend_lookup *l);
int pg_last(struct backend_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err);
uint64_t pg_generation(struct backend_conv *conv);
int pg_wait(struct backend_conv *conv, uint64_t after, int timeout_ms, struct steno_error *err);
/* The present tail: last seq and bytes; each may be NULL. */
int pg_look(struct pg_conv *c, uint64_t *seq, uint64_t *bytes, struct steno_error *err);
/* The same for an append: updates what `c` knows of the tail. STENO_ENOTFOUND: it was removed. */
int pg_learn(struct pg_conv *c, struct steno_error *err);

/* Lines as they were stored, of (after, upto], each with its line feed; the first non-zero return
 * ends it, and is returned. */
typedef int (*pg_line_fn)(void *ctx, uint64_t seq, struct str line);
int pg_each_line(struct pg_conv *c, uint64_t after, uint64_t upto, pg_line_fn each, void *ctx,
    struct steno_error *err);

/* pg_run.c */
int pg_run_claim(
    struct backend_conv *conv, struct str id, struct backend_claim **out, struct steno_error *err);
void pg_run_claim_release(struct backend_claim *claim, bool finished);
int pg_run_claim_check(struct backend_claim *claim, struct steno_error *err);
void pg_run_claim_listen(struct backend_claim *claim, run_mail_fn fn, void *ctx);
uint64_t pg_run_claim_epoch(const struct backend_claim *claim);
/* STENO_ECONFLICT: somebody has taken it over. */
int pg_run_claim_ask(const struct backend_claim *claim, struct steno_error *err);
int pg_run_mail_send(struct backend_conv *conv, struct str line, struct steno_error *err);
int pg_run_last(struct backend_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err);
bool pg_run_is_dead(struct backend_conv *conv, const char *name);
void pg_run_settle(struct backend_conv *conv, const char *name);
void pg_run_settle_all(struct backend_conv *conv);
int pg_run_fence(struct backend_conv *conv, const char *name, struct steno_error *err);
int pg_run_create(struct backend_conv *conv, struct str id, struct str mode,
    struct backend_run **out, struct steno_error *err);
int pg_run_take_over(
    struct backend_conv *conv, const char *name, struct backend_run **out, struct steno_error *err);
void pg_run_close(struct backend_run *run);
int pg_run_write(struct backend_run *run, struct str type, struct str data, bool sync,
    uint64_t *seq, struct steno_error *err);
int pg_run_read(struct backend_conv *conv, const char *name, uint64_t after, run_event_fn each,
    void *ctx, struct steno_error *err);
int pg_run_wait(struct backend_conv *conv, const char *name, uint64_t after, int timeout_ms,
    struct steno_error *err);
int pg_run_look(
    struct backend_conv *conv, const char *name, struct run_state *out, struct steno_error *err);
int pg_run_each(struct backend_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err);
int pg_run_find(struct backend_store *store, struct str project, const char *name,
    struct backend_conv **out, struct steno_error *err);

/* pg_artifact.c */
int pg_artifact_begin(struct backend_conv *conv, const char *kind, struct str want, struct str hint,
    struct backend_artifact **out, struct steno_error *err);
const char *pg_artifact_id(const struct backend_artifact *a);
int pg_artifact_write(struct backend_artifact *a, const void *p, size_t n, struct steno_error *err);
void pg_artifact_lift_quota(struct backend_artifact *a);
void pg_artifact_index(struct backend_artifact *a, struct str bytes);
int pg_artifact_close(struct backend_artifact *a, const struct artifact_end *end,
    struct artifact_info *info, struct steno_error *err);
void pg_artifact_free(struct backend_artifact *a);
void pg_artifact_undo(struct backend_conv *conv, const char *id);
int pg_artifact_find(
    struct backend_conv *conv, struct str id, struct artifact_info *out, struct steno_error *err);
int pg_artifact_each(struct backend_conv *conv,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err);
int pg_artifact_open(struct backend_conv *conv, const struct artifact_info *info,
    struct backend_reader **out, uint64_t *size, struct steno_error *err);
int pg_artifact_verify(
    struct backend_conv *conv, const struct artifact_info *info, struct steno_error *err);
int pg_artifact_lines(struct backend_conv *conv, const struct artifact_info *info, char **p,
    size_t *n, struct steno_error *err);
int pg_artifact_relist(struct backend_conv *conv, const struct artifact_info *said, struct str call,
    bool *done, struct steno_error *err);
ssize_t pg_reader_read(
    struct backend_reader *r, uint64_t at, void *p, size_t n, struct steno_error *err);
int pg_reader_whole(struct backend_reader *r, const struct artifact_info *info, steno_sink sink,
    void *ctx, struct steno_error *err);
void pg_reader_close(struct backend_reader *r);
int pg_part_put(
    struct backend_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err);
int pg_part_get(struct backend_conv *conv, struct str name, uint64_t size, steno_sink sink,
    void *ctx, struct steno_error *err);

/* Bytes of an output that are rows. */
ssize_t pg_chunk_read(
    struct pg_conv *c, const char *ref, uint64_t at, char *p, size_t n, struct steno_error *err);

/* pg_blob.c */

/* The bucket that STENO_BLOBS names, if it does. */
int pg_blob_open(struct pg_store *s, struct steno_error *err);
bool pg_blob_is_wanted(const struct pg_store *s, uint64_t size);
/* Uploads the rows of an output. The transaction that stores its key and ETag must also remove the
 * key from `stray`. On failure nothing is left in the bucket. */
int pg_blob_put(struct pg_conv *c, const char *ref, uint64_t size, char key[BLOBS_KEY],
    char etag[BLOBS_ETAG], struct steno_error *err);
/* The same for the closed outputs of a conversation that came in as rows. If the bucket cannot be
 * reached, they stay rows, which work as well. */
void pg_blob_move(struct pg_store *s, struct str project, struct str id);
/* Removes objects from the bucket that no output uses any more. */
int pg_blob_collect(struct pg_store *s, struct steno_error *err);
struct pg_blob_reader {
        char key[BLOBS_KEY]; /* "": the bytes are rows */
        char etag[BLOBS_ETAG];
        pthread_mutex_t mutex;
        char *ahead; /* what was read beyond what was asked for */
        uint64_t at;
        size_t n, room;
};
void pg_blob_reader_init(struct pg_blob_reader *r);
void pg_blob_reader_release(struct pg_blob_reader *r);
int pg_blob_stream(struct pg_store *s, struct pg_blob_reader *r, uint64_t n, steno_sink sink,
    void *ctx, struct steno_error *err);
ssize_t pg_blob_read(struct pg_store *s, struct pg_blob_reader *r, uint64_t at, void *p, size_t n,
    struct steno_error *err);

/* pg_moves.c */
int pg_bundle_prepare(struct backend_conv *conv, const struct bundle_options *opt,
    struct backend_bundle **out, struct steno_error *err);
const struct bundle_view *pg_bundle_view(const struct backend_bundle *b);
int pg_bundle_add_text(
    struct backend_bundle *b, const char *name, struct str text, struct steno_error *err);
int pg_bundle_send(
    struct backend_bundle *b, size_t i, steno_sink sink, void *ctx, struct steno_error *err);
void pg_bundle_release(struct backend_bundle *b);
int pg_incoming_open(
    struct backend_store *store, struct backend_incoming **out, struct steno_error *err);
void pg_incoming_close(struct backend_incoming *in);
int pg_incoming_begin(struct backend_incoming *in, uint32_t number, struct steno_error *err);
int pg_incoming_file(struct backend_incoming *in, const char *name, struct steno_error *err);
int pg_incoming_write(
    struct backend_incoming *in, const void *p, size_t n, struct steno_error *err);
int pg_incoming_file_end(struct backend_incoming *in, struct steno_error *err);
int pg_incoming_end(struct backend_incoming *in, struct str project, struct str id, bool renamed,
    bool trusted, struct steno_error *err);
int pg_incoming_look(struct backend_incoming *in, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err);
int pg_incoming_install(struct backend_incoming *in, uint32_t number, struct str project,
    struct str id, struct steno_error *err);
int pg_purge(struct backend_conv *conv, struct purge_result *out, struct steno_error *err);
int pg_fork(struct backend_conv *origin, const struct fork_request *request,
    struct backend_conv **out, uint64_t *seq, struct steno_error *err);

/* pg_quota.c */
void pg_set_quota(
    struct backend_store *store, const struct quota *quota, quota_warn_fn warn, void *ctx);
/* What outputs and parts take, of one conversation or (NULL) of all that are not in the trash; a
 * failure counts nothing. */
uint64_t pg_quota_count(struct pg_store *s, const struct pg_conv *c);
/* Room for `n` more bytes of outputs or parts. STENO_EQUOTA says which limit is reached. */
int pg_quota_take(struct pg_conv *c, uint64_t n, struct steno_error *err);
/* The same of one output that has `used` bytes. */
int pg_quota_take_output(struct pg_conv *c, uint64_t used, uint64_t n, struct steno_error *err);
/* The same of a whole conversation that comes in. */
int pg_quota_take_conv(struct pg_store *s, uint64_t n, struct steno_error *err);

/* pg_search.c */
int pg_search_lock(struct backend_store *store, bool wait, struct steno_error *err);
void pg_search_unlock(struct backend_store *store);
int pg_search_progress(
    struct backend_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err);
int pg_search_each_conv(
    struct backend_store *store, backend_progress_fn each, void *ctx, struct steno_error *err);
int pg_search_begin(struct backend_conv *conv, uint64_t generation, struct steno_error *err);
int pg_search_add(
    struct backend_store *store, const struct search_block *b, struct steno_error *err);
int pg_search_commit(struct backend_store *store, uint64_t seq, struct steno_error *err);
int pg_search_forget(
    struct backend_store *store, const char *project, const char *id, struct steno_error *err);
int pg_search_discard(struct backend_store *store, struct steno_error *err);
int pg_search_each(struct backend_store *store, const struct search_ask *ask, search_hit_fn each,
    void *ctx, struct steno_error *err);

/* pg_catalogue.c */
int pg_catch_up(struct backend_store *store, bool at_once, steno_progress progress,
    void *progress_ctx, struct backend_caught_up *out, struct steno_error *err);
int pg_list(struct backend_store *store, const struct backend_query *q, char **json,
    struct steno_error *err);
int pg_list_each(struct backend_store *store,
    int (*each)(void *ctx, const struct backend_listed *row), void *ctx, struct steno_error *err);
int pg_totals(struct backend_store *store, struct backend_totals *out, struct steno_error *err);
int pg_tally(struct backend_store *store, struct backend_tally *out, struct steno_error *err);
int pg_unfinished(struct backend_store *store, const char *project, uint32_t max, char **json,
    struct steno_error *err);

/* pg_seal.c */
int pg_seal(struct backend_conv *conv, const struct note_key *key, struct seal_result *out,
    struct steno_error *err);
enum seal_standing pg_seal_standing(struct backend_conv *conv);
uint64_t pg_seal_size(struct backend_conv *conv);
int pg_seal_notes(struct backend_conv *conv, char **text, size_t *n, struct steno_error *err);
int pg_seal_prove(
    struct backend_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err);
int pg_seal_name(struct backend_conv *conv, char out[SEAL_CONV], struct steno_error *err);
bool pg_seal_has_log(struct backend_store *store);
int pg_seal_log_read(struct backend_store *store, struct seal_log *out, struct steno_error *err);
void pg_seal_log_call(struct backend_store *store, const char *conv, struct buf *out);
int pg_seal_log_sign(
    struct backend_store *store, const struct note_key *key, struct steno_error *err);
int pg_seal_verify(
    struct backend_conv *conv, const char *name, struct seal_check *check, struct steno_error *err);
bool pg_seal_is_known(struct backend_conv *conv, const char *name, const struct seal_log *log);
int pg_seal_verify_log(
    struct backend_store *store, struct seal_check *check, struct steno_error *err);
/* Writes the store's log of seals as files of a scratch store, and stores such files as documents
 * again. */
int pg_seal_lay_out(struct pg_store *s, struct pg_scratch *x, struct steno_error *err);
int pg_seal_take_back(struct pg_tx *tx, struct pg_scratch *x, struct steno_error *err);
/* Stores the seal of a conversation's copy, and the log beside it. `fresh`: the seal covers
 * everything that was copied. */
int pg_seal_keep(
    struct pg_tx *tx, struct pg_conv *c, struct pg_layout *l, bool fresh, struct steno_error *err);
bool pg_seal_exists(struct pg_conv *c);
/* A sealed conversation leaves for good: the log says so. */
int pg_seal_remove(struct pg_conv *c, struct steno_error *err);

/* pg_signal.c */
int pg_signal_open(struct pg_store *s, struct steno_error *err);
void pg_signal_close(struct pg_store *s);
/* Call it after a write to the conversation: wakes those who wait for it, in this process and
 * others. */
void pg_signal_say(struct pg_conv *c);
/* Are hints of other processes coming in? Begins to listen. */
bool pg_signal_hears(struct pg_conv *c);
/* Grows with every hint that it has changed. */
uint64_t pg_signal_count(const struct pg_conv *c);
/* Waits until the count differs from `seen`, until it is time to look again, or until `until`
 * (monotonic ms). `*pause` is 0 at first. */
void pg_signal_wait(struct pg_conv *c, uint64_t seen, int *pause, int64_t until);
int pg_watch(struct backend_store *store, struct str project, struct backend_watcher **out,
    struct steno_error *err);
void pg_watch_end(struct backend_watcher *w);
bool pg_watched(struct backend_store *store, struct str project);

/* pg_disk.c */
extern const struct backend_disks pg_disks;

/* pg_tables.c */
extern const struct backend_tables pg_tables;

#endif
