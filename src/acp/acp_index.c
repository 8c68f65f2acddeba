/*
 * acp_index.c - see acp_index.h
 */
#include "acp/acp_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static struct acp_node *const *lists_of(const struct acp_index *ix, size_t *count)
{
        *count = ix->lists ? ix->list_count : ACP_INDEX_FEW;
        return ix->lists ? ix->lists : ix->few;
}

static struct acp_node **list_of(struct acp_index *ix, uint64_t hash)
{
        struct acp_node **lists = ix->lists ? ix->lists : ix->few;
        return &lists[hash & ((ix->lists ? ix->list_count : ACP_INDEX_FEW) - 1)];
}

/* Appends a node at the end, so that nodes of one key stay in their order. */
static void append(struct acp_node **at, struct acp_node *node)
{
        while (*at)
                at = &(*at)->next;
        node->next = NULL;
        *at = node;
}

/* Adds lists. Without memory for them, the lists only become longer. */
static void widen(struct acp_index *ix)
{
        size_t old_count;
        struct acp_node *const *old = lists_of(ix, &old_count);
        struct acp_index wide = {.list_count = 4 * old_count, .count = ix->count};
        wide.lists = calloc(wide.list_count, sizeof *wide.lists);
        if (!wide.lists)
                return;
        for (size_t i = 0; i < old_count; i++)
                for (struct acp_node *n = old[i], *next; n; n = next) {
                        next = n->next;
                        append(list_of(&wide, n->hash), n);
                }
        free(ix->lists);
        *ix = wide;
}

void acp_index_add(struct acp_index *ix, struct acp_node *node, const char *key, void *value)
{
        size_t count;
        lists_of(ix, &count);
        if (ix->count >= count)
                widen(ix);
        *node = (struct acp_node){.hash = hash_64(key, strlen(key)), .key = key, .value = value};
        append(list_of(ix, node->hash), node);
        ix->count++;
}

void acp_index_remove(struct acp_index *ix, struct acp_node *node)
{
        struct acp_node **at = list_of(ix, node->hash);
        while (*at && *at != node)
                at = &(*at)->next;
        if (*at) {
                *at = node->next;
                ix->count--;
        }
}

static struct acp_node *same_key(
    const struct acp_node *node, uint64_t hash, const char *key, size_t n)
{
        while (node &&
               (node->hash != hash || strlen(node->key) != n || memcmp(node->key, key, n) != 0))
                node = node->next;
        return (struct acp_node *)node;
}

struct acp_node *acp_index_first(const struct acp_index *ix, const char *key, size_t n)
{
        size_t count;
        struct acp_node *const *lists = lists_of(ix, &count);
        uint64_t hash = hash_64(key, n);
        return same_key(lists[hash & (count - 1)], hash, key, n);
}

struct acp_node *acp_index_next(const struct acp_node *node)
{
        return same_key(node->next, node->hash, node->key, strlen(node->key));
}

void acp_index_release(struct acp_index *ix)
{
        free(ix->lists);
        memset(ix, 0, sizeof *ix);
}
