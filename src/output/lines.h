/*
 * lines.h - finding lines in a file without reading all of it.
 *
 * From the end: lines_tail reads backwards in blocks, so its cost depends only on the lines that it
 * returns. From a number: a sparse index (every LINES_EVERY-th line's offset), written while an
 * output streams in and looked up later. The index is derived data: it can be deleted, it may be
 * cut off or damaged, and then only costs more or answers "unknown".
 *
 * A line ends with LF. Lines are numbered from 1. A last line without LF is a line.
 */
#ifndef OUTPUT_LINES_H
#define OUTPUT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

/* Reads exactly n bytes at `at` (the range lies within the file). 0 or a negative steno code,
 * which is passed on. */
typedef int (*lines_read)(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err);

/* A file of which lines are wanted. */
struct lines_file {
        lines_read read;
        void *ctx;
        uint64_t size;
};

/* Line feeds in a span; as fast as memory. */
uint64_t lines_count(const char *p, size_t n);

struct lines_span {
        uint64_t offset; /* first byte */
        uint64_t size;   /* up to the end of the file */
        uint64_t lines;  /* how many lines that is; the first may be a line's end only */
        bool cut;        /* the first line begins before `offset` */
};

/*
 * The last `lines` lines of a file, in at most `max_bytes` bytes. Never begins
 * inside a UTF-8 sequence. A last line that alone is longer than max_bytes is cut at its front.
 * 0, STENO_ENOMEM, or what `read` answered.
 */
int lines_tail(const struct lines_file *f, uint64_t lines, uint64_t max_bytes,
    struct lines_span *out, struct steno_error *err);

/* ---- the index ---- */

#define LINES_EVERY 1024

/*
 * Writes the index while the output's bytes go by. After each feed `out` may hold new bytes to be
 * appended to the index file: the caller writes and clears it. lines_writer_finish adds the
 * totals; a file without them still serves to jump.
 *
 * Layout: "STLX", u32 1, u64 LINES_EVERY; then for each line k * LINES_EVERY + 1, k = 1, 2 ...,
 * its offset; at the end UINT64_MAX, total lines, total bytes. All little-endian.
 */
struct lines_writer {
        struct buf *out;
        uint64_t offset;
        uint64_t feeds; /* line feeds so far */
        bool partial;   /* the last byte was not a line feed */
};

void lines_writer_init(struct lines_writer *w, struct buf *out);
void lines_writer_feed(struct lines_writer *w, const void *p, size_t n);
void lines_writer_finish(struct lines_writer *w);

/* A view of an index file's bytes. */
struct lines_index {
        const unsigned char *p;
        size_t count; /* entries */
        bool has_totals;
        uint64_t total_lines;
        uint64_t total_bytes;
};

/*
 * Opens the index of a file that now has `size` bytes. False if it is not an index, or if it
 * contradicts itself or the size. If its end is cut off, only that end is ignored. The totals count
 * only if they were made for exactly `size` bytes.
 */
bool lines_index_open(struct lines_index *x, const void *p, size_t n, uint64_t size);

/* The last indexed line that begins at or before `offset`, and its offset; false: it is the first
 * line of the file. The caller checks in the file that a line really begins there. */
bool lines_index_before(const struct lines_index *x, uint64_t offset, uint64_t *at, uint64_t *line);

/*
 * The offset of a line: index first, then forward in blocks. *found is false (and *offset the
 * file's size) when the file has fewer lines.
 */
int lines_seek(const struct lines_file *f, const struct lines_index *x, uint64_t line,
    uint64_t *offset, bool *found, struct steno_error *err);
/* The other way: the number of the line that the byte at `offset` stands in. */
int lines_at(const struct lines_file *f, const struct lines_index *x, uint64_t offset,
    uint64_t *line, struct steno_error *err);

#endif
