/*
 * leaf.h - the bytes and the hash by which a record is sealed.
 *
 *   C     {"v":1,"seq":N,"id":E,"at":"...","fmt":"...","batch":[i,n],"x":X,"m":M}
 *   leaf  SHA-256(0x00, C)
 *
 * C is the record's line without `group` and `crc`, because a purge, a repair or a bundle rewrites
 * these. X and M are the stored bytes. If a tombstone has a member `leaf`, this member is its leaf:
 * the leaf of the record that it replaces. So a purge does not change any tree.
 */
#ifndef MODEL_LEAF_H
#define MODEL_LEAF_H

#include "model/merkle.h"
#include "model/record.h"

/* Appends C to `out`. */
void leaf_put(struct buf *out, const struct record *rec);
/* Computes the leaf of a record. `scratch` is overwritten. False: out of memory. */
bool leaf_of(
    struct merkle *t, const struct record *rec, struct buf *scratch, struct merkle_hash *out);
/* Computes the leaf of the record's own C, even if the record has a member `leaf`. */
bool leaf_of_own(
    struct merkle *t, const struct record *rec, struct buf *scratch, struct merkle_hash *out);
/* Reads the member `leaf` of a tombstone's x; false if it has none. */
bool leaf_said(struct str x, struct merkle_hash *out);

/* Reads 64 hex digits. False: the text is something else. */
bool leaf_from_hex(struct str hex, struct merkle_hash *out);

#endif
