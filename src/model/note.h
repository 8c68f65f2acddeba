/*
 * note.h - signed checkpoints of hash trees, and the keys that sign them. C2SP specifies both
 * (signed-note, tlog-checkpoint).
 *
 *   ORIGIN                                  which tree it is about
 *   SIZE                                    leaves, in decimal
 *   ROOT                                    base64
 *   purged 3-5,9                            a line of Steno's own, where something was purged
 *
 *   — NAME BASE64(key id, signature)
 *
 * Ed25519; the key id is the first 4 bytes of SHA-256(NAME, 0x0A, 0x01, public key). A private key
 * is PRIVATE+KEY+NAME+hex(key id)+base64(0x01, seed), a public one NAME+hex(key id)+base64(0x01,
 * key).
 */
#ifndef MODEL_NOTE_H
#define MODEL_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/ed25519.h"
#include "base/str.h"
#include "model/merkle.h"
#include "steno.h"

#define NOTE_NAME_MAX 100
#define NOTE_ORIGIN_MAX 200

struct note_key {
        char name[NOTE_NAME_MAX + 1];
        unsigned char id[4];
        unsigned char public[ED25519_PUBLIC];
        unsigned char seed[ED25519_SEED]; /* only in a private key */
        bool private;
};

/* Makes a key from a name and a seed. STENO_EINVAL: a key cannot have this name. */
int note_key_make(struct str name, const unsigned char seed[ED25519_SEED], struct note_key *out,
    struct steno_error *err);
/* Reads a public or a private key; white space around it is skipped. STENO_EINVAL: it is not a
 * key. */
int note_key_read(struct str text, struct note_key *out, struct steno_error *err);
void note_key_put_private(struct buf *out, const struct note_key *key);
void note_key_put_public(struct buf *out, const struct note_key *key);
/* Overwrites the secret part. */
void note_key_wipe(struct note_key *key);

struct note {
        struct str origin;
        uint64_t size;
        struct merkle_hash root;
        struct str purged; /* "3-5,9", or "" */
        struct str text;   /* the signed text, including its last line feed */
        struct str signatures;
};

/* Writes and signs a note. `purged` may be empty. 0 or STENO_ENOMEM. */
int note_put(struct buf *out, struct str origin, uint64_t size, const struct merkle_hash *root,
    struct str purged, const struct note_key *key);
/*
 * Reads the note at the beginning of `text`; its spans point into `text`. *n is the number of bytes
 * that it takes, including an empty line behind it. False: `text` does not begin with a note.
 */
bool note_read(struct str text, struct note *out, size_t *n);
/* Finds the last whole note of a text, and where it ends. */
bool note_last(struct str text, struct note *out, size_t *end);
/* Returns 1 if the note has a valid signature of this key, 0 if it has none or a wrong one, or
 * STENO_ENOMEM. */
int note_check(const struct note *note, const struct note_key *key);

/* ---- ranges of seqs: "3-5,9" ---- */

struct note_ranges {
        uint64_t (*list)[2]; /* first and last of each range, ascending, never adjacent */
        size_t count;
        size_t cap;
};

/* Adds a range, which may overlap others. 0 or STENO_ENOMEM. */
int note_ranges_add(struct note_ranges *r, uint64_t first, uint64_t last);
/* Adds the ranges of a text. False: the text is invalid (the ranges before the error were added),
 * or memory was short. */
bool note_ranges_read(struct note_ranges *r, struct str text);
bool note_ranges_have(const struct note_ranges *r, uint64_t seq);
void note_ranges_put(const struct note_ranges *r, struct buf *out);
void note_ranges_release(struct note_ranges *r);

#endif
