/*
 * merkle.h - the hash tree of RFC 6962 over leaves of 32 bytes.
 *
 *   leaf  SHA-256(0x00, bytes)      node  SHA-256(0x01, left, right)
 *
 * A tree of n leaves has on its left the largest power of two below n. What is kept while leaves
 * are pushed is the list of its complete subtrees, one for each bit of n that is set, so that the
 * root of every prefix costs a few hashes. Knows nothing of records or files.
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
        bool failed; /* memory was short: roots mean nothing */
};

/* 0 or STENO_ENOMEM. */
int merkle_init(struct merkle *t);
void merkle_release(struct merkle *t);
/* An empty tree again. */
void merkle_clear(struct merkle *t);

/* The leaf of some bytes, which may come in two pieces. Uses the tree's hash state alone. */
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
 * The audit path of leaf `index` in a tree of `size` leaves, from the leaf upwards: fills `out`,
 * which has room for MERKLE_DEPTH, and returns the number of hashes (0 for a tree of one leaf).
 * `leaves` has all leaves.
 */
unsigned merkle_path(struct merkle *t, const struct merkle_hash *leaves, uint64_t size,
    uint64_t index, struct merkle_hash *out);
/* The root that follows from a leaf and its path. False: the path has another length than such a
 * leaf has. */
bool merkle_climb(struct merkle *t, const struct merkle_hash *leaf, uint64_t index, uint64_t size,
    const struct merkle_hash *path, unsigned count, struct merkle_hash *root);

#endif
