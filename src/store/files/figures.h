/*
 * figures.h - counters of a store: figures.json in its root. They cost little, are not synced,
 * and are only for people to look at. When the file is deleted, counting begins again.
 */
#ifndef STORE_FILES_FIGURES_H
#define STORE_FILES_FIGURES_H

#include "store/files/files.h"

struct figures {
        uint64_t materializations;
        uint64_t bytes; /* of the outputs, and of what stands for them */
        uint64_t chars;
        uint64_t shown_bytes;
        uint64_t shown_chars;
        uint64_t reads[4]; /* list, read, tail, grep */
};

/* Counts an output that became a file. Errors are ignored on purpose: the figures are only to look
 * at. */
void figures_materialized(struct files_store *store, uint64_t bytes, uint64_t chars,
    uint64_t shown_bytes, uint64_t shown_chars);
/* A context operation was answered. */
void figures_read(struct files_store *store, const char *op);

/* Zeros where there are none. */
void figures_get(struct files_store *store, struct figures *out);

#endif
