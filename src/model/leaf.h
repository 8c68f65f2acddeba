/*
 * leaf.h - a record as it is sealed.
 *
 *   C     {"v":1,"seq":N,"id":E,"at":"...","fmt":"...","batch":[i,n],"x":X,"m":M}
 *   leaf  SHA-256(0x00, C)
 *
 * C is the record's line without `group` and `crc`, which a purge, a repair or a bundle writes
 * anew; X and M are the stored bytes. If a tombstone has a member `leaf`, that is its leaf: the
 * leaf of the record that it replaces. So a purge does not change any tree.
 */
#ifndef MODEL_LEAF_H
#define MODEL_LEAF_H

#include "model/merkle.h"
#include "model/record.h"

/* Appends C. */
void leaf_put(struct buf *out, const struct record *rec);
/* The leaf of a record. `scratch` is overwritten. False: memory was short. */
bool leaf_of(
    struct merkle *t, const struct record *rec, struct buf *scratch, struct merkle_hash *out);
/* The leaf of the record's own C, even if the record has a member `leaf`. */
bool leaf_of_own(
    struct merkle *t, const struct record *rec, struct buf *scratch, struct merkle_hash *out);
/* What a tombstone's x says as its leaf; false where it says none. */
bool leaf_said(struct str x, struct merkle_hash *out);

/* 64 hex digits. False: it is none. */
bool leaf_from_hex(struct str hex, struct merkle_hash *out);

#endif
