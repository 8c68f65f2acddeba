/*
 * map.h - a file as memory, without the signal that kills.
 *
 * Memory that maps a file is the fastest way to read all of it once. But when the file becomes
 * shorter meanwhile, or the disk cannot be read, touching the memory raises SIGBUS, and the process
 * ends. Here the signal is caught: the mapping turns into zeros, and map_is_broken() says so
 * from then on. Whoever reads a map asks that before it trusts what it saw.
 *
 * Opening a map installs a handler for SIGBUS where it is not there yet. A signal that no map
 * caused goes to the handler that was there before, or ends the process as usual. For struct fs
 * (fs_real.c); others use fs->map.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct map {
        const char *p; /* n bytes; NULL: nothing is mapped */
        size_t n;
        volatile sig_atomic_t broken;
        struct map *next; /* of this thread */
};

/* Maps the first n bytes, n > 0, of an open file for reading. 0 or negative errno. The map is read
 * and closed by the thread that opened it, and *m stays where it is meanwhile. */
int map_open(struct map *m, int fd, size_t n);
/* Could some of it not be read? Then what was read may have been zeros. */
bool map_is_broken(const struct map *m);
/* Accepts a map that is not open. */
void map_close(struct map *m);

#endif
