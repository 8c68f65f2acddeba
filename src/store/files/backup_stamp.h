/*
 * backup_stamp.h - what the files of a conversation look like from outside, in one number.
 *
 * It is the SHA-256 of name, kind, inode, size, mtime and ctime of every file that a backup copies.
 * While it is the same, nobody has written to one of them, replaced it, taken it away or put one
 * beside it. The ctime is what counts: nobody can set it, so neither an older file that is copied
 * back with its times, nor a change of the same length, looks like no change.
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
