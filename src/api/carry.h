/*
 * carry.h - how a message is carried: what of it leaves the log line for files of its own, and
 * how it comes back.
 *
 * On the way in a large tool output becomes an artifact and a stub takes its place, also where it
 * is the response of a call that stands in the assistant's text (carry_calls.h); any other
 * string token over TOKEN_INLINE_MAX is kept raw in artifacts/parts and `""` stands in its place
 * (about.parts). Both are synced before the record is written. `sha` of the about is the message
 * as it came, so that a repeated append can be told from another message.
 */
#ifndef API_CARRY_H
#define API_CARRY_H

#include "base/arena.h"
#include "base/json.h"
#include "output/policy.h"
#include "api/api_store.h"

struct carry_options {
        struct policy policy;
        bool materialize; /* tool outputs become stubs; else they only leave the line */
        bool keep_output; /* and come back whole */
        struct str message_id;
};

/*
 * Decides about one message (JSON object at `msg` of `j`, one line). *m is what goes into the
 * record: the message as it is, or a text in `arena`. Fills about's parts, sha, ref, ref_sha, refs,
 * keep_output. *made says that artifacts were made for it, to be taken back (carry_undo) when the
 * append fails.
 */
int carry_in(struct steno_conv *conv, const struct json *j, json_ref msg,
    const struct carry_options *opt, struct arena *arena, struct about *about, struct str *m,
    bool *made, struct steno_error *err);
/* Of a tool message that came with its ref: about's ref_sha, by what the manifest says now. */
int carry_learn_ref(
    struct steno_conv *conv, struct arena *arena, struct about *about, struct steno_error *err);
/* The text of a tool message's content: a string, or an array of nothing but texts. */
bool carry_output_text(const struct json *j, json_ref msg, struct buf *out, bool *lossy);
/* Takes back the artifacts that about names. */
void carry_undo(struct steno_conv *conv, const struct about *about);

/*
 * The message at `msg` is the one that is stored at `seq`, sent again: what had left it and is
 * missing or damaged now is stored anew, byte for byte. STENO_ECORRUPT: something stays lost.
 */
int carry_restore(struct steno_conv *conv, const struct json *j, json_ref msg, uint64_t seq,
    struct steno_error *err);

/* Streams a stored message with its large tokens put back. `full`: a materialized output too. */
int carry_out(struct steno_conv *conv, struct str m, const struct about *about, bool full,
    steno_sink sink, void *ctx, struct steno_error *err);

/* Does carry_out have anything to do? */
bool carry_is_plain(const struct about *about, bool full);

/* The policy that holds for an append or output: the call's options over the store's settings. */
int carry_policy(const struct steno_store *store, const char *profile, uint64_t max_chars,
    uint64_t max_bytes, struct policy *out, struct steno_error *err);

#endif
