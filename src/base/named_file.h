/*
 * named_file.h - files that a person names on a command line, wherever they are, and files that
 * nobody names. Everything inside a store goes through struct fs instead.
 */
#ifndef BASE_NAMED_FILE_H
#define BASE_NAMED_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* To read from. Never waits: a pipe that nobody writes to reads as empty, and reading one whose
 * writer is slow gives EAGAIN until named_file_wait. A descriptor or a negative errno. */
int named_file_open(const char *path);
/* All of a small file: *text has *n bytes and a NUL, and is freed with free(). 0 or a negative
 * errno, -EFBIG where it has more than `max` bytes. */
int named_file_slurp(const char *path, size_t max, char **text, size_t *n);
/* From now on a read waits for bytes. */
void named_file_wait(int fd);
/* To write behind what is there. A new one is readable by its owner alone, because logs say who did
 * what. Likewise. */
int named_file_append(const char *path);
/* The same path from the root of the file system on, without looking at it; freed with free().
 * NULL: out of memory. */
char *named_file_absolute(const char *path);
/* One without a name, which goes with its descriptor: in $TMPDIR, else in /var/tmp, because /tmp is
 * memory on many machines. Likewise. */
int named_file_temp(void);

/* Written beside its name and renamed when it is whole, so that no half of it is ever there. Where
 * a device, a pipe or a socket has the name, it is written to as it is; a link is followed. */
struct named_file {
        char *path; /* NULL: standard output */
        char *part; /* NULL: what has the name is written to itself */
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
