/*
 * files_backend.h - what stands between the table of files_backend.c and the files of this folder,
 * where a call of store/backend.h is not simply one of theirs. Nobody else includes it.
 */
#ifndef STORE_FILES_FILES_BACKEND_H
#define STORE_FILES_FILES_BACKEND_H

#include "store/files/disk.h"
#include "store/files/artifact.h"
#include "store/files/backup_store.h"
#include "store/files/bundle.h"
#include "store/files/conv.h"
#include "store/files/figures.h"
#include "store/files/files_check.h"
#include "store/files/fork.h"
#include "store/files/presence.h"
#include "store/files/purge.h"
#include "store/files/run.h"
#include "store/files/seal.h"
#include "store/files/seal_log.h"
#include "store/files/seal_prove.h"
#include "store/files/seal_verify.h"
#include "store/files/trash.h"

/* ---- files_names.c: walks by names, and work under the lock ---- */

int files_each_name(struct files_store *store, const char *project, backend_conv_fn each, void *ctx,
    struct steno_error *err);
int files_conv_exclusively(
    struct files_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err);
/* The log's inode: a purge or a repair makes another file. */
uint64_t files_generation(struct files_conv *conv);
enum seal_standing files_seal_standing(struct files_conv *conv);
int files_seal_name(struct files_conv *conv, char out[SEAL_CONV], struct steno_error *err);
bool files_seal_has_log(struct files_store *store);

/* ---- files_aside.c ---- */

/* The store once more, with what is written kept in memory (base/fs_aside.h). */
int files_aside_open(
    struct files_conv *conv, const char *run, struct files_store **out, struct steno_error *err);

/* ---- files_reader.c ---- */

struct files_reader;

int files_artifact_open(struct files_conv *conv, const struct artifact_info *info,
    struct files_reader **out, uint64_t *size, struct steno_error *err);
ssize_t files_reader_read(
    struct files_reader *r, uint64_t at, void *p, size_t n, struct steno_error *err);
int files_reader_whole(struct files_reader *r, const struct artifact_info *info, steno_sink sink,
    void *ctx, struct steno_error *err);
void files_reader_close(struct files_reader *r);

/* ---- files_catalogue.c: index and search ---- */

int files_catch_up(struct files_store *store, bool at_once, steno_progress progress,
    void *progress_ctx, struct backend_caught_up *out, struct steno_error *err);
int files_list(
    struct files_store *store, const struct backend_query *q, char **json, struct steno_error *err);
int files_list_each(struct files_store *store,
    int (*each)(void *ctx, const struct backend_listed *row), void *ctx, struct steno_error *err);
int files_totals(struct files_store *store, struct backend_totals *out, struct steno_error *err);
int files_tally(struct files_store *store, struct backend_tally *out, struct steno_error *err);
int files_unfinished(struct files_store *store, const char *project, uint32_t max, char **json,
    struct steno_error *err);
int files_run_find(struct files_store *store, struct str project, const char *name,
    struct files_conv **out, struct steno_error *err);
int files_search_lock(struct files_store *store, bool wait, struct steno_error *err);
void files_search_unlock(struct files_store *store);
int files_search_progress(
    struct files_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err);
int files_search_each_conv(
    struct files_store *store, backend_progress_fn each, void *ctx, struct steno_error *err);
int files_search_begin(struct files_conv *conv, uint64_t generation, struct steno_error *err);
int files_search_add(
    struct files_store *store, const struct search_block *b, struct steno_error *err);
int files_search_commit(struct files_store *store, uint64_t seq, struct steno_error *err);
int files_search_forget(
    struct files_store *store, const char *project, const char *id, struct steno_error *err);
int files_search_discard(struct files_store *store, struct steno_error *err);
int files_search_each(struct files_store *store, const struct search_ask *ask, search_hit_fn each,
    void *ctx, struct steno_error *err);

/* ---- files_moves.c: bundles ---- */

struct files_bundle;
struct files_incoming;

int files_bundle_prepare(struct files_conv *conv, const struct bundle_options *opt,
    struct files_bundle **out, struct steno_error *err);
const struct bundle_view *files_bundle_view(const struct files_bundle *b);
int files_bundle_add_text(
    struct files_bundle *b, const char *name, struct str text, struct steno_error *err);
int files_bundle_send(
    struct files_bundle *b, size_t i, steno_sink sink, void *ctx, struct steno_error *err);
void files_bundle_release(struct files_bundle *b);

int files_incoming_open(
    struct files_store *store, struct files_incoming **out, struct steno_error *err);
void files_incoming_close(struct files_incoming *in);
int files_incoming_begin(struct files_incoming *in, uint32_t number, struct steno_error *err);
int files_incoming_file(struct files_incoming *in, const char *name, struct steno_error *err);
int files_incoming_write(
    struct files_incoming *in, const void *p, size_t n, struct steno_error *err);
int files_incoming_file_end(struct files_incoming *in, struct steno_error *err);
int files_incoming_end(struct files_incoming *in, struct str project, struct str id, bool renamed,
    bool trusted, struct steno_error *err);
int files_incoming_look(struct files_incoming *in, struct str project, struct str id,
    struct files_conv **out, struct steno_error *err);
int files_incoming_install(struct files_incoming *in, uint32_t number, struct str project,
    struct str id, struct steno_error *err);

/* ---- files_check_store.c ---- */

int files_check_store(
    struct files_store *store, struct backend_check *check, struct steno_error *err);

/* ---- files_documents.c ---- */

struct files_lock;

int files_lock(
    struct files_store *store, const char *name, struct files_lock **out, struct steno_error *err);
void files_unlock(struct files_lock *lock);
int files_document_read(struct files_store *store, const char *name, size_t max, char **text,
    size_t *n, uint64_t *stamp, struct steno_error *err);
int files_document_stamp(
    struct files_store *store, const char *name, uint64_t *stamp, struct steno_error *err);
int files_document_change(struct files_store *store, const char *name, size_t max, int patience_ms,
    backend_change_fn change, void *ctx, struct steno_error *err);

#endif
