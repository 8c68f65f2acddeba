/*
 * named_file.h - files that a person names on a command line, wherever they are, and temporary
 * files. Everything inside a store goes through struct fs instead.
 */
#ifndef BASE_NAMED_FILE_H
#define BASE_NAMED_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Opens a file for reading. Never waits: a pipe without a writer reads as empty, and reading from
 * one with a slow writer gives EAGAIN until named_file_wait. Returns a descriptor or a negative
 * errno. */
int named_file_open(const char *path);
/* All of a small file: *text has *n bytes and a NUL, and is freed with free(). 0 or a negative
 * errno, -EFBIG where it has more than `max` bytes. */
int named_file_slurp(const char *path, size_t max, char **text, size_t *n);
/* From now on a read waits for bytes. */
void named_file_wait(int fd);
/* Opens a file for appending. A new file is readable by its owner alone, because logs say who did
 * what. Returns the same. */
int named_file_append(const char *path);
/* The same path from the root of the file system on, without looking at it; freed with free().
 * NULL: out of memory. */
char *named_file_absolute(const char *path);
/* Makes a file without a name, which vanishes when its descriptor is closed: in $TMPDIR, else in
 * /var/tmp, because /tmp is memory on many machines. Returns the same. */
int named_file_temp(void);

/* A file that is written beside its name and renamed when it is complete, so that nobody sees half
 * of it. A device, a pipe or a socket is written to directly; a link is followed. */
struct named_file {
        char *path; /* NULL: standard output */
        char *part; /* NULL: `path` is written to directly */
        int fd;
        int sys; /* the errno of the first write that failed */
};

/* `path` NULL or "-" is standard output. 0 or a negative errno. */
int named_file_begin(struct named_file *f, const char *path);
/* A steno_sink; goes on after signals, unless `when` (may be NULL) says to stop. */
int named_file_write(struct named_file *f, const void *p, size_t n, bool (*when)(void));
/* Gives it its name, synced, or removes it. 0 or a negative errno, also of an earlier write. */
int named_file_end(struct named_file *f, bool keep);

#endif
