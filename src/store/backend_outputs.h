/*
 * backend_outputs.h - what a store keeps beside the records: outputs, terminals, parts.
 *
 * An output (artifact) is written piece by piece, and can be read from its first byte on. It is
 * closed before a record names it, and is durable then. Its `name` is a file name for people. A
 * part is a large value of a message, named by the SHA-256 of its bytes.
 */
#ifndef STORE_BACKEND_OUTPUTS_H
#define STORE_BACKEND_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "store/backend_records.h"

struct backend_artifact; /* being written */
struct backend_reader;

enum artifact_state {
        ARTIFACT_OPEN, /* being written, or left unfinished */
        ARTIFACT_CLOSED,
        ARTIFACT_DELETED,
};

struct artifact_info {
        char id[40];   /* "ctx_..." */
        char kind[12]; /* "tool" or "terminal" */
        char name[100];
        char mime[64];
        enum artifact_state state;
        bool live; /* open, and its writer is alive */
        bool utf8; /* closed: the whole is UTF-8 */
        uint64_t size;
        uint64_t lines; /* 0 while open */
        char sha256[SHA256_HEX];
        int64_t created; /* ms */
        char hint[400];
        int64_t deleted_at;
        char deleted_by[40];
};

/* The n-th candidate for the name of an output that should be called `want`, without its suffix. */
#define BACKEND_ARTIFACT_NAME 80
int backend_artifact_name(struct str want, int n, char out[BACKEND_ARTIFACT_NAME]);

/* ---- writing ---- */

/* Begins one; others can read it from now on. `want` is the name it should have (a call id), of
 * kind "tool" or "terminal"; no two of a conversation have the same. */
int backend_artifact_begin(struct backend_conv *conv, const char *kind, struct str want,
    struct str hint, struct backend_artifact **out, struct steno_error *err);
/* Begins an output again whose bytes or description were lost, with the id, kind, hint and time of
 * `info`. */
int backend_artifact_begin_again(struct backend_conv *conv, const struct artifact_info *info,
    struct str want, struct backend_artifact **out, struct steno_error *err);
const char *backend_artifact_id(const struct backend_artifact *a);
/* STENO_EQUOTA: a quota is reached, and nothing of the piece was written. The output is whole up to
 * there and can be closed. */
int backend_artifact_write(
    struct backend_artifact *a, const void *p, size_t n, struct steno_error *err);
/* The next pieces ignore the quota: they are a note that it was reached. */
void backend_artifact_lift_quota(struct backend_artifact *a);
/* The next piece of its line index, as it is made. */
void backend_artifact_index(struct backend_artifact *a, struct str bytes);
/* What is known at the end. */
struct artifact_end {
        const char *suffix; /* ".json", ".txt", ".bin" or ".log" */
        const char *mime;
        uint64_t lines;
        bool utf8;
        struct str hint;       /* takes the place of the first one, unless it is empty */
        struct str line_index; /* the last piece of the line index, may be empty */
};

/* Durable on return. Fills `info` (may be NULL). */
int backend_artifact_close(struct backend_artifact *a, const struct artifact_end *end,
    struct artifact_info *info, struct steno_error *err);
/* Frees. One that was not closed stays as it is, unfinished. NULL does nothing. */
void backend_artifact_free(struct backend_artifact *a);
/* Removes an output, closed or open, because the append that it was made for failed. */
void backend_artifact_undo(struct backend_conv *conv, const char *id);

/* ---- reading ---- */

/* STENO_ENOTFOUND: no such ref here. A deleted one is found, with its state. */
int backend_artifact_find(
    struct backend_conv *conv, struct str id, struct artifact_info *out, struct steno_error *err);
/* Newest first; stops at the first non-zero return of `each`, which it returns. */
int backend_artifact_each(struct backend_conv *conv,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err);
/* *size is what there is now. */
int backend_artifact_open(struct backend_conv *conv, const struct artifact_info *info,
    struct backend_reader **out, uint64_t *size, struct steno_error *err);
/* Does a closed output still have the bytes that it was closed with? STENO_ECORRUPT: no, or they
 * are missing. */
int backend_artifact_verify(
    struct backend_conv *conv, const struct artifact_info *info, struct steno_error *err);
/* The line index, freed with free(); *n is 0 when there is none. */
int backend_artifact_lines(struct backend_conv *conv, const struct artifact_info *info, char **p,
    size_t *n, struct steno_error *err);
/* Rebuilds the lost description of an output. `call` is the call id of its record, and `said` what
 * the record's ref says. *done: exactly one output matches, and has the hash if that is known.
 * Within backend_conv_exclusively. */
int backend_artifact_relist(struct backend_conv *conv, const struct artifact_info *said,
    struct str call, bool *done, struct steno_error *err);
/* Up to `n` bytes from `at` on; fewer only at the end. How many, or a negative code. */
ssize_t backend_reader_read(
    struct backend_reader *r, uint64_t at, void *p, size_t n, struct steno_error *err);
/* Hands out all of a closed output. STENO_ECORRUPT: its bytes differ from what `info` says, which
 * may be known only after `sink` got them. */
int backend_reader_whole(struct backend_reader *r, const struct artifact_info *info,
    steno_sink sink, void *ctx, struct steno_error *err);
/* NULL does nothing. */
void backend_reader_close(struct backend_reader *r);

/* ---- what records say of them ---- */

/* Reads what the ref of a stored message `m` says about an output; the size is 0 if `m` has no ref
 * with this id. */
int backend_said_read(
    struct str m, struct str ref, struct artifact_info *out, struct steno_error *err);
/* The same from what a record's `outs` says. */
void backend_said_take(const struct about_out *o, struct artifact_info *out);

/* ---- parts ---- */

#define PART_NAME 65 /* sha256 in hex, and a NUL */

/* Stores a value; durable on return. The same bytes are stored once. Fills `name`. */
int backend_part_put(
    struct backend_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err);
/* Streams a part. STENO_ECORRUPT: it is missing, or its bytes do not match its name. `sink` may
 * have got some bytes by then. A caller that cannot take them back calls with a NULL sink first. */
int backend_part_get(struct backend_conv *conv, struct str name, uint64_t size, steno_sink sink,
    void *ctx, struct steno_error *err);

/* ---- quotas ---- */

/* The room that outputs and parts may take, in bytes; 0: no limit. Records are not counted: a quota
 * ends an output, never the history. */
struct quota {
        uint64_t output;       /* of one of them */
        uint64_t conversation; /* of all of a conversation */
        uint64_t store;        /* of all */
};

/* A line for a person that says that most of a quota is used. Called on the thread that stores. */
typedef void (*quota_warn_fn)(void *ctx, const char *line);

/* Call it before anything is stored through this handle. Without it nothing is limited. */
void backend_set_quota(
    struct backend_store *store, const struct quota *quota, quota_warn_fn warn, void *ctx);

/* ---- figures ---- */

/* Counters of a store, only for people to look at. */
struct figures {
        uint64_t materializations;
        uint64_t bytes; /* of the outputs, and of what stands for them */
        uint64_t chars;
        uint64_t shown_bytes;
        uint64_t shown_chars;
        uint64_t reads[4]; /* list, read, tail, grep */
};

/* Best effort: a failure is ignored on purpose. */
void backend_figures_add(struct backend_store *store, const struct figures *more);
/* Zeros where there are none. */
void backend_figures_get(struct backend_store *store, struct figures *out);

#endif
