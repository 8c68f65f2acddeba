/*
 * backup_files.h - which files of a copy are known to have the bytes of the conversation's.
 *
 * The file .backup.files in the copy has a line for each output, large token, journal and seal that
 * was compared or copied: 32 hex digits, a blank, and its path. The digits are a hash of inode,
 * size, mtime and ctime of the file, and one of its copy. While both are the same, nobody has
 * written to either of them, and the next backup need not read them. A line is missing where the
 * file was too young to tell a second change from the first (as in backup_stamp.h), and where bytes
 * are damaged: those are looked at again by every backup.
 *
 * The list cannot show bits that flipped on the disk, because that changes no time. A backup with
 * --verify does not use it.
 */
#ifndef STORE_FILES_BACKUP_FILES_H
#define STORE_FILES_BACKUP_FILES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/fs.h"

#define BACKUP_FILES ".backup.files"

struct backup_files {
        char *text;   /* as the last backup left it */
        char **lines; /* of it, sorted by path */
        size_t count;
        struct buf now; /* as this one leaves it */
};

/* From the folder `dir`. 0 or -ENOMEM: a list that is missing or damaged knows nothing. */
int backup_files_read(struct backup_files *f, const struct fs *fs, int dir);
/* Are the file `path` and its copy still what they were? `copy` NULL: is the file? */
bool backup_files_know(const struct backup_files *f, const char *path, const struct stat *from,
    const struct stat *copy);
void backup_files_note(
    struct backup_files *f, const char *path, const struct stat *from, const struct stat *copy);
/* 0 or a negative errno. */
int backup_files_write(const struct backup_files *f, const struct fs *fs, int dir);
void backup_files_release(struct backup_files *f);

#endif
