/*
 * acp_index.h - finds calls and terminals by id, also in a session with many of them.
 *
 * Private to acp. The nodes are members of the structs that are searched, so adding one cannot
 * fail.
 */
#ifndef ACP_ACP_INDEX_H
#define ACP_ACP_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define ACP_INDEX_FEW 16

struct acp_node {
        struct acp_node *next;
        uint64_t hash;
        const char *key; /* borrowed as long as the node is in an index */
        void *value;
};

struct acp_index {
        struct acp_node **lists; /* NULL: the nodes are in `few` */
        size_t list_count;
        size_t count;
        struct acp_node *few[ACP_INDEX_FEW];
};

void acp_index_add(struct acp_index *ix, struct acp_node *node, const char *key, void *value);
void acp_index_remove(struct acp_index *ix, struct acp_node *node);
/* Returns the first node with this key, in the order in which they were added, or NULL.
 * acp_index_next returns the next one. */
struct acp_node *acp_index_first(const struct acp_index *ix, const char *key, size_t n);
struct acp_node *acp_index_next(const struct acp_node *node);
void acp_index_release(struct acp_index *ix);

#endif
