/*
 * tarball.h - a .tar.zst as a stream of bytes: plain `tar --zstd` opens what is written here.
 *
 * Written: regular files only, in the order they are given, with times and owners of zero, so that
 * the same files give the same bytes. Read: from anybody. What is not a regular file with a size
 * and bytes of its own is refused, and so is a stream that asks for too much memory, expands too
 * far or is cut off. Names and sizes are for the caller to judge.
 */
#ifndef BASE_TARBALL_H
#define BASE_TARBALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "steno.h"

/* ---- writing ---- */

struct tarball_writer;

int tarball_writer_new(
    steno_sink sink, void *ctx, struct tarball_writer **out, struct steno_error *err);
/* The next file; exactly `size` bytes follow. */
int tarball_add(struct tarball_writer *w, const char *name, uint64_t size, struct steno_error *err);
int tarball_write(struct tarball_writer *w, const void *p, size_t n, struct steno_error *err);
/* The end of the archive. */
int tarball_finish(struct tarball_writer *w, struct steno_error *err);
void tarball_writer_free(struct tarball_writer *w);

/* ---- reading ---- */

struct tarball_reader;

/* Does a file that begins with these bytes look like one? */
bool tarball_is(const void *p, size_t n);

/* `trusted`: it may expand as far as it likes. */
int tarball_reader_new(steno_source source, void *ctx, bool trusted, struct tarball_reader **out,
    struct steno_error *err);
/* 1 and the next file; 0: the end, and it was whole. *name lives until the next call. */
int tarball_next(
    struct tarball_reader *r, const char **name, uint64_t *size, struct steno_error *err);
/* Bytes of the file at work: how many, 0 at its end, or a negative code. */
ssize_t tarball_read(struct tarball_reader *r, void *p, size_t n, struct steno_error *err);
void tarball_reader_free(struct tarball_reader *r);

#endif
