/*
 * merkle.h - the hash tree of RFC 6962 over leaves of 32 bytes.
 *
 *   leaf  SHA-256(0x00, bytes)      node  SHA-256(0x01, left, right)
 *
 * In a tree of n leaves, the left subtree has as many leaves as the largest power of two below n.
 * While leaves are pushed, only the list of complete subtrees is kept, one for each bit of n that
 * is set, so that the root of every prefix costs a few hashes. This file knows nothing of records
 * or files.
 */
#ifndef MODEL_MERKLE_H
#define MODEL_MERKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

#define MERKLE_DEPTH 64

struct merkle_hash {
        unsigned char b[SHA256_SIZE];
};

struct merkle {
        uint64_t size;                         /* leaves so far */
        struct merkle_hash left[MERKLE_DEPTH]; /* roots of complete subtrees, the largest first */
        unsigned depth;
        struct sha256 sha;
        bool failed; /* out of memory: the roots mean nothing */
};

/* 0 or STENO_ENOMEM. */
int merkle_init(struct merkle *t);
void merkle_release(struct merkle *t);
/* Makes the tree empty again. */
void merkle_clear(struct merkle *t);

/* Computes the leaf of some bytes, which may be given in two pieces. Only the tree's hash state is
 * used. */
struct merkle_hash merkle_leaf(
    struct merkle *t, const void *a, size_t an, const void *b, size_t bn);
void merkle_push(struct merkle *t, const struct merkle_hash *leaf);
/* The root of the leaves so far. Without leaves it is the SHA-256 of the empty string. */
struct merkle_hash merkle_root(struct merkle *t);
static inline bool merkle_same(const struct merkle_hash *a, const struct merkle_hash *b)
{
        return memcmp(a->b, b->b, sizeof a->b) == 0;
}

/*
 * Computes the audit path of leaf `index` in a tree of `size` leaves, from the leaf upwards. Fills
 * `out`, which has room for MERKLE_DEPTH hashes, and returns their number (0 for a tree of one
 * leaf). `leaves` has all leaves.
 */
unsigned merkle_path(struct merkle *t, const struct merkle_hash *leaves, uint64_t size,
    uint64_t index, struct merkle_hash *out);
/* Computes the root from a leaf and its path. False: the length of the path does not fit the leaf's
 * place. */
bool merkle_climb(struct merkle *t, const struct merkle_hash *leaf, uint64_t index, uint64_t size,
    const struct merkle_hash *path, unsigned count, struct merkle_hash *root);

#endif
