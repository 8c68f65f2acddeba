/*
 * context.h - the context operations: list, read, tail, grep, json over the outputs of one shelf: a
 * conversation's artifacts, or the large results of messages that are not stored (stubs.c).
 * Their table (names, words, parameters) is context_tools.c's; this is what they do.
 */
#ifndef API_CONTEXT_H
#define API_CONTEXT_H

#include "base/json.h"
#include "api/api_store.h"

/* An artifact that is open for reading. */
struct context_file {
        struct backend_reader *reader; /* NULL: it is in memory, */
        struct str memory;             /* which outlives this */
        uint64_t size;                 /* as it was when it was opened */
        bool damaged;                  /* closed, and not of the size that it was closed with */
        struct artifact_info info;
};

/* A ref, a path of the runtime-store profile, or a ref that names its bytes (context_name_bytes). A
 * deleted one is STENO_ENOTFOUND with the words of its tombstone. */
int context_open(
    struct steno_conv *conv, struct str ref, struct context_file *out, struct steno_error *err);
void context_close(struct context_file *f);
/* STENO_ECORRUPT, and how much of a damaged one is there. */
int context_damage(const struct context_file *f, struct steno_error *err);

/* Where outputs stand. `self` is the shelf itself, so that a kind of its own can embed it. */
struct context_shelf {
        /* STENO_ENOTFOUND: no such ref here. */
        int (*open)(const struct context_shelf *self, struct str ref, struct context_file *out,
            struct steno_error *err);
        /* Newest first; stops at the first non-zero return of `each`, which it returns. */
        int (*each)(const struct context_shelf *self,
            int (*each)(void *ctx, const struct artifact_info *info), void *ctx,
            struct steno_error *err);
        /* The line index, freed with free(); *n is 0 when there is none. */
        int (*lines)(const struct context_shelf *self, const struct artifact_info *info, char **p,
            size_t *n, struct steno_error *err);
};

/* Who is told how far a long operation has come, and may stop it. */
struct context_watch {
        steno_progress progress; /* may be NULL */
        void *ctx;
};

/* Each appends a JSON object to `out`; `args` is an object at node 0. */
int context_list(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err);
int context_read(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err);
int context_tail(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err);
int context_grep(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err);
int context_json(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err);

/* The output that the argument "ref" names. */
int context_open_ref(const struct context_shelf *shelf, const struct json *args,
    struct context_file *f, struct steno_error *err);
/* Exactly n bytes of a struct context_file, which has them. */
int context_read_at(void *file, uint64_t at, void *p, size_t n, struct steno_error *err);

/* What a number of the arguments may be, and what it is when it is not given. */
struct context_range {
        uint64_t fallback;
        uint64_t min;
        uint64_t max;
};

/*
 * A whole number from the arguments: absent (or null) is the range's fallback, outside of the range
 * it is clamped and `said` gets a sentence. Numbers in strings are taken as well, because models
 * send them. STENO_EPROTO: it is not a number.
 */
int context_number(const struct json *args, const char *name, struct context_range range,
    struct buf *said, uint64_t *out, struct steno_error *err);

/*
 * How bytes are shown: as they are where they are UTF-8, with \xNN for each byte that is not where
 * they are nearly text, in base64 where they are neither, or where the caller asks for that.
 */
enum context_encoding { CONTEXT_TEXT, CONTEXT_ESCAPED, CONTEXT_BASE64 };
/* From the argument "encoding". STENO_EPROTO: there is no such. */
int context_wants_base64(const struct json *args, bool *out, struct steno_error *err);
enum context_encoding context_encoding_of(struct str bytes, bool base64);
/* How many of the bytes an answer can show: CONTEXT_READ_MAX as they are shown. */
size_t context_fit(struct str bytes, enum context_encoding encoding);
/* "content", and "encoding" where it is not plain text. */
void context_put_content(
    struct jsonw *w, const char *key, struct str bytes, enum context_encoding encoding);
/* "unfinished" or "damaged", where it is; of a damaged one `said` gets a sentence. */
void context_put_state(struct jsonw *w, const struct context_file *f, struct buf *said);
/* "notes": what was clamped, when anything was. */
void context_put_notes(struct jsonw *w, const struct buf *said);

/*
 * Runs an operation ("list", "read", "tail", "grep", "json") on a shelf. The answer is JSON, freed
 * with free(). `watch` may be NULL.
 */
int context_run(const struct context_shelf *shelf, const char *op, struct str args,
    const struct context_watch *watch, char **json, struct steno_error *err);
/* A model's call of a context tool on a shelf, as steno_context_call answers it. */
int context_call(const struct context_shelf *shelf, const char *name, struct str args,
    const struct context_watch *watch, char **text, bool *is_error, struct steno_error *err);

/* Counts an operation on a conversation. */
void context_count(struct steno_conv *conv, const char *op);

/* A conversation as a shelf. */
struct context_conv {
        struct context_shelf shelf;
        struct steno_conv *conv;
};
void context_conv_init(struct context_conv *c, struct steno_conv *conv);

#define CONTEXT_BYTES_REF 37
/* The ref that bytes have wherever they stand: it is made of their sha256. */
void context_name_bytes(const char sha256[SHA256_HEX], char ref[CONTEXT_BYTES_REF]);

#endif
