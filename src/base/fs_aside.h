/*
 * fs_aside.h - files as they are, with changes that are kept in memory and never reach the disk.
 *
 * For work whose outcome is wanted where nothing can be written: a read-only disk, or a full one. A
 * file that is only appended to costs what is appended; one that is changed in its middle is
 * copied. Locks are taken on what is really there; a file that was changed has none, because nobody
 * else can see it.
 */
#ifndef BASE_FS_ASIDE_H
#define BASE_FS_ASIDE_H

#include "base/fs.h"

struct fs_aside;

/* On top of `under`, which must outlive it. NULL: out of memory. */
struct fs_aside *fs_aside_new(const struct fs *under);
const struct fs *fs_aside_table(const struct fs_aside *a);
/* All of its descriptors are closed. */
void fs_aside_free(struct fs_aside *a);

#endif
