/*
 * carry.h - moves large parts of a message from its log line to files of their own, and puts them
 * back.
 *
 * On the way in a large tool output becomes an artifact and a stub takes its place, wherever it
 * stands in the message and whatever the message's format (carry_outs.h), also where it is the
 * response of a call in the assistant's text (carry_calls.h). Any other string token over
 * TOKEN_INLINE_MAX is kept raw in artifacts/parts and `""` stands in its place (about.parts). All
 * files are synced before the record is written. about.sha is the hash of the message as it came,
 * so that a repeated append can be told from another message.
 *
 * On the way out the parts are always put back, and the outputs where they are asked for. The
 * result is then the message as it came, token for token: about.outs says which bytes of which file
 * were where. Records of earlier versions have no outs; for their tool messages the text is
 * restored, and carry_is_rendering says whether it differs from what was sent.
 */
#ifndef API_CARRY_H
#define API_CARRY_H

#include "base/arena.h"
#include "base/json.h"
#include "output/policy.h"
#include "api/api_store.h"

struct format;

struct carry_options {
        struct policy policy; /* that holds for this append */
        struct policy usual;  /* the store's own */
        bool decided;         /* outputs stay as they are */
        bool keep_output;     /* the client that sends it expects its outputs back in full */
};

/* A message that was sent. */
struct carry_message {
        const struct format *format;
        const struct json *j; /* the batch (an array) or the message itself, on one line */
        json_ref at;
        struct str id; /* that its record will have */
};

/* What becomes of it. */
struct carried {
        struct arena *arena; /* everything that is made lives here */
        struct about *about; /* described; gets parts, outs, refs, sha and marks */
        struct str m;        /* what goes into the record */
        bool made;           /* artifacts were made, to be taken back when the append fails */
};

/* Decides about one message. `to` has arena and about set. */
int carry_in(struct steno_conv *conv, const struct carry_message *msg,
    const struct carry_options *opt, struct carried *to, struct steno_error *err);
/* Of a tool message that came with its ref: about's ref_sha, by what the manifest says now. */
int carry_learn_ref(
    struct steno_conv *conv, struct arena *arena, struct about *about, struct steno_error *err);
/* Takes back the artifacts that about names. */
void carry_undo(struct steno_conv *conv, const struct about *about);

/* carry_parts.c: are there tokens that have to leave the line? */
bool carry_parts_needed(const struct json *j, json_ref msg);
/* Stores them; `out` gets the message without them, to->about the list. */
int carry_parts_cut(struct steno_conv *conv, const struct json *j, json_ref msg, struct carried *to,
    struct buf *out, struct steno_error *err);

/*
 * The message `msg` is the one that is stored at `seq`, sent again: what had left it and is
 * missing or damaged now is stored anew, byte for byte. STENO_ECORRUPT: something stays lost.
 */
int carry_restore(struct steno_conv *conv, const struct carry_message *msg, uint64_t seq,
    struct steno_error *err);

/* ---- the way back (carry_out.c) ---- */

/* A stored message, and where it goes. */
struct carry_out {
        struct steno_conv *conv;
        struct str m;
        const struct about *about;
        bool full; /* with its outputs; else the stubs stay */
        /* Room for about->out_count offsets: where each output, or its stub, begins in what was
         * written. May be NULL. */
        uint64_t *places;
};

/* Streams it. Outputs that were deleted, or never were text, stay stubs. */
int carry_out(const struct carry_out *c, steno_sink sink, void *ctx, struct steno_error *err);
/* Is there nothing to be put back? */
bool carry_is_plain(const struct about *about, bool full);
/*
 * The message as it came, as nearly as the files allow: its outputs, and without what was added to
 * it. *rendering says that an earlier version did not keep the original, or that an output was
 * deleted: what comes back is then not what was sent.
 */
int carry_original(const struct carry_out *c, steno_sink sink, void *ctx, bool *rendering,
    struct steno_error *err);

/* The policy that holds for an append or output: the call's options over the store's settings. */
int carry_policy(const struct steno_store *store, const char *profile, uint64_t max_chars,
    uint64_t max_bytes, struct policy *out, struct steno_error *err);

#endif
