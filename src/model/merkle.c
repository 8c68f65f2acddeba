/* merkle.c - see merkle.h */
#include "model/merkle.h"

#include <string.h>

int merkle_init(struct merkle *t)
{
        *t = (struct merkle){0};
        int rc = hash_sha256_init(&t->sha);
        t->failed = rc != 0;
        return rc;
}

void merkle_release(struct merkle *t)
{
        hash_sha256_release(&t->sha);
}

void merkle_clear(struct merkle *t)
{
        t->size = 0;
        t->depth = 0;
}

static struct merkle_hash finish(struct merkle *t)
{
        struct merkle_hash h;
        t->failed = !hash_sha256_take(&t->sha, h.b) || t->failed;
        return h;
}

struct merkle_hash merkle_leaf(struct merkle *t, const void *a, size_t an, const void *b, size_t bn)
{
        hash_sha256_update(&t->sha, "\0", 1);
        hash_sha256_update(&t->sha, a, an);
        hash_sha256_update(&t->sha, b, bn);
        return finish(t);
}

static struct merkle_hash node(
    struct merkle *t, const struct merkle_hash *left, const struct merkle_hash *right)
{
        unsigned char both[1 + 2 * SHA256_SIZE] = {1};
        memcpy(both + 1, left->b, SHA256_SIZE);
        memcpy(both + 1 + SHA256_SIZE, right->b, SHA256_SIZE);
        hash_sha256_update(&t->sha, both, sizeof both);
        return finish(t);
}

void merkle_push(struct merkle *t, const struct merkle_hash *leaf)
{
        struct merkle_hash h = *leaf;
        for (uint64_t n = t->size++; n & 1; n >>= 1)
                h = node(t, &t->left[--t->depth], &h);
        t->left[t->depth++] = h;
}

struct merkle_hash merkle_root(struct merkle *t)
{
        if (t->depth == 0)
                return finish(t);
        struct merkle_hash h = t->left[t->depth - 1];
        for (unsigned i = t->depth - 1; i-- > 0;)
                h = node(t, &t->left[i], &h);
        return h;
}

/* ---- paths ---- */

/* The largest power of two below n. n must be above 1. */
static uint64_t split(uint64_t n)
{
        uint64_t k = 1;
        while (k << 1 < n)
                k <<= 1;
        return k;
}

static struct merkle_hash root_of(struct merkle *t, const struct merkle_hash *leaves, uint64_t size)
{
        /* Only its hash state is used, which holds nothing between two calls. */
        struct merkle sub = *t;
        merkle_clear(&sub);
        for (uint64_t i = 0; i < size; i++)
                merkle_push(&sub, &leaves[i]);
        struct merkle_hash h = merkle_root(&sub);
        t->failed = t->failed || sub.failed;
        t->sha = sub.sha;
        return h;
}

unsigned merkle_path(struct merkle *t, const struct merkle_hash *leaves, uint64_t size,
    uint64_t index, struct merkle_hash *out)
{
        unsigned count = 0;
        while (size > 1) {
                uint64_t k = split(size);
                bool right = index >= k;
                out[count++] = right ? root_of(t, leaves, k) : root_of(t, leaves + k, size - k);
                leaves += right ? k : 0;
                index -= right ? k : 0;
                size = right ? size - k : k;
        }
        for (unsigned i = 0; i < count / 2; i++) { /* the path was built from the root */
                struct merkle_hash h = out[i];
                out[i] = out[count - 1 - i];
                out[count - 1 - i] = h;
        }
        return count;
}

bool merkle_climb(struct merkle *t, const struct merkle_hash *leaf, uint64_t index, uint64_t size,
    const struct merkle_hash *path, unsigned count, struct merkle_hash *root)
{
        struct merkle_hash h = *leaf;
        unsigned used = 0;
        if (index >= size)
                return false;
        for (uint64_t last = size - 1; last; index >>= 1, last >>= 1) {
                if (!(index & 1) && index == last)
                        continue; /* the node has no sibling on this level */
                if (used == count)
                        return false;
                h = index & 1 ? node(t, &path[used], &h) : node(t, &h, &path[used]);
                used++;
        }
        *root = h;
        return used == count;
}
