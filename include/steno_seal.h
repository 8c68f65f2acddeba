/*
 * steno_seal.h - seals: proofs of what was recorded. Part of steno.h, which includes it.
 *
 * A seal lets somebody prove later what a conversation contained, and reveals later changes. Each
 * record is a leaf of a hash tree (RFC 6962), and the root of the tree is signed (Ed25519, C2SP
 * signed notes). The store keeps a log of all roots, of purges and of removed conversations; this
 * log is a hash tree as well. A seal does not prevent changes: whoever has the files and the key
 * can make another history. That history will not match a checkpoint that somebody else has kept.
 * docs/seals.md has the formats.
 *
 * Keys are text. A private one begins with PRIVATE+KEY+; a public one is NAME+ID+BASE64.
 */
#ifndef STENO_SEAL_H
#define STENO_SEAL_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A new private key; `name` is printable ASCII without spaces and +; NULL makes one up. */
STENO_API int steno_key_new(const char *name, char **private_key, struct steno_error *err);
/* The public key that belongs to it. Others verify with it. */
STENO_API int steno_key_public(const char *private_key, char **public_key, struct steno_error *err);

/*
 * Seals a conversation (`id` NULL: every one, of all projects, that changed since it was sealed),
 * and signs the store's log. Appends are possible meanwhile; records that are not synced are not
 * sealed. *report (may be NULL): {"conversations":n,"changed":n,"records":n,"checkpoint":the signed
 * note of the store's log}. Keep the checkpoint where the store's owner cannot change it.
 *
 * STENO_EDENIED: the store was opened without a key. STENO_ECORRUPT: a conversation cannot be read,
 * or differs from what was sealed before; the others are sealed all the same.
 */
STENO_API int steno_seal(struct steno_store *store, const char *project, const char *id,
    steno_progress progress, void *progress_ctx, char **report, struct steno_error *err);

struct steno_verify_options {
        size_t size;
        const char *project; /* NULL: the whole store, */
        const char *id;      /* else one conversation */
        const char *key; /* public or private; NULL: the store's. Where there is none, signatures
                            are not checked */
        const char *checkpoint; /* signed notes that were kept elsewhere, concatenated; may be
                                   NULL */
        steno_progress progress;
        void *progress_ctx;
};

/*
 * Compares records, outputs and the log with what was sealed. Returns the number of findings, or a
 * negative code. A finding: {"project"?,"conversation"?,"seq"?,"lastSeq"?,"ref"?,"kind","note"?,
 * "what"}; findings with note:true are not counted: nothing is wrong there. Kinds: changed, added,
 * removed, moved, lost, output, seal, log, vanished, unsigned; notes: purged, uncovered. *report
 * (may be NULL): {"conversations","records","outputs","purged","unsealed","signatures":"checked"|
 * "not checked","findings"}.
 */
STENO_API int steno_verify(struct steno_store *store, const struct steno_verify_options *opt,
    int (*each)(void *ctx, const char *json), void *ctx, char **report, struct steno_error *err);

/* The proof that a sealed conversation contains a record:
 * {"record","index","size","hashes","checkpoint"}. STENO_ENOTFOUND: the seq is not sealed. */
STENO_API int steno_prove(
    struct steno_conv *conv, uint64_t seq, char **json, struct steno_error *err);
/* Checks such a proof without a store. `key` is public. STENO_ECORRUPT says what is wrong. */
STENO_API int steno_prove_check(
    const char *json, size_t n, const char *key, struct steno_error *err);
/* What is sealed: {"sealed":n,"lastSeq":n,"checkpoint":the signed note or null}. */
STENO_API int steno_seal_state(struct steno_conv *conv, char **json, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
