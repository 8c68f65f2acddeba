/*
 * tokens_merge.c - merging a short piece, literally.
 */
#include "view/tokens_merge.h"

#include "view/tokens_data.h"

struct parts {
        const unsigned char *p;
        size_t n;                              /* parts */
        uint8_t start[TOKENS_MERGE_MAX + 1];   /* of each part; then the end of the last */
        uint32_t joined[TOKENS_MERGE_MAX + 1]; /* rank of a part together with the next */
};

_Static_assert(TOKENS_MERGE_MAX <= UINT8_MAX, "starts are bytes");

static uint32_t joined_rank(const struct parts *parts, size_t i)
{
        if (i + 2 > parts->n)
                return TOKENS_NONE;
        return tokens_rank_if_any(
            parts->p + parts->start[i], parts->start[i + 2] - parts->start[i]);
}

static void join(struct parts *parts, size_t i)
{
        size_t after = parts->n - i - 1;
        memmove(parts->start + i + 1, parts->start + i + 2, after * sizeof *parts->start);
        memmove(parts->joined + i + 1, parts->joined + i + 2, (after - 1) * sizeof *parts->joined);
        parts->n--;
        parts->joined[i] = joined_rank(parts, i);
        if (i > 0)
                parts->joined[i - 1] = joined_rank(parts, i - 1);
}

size_t tokens_merge(const unsigned char *p, size_t n)
{
        struct parts parts = {.p = p, .n = n};
        for (size_t i = 0; i <= n; i++)
                parts.start[i] = (uint8_t)i;
        for (size_t i = 0; i < n; i++)
                parts.joined[i] = joined_rank(&parts, i);
        for (;;) {
                size_t best = 0;
                for (size_t i = 1; i < parts.n; i++) {
                        if (parts.joined[i] < parts.joined[best])
                                best = i;
                }
                if (parts.joined[best] == TOKENS_NONE)
                        return parts.n;
                join(&parts, best);
        }
}
