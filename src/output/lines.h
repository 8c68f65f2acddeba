/*
 * lines.h - finds lines in a file without reading the whole file.
 *
 * From the end: lines_tail reads backwards in blocks, so its cost depends only on the lines that it
 * returns. By number: a sparse index has the offset of every LINES_EVERY-th line. It is written
 * while an output streams in, and used later. The index is derived data: it can be deleted, cut off
 * or damaged. Then searching costs more, or the answer is "unknown".
 *
 * A line ends with LF. Lines are numbered from 1. A last line without LF also counts as a line.
 */
#ifndef OUTPUT_LINES_H
#define OUTPUT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

/* Reads exactly n bytes at `at` (the range is within the file). Returns 0 or a negative steno code,
 * which the caller returns as well. */
typedef int (*lines_read)(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err);

/* A file whose lines are searched. */
struct lines_file {
        lines_read read;
        void *ctx;
        uint64_t size;
};

/* Returns the number of line feeds in a span, at the speed of memory. */
uint64_t lines_count(const char *p, size_t n);

struct lines_span {
        uint64_t offset; /* offset of the first byte */
        uint64_t size;   /* number of bytes up to the end of the file */
        uint64_t lines;  /* number of lines; the first may be only the end of a line */
        bool cut;        /* the first line begins before `offset` */
};

/*
 * Finds the last `lines` lines of a file, in at most `max_bytes` bytes. The result never begins
 * inside a UTF-8 sequence. If the last line alone is longer than max_bytes, its beginning is cut
 * off. 0, STENO_ENOMEM, or the error of `read`.
 */
int lines_tail(const struct lines_file *f, uint64_t lines, uint64_t max_bytes,
    struct lines_span *out, struct steno_error *err);

/* ---- the index ---- */

#define LINES_EVERY 1024

/*
 * Writes the index while an output streams in. After each feed, `out` may have new bytes for the
 * index file: the caller appends them to the file and clears `out`. lines_writer_finish adds the
 * totals; a file without totals can still be used to find lines.
 *
 * Layout: "STLX", u32 1, u64 LINES_EVERY; then for each line k * LINES_EVERY + 1, k = 1, 2 ..., its
 * offset; at the end UINT64_MAX, total lines, total bytes. All little-endian.
 */
struct lines_writer {
        struct buf *out;
        uint64_t offset;
        uint64_t feeds; /* number of line feeds so far */
        bool partial;   /* the last byte was not a line feed */
};

void lines_writer_init(struct lines_writer *w, struct buf *out);
void lines_writer_feed(struct lines_writer *w, const void *p, size_t n);
void lines_writer_finish(struct lines_writer *w);

/* A view of an index file's bytes. */
struct lines_index {
        const unsigned char *p;
        size_t count; /* number of entries */
        bool has_totals;
        uint64_t total_lines;
        uint64_t total_bytes;
};

/*
 * Opens the index of a file that now has `size` bytes. Returns false if it is not an index, or if
 * it contradicts itself or the size. If its end is cut off, only the end is ignored. The totals are
 * used only if they were made for exactly `size` bytes.
 */
bool lines_index_open(struct lines_index *x, const void *p, size_t n, uint64_t size);

/* Finds the last indexed line that begins at or before `offset`, and the line's offset. False:
 * there is none, so the line is the first of the file. The caller must check in the file that a
 * line really begins there. */
bool lines_index_before(const struct lines_index *x, uint64_t offset, uint64_t *at, uint64_t *line);

/*
 * Finds the offset of a line: with the index first, then forward in blocks. *found is false (and
 * *offset is the file's size) if the file has fewer lines.
 */
int lines_seek(const struct lines_file *f, const struct lines_index *x, uint64_t line,
    uint64_t *offset, bool *found, struct steno_error *err);
/* The reverse: finds the number of the line that has the byte at `offset`. */
int lines_at(const struct lines_file *f, const struct lines_index *x, uint64_t offset,
    uint64_t *line, struct steno_error *err);

#endif
