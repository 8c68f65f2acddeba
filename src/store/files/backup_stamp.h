/*
 * backup_stamp.h - the state of a conversation's files, without their contents, as one number.
 *
 * It is the SHA-256 of name, kind, inode, size, mtime and ctime of every file that a backup copies.
 * While it is the same, no file was written to, replaced, removed or added. This relies on the
 * ctime, which no program can set. So an older file that is copied back with its times is noticed,
 * and so is a change of the same length.
 *
 * A second change in the same tick of the clock cannot be told from the first. So a stamp counts
 * only when the youngest file was clearly older than the look at it (as in fs_stamp).
 */
#ifndef STORE_FILES_BACKUP_STAMP_H
#define STORE_FILES_BACKUP_STAMP_H

#include "base/fs.h"
#include "base/hash.h"

/*
 * Of the conversation, or the copy of one, in the folder `dir`. `now` is the time before the look;
 * NULL: whatever changes in this tick need not be noticed. 0; 1: a file is too young, and there is
 * no stamp; or a negative errno.
 */
int backup_stamp(const struct fs *fs, int dir, const struct timespec *now, char stamp[SHA256_HEX]);

#endif
