/*
 * run_read.h - finding lines in a journal (run.h). For those in this folder who copy or rewrite
 * journals. Knows nothing of locks and folders.
 */
#ifndef STORE_FILES_RUN_READ_H
#define STORE_FILES_RUN_READ_H

#include "base/buf.h"
#include "base/fs.h"
#include "store/files/line_reader.h"
#include "store/files/run.h"

/* A walk forward. */
struct run_cursor {
        struct lines in;
        uint64_t damaged; /* lines that were stepped over */
};

void run_cursor_init(struct run_cursor *c, const struct fs *fs, int fd, uint64_t at, uint64_t end);
void run_cursor_release(struct run_cursor *c);
/* 1 and the next line that can be read (valid until the next step), 0 at the end. */
int run_next(struct run_cursor *c, struct run_event *out, struct steno_error *err);

/* The last line that can be read: 1, *end is behind it; 0: there is none, *end is 0. */
int run_last_line(const struct fs *fs, int fd, uint64_t size, struct buf *line,
    struct run_event *out, uint64_t *end, struct steno_error *err);
/* A place at or before the first line with a seq greater than `seq`, and not far before it. */
int run_seek(const struct fs *fs, int fd, uint64_t size, uint64_t seq, uint64_t *at,
    struct steno_error *err);

#endif
