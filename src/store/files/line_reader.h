/*
 * line_reader.h - the lines of a file that may be large: walking them, and finding where they
 * begin.
 *
 * A walk reads through a window that grows to the longest line and no further; searches read small
 * blocks. Nothing here writes, and nothing knows what a line holds.
 */
#ifndef STORE_FILES_LINE_READER_H
#define STORE_FILES_LINE_READER_H

#include <stdint.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/limits.h"
#include "steno.h"

/* A line that is longer than any we write is damage; it is stepped over, not read. */
#define LINE_READ_MAX (2 * MESSAGE_MAX)

/* A walk forward over the whole lines of [next, end). */
struct lines {
        const struct fs *fs;
        int fd;
        size_t block;      /* how much is read at a time */
        uint64_t next;     /* offset of the next byte to hand out */
        uint64_t end;      /* moves when the file becomes shorter */
        struct buf window; /* bytes [window_at, window_at + n) of the file */
        uint64_t window_at;
};

void line_reader_init(
    struct lines *l, const struct fs *fs, int fd, size_t block, uint64_t at, uint64_t end);
void line_reader_release(struct lines *l);
/* What the window has from `next` on. */
struct str line_reader_at_hand(const struct lines *l);
/*
 * 1: *line, which begins at *at, is the next one without its line feed, and valid until the next
 * step; 0: the end; 2: a line that is too long was stepped over.
 */
int line_reader_next(struct lines *l, struct str *line, uint64_t *at, struct steno_error *err);

/* Offset behind the first line feed in [from, end); `end` when there is none. */
int line_reader_feed_after(const struct fs *fs, int fd, uint64_t from, uint64_t end, uint64_t *out,
    struct steno_error *err);
/*
 * Offset behind the `count`-th line feed before `end` (counting backwards, the one at end - 1
 * included); 0 when there are fewer.
 */
int line_reader_feed_before(const struct fs *fs, int fd, uint64_t end, uint64_t count,
    uint64_t *out, struct steno_error *err);

#endif
