/*
 * fs_aside.h - the real files, with changes that are kept in memory and never reach the disk.
 *
 * It is for work whose result is needed although nothing can be written, because the disk is
 * read-only or full. A file that is only appended to costs what is appended; one that is changed in
 * its middle is copied. Locks are taken on the real files. A changed file has no lock, because no
 * other process can see it.
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
