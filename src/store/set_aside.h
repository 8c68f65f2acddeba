/*
 * set_aside.h - what the recorders of a machine could not record, and keep as files in the folder
 * of the store or, where that has none, in the machine's own (base/state_folder.h).
 */
#ifndef STORE_SET_ASIDE_H
#define STORE_SET_ASIDE_H

#include "base/fs.h"

/* A sentence about one of them. Non-zero ends the walk, which returns it. */
typedef int (*set_aside_fn)(void *ctx, const char *what);

/* A folder that cannot be read hides them, and is not an error. */
int set_aside_each(const struct fs *fs, int folder, set_aside_fn each, void *ctx);

#endif
