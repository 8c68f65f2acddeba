/*
 * copy_seals.h - the log of seals of one store into another.
 */
#ifndef API_COPY_SEALS_H
#define API_COPY_SEALS_H

#include "store/backend.h"

/* A target that has no log has that of the source then. Any other is left alone: two cannot become
 * one, and what was replaced since is in the target's trash as an earlier log knows it. */
int copy_seals(struct backend_store *from, struct backend_store *to, struct steno_error *err);

#endif
