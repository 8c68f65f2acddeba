/*
 * exec_aliases.h - the other paths of a directory. A file system that is mounted twice, or a folder
 * of it that is bound elsewhere, shows the same files under a second path. Private to exec.
 */
#ifndef EXEC_EXEC_ALIASES_H
#define EXEC_EXEC_ALIASES_H

/* Calls `take` with every other path at which this mount namespace shows the directory `real`
 * (resolved), or at which it shows a directory inside of it. Ends with what `take` returns when
 * that is not 0. STENO_ENOMEM, or 0; without /proc no such path is known. */
int exec_aliases(const char *real, int (*take)(void *ctx, const char *path), void *ctx);

#endif
