/*
 * spill.h - a tool's output on its way in: inline while it is small, an artifact from the moment
 * it is not. The one place where outputs become files, for whole texts and for streams alike.
 *
 * Output that is not UTF-8 becomes an artifact whatever its size, because a message cannot contain
 * its bytes. The limits of the policy and of the excerpt bound the memory.
 */
#ifndef API_SPILL_H
#define API_SPILL_H

#include "base/buf.h"
#include "base/json.h"
#include "output/policy.h"
#include "api/api_store.h"

struct spill;

struct spill_options {
        struct policy policy;
        struct str tool;
        struct str server; /* may be empty */
        struct str call;
        struct str message_id; /* for the path of the runtime-store profile, */
        size_t output;         /* and which output of that message it is, from 1; 0 is 1 */
        bool terminal;         /* always a file, under artifacts/terminal */
        bool context_tools;    /* the reader of the stub has the context_* tools */
        void (*on_ref)(void *ctx, const char *ref); /* it becomes a file; may be NULL */
        void *on_ref_ctx;
};

/* The strings of `opt` must live as long as the spill. */
int spill_new(struct steno_conv *conv, const struct spill_options *opt, struct spill **out,
    struct steno_error *err);
/* STENO_EQUOTA: a quota is reached. The output ends with a mark that says so, takes nothing more,
 * and can be finished. */
int spill_write(struct spill *s, const void *p, size_t n, struct steno_error *err);
/* 0, or STENO_EQUOTA when that has happened. */
int spill_refuse(const struct spill *s, struct steno_error *err);
/* NULL while it is inline. */
const char *spill_ref(const struct spill *s);

struct spill_exit {
        bool has_code;
        int64_t code;
        bool unfinished; /* the tool was killed */
};

/*
 * The end: `content` gets what a model sees, the output itself or the stub. *materialized says
 * which; then `info` is filled, and the artifact is synced.
 */
int spill_finish(struct spill *s, const struct spill_exit *exit, struct buf *content,
    bool *materialized, struct artifact_info *info, struct steno_error *err);
/* Frees; an artifact that was not finished stays, unfinished. */
void spill_free(struct spill *s);

/* The ref object of outputs.md. */
void spill_put_ref(struct jsonw *w, const struct artifact_info *info);
/* "@state/logs/tool-results/<conversation>/<message>.json"; of the second output of a message and
 * those behind it ".../<message>-<n>.json". */
void spill_put_path(
    struct buf *out, const char *conversation, struct str message_id, size_t output);

#endif
