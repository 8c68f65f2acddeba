/*
 * figures.h - counters of a store: figures.json in its root. They cost little, are not synced,
 * and are only for people to look at. When the file is deleted, counting begins again.
 */
#ifndef STORE_FILES_FIGURES_H
#define STORE_FILES_FIGURES_H

#include "store/files/files.h"

/* Best effort: errors are ignored on purpose, the figures are only to look at. */
void figures_add(struct files_store *store, const struct figures *more);

/* Zeros where there are none. */
void figures_get(struct files_store *store, struct figures *out);

#endif
