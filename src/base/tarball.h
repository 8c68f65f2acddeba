/*
 * tarball.h - a .tar.zst as a stream of bytes: plain `tar --zstd` opens what is written here.
 *
 * The writer takes regular files only, in the order they are given, and sets times and owners to
 * zero, so that the same files give the same bytes. The reader accepts untrusted input. It refuses
 * entries that are not regular files with a size and bytes of their own, and streams that need too
 * much memory, expand too far or are cut off. The caller checks names and sizes.
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
